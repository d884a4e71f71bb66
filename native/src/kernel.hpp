// A generated kernel, loaded from a shared object, and its timing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dojo {

struct Sample {
  double nanoseconds;     // of one call
  long switches;          // involuntary context switches of the process during the sample
  long faults;            // minor page faults during the sample
};

class Kernel {
 public:
  // Throws std::runtime_error with the loader's message.
  Kernel(const std::string& path, const std::string& symbol);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Takes up to `samples` samples of `repeats` calls each, the calls rotating over `sets` of arrays
  // (from set `first` on). Stops early when the best of at least `patience` samples is above
  // `cutoff_ns`, or when `budget_ns` have been spent; 0 turns either off.
  std::vector<Sample> time(const std::vector<std::vector<void*>>& sets, void* workspace, int samples,
                           int repeats, double cutoff_ns, int patience, double budget_ns,
                           std::size_t first) const;

 private:
  using Function = void (*)(void* const*, void*);
  void* library_;
  Function function_;
};

// Milliseconds of a fixed piece of arithmetic on one core: what it takes more than at its best shows
// the machine's mode (frequency, neighbours).
double calibrate();

}  // namespace dojo
