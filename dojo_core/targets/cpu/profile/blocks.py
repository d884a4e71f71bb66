"""How often each straight piece of a kernel's machine code is run, counted exactly: before each, the assembly
has an instruction more that adds one to a number. Times of such code mean nothing; it is run once.

x86 alone, for the counting instruction is one of its own. Where the flags that it changes are asked for
behind it, they are kept on the stack, past the bytes below its end that a function may use without asking.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as File

from dojo_core.codegen.assembly import Assembly, linked
from dojo_core.codegen.built import Built
from dojo_core.codegen.code import Code
from dojo_core.measure import sealed
from dojo_core.measure.compiling import compile_source
from dojo_core.measure.exclusive import compiling
from dojo_core.measure.limits import COMPILE_SECONDS
from dojo_core.measure.places import cache_directory
from dojo_core.program.tree import Path
from dojo_core.targets.cpu.build import listing_of

COUNTED = "dojo_counted"
_LABEL = re.compile(r"([.\w$]+):")
_JUMP = re.compile(r"\s*(j\w+|ret\w*|rep\s+ret)\b")
_AIM = re.compile(r"\s*j\w+\s+([.\w$]+)$")
# What asks for flags, and what leaves them as they are or sets some alone; all else on integers sets them.
_ASKS = re.compile(r"(j(?!mp)\w+|set\w+|cmov\w+|adc\w*|sbb\w*|pushf\w*|lahf|rc[lr]\w*)$")
_SETS = re.compile(r"(add|sub|cmp|test|and|or|xor|neg|imul|bt)[bwlq]?$|v?u?comis[sd]$|k?ortest\w$|vptest$")


@dataclass(frozen=True)
class Piece:
    """Rows of the assembly from ``first`` to ``last`` that are run one after the other: instructions, and how
    often. ``aim``: the row that its branch leads to, None without one."""

    first: int
    last: int
    runs: int
    aim: int | None

    @property
    def loop(self) -> bool:
        return self.aim == self.first


@dataclass(frozen=True)
class Counting:
    """A kernel's assembly (AT&T's syntax, as models read it), and a library that counts its pieces."""

    assembly: Assembly
    pieces: tuple[tuple[int, int], ...]  # the first row and the last
    built: Built


def counting(code: Code) -> Counting:
    """Compile code to count its pieces. Raises ValueError with what the compiler said."""
    text, before = listing_of(code, ["-fPIC"])
    assembly = linked(text, code.nodes, before, "#")
    with_counters, count = _with_counters(text)
    pieces = _pieces(assembly.lines)
    if count != len(pieces):
        raise ValueError("The compiler's assembly cannot be cut into pieces.")
    key = hashlib.sha256(with_counters.encode()).hexdigest()[:24]
    library = sealed.folder(cache_directory() / "objects") / f"{key}.so"
    if not sealed.is_intact(library):
        with tempfile.TemporaryDirectory(dir=library.parent, prefix="build-") as folder, compiling():
            options = ["-x", "assembler", "-shared"]
            error = compile_source(with_counters, options, File(folder), "counting.so", COMPILE_SECONDS)
            if error is not None:
                raise ValueError(f"The assembly with counters cannot be assembled: {error.message}")
            sealed.seal(File(folder) / "counting.so")
            sealed.place(File(folder) / "counting.so", library)
    return Counting(assembly, tuple(pieces), Built(str(library), code.symbol, key))


def counted(counting: Counting, numbers: Sequence[float]) -> list[Piece]:
    """The pieces with how often each was run."""
    lines = counting.assembly.lines
    rows = {match[1]: row for row, line in enumerate(lines) if (match := _LABEL.match(line))}
    starts = {first for first, _ in counting.pieces}
    pieces = []
    for (first, last), runs in zip(counting.pieces, numbers, strict=True):
        aim = _AIM.match(lines[last])
        row = rows.get(aim[1]) if aim else None
        while row is not None and row not in starts and row + 1 < len(lines):
            row += 1  # from a label to what stands behind it
        pieces.append(Piece(first, last, round(runs), row))
    return pieces


def _pieces(lines: Sequence[str]) -> list[tuple[int, int]]:
    """The first and the last row of each piece: cut at labels and behind what leads elsewhere."""
    pieces: list[tuple[int, int]] = []
    begun = False
    for row, line in enumerate(lines):
        if _LABEL.match(line):
            begun = False
            continue
        if begun:
            pieces[-1] = pieces[-1][0], row
        else:
            pieces.append((row, row))
        begun = _JUMP.match(line) is None
    return pieces


def _with_counters(text: str) -> tuple[str, int]:
    """Assembly in which each piece adds one to a number of its own, and how many pieces there are."""
    rows, out = text.splitlines(), list[str]()
    mentioned = {word for row in rows if not _LABEL.match(row) and not _directive(row)
                 for word in re.findall(r"[.\w$]+", row.split("#")[0])}  # fmt: skip
    count, begun, in_text = 0, False, True
    for number, row in enumerate(rows):
        words = row.split()
        if words and words[0] in (".text", ".section", ".data", ".bss"):
            in_text = words[0] == ".text" or (words[0] == ".section" and words[1].startswith(".text"))
        label = _LABEL.match(row)
        if label:
            begun &= not (label[1] in mentioned or not label[1].startswith("."))
        elif in_text and words and not _directive(row):
            if not begun:
                place = f"{COUNTED}_numbers+{8 * count}(%rip)"
                out += (
                    [f"\tlock incq {place}"]
                    if _flags_are_set(rows[number:])
                    else ["\tleaq -128(%rsp), %rsp", "\tpushfq", f"\tlock incq {place}",
                          "\tpopfq", "\tleaq 128(%rsp), %rsp"]
                )  # fmt: skip
                count += 1
            begun = _JUMP.match(row) is None
        out.append(row)
    out += [
        "\t.bss",
        "\t.balign 64",
        f"\t.globl {COUNTED}",
        f"{COUNTED}:",
        f"{COUNTED}_numbers:",
        f"\t.zero {8 * max(count, 1)}",
        f"\t.size {COUNTED}, {8 * max(count, 1)}",
        f"\t.type {COUNTED}, @object",
        "",
    ]
    return "\n".join(out), count


def _directive(row: str) -> bool:
    return row.lstrip().startswith((".", "#"))


def _flags_are_set(rows: Sequence[str]) -> bool:
    """Does what follows set the flags before it asks for them?"""
    for row in rows:
        words = row.split()
        if not words or _directive(row):
            continue
        if _LABEL.match(row) or _ASKS.match(words[0]) or words[0].startswith("j"):
            return False
        if words[0] in ("ret", "call") or _SETS.match(words[0]):
            return True  # no function is called with flags, and none hands them back
    return True


def node_shares(assembly: Assembly, piece: Piece) -> dict[Path, float]:
    """Of which nodes a piece's instructions are, by their number; empty where none is told. A scope's own,
    its counter's say, count for the operations in it that stand in the same piece."""
    rows = range(piece.first, piece.last + 1)
    # What is inlined is told by what stands before it, which may be another loop: the piece's own is surer.
    own = [node for row in rows if row not in assembly.inlined and (node := assembly.nodes[row]) is not None]
    nodes = own or [node for row in rows if (node := assembly.nodes[row]) is not None]
    inner = [n for n in nodes if not any(len(o) > len(n) and o[: len(n)] == n for o in set(nodes))]
    return {node: inner.count(node) / len(inner) for node in dict.fromkeys(inner)}
