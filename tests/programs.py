"""Random programs that are valid by the oracle: nests, reductions, broadcasts, shifted and strided
locations, guards, tiles, scans, constant tables, index arrays, scattered writes, buffers shared, contracted
or private, parallel scopes, mixed dtypes and conversions, keys, what a machine instruction computes; small
extents.

``random_program`` takes a ``random.Random``; under hypothesis ``programs()`` hands it one whose draws
shrink.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from dojo_core import parse
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import INTEGERS, holds, key_of
from dojo_core.program.expressions import TextError
from dojo_core.program.functions import FUNCTIONS
from dojo_core.program.marks import mark_fault
from dojo_core.program.target import Target
from dojo_core.program.tree import Buffer, Program, Scope, splice, walk
from dojo_core.program.validity import storage_fault
from tests import oracle

# The shortest vectors, which every machine has, and few registers, so that small extents meet the limits.
SMALL = Target(
    name="small",
    title="a CPU with short vectors",
    vector_widths={
        "f32": (4,),
        "f64": (2,),
        "f16": (4,),
        "bf16": (4,),
        "i32": (4,),
        "i16": (8,),
        "i8": (16,),
        "i64": (2,),
        "i128": (2,),
        "u64": (2,),
        "u32": (4,),
        "u16": (8,),
        "u8": (16,),
        "f8e5m2": (4,),
        "f4e2m1fn": (4,),
        "i4": (16,),
        "u2": (16,),
    },
    marks=frozenset("upv"),
    locations=("heap", "stack", "register"),
    stack_bytes=1 << 12,
    register_cells=16,
    unrolled_ops=64,
    threads=2,
    instructions=frozenset({("vpdpbusd", 4)}),
)

# What narrower dtypes may stand beside the one that a program computes in: it holds their values.
NARROWER = {
    "f32": ("bf16", "f16", "i8", "u8", "u16", "f8e5m2", "f4e2m1fn", "i4"),
    "f64": ("f32", "i32", "u8", "u32", "f8e5m2"), "i32": ("i8", "u8", "i16", "u16", "i4", "u2"),
    "u32": ("u8", "u16", "u2"), "u64": ("u8", "u16", "u32"),
}  # fmt: skip

EXTENTS = (1, 2, 2, 3, 4, 4, 5, 6, 8)
INSTANCES = 160  # of one operation
# Functions that jump, as fmod does, are those of integers alone: float64 may fall elsewhere than f32 rounded.
UNARY = ("", "", "neg", "abs", "tanh", "sin", "cos", "atan", "asinh")
UNARY_WHOLE = ("", "", "neg", "abs", "sign", "not")
BINARY = ("+", "-", "*", "max", "min", "/")
BINARY_WHOLE = ("+", "-", "*", "max", "min", "and", "or", "xor", "shl", "shr", "fmod")


@dataclass
class _Array:
    name: str
    sizes: tuple[int, ...]
    dtype: str


class _Writer:
    """Writes a text line by line; what is out of bounds or undefined is sorted out afterwards."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.open: list[int] = []  # sizes of the scopes around the last operation
        self.lines: list[str] = []
        self.arrays: list[_Array] = []
        roll = rng.random()
        self.tabled, self.indexed = roll < 0.2, 0.2 <= roll < 0.35
        self.tables: list[str] = []
        self.indices: list[_Array] = []  # inputs that indices are read from
        self.domains: list[str] = []
        self.clamped: list[_Array] = []  # what operations make of them
        self.made: list[str] = []  # these operations, which come first
        self.dtype = rng.choice(("f32", "f32", "f32", "f64", "i32", "i32", "u32", "u64"))
        self.whole = self.dtype in INTEGERS
        self.mixed = rng.random() < 0.35
        self.extents = [rng.choice(EXTENTS) for _ in range(2)]
        self.outer = [self.size() for _ in range(rng.choice((0, 0, 1, 1, 2)))]  # scopes around several stages

    def size(self) -> int:
        return self.rng.choice(self.extents) if self.rng.random() < 0.85 else self.rng.choice(EXTENTS)

    def loops(self, bars: int, sizes: list[int]) -> None:
        """The slots of the next line: ``bars`` scopes continued, then new ones."""
        self.slots = ["|"] * bars + [str(n) for n in sizes]
        self.open = self.open[:bars] + sizes

    def line(self, operation: str) -> None:
        guard = ""
        long = [d for d, n in enumerate(self.open) if n > 1]
        if long and self.rng.random() < 0.08:
            depth = self.rng.choice(long)
            sign, bound = self.rng.choice(("<", ">=")), self.rng.randint(1, self.open[depth] - 1)
            guard = f" if {{{depth}}} {sign} {bound}"
        self.lines.append(" ".join([*self.slots, operation]) + guard)

    def form(self, limit: int, prefer: int | None = None) -> Affine:
        """An index that stays within ``limit`` in the open scopes."""
        rng = self.rng
        for _ in range(6):
            kind = rng.random()
            if not self.open or kind < 0.05:
                return Affine((), rng.randrange(limit))
            depth = prefer if prefer is not None and rng.random() < 0.8 else rng.randrange(len(self.open))
            n = self.open[depth]
            if kind < 0.72 and n <= limit:
                shift = rng.randint(0, limit - n) if rng.random() < 0.4 else 0
                return Affine.iterator(depth) + shift
            if kind < 0.79 and n <= limit:
                return Affine.iterator(depth, -1) + (n - 1 + rng.randint(0, limit - n))
            if kind < 0.84 and n * 2 - 1 <= limit:
                return Affine.iterator(depth, 2)
            other = rng.randrange(len(self.open))
            if other != depth:
                for step in (self.open[other], 1):
                    if step * (n - 1) + self.open[other] <= limit:
                        return Affine.make([(depth, step), (other, 1)])
        fitting = [d for d, n in enumerate(self.open) if n <= limit]
        return Affine.iterator(rng.choice(fitting)) if fitting else Affine((), rng.randrange(limit))

    def looked_up(self, limit: int) -> str | None:
        """An index within ``limit`` through a table of its own; None where it does not fit."""
        rng = self.rng
        depths = rng.sample(range(len(self.open)), min(len(self.open), rng.choice((1, 1, 2))))
        room = limit
        rest = ""
        inner = [d for d, n in enumerate(self.open) if 1 < n <= limit and d not in depths]
        factor = rng.choice((1, 1, 2))
        if inner and rng.random() < 0.4:
            depth = rng.choice(inner)
            room, rest = limit - self.open[depth] + 1, f"+{{{depth}}}"
        most = (room - 1) // factor
        if not depths or most < 1 or math.prod(self.open[d] for d in depths) > 40:
            return None
        sizes = [self.open[d] for d in depths]
        if self.indexed:
            name = self.index_array(tuple(sizes), most)
            return f"{name}[{','.join(f'{{{d}}}' for d in depths)}]*{factor}{rest}"
        values = " ".join(str(rng.randint(0, most)) for _ in range(math.prod(sizes)))
        name = f"k{len(self.tables)}"
        self.tables.append(f"table {name} u8 [{', '.join(map(str, sizes))}] = {values}")
        return f"{name}[{','.join(f'{{{d}}}' for d in depths)}]*{factor}{rest}"

    def index_array(self, sizes: tuple[int, ...], most: int) -> str:
        """An array of whole numbers up to ``most``: an input, a copy of one, or one that is clamped."""
        rng, name = self.rng, f"i{len(self.indices)}"
        kind, nest = rng.random(), " ".join(map(str, sizes))
        at = ",".join(f"{{{d}}}" for d in range(len(sizes)))
        self.indices.append(_Array(name, sizes, rng.choice(("i32", "u8", "i64"))))
        if kind < 0.75:
            distinct = most + 1 >= math.prod(sizes) and rng.random() < 0.5
            self.domains.append(f"domain {name} 0 {most}{' distinct' * distinct}")
        if kind < 0.5:
            return name
        copy = _Array(f"j{name}", sizes, self.indices[-1].dtype)
        self.clamped.append(copy)
        if kind < 0.75:
            self.made.append(f"{nest} {copy.name}[{at}] = {name}[{at}]")
            return copy.name
        last = _Array(f"k{name}", sizes, copy.dtype)
        self.clamped.append(last)
        self.made.append(f"{nest} {copy.name}[{at}] = max({name}[{at}],0)")
        self.made.append(f"{nest} {last.name}[{at}] = min({copy.name}[{at}],{most})")
        return last.name

    def access(self, array: _Array, aligned: bool = True) -> str:
        index = []
        for k, size in enumerate(array.sizes):
            indirect = self.tabled or self.indexed
            looked = self.looked_up(size) if indirect and self.rng.random() < 0.4 else None
            if looked is not None:
                index.append(looked)
                continue
            prefer = k if aligned and k < len(self.open) and self.open[k] <= size else None
            index.append(str(self.form(size, prefer)))
        return f"{array.name}[{','.join(index)}]"

    def operand(self) -> str:
        roll = self.rng.random()
        if self.arrays and roll < 0.9:
            array = self.arrays[-1] if self.rng.random() < 0.6 else self.rng.choice(self.arrays)
            return self.access(array)
        if self.open and roll < 0.95:
            return f"{{{self.rng.randrange(len(self.open))}}}"
        return self.rng.choice(("2", "3") if self.whole else ("2", "3", "0.5"))

    def value(self) -> str:
        if self.rng.random() < 0.5:
            function = self.rng.choice(UNARY if not self.whole else UNARY_WHOLE)
            return f"{function}({self.operand()})" if function else self.operand()
        function = self.rng.choice(BINARY if not self.whole else BINARY_WHOLE)
        left, right = self.operand(), self.operand()
        if self.arrays and "[" not in left + right:
            left = self.access(self.arrays[-1])
        if not FUNCTIONS[function].infix:
            return f"{function}({left},{right})"
        if function == "*" and self.rng.random() < 0.2:
            return f"fma({left},{right},{self.operand()})"
        return f"{left} {function} {right}"

    def place(self, sizes: list[int]) -> None:
        """Open scopes for a nest over ``sizes``, within scopes of the line before where they are alike."""
        every = self.outer + sizes
        bars = least = len(self.outer) if self.lines else 0
        if self.lines and self.rng.random() < 0.6:
            while bars < min(len(self.open), len(every)) and self.open[bars] == every[bars]:
                bars += 1
            if bars > least and self.rng.random() < 0.25:
                bars = self.rng.randint(least, bars)
        self.loops(bars, every[bars:])

    def stage(self, name: str, last: bool) -> None:
        """Define an array: a map, a tiled or cut map, a reduction, an overlapping sum, or in two steps.

        Under the outer scopes an array has their dimensions, or is written anew in each iteration.
        """
        rng = self.rng
        if self.lines and rng.random() < 0.25:
            self.outer, self.open = [], []
        base = len(self.outer)
        held = self.outer if last or rng.random() < 0.6 else []
        rank = rng.choice((0, 1, 1, 1, 2, 2)) if base < 2 else rng.choice((0, 1, 1))
        sizes = [self.size() for _ in range(rank)]
        kind = rng.random()

        def cell(*index: str) -> str:
            return f"{name}[{','.join([f'{{{d}}}' for d in range(len(held))] + list(index))}]"

        def iterators(count: int) -> list[str]:
            return [f"{{{base + d}}}" for d in range(count)]

        shape = sizes
        if kind < 0.35:
            self.place(sizes)
            self.line(f"{cell(*iterators(rank))} = {self.value()}")
        elif kind < 0.45 and rank:  # tiles
            axis, factor = rng.randrange(rank), rng.choice((2, 3, 4))
            step = factor if rng.random() < 0.75 else rng.randint(1, factor)  # tiles may overlap
            shape = [(n - 1) * step + factor if d == axis else n for d, n in enumerate(sizes)]
            self.place([*sizes[: axis + 1], factor, *sizes[axis + 1 :]])
            index = [f"{{{base + (d if d <= axis else d + 1)}}}" for d in range(rank)]
            index[axis] = f"{{{base + axis}}}*{step}+{{{base + axis + 1}}}"
            self.line(f"{cell(*index)} = {self.value()}")
        elif kind < 0.52 and rank and sizes[-1] > 1:  # in two parts
            cut = rng.randint(1, sizes[-1] - 1)
            index = iterators(rank)
            self.place([*sizes[:-1], cut])
            self.line(f"{cell(*index)} = {self.value()}")
            self.place([*sizes[:-1], sizes[-1] - cut])
            self.line(f"{cell(*index[:-1], f'{index[-1]}+{cut}')} = {self.value()}")
        elif kind < 0.6 and rank:  # an overlapping sum
            extra = rng.choice((2, 3))
            shape = [*sizes[:-1], sizes[-1] + extra - 1]
            self.place(shape)
            self.line(f"{cell(*iterators(rank))} = 0")
            self.place([*sizes, extra])
            index = iterators(rank)
            self.line(f"{cell(*index[:-1], f'{index[-1]}+{{{base + rank}}}')} += {self.value()}")
        else:
            self.reduction(sizes, cell, base)
        array = _Array(name, (*held, *shape), self.dtype)
        self.arrays.append(array)
        if rng.random() < 0.15 and shape and shape == [max(2, n) for n in shape]:  # a scan, shift or update
            self.place([n - 1 for n in shape])
            index = iterators(rank)
            if rng.random() < 0.4:  # from the end
                index = [f"-{i}+{n - 2}" for i, n in zip(index, shape, strict=True)]
            here = cell(*index)
            there = cell(*(f"{i}+1" for i in index))
            first, second = rng.choice(((here, there), (there, here), (here, here)))
            self.line(f"{first} = {second}*{rng.choice(('2', second))}")
        if self.indexed and shape and rng.random() < 0.5:
            self.place([self.size() for _ in range(rng.choice((1, 1, 2)))])
            places = [self.looked_up(n) or str(self.form(n)) for n in shape]
            self.line(f"{cell(*places)} {rng.choice(('', '', '', '+', 'max'))}= {self.value()}")

    def reduction(self, sizes: list[int], cell: Callable[..., str], base: int) -> None:
        rng, rank = self.rng, len(sizes)
        sign = rng.choice(("+", "+", "+", "max", "min", "*"))
        start = {"+": "0", "*": "1", "max": "-inf", "min": "inf"}[sign]
        if rng.random() < 0.15:
            start = "2"
        self.place(sizes)
        if rng.random() < 0.15:
            start = self.access(rng.choice(self.arrays))
        self.line(f"{cell(*(f'{{{base + d}}}' for d in range(rank)))} = {start}")
        every = sizes + [self.size() for _ in range(rng.choice((1, 1, 2)))]
        order = list(range(len(every)))
        if rng.random() < 0.3:
            rng.shuffle(order)
        self.place([every[d] for d in order])
        index = [f"{{{base + order.index(d)}}}" for d in range(rank)]
        term = self.value()
        if rng.random() < 0.12:  # which reads what it is added to
            form = rng.choice(("{1}", "{0} {2} {1}", "{1} {2} {0}"))
            term = form.format(self.operand(), cell(*index), rng.choice(("+", "-", "*")))
        self.line(f"{cell(*index)} {sign}= {term}")

    def input_dtype(self) -> str:
        narrower = self.mixed and self.rng.random() < 0.7
        return self.rng.choice(NARROWER[self.dtype]) if narrower else self.dtype

    def conversion(self) -> None:
        """An array of a narrower dtype, converted: the one way to make one."""
        source = self.arrays[-1]
        dtype = self.rng.choice(NARROWER[self.dtype])
        self.loops(0, list(source.sizes))
        at = ",".join(f"{{{d}}}" for d in range(len(source.sizes)))
        self.line(f"n[{at}] = {dtype}({source.name}[{at}])")
        if "if" not in self.lines[-1]:
            self.arrays.append(_Array("n", source.sizes, dtype))
        else:  # a hole in it
            self.lines.pop()
            self.open = []

    def keyed(self) -> list[_Array]:
        """The extreme elements of an array and their places by keys; both, as outputs or to go on with."""
        rng = self.rng
        fitting = [a for a in self.arrays if a.sizes]
        if not fitting:
            return []
        source = rng.choice(fitting)
        outer, n = list(source.sizes[:-1]), source.sizes[-1]
        at = [f"{{{d}}}" for d in range(len(outer))]
        cell, places = ",".join(at), f"{{{len(outer)}}}"
        way, key = rng.choice(("max", "max", "min")), rng.choice(("maxkey", "maxkey", "minkey"))
        self.loops(0, outer)
        self.line(f"z[{cell}] = {'-inf' if way == 'max' else 'inf'}")
        self.loops(rng.choice((0, len(outer))), [])
        self.loops(len(self.open), [*outer[len(self.open) :], n])
        place = rng.choice((places, f"-{places}+{n - 1}", f"{places}*2+1"))
        self.line(f"z[{cell}] {way}= {key}({source.name}[{','.join([*at, places])}],{place})")
        self.loops(0, outer)
        self.line(f"zi[{cell}] = keyindex(z[{cell}])")
        self.loops(rng.choice((0, len(outer))), [])
        self.loops(len(self.open), outer[len(self.open) :])
        self.line(f"zv[{cell}] = keyvalue(z[{cell}])")
        kind, compared = key_of(source.dtype)
        made = [_Array("z", tuple(outer), kind), _Array("zi", tuple(outer), "i64")]
        value = _Array("zv", tuple(outer), compared)
        if holds(self.dtype, compared):
            self.arrays.append(value)
            return made
        return [*made, value]

    def products(self) -> list[_Array]:
        """Sums of products of bytes in groups of four, as an instruction takes them; and its inputs."""
        groups = self.rng.choice((1, 2))
        rows, bytes_ = _Array("a", (groups * 4,), "u8"), _Array("b", (groups, 4, 4), "i8")
        self.lines += ["4 m[{0}] = 0", f"{groups} 4 4 m[{{1}}] += a[{{0}}*4+{{2}}]*b[{{0}},{{1}},{{2}}]"]
        self.open = [groups, 4, 4]
        self.arrays += [rows, bytes_, _Array("m", (4,), "i32")]
        return [rows, bytes_]

    def text(self) -> str:
        rng = self.rng
        inputs = [
            _Array(name, tuple(self.size() for _ in range(rng.choice((1, 1, 2)))), self.input_dtype())
            for name in ("x", "w")[: rng.choice((1, 1, 2))]
        ]
        self.arrays += inputs
        if self.mixed and self.dtype == "i32" and rng.random() < 0.4:
            inputs += self.products()
        elif self.mixed and rng.random() < 0.5:
            self.conversion()
        keyed = self.keyed() if rng.random() < 0.1 else []
        stages = rng.choice((1, 2, 2, 3, 3, 4))
        for name in "tuvsq"[: stages - 1]:
            self.stage(name, False)
        self.stage("y", True)
        given = {a.name for a in inputs}
        free = [a.name for a in self.arrays[:-1] if a.name not in given]
        often = rng.choice((0.0, 0.1, 0.5))
        outputs = ["y"] + [name for name in free if rng.random() < often] + ["zi"] * bool(keyed)
        every = [*self.arrays, *self.indices, *self.clamped, *keyed]
        named = ", ".join(a.name for a in [*inputs, *self.indices])
        lines = ["kernel k", f"in {named}", "out " + ", ".join(outputs), *self.domains, *self.tables]
        lines += [f"{a.name} {a.dtype} [{', '.join(map(str, a.sizes))}] heap" for a in every]
        return "\n".join([*lines, *self.made, *self.lines]) + "\n"


def random_plain(rng: random.Random) -> Program | None:
    """A program with all buffers on the heap, whole and unshared; None where the dice gave nonsense."""
    try:
        program = _live(parse(_Writer(rng).text()))
    except TextError:
        return None
    if any(math.prod(s.size for s in leaf.scopes) > INSTANCES for leaf in program.leaves):
        return None
    outcome = oracle.run(program)
    return program if outcome.fault is None and outcome.defined else None


def random_chain(rng: random.Random) -> Program:
    """What the one-pass moves look for, or nearly: differences, exponentials and their sum by rows, in arrays
    that are sometimes written over."""
    while True:
        try:
            program = _live(parse(_chain(rng)))
        except TextError:  # a read before any write
            continue
        outcome = oracle.run(program)
        if outcome.fault is None and outcome.defined:
            return program


def _chain(rng: random.Random) -> str:
    rows, columns = rng.choice((1, 2, 3)), rng.choice((2, 3, 4))
    nest, whole, row = f"{rows} {columns} ", "[{0},{1}]", "[{0}]"
    lines = [f"{rows} u{row} = w{row}"]
    last = "x"

    def step(*forms: str) -> None:
        nonlocal last
        into = rng.choice("dde")
        reads = rng.choice((last, last, last, "x", "d"))
        lines.append(nest + rng.choice(forms).format(into + whole, reads + whole, rng.choice("uuw") + row))
        last = into

    for _ in range(rng.choice((0, 1, 1))):
        step("{0} = {1}")
    for _ in range(rng.choice((1, 1, 2))):
        step("{0} = {1} - {2}")
    if rng.random() < 0.6:
        step("{0} = exp({1})")
        term = last + whole
    else:
        term = f"{last}{whole}*{last}{whole}"
    if rng.random() < 0.3:  # something is written over before the sum
        lines.append(rng.choice((f"{rows} u{row} = 2", f"{nest}d{whole} = x{whole}")))
    lines += [f"{rows} s{row} = 0", f"{'| ' * (rng.random() < 0.5) or f'{rows} '}{columns} s{row} += {term}"]
    lines.append(f"{rows} y{row} = s{row}" + rng.choice(("", f" + u{row}", f" + d{row[:-1]},0]")))
    text = "\n".join(lines)
    used = [name for name in "deus" if f"{name}[" in text]
    shapes = {name: f"{rows}, {columns}" if name in "xde" else str(rows) for name in ["x", "w", *used, "y"]}
    buffers = "\n".join(f"{name} f32 [{shape}] heap" for name, shape in shapes.items())
    return f"kernel k\nin x, w\nout y\n{buffers}\n{text}\n"


def _live(program: Program) -> Program:
    """Without operations whose result reaches no output."""
    while True:
        wanted = {a.array for leaf in program.leaves for a in leaf.op.reads} | set(program.outputs)
        dead = next((leaf for leaf in program.leaves if leaf.op.target.array not in wanted), None)
        if dead is None:
            return program
        path = dead.path
        while len(path) > 1 and len(program.siblings(path)) == 1:
            path = path[:-1]
        program = program.edit(body=splice(program.body, path, 1, ()))


def storage_steps(program: Program, rng: random.Random) -> list[Program]:
    """Programs that differ from this one in one choice of storage or in one parallel scope: perhaps valid."""
    found: list[Program] = []

    def with_buffers(*buffers: Buffer) -> None:
        found.append(program.edit(buffers=buffers))

    free = [b for b in program.buffers if program.interface.isdisjoint(b.arrays)]
    for buffer in free:
        others = tuple(b for b in program.buffers if b is not buffer)
        for k, dim in enumerate(buffer.dims):
            changed = replace(dim, materialised=not dim.materialised)
            with_buffers(*others, replace(buffer, dims=(*buffer.dims[:k], changed, *buffer.dims[k + 1 :])))
        for location in ("heap", "stack", "register"):
            if location != buffer.location:
                with_buffers(*others, replace(buffer, location=location))
        for other in program.buffers:
            alike = (other.dtype, other.dims, other.location) == (buffer.dtype, buffer.dims, buffer.location)
            if other is buffer or not alike or any(a in program.inputs for a in other.arrays):
                continue
            shared = replace(other, arrays=buffer.arrays + other.arrays)
            with_buffers(*(shared if b is other else b for b in others))
    for node, path, above in walk(program.body):
        if isinstance(node, Scope) and not node.mark and not any(s.mark == "p" for s in above):
            below = any(isinstance(n, Scope) and n.mark == "p" for n, _, _ in walk(node.body))
            if not below:
                body = splice(program.body, path, 1, (replace(node, mark="p"),))
                found.append(program.edit(body=body))
    rng.shuffle(found)
    return found


def random_program(
    rng: random.Random, judged: Callable[[Program, bool, oracle.Outcome], None] | None = None
) -> Program:
    """A program that is valid by the oracle and by the judge under test, with some storage chosen.

    ``judged`` is told of each choice tried: the program, whether the judge allows it, and the oracle's view.
    """
    program: Program | None = None
    while program is None:
        program = random_plain(rng)
    for _ in range(rng.choice((0, 2, 4, 6))):
        steps = storage_steps(program, rng)[:4]
        for step in steps:
            allowed = storage_fault(step) is None
            outcome = oracle.run(step)
            if judged is not None:
                judged(step, allowed, outcome)
            if allowed and outcome.fault is None and mark_fault(step, SMALL, "reassoc") is None:
                program = step
                break
    return parse(program.text)


def programs() -> st.SearchStrategy[Program]:
    """Valid random programs for hypothesis."""
    return st.randoms(use_true_random=False).map(random_program)
