"""What this machine does at its best, measured beside a program: cycles, loads and stores, bytes from each
cache and from memory, and what a branch costs that was not foretold.

It is C of the form that a kernel has, so that it takes turns with the program in the measuring process and
both run at the same clock. Its workspace is what it streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dojo_core.codegen.code import Code
from dojo_core.targets.cpu.processor import SHARED_BYTES_OF_A_CORE, Processor
from dojo_core.targets.cpu.profile.timers import ticks_macro

_ADDS = 1 << 14
_BRANCHES = 1 << 13
_NAMES = (
    "all", "adds", "random", "even", "loads", "stores", "words", "word_stores",
    "second_in", "second_out", "last_in", "last_out", "memory_in", "memory_out",
    "last_in_all", "last_out_all", "memory_in_all", "memory_out_all",
)  # fmt: skip
COUNTERS, NUMBERS = "dojo_rates", 2 * len(_NAMES)

# {numbers}, {ticks}, {width}, {first} … {memory} (bytes), {threads} are put in.
_C = """\
void kernel_rates(void *const *arrays, void *workspace) {
    {ticks}
#ifdef _OPENMP
    extern int omp_get_thread_num(void);
#define DOJO_THREAD omp_get_thread_num()
#else
#define DOJO_THREAD 0
#endif
#define DOJO_OPAQUE(value) __asm__ volatile("" : "+r"(value))
#define DOJO_BEGIN(number) { unsigned long long begun = DOJO_TICKS();
#define DOJO_END(number, amount) dojo_rates[2 * (number)] += DOJO_TICKS() - begun; \\
    dojo_rates[2 * (number) + 1] += (amount); }
/* Reads, or writes, so many bytes again and again, until it were so many in all; both are powers of two. */
#define DOJO_READ(place, bytes, all) { const dojo_wide *whole = (const dojo_wide *)(place); \\
    dojo_wide sum[8] = {{0}}; \\
    for (unsigned long i = 0; i < (all) / sizeof(dojo_wide); i += 8) { \\
        const dojo_wide *at = whole + (i & ((bytes) / sizeof(dojo_wide) - 1)); \\
        sum[0] += at[0]; sum[1] += at[1]; sum[2] += at[2]; sum[3] += at[3]; \\
        sum[4] += at[4]; sum[5] += at[5]; sum[6] += at[6]; sum[7] += at[7]; } \\
    for (int k = 0; k < 8; ++k) { volatile float kept = sum[k][0]; (void)kept; } }
#define DOJO_WRITE(place, bytes, all) { dojo_wide *whole = (dojo_wide *)(place); dojo_wide one = {0}; \\
    for (unsigned long i = 0; i < (all) / sizeof(dojo_wide); i += 8) { \\
        dojo_wide *at = whole + (i & ((bytes) / sizeof(dojo_wide) - 1)); \\
        at[0] = one; at[1] = one; at[2] = one; at[3] = one; \\
        at[4] = one; at[5] = one; at[6] = one; at[7] = one; \\
        __asm__ volatile("" : : : "memory"); } }
/* What is to be in a cache has been read, or written, once before. */
#define DOJO_STREAM(number, bytes, cached) \\
    if (cached) DOJO_READ(workspace, bytes, bytes) \\
    DOJO_BEGIN(number) DOJO_READ(workspace, bytes, bytes) DOJO_END(number, bytes) \\
    if (cached) DOJO_WRITE(workspace, bytes, bytes) \\
    DOJO_BEGIN(number + 1) DOJO_WRITE(workspace, bytes, bytes) DOJO_END(number + 1, 2 * (bytes))
    typedef float dojo_wide __attribute__((vector_size({width})));
    extern unsigned long long dojo_rates[{numbers}];
    (void)arrays;
    unsigned long long from_begin = DOJO_TICKS();
    unsigned long x = 1, y = 3;
    DOJO_OPAQUE(y);
    DOJO_BEGIN(1)
    for (int i = 0; i < {adds} / 16; ++i) {
#pragma GCC unroll 16
        for (int k = 0; k < 16; ++k) { x += y; DOJO_OPAQUE(x); }
    }
    DOJO_END(1, {adds})
    for (int even = 0; even < 2; ++even) {
        unsigned long mask = even ? 0 : 1ul << 40, met = 0;
        DOJO_OPAQUE(mask);
        DOJO_BEGIN(2 + even)
        for (int i = 0; i < {branches}; ++i) {
            x ^= x << 13; x ^= x >> 7; x ^= x << 17;
            if (x & mask) { ++met; __asm__ volatile("" : "+r"(met)); }
        }
        DOJO_END(2 + even, {branches})
    }
    DOJO_READ(workspace, {first}, {first})
    DOJO_BEGIN(4) DOJO_READ(workspace, {first}, 64 * {first}) DOJO_END(4, 64ul * {first})
    DOJO_BEGIN(5) DOJO_WRITE(workspace, {first}, 64 * {first}) DOJO_END(5, 64ul * {first})
    DOJO_BEGIN(6)
    for (int round = 0; round < 64; ++round) {
#pragma GCC unroll 16
        for (int i = 0; i < 256; ++i) {
            unsigned long word = ((volatile unsigned long *)workspace)[i];
            __asm__ volatile("" : : "r"(word));
        }
    }
    DOJO_END(6, 64 * 256)
    DOJO_BEGIN(7)
    for (int round = 0; round < 64; ++round) {
#pragma GCC unroll 16
        for (int i = 0; i < 256; ++i) ((volatile unsigned long *)workspace)[i] = x;
    }
    DOJO_END(7, 64 * 256)
    DOJO_STREAM(8, {second}, 1)
    DOJO_STREAM(10, {last}, 1)
    DOJO_STREAM(12, {memory}, 0)
#pragma omp parallel num_threads({threads})
    {
        char *own = (char *)workspace + DOJO_THREAD * {memory_each};
        int first = DOJO_THREAD == 0;
#define DOJO_TOGETHER(number, bytes, how, moved, cached) { if (cached) how(own, bytes, bytes) \\
        __asm__ volatile("" : : : "memory"); \\
        DOJO_BARRIER unsigned long long begun = DOJO_TICKS(); how(own, bytes, bytes) DOJO_BARRIER \\
        if (first) { dojo_rates[2 * (number)] += DOJO_TICKS() - begun; \\
            dojo_rates[2 * (number) + 1] += (moved) * (bytes); } }
#define DOJO_BARRIER _Pragma("omp barrier")
        DOJO_TOGETHER(14, {last_each}, DOJO_READ, 1ul, 1)
        DOJO_TOGETHER(15, {last_each}, DOJO_WRITE, 2ul, 1)
        DOJO_TOGETHER(16, {memory_each}, DOJO_READ, 1ul, 0)
        DOJO_TOGETHER(17, {memory_each}, DOJO_WRITE, 2ul, 0)
    }
    dojo_rates[0] += DOJO_TICKS() - from_begin;
    dojo_rates[1] += 1;
}
unsigned long long dojo_rates[{numbers}];
"""


def capacities(processor: Processor) -> tuple[int, int, int]:
    """Bytes of the caches of which one core may fill so much, the first one first; 0 for one that is not
    there."""
    first, second, last = processor.caches
    return first or 32 << 10, second, min(last, SHARED_BYTES_OF_A_CORE)


def rates_code(processor: Processor, threads: int) -> Code:
    """The C, behind no preamble of its own; its ``COUNTERS`` hold ``NUMBERS`` numbers."""
    first, second, last = capacities(processor)
    memory = 4 * max(SHARED_BYTES_OF_A_CORE, last)

    def even(size: int) -> int:
        """The power of two that is no larger."""
        return 1 << (max(size, 8 * processor.vectors[0][0]).bit_length() - 1)

    put = {
        "ticks": ticks_macro(processor.instruction_set),
        "numbers": NUMBERS,
        "width": processor.vectors[0][0],
        "adds": _ADDS,
        "branches": _BRANCHES,
        "first": even(first // 2),
        "second": even((second or 2 * first) // 2),
        "last": even((last or 2 * (second or first)) // 2),
        "last_each": even((last or 2 * (second or first)) // 2 // threads),
        "memory": memory,
        "memory_each": even(memory // threads),
        "threads": threads,
    }
    text = _C
    for name, value in put.items():
        text = text.replace("{" + name + "}", str(value))
    return Code(text, "kernel_rates", (), (), memory, 0.0)


@dataclass(frozen=True)
class Level:
    """Seconds of a byte that comes from a cache or from memory, and of one that is fetched and written back:
    to one thread, and to each of all."""

    into: float
    back: float
    into_all: float
    back_all: float

    def seconds(self, into: float, out: float, together: bool) -> float:
        """Of so many bytes in and out."""
        read, back = (self.into_all, self.back_all) if together else (self.into, self.back)
        return max(into - out, 0.0) * read + 2 * min(into, out) * back + max(out - into, 0.0) * back


@dataclass(frozen=True)
class Rates:
    """Seconds of one tick of the clock, of a core's cycle, of a byte loaded from the first cache and stored
    to it by the widest vectors, of a load and a store of a word, of a branch that was not foretold; and of a
    byte from the second cache, the last one, and memory."""

    tick: float
    cycle: float
    load: float
    store: float
    word: float
    word_store: float
    branch: float
    second: Level
    last: Level
    memory: Level


def rates(samples: Sequence[tuple[float, Sequence[float]]]) -> Rates:
    """By the best of samples, each the seconds of a run and its numbers."""
    each: dict[str, float] = {}
    tick = min(seconds / numbers[0] for seconds, numbers in samples)
    for k, name in enumerate(_NAMES):
        each[name] = tick * min(numbers[2 * k] / numbers[2 * k + 1] for _, numbers in samples)

    def level(name: str, all_: str = "_all") -> Level:
        return Level(
            each[f"{name}_in"], each[f"{name}_out"], each[f"{name}_in{all_}"], each[f"{name}_out{all_}"]
        )

    return Rates(
        tick=tick,
        cycle=each["adds"],
        load=each["loads"],
        store=each["stores"],
        word=each["words"],
        word_store=each["word_stores"],
        branch=2 * max(each["random"] - each["even"], 0.0),
        second=level("second", ""),
        last=level("last"),
        memory=level("memory"),
    )
