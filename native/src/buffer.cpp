#include "buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "faults.hpp"

namespace dojo {
namespace {

constexpr std::size_t kAlignment = 64;           // a cache line, and the widest vector
constexpr std::size_t kHugePage = 2u << 20;      // transparent huge pages
constexpr std::size_t kGuard = 1u << 20;         // catches an index that is off by a row, not by one only
constexpr unsigned char kCanary = 0xC5;

std::size_t page_size() {
  static const std::size_t size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Buffer::Buffer(std::string name, std::size_t bytes, int stagger) : name_(std::move(name)), bytes_(bytes) {
  const std::size_t payload = std::max(round_up(bytes, kAlignment), kAlignment);
  const std::size_t body = round_up(payload, page_size());
  const std::size_t shift = static_cast<std::size_t>(std::max(stagger, 0)) * page_size();
  mapped_ = body + shift + 2 * kGuard + kHugePage;
  void* mapping = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<unsigned char*>(mapping);

  // The accessible part ends on a huge page's boundary, less the stagger.
  const auto lowest_end = reinterpret_cast<std::uintptr_t>(mapping_) + kGuard + body + shift;
  end_ = reinterpret_cast<unsigned char*>(round_up(lowest_end, kHugePage) - shift);
  body_ = end_ - body;
  data_ = end_ - payload;
  if (mprotect(body_, body, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping_, mapped_);
    throw std::bad_alloc();
  }
#ifdef MADV_HUGEPAGE
  madvise(body_, body, MADV_HUGEPAGE);  // advice: a kernel without huge pages may refuse it
#endif
  std::memset(body_, kCanary, body);    // touches every page
  std::memset(data_, 0, bytes_);
  watch(this, name_.c_str(), mapping_, mapping_ + mapped_, data_, data_ + bytes_);
}

Buffer::~Buffer() {
  unwatch(this);
  munmap(mapping_, mapped_);
}

void Buffer::protect(bool read_only) {
  mprotect(body_, static_cast<std::size_t>(end_ - body_), read_only ? PROT_READ : PROT_READ | PROT_WRITE);
}

void Buffer::fill(std::uint64_t pattern, int width) {
  for (std::size_t at = 0; at < std::min<std::size_t>(bytes_, page_size()); at += width) {
    std::memcpy(data_ + at, &pattern, std::min<std::size_t>(width, bytes_ - at));
  }
  for (std::size_t at = page_size(); at < bytes_; at += page_size()) {
    std::memcpy(data_ + at, data_, std::min(page_size(), bytes_ - at));
  }
}

std::ptrdiff_t Buffer::damage() const {
  for (const unsigned char* at = data_ + bytes_; at < end_; ++at) {
    if (*at != kCanary) return at - (data_ + bytes_) + 1;
  }
  for (const unsigned char* at = data_; at > body_; --at) {
    if (at[-1] != kCanary) return at - 1 - data_;
  }
  return 0;
}

}  // namespace dojo
