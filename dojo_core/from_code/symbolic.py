"""Arrays as the primitives have them: what is done with them becomes passes of a program."""

from __future__ import annotations

from collections.abc import Sequence

from dojo_core import primitives
from dojo_core.primitives import Array, Builder, BuildError
from dojo_core.primitives.contractions import contract_named
from dojo_core.program.dtypes import FLOATS

MOST_NODES = 600  # of a program in the making: a text form has fewer


class Symbolic:
    """The algebra of ``functions.py`` on arrays of a kernel in the making."""

    def __init__(self, b: Builder) -> None:
        self.b = b

    def input(self, name: str, shape: Sequence[int], dtype: str) -> Array:
        return self.b.input(name, dtype, shape)

    def shape(self, x: Array) -> tuple[int, ...]:
        return x.shape

    def is_float(self, x: Array) -> bool:
        return x.dtype in FLOATS

    def call(self, function: str, *operands: Array | int | float) -> Array:
        if len(self.b.body) > MOST_NODES:
            raise BuildError("There are more operations than a program may have.")
        return primitives.elementwise(self.b, function, *operands)

    def convert(self, x: Array, dtype: str) -> Array:
        return primitives.convert(self.b, x, dtype)

    def reduce(self, accumulation: str, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        return primitives.reduce(self.b, accumulation, x, axes, keepdims)

    def place(self, which: str, x: Array, axis: int, keepdims: bool) -> Array:
        return primitives.arg_reduce(self.b, which, x, axis, keepdims)[1]

    def scan(self, accumulation: str, x: Array, axis: int) -> Array:
        return primitives.scan(self.b, accumulation, x, axis)

    def contract(
        self, names: Sequence[tuple[str, ...]], wanted: tuple[str, ...], arrays: Sequence[Array]
    ) -> Array:
        return contract_named(self.b, names, wanted, arrays)

    def transpose(self, x: Array, order: Sequence[int]) -> Array:
        return primitives.transpose(self.b, x, order)

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        return primitives.reshape(self.b, x, shape)

    def broadcast(self, x: Array, shape: Sequence[int]) -> Array:
        return primitives.broadcast(self.b, x, shape)

    def slice(self, x: Array, axis: int, start: int | None, stop: int | None, step: int) -> Array:
        return primitives.slice_(self.b, x, axis, start, stop, step)

    def take(self, x: Array, index: Array, axis: int) -> Array:
        return primitives.gather(self.b, x, index, axis)

    def concatenate(self, arrays: Sequence[Array], axis: int) -> Array:
        return primitives.concatenate(self.b, arrays, axis)

    def pad(self, x: Array, pads: Sequence[tuple[int, int]], mode: str, value: float) -> Array:
        return primitives.pad(self.b, x, pads, mode, value)

    def window(self, x: Array, axis: int, width: int, stride: int) -> Array:
        return primitives.window(self.b, x, axis, width, stride)

    def iterator(self, shape: Sequence[int], axis: int) -> Array:
        return primitives.iterator(self.b, shape, axis)

    def filled(self, value: float, shape: Sequence[int], dtype: str) -> Array:
        return primitives.filled(value, dtype, shape)
