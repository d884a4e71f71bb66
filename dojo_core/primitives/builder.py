"""A kernel in the making: its inputs, its outputs, and the passes over arrays that primitives add."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dojo_core.faults import text_fault
from dojo_core.primitives.array import Array, BuildError, axis_of, identifier, is_identifier
from dojo_core.primitives.elision import accessing, goes_along, inverse, without_copies
from dojo_core.program.affine import Affine
from dojo_core.program.expressions import TextError
from dojo_core.program.tables import Index, composed
from dojo_core.program.text import parse
from dojo_core.program.tree import (
    NUMBER_DTYPES,
    Access,
    Buffer,
    Dim,
    Domain,
    Node,
    Number,
    Op,
    Program,
    Scope,
    substituted,
    summary,
)

Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Input:
    dtype: str
    shape: Shape
    domain: tuple[float, float] | None
    distinct: bool = False


@dataclass(frozen=True)
class _Output:
    """``index`` has, for each of the output's axes, its form over the dimensions of the stored array."""

    stored: str
    shape: Shape
    index: tuple[Affine, ...]


class Builder:
    """A kernel in the making: arrays, and operations on them; an operation is a pass over its result."""

    def __init__(self, name: str) -> None:
        """``name`` is the kernel's. Raises BuildError where the text form does not take it."""
        self.name = _checked(name, "a kernel")
        self.inputs: dict[str, _Input] = {}
        self.outputs: dict[str, _Output] = {}
        self.constants: dict[str, np.ndarray[Any, Any]] = {}  # inputs that the caller binds to these values
        self.temporaries: dict[str, tuple[str, tuple[int, ...]]] = {}  # dtype and sizes, as declared
        self.names: dict[str, str] = {}  # wished for
        self.body: list[Node] = []
        self.tables = self.table_values = 0  # how many, and their values together
        self.reserved: set[str] = set()  # names of tables

    # -------------------------------------------------------------- interface

    def input(
        self,
        name: str,
        dtype: str,
        shape: Iterable[int],
        domain: tuple[float, float] | None = None,
        distinct: bool = False,
    ) -> Array:
        """An input; ``domain`` is the promise that its values lie between the two, ``distinct`` that no two
        of them are the same: whole numbers of a domain that has as many.

        One without elements is left out of the text. Raises BuildError for a name, dtype, size or promise
        that the text form does not take.
        """
        _checked(name, "an input")
        checked_dtype(dtype)
        sizes = tuple(shape)
        if distinct and domain is None:
            raise BuildError(f"The input {name} is distinct in no domain: say between which values it lies.")
        if name in self.inputs:
            raise BuildError(f"There is an input {name} already: give each its own name.")
        if any(isinstance(size, bool) or not isinstance(size, int) or size < 0 for size in sizes):
            raise BuildError(f"The input {name} has the shape {list(sizes)}: sizes are whole numbers.")
        axes = tuple(map(axis_of, sizes))
        if 0 in sizes:
            return Array(dtype, Number(0), axes)
        self.inputs[name] = _Input(dtype, sizes, domain, distinct)
        return Array(dtype, Access(name, _places(sizes)), axes)

    def output(self, name: str, array: Array) -> None:
        """Give an array to the caller. What is an input, a view or another output is copied.

        Raises BuildError for a name that is taken, and for an array without elements.
        """
        _checked(name, "an output")
        if name in self.outputs:
            raise BuildError(f"There is an output {name} already: give each its own name.")
        if name in self.reserved:
            raise BuildError(f"A table has the name {name}: give the output another.")
        if name in self.inputs:
            raise BuildError(f"{self.name} has an input and an output of the name {name}: rename one.")
        if array.empty:
            raise BuildError(
                f"The output {name} has the shape {list(array.shape)} and no elements: leave it out."
            )
        stored = self._stored(array)
        if stored is None:
            array = self.copy(array, whole=True)
            stored = self._stored(array)
            assert stored is not None
        self.outputs[name] = stored

    def named(self, array: Array, name: str) -> Array:
        """The same array; where it is a temporary, the text calls it so, or as near as may be."""
        if isinstance(array.operand, Access) and array.operand.array in self.temporaries:
            self.names[array.operand.array] = identifier(name)
        return array

    def bound(self, name: str, dtype: str, values: np.ndarray[Any, Any]) -> str:
        """An input for known values, which the caller binds: they are in ``constants``. Gives its name."""
        key = _unlike(identifier(name), {*self.inputs, *self.outputs, *self.reserved, *self.temporaries})
        finite = values[np.isfinite(values)]
        domain = (float(finite.min()), float(finite.max())) if finite.size == values.size else None
        self.inputs[key] = _Input(dtype, values.shape, domain)
        self.constants[key] = values
        return key

    # -------------------------------------------------------------- passes

    def temporary(self, dtype: str, sizes: Sequence[int], name: str = "") -> str:
        """Declare an array; gives what ``Access`` and ``named`` know it by."""
        key = f"t{len(self.temporaries) + 1}"
        while key in self.inputs:
            key += "_"
        self.temporaries[key] = dtype, tuple(sizes)
        if name:
            self.names[key] = identifier(name)
        return key

    def add(self, *nodes: Node) -> None:
        """Append to the body of the program."""
        self.body.extend(nodes)

    def copy(self, array: Array, whole: bool = False, name: str = "") -> Array:
        """A pass that copies a view into an array of its own, whose axes have one factor each.

        Along axes on which no element depends the copy is broadcast, unless ``whole``.
        """
        if array.empty:
            return array
        used = range(len(array.factors)) if whole else array.used
        kept = [k for k in range(len(array.axes)) if any(n in used for n in array.numbers(k))]
        loops = [n for k in kept for n in array.numbers(k)]
        depths = {n: Affine.iterator(d) for d, n in enumerate(loops)}
        stored = self.temporary(array.dtype, [array.shape[k] for k in kept], name)
        index = tuple(joined(array.axes[k], [depths[n] for n in array.numbers(k)]) for k in kept)
        op = Op(Access(stored, index), "", "", (substituted(array.operand, depths),))
        self.add(*nest([array.factors[n] for n in loops], (op,)))
        axes = tuple(map(axis_of, array.shape))
        places = tuple(Affine.iterator(sum(map(len, axes[:k]))) for k in kept)
        return Array(array.dtype, Access(stored, places), axes)

    # -------------------------------------------------------------- the text

    def text(self) -> str:
        """The canonical text. Raises BuildError beyond the limits of the text form."""
        return self.program().text

    def program(self) -> Program:
        """The program, without what no output needs. Raises BuildError beyond the limits of the text form."""
        draft = self.draft()
        try:
            return parse(draft.text)
        except TextError as error:
            raise BuildError(f"{self.name} makes no program. {text_fault(error)}") from error

    def draft(self) -> Program:
        """The program before its text is read: it may be beyond the limits of the text form. Raises
        BuildError where it has no output."""
        if not self.outputs:
            raise BuildError(f"{self.name} has no output: give it one.")
        stored = frozenset(output.stored for output in self.outputs.values())
        body = without_copies(_needed(self.body, stored), self.temporaries, stored)
        needed = set(stored).union(*map(_accessed, body))
        names = self._names(needed)
        buffers = [_buffer(name, each.dtype, each.shape) for name, each in self.inputs.items()]
        for name, output in self.outputs.items():
            buffers.append(_buffer(name, self.temporaries[output.stored][0], output.shape))
        places = {output.stored: output.index for output in self.outputs.values()}
        for key in self.temporaries:
            if key in needed and key not in places:
                buffers.append(_buffer(names[key], *self.temporaries[key]))
        return Program.make(
            self.name,
            tuple(self.inputs),
            tuple(self.outputs),
            tuple(buffers),
            tuple(_renamed(node, names, places) for node in body),
            domains=tuple(Domain(name, *i.domain, i.distinct) for name, i in self.inputs.items() if i.domain),
        )

    def _names(self, needed: set[str]) -> dict[str, str]:
        """The final name of each array."""
        names = {name: name for name in self.inputs}
        names |= {output.stored: name for name, output in self.outputs.items()}
        taken = {*names.values(), *self.reserved}
        for key in self.temporaries:
            if key in needed and key not in names:
                names[key] = _unlike(self.names.get(key, key), taken)
                taken.add(names[key])
        return names

    def _stored(self, array: Array) -> _Output | None:
        """An array as an output, where what it views may be stored in its order: None where it may not."""
        operand = array.operand
        if not isinstance(operand, Access) or operand.array not in self.temporaries:
            return None
        if operand.array in {output.stored for output in self.outputs.values()}:
            return None
        sizes = self.temporaries[operand.array][1]
        factors = array.factors
        places: dict[int, Affine] = {}  # of each factor, from the indices of the stored array
        for dim, form in enumerate(operand.index):
            along = goes_along(form)
            if along is None or factors[along] != sizes[dim]:
                return None
            places[along] = inverse(form, dim)
        if len(places) < max(len(factors), len(sizes)):
            return None
        index = tuple(
            joined(axis, [places[n] for n in array.numbers(k)]) for k, axis in enumerate(array.axes)
        )
        return _Output(operand.array, array.shape, index)


def nest(sizes: Sequence[int], body: tuple[Node, ...]) -> tuple[Node, ...]:
    """Nodes within scopes of these sizes, the first the outermost."""
    for size in reversed(sizes):
        body = (Scope(size, body),)
    return body


def checked_dtype(dtype: str) -> str:
    """Raises BuildError for a dtype that there is not."""
    if dtype not in NUMBER_DTYPES:
        raise BuildError(f"There is no dtype {dtype!r}. The dtypes are {', '.join(NUMBER_DTYPES)}.")
    return dtype


def _checked(name: str, what: str) -> str:
    if not is_identifier(name):
        raise BuildError(f"{name!r} cannot be the name of {what}: take another one of letters, digits and _.")
    return name


def _places(sizes: Sequence[int]) -> tuple[Affine, ...]:
    """The index of the element at all iterators: 0 along dimensions of size 1, which have none."""
    forms: list[Affine] = []
    number = 0
    for size in sizes:
        forms.append(Affine() if size == 1 else Affine.iterator(number))
        number += size != 1
    return tuple(forms)


def joined(axis: Sequence[int], forms: Sequence[Affine]) -> Affine:
    """The place along an axis from those along its factors."""
    total = Affine()
    for size, form in zip(axis, forms, strict=True):
        total = total * size + form
    return total


def _unlike(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _buffer(name: str, dtype: str, sizes: Sequence[int]) -> Buffer:
    return Buffer(name, dtype, tuple(map(Dim, sizes)), "heap", (name,))


def _needed(body: Iterable[Node], wanted: Iterable[str]) -> list[Node]:
    """The nodes that write what is wanted, or what those read.

    Within a scope order does not tell what is needed: an iteration may read what the one before wrote.
    """
    needed = set(wanted)
    kept: list[Node] = []
    for node in reversed(list(body)):
        while True:
            left = _writing(node, needed)
            reads = _reads(left) if left is not None else set()
            if reads <= needed:
                break
            needed |= reads
        if left is not None:
            kept.append(left)
    return kept[::-1]


def _writing(node: Node, needed: set[str]) -> Node | None:
    if isinstance(node, Op):
        return node if node.target.array in needed else None
    body = tuple(child for child in (_writing(c, needed) for c in node.body) if child is not None)
    return replace(node, body=body) if body else None


def _reads(node: Node) -> set[str]:
    if isinstance(node, Op):
        return {access.array for access in node.reads}
    return set().union(*map(_reads, node.body))


def _accessed(node: Node) -> set[str]:
    return set(summary((node,)).first_accessed)


def _renamed(node: Node, names: Mapping[str, str], places: Mapping[str, tuple[Affine, ...]]) -> Node:
    """With final names, and what became an output at its place there."""
    if isinstance(node, Scope):
        return replace(node, body=tuple(_renamed(child, names, places) for child in node.body))

    def access(old: Access) -> Access:
        index: tuple[Index, ...] = old.index
        if old.array in places:
            index = tuple(composed(form, dict(enumerate(old.index))) for form in places[old.array])
        return Access(names[old.array], index)

    return accessing(node, access)
