// The timing follows measurements of the RTL in its default configuration: docs/snitch.md has the facts and how
// the model compares. One call of `cycle` is one cycle: first the FPU takes an instruction, then the data movers
// move, then the integer core issues; so nothing is seen in the cycle in which it was made.
#include "snitch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>

namespace dojo::snitch {
namespace {

constexpr std::uint32_t kReturn = 0xFFFFFFFC;  // the address that the program returns to
constexpr std::size_t kRing = 16;              // instructions that the sequencer holds
constexpr std::size_t kSpill = 2;              // registers between core and sequencer
constexpr std::size_t kFifo = 4;               // elements of a stream's queue, and requests on their way
constexpr int kStreams = 3;
constexpr int kDims = 4;
constexpr int kStart = 3;                      // cycles from a pointer's write to the first request: datum after 4
constexpr int kLoadFloat = 3, kLoadInteger = 4, kMultiply = 4, kMultiplyEvery = 2, kToInteger = 3;

struct Fault {
  std::string what;
};

enum class Kind {
  kLui, kAuipc, kAddi, kSlli, kSrli, kSrai, kAndi, kAdd, kSub, kOr, kMul, kBranch, kJal, kJalr, kLoad, kStore,
  kConfigure, kStreamsOn, kStreamsOff, kRepeat, kFloat,
};
enum class Op {
  kAdd, kSub, kMul, kMin, kMax, kSign, kSignNot, kSignXor, kMadd, kMsub, kNmsub, kNmadd, kFromInteger, kWiden,
  kNarrow, kToInteger, kEqual, kLoad, kStore,
};

struct Instruction {
  Kind kind;
  Op op = Op::kAdd;
  bool narrow = false;  // f32
  int rd = 0, rs1 = 0, rs2 = 0, rs3 = 0, funct = 0;
  std::int32_t imm = 0;
};

std::int32_t extend(std::uint32_t value, int bits) {
  return static_cast<std::int32_t>(value << (32 - bits)) >> (32 - bits);
}

[[noreturn]] void unknown(std::uint32_t word) {
  char text[64];
  std::snprintf(text, sizeof text, "The model does not know the instruction 0x%08x.", word);
  throw Fault{text};
}

Instruction decode(std::uint32_t w) {
  const int rd = w >> 7 & 31, f3 = w >> 12 & 7, rs1 = w >> 15 & 31, rs2 = w >> 20 & 31, f7 = w >> 25;
  Instruction i{Kind::kAddi};
  i.rd = rd, i.rs1 = rs1, i.rs2 = rs2, i.rs3 = w >> 27, i.funct = f3, i.imm = extend(w >> 20, 12);
  const std::int32_t stored = extend((w >> 25 << 5) | rd, 12);
  switch (w & 0x7F) {
    case 0x37: i.kind = Kind::kLui, i.imm = static_cast<std::int32_t>(w & 0xFFFFF000); return i;
    case 0x17: i.kind = Kind::kAuipc, i.imm = static_cast<std::int32_t>(w & 0xFFFFF000); return i;
    case 0x13:
      if (f3 == 0) return i;
      if (f3 == 7) { i.kind = Kind::kAndi; return i; }
      if (f3 == 1 && f7 == 0) { i.kind = Kind::kSlli, i.imm = rs2; return i; }
      if (f3 == 5 && f7 == 0) { i.kind = Kind::kSrli, i.imm = rs2; return i; }
      if (f3 == 5 && f7 == 32) { i.kind = Kind::kSrai, i.imm = rs2; return i; }
      break;
    case 0x33:
      if (f3 == 0 && f7 == 0) { i.kind = Kind::kAdd; return i; }
      if (f3 == 0 && f7 == 32) { i.kind = Kind::kSub; return i; }
      if (f3 == 6 && f7 == 0) { i.kind = Kind::kOr; return i; }
      if (f3 == 0 && f7 == 1) { i.kind = Kind::kMul; return i; }
      break;
    case 0x63:
      if (f3 == 2 || f3 == 3) break;
      i.kind = Kind::kBranch;
      i.imm = extend((w >> 31 << 12) | ((w >> 7 & 1) << 11) | ((w >> 25 & 63) << 5) | ((w >> 8 & 15) << 1), 13);
      return i;
    case 0x6F:
      i.kind = Kind::kJal;
      i.imm = extend((w >> 31 << 20) | ((w >> 12 & 255) << 12) | ((w >> 20 & 1) << 11) | ((w >> 21 & 1023) << 1), 21);
      return i;
    case 0x67: if (f3 == 0) { i.kind = Kind::kJalr; return i; } break;
    case 0x03: if (f3 == 2) { i.kind = Kind::kLoad; return i; } break;
    case 0x23: if (f3 == 2) { i.kind = Kind::kStore, i.imm = stored; return i; } break;
    case 0x2B: if (f3 == 2 && rd == 0) { i.kind = Kind::kConfigure; return i; } break;
    case 0x73:
      if ((w >> 20) != 0x7C0 || rs1 != 1 || rd != 0) break;
      if (f3 == 6) { i.kind = Kind::kStreamsOn; return i; }
      if (f3 == 7) { i.kind = Kind::kStreamsOff; return i; }
      break;
    case 0x0B: if (rd & 1) { i.kind = Kind::kRepeat; return i; } break;
    case 0x07:
    case 0x27:
      if (f3 != 2 && f3 != 3) break;
      i.kind = Kind::kFloat, i.narrow = f3 == 2;
      i.op = (w & 0x7F) == 0x07 ? Op::kLoad : Op::kStore;
      if (i.op == Op::kStore) i.imm = stored;
      return i;
    case 0x43: case 0x47: case 0x4B: case 0x4F: {
      static constexpr Op fused[] = {Op::kMadd, Op::kMsub, Op::kNmsub, Op::kNmadd};
      if ((f7 & 3) > 1) break;
      i.kind = Kind::kFloat, i.op = fused[(w >> 2 & 3)], i.narrow = !(f7 & 1);
      return i;
    }
    case 0x53:
      i.kind = Kind::kFloat, i.narrow = !(f7 & 1);
      switch (f7 >> 2) {
        case 0: i.op = Op::kAdd; break;
        case 1: i.op = Op::kSub; break;
        case 2: i.op = Op::kMul; break;
        case 4:
          if (f3 > 2) unknown(w);
          i.op = f3 == 0 ? Op::kSign : f3 == 1 ? Op::kSignNot : Op::kSignXor;
          break;
        case 5: i.op = f3 == 0 ? Op::kMin : Op::kMax; break;
        case 8: i.op = i.narrow ? Op::kNarrow : Op::kWiden; break;
        case 20: if (f3 != 2) unknown(w); i.op = Op::kEqual; break;
        case 26: i.op = Op::kFromInteger; break;
        case 28: if (!i.narrow || f3) unknown(w); i.op = Op::kToInteger; break;
        default: unknown(w);
      }
      if ((f7 & 3) > 1) break;
      return i;
    default: break;
  }
  unknown(w);
}

bool loads_or_stores(Op op) { return op == Op::kLoad || op == Op::kStore; }
bool fused(Op op) { return op >= Op::kMadd && op <= Op::kNmadd; }
bool two_operands(Op op) { return op <= Op::kSignXor || fused(op) || op == Op::kEqual; }
bool computes(Op op) { return op <= Op::kMax || fused(op); }
bool to_core(Op op) { return op == Op::kToInteger || op == Op::kEqual; }
bool bypasses(Op op) { return op == Op::kFromInteger || to_core(op) || op == Op::kWiden || op == Op::kNarrow; }

int latency(Op op) {
  switch (op) {
    case Op::kLoad: return kLoadFloat;
    case Op::kMin: case Op::kMax: case Op::kSign: case Op::kSignNot: case Op::kSignXor: return 2;
    case Op::kFromInteger: case Op::kWiden: case Op::kNarrow: return 3;
    default: return 4;
  }
}

template <typename T>
T bits_to(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::uint64_t boxed(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return 0xFFFFFFFF00000000u | bits;
}

std::uint64_t boxed(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

template <typename T>
T least(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}

template <typename T>
std::uint64_t arithmetic(const Instruction& i, std::uint64_t abits, std::uint64_t bbits, std::uint64_t cbits) {
  const T a = bits_to<T>(abits), b = bits_to<T>(bbits), c = bits_to<T>(cbits);
  switch (i.op) {
    case Op::kAdd: return boxed(static_cast<T>(a + b));
    case Op::kSub: return boxed(static_cast<T>(a - b));
    case Op::kMul: return boxed(static_cast<T>(a * b));
    case Op::kMin: return boxed(least(a, b));
    case Op::kMax: return boxed(-least(-a, -b));
    case Op::kSign: return boxed(std::copysign(a, b));
    case Op::kSignNot: return boxed(std::copysign(a, std::signbit(b) ? T(1) : T(-1)));
    case Op::kSignXor: return boxed(std::signbit(b) ? -a : a);
    case Op::kMadd: return boxed(std::fma(a, b, c));
    case Op::kMsub: return boxed(std::fma(a, b, -c));
    case Op::kNmsub: return boxed(std::fma(-a, b, c));
    case Op::kNmadd: return boxed(std::fma(-a, b, -c));
    default: return abits;
  }
}

struct Job {
  bool write;
  int dims;
  std::uint32_t pointer;
  std::uint32_t repeat;
  std::array<std::uint32_t, kDims> bounds, strides;
  std::array<std::uint32_t, kDims> at{};
  std::uint64_t from;  // the first cycle in which it may ask
  bool done = false;
};

struct Element {
  std::uint64_t value, when;
  std::uint32_t uses;
};

struct Mover {
  std::uint32_t repeat = 0;
  std::array<std::uint32_t, kDims> bounds{}, strides{};
  std::optional<Job> job, shadow;
  std::deque<Element> queue;  // a read stream's elements, or those that wait to be written
};

struct Entry {
  const Instruction* instruction = nullptr;
  std::uint32_t value = 0, pc = 0;  // address or integer operand that the core computed
  bool streams = false;
  std::uint64_t when = 0;           // the first cycle in which the FPU may take it
  bool loop = false;                // a frep: the loop over the next `instruction->imm + 1` entries
};

// What waits for the FPU, in order.
class Ring {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  std::size_t instructions() const { return instructions_; }  // loops aside
  const Entry& operator[](std::size_t n) const { return entries_[(first_ + n) % kEntries]; }
  void push(const Entry& entry) {
    entries_[(first_ + count_++) % kEntries] = entry;
    instructions_ += !entry.loop;
  }
  void pop() {
    instructions_ -= !entries_[first_].loop;
    first_ = (first_ + 1) % kEntries;
    --count_;
  }

 private:
  static constexpr std::size_t kEntries = 64;  // the sequencer's, as many loops, and those on their way
  std::array<Entry, kEntries> entries_;
  std::size_t first_ = 0, count_ = 0, instructions_ = 0;
};

class Machine {
 public:
  Machine(const std::vector<std::uint32_t>& code, std::uint32_t base, const std::vector<Region>& regions,
          const std::array<std::uint32_t, 8>& arguments)
      : words_(code), base_(base), pc_(base), regions_(regions), region_(&regions_.front()) {
    decoded_.resize(code.size());
    x_[1] = kReturn;
    for (int n = 0; n < 8; ++n) x_[10 + n] = arguments[n];
  }

  Result run(std::uint64_t limit) {
    try {
      while (!finished()) {
        if (now_ >= limit) throw Fault{"It did not return within " + std::to_string(limit) + " cycles."};
        core_wakes_ = now_;
        const Why why = fpu();
        bool moving = false;
        for (int n = 0; n < kStreams; ++n) {
          if (movers_[n].job) moving = true, move(n);
        }
        if (!returned_) core();
        ++now_;
        port_taken_ = false;
        // Where both only wait for a cycle that is known, nothing happens before the first of these.
        if (why == Why::kLatency && !moving && !returned_) {
          const std::uint64_t until = std::min({float_wakes_, core_wakes_, limit});
          if (until > now_) result_.latency += until - now_, now_ = until;
        }
      }
      for (int n = 0; n < kStreams; ++n) {
        if (movers_[n].job || !movers_[n].queue.empty()) {
          throw Fault{"Stream ft" + std::to_string(n) + " was not used up when the program returned."};
        }
      }
    } catch (const Fault& fault) {
      result_.fault = fault.what, result_.pc = fault_pc_;
    }
    result_.cycles = now_;
    return result_;
  }

 private:
  bool finished() const {
    if (!returned_ || !ring_.empty()) return false;
    for (const Mover& mover : movers_) {
      if ((mover.job && mover.job->write) || (!mover.queue.empty() && mover.job && mover.job->write)) return false;
    }
    for (const std::uint64_t when : float_ready_) {
      if (when > now_) return false;
    }
    return true;
  }

  // ------------------------------------------------------------------ memory

  std::uint8_t* memory(std::uint32_t address, std::uint32_t size, bool write) {
    const auto within = [&](const Region& region) {
      return address >= region.base && address - region.base + size <= region.size;
    };
    if (!within(*region_)) {
      for (const Region& region : regions_) {
        if (within(region)) region_ = &region;
      }
    }
    if (within(*region_)) {
      if (write && !region_->writable) throw Fault{"It writes to " + region_->name + ", which is only read."};
      return region_->data + (address - region_->base);
    }
    const Region* near = nullptr;
    std::int64_t apart = std::numeric_limits<std::int64_t>::max();
    for (const Region& region : regions_) {
      const std::int64_t before = std::int64_t(region.base) - address;
      const std::int64_t after = std::int64_t(address) - (std::int64_t(region.base) + std::int64_t(region.size)) + 1;
      const std::int64_t distance = before > 0 ? before : after;
      if (distance < apart) apart = distance, near = &region;
    }
    char text[32];
    std::snprintf(text, sizeof text, "0x%08x", address);
    const std::string done = write ? "It writes to " : "It reads from ";
    throw Fault{done + text + ", outside every array" + (near ? " (the nearest is " + near->name + ")." : ".")};
  }

  template <typename T>
  T load(std::uint32_t address) {
    if (address % sizeof(T)) throw Fault{"It reads from an address that is no multiple of " + std::to_string(sizeof(T)) + "."};
    T value;
    std::memcpy(&value, memory(address, sizeof(T), false), sizeof(T));
    return value;
  }

  template <typename T>
  void store(std::uint32_t address, T value) {
    if (address % sizeof(T)) throw Fault{"It writes to an address that is no multiple of " + std::to_string(sizeof(T)) + "."};
    std::memcpy(memory(address, sizeof(T), true), &value, sizeof(T));
  }

  // ------------------------------------------------------------------ streams

  // The pointer moves by the stride of the innermost dimension that is not at its end.
  static void advance(Job& job) {
    for (int d = 0; d < job.dims; ++d) {
      if (job.at[d] < job.bounds[d]) {
        ++job.at[d];
        job.pointer += job.strides[d];
        return;
      }
      job.at[d] = 0;
    }
    job.done = true;
  }

  void move(int number) {
    Mover& mover = movers_[number];
    if (mover.job && now_ >= mover.job->from && !(number == 0 && port_taken_)) {
      Job& job = *mover.job;
      fault_pc_ = 0;
      if (!job.write && mover.queue.size() < kFifo) {
        mover.queue.push_back({load<std::uint64_t>(job.pointer), now_ + 1, job.repeat + 1});
        advance(job);
      } else if (job.write && !mover.queue.empty() && mover.queue.front().when <= now_) {
        store(job.pointer, mover.queue.front().value);
        mover.queue.pop_front();
        advance(job);
      }
    }
    if (mover.job && mover.job->done && (mover.job->write || !mover.shadow || !mover.shadow->write || mover.queue.empty())) {
      mover.job = mover.shadow;
      mover.shadow.reset();
    }
  }

  void configure(std::uint32_t where, std::uint32_t value) {
    const std::uint32_t reg = where >> 5, which = where & 31;
    for (std::uint32_t n = 0; n < kStreams; ++n) {
      if (which != 31 && which != n) continue;
      Mover& mover = movers_[n];
      if (reg == 1) {
        mover.repeat = value & 15;
      } else if (reg >= 2 && reg < 6) {
        mover.bounds[reg - 2] = value;
      } else if (reg >= 6 && reg < 10) {
        mover.strides[reg - 6] = value;
      } else if (reg >= 24 && reg < 32) {
        Job job{reg >= 28, int(reg & 3) + 1, value, mover.repeat, mover.bounds, mover.strides, {}, now_ + kStart};
        (mover.job ? mover.shadow : mover.job) = job;
      } else {
        throw Fault{"There is no stream register " + std::to_string(reg) + "."};
      }
    }
  }

  bool may_configure(std::uint32_t which) const {
    for (std::uint32_t n = 0; n < kStreams; ++n) {
      if ((which == 31 || which == n) && movers_[n].shadow) return false;
    }
    return true;
  }

  // ------------------------------------------------------------------ FPU

  enum class Why { kIssued, kIdle, kLatency, kStarved };

  Why fpu() {
    const Why why = take();
    if (why == Why::kIssued) ++result_.issued;
    if (returned_ && ring_.empty()) return why;
    if (why == Why::kIdle) ++result_.idle;
    if (why == Why::kLatency) ++result_.latency;
    if (why == Why::kStarved) ++result_.starved;
    return why;
  }

  Why take() {
    if (!ring_.empty() && ring_[0].loop && ring_[0].when <= now_ && !loop_) {
      loop_ = ring_[0];
      iteration_ = 0, place_ = 0;
      ring_.pop();
    }
    if (place_ >= ring_.size() || ring_[place_].when > now_ || ring_[place_].loop) return Why::kIdle;
    const Entry& entry = ring_[place_];
    fault_pc_ = entry.pc;
    const Why why = issue(entry);
    if (why != Why::kIssued) return why;
    if (!loop_) {
      ring_.pop();
      return why;
    }
    if (++place_ <= std::size_t(loop_->instruction->imm)) return why;
    place_ = 0;
    if (++iteration_ > loop_->value) {
      for (int n = 0; n <= loop_->instruction->imm; ++n) ring_.pop();
      loop_.reset();
    }
    return why;
  }

  int staggered(int reg, int bit) const {
    if (!loop_ || !(loop_->instruction->rd >> 1 & bit)) return reg;
    return (reg + int(iteration_ % (std::uint32_t(loop_->instruction->funct) + 1))) & 31;
  }

  bool is_stream(const Entry& entry, int reg) const { return entry.streams && reg < kStreams; }

  // Nothing of an instruction takes effect before all of it can.
  Why issue(const Entry& entry) {
    const Instruction& i = *entry.instruction;
    const int rd = staggered(i.rd, 1);
    int sources[3] = {-1, -1, -1};
    if (i.op == Op::kStore) {
      sources[1] = staggered(i.rs2, 4);
    } else if (i.op != Op::kLoad && i.op != Op::kFromInteger) {
      sources[0] = staggered(i.rs1, 2);
      if (two_operands(i.op)) sources[1] = staggered(i.rs2, 4);
      if (fused(i.op)) sources[2] = staggered(i.rs3, 8);
    }
    if (loop_ && (bypasses(i.op))) throw Fault{"A frep repeats a move or a conversion, which it cannot."};
    for (int n = 0; n < 3; ++n) {
      if (sources[n] < 0) continue;
      if (!is_stream(entry, sources[n])) {
        if (float_ready_[sources[n]] > now_) return waiting_for(sources[n]);
        continue;
      }
      for (int m = 0; m < n; ++m) {
        if (sources[m] == sources[n]) throw Fault{"One instruction reads a stream register twice."};
      }
      const Mover& mover = movers_[sources[n]];
      const bool reading = mover.job && !mover.job->write;
      if (mover.queue.empty() && !reading) {
        throw Fault{"It reads ft" + std::to_string(sources[n]) + ", whose stream has ended or not begun."};
      }
      if (mover.job && mover.job->write) throw Fault{"It reads a stream that is written."};
      if (mover.queue.empty() || mover.queue.front().when > now_) return Why::kStarved;
    }
    const bool to_float = i.op != Op::kStore && !to_core(i.op);
    const bool to_stream = to_float && is_stream(entry, rd);
    if (to_stream) {
      Mover& mover = movers_[rd];
      if (!mover.job || !mover.job->write) throw Fault{"It writes ft" + std::to_string(rd) + ", which no stream takes."};
      if (i.op == Op::kLoad) throw Fault{"It loads into a stream register."};
      if (landed(mover) >= kFifo) return Why::kStarved;
    } else if (to_float && float_ready_[rd] > now_) {
      return waiting_for(rd);
    }
    execute(entry, rd, sources, to_float, to_stream);
    return Why::kIssued;
  }

  Why waiting_for(int reg) {
    float_wakes_ = float_ready_[reg];
    return Why::kLatency;
  }

  // Results that wait to be written; those still in the FPU's pipeline take no place.
  std::size_t landed(const Mover& mover) const {
    std::size_t count = 0;
    for (const Element& element : mover.queue) count += element.when <= now_;
    return count;
  }

  std::uint64_t operand(const Entry& entry, int reg) {
    if (reg < 0) return 0;
    if (!is_stream(entry, reg)) return f_[reg];
    Element& element = movers_[reg].queue.front();
    const std::uint64_t value = element.value;
    if (--element.uses == 0) movers_[reg].queue.pop_front();
    return value;
  }

  // One port writes results to the registers; a load gives way to a result.
  std::uint64_t write_back(std::uint64_t when, bool load) {
    const auto taken = [&](std::uint64_t cycle) {
      const std::uint8_t by = port_[cycle % port_.size()].first == cycle ? port_[cycle % port_.size()].second : 0;
      return by != 0;
    };
    while (taken(when)) ++when;
    port_[when % port_.size()] = {when, load ? 1 : 2};
    return when;
  }

  void execute(const Entry& entry, int rd, const int* sources, bool to_float, bool to_stream) {
    const Instruction& i = *entry.instruction;
    const std::uint64_t a = operand(entry, sources[0]), b = operand(entry, sources[1]), c = operand(entry, sources[2]);
    std::uint64_t value = 0;
    if (computes(i.op)) ++result_.computed;
    switch (i.op) {
      case Op::kLoad:
        port_taken_ = true;
        value = i.narrow ? 0xFFFFFFFF00000000u | load<std::uint32_t>(entry.value) : load<std::uint64_t>(entry.value);
        break;
      case Op::kStore:
        port_taken_ = true;
        if (i.narrow) store(entry.value, static_cast<std::uint32_t>(b));
        else store(entry.value, b);
        break;
      case Op::kFromInteger: {
        const auto whole = static_cast<std::int32_t>(entry.value);
        value = i.narrow ? boxed(static_cast<float>(whole)) : boxed(static_cast<double>(whole));
        break;
      }
      case Op::kWiden: value = boxed(static_cast<double>(bits_to<float>(a))); break;
      case Op::kNarrow: value = boxed(static_cast<float>(bits_to<double>(a))); break;
      case Op::kToInteger:
        x_[i.rd] = i.rd ? static_cast<std::uint32_t>(a) : 0;
        x_ready_[i.rd] = now_ + kToInteger;
        break;
      case Op::kEqual:
        x_[i.rd] = i.rd && (i.narrow ? bits_to<float>(a) == bits_to<float>(b) : bits_to<double>(a) == bits_to<double>(b));
        x_ready_[i.rd] = now_ + kToInteger;
        break;
      default: value = i.narrow ? arithmetic<float>(i, a, b, c) : arithmetic<double>(i, a, b, c);
    }
    if (!to_float) return;
    const std::uint64_t when = now_ + latency(i.op);
    if (to_stream) {
      movers_[rd].queue.push_back({value, when, 1});
    } else {
      f_[rd] = value;
      float_ready_[rd] = write_back(when, i.op == Op::kLoad);
    }
  }

  // ------------------------------------------------------------------ integer core

  const Instruction& fetch() {
    const std::uint32_t n = (pc_ - base_) / 4;
    if (pc_ % 4 || pc_ < base_ || n >= words_.size()) throw Fault{"It leaves its own code."};
    if (!decoded_[n]) decoded_[n] = decode(words_[n]);
    return *decoded_[n];
  }

  bool ready(int reg) const { return x_ready_[reg] <= now_; }

  void set(int reg, std::uint32_t value, int after = 1) {
    if (reg == 0) return;
    x_[reg] = value;
    x_ready_[reg] = now_ + after;
  }

  void core() {
    fault_pc_ = pc_;
    const Instruction& i = fetch();
    const bool uses_rs1 = i.kind != Kind::kLui && i.kind != Kind::kAuipc && i.kind != Kind::kJal &&
                          i.kind != Kind::kStreamsOn && i.kind != Kind::kStreamsOff &&
                          (i.kind != Kind::kFloat || loads_or_stores(i.op) || i.op == Op::kFromInteger);
    const bool uses_rs2 = i.kind == Kind::kAdd || i.kind == Kind::kSub || i.kind == Kind::kOr ||
                          i.kind == Kind::kMul || i.kind == Kind::kBranch || i.kind == Kind::kStore;
    const bool to_integer = i.kind != Kind::kFloat && i.kind != Kind::kRepeat && i.kind != Kind::kBranch &&
                            i.kind != Kind::kStore;
    if (uses_rs1) core_wakes_ = std::max(core_wakes_, x_ready_[i.rs1]);
    if (uses_rs2) core_wakes_ = std::max(core_wakes_, x_ready_[i.rs2]);
    if (to_integer) core_wakes_ = std::max(core_wakes_, x_ready_[i.rd]);
    if (core_wakes_ > now_) return;
    const std::uint32_t a = x_[i.rs1], b = x_[i.rs2];
    std::uint32_t next = pc_ + 4;
    switch (i.kind) {
      case Kind::kLui: set(i.rd, i.imm); break;
      case Kind::kAuipc: set(i.rd, pc_ + i.imm); break;
      case Kind::kAddi: set(i.rd, a + i.imm); break;
      case Kind::kAndi: set(i.rd, a & i.imm); break;
      case Kind::kSlli: set(i.rd, a << i.imm); break;
      case Kind::kSrli: set(i.rd, a >> i.imm); break;
      case Kind::kSrai: set(i.rd, static_cast<std::uint32_t>(static_cast<std::int32_t>(a) >> i.imm)); break;
      case Kind::kOr: set(i.rd, a | b); break;
      case Kind::kAdd: set(i.rd, a + b); break;
      case Kind::kSub: set(i.rd, a - b); break;
      case Kind::kMul:
        if (now_ < multiplier_) return;
        multiplier_ = now_ + kMultiplyEvery;
        set(i.rd, a * b, kMultiply);
        break;
      case Kind::kBranch: {
        const auto sa = static_cast<std::int32_t>(a), sb = static_cast<std::int32_t>(b);
        const bool taken = i.funct == 0 ? a == b : i.funct == 1 ? a != b : i.funct == 4 ? sa < sb
                           : i.funct == 5 ? sa >= sb : i.funct == 6 ? a < b : a >= b;
        if (taken) next = pc_ + i.imm;
        break;
      }
      case Kind::kJal: set(i.rd, pc_ + 4), next = pc_ + i.imm; break;
      case Kind::kJalr: next = (a + i.imm) & ~1u, set(i.rd, pc_ + 4); break;
      case Kind::kLoad:
        if (now_ < loading_) return;
        loading_ = now_ + kLoadInteger;
        set(i.rd, load<std::uint32_t>(a + i.imm), kLoadInteger);
        break;
      case Kind::kStore: store(a + i.imm, b); break;
      case Kind::kConfigure: {
        const std::uint32_t where = i.imm & 0xFFF;
        if (!may_configure(where & 31)) return;
        configure(where, a);
        break;
      }
      case Kind::kStreamsOn: streams_ = true; break;
      case Kind::kStreamsOff: streams_ = false; break;
      case Kind::kRepeat: {
        if (i.imm < 0 || i.imm >= int(kRing)) throw Fault{"A frep repeats more instructions than the sequencer holds."};
        if (ring_.size() - ring_.instructions() >= kRing) return;
        ring_.push({&i, a, pc_, false, now_ + 2, true});
        break;
      }
      case Kind::kFloat: {
        if (ring_.instructions() >= kRing + kSpill) {
          core_wakes_ = std::numeric_limits<std::uint64_t>::max();  // the FPU takes one
          return;
        }
        const std::uint32_t value = loads_or_stores(i.op) ? a + i.imm : a;
        if (to_core(i.op) && i.rd) {
          if (!ready(i.rd)) return;
          x_ready_[i.rd] = std::numeric_limits<std::uint64_t>::max();
        }
        ring_.push({&i, value, pc_, streams_, now_ + (bypasses(i.op) ? 1 : 2), false});
        break;
      }
    }
    ++result_.instructions;
    pc_ = next;
    if (pc_ == kReturn) returned_ = true;
  }

  const std::vector<std::uint32_t>& words_;
  std::uint32_t base_, pc_;
  const std::vector<Region>& regions_;
  const Region* region_;  // the one touched last
  std::vector<std::optional<Instruction>> decoded_;
  std::array<std::uint32_t, 32> x_{};
  std::array<std::uint64_t, 32> f_{}, x_ready_{}, float_ready_{};
  std::array<std::pair<std::uint64_t, std::uint8_t>, 64> port_{};  // who writes a result in which cycle
  std::array<Mover, kStreams> movers_;
  Ring ring_;
  std::optional<Entry> loop_;
  std::uint32_t iteration_ = 0;
  std::size_t place_ = 0;
  std::uint64_t now_ = 0, multiplier_ = 0, loading_ = 0;
  std::uint64_t float_wakes_ = 0, core_wakes_ = 0;  // the cycles for which FPU and core wait, as far as these are known
  std::uint32_t fault_pc_ = 0;
  bool streams_ = false, returned_ = false, port_taken_ = false;
  Result result_;
};

}  // namespace

Result run(const std::vector<std::uint32_t>& code, std::uint32_t base, const std::vector<Region>& regions,
           const std::array<std::uint32_t, 8>& arguments, std::uint64_t limit) {
  return Machine(code, base, regions, arguments).run(limit);
}

}  // namespace dojo::snitch
