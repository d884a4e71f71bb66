"""One call of an ATen operator as its translation sees it, and the table of translations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array, Builder
from dojo_core.program.dtypes import FLOATS, HALVES, holds
from dojo_core.program.tree import Access

Number = int | float
Value = Array | Number
Result = Array | Sequence[Array | None]
Translation = Callable[..., Result]  # of a Call, then the operator's arguments as ATen's schema has them


@dataclass(frozen=True)
class Operator:
    """How calls of an ATen operator become arrays; ``kind`` is what the partition of a graph goes by."""

    kind: Kind
    translate: Translation


OPERATORS: dict[str, Operator] = {}  # by name and overload: "add.Tensor", "dojo.lstm.default"


Function = TypeVar("Function", bound=Translation)


def aten(*names: str, kind: Kind) -> Callable[[Function], Function]:
    """Enter a translation into the table; a name without an overload means ``default``. An operator that is
    not ATen's has its namespace before it, and its overload behind it.

    The function takes the call, then the operator's arguments by ATen's own names and order: tensors as
    arrays, dtypes in the Dojo's words, all else as it is. Arguments that say where and how a result is stored
    (device, layout, pin_memory, non_blocking, memory_format) are left out.
    """

    def entered(translate: Function) -> Function:
        for name in names:
            key = name if "." in name else f"{name}.default"
            assert key not in OPERATORS, f"{key} is there twice"
            OPERATORS[key] = Operator(kind, translate)
        return translate

    return entered


@dataclass(frozen=True)
class Call:
    """What a translation is told besides the arguments.

    ``shapes`` and ``dtypes`` are those of the operator's results as PyTorch has them, ``wanted`` the results
    that anything reads. ``common`` is the dtype that the operands are promoted to, as a kernel computes in it
    (f16 and bf16: f32), for operators whose result has another one, such as comparisons. ``row_major``: does
    each operand fill its memory in row-major order, in PyTorch's own run?
    ``promises`` collects which values places have that are read from an input (``promise``).
    """

    b: Builder
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    wanted: frozenset[int]
    common: str
    row_major: bool
    promises: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def dtype(self) -> str:
        return self.dtypes[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shapes[0]

    @property
    def computed(self) -> str:
        """The dtype that the first result is computed in."""
        return wide(self.dtype)

    def operands(self, values: Sequence[Value], dtype: str) -> list[Value]:
        """Values for one function computed in ``dtype``: converted, but where one 16-bit dtype is widened by
        the function itself."""
        dtypes = {v.dtype for v in values if isinstance(v, Array) and not v.is_free}
        if len(dtypes) == 1 and holds(dtype, *dtypes):
            return list(values)
        return [p.convert(self.b, v, dtype) if isinstance(v, Array) else v for v in values]

    def map(self, function: str, *values: Value) -> Array:
        """A function of the text form element by element, in the result's dtype."""
        return p.elementwise(self.b, function, *self.operands(values, self.computed), dtype=self.dtype)

    def formula(self, text: str, **values: Value) -> Array:
        """Several functions element by element, computed as one, in the result's dtype."""
        operands = self.operands(list(values.values()), self.computed)
        return p.formula(self.b, text, dtype=self.dtype, **dict(zip(values, operands, strict=True)))

    def compare(self, sign: str, left: Value, right: Value) -> Array:
        """A comparison in the dtype that both are promoted to."""
        return p.elementwise(self.b, sign, *self.operands([left, right], self.common))

    def truth(self, x: Value) -> Array:
        """Is it other than 0? As bool."""
        if isinstance(x, Array):
            return x if x.dtype == "bool" else p.elementwise(self.b, "!=", x, 0)
        return p.filled(int(x != 0), "bool", ())

    def promise(self, index: Array, low: int, end: int) -> None:
        """Places lie from ``low`` to below ``end``, as PyTorch checks of them too."""
        if isinstance(index.operand, Access) and index.operand.array in self.b.inputs:
            self.promises[index.operand.array] = low, end - 1

    def converted(self, x: Array) -> Array:
        """In the dtype of the first result."""
        return p.convert(self.b, x, self.dtype)

    def widened(self, x: Array) -> Array:
        """In the dtype that the first result is computed in."""
        return p.convert(self.b, x, self.computed)


def wide(dtype: str) -> str:
    """What a dtype is computed in."""
    return "f32" if dtype in HALVES else dtype


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def several(value: int | Sequence[int], count: int) -> list[int]:
    """One number for each of ``count`` axes, where ATen lets one stand for all."""
    given = [value] if isinstance(value, int) else list(value)
    return given * count if len(given) == 1 else given
