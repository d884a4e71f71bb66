// Compares a kernel's output with its float64 reference, every element of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace dojo {

struct Verdict {
  std::int64_t wrong = 0;       // elements off by more than their row's tolerance
  std::int64_t unwritten = 0;   // elements that still hold the poison
  std::int64_t first = -1;      // flat index of the first such element, -1 where there is none
  double got = 0, wanted = 0;   // the values there
  double error = 0;             // largest error as a multiple of the tolerance, over accepted elements
};

// The bytes that unwritten elements hold: a NaN that no arithmetic makes, or a pattern for integers.
std::uint64_t poison(const std::string& dtype);
// Bytes of one element. Throws std::invalid_argument for an unknown dtype.
int width(const std::string& dtype);

// `values` has `count` elements; row r = index / columns is allowed an absolute error of tolerance[r]
// (infinity: the row is not judged, though it must be written). NaN must meet NaN, infinity the same.
Verdict compare(const void* values, const std::string& dtype, const double* reference, const double* tolerance,
                std::int64_t count, std::int64_t columns);

// Per row, into `error` and `scale`: the largest absolute error (infinity where values that are not
// finite disagree), and the largest finite magnitude of the reference.
void row_errors(const void* values, const std::string& dtype, const double* reference, std::int64_t count,
                std::int64_t columns, double* error, double* scale);

}  // namespace dojo
