"""Functions in C whose loops are affine, with their sizes open."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from pycparser import c_ast

from dojo_core.from_code import c_values
from dojo_core.from_code.c_expressions import FUNCTIONS, named
from dojo_core.from_code.c_statements import Statements
from dojo_core.from_code.c_text import Text, nodes, read_text, type_of
from dojo_core.from_code.source import TOLERANCE, Source
from dojo_core.program.dtypes import FLOATS
from dojo_core.program.expressions import TextError
from dojo_core.program.tree import Program

_FIRST = {1: 65536, 2: 1024, 3: 256}  # sizes that a text has not, by how deep its loops are
_LEAST = 16


@dataclass(frozen=True)
class CReading:
    """A function in C whose sizes are open."""

    tolerance: ClassVar[float] = TOLERANCE
    text: Text
    function: Any
    sizes: Mapping[str, int]
    notes: tuple[str, ...]
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    made: dict[tuple[int, ...], Program] = field(default_factory=dict, repr=False)  # by sizes

    def program(self, sizes: Mapping[str, int]) -> Program:
        at = tuple(sizes.values())
        if at not in self.made:
            self.made[at] = Statements(self.text, self.function, sizes).program()
        return self.made[at]

    def values(
        self, sizes: Mapping[str, int], inputs: dict[str, np.ndarray[Any, Any]]
    ) -> dict[str, np.ndarray[Any, Any]]:
        return c_values.run(self.text, self.function, sizes, inputs, self.program(sizes))


def read(source: Source) -> CReading:
    """A function in C, or statements alone. Raises TextError."""
    return reading_of(read_text(source))


def reading_of(text: Text) -> CReading:
    """The last function of a text, at sizes to begin with. Raises TextError."""
    if not text.functions:
        text.source.fail(1, 1, "there is no function", "Write a function over arrays, with for loops.")
    function = list(text.functions.values())[-1]
    counted = _counted(text, function)
    first = _FIRST.get(_depth(function.body), 32)
    called = {
        node.name.name for node in nodes(function) if isinstance(node, c_ast.FuncCall) and named(node.name)
    }
    notes: tuple[str, ...] = ()
    if called & {"fmax", "fmaxf", "fmin", "fminf"}:
        notes = ("C's fmax and fmin leave a NaN out; max and min of a program keep it.",)
    plain = called & {name for name in FUNCTIONS if not name.startswith(("fma", "fmin", "M", "m"))}
    if plain:
        told = ", ".join(sorted(plain))
        notes += (f"{told} and numbers such as 0.5 are computed in the precision of what they stand beside.",)

    def at(size: int) -> CReading:
        sizes = {name: int(text.defined.get(name, size)) for name in counted}
        reading = CReading(text, function, sizes, notes)
        reading.program(sizes)
        return reading

    least = at(_LEAST)
    for size in (first, 64):  # the largest at which its arrays go into memory
        with suppress(TextError):
            return at(size)
    return least


def _depth(node: Any) -> int:
    inner = max((_depth(child) for _, child in node.children()), default=0)
    return inner + isinstance(node, c_ast.For)


def _counted(text: Text, function: Any) -> list[str]:
    """The names that are sizes: integers that the function is given, numbers that are defined, and in bare
    statements what loops go to."""
    names: list[str] = []
    arguments = function.decl.type.args
    for each in arguments.params if arguments is not None and not text.bare else ():
        if isinstance(each, c_ast.Decl) and isinstance(each.type, c_ast.TypeDecl):
            names += [each.name] if type_of(text.source, each) not in FLOATS else []
    used = [node.name for node in nodes(function) if isinstance(node, c_ast.ID)]
    used += [n.name for each in text.globals for n in nodes(each) if isinstance(n, c_ast.ID)]
    names += [name for name, value in text.defined.items() if isinstance(value, int) and name in used]
    if text.bare:
        own = {node.name for node in nodes(function) if isinstance(node, c_ast.Decl)}
        loops = [node for node in nodes(function) if isinstance(node, c_ast.For)]
        own |= {
            n.lvalue.name
            for loop in loops
            for n in nodes(loop.init or loop)
            if isinstance(n, c_ast.Assignment) and isinstance(n.lvalue, c_ast.ID) and loop.init is not None
        }
        places = [loop.cond for loop in loops if loop.cond is not None]
        places += [n.subscript for n in nodes(function) if isinstance(n, c_ast.ArrayRef)]
        places += [n.dim for n in nodes(function) if isinstance(n, c_ast.ArrayDecl) and n.dim is not None]
        arrays = {n.name.name for n in nodes(function) if isinstance(n, c_ast.ArrayRef) and named(n.name)}
        for place in places:
            names += [n.name for n in nodes(place) if named(n) and n.name not in own | arrays]
    return list(dict.fromkeys(names))
