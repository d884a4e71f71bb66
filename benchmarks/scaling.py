"""How the core's speed grows with the program: ``python -m benchmarks.scaling``.

Prints, for every kernel's start position, the ends of the recorded lines, and chains of 10 to 300 operations:
legal moves, milliseconds to list them all (the first time, and the minimum of 20 times on a new program of
the same nodes, as after a move elsewhere), moves applied a second.
"""

from __future__ import annotations

import gc
import time
from dataclasses import replace

from dojo_core import apply, kernels, legal_moves, parse
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.moves.examples import WIDE
from dojo_core.program.tree import Program


def chain(operations: int) -> Program:
    """Nests of five element-wise operations and a row sum, through a few temporaries over and over."""
    shared = 12
    body: list[str] = []
    last = "x"
    for n in range(max(1, operations // 7)):
        now = [f"t{(5 * n + k) % shared}[{{0}},{{1}}]" for k in range(5)]
        body += [
            f"1024 s{n % shared}[{{0}}] = 0",
            f"| 256 s{n % shared}[{{0}}] += {last}[{{0}},{{1}}]",
            f"1024 256 {now[0]} = {last}[{{0}},{{1}}] - s{n % shared}[{{0}}]",
            f"| | {now[1]} = exp({now[0]})",
            f"| | {now[2]} = {now[1]}*0.5",
            f"| | {now[3]} = {now[2]} + {now[0]}",
            f"| | {now[4]} = max({now[3]},0)",
        ]
        last = now[4].split("[")[0]
    body.append(f"1024 256 y[{{0}},{{1}}] = {last}[{{0}},{{1}}]")
    buffers = ["x f32 [1024, 256] heap", "y f32 [1024, 256] heap"]
    for n in range(shared):
        buffers += [f"t{n} f32 [1024, 256] heap", f"s{n} f32 [1024] heap"]
    used = "\n".join(body)
    buffers = [line for line in buffers if f"{line.split()[0]}[" in used]
    return parse("\n".join(["kernel chain", "in x", "out y", *buffers, *body]) + "\n")


def row(title: str, program: Program, policy: str = "reassoc") -> None:
    gc.collect()  # or a row would pay for what the rows before have left
    gc.freeze()
    times = []
    for _ in range(20):
        program = replace(program)
        began = time.perf_counter()
        moves = legal_moves(program, WIDE, policy)
        times.append(time.perf_counter() - began)
    began = time.perf_counter()
    for move in moves:
        apply(program, move, WIDE, policy)
    applied = len(moves) / (time.perf_counter() - began)
    print(
        f"| {title} | {len(program.leaves)} | {len(moves)} | {1e3 * times[0]:.1f} | {1e3 * min(times):.1f} "
        f"| {applied:.0f} |",
        flush=True,
    )


def main() -> None:
    print("| position | operations | legal moves | first listing, ms | again, ms | moves applied a second |")
    print("|---|---|---|---|---|---|")
    for name in kernels.names():
        kernel = kernels.get(name)
        row(f"{name}, start", kernel.program(kernel.shapes[0]))
    for name, line in recorded_lines().items():
        kernel = kernels.get(line.kernel or "")
        game = Game.new(kernel.program(kernel.shape(line.shape)), kernel.name, policy=line.policy)
        line.play(game)
        row(f"{name}, end of its line", game.current.program, line.policy)
    for operations in (10, 30, 100, 300):
        row(f"chain of {operations}", chain(operations))


if __name__ == "__main__":
    main()
