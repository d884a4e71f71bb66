"""How threads share a parallel loop: in equal parts, or by turns.

Equal parts cost least, and a thread that comes by again, in a loop around or in the next run, finds in its
core's cache what it left there. But who is done waits for the slowest, and a core of a shared host may be
slower than the others for milliseconds. Where much is computed of little data, turns cost nothing that could
be measured, and a thread on a slow core takes fewer.
"""

from __future__ import annotations

import math

from dojo_core.program.tree import Node, Op, Path, Program

# Operations of a turn: some ten microseconds of multiply-adds. To ask for the next one takes 0.05.
TURN = 1 << 17
TURNS = 8  # where there are fewer, the last one is waited for as long as for an equal part
REUSE = 8  # operations for each element on the heap: row by row there are up to seven, in products hundreds


def schedule(program: Program, path: Path) -> str:
    """OpenMP's schedule for the parallel scope at a path."""
    scope = program.scope(path)
    work = _operations(scope)
    if work < TURNS * TURN or work < REUSE * _elements(program, path):
        return "static"
    iterations = -(-TURN * scope.size // work)
    return f"dynamic, {iterations}" if iterations > 1 else "dynamic"


def _operations(node: Node) -> int:
    """How many operations run in a node."""
    return 1 if isinstance(node, Op) else node.size * sum(map(_operations, node.body))


def _elements(program: Program, path: Path) -> int:
    """How many elements on the heap the operations below a path touch, at most."""
    touched: dict[str, int] = {}
    for leaf in program.leaves:
        if leaf.path[: len(path)] != path:
            continue
        for access in (leaf.op.target, *leaf.op.reads):
            buffer = program.buffer_of[access.array]
            if buffer.location == "heap":
                along = {d for form in access.index for d in form.depths if d >= len(path) - 1}
                most = min(buffer.cells, math.prod(leaf.scopes[d].size for d in along))
                touched[buffer.name] = max(touched.get(buffer.name, 0), most)
    return sum(touched.values())
