"""Loads of what is read once and for all: the cache is to give it up first.

Kernels that write little gain by it: what lies in the second-level cache of a run before is not written back
to make room for data that nobody asks for again. Kernels that write about as much as they read lose by it
(docs/gpu.md).
"""

from __future__ import annotations

import math

from dojo_core.program.tree import DTYPE_BYTES, Leaf, Program
from dojo_core.recipes import Sketch

LESS = 8  # times as much is read as written


def stream_what_is_read_once(sketch: Sketch) -> None:
    """Mark the loads of inputs that are read once, where all results are small beside them."""
    program = sketch.program
    written = sum(_bytes(program, array) for array in program.outputs)
    readers: dict[str, list[Leaf]] = {}
    for leaf in program.leaves:
        for access in leaf.op.reads:
            readers.setdefault(access.array, []).append(leaf)
    for array in program.inputs:
        leaves = readers.get(array, [])
        if len(leaves) != 1 or _bytes(program, array) < LESS * written:
            continue
        times = math.prod(scope.size for scope in leaves[0].scopes)
        if times * DTYPE_BYTES[program.buffer_of[array].dtype] <= _bytes(program, array):
            sketch.may("stream_load", sketch.place(leaves[0].path))


def _bytes(program: Program, array: str) -> int:
    return program.buffer_of[array].bytes
