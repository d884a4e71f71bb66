"""Snitch targets and programs of small extents, and random programs that a Snitch core can run."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from dojo_core.program.tree import Node, Program, Scope
from tests.programs import random_program
from tests.targets import SNITCH

# Short streams and loops, so that small extents meet the limits.
TINY = replace(SNITCH, name="tiny", dims=2, body=4, repeats=8, repeat=4, unrolled_ops=64, stack_bytes=1024)
FUNCTIONS = ("", "+", "-", "*", "neg", "abs", "max", "min", "fma")


def doubled(program: Program) -> Program:
    """The program in f64, without marks, its temporaries on the heap."""

    def plain(node: Node) -> Node:
        return replace(node, mark="", body=tuple(map(plain, node.body))) if isinstance(node, Scope) else node

    buffers = tuple(replace(b, dtype="f64", location="heap") for b in program.buffers)
    return program.edit(body=tuple(map(plain, program.body)), buffers=buffers)


def runnable(rng: random.Random, wanted: Callable[[Program], bool] = lambda program: True) -> Program:
    """A random program of the functions that Snitch's FPU has."""
    while True:
        program = random_program(rng)
        if (
            program.tables
            or program.index_arrays
            or any(leaf.op.function not in FUNCTIONS for leaf in program.leaves)
        ):
            continue
        program = doubled(program)
        if wanted(program):
            return program
