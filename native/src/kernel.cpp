#include "kernel.hpp"

#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace dojo {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

rusage usage() {
  rusage now{};
  getrusage(RUSAGE_SELF, &now);  // all threads: the kernel's threads count too
  return now;
}

// The compiler may not know what becomes of a value, which stays in its register where that can be said.
inline void pass(double& value) {
#if defined __x86_64__
  asm volatile("" : "+x"(value));
#elif defined __aarch64__
  asm volatile("" : "+w"(value));
#else
  asm volatile("" : "+m"(value));
#endif
}

}  // namespace

Kernel::Kernel(const std::string& path, const std::string& symbol) {
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw std::runtime_error(dlerror());
  function_ = reinterpret_cast<Function>(dlsym(library_, symbol.c_str()));
  if (function_ == nullptr) {
    const std::string message = dlerror();
    dlclose(library_);
    throw std::runtime_error(message);
  }
}

Kernel::~Kernel() { dlclose(library_); }

std::vector<Sample> Kernel::time(const std::vector<std::vector<void*>>& sets, void* workspace, int samples,
                                 int repeats, double cutoff_ns, int patience, double budget_ns,
                                 std::size_t first) const {
  std::vector<Sample> taken;
  std::size_t next = first;
  double best = 0, spent = 0;
  while (static_cast<int>(taken.size()) < samples) {
    const rusage before = usage();
    const Clock::time_point start = Clock::now();
    for (int call = 0; call < repeats; ++call) function_(sets[next++ % sets.size()].data(), workspace);
    const double elapsed = since(start);
    const rusage after = usage();
    const double each = elapsed / repeats;
    taken.push_back({each, after.ru_nivcsw - before.ru_nivcsw, after.ru_minflt - before.ru_minflt});
    best = taken.size() == 1 ? each : std::min(best, each);
    spent += elapsed;
    if (cutoff_ns > 0 && static_cast<int>(taken.size()) >= patience && best > cutoff_ns) break;
    if (budget_ns > 0 && spent >= budget_ns) break;
  }
  return taken;
}

double calibrate() {
  constexpr int kSteps = 400'000;
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const Clock::time_point start = Clock::now();
    double value = 1.0;
    for (int step = 0; step < kSteps; ++step) {
      value = value * 0.999999 + 1e-6;
      pass(value);  // a chain of dependent operations that no compiler shortens
    }
    best = std::min(best, since(start) / 1e6);
  }
  return best;
}

}  // namespace dojo
