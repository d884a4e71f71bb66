"""What operators make arrays with: the primitives, and what ONNX's dtypes ask of them.

f16 and bf16 are computed in f32 and rounded where the graph asks for 16 bits; narrower floating-point numbers
and integers of less than a byte are storage, converted before anything is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dojo_core import primitives as p
from dojo_core.from_onnx.values import FLOATS, HALVES, NARROW_FLOATS, Numbers, Refusal, Tensor, checked
from dojo_core.primitives.array import Array, axis_of, filled
from dojo_core.primitives.builder import Builder
from dojo_core.primitives.copies import fresh, write
from dojo_core.primitives.elementwise import ENCODINGS
from dojo_core.primitives.views import places
from dojo_core.program.affine import Affine
from dojo_core.program.functions import FUNCTIONS
from dojo_core.program.tree import Access

_WIDE = {**dict.fromkeys((*HALVES, *NARROW_FLOATS), "f32"), "u4": "u8", "u2": "u8", "i4": "i8", "i2": "i8"}
_RANK = ("bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64")

Operand = Array | float | int | bool


def wide(dtype: str) -> str:
    """The dtype that what is stored in ``dtype`` is computed in."""
    return _WIDE.get(dtype, dtype)


def joint(dtypes: Sequence[str]) -> str:
    """The dtype that numbers of these are computed in."""
    return max(map(wide, dtypes), key=_RANK.index)


def array_of(b: Builder, tensor: Tensor) -> Array:
    """A tensor as an array; of known values, what the text computes or an input that is bound."""
    if tensor.array is not None:
        return tensor.array
    if tensor.values is None:
        raise Refusal("Its input has no value.", "Export the model again.")
    checked(tensor.element)
    return constant(b, tensor, tensor.values)


def constant(b: Builder, tensor: Tensor, values: Numbers) -> Array:
    element, shape = tensor.element, tensor.shape
    if not values.size:
        return filled(0, element, shape)
    if element in FLOATS:
        numbers = values.astype(np.float64)
        first = numbers.reshape(-1)[0]
        if first != first and (numbers != numbers).all():
            return p.broadcast(b, not_a_number(b, element), shape)
    else:
        numbers = values.astype(np.int64)
    return p.constant(b, numbers, element, p.identifier(tensor.name or "constant"))


def stored(b: Builder, array: Array, element: str) -> Array:
    """An array of a tensor in its own element type: what is held unrounded is rounded."""
    return array if array.dtype == element else converted(b, array, element)


def not_a_number(b: Builder, element: str) -> Array:
    """No number of a text is NaN: it is inf - inf."""
    infinite = p.elementwise(b, "", filled(math.inf, wide(element), ()), dtype=wide(element))
    return p.convert(b, p.elementwise(b, "-", infinite, infinite), element)


def converted(b: Builder, array: Array, element: str) -> Array:
    """As another dtype, by the text's conversion."""
    checked(element)
    return p.convert(b, array, element)


class Make:
    """The primitives over one builder."""

    def __init__(self, b: Builder, costly: dict[str, None]) -> None:
        """``costly`` is where encodings are noted that take more than one pass."""
        self.b, self.costly = b, costly

    def of(self, tensor: Tensor) -> Array:
        """A tensor as an array of the builder, held as it is."""
        return array_of(self.b, tensor)

    # ---------------------------------------------------------------- numbers

    def number(self, value: float | int, dtype: str, shape: Sequence[int] = ()) -> Array:
        return filled(value, dtype, tuple(shape))

    def iota(self, shape: Sequence[int], axis: int, dtype: str = "i64") -> Array:
        """The place along an axis, as an array of that shape."""
        axes = tuple(map(axis_of, shape))
        if shape[axis] == 1:
            return filled(0, dtype, shape)
        depth = sum(map(len, axes[:axis]))
        return Array(dtype, Affine.iterator(depth), axes)

    def affine(self, shape: Sequence[int], steps: Sequence[int], const: int = 0, dtype: str = "i64") -> Array:
        """``const`` and the places along all axes, each times its step, as an array of that shape."""
        axes = tuple(map(axis_of, shape))
        form, depth = Affine() + const, 0
        for axis, step in zip(axes, steps, strict=True):
            if axis:
                form = form + Affine.iterator(depth) * step
                depth += 1
        return Array(dtype, form, axes) if form.depths else filled(form.const, dtype, shape)

    def table(self, values: Any) -> Array:
        """Integers that are known, as an array."""
        numbers = np.asarray(values, np.int64)
        return self.of(Tensor("i64", numbers.shape, values=numbers))

    def floats(self, values: Any, dtype: str = "f32") -> Array:
        """Numbers that are known, as an array."""
        numbers = np.asarray(values, np.float64 if dtype == "f64" else np.float32)
        return self.of(Tensor(dtype, numbers.shape, values=numbers))

    # ---------------------------------------------------------------- element by element

    def map(self, function: str, *operands: Operand, dtype: str | None = None) -> Array:
        """A function of the Dojo's, element by element, with NumPy's broadcasting."""
        if function and function not in FUNCTIONS and function not in ENCODINGS:
            raise Refusal(f"Texts have no function {function}.", "Compute it outside of the kernel.")
        arrays = [o for o in operands if isinstance(o, Array)]
        arrays = [a for a in arrays if not a.is_free] or arrays
        if function == "select":
            values = [o for o in operands[1:] if isinstance(o, Array)]
            of = [a for a in values if not a.is_free] or values
        else:
            of = arrays
        if function in ("<", "<=", ">", ">=", "==", "!="):
            dtype, computed = "bool", joint([a.dtype for a in of])
        else:
            computed = dtype or joint([a.dtype for a in of] or ["f32"])
        if dtype is None:
            dtype = computed
        made = [o if isinstance(o, Array) else filled(self._as(o, computed), computed, ()) for o in operands]
        return p.elementwise(self.b, function, *made, dtype=dtype)

    def formula(self, text: str, dtype: str | None = None, **operands: Operand) -> Array:
        """Several functions in one pass; of f16 and bf16 the result is f32."""
        if dtype is None:
            arrays = [o for o in operands.values() if isinstance(o, Array)]
            dtype = joint([a.dtype for a in arrays if not a.is_free] or [a.dtype for a in arrays])
        return p.formula(self.b, text, dtype=dtype, **operands)

    @staticmethod
    def _as(value: float | int | bool, dtype: str) -> float | int:
        if dtype in FLOATS:
            return float(value)
        return int(value) if math.isfinite(value) else float(value)

    def convert(self, array: Array, dtype: str) -> Array:
        return array if array.dtype == dtype else converted(self.b, array, dtype)

    def wide(self, array: Array) -> Array:
        """What is stored in few bits, in the dtype that it is computed in."""
        return self.convert(array, wide(array.dtype))

    def where(self, condition: Array, yes: Operand, no: Operand, dtype: str | None = None) -> Array:
        return self.map("select", condition, yes, no, dtype=dtype)

    def add(self, a: Operand, b: Operand) -> Array:
        return self.map("+", a, b)

    def sub(self, a: Operand, b: Operand) -> Array:
        return self.map("-", a, b)

    def mul(self, a: Operand, b: Operand) -> Array:
        return self.map("*", a, b)

    def div(self, a: Operand, b: Operand) -> Array:
        return self.map("/", a, b)

    def max(self, a: Operand, b: Operand) -> Array:
        return self.map("max", a, b)

    def min(self, a: Operand, b: Operand) -> Array:
        return self.map("min", a, b)

    def clamp(self, x: Array, low: Operand, high: Operand) -> Array:
        return self.min(self.max(x, low), high)

    def both(self, *conditions: Array) -> Array:
        """All of several conditions, which are bool."""
        result = conditions[0]
        for each in conditions[1:]:
            result = self.map("min", result, each, dtype="bool")
        return result

    def negated(self, condition: Array) -> Array:
        return self.map("==", condition, 0)

    def floor(self, x: Array) -> Array:
        return self.map("floor", x)

    def ceil(self, x: Array) -> Array:
        return self.map("ceil", x)

    def trunc(self, x: Array) -> Array:
        return self.map("trunc", x)

    # ---------------------------------------------------------------- reductions and products

    def reduce(self, accumulation: str, x: Array, axes: Sequence[int], keep: bool = True) -> Array:
        axes = [a % len(x.shape) for a in axes] if x.shape else []
        dtype = wide(x.dtype)
        if not axes:
            return self.convert(x, dtype)
        return p.reduce(self.b, accumulation, x, tuple(axes), keepdims=keep, dtype=dtype)

    def mean(self, x: Array, axes: Sequence[int], keep: bool = True) -> Array:
        count = math.prod(x.shape[a] for a in {a % len(x.shape) for a in axes}) if x.shape else 1
        total = self.reduce("+", x, axes, keep)
        return self.div(total, count) if total.dtype not in FLOATS else self.mul(total, 1.0 / count)

    def contract(self, equation: str, *arrays: Array, dtype: str | None = None) -> Array:
        return p.contract(self.b, equation, *arrays, dtype=dtype or joint([a.dtype for a in arrays]))

    # ---------------------------------------------------------------- views and copies

    def transpose(self, x: Array, order: Sequence[int]) -> Array:
        return p.transpose(self.b, x, tuple(order))

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        return p.reshape(self.b, x, tuple(int(s) for s in shape))

    def broadcast(self, x: Array, shape: Sequence[int]) -> Array:
        return p.broadcast(self.b, x, tuple(shape))

    def squeeze(self, x: Array, axes: Sequence[int]) -> Array:
        return p.squeeze(self.b, x, tuple(axes)) if axes else x

    def unsqueeze(self, x: Array, axes: Sequence[int]) -> Array:
        return p.unsqueeze(self.b, x, tuple(axes)) if axes else x

    def places(self, x: Array, axis: int, start: int, count: int, step: int = 1) -> Array:
        """``count`` places along an axis from ``start`` on."""
        return places(self.b, x, axis % len(x.shape), start, count, step)

    def concat(self, arrays: Sequence[Array], axis: int) -> Array:
        filled_ones = [a for a in arrays if not a.empty] or list(arrays[:1])
        return filled_ones[0] if len(filled_ones) == 1 else p.concatenate(self.b, filled_ones, axis)

    def window(self, x: Array, axis: int, width: int, stride: int = 1, dilation: int = 1) -> Array:
        """A view: an axis as places, and the taps as a last axis."""
        return p.window(self.b, x, axis, width, stride, dilation)

    def pad(
        self, x: Array, pads: Sequence[tuple[int, int]], mode: str = "constant", value: Operand = 0
    ) -> Array:
        if not any(map(any, pads)):
            return x
        if not isinstance(value, Array):
            return p.pad(self.b, x, tuple(pads), mode, value)
        for axis, (before, after) in enumerate(pads):
            cut = max(-before, 0), max(-after, 0)
            x = self.places(x, axis, cut[0], x.shape[axis] - sum(cut))
        shape = [n + max(before, 0) + max(after, 0) for n, (before, after) in zip(x.shape, pads, strict=True)]
        whole = fresh(self.b, x.dtype, shape)
        write(self.b, whole, "", value)
        inside = whole
        for axis, (before, _) in enumerate(pads):
            inside = self.places(inside, axis, max(before, 0), x.shape[axis])
        write(self.b, inside, "", x)
        return whole

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        """``x`` at integer indices along an axis, which the indices' axes take the place of; negative ones
        count from the end."""
        self.promised(indices, x.shape[axis])
        return p.gather(self.b, x, indices, axis)

    def promised(self, indices: Array, size: int) -> None:
        """Of an input that indices are, what the standard says of them: from -size to size - 1. It is drawn
        from there when the kernel is measured."""
        operand = indices.operand
        if isinstance(operand, Access) and operand.array in self.b.inputs:
            given = self.b.inputs[operand.array]
            low, high = given.domain or (-size, size - 1)
            if given.dtype not in FLOATS and given.dtype[0] != "u":
                domain = max(low, -size), min(high, size - 1)
                self.b.inputs[operand.array] = replace(given, domain=domain)

    def along(self, x: Array, indices: Array, axis: int) -> Array:
        """``x`` at its own index along one axis for each element: both have as many axes, and sizes that are
        the same or, of the indices, 1, but along that axis. Negative indices count from the end."""
        self.promised(indices, x.shape[axis])
        return p.gather_along(self.b, x, indices, axis)

    def costs(self, encoding: str) -> None:
        """Note that the text takes more than one pass over the result."""
        self.costly[encoding] = None


Unary = Callable[[Make, Array], Array]
