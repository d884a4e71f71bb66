"""GPU targets that do not depend on a machine, and random GPU programs of small extents."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from dojo_core import apply
from dojo_core.moves import REGISTRY
from dojo_core.moves.legality import all_candidates, context, is_legal
from dojo_core.program.tree import Dim, Node, Program, Scope, splice, walk
from dojo_core.targets.gpu.limits import gpu

# Warps of four lanes and little memory, so that small extents meet the limits.
TINY = replace(
    gpu("tiny", "a GPU with warps of four lanes", warp=4),
    block_threads=16,
    shared_bytes=256,
    register_cells=16,
    unrolled_ops=72,
    stack_bytes=256,
    threads=4,
)
MAPPING = ("map_grid", "map_block", "map_warp", "unroll", "reuse_dims", "set_location", "vectorize")


def unmarked(program: Program) -> Program:
    """The program without marks, its temporaries on the heap: a start for any target."""

    def plain(node: Node) -> Node:
        return replace(node, mark="", body=tuple(map(plain, node.body))) if isinstance(node, Scope) else node

    buffers = tuple(replace(b, location="heap") for b in program.buffers)
    return program.edit(body=tuple(map(plain, program.body)), buffers=buffers)


def mapped(program: Program, rng: random.Random, policy: str, moves: int = 8) -> Program:
    """The program after some random moves of those that give it to a GPU, the grid first."""
    program = unmarked(program)
    for number in range(moves):
        wanted = ("map_grid", "map_block", "map_warp")[: 1 + number] if number < 3 else MAPPING
        here = context(program, TINY, policy)
        names = [name for name in REGISTRY if name in wanted]
        found = [m for m in all_candidates(here, names) if is_legal(here, m)]
        by_name = sorted({m.name for m in found})
        if by_name:
            name = rng.choice(by_name)
            program = apply(program, rng.choice([m for m in found if m.name == name]), TINY, policy)
    return program


def variants(program: Program, rng: random.Random, count: int) -> Iterator[Program]:
    """The program with marks, locations and ``:N`` at random, legal or not; most marks may stand there."""
    for _ in range(count):
        program = unmarked(program)
        body = program.body
        for node, path, _above in list(walk(program.body)):
            if isinstance(node, Scope) and not node.mark:
                above = [s.mark for s in Program("", (), (), (), body).scopes_above(path)]
                likely = "w" if "b" in above else "b" if "g" in above else "g"
                mark = rng.choice((likely, likely, likely, "", "", "u", "g", "b", "w"))
                if mark:
                    changed = Program("", (), (), (), body).node(path)
                    assert isinstance(changed, Scope)
                    body = splice(body, path, 1, (replace(changed, mark=mark),))
        buffers = []
        for buffer in program.buffers:
            if program.interface.isdisjoint(buffer.arrays):
                location = rng.choice(("heap", "shared", "local", "stack", "stack"))
                dims = tuple(Dim(d.size, rng.random() < 0.6) for d in buffer.dims)
                buffer = replace(buffer, location=location, dims=dims)
            buffers.append(buffer)
        yield program.edit(body=body, buffers=tuple(buffers))


def moved(program: Program, rng: random.Random, count: int) -> Iterator[Program]:
    """The program with its temporaries in other places and with other ``:N``, legal or not; marks stay."""
    for _ in range(count):
        buffers = []
        for buffer in program.buffers:
            if program.interface.isdisjoint(buffer.arrays) and rng.random() < 0.7:
                location = rng.choice(("shared", "local", "stack"))
                dims = tuple(Dim(d.size, rng.random() < 0.5) for d in buffer.dims)
                buffer = replace(buffer, location=location, dims=dims)
            buffers.append(buffer)
        yield program.edit(buffers=tuple(buffers))
