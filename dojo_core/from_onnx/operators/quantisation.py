"""Whole numbers that stand for others: scales, zero points, rounding with saturation."""

from __future__ import annotations

import math

from dojo_core.from_onnx.arrays import joint, wide
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.operators.contractions import product
from dojo_core.from_onnx.operators.convolutions import convolve, kernel_shape, windows_of, zeroed
from dojo_core.from_onnx.values import FLOATS, Refusal, Tensor, available, dtype_of
from dojo_core.primitives.array import Array


def limits(element: str) -> tuple[int, int]:
    """The least and the greatest whole number of an integer element type."""
    bits = int(element[1:])
    return (0, 2**bits - 1) if element[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def quantised(c: Call, x: Array, zero: Array | None, element: str) -> Tensor:
    """A number in units of the scale as a whole one: rounded to even, the zero point added, saturated."""
    if element in FLOATS:
        if not available(element):
            raise Refusal(f"Texts have no dtype {element}.", "Quantise to u8 or i8.")
        if zero is not None:
            x = c.add(x, zero)
        array = c.convert(x, element)
    else:
        low, high = limits(element)
        text = "max(min(round(x) + z, high), low)"
        whole = c.formula(
            text, x=x, z=zero if zero is not None else 0, low=low, high=high, dtype=joint([x.dtype])
        )
        array = c.convert(whole, element)
    return Tensor(element, array.shape, array=array, sources=c.sources)


def _spread(c: Call, k: int, shape: tuple[int, ...], axis: int, block: int) -> Array:
    """A scale or zero point beside [shape]: one number, or one for each place or block of an axis."""
    array, given = c.array(k), c.shape(k)
    if math.prod(given) == 1 and len(given) <= 1:
        return c.reshape(array, ())
    if block:
        parts = list(given)
        wanted = [*parts[: axis + 1], block, *parts[axis + 1 :]]
        array = c.broadcast(c.unsqueeze(array, [axis + 1]), wanted)
        merged = c.reshape(array, [*parts[:axis], parts[axis] * block, *parts[axis + 1 :]])
        return c.places(merged, axis, 0, shape[axis])
    if len(given) == 1:
        if given[0] != shape[axis]:
            raise Refusal(f"{given[0]} scales do not go along an axis of {shape[axis]}.", "Mend the model.")
        return c.reshape(array, [given[0] if k == axis else 1 for k in range(len(shape))])
    return array


def _axis(c: Call) -> int:
    return c.axis(default=1) if math.prod(c.shape(1)) > 1 or c.attribute("block_size", 0) else 0


@operator("QuantizeLinear")
def quantize(c: Call) -> Tensor:
    x, axis, block = c.array(0), _axis(c), c.attribute("block_size", 0) or 0
    scale = _spread(c, 1, x.shape, axis, block)
    named = c.attribute("output_dtype", 0) or 0
    element = c.element(2) if c.has(2) else dtype_of(named) if named else "u8"
    zero = c.wide(_spread(c, 2, x.shape, axis, block)) if c.has(2) else None
    precise = dtype_of(c.attribute("precision")) if c.attribute("precision", 0) else "f32"
    units = c.map("/", c.convert(c.wide(x), "f32"), c.convert(c.wide(scale), "f32"), dtype=wide(precise))
    if zero is not None:
        zero = c.convert(zero, "f32")
    return quantised(c, units, zero, element)


@operator("DequantizeLinear")
def dequantize(c: Call) -> Tensor:
    x, axis, block = c.wide(c.array(0)), _axis(c), c.attribute("block_size", 0) or 0
    scale = _spread(c, 1, x.shape, axis, block)
    named = c.attribute("output_dtype", 0) or 0
    element = dtype_of(named) if named else c.element(1)
    if c.has(2):
        zero = c.wide(_spread(c, 2, x.shape, axis, block))
        if x.dtype not in FLOATS:
            x, zero = (
                c.convert(each, "i64" if x.dtype in ("i32", "u32", "i64") else "i32") for each in (x, zero)
            )
        x = c.sub(x, zero)
    result = c.map("*", c.convert(x, "f32"), c.convert(c.wide(scale), "f32"), dtype="f32")
    return Tensor(
        element,
        result.shape,
        array=result if wide(element) == "f32" else c.convert(result, element),
        sources=c.sources,
    )


@operator("MatMulInteger")
def matmul_integer(c: Call) -> Array:
    return _integer_product(c, 0, 1, 2, 3)


def _integer_product(c: Call, a: int, b: int, a_zero: int, b_zero: int) -> Array:
    """A product in i32; a zero point for each row of the first, each column of the second."""
    left = zeroed(c, a, a_zero, c.rank(a) - 2, c.rank(a))
    right = zeroed(c, b, b_zero, c.rank(b) - 1, c.rank(b))
    return product(c, left, right, "i32")


@operator("QLinearMatMul")
def qlinear_matmul(c: Call) -> Tensor:
    total = _integer_product(c, 0, 3, 2, 5)
    return _requantised(c, total, c.computed(1), c.computed(4), 6, 7)


@operator("QLinearConv")
def qlinear_conv(c: Call) -> Tensor:
    x = zeroed(c, 0, 2)
    weight = zeroed(c, 3, 5, 0, c.rank(3))
    windows = windows_of(c, x.shape[2:], kernel_shape(c, weight))
    total = convolve(c, x, weight, windows, c.array(8) if c.has(8) else None)
    scale = c.computed(4)
    if math.prod(scale.shape) > 1:
        scale = c.reshape(scale, (1, scale.shape[0], *[1] * (len(x.shape) - 2)))
    return _requantised(c, total, c.computed(1), scale, 6, 7)


def _requantised(c: Call, total: Array, first: Array, second: Array, scale: int, zero: int) -> Tensor:
    first, second, out = (
        c.reshape(s, ()) if math.prod(s.shape) == 1 else s for s in (first, second, c.computed(scale))
    )
    units = c.formula("t * (f * s / o)", t=c.convert(total, "f32"), f=first, s=second, o=out, dtype="f32")
    tensor = c.tensor(zero)
    point = c.of(tensor)
    if tensor.size == 1:
        point = c.reshape(point, ())
    return quantised(c, units, c.convert(c.wide(point), "f32"), tensor.element)
