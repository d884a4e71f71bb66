"""How far estimated cycles are to be believed: ``python -m benchmarks.model [--processor NAME] [SET …]``.

A set is ``LINE=SHAPE``, positions along a recorded line from the start on, or ``tiles=SHAPE``, the end of the
line of matmul with tiles of many sizes. Of each program ``targets/cpu/model.py`` tells cycles. On an x86-64
without ``--processor`` the programs are those for this machine up to AVX2, and each is timed too, on one
thread, in turns with all others (in_turns.py). Told are the rank correlation (Spearman) of cycles and of
instructions with the times; that of the times of half of the processes with those of the other half, which is
what a perfect model would come to; and how far the best of the three programs of fewest cycles is from the
best of all. Nothing is told where the machine was busy.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from agents.search.cost_model import rank_correlation
from benchmarks.in_turns import NotTimed, Turns, in_turns
from dojo_core import kernels, parse
from dojo_core.codegen.code import Code
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.measure.compiler import the_compiler
from dojo_core.measure.pool import draw
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate, preamble
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.model import Estimate, estimate
from dojo_core.targets.cpu.processor import (
    KNOWN,
    NAMES,
    X86,
    Processor,
    Toolchain,
    host,
    known,
    llvm,
    vectors_of,
)

TILES = "tiles"
SETS = ("softmax=64x192", "matmul=24x64x128", "rmsnorm=64x512", f"{TILES}=96x128x128")
MOVES = 3  # from one position of a line to the next
ROWS, COLUMNS = (2, 3, 4, 6, 8, 12, 16, 24), (16, 32, 64)
LINE_RANKS, TILE_RANKS, NEAR = 0.93, 0.75, 1.05  # asked: of correlations, and of the best of three


@dataclass(frozen=True)
class Positions:
    """Programs that are to be ranked, by name."""

    title: str
    kernel: str
    start: Program
    policy: str
    programs: dict[str, Program]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS, metavar="SET")
    parser.add_argument("--processor", choices=KNOWN, help="one that this machine is not: nothing is timed")
    parser.add_argument("--core", help="llvm-mca's name of a core, instead of the processor's own")
    parser.add_argument("--every", type=int, default=1, help="one program of so many of a set: a quick try")
    options = parser.parse_args()
    here = options.processor is None
    if here and NAMES.get(platform.machine()) != X86:
        parser.error("cycles are held against times on an x86-64 alone: give a --processor")
    processor = _here() if here else known(options.processor)
    processor = replace(processor, model=options.core or processor.model)
    concluded = True
    for each in options.sets:
        name, _, shape = each.partition("=")
        found = _tiles(shape, processor) if name == TILES else _along(name, shape, processor)
        found = replace(found, programs=dict(list(found.programs.items())[:: options.every]))
        estimates = _estimated(found, processor)
        if here:
            asked = TILE_RANKS if name == TILES else LINE_RANKS
            try:
                concluded &= compared(found.title, estimates, _timed(found, estimates, processor), asked)
            except NotTimed as reason:
                print(f"{found.title}: {reason}")
                concluded = False
    return not concluded


# ---------------------------------------------------------------------------- what is ranked


def _along(name: str, shape: str, processor: Processor) -> Positions:
    """The start, and every third position of a recorded line from its end."""
    line = recorded_lines()[name]
    found = kernels.get(line.kernel or "")
    start = found.program(found.shape(shape))
    game = Game.new(start, found.name, shape, policy=line.policy, limits=limits_of(processor))
    line.play(game)
    path = [position.program for position in game.positions.values()]
    numbers = sorted({0, *range(len(path) - 1, 0, -MOVES)})
    return Positions(f"{name} {shape}", found.name, start, line.policy, {str(n): path[n] for n in numbers})


def _tiles(shape: str, processor: Processor) -> Positions:
    """The end of the line of matmul with tiles of all sizes that it can be played with."""
    found, line = kernels.get("matmul"), recorded_lines()["matmul"]
    start = found.program(found.shape(shape))
    programs = {}
    for rows in ROWS:
        for columns in COLUMNS:
            game = Game.new(start, "matmul", shape, policy=line.policy, limits=limits_of(processor))
            report = line.play(game, {"rows": rows, "columns": columns})
            if all(entry.applies for entry in report.entries):
                programs[f"{rows}x{columns}"] = game.current.program
    return Positions(f"tiles of matmul {shape}", "matmul", start, line.policy, programs)


# ---------------------------------------------------------------------------- cycles and times


def _here() -> Processor:
    """This machine as far as qemu 7 knows it, without AVX-512, and the flags that its kernels have."""
    features = frozenset(f for f in host().features if not f.startswith("avx512"))
    register_bytes, vectors = vectors_of(X86, features)
    compiler = the_compiler()
    chain = Toolchain(
        compiler.path, compiler.clang, (*compiler.flags, "-mno-avx512f"), "x86_64-linux-gnu",
        emulator=("qemu-x86_64", "-cpu", "max"), install="apt-get install qemu-user",
    )  # fmt: skip
    said = subprocess.run([llvm("llvm-mca"), "--version"], capture_output=True, text=True, check=True).stdout
    core = re.search(r"Host CPU: (\S+)", said)
    return replace(
        host(), features=features, register_bytes=register_bytes, vectors=vectors, toolchain=chain,
        model=core[1] if core else None,
    )  # fmt: skip


def _estimated(positions: Positions, processor: Processor) -> dict[str, Estimate]:
    """Of each program with a code of its own, on one thread."""
    found: dict[str, Estimate] = {}
    texts = set()
    for name, program in positions.programs.items():
        code = generate(_on_one_thread(program), positions.policy, processor)
        if code.text not in texts:
            texts.add(code.text)
            told = estimate(program, code, _inputs(code), processor)
            found[name] = told
            waiting = f", {told.waiting:,.0f} of them for caches" if told.waiting else ""
            print(
                f"{positions.title} {name:>5}: {told.cycles:12,.0f} cycles{waiting}, "
                f"{told.instructions:,} instructions",
                flush=True,
            )
    (model,) = {told.model for told in found.values()}
    print(f"{positions.title} on {processor.name}: {len(found)} programs, estimated by {model}", flush=True)
    return found


def _on_one_thread(program: Program) -> Program:
    return parse(re.sub(r":p\b", "", program.text))


def _inputs(code: Code) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {p.name: draw(p.dtype, p.shape, rng, None) for p in code.parameters if p.role == "in"}


def _timed(positions: Positions, names: Iterable[str], processor: Processor) -> Turns:
    """Those of these names. Raises NotTimed."""
    programs = [_on_one_thread(positions.programs[name]) for name in names]
    without = '#pragma GCC target("no-avx512f")\n'
    code = partial(generate, processor=processor)
    return in_turns(positions.start, programs, positions.policy, code, without + preamble(processor))


# ---------------------------------------------------------------------------- what is told


def compared(title: str, estimates: Mapping[str, Estimate], times: Turns, asked: float) -> bool:
    """Prints how cycles rank programs beside times; whether anything could be concluded.

    ``times``: of the programs in the order of ``estimates``. ``asked``: the least rank correlation.
    """
    relative = times.relative
    for name, took in zip(estimates, relative, strict=True):
        print(f"{title} {name:>5}: {took:8.3f} times as long as the fastest")
    print(f"  Others used {times.conditions.load or 0.0:.0%} of the cores: {times.conditions}.")
    if not times.conditions.quiet:
        print("  Nothing is concluded: run this again when the machine does nothing else.")
        return False
    cycles = np.array([each.cycles for each in estimates.values()])
    instructions = np.array([float(each.instructions) for each in estimates.values()])
    by_cycles, by_count = (rank_correlation(each, relative) for each in (cycles, instructions))
    print(f"  Rank correlation: cycles {by_cycles:.2f} (asked: {asked}), instructions {by_count:.2f}.")
    print(f"  Times of half of the processes with those of the other half: {times.repeatability:.2f}.")
    of_three = relative[np.argsort(cycles)[:3]].min()
    print(f"  The best of three of fewest cycles takes {of_three:.2f} times the best (asked: {NEAR}).")
    return True


if __name__ == "__main__":
    sys.exit(main())
