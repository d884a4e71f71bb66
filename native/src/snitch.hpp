// A cycle model of one Snitch core: RV32IMAFD, stream semantic registers (SSR), hardware loops (FREP).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dojo::snitch {

// A piece of memory that the program may touch; everything else is a fault.
struct Region {
  std::string name;
  std::uint32_t base;
  std::uint8_t* data;
  std::size_t size;
  bool writable;
};

struct Result {
  std::uint64_t cycles = 0;        // from the first instruction to the last effect
  std::uint64_t instructions = 0;  // issued by the integer core, those for the FPU included
  std::uint64_t computed = 0;      // additions, products, fused ones, maxima that the FPU issued (repeats too)
  // Cycles in which the FPU issued something, or did not: nothing to do, an operand that is not there yet, a
  // stream without data or room.
  std::uint64_t issued = 0, idle = 0, latency = 0, starved = 0;
  std::string fault;               // empty: it ran to its end
  std::uint32_t pc = 0;            // of the fault
};

// Runs code at `base` with a0 to a7 set, until it returns. `limit`: cycles at most.
Result run(const std::vector<std::uint32_t>& code, std::uint32_t base, const std::vector<Region>& regions,
           const std::array<std::uint32_t, 8>& arguments, std::uint64_t limit);

}  // namespace dojo::snitch
