"""The example in each move's docstring, as a program on which it can be played."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

from dojo_core.moves.core import REGISTRY
from dojo_core.program.target import VECTOR_BYTES, Target, vector_widths
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.registry import backends

# Of no machine: wide vectors and two threads, so that the examples are the same everywhere.
WIDE = Target(
    name="wide",
    title="a CPU with 512-bit vectors",
    vector_widths=vector_widths(VECTOR_BYTES),
    marks=frozenset("upv"),
    locations=("heap", "stack", "register"),
    stack_bytes=1 << 20,
    register_cells=1024,
    unrolled_ops=2048,
    threads=2,
    instructions=frozenset({("vpdpbusd", 16), ("vpdpbusd", 8)}),
)

_ALL = 128  # a dimension that the docstring leaves open
_BLOCK = re.compile(r"^(Before|After ``(?P<move>[^`]+)``)::\n\n(?P<text>(?: {4}.*\n?|\n)+)", re.MULTILINE)
_MARK = re.compile(r"(?<!\S)\d+:([a-z])(?!\S)")
_BUFFER = re.compile(r"[a-z]\w* [fiu]\d+ \[")


@dataclass(frozen=True)
class Example:
    """``move`` leads from ``program`` to one with the buffers and the last operations of ``after``."""

    move: str
    program: Program
    buffers: tuple[str, ...]
    operations: tuple[str, ...]
    target: Target
    policy: str


def example(name: str) -> Example:
    """The docstring's own. Raises ValueError where it shows none, or marks that no target knows."""
    blocks = list(_BLOCK.finditer(inspect.cleandoc(REGISTRY[name].__doc__ or "")))
    if len(blocks) < 2:
        raise ValueError(f"{name} shows no before and after.")
    before, after = (
        [line.strip() for line in block["text"].splitlines() if line.strip()] for block in blocks[:2]
    )
    target = _target_with({mark for line in (*before, *after) for mark in _MARK.findall(line)})
    buffers, operations = _parted(after)
    program = parse(_whole(before, operations))
    return Example(blocks[1]["move"], program, buffers, operations, target, REGISTRY[name].policy)


def _target_with(marks: set[str]) -> Target:
    """The first that knows the marks, those of no machine before all others."""
    for target in (WIDE, *(each.limits for each in backends())):
        if marks <= target.marks:
            return target
    raise ValueError(f"No target knows the marks {', '.join(sorted(marks))}.")


def _parted(lines: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The buffer lines, and the others."""
    buffers = tuple(line for line in lines if _BUFFER.match(line))
    return buffers, tuple(line for line in lines if line not in buffers)


def _whole(lines: list[str], after: tuple[str, ...]) -> str:
    """A kernel of these lines: what they leave undeclared is large enough, what nothing writes is input."""
    buffers, body = _parted(lines)
    declared = {line.split()[0]: line for line in buffers}
    ranks: dict[str, int] = {}
    for array, index in re.findall(r"([a-z]\w*)\[([^\]]*)\]", "\n".join(body)):
        ranks.setdefault(array, index.count(",") + 1 if index else 0)
    held = {a.strip() for line in buffers if "->" in line for a in line.split("->")[1].split(",")}
    written = set(re.findall(r"([a-z]\w*)\[[^\]]*\] (?:[+*]|max|min)?=", "\n".join((*body, *after))))
    output = "y" if "y" in written else sorted(written)[-1]
    inputs = [a for a in ranks if a not in written]
    for array, rank in ranks.items():
        if array not in declared and array not in held:
            declared[array] = f"{array} f32 [{', '.join([str(_ALL)] * rank)}] heap"
    head = ["kernel k", f"in {', '.join(inputs)}" if inputs else "", f"out {output}"]
    return "\n".join([*(h for h in head if h), *declared.values(), *body]) + "\n"
