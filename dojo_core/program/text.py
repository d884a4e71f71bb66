"""Parsing of the text form, with errors that a person can act on.

``parse(str(p)) == p`` for every program and ``str(parse(t)) == t`` for every canonical text. The
grammar of operations and buffer lines is ``grammar.lark``, read in ``expressions``; this module reads the
slots before an operation (sizes and bars), gives names their meaning and enforces the limits at the door.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from lark import Token, Tree

from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import FLOATS, STORAGE_FLOATS, dtype_fault, extremes
from dojo_core.program.expressions import DIGITS, RESERVED, Call, LineReader, TextError
from dojo_core.program.functions import KERNEL_LIMITS
from dojo_core.program.indices import index_fault, with_bounds
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.tables import TABLE_DTYPES, Indirect, Table, bounded
from dojo_core.program.tree import (
    DTYPE_BYTES,
    NUMBER_DTYPES,
    Access,
    Buffer,
    Comparison,
    Dim,
    Domain,
    Node,
    Op,
    Program,
    Provenance,
    Scope,
    substituted,
)
from dojo_core.spelling import meant

MARKS = {
    "": "", "u": "unrolled", "p": "parallel", "v": "vectorised", "g": "grid", "b": "block", "w": "warp",
    "m": "tensor-core", "s": "streamed", "f": "hardware loop",
}  # fmt: skip
LOCATIONS = ("heap", "stack", "register", "shared", "local")
_SIZE = "A size is a whole number from 1 to 1,099,511,627,775."


@dataclass
class _Frame:
    """A scope while its children are still being read."""

    size: int
    mark: str
    children: list[_Frame | Op] = field(default_factory=list)


_SLOT = re.compile(r"[ \t]*(\||\d+(?::\w*)?)(?=[ \t]|$)")
_BUFFER_LINE = re.compile(r"[ \t]*[A-Za-z_]\w*[ \t]+[A-Za-z_]\w*[ \t]*\[")
_HEADER = re.compile(r"[ \t]*(kernel|in|out)\b(?![ \t]*\[)")
_WORDS = re.compile(r"[ \t]*([A-Za-z_]\w*)[ \t]+\w[\w, \t]*")  # no operation, no buffer
_TABLE = re.compile(
    r"[ \t]*table[ \t]+([A-Za-z_]\w*)[ \t]+(\w+)[ \t]*\[[ \t]*(\d{1,9}(?:[ \t]*,[ \t]*\d{1,9})*)[ \t]*\]"
    r"[ \t]*=[ \t]*(-?\d{1,10}(?:[ \t]+-?\d{1,10})*)[ \t]*",
    re.ASCII,
)
_DOMAIN = re.compile(r"[ \t]*domain[ \t]+([A-Za-z_]\w*)[ \t]+(\S+)[ \t]+(\S+)(?:[ \t]+(distinct))?[ \t]*")


def parse(text: str) -> Program:
    """Read a program. Raises TextError with line, column and remedy where the text is not one."""
    return _Reader(text).program()


def operation_lines(text: str) -> list[int]:
    """The number of each operation's line, from 1 on, in a text that parses."""
    reader = _Reader(text)
    reader.program()
    return reader.operation_lines


class _Reader(LineReader):
    def __init__(self, text: str) -> None:
        limit = KERNEL_LIMITS["text bytes"]
        if len(text) > limit or len(text.encode("utf-8", "replace")) > limit:
            raise TextError(f"the text is longer than {limit} bytes", "Split the kernel into smaller ones.")
        super().__init__(text.splitlines())
        self.name = ""
        self.inputs: tuple[str, ...] = ()
        self.outputs: tuple[str, ...] = ()
        self.buffers: list[Buffer] = []
        self.dtypes: dict[str, str] = {}
        self.root: list[_Frame | Op] = []
        self.open: list[_Frame] = []
        self.nodes = 0
        self.operation_lines: list[int] = []
        self.headers: dict[str, int] = {}
        self.domains: dict[str, Domain] = {}

    # -------------------------------------------------------------- lines

    def program(self) -> Program:
        for number, line in enumerate(self.lines, 1):
            self.number = number
            bad = re.search(r"[^\x20-\x7e\t]", line)
            if bad:
                self.fail(
                    f"character {bad.group()!r} has no place in a program",
                    "Use plain ASCII letters, digits and signs.",
                    bad.start() + 1,
                )
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            header = _HEADER.match(line)
            if header and not self.root:
                self.header(header.group(1), line, header.end())
            elif _BUFFER_LINE.match(line):
                self.buffer(line)
            elif re.match(r"[ \t]*domain[ \t]+\w", line):
                self.domain(line)
            elif re.match(r"[ \t]*table[ \t]+\w", line):
                self.table(line)
            else:
                if words := _WORDS.fullmatch(line):
                    self.mistyped(words)
                self.body_line(line)
        return self.finish()

    def mistyped(self, words: re.Match[str]) -> None:
        """A line of nothing but names begins with a word that is none: which one was meant?"""
        remedy = meant(words[1], ("kernel", "in", "out"))
        if remedy:
            self.fail(f"no line begins with {words[1]}", remedy, words.start(1) + 1)

    def header(self, kind: str, line: str, at: int) -> None:
        if kind in self.headers:
            self.fail(f"a second '{kind}' line", f"Line {self.headers[kind]} has one already: keep one.")
        self.headers[kind] = self.number
        names = [str(t) for t in self.read("names", line, at).children]
        if kind == "kernel":
            if len(names) != 1:
                self.fail("a kernel has one name", "Write for example: kernel softmax", at + 2)
            self.name = names[0]
            return
        for name in names:
            if names.count(name) > 1 or (kind == "out" and name in self.inputs):
                self.fail(
                    f"{name} is named twice",
                    "An array is an input or an output, once.",
                    line.find(name, at) + 1,
                )
        if kind == "in":
            self.inputs = tuple(names)
        else:
            self.outputs = tuple(names)

    def domain(self, line: str) -> None:
        match = _DOMAIN.fullmatch(line)
        number = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?"
        if match is None or not all(re.fullmatch(number, match.group(k)) for k in (2, 3)):
            remedy = "A domain line reads: domain x 0.1 10, or of values that differ: domain i 0 127 distinct"
            self.fail("expected an input and two numbers", remedy)
        array, low, high = match.group(1), float(match.group(2)), float(match.group(3))
        if array not in self.inputs:
            self.fail(
                f"{array} is no input",
                "A domain bounds the values of an input, and stands below the line in.",
                match.start(1) + 1,
            )
        if array in self.domains:
            self.fail(f"a second domain of {array}", "Keep one.", match.start(1) + 1)
        if not low <= high or math.isinf(high - low):
            self.fail(
                f"{match.group(2)} to {match.group(3)} is no range",
                "Write two finite numbers, the lower one first.",
                match.start(2) + 1,
            )
        self.domains[array] = Domain(array, low, high, distinct=match.group(4) is not None)

    def table(self, line: str) -> None:
        """A constant table; its values stay between the extremes of its dtype."""
        match = _TABLE.fullmatch(line)
        if match is None:
            self.fail("this is no table", "A table line reads: table idx i32 [2, 3] = 0 2 4 1 3 5")
        name, dtype, sizes, numbers = match.groups()
        if self.root:
            self.fail("a table after the body has begun", "Move it above the first operation.")
        if name in self.tables or name in self.dims or any(b.name == name for b in self.buffers):
            self.fail(f"a second thing named {name}", "Give the table a name of its own.", match.start(1) + 1)
        if dtype not in TABLE_DTYPES:
            known = ", ".join(TABLE_DTYPES)
            self.fail(f"a table of {dtype}", f"The dtypes of tables are {known}.", match.start(2) + 1)
        dims = tuple(int(size) for size in sizes.split(","))
        values = tuple(int(value) for value in numbers.split())
        limit = KERNEL_LIMITS["table values"]
        if len(values) + sum(len(t.values) for t in self.tables.values()) > limit:
            self.fail(
                f"more than {limit} values in tables", "Use a smaller table, shared by more of the kernel."
            )
        if min(dims) < 1 or math.prod(dims) != len(values):
            self.fail(
                f"{len(values)} values for {' x '.join(map(str, dims))} places",
                "Give one value for each place, row by row; a size is at least 1.",
                match.start(3) + 1,
            )
        least, most = extremes(dtype)
        wrong = next((v for v in values if not least <= v <= most), None)
        if wrong is not None:
            self.fail(
                f"{wrong} does not fit {dtype}", f"Values lie between {least} and {most}.", match.start(4) + 1
            )
        self.tables[name] = Table(name, dtype, dims, values)

    def check_domain(self, domain: Domain, home: Buffer) -> None:
        """A domain holds a value of the input's dtype, and one for each element where these are distinct."""
        if home.dtype in (*FLOATS, *STORAGE_FLOATS):
            if domain.distinct:
                self.number = self.headers["in"]
                self.fail(
                    f"{domain}: {domain.array} is {home.dtype}", "Distinct are whole numbers: drop the word."
                )
            return
        least, most = extremes(home.dtype)
        low, high = math.ceil(domain.low), math.floor(domain.high)
        if low > high or low < least or float(high) > float(most):  # 2**63 - 1 is no double
            self.number = self.headers["in"]
            self.fail(
                f"{domain} holds no whole numbers, or some that {home.dtype} does not",
                f"Take bounds between {least} and {most}.",
            )
        count = math.prod(d.size for d in home.dims)
        if domain.distinct and high - low + 1 < count:
            self.number = self.headers["in"]
            self.fail(
                f"{domain} holds {high - low + 1} whole numbers, and {domain.array} has {count} elements",
                "Take wider bounds, or drop the word distinct.",
            )

    def buffer(self, line: str) -> None:
        if self.root:
            self.fail("a buffer line after the body has begun", "Move it above the first operation.")
        if len(self.buffers) >= KERNEL_LIMITS["buffers"]:
            self.fail(f"more than {KERNEL_LIMITS['buffers']} buffers", "Use fewer temporaries.")
        tree = self.read("buffer", line, 0)
        tokens = [c for c in tree.children if isinstance(c, Token)]
        name, dtype, location = tokens[0], tokens[1], tokens[2]
        dims: list[Dim] = []
        arrays: tuple[str, ...] = (str(name),)
        for child in tree.children:
            if isinstance(child, Tree) and child.data == "dim":
                dims.append(self.dim(child))
            elif isinstance(child, Tree) and child.data == "names":
                arrays = tuple(map(str, child.children))
        if dtype not in DTYPE_BYTES:
            remedy = meant(dtype, DTYPE_BYTES) or f"The dtypes are {', '.join(DTYPE_BYTES)}."
            self.fail_at(dtype, f"unknown dtype {dtype}", remedy)
        if location not in LOCATIONS:
            remedy = meant(location, LOCATIONS) or f"The locations are {', '.join(LOCATIONS)}."
            self.fail_at(location, f"unknown location {location}", remedy)
        taken = {b.name for b in self.buffers} | self.tables.keys()
        if name in taken:
            self.fail_at(name, f"a second buffer named {name}", "Give each buffer a name of its own.")
        for array in arrays:
            if array in RESERVED:
                self.fail_at(name, f"an array named {array}", f"The word {array} is taken: rename the array.")
            if array in self.tables:
                self.fail_at(name, f"{array} is a table", "Give the array another name.")
            if array in self.dims or arrays.count(array) > 1:
                self.fail_at(name, f"array {array} has two buffers", "An array lives in one buffer.")
            self.dims[array] = tuple(dims)
            self.dtypes[array] = str(dtype)
        buffer = Buffer(str(name), str(dtype), tuple(dims), str(location), arrays)
        total = buffer.bytes + sum(b.bytes for b in self.buffers)
        if total > KERNEL_LIMITS["buffer bytes"]:
            self.fail_at(
                name,
                f"the buffers take {total:,} bytes, more than {KERNEL_LIMITS['buffer bytes']:,}",
                "Use a smaller shape.",
            )
        self.buffers.append(buffer)

    def dim(self, tree: Tree[Token]) -> Dim:
        size, mark = tree.children[0], tree.children[1] if len(tree.children) > 1 else None
        assert isinstance(size, Token)
        if not (size.isascii() and size.isdigit()) or not _is_size(size):
            self.fail_at(size, f"{_short(size)} is no size of a dimension", _SIZE)
        if mark is not None and mark != "N":
            self.fail_at(
                tree, f"unknown suffix :{mark}", "The only suffix of a dimension is :N, not materialised."
            )
        return Dim(int(size), mark is None)

    def body_line(self, line: str) -> None:
        at = bars = 0
        fresh: list[_Frame] = []
        while match := _SLOT.match(line, at):
            slot, column, at = match.group(1), match.start(1) + 1, match.end()
            if slot == "|":
                if fresh:
                    self.fail(
                        "a bar after a size", "Bars stand for scopes still open and come first.", column
                    )
                if bars >= len(self.open):
                    self.fail(
                        "this bar has no open scope above it",
                        f"The previous line has {len(self.open)} open scopes: at most as many bars.",
                        column,
                    )
                bars += 1
                continue
            size, _, mark = slot.partition(":")
            if not _is_size(size):
                self.fail(f"a scope of {_short(size)} iterations", _SIZE, column)
            if ":" in slot and (not mark or (mark not in MARKS and mark not in INSTRUCTIONS)):
                named = ", ".join(f":{m} {word}" for m, word in MARKS.items() if m)
                remedy = f"The marks are {named}, and the instructions :{', :'.join(INSTRUCTIONS)}."
                self.fail(f"unknown mark :{mark}", remedy, column + len(size))
            fresh.append(_Frame(int(size), mark))
        del self.open[bars:]
        for frame in fresh:
            self.attach(frame)
            self.open.append(frame)
        self.sizes = [frame.size for frame in self.open]
        if len(self.open) > KERNEL_LIMITS["depth"]:
            self.fail(f"more than {KERNEL_LIMITS['depth']} nested scopes", "Merge some of them.")
        self.attach(self.operation(self.read("operation", line, at)))
        self.operation_lines.append(self.number)

    def attach(self, node: _Frame | Op) -> None:
        self.nodes += 1
        if self.nodes > KERNEL_LIMITS["nodes"]:
            self.fail(f"more than {KERNEL_LIMITS['nodes']} nodes", "Split the kernel into smaller ones.")
        (self.open[-1].children if self.open else self.root).append(node)

    # -------------------------------------------------------------- operations

    def operation(self, tree: Tree[Token]) -> Op:
        children = [c for c in tree.children if c is not None]
        target_tree, assign, value_tree = children[0], children[1], children[2]
        assert isinstance(target_tree, Tree)
        guard: tuple[Comparison, ...] = ()
        prefetches: list[Access] = []
        stream = stream_load = False
        for child in children[3:]:
            assert isinstance(child, Tree)
            if child.data == "guard":
                guard = tuple(self.comparison(c) for c in child.children if isinstance(c, Tree))
            elif child.data == "prefetch":
                prefetches.append(self.access(child.children[0], within_bounds=False))
            elif child.data == "stream_load":
                stream_load = True
            else:
                stream = True
        target = self.access(target_tree, within_bounds=not guard)
        for access in (target, *prefetches):
            through = [k.source for i in access.index if isinstance(i, Indirect) for k, _ in i.lookups]
            tables = [source for source in through if isinstance(source, Table)]
            if tables:
                remedy = "What is read may: x[idx[{0}]]. What is written goes through an array."
                self.fail_at(target_tree, f"{access} goes through a table", remedy)
            if through and access is not target:
                remedy = "A prefetch has an address that is known: leave it out."
                self.fail_at(target_tree, f"{access} goes through an array", remedy)
        if target.array in self.inputs:
            self.fail_at(
                target_tree,
                f"{target.array} is an input and may not be written",
                "Write to a temporary or an output.",
            )
        value = self.expression(value_tree, within_bounds=not guard)
        accumulate = str(assign)[:-1]
        if accumulate == "-":  # read as += of the negated operand
            accumulate, value = "+", self.negated(value, value_tree)
        if not isinstance(value, Call):
            value = Call("", (self.operand(value, value_tree),))
        named = [target, *[o for o in value.operands if isinstance(o, Access)]]
        for access in (*named, *(index for each in named for index in each.indices)):
            if guard:
                self.check_guarded(access, guard, target_tree)
        operands = tuple(substituted(o, {}) for o in value.operands)
        marks = (tuple(prefetches), stream, stream_load)
        op = Op(target, accumulate, value.function, operands, guard, *marks)
        fault = dtype_fault(op, self.dtypes)
        if fault is None and (guard or any(isinstance(o, Affine) for o in operands)):
            from dojo_core.program.dependence import iterator_fault

            fault = iterator_fault(op, self.sizes, self.dtypes)
        if fault is not None:
            self.fail_at(value_tree, *fault)
        return op

    def check_guarded(self, access: Access, guard: tuple[Comparison, ...], where: Tree[Token]) -> None:
        """Under a guard an index must be in bounds wherever the guard holds (decided exactly)."""
        from dojo_core.program.dependence import may_leave

        dims = [d.size for d in self.dims[access.array]]
        for k, name, form, size in bounded(access.array, access.index, dims):
            if isinstance(form, Indirect) and form.through:
                continue  # ``indices.index_fault`` looks at it
            if may_leave(form, size, self.sizes, guard):
                self.fail_at(
                    where,
                    f"index {k} of {name}, {form}, leaves 0 to {size - 1} where the guard holds",
                    "Tighten the guard, or change the index or the buffer's dimension.",
                )

    # -------------------------------------------------------------- the whole

    def finish(self) -> Program:
        self.number = max(1, len(self.lines))
        if not self.name:
            self.number = 1
            self.fail("the text names no kernel", "Begin with a line such as: kernel softmax")
        if not self.outputs:
            self.fail("the kernel has no output", "Add a line such as: out y")
        if not self.root:
            self.fail("the kernel has no operation", "Add a line such as: 8 y[{0}] = x[{0}]")
        for array in self.inputs + self.outputs:
            home = next((b for b in self.buffers if array in b.arrays), None)
            if home is None:
                self.number = self.headers["in" if array in self.inputs else "out"]
                self.fail(f"no buffer holds {array}", f"Add a line such as: {array} f32 [8] heap")
            self.check_interface(array, home)
            if array in self.domains:
                self.check_domain(self.domains[array], home)
        program = Program.make(
            self.name,
            self.inputs,
            self.outputs,
            tuple(self.buffers),
            self.body(self.root),
            domains=tuple(self.domains[a] for a in self.inputs if a in self.domains),
        )
        program = with_bounds(program)
        fault = index_fault(program)
        if fault is not None:
            lines = zip((leaf.path for leaf in program.leaves), self.operation_lines, strict=True)
            self.number = dict(lines)[fault.path]
            self.fail(fault.message, fault.remedy)
        written = {leaf.op.target.array for leaf in program.leaves}
        for array in self.outputs:
            if array not in written:
                self.number = self.headers["out"]
                self.fail(f"the output {array} is never written", f"Add an operation that writes {array}.")
        return with_provenance(program)

    def check_interface(self, array: str, home: Buffer) -> None:
        kind = "in" if array in self.inputs else "out"
        self.number = self.headers[kind]
        if home.location != "heap" or not all(d.materialised for d in home.dims):
            self.fail(
                f"{array} is part of the interface and must be on the heap with all dimensions materialised",
                "Copy it to a temporary and put that elsewhere.",
            )
        if home.dtype not in NUMBER_DTYPES:
            self.fail(
                f"{array} is {home.dtype}, of keys, which inputs and outputs are not",
                "Take out the place with keyindex and the element with keyvalue.",
            )
        others = [a for a in home.arrays if a in self.inputs + self.outputs and a != array]
        if others or (kind == "in" and len(home.arrays) > 1):
            self.fail(f"the buffer of {array} holds other arrays", "Give the array a buffer of its own.")

    def body(self, children: list[_Frame | Op]) -> tuple[Node, ...]:
        return tuple(
            c if isinstance(c, Op) else Scope(c.size, self.body(c.children), c.mark) for c in children
        )


def _is_size(digits: str) -> bool:
    return len(digits) <= 13 and 0 < int(digits) <= KERNEL_LIMITS["size"]


def _short(digits: str) -> str:
    return digits if len(digits) <= DIGITS else f"{digits[:8]}..."


def with_provenance(program: Program) -> Program:
    """Number nodes, buffers and dimensions of a start text: their provenances are 0.0, 0.1, ..."""
    count = 0

    def numbered(node: Node) -> Node:
        nonlocal count
        provenance = Provenance(0, count)
        count += 1
        if isinstance(node, Op):
            return Op(
                node.target,
                node.accumulate,
                node.function,
                node.operands,
                node.guard,
                node.prefetches,
                node.stream,
                node.stream_load,
                provenance,
            )
        return Scope(node.size, tuple(numbered(c) for c in node.body), node.mark, provenance)

    def owned(buffer: Buffer) -> Buffer:
        nonlocal count
        first = count
        count += 1 + len(buffer.dims)
        dims = tuple(
            Dim(d.size, d.materialised, Provenance(0, first + 1 + k)) for k, d in enumerate(buffer.dims)
        )
        return Buffer(buffer.name, buffer.dtype, dims, buffer.location, buffer.arrays, Provenance(0, first))

    body = tuple(numbered(n) for n in program.body)
    return program.edit(body=body, buffers=tuple(map(owned, program.buffers)))
