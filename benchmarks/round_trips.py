"""What a loop takes whose sums go round by way of memory: ``python -m benchmarks.round_trips``.

Each iteration loads a vector of 32 bytes, adds a product to it, and stores it again, for so many places; so
many sums beside them stay in registers. llvm-mca knows nothing of stores that later loads read:
``dojo_core/targets/cpu/cores.py`` has these figures of the cores that it knows. Cycles are counted by integer
multiplications that wait for each other, three cycles each on every x86 since 2008: the least time of many
trials, over the least of these. For an x86-64 with AVX2 and FMA that does nothing else meanwhile.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from dojo_core.measure.compiler import the_compiler

IN_MEMORY, IN_REGISTERS = (1, 2, 4, 8, 11, 14, 16, 20, 24, 32, 48, 96), (0, 8, 12)
ITERATIONS, TRIALS, MULTIPLICATIONS = 3000, 200, 4

HEAD = """#include <stdio.h>
#include <time.h>
static char cells[4096] __attribute__((aligned(64)));
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9*t.tv_nsec;
}
static void known(long n) { __asm__ volatile("1:\\n" KNOWN "dec %0\\njnz 1b" : "+r"(n) : : "rax", "cc"); }
"""
MULTIPLICATION = r"imul $3, %%rax, %%rax\n"
CLOBBERED = ", ".join(f'"xmm{n}"' for n in range(16))


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "rounds.c", Path(folder) / "rounds"
        source.write_text(_source())
        subprocess.run([the_compiler().path, "-O1", "-mavx2", "-mfma", source, "-o", program], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    cycles = dict(zip(_cases(), map(float, output.split()), strict=True))
    print("| sums in memory | " + " | ".join(f"{m} in registers" for m in IN_REGISTERS) + " |")
    print("|---:|" + "---:|" * len(IN_REGISTERS))
    for n in IN_MEMORY:
        print(f"| {n} | " + " | ".join(f"{cycles[n, m]:.1f}" for m in IN_REGISTERS) + " |")


def _cases() -> list[tuple[int, int]]:
    return [(n, m) for n in IN_MEMORY for m in IN_REGISTERS]


def _source() -> str:
    known = f'#define KNOWN "{MULTIPLICATIONS * MULTIPLICATION}"'
    functions = [_function(n, m) for n, m in _cases()]
    calls = [
        f"""{{ double least = 1, shortest = 1;
for (int trial = 0; trial < {TRIALS}; ++trial) {{
    double a = now(); known({ITERATIONS}); double b = now(); rounds_{n}_{m}({ITERATIONS}); double c = now();
    if (b - a < shortest) shortest = b - a;
    if (c - b < least) least = c - b;
}}
printf("%f\\n", least / shortest * {3 * MULTIPLICATIONS}); }}"""
        for n, m in _cases()
    ]
    return "\n".join([known, HEAD, *functions, "int main(void) {", *calls, "return 0; }", ""])


def _function(in_memory: int, in_registers: int) -> str:
    """A loop over so many sums; those in registers stand among the others."""
    lines: list[str] = []
    left = list(range(in_registers))
    step = max(1, in_memory // in_registers) if in_registers else 0
    for n in range(in_memory):
        sum_ = f"%%ymm{2 + n % 2}"
        lines += [f"vmovaps {32 * n}(%1), {sum_}", f"vfmadd231ps %%ymm0, %%ymm1, {sum_}"]
        lines.append(f"vmovaps {sum_}, {32 * n}(%1)")
        if step and n % step == 0 and left:
            lines.append(f"vfmadd231ps %%ymm0, %%ymm1, %%ymm{4 + left.pop()}")
    lines += [f"vfmadd231ps %%ymm0, %%ymm1, %%ymm{4 + n}" for n in left]
    body = "".join(f"{line}\\n" for line in lines)
    return (
        f"static void rounds_{in_memory}_{in_registers}(long n) {{\n"
        f'__asm__ volatile(".p2align 6\\n1:\\n{body}dec %0\\njnz 1b"\n'
        f'    : "+r"(n) : "r"(cells) : "memory", "cc", {CLOBBERED}); }}'
    )


if __name__ == "__main__":
    main()
