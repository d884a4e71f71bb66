"""The machine's limits, measured beside the kernels: arithmetic, and memory by a kernel's own access pattern.

A kernel's pattern is the number and the sizes of the arrays that it must read and write, each once, in
phases; where it needs all of an input before it can read it a second time, and that does not fit the
last-level cache, there is a phase more. C code without arithmetic worth the name streams it in several ways
(with and without prefetch and streaming stores); the fastest way is the limit. Buffers rotate among as many
sets as the kernel's do, so that they are as cold.

``python -m dojo_core.bench.limits KERNEL SHAPE SETS FOLDER`` is the process that measures; it speaks the
baselines' protocol, with times of the pattern and of the multiply-adds in each answer.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dojo_core.files import write_text
from dojo_core.measure.compiler import the_compiler
from dojo_core.measure.load import Gauge
from dojo_core.program.tree import DTYPE_BYTES
from dojo_core.system import in_huge_pages

if TYPE_CHECKING:
    from dojo_core.kernels.kernel import Shape  # which the process that measures would start with

NEGLIGIBLE = 0.01  # of a pattern's bytes: smaller arrays are left out, which makes the limit harder to reach
SHORTEST_SAMPLE_NS = 50_000.0
FMA_STEPS = 40_000  # times 12 vectors: about a millisecond

# Bytes of an input that a kernel must have read before it can use any of them again.
_HELD: Mapping[str, Callable[[Shape], int]] = {
    "batchnorm": lambda s: 4 * s[0] * s[2] * s[3],
    "groupnorm": lambda s: 4 * s[2] * s[3] * s[4],
    "layernorm": lambda s: 4 * s[1],
    "rmsnorm": lambda s: 4 * s[1],
    "softmax": lambda s: 4 * s[1],
    "log_softmax": lambda s: 4 * s[1],
    "cross_entropy": lambda s: 4 * s[1],
}


@dataclass(frozen=True)
class Phase:
    """Arrays that are streamed together, by their place among the kernel's and their bytes."""

    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int], ...]

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.reads + self.writes)


@dataclass(frozen=True)
class Pattern:
    """The phases, and what they come to in words."""

    phases: tuple[Phase, ...]

    @property
    def bytes(self) -> int:
        return sum(phase.bytes for phase in self.phases)

    def name(self, sets: int) -> str:
        """What limits are kept by: arrays of the same sizes, read and written in the same phases, in as many
        sets, take the same time whichever kernel they are of."""

        def words(phase: Phase) -> str:
            sizes = (sorted(size for _, size in each) for each in (phase.reads, phase.writes))
            reads, writes = (" ".join(map(str, each)) for each in sizes)
            return f"read {reads or 0} write {writes or 0}"

        return f"stream: {', then '.join(map(words, self.phases))}; {sets} sets"

    def __str__(self) -> str:
        def words(phase: Phase) -> str:
            parts = [f"{len(phase.reads)} read"] if phase.reads else []
            parts += [f"{len(phase.writes)} written"] if phase.writes else []
            return " and ".join(parts)

        return ", then ".join(words(phase) for phase in self.phases)


def pattern(kernel: str, shape: Shape, inputs: list[int], outputs: list[int], last_level: int) -> Pattern:
    """The access pattern of a kernel; ``inputs`` and ``outputs`` are the arrays' bytes in order."""
    total = sum(inputs) + sum(outputs)
    reads = tuple((i, size) for i, size in enumerate(inputs) if size >= NEGLIGIBLE * total)
    writes = tuple(
        (len(inputs) + i, size) for i, size in enumerate(outputs) if size >= NEGLIGIBLE * total
    )  # fmt: skip
    phases = [Phase(reads, writes)]
    held = _HELD[kernel](shape) if kernel in _HELD else 0
    if held > last_level > 0:
        phases.insert(0, Phase(reads, ()))
    return Pattern(tuple(phases))


_PRELUDE = """\
#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_num_threads(void) { return 1; }
static int omp_get_thread_num(void) { return 0; }
#endif
#if defined(__AVX512F__)
#define WIDTH 64
typedef float vec __attribute__((vector_size(64)));
#define STREAM(p, v) __builtin_ia32_movntps512((float *)(p), v)
#elif defined(__AVX__)
#define WIDTH 32
typedef float vec __attribute__((vector_size(32)));
#define STREAM(p, v) __builtin_ia32_movntps256((float *)(p), v)
#else
#define WIDTH 16
typedef float vec __attribute__((vector_size(16)));
#define STREAM(p, v) (*(p) = (v))
#endif
#ifdef __clang__
#undef STREAM
#define STREAM(p, v) __builtin_nontemporal_store(v, p)
#endif
static volatile float sink;

void fma_run(long steps, int threads) {
#pragma omp parallel num_threads(threads)
  {
    volatile float by = 0.999f, and = 1e-3f;
    vec x = by + (vec){0}, y = and + (vec){0}, a[12];
    for (int k = 0; k < 12; k++) a[k] = x * (float)k;
    for (long s = 0; s < steps; s++) {
#pragma GCC unroll 12
      for (int k = 0; k < 12; k++) a[k] = a[k] * x + y;
    }
    vec all = a[0];
    for (int k = 1; k < 12; k++) all += a[k];
    sink = all[0];
  }
}
long fma_lanes(void) { return 12 * WIDTH / 4; }
"""
WAYS = tuple((ahead, streaming) for streaming in (False, True) for ahead in (0, 16, 48))  # vectors ahead


def stream_code(pattern: Pattern) -> str:
    """C that streams a pattern: ``run(way, sets, count, calls, first)``."""
    functions, cases = [], []
    for number, (ahead, streaming) in enumerate(WAYS):
        body = "".join(_phase(phase, ahead, streaming) for phase in pattern.phases)
        functions.append(f"static void way_{number}(char **arrays) {{\n{body}}}\n")
        cases.append(f"    case {number}: way_{number}(sets[(first + c) % count]); break;\n")
    chosen = "".join(cases)
    return (
        _PRELUDE
        + "".join(functions)
        + "void run(int way, char ***sets, long count, long calls, long first) {\n"
        f"  for (long c = 0; c < calls; c++) switch (way) {{\n{chosen}  }}\n}}\n"
    )


def _phase(phase: Phase, ahead: int, streaming: bool) -> str:
    """One phase: equally long arrays in step, others by blocks, so that all proceed together."""
    lengths = sorted({size for _, size in phase.reads + phase.writes}, reverse=True)
    blocks = "T" if len(lengths) == 1 else str(max(64, lengths[0] // (1 << 14)))
    loops = []
    for size in lengths:
        reads = [i for i, each in phase.reads if each == size]
        writes = [i for i, each in phase.writes if each == size]
        lines = [f"const vec *r{i} = (const vec *)arrays[{i}];" for i in reads]
        lines += [f"vec *w{i} = (vec *)arrays[{i}];" for i in writes]
        lines.append(f"long n = {size} / WIDTH, lo = n * b / B, hi = n * (b + 1) / B, i = lo;")
        step = []
        if ahead:  # once a cache line of 64 bytes
            per_line = "if (WIDTH == 64 || i * WIDTH % 64 == 0) "
            fetched = [f"__builtin_prefetch(r{i} + i + {ahead});" for i in reads]
            fetched += [f"__builtin_prefetch(w{i} + i + {ahead}, 1);" for i in writes if not streaming]
            step.append(f"{per_line}{{ {' '.join(fetched)} }}")
        value = " + ".join(f"r{i}[i]" for i in reads) or "a0"
        if writes:
            step.append(f"vec v = {value};")
            step += [f"STREAM(w{i} + i, v);" if streaming else f"w{i}[i] = v;" for i in writes]
            lines.append(f"for (; i < hi; i++) {{ {' '.join(step)} }}")
        else:
            shifted = [value.replace("[i]", f"[i + {k}]") for k in range(4)]
            four = " ".join(f"a{k} += {each};" for k, each in enumerate(shifted))
            lines.append(f"for (; i + 4 <= hi; i += 4) {{ {' '.join(_four_lines(reads, ahead))} {four} }}")
            lines.append(f"for (; i < hi; i++) a0 += {value};")
        loops.append("      { " + "\n        ".join(lines) + " }\n")
    return (
        "#pragma omp parallel\n  {\n    vec a0 = {0}, a1 = a0, a2 = a0, a3 = a0;\n"
        "    long T = omp_get_num_threads(), t = omp_get_thread_num(), B = " + blocks + ";\n"
        "    for (long b = B * t / T; b < B * (t + 1) / T; b++) {\n"
        + "".join(loops)
        + "    }\n    sink = (a0 + a1 + a2 + a3)[0];\n  }\n"
    )


def _four_lines(reads: list[int], ahead: int) -> list[str]:
    return [f"__builtin_prefetch(r{i} + i + {ahead + k});" for i in reads for k in range(4)] if ahead else []


class Machine:
    """The compiled pattern and the buffers that it streams."""

    def __init__(self, code: str, sizes: list[int], sets: int, folder: Path) -> None:
        import mmap

        source, library = folder / "limits.c", folder / "limits.so"
        write_text(source, code)
        compiler = the_compiler()
        flags = [*compiler.flags, "-std=gnu11", "-fPIC", "-shared", "-w"]
        subprocess.run([compiler.path, *flags, str(source), "-o", str(library)], check=True, timeout=120)
        self._library = ctypes.CDLL(str(library))
        self._library.fma_lanes.restype = ctypes.c_long
        self.memory: list[np.ndarray[Any, Any]] = []  # kept alive
        tables = []
        # Values as a kernel's: zeros move faster (reading and writing them took 1.78 ms where these take
        # 2.12, AMD EPYC of family 1Ah), and the limit would be one that no kernel comes near.
        values = np.random.default_rng(0).standard_normal(1 << 20, np.float32)
        for _ in range(sets):
            addresses = []
            for size in sizes:
                # Private: shared memory, mmap's default, gets no huge pages; a kernel's buffers have them.
                length, private = -(-size // 4) * 4 + 8192, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
                memory = mmap.mmap(-1, length, flags=private)
                in_huge_pages(memory)
                view = np.frombuffer(memory, np.float32)
                for begin in range(0, len(view), len(values)):
                    view[begin : begin + len(values)] = values[: len(view) - begin]
                self.memory.append(view)
                addresses.append(view.ctypes.data)
            tables.append((ctypes.c_void_p * len(addresses))(*addresses))
        self._tables = tables
        self._sets = (ctypes.c_void_p * sets)(*(ctypes.addressof(t) for t in tables))
        self._turn = 0
        self._calls = [1] * len(WAYS)
        for way in range(len(WAYS)):
            self._sample(way)
            least = min(self._sample(way) for _ in range(3))
            self._calls[way] = max(1, math.ceil(SHORTEST_SAMPLE_NS / least))
        self.order = sorted(range(len(WAYS)), key=lambda w: min(self._sample(w) for _ in range(5)))

    def _sample(self, way: int) -> float:
        calls, count = self._calls[way], len(self._tables)
        begin = time.perf_counter_ns()
        self._library.run(
            way, self._sets, ctypes.c_long(count), ctypes.c_long(calls), ctypes.c_long(self._turn % count)
        )
        taken = (time.perf_counter_ns() - begin) / calls
        self._turn += calls
        return taken

    def stream(self, count: int) -> list[float]:
        """Nanoseconds of the pattern, so many samples, by the two fastest ways in turn.

        One run each, as every other entry of a round has: the better of two would be luckier.
        """
        return [self._sample(self.order[turn % 2]) for turn in range(count)]

    def flops(self, threads: int) -> float:
        """Floating-point operations a nanosecond, a multiply-add counting two."""
        begin = time.perf_counter_ns()
        self._library.fma_run(ctypes.c_long(FMA_STEPS), threads)
        taken = time.perf_counter_ns() - begin
        return 2.0 * threads * FMA_STEPS * int(self._library.fma_lanes()) / taken


def main() -> None:
    from dojo_core.measure.machine import this_machine

    kernel, shape, sets, folder = sys.argv[1], sys.argv[2], max(1, int(sys.argv[3])), Path(sys.argv[4])
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))

    def sizes(names: list[str]) -> list[int]:
        return [DTYPE_BYTES[job["dtypes"][name]] * math.prod(job["shapes"][name]) for name in names]

    inputs, outputs = sizes(job["inputs"]), sizes(job["outputs"])
    machine = this_machine()
    streamed = pattern(kernel, tuple(map(int, shape.split("x"))), inputs, outputs, machine.last_level_cache)
    threads = int(os.environ.get("OMP_NUM_THREADS", machine.cores)) if the_compiler().openmp else 1
    with tempfile.TemporaryDirectory(prefix="dojo-limits-") as place:
        measured = Machine(stream_code(streamed), inputs + outputs, sets, Path(place))
    measured.flops(1), measured.flops(threads)
    ahead, streaming = WAYS[measured.order[0]]
    way = (f"prefetch {ahead} vectors ahead" if ahead else "no prefetch") + (
        ", streaming stores" if streaming and outputs else ""
    )
    ready = {
        "status": "ok",
        "pattern": str(streamed),
        "bytes": streamed.bytes,
        "threads": threads,
        "way": way,
    }
    print(json.dumps(ready), flush=True)
    gauge = Gauge()
    for line in sys.stdin:
        count = int(line)
        gauge.begin()
        answer = {
            "samples": measured.stream(count),
            "one": [measured.flops(1) for _ in range(count)],
            "all": [measured.flops(threads) for _ in range(count)],
            "load": gauge.share(),
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
