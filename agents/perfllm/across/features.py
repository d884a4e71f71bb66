"""Programs, what a move changes of them, and the move's own text, as bags of hashed n-grams.

A program is read line by line, each operation with the scopes around it, arrays by what they are (input,
output, temporary, and where it lies) in place of their names: what a kernel is called must not tell how fast
it is, and what one kernel taught must read alike in another.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from dojo_core.program.nodes import fact
from dojo_core.program.printing import op_text
from dojo_core.program.tree import Program

BUCKETS = 1 << 13  # of hashed n-grams; 0 stands for nothing
_EXACT = 16  # whole numbers up to here are words; larger ones count by their power of two
_TOKEN = re.compile(
    r"[A-Za-z_]\w*|\d+\.?\d*(?:e[-+]?\d+)?|\{\d+\}|[-+*/=<>!&|]+=?|[\[\](),:.]"
)  # of an operation
_NUMBER = re.compile(r"\d+")

Bag = tuple[int, ...]  # the buckets of n-grams, as often as they occur


@dataclass(frozen=True)
class Change:
    """What a move does: the lines it takes away, those it adds, its own text, what lines it crosses."""

    removed: Bag
    added: Bag
    move: Bag
    crossed: Bag = ()


def context_of(program: Program) -> Bag:
    """The whole program."""
    return tuple(n for line in _lines(program) for n in _line_bag(line))


def change_of(before: Program, move: str, after: Program) -> Change:
    """What a move changes."""
    old, new = _counted(before), Counter(_lines(after))
    removed, added = old - new, new - old
    kind = move.split(" ", 1)[0]
    crossed = tuple(_bucket(f"touches {kind} {_NUMBER.sub('#', line)}") for line in removed)
    return Change(
        tuple(n for line in removed for n in _line_bag(line)),
        tuple(n for line in added for n in _line_bag(line)),
        move_bag(move),
        crossed,
    )


STOP = Change((), (), (zlib.crc32(b"stop") % (BUCKETS - 1) + 1,))


def _bucket(text: str) -> int:
    return zlib.crc32(text.encode()) % (BUCKETS - 1) + 1


@lru_cache(maxsize=200_000)
def _line_bag(line: str) -> Bag:
    words = line.split(" ")
    grams = [f"1 {word}" for word in words]
    grams += [f"2 {one} {two}" for one, two in pairwise(words)]
    grams += [f"line {line}", f"shape {_NUMBER.sub('#', line)}"]
    return tuple(map(_bucket, grams))


@lru_cache(maxsize=100_000)
def move_bag(move: str) -> Bag:
    """A move's kind, and each argument with the kind: numbers as they are, places by how deep they stand."""
    kind, *arguments = move.split(" ")
    grams = [f"kind {kind}"]
    for argument in arguments:
        name, at, depth = argument.partition("@")
        if at:
            grams += [f"at {kind} {depth}", f"part {kind} {'#' in name}"]
        elif argument.isdigit() or argument in ("heap", "stack", "register", "root"):
            grams.append(f"with {kind} {argument}")
    return tuple(map(_bucket, grams))


@fact
def _counted(program: Program) -> Counter[str]:
    """How often each line stands in a program, which many moves are asked of."""
    return Counter(_lines(program))


@fact
def _lines(program: Program) -> tuple[str, ...]:
    """The program as lines of words."""
    roles = _roles(program)
    role_of = dict(roles)
    lines = []
    for leaf in program.leaves:
        scopes = [f"{scope.mark or '-'} {_number(scope.size)}" for scope in leaf.scopes]
        siblings = min(len(leaf.scopes[-1].body), 6) if leaf.scopes else 0
        words = _words(op_text(leaf.op), roles)
        lines.append(f"depth {len(scopes)} siblings {siblings} {' '.join(scopes)} : {words}")
        marks = " ".join(scope.mark or "-" for scope in leaf.scopes)
        done = "accumulates" if leaf.op.accumulate else "sets"
        lines.append(f"marks {marks} {done} {role_of[leaf.op.target.array]}")
    for buffer in program.buffers:
        dims = " ".join(f"{'kept' if d.materialised else 'N'} {_number(d.size)}" for d in buffer.dims)
        role = role_of[buffer.arrays[0]]
        lines.append(f"buffer {role} {buffer.location} {dims} arrays {len(buffer.arrays)}")
    lines.append(f"program nests {min(len(program.body), 9)} operations {min(len(program.leaves), 20)}")
    return tuple(lines)


def _roles(program: Program) -> tuple[tuple[str, str], ...]:
    """Of each array what it is and where it lies."""
    inputs, outputs = set(program.inputs), set(program.outputs)

    def role(array: str) -> str:
        return "input" if array in inputs else "output" if array in outputs else "temporary"

    return tuple((a, f"{role(a)}-{b.location}") for b in program.buffers for a in b.arrays)


def _number(value: int) -> str:
    return str(value) if value <= _EXACT else f"2^{int(math.log2(value))}"


@lru_cache(maxsize=100_000)
def _words(operation: str, roles: Sequence[tuple[str, str]]) -> str:
    known = dict(roles)
    words = []
    for token in _TOKEN.findall(operation):
        if token in known:
            words.append(known[token])
        elif token[0].isdigit():
            words.append(_number(int(token)) if token.isdigit() else "fraction")
        else:
            words.append(token)
    return " ".join(words)
