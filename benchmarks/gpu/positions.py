"""The paper's kernels as programs for a GPU."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from agents.passes import play_pass
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import line_for, recorded_lines
from dojo_core.moves import legal_moves

TABLE = (
    "add", "mul", "relu", "relu_ffn", "reducemean", "softmax", "layernorm", "rmsnorm", "batchnorm",
    "matmul", "bmm", "conv", "swiglu",
)  # fmt: skip
# Some rows or tiles of each: what one block does is the same.
SMALL = {
    "add": "2x2048", "mul": "2x512", "relu": "2x2048", "reducemean": "2x4096", "softmax": "16x512",
    "layernorm": "8x1024", "rmsnorm": "2x4096", "matmul": "128x64x128", "relu_ffn": "2x3x16x12",
    "batchnorm": "2x3x512x256", "bmm": "2x128x64x128", "conv": "2x10x3x6x512x5", "swiglu": "1x128x512x448",
}  # fmt: skip
# Other kernels, such that rows are worth a warp; the rest are tiny.
OTHERS = {
    "log_softmax": "64x512", "groupnorm": "2x4x2x16x112", "cross_entropy": "64x512",
    "attention": "2x64x64x32", "maxpool": "1x4x32x32x3x2", "gemv": "256x512", "sum": "65536",
    "dot": "32768", "transpose": "256x96",
}  # fmt: skip


def shapes(name: str) -> list[str]:
    """The shapes of a kernel in the paper's table 3, of which some have two."""
    return ["x".join(map(str, shape)) for shape in kernels.get(name).shapes]


def ways(name: str, shape: str, tf32: bool = False) -> tuple[str, ...]:
    """What is made of a kernel: by its line, by other lines recorded at the shape, by the heuristic pass.
    ``tf32``: by those alone that round factors."""
    first, lines = line_for(name, shape, "cuda"), recorded_lines("cuda")
    of_policy = {n: line for n, line in lines.items() if (line.policy == "tf32") == tf32}
    at_it = (n for n, line in of_policy.items() if (line.kernel, line.shape) == (name, shape))
    more = (n for n in at_it if lines[n] != first)
    return (*["line"] * (not tf32), *more, "heuristic")


def position(
    name: str, shape: str, way: str, settings: Mapping[str, int] | None = None, policy: str = "reassoc"
) -> Game | None:
    """The end of the recorded line, with parameters set, or what the heuristic pass makes under a policy;
    None where no line applies. ``way``: of ``ways``."""
    kernel, line = kernels.get(name), recorded_lines("cuda").get(way, line_for(name, shape, "cuda"))
    if way == "heuristic":
        game = Game.new(kernel.program(kernel.shape(shape)), name, shape, "cuda", policy)
        play_pass(game, "heuristic")
        return game
    if line is None:
        return None
    game = Game.new(kernel.program(kernel.shape(shape)), name, shape, line.target, line.policy)
    report = line.play(game, settings)
    return game if all(entry.applies for entry in report.entries) else None


def walked(name: str, seed: int, moves: int = 6) -> Game:
    """The heuristic's position at a small shape, and random legal moves from there."""
    rng = random.Random(f"{name} {seed}")
    game = position(name, SMALL[name], "heuristic")
    assert game is not None
    for _ in range(moves):
        by_name: dict[str, list[Any]] = {}
        for move in legal_moves(game.current.program, game.target, game.policy):
            by_name.setdefault(move.name, []).append(move)
        if not by_name:
            break
        game.play(rng.choice(by_name[rng.choice(sorted(by_name))]))
    return game
