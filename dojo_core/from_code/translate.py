"""From a text of another language to a program, with its sizes as parameters, checked on random inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any, ClassVar, Protocol

import numpy as np

from dojo_core.faults import program_fault
from dojo_core.from_code import c, python
from dojo_core.from_code.numeric import MOST_CELLS, Numeric
from dojo_core.from_code.onnx_reading import read_onnx
from dojo_core.from_code.products import spec_of
from dojo_core.from_code.python_loops import as_c, has_loops
from dojo_core.from_code.recognise import foreign, kind_of
from dojo_core.from_code.shapes import Came, axes_of_inputs, first_sizes
from dojo_core.from_code.source import SAY_SHAPES, TOLERANCE, Declared, Misfit, Source, Unchecked, size_of
from dojo_core.from_code.symbolic import Symbolic
from dojo_core.from_code.walk import Walk
from dojo_core.primitives import Builder, BuildError, identifier
from dojo_core.program.dtypes import OF_BITS
from dojo_core.program.expressions import TextError
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import Node, Program, Scope

Values = dict[str, np.ndarray[Any, Any]]

NAMES = {"python": "Python", "einsum": "an einsum", "c": "C", "onnx": "ONNX"}
# Sizes that a translation is checked at, no two neighbours alike: any, descending (windows, which are shorter
# than what they slide over, come last), even ones, multiples of 8.
_SMALL = (
    (5, 4, 7, 3, 6, 9), (11, 9, 8, 7, 6, 5, 3, 2), (4, 6, 8, 10, 12, 14), (8, 16, 24, 32, 40, 48)
)  # fmt: skip
TRIED_CELLS = 2**18  # of an array while shapes are tried
_NARROWER = ("f32", "f16", "bf16")


class Reading(Protocol):
    """A text that was read, whose sizes are open."""

    tolerance: ClassVar[float]  # of a difference between its values and the program's

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """Of each input: names of sizes, or numbers; empty: as the program's."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """By name, as the text has them."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not word for word the same in the program."""

    def program(self, sizes: Mapping[str, int]) -> Program:
        """Raises TextError."""

    def values(self, sizes: Mapping[str, int], inputs: Values) -> Values:
        """The outputs, by a walk of the text over values. Raises TextError, and Unchecked where that is not
        done."""


@dataclass(frozen=True)
class Translation:
    """What became of a text.

    ``checked`` tells at which sizes it was compared with what the text says, and how near the two were;
    ``notes`` what is not word for word the same.
    """

    kind: str
    program: Program
    axes: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, int]
    checked: str
    notes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What was read, in a line."""
        inputs = ", ".join(f"{name}[{', '.join(axes)}]" for name, axes in self.axes.items())
        return f"Read as {NAMES[self.kind]}: {self.program.name} of {inputs}."

    @property
    def told(self) -> list[str]:
        """Sentences on what was read, at which sizes, how it was checked, and what is not the same."""
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        return [f"{self.sentence} {sizes}".strip(), self.checked, *self.notes]


def translate(text: str, sizes: Mapping[str, int] | None = None, lenient: bool = False) -> Translation:
    """A text in NumPy or PyTorch, an einsum, loops in C or operators of ONNX as a program; ``sizes`` by name
    in place of the text's own; where it is ``lenient`` those that the text has not are left out. Nothing of
    the text is run.

    Raises TextError: with the place of a mistake, or, of a text of another kind, what it is and how it would
    be written.
    """
    kind = kind_of(text)
    reading = read(text, kind)
    chosen = dict(reading.sizes)
    for name, size in (sizes or {}).items():
        if name not in chosen and lenient:
            continue
        if name not in chosen:
            known = ", ".join(chosen) or "none"
            raise TextError(f"there is no size {name}", f"The sizes of this text: {known}.")
        chosen[name] = size_of(name, size)
    program = reading.program(chosen)
    axes = reading.axes or {
        name: tuple(str(d.size) for d in program.buffer_of[name].dims) for name in program.inputs
    }
    return Translation(kind, program, axes, chosen, check(reading, chosen, program), reading.notes)


def read(text: str, kind: str) -> Reading:
    """A text of this kind with its sizes open. Raises TextError."""
    match kind:
        case "python":
            source = Source(text)
            tree = python.parsed(source)
            return c.reading_of(as_c(source, tree)) if has_loops(tree) else read_python(source)
        case "einsum":
            return read_einsum(text)
        case "c":
            return c.read(Source(text))
        case "onnx":
            return read_onnx(text)
    known = foreign(text) if kind == "foreign" else None
    if known is not None:
        raise TextError(f"this is {known.what}", known.remedy)
    raise TextError(
        "this is no text that is known here",
        "Paste a program of the Dojo, a saved game, NumPy or PyTorch, an einsum such as ij,jk->ik, loops in "
        "C, or an operator of ONNX.",
    )


# ---------------------------------------------------------------------------- Python, and einsums


@dataclass(frozen=True)
class PythonReading:
    """NumPy or PyTorch: the same walk, over values and over a program in the making."""

    tolerance: ClassVar[float] = TOLERANCE
    kernel: python.Kernel
    axes: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return identifier(self.kernel.name)

    def _dtype(self, name: str) -> str:
        return self.kernel.declared.get(name, Declared(())).dtype

    def _shape(self, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(int(axis) if axis.isdigit() else sizes[axis] for axis in self.axes[name])

    def program(self, sizes: Mapping[str, int]) -> Program:
        b = Builder(self.name)
        m = Symbolic(b)
        # A text may have a name for an array that has another meaning in a program.
        names = {name: identifier(name) for name in self.kernel.inputs}
        try:
            given = {
                name: m.input(names[name], self._shape(name, sizes), self._dtype(name))
                for name in self.kernel.inputs
            }
            for name, array in Walk(self.kernel, m).results(given).items():
                b.output(identifier(name), array)
            program = b.program()
        except BuildError as error:
            raise TextError(str(error).rstrip("."), "Look at the shapes and the sizes.") from error
        fault = program_fault(program)
        if fault is not None:
            raise TextError(
                fault.splitlines()[0].rstrip("."), "Write it otherwise, or in the Dojo's own form."
            )
        return program

    def values(self, sizes: Mapping[str, int], inputs: Values) -> Values:
        m = Numeric()
        try:
            given = {
                name: m.input(
                    name,
                    self._shape(name, sizes),
                    self._dtype(name),
                    inputs.get(identifier(name), np.ones(self._shape(name, sizes))),
                )
                for name in self.kernel.inputs
            }
        except BuildError as error:
            raise TextError(str(error).rstrip("."), "Take smaller sizes.") from error
        return {identifier(n): v for n, v in Walk(self.kernel, m).results(given).items()}


def read_python(source: Source) -> PythonReading:
    """NumPy or PyTorch, with the axes of its inputs. Raises TextError."""
    kernel = python.read(source)

    def attempt(shapes: Mapping[str, tuple[int, ...]]) -> Came:
        m = Numeric(TRIED_CELLS)
        walk = Walk(kernel, m)
        try:
            given = {
                name: m.input(name, shape, kernel.declared.get(name, Declared(())).dtype)
                for name, shape in shapes.items()
            }
            walk.results(given)
        except BuildError as error:
            return Came(0, Misfit(str(error).rstrip("."), SAY_SHAPES))
        except Misfit as misfit:
            return Came(walk.steps, misfit)
        return Came(math.inf)

    return _begun(kernel, axes_of_inputs(kernel.inputs, kernel.declared, attempt))


def read_einsum(text: str) -> PythonReading:
    """An einsum by its form alone, ``mk,kn->mn``: its letters are its sizes. Raises TextError."""
    spec = "".join(text.split()).strip("\"'")
    count = spec.partition("->")[0].count(",") + 1
    try:
        names, _ = spec_of(spec, count)
    except BuildError as error:
        raise TextError(str(error).rstrip("."), "Write it as mk,kn->mn.", 1, 1, text.strip()) from error
    arrays = list("abcdefgh"[:count])
    source = Source(f'einsum("{spec}", {", ".join(arrays)})')
    kernel = python.read(source)
    declared = {array: Declared(axes) for array, axes in zip(arrays, names, strict=True)}
    axes = {array: each.axes for array, each in declared.items()}
    return _begun(kernel, axes)


def _begun(kernel: python.Kernel, axes: Mapping[str, tuple[str, ...]]) -> PythonReading:
    """A text at the first sizes at which it is a program."""

    def goes(sizes: Mapping[str, int]) -> bool:
        try:
            PythonReading(kernel, axes, sizes).program(sizes)
        except TextError:
            return False
        return True

    return PythonReading(kernel, axes, first_sizes(axes, goes))


# ---------------------------------------------------------------------------- the check


def check(reading: Reading, sizes: Mapping[str, int], program: Program) -> str:
    """Compare the program with a walk of the text over the same random values, at small sizes where the text
    allows, else at its own. A sentence; raises TextError where the two differ."""
    small = [dict(zip(sizes, cycle(each), strict=False)) for each in _SMALL] if sizes else []
    reason = "at these sizes that takes too long"
    for at in (*small, sizes):
        try:
            judged = program if at is sizes else reading.program(at)
        except TextError:
            continue  # the text needs sizes of its own, such as a multiple of 8
        cells = sum(math.prod(d.size for d in each.dims) for each in judged.buffers)
        steps = sum(math.prod(scope.size for scope in leaf.scopes) for leaf in judged.leaves)
        if max(cells, steps) > MOST_CELLS:
            break
        rng = np.random.default_rng(0)
        inputs = {name: _drawn(judged, name, rng) for name in judged.inputs}
        try:
            expected = reading.values(at, inputs)
        except Unchecked as unchecked:
            reason = str(unchecked)
            continue
        difference = _difference(interpret(_in_f64(judged), inputs), expected)
        if not difference <= reading.tolerance:
            raise TextError(
                "the program that was made of this text computes something else",
                "This is a fault of the translation: please report the text. Until then write the kernel in "
                "the Dojo's own form.",
            )
        told = ", ".join(f"{name}={size}" for name, size in at.items())
        near = "bit for bit the same" if difference == 0 else f"the largest difference is {difference:.0e}"
        return f"Checked against the text on random inputs{' at ' + told if told else ''}: {near}."
    return f"Not checked against the text: {reason}."


def _in_f64(program: Program) -> Program:
    """The program in f64, for a text is judged in float64: f32 is rounded before a comparison, f16 and bf16
    at each step. One of keys, which hold an f32 and its place, stays as it is."""
    if any(leaf.op.function in OF_BITS for leaf in program.leaves):
        return program

    def wide(node: Node) -> Node:
        if isinstance(node, Scope):
            return replace(node, body=tuple(map(wide, node.body)))
        return replace(node, function="f64") if node.function in _NARROWER else node

    buffers = tuple(replace(b, dtype="f64") if b.dtype in _NARROWER else b for b in program.buffers)
    body = tuple(map(wide, program.body))
    return Program.make(program.name, program.inputs, program.outputs, buffers, body)


def _drawn(program: Program, name: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Values in which no two are likely the same, positive and negative."""
    buffer = program.buffer_of[name]
    shape = tuple(d.size for d in buffer.dims)
    if buffer.dtype in ("f32", "f64"):
        return rng.uniform(-2, 2, shape).astype(np.float32).astype(np.float64)
    return rng.integers(0, 2 if buffer.dtype == "bool" else 3, shape)


def _difference(computed: Mapping[str, Any], expected: Mapping[str, Any]) -> float:
    """The largest, relative to the largest value; inf where shapes or NaNs differ."""
    largest = 0.0
    for name, value in computed.items():
        a, b = np.asarray(value, np.float64), np.asarray(expected[name], np.float64)
        if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
            return math.inf
        same = (a == b) | np.isnan(a)
        with np.errstate(invalid="ignore"):
            gap = np.where(same, 0, np.abs(a - b))
        finite = np.abs(b[np.isfinite(b)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        largest = max(largest, float(gap.max(initial=0)) / scale)
    return largest
