"""The steps of a program, as text and as a number.

One accumulator takes a value, works on it and is put back. A loop is counted on a rod: up, each iteration
moves a bead and looks whether it was the last; down, it only moves one, as the rod that is empty ends it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dojo_core.codegen.code import NotGeneratable
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Access, Node, Op, Path, Program, Scope, substitute, walk

UP, DOWN = 2, 1  # steps of an iteration
FAR = 2  # steps to a value on the heap; one to the stack, or to none
BEADS = 1 << 16
WORDS = {"+": "add", "-": "subtract", "*": "times", "max": "or", "min": "at most"}


@dataclass(frozen=True)
class Steps:
    """``text`` with the node of each line, and how many ``steps`` it takes."""

    text: str
    nodes: tuple[Path | None, ...]
    steps: int


def generate(program: Program) -> Steps:
    """Raises NotGeneratable with a sentence."""
    for buffer in program.buffers:
        if buffer.dtype not in ("f32", "f64") or buffer.cells > BEADS:
            raise NotGeneratable(
                f"An abacus has {BEADS:,} beads for f32 or f64: {buffer.name} has more, or other."
            )
    lines: list[tuple[str, Path | None]] = [(f"abacus {program.name}", None)]
    steps = sum(_node(program, node, (n,), 0, lines) for n, node in enumerate(program.body))
    return Steps("\n".join(text for text, _ in lines) + "\n", tuple(path for _, path in lines), steps)


def _node(program: Program, node: Node, path: Path, depth: int, lines: list[tuple[str, Path | None]]) -> int:
    """Write a node; gives its steps."""
    if isinstance(node, Op):
        words = list(_words(node))
        lines += [("  " * depth + word, path) for word in words]
        far = sum(program.buffer_of[a.array].location == "heap" for a in _accesses(node))
        return len(words) + far * (FAR - 1)
    down = not node.mark and _counts_down(node, depth)
    each = 0 if node.mark else DOWN if down else UP
    lines.append(
        ("  " * depth + ("side by side" if node.mark else "down" if down else "up") + f" {node.size}", path)
    )
    counter = {depth: Affine.make([(depth, -1)], node.size - 1)}
    inside = [substitute(child, counter) if down else child for child in node.body]
    return node.size * (
        each + sum(_node(program, child, (*path, n), depth + 1, lines) for n, child in enumerate(inside))
    )


def _accesses(op: Op) -> tuple[Access, ...]:
    return (*op.reads, op.target, *([op.target] if op.accumulate else []))


def _words(op: Op) -> Iterator[str]:
    if op.guard:
        raise NotGeneratable("An abacus has no conditions: play this program elsewhere.")
    first, *others = op.operands
    yield f"take {first}"
    if op.function == "neg":
        yield "turn"
    elif op.function and op.function not in WORDS:
        raise NotGeneratable(f"An abacus does not know {op.function}.")
    yield from (f"{WORDS[op.function]} {other}" for other in others)
    if op.accumulate:
        yield f"{WORDS[op.accumulate]} {op.target}"
    yield f"put {op.target}"


def _counts_down(scope: Scope, depth: int) -> bool:
    """Does the program use the iterator only turned round, as ``reverse_scope`` leaves it?"""
    forms = [
        index
        for node, _, _ in walk((scope,))
        if isinstance(node, Op)
        for index in (*(i for a in _accesses(node) for i in a.index), *node.operands)
        if isinstance(index, Affine) and index.uses(depth)
    ]
    return bool(forms) and all(form.coefficient(depth) < 0 for form in forms)
