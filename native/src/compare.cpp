#include "compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <stdexcept>

namespace dojo {
namespace {

constexpr std::int64_t kBlock = 1 << 15;  // elements that one thread takes at a time
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One struct per dtype: how an element is stored, its value as a double, and its poison.
template <class Stored, std::uint64_t kPoison>
struct Plain {
  using Bits = Stored;
  static constexpr std::uint64_t poison = kPoison;
  static double value(Bits bits) { return static_cast<double>(bits); }
};
struct F64 : Plain<double, 0x7ff8'dead'beef'5a5aULL> {};
struct F32 : Plain<float, 0x7fc5'5a5aULL> {};
struct BF16 {
  using Bits = std::uint16_t;
  static constexpr std::uint64_t poison = 0x7fda;
  static double value(Bits bits) {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    float single;
    std::memcpy(&single, &wide, sizeof single);
    return single;
  }
};
struct F16 {
  using Bits = std::uint16_t;
  static constexpr std::uint64_t poison = 0x7eda;
  static double value(Bits bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size;
    if (exponent == 31) {
      size = fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : kInfinity;
    } else if (exponent == 0) {
      size = std::ldexp(fraction, -24);
    } else {
      size = std::ldexp(1024 + fraction, exponent - 25);
    }
    return bits >> 15 ? -size : size;
  }
};
// What is only stored, in the lower bits of a byte: a sign, an exponent and a fraction (program/minifloats.py),
// or an integer. From the magnitude kNan on there is none; kInfinite is infinite; 0 stands for neither.
template <int kExponent, int kFraction, int kBias, int kNan = 0, int kInfinite = 0, bool kNegativeZero = true>
struct Mini {
  using Bits = std::uint8_t;
  static constexpr std::uint64_t poison = 0xa5;
  static double value(Bits bits) {
    constexpr int kSign = 1 << (kExponent + kFraction);
    const int magnitude = bits & (kSign - 1);
    const bool negative = (bits & kSign) != 0;
    double size;
    if ((kNan != 0 && magnitude >= kNan) || (!kNegativeZero && negative && magnitude == 0)) {
      size = std::numeric_limits<double>::quiet_NaN();
    } else if (kInfinite != 0 && magnitude == kInfinite) {
      size = kInfinity;
    } else {
      const int exponent = magnitude >> kFraction, fraction = magnitude & ((1 << kFraction) - 1);
      const int whole = exponent != 0 ? fraction + (1 << kFraction) : fraction;
      size = std::ldexp(whole, (exponent != 0 ? exponent : 1) - kBias - kFraction);
    }
    return negative ? -size : size;
  }
};
struct E8M0 {
  using Bits = std::uint8_t;
  static constexpr std::uint64_t poison = 0xa5;
  static double value(Bits bits) {
    return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, bits - 127);
  }
};
template <int kBits, bool kSigned>
struct Few {
  using Bits = std::uint8_t;
  static constexpr std::uint64_t poison = 0xa5;
  static double value(Bits bits) {
    const int lower = bits & ((1 << kBits) - 1);
    return kSigned && lower >> (kBits - 1) != 0 ? lower - (1 << kBits) : lower;
  }
};
struct I64 : Plain<std::int64_t, 0xa5a5'a5a5'5a5a'5a5bULL> {};
struct I32 : Plain<std::int32_t, 0xa5a5'5a5bULL> {};
struct I16 : Plain<std::int16_t, 0xa55bULL> {};
struct I8 : Plain<std::int8_t, 0xa5ULL> {};
struct U64 : Plain<std::uint64_t, 0xa5a5'a5a5'5a5a'5a5bULL> {};
struct U32 : Plain<std::uint32_t, 0xa5a5'5a5bULL> {};
struct U16 : Plain<std::uint16_t, 0xa55bULL> {};
struct U8 : Plain<std::uint8_t, 0xa5ULL> {};

// Calls visitor with the struct of a dtype.
template <class Visitor>
auto with(const std::string& dtype, Visitor visitor) {
  if (dtype == "f32") return visitor(F32{});
  if (dtype == "f64") return visitor(F64{});
  if (dtype == "f16") return visitor(F16{});
  if (dtype == "bf16") return visitor(BF16{});
  if (dtype == "i64") return visitor(I64{});
  if (dtype == "i32") return visitor(I32{});
  if (dtype == "i16") return visitor(I16{});
  if (dtype == "i8") return visitor(I8{});
  if (dtype == "u64") return visitor(U64{});
  if (dtype == "u32") return visitor(U32{});
  if (dtype == "u16") return visitor(U16{});
  if (dtype == "u8" || dtype == "bool") return visitor(U8{});
  if (dtype == "f8e4m3fn") return visitor(Mini<4, 3, 7, 0x7f>{});
  if (dtype == "f8e5m2") return visitor(Mini<5, 2, 15, 0x7d, 0x7c>{});
  if (dtype == "f8e4m3fnuz") return visitor(Mini<4, 3, 8, 0, 0, false>{});
  if (dtype == "f8e5m2fnuz") return visitor(Mini<5, 2, 16, 0, 0, false>{});
  if (dtype == "f8e8m0fnu") return visitor(E8M0{});
  if (dtype == "f6e2m3fn") return visitor(Mini<2, 3, 1>{});
  if (dtype == "f6e3m2fn") return visitor(Mini<3, 2, 3>{});
  if (dtype == "f4e2m1fn") return visitor(Mini<2, 1, 1>{});
  if (dtype == "i4") return visitor(Few<4, true>{});
  if (dtype == "u4") return visitor(Few<4, false>{});
  if (dtype == "i2") return visitor(Few<2, true>{});
  if (dtype == "u2") return visitor(Few<2, false>{});
  throw std::invalid_argument("unknown dtype " + dtype);
}

template <class Type>
bool poisoned(const typename Type::Bits& element) {
  return std::memcmp(&element, &Type::poison, sizeof element) == 0;
}

bool agree(double got, double wanted, double tolerance) {
  if (tolerance == kInfinity || got == wanted) return true;
  if (std::isnan(wanted)) return std::isnan(got);
  // An infinity never passes as a finite value within tolerance, nor the other way round.
  return std::isfinite(wanted) && std::fabs(got - wanted) <= tolerance;
}

// In wider vectors where the processor has them, as most compares are of many elements.
#if defined __x86_64__ && defined __GLIBC__ && !defined __clang__ && !defined __SANITIZE_ADDRESS__
#define DOJO_WIDE __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define DOJO_WIDE
#endif

template <class Type>
DOJO_WIDE void compare_block(const typename Type::Bits* values, const double* reference, const double* tolerance,
                   std::int64_t from, std::int64_t to, std::int64_t columns, Verdict& verdict) {
  while (from < to) {
    const std::int64_t row = from / columns;
    const std::int64_t stop = std::min(to, (row + 1) * columns);
    const double allowed = tolerance[row];
    double worst = 0;
    std::int64_t doubtful = 0;
#pragma omp simd reduction(max : worst) reduction(+ : doubtful)
    for (std::int64_t at = from; at < stop; ++at) {
      const double error = std::fabs(Type::value(values[at]) - reference[at]);
      doubtful += !(error <= allowed);  // a NaN counts as doubtful
      worst = error > worst ? error : worst;
    }
    if (doubtful == 0) {
      if (allowed > 0 && allowed < kInfinity) verdict.error = std::max(verdict.error, worst / allowed);
    } else {
      for (std::int64_t at = from; at < stop; ++at) {
        const double got = Type::value(values[at]);
        const bool unwritten = poisoned<Type>(values[at]) && got != reference[at];
        const bool wrong = !unwritten && !agree(got, reference[at], allowed);
        verdict.unwritten += unwritten;
        verdict.wrong += wrong;
        if ((unwritten || wrong) && (verdict.first < 0 || at < verdict.first)) {
          verdict.first = at;
          verdict.got = got;
          verdict.wanted = reference[at];
        }
      }
    }
    from = stop;
  }
}

}  // namespace

std::uint64_t poison(const std::string& dtype) {
  return with(dtype, [](auto type) { return decltype(type)::poison; });
}

int width(const std::string& dtype) {
  return with(dtype, [](auto type) { return static_cast<int>(sizeof(typename decltype(type)::Bits)); });
}

Verdict compare(const void* values, const std::string& dtype, const double* reference, const double* tolerance,
                std::int64_t count, std::int64_t columns) {
  Verdict total;
  with(dtype, [&](auto type) {
    using Type = decltype(type);
    const auto* elements = static_cast<const typename Type::Bits*>(values);
    const std::int64_t blocks = (count + kBlock - 1) / kBlock;
#pragma omp parallel
    {
      Verdict mine;
#pragma omp for schedule(static) nowait
      for (std::int64_t block = 0; block < blocks; ++block) {
        compare_block<Type>(elements, reference, tolerance, block * kBlock,
                            std::min(count, (block + 1) * kBlock), columns, mine);
      }
#pragma omp critical
      {
        total.wrong += mine.wrong;
        total.unwritten += mine.unwritten;
        total.error = std::max(total.error, mine.error);
        if (mine.first >= 0 && (total.first < 0 || mine.first < total.first)) {
          total.first = mine.first;
          total.got = mine.got;
          total.wanted = mine.wanted;
        }
      }
    }
  });
  return total;
}

void row_errors(const void* values, const std::string& dtype, const double* reference, std::int64_t count,
                std::int64_t columns, double* error, double* scale) {
  with(dtype, [&](auto type) {
    using Type = decltype(type);
    const auto* elements = static_cast<const typename Type::Bits*>(values);
    const std::int64_t rows = count / columns;
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < rows; ++row) {
      double worst = 0, largest = 0;
      for (std::int64_t at = row * columns; at < (row + 1) * columns; ++at) {
        const double got = Type::value(elements[at]), wanted = reference[at];
        if (std::isfinite(wanted)) {
          const double off = std::fabs(got - wanted);
          worst = std::max(worst, std::isfinite(off) ? off : kInfinity);
          largest = std::max(largest, std::fabs(wanted));
        } else if (!agree(got, wanted, 0)) {
          worst = kInfinity;
        }
      }
      error[row] = worst;
      scale[row] = largest;
    }
  });
}

}  // namespace dojo
