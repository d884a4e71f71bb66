"""Timers in generated C: around the whole, and around nodes of the program.

A timer is two readings of the processor's own clock, which ticks at one rate whatever the core's does. Each
thread adds to numbers of its own. What a timer costs is measured by a loop of empty ones, before the whole
begins, and taken off by whoever reads them (``Reading``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dojo_core.codegen.code import Code
from dojo_core.program.tree import Path, Program
from dojo_core.targets.cpu.processor import ARM, X86

_EMPTY = 64  # timers in the loop that measures their cost
# The first numbers: the whole, an empty timer as it sees itself, and as those around it see it.
WHOLE, EMPTY, AROUND, FIRST = 0, 1, 2, 3
_LINE = 8  # numbers in a line of the cache: threads share none

_READ = {
    X86: 'unsigned low, high; __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory"); '
    "((unsigned long long)high << 32) | low;",
    ARM: "unsigned long long now; "
    '__asm__ volatile("isb\\n\\tmrs %0, cntvct_el0" : "=r"(now) : : "memory"); now;',
}


# The bits of x86's control of floating point that take subnormal results, and operands, as zero.
_SUBNORMALS_OFF = "unsigned control = __builtin_ia32_stmxcsr(); __builtin_ia32_ldmxcsr(control | 0x8040);"
_SUBNORMALS_ON = "__builtin_ia32_ldmxcsr(control);"


def readable(instruction_set: str) -> bool:
    """Is there a clock that a program may read in a few nanoseconds?"""
    return instruction_set in _READ


def ticks_macro(instruction_set: str) -> str:
    """A line of C: ``DOJO_TICKS()`` reads the clock."""
    return f"#define DOJO_TICKS() (__extension__({{ {_READ[instruction_set]} }}))"


@dataclass(frozen=True)
class Timed:
    """Code with timers; ``numbers`` is how many its array ``counters`` holds: for each thread a row of
    ``width``, of each timer the ticks and how often it ran."""

    code: Code
    counters: str
    paths: tuple[Path, ...]
    width: int
    threads: int

    @property
    def numbers(self) -> int:
        return self.width * self.threads


def parallel_above(program: Program, path: Path) -> bool:
    """Do several threads come to a node?"""
    return any(scope.mark == "p" for scope in program.scopes_above(path))


def with_timers(
    code: Code,
    program: Program,
    paths: Sequence[Path],
    threads: int,
    instruction_set: str,
    without_subnormals: bool = False,
) -> Timed:
    """The code with a timer around the whole and one around each of these nodes, none of which lies in
    another. ``without_subnormals``: the thread that calls it takes these as zero meanwhile (x86 alone)."""
    inside = [parallel_above(program, path) for path in paths]
    rows = threads if any(inside) else 1
    width = -(-2 * (FIRST + len(paths)) // _LINE) * _LINE
    name = (
        "dojo_counters_" + hashlib.sha256(f"{code.text}{paths}{without_subnormals}".encode()).hexdigest()[:16]
    )

    def begin(number: int) -> str:
        return f"{{ unsigned long long begun_{number} = DOJO_TICKS();"

    def end(number: int, row: str) -> str:
        at = f"{name}[{row}{2 * number}"
        return f"{at}] += DOJO_TICKS() - begun_{number}; ++{at} + 1]; }}"

    row_of_thread = f"{width} * omp_get_thread_num() + "
    opening = {number: FIRST + number for number in range(len(paths))}
    lines = code.text.splitlines()
    first = next(k for k, path in enumerate(code.nodes) if path is not None)
    last = len(lines) - 1  # the brace that ends the function
    setup = [
        ticks_macro(instruction_set),
        f"extern unsigned long long {name}[{width * rows}];",
        *(["extern int omp_get_thread_num(void);"] if any(inside) else []),
        *([_SUBNORMALS_OFF] if without_subnormals else []),
        begin(AROUND),
        f"for (int empty = 0; empty < {_EMPTY}; ++empty) {begin(EMPTY)} {end(EMPTY, '')}",
        end(AROUND, ""),
        begin(WHOLE),
    ]
    text: list[str] = []
    for k, line in enumerate(lines):
        if k == first:
            text += setup
        begins, ends = [], []
        for number, path in enumerate(paths):
            if _below(code.nodes[k], path):
                if k == 0 or not _below(code.nodes[k - 1], path):
                    begins.append(begin(opening[number]))
                if not _below(code.nodes[k + 1], path):
                    ends.append(end(opening[number], row_of_thread if inside[number] else ""))
        if k == last:
            text += [end(WHOLE, ""), *([_SUBNORMALS_ON] if without_subnormals else []), "#undef DOJO_TICKS"]
        text += [*begins, line, *reversed(ends)]
    text += [f"unsigned long long {name}[{width * rows}] __attribute__((aligned(64)));", ""]
    return Timed(replace(code, text="\n".join(text), nodes=()), name, tuple(paths), width, rows)


def _below(node: Path | None, path: Path) -> bool:
    return node is not None and node[: len(path)] == path


@dataclass(frozen=True)
class Reading:
    """Ticks of one run, the timers' own cost taken off; of parts that several threads ran, the mean of these
    threads'. ``rounds``: how often each part ran, on all threads together."""

    whole: float
    parts: Mapping[Path, float]
    rounds: Mapping[Path, float]


def read(timed: Timed, numbers: Sequence[float], runs: int) -> Reading:
    """What numbers say that grew during so many runs."""
    rows = [numbers[k * timed.width : (k + 1) * timed.width] for k in range(timed.threads)]
    own = rows[0][2 * EMPTY] / max(rows[0][2 * EMPTY + 1], 1)  # as a timer sees itself
    cost = rows[0][2 * AROUND] / max(_EMPTY * rows[0][2 * AROUND + 1], 1)
    parts, rounds, inner = {}, {}, 0.0
    for number, path in enumerate(timed.paths):
        ticks, count, threads = 0.0, 0.0, 0
        for row in rows:
            at = 2 * (FIRST + number)
            ticks, count, threads = ticks + row[at], count + row[at + 1], threads + bool(row[at + 1])
        # What lies within a part's timers and is timed as well would be counted with its timers' cost.
        parts[path] = max(ticks - own * count, 0.0) / max(threads, 1) / runs
        rounds[path] = count / runs
        inner += cost * count / max(threads, 1)
    whole = (rows[0][2 * WHOLE] - own * rows[0][2 * WHOLE + 1] - inner) / runs
    # Of a few ticks, what is taken off may leave less than the parts have.
    return Reading(max(whole, sum(parts.values())), parts, rounds)
