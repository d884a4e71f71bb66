// Buffers that kernels are run on: guarded, aligned, and touched before anything is timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace dojo {

// One array of a kernel between two inaccessible guards. The end of the array, rounded up to 64 bytes,
// lies flush against the trailing guard; the bytes left over on both sides carry canaries.
class Buffer {
 public:
  // `stagger` moves the buffer down by that many pages, so that several large buffers do not all
  // start at the same place of a cache's sets. Throws std::bad_alloc where memory is refused.
  Buffer(std::string name, std::size_t bytes, int stagger);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const std::string& name() const { return name_; }
  unsigned char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  // Writes fault from now on (or no longer).
  void protect(bool read_only);
  // Fills the array with a repeated pattern of `width` bytes.
  void fill(std::uint64_t pattern, int width);
  // Bytes from the nearest end of the array to the nearest damaged canary: negative before the array,
  // positive (1 = the first byte behind it) after it, 0 where all are whole.
  std::ptrdiff_t damage() const;

 private:
  std::string name_;
  std::size_t bytes_;
  unsigned char* mapping_ = nullptr;  // everything, guards included
  std::size_t mapped_ = 0;
  unsigned char* body_ = nullptr;  // the accessible pages
  unsigned char* end_ = nullptr;   // their end, where the trailing guard begins
  unsigned char* data_ = nullptr;
};

}  // namespace dojo
