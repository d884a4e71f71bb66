"""What is made of nothing: constants, ranges, identities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import FLOATS, Refusal, Tensor, dtype_of, known
from dojo_core.primitives.array import Array

_ATTRIBUTES = {"value_float": "f32", "value_floats": "f32", "value_int": "i64", "value_ints": "i64"}


@operator("Constant")
def constant(c: Call) -> Tensor:
    for name, element in _ATTRIBUTES.items():
        if name in c.attributes:
            return known(np.asarray(c.attribute(name)), element)
    if "value" in c.attributes:
        return c.walk.constant(c.attributes["value"].t)
    kind = next(iter(c.attributes), "no value")
    raise Refusal(f"It holds {kind}, which is no dense tensor of numbers.", "Export it as a tensor.")


@operator("ConstantOfShape")
def constant_of_shape(c: Call) -> Array | Tensor:
    shape = tuple(c.ints(0))
    if min(shape, default=0) < 0:
        raise Refusal(f"Its shape {list(shape)} has a negative size.", "Mend the model.")
    value: Any = np.zeros(1, np.float32)
    element = "f32"
    if "value" in c.attributes:
        tensor = c.walk.constant(c.attributes["value"].t)
        value, element = tensor.values, tensor.element
    if math.prod(shape) <= 4096:
        return known(np.full(shape, value.reshape(-1)[0]), element)
    number = value.reshape(-1)[0]
    return Tensor(
        element, shape, array=c.number(float(number) if element in FLOATS else int(number), element, shape)
    )


@operator("EyeLike")
def eye(c: Call) -> Array | Tensor:
    shape = c.shape(0)
    if len(shape) != 2:
        raise Refusal(f"It takes a matrix, not {list(shape)}.", "Mend the model.")
    element = dtype_of(c.attribute("dtype")) if c.attribute("dtype") else c.element(0)
    offset = c.attribute("k", 0)
    row, column = c.iota(shape, 0), c.iota(shape, 1)
    on = c.map("==", column, c.add(row, offset)) if offset else c.map("==", column, row)
    return Tensor(element, shape, array=c.convert(on, element))


@operator("Range")
def range_(c: Call) -> Array | Tensor:
    element = c.element(0)
    start, limit, delta = (c.known(k).reshape(-1)[0] for k in range(3))
    if not delta:
        raise Refusal("Its delta is 0.", "Mend the model.")
    if element in FLOATS:
        start, limit, delta = float(start), float(limit), float(delta)
        if not all(map(math.isfinite, (start, limit, delta))):
            raise Refusal("Its range has no end.", "Mend the model.")
    else:
        start, limit, delta = int(start), int(limit), int(delta)
    count = max(math.ceil((limit - start) / delta), 0)
    if element not in FLOATS and count <= 4096:
        return known([start + k * delta for k in range(count)], element)
    if count == 0:
        return known(np.zeros(0), element)
    k = c.iota((count,), 0, "f32" if element in FLOATS else element)
    wide = "f64" if element == "f64" else "f32"
    made = c.formula(
        "k * delta + start", k=k, delta=delta, start=start, dtype=wide if element in FLOATS else element
    )
    return Tensor(element, (count,), array=made)


@operator("Trilu")
def trilu(c: Call) -> Array:
    x, shape = c.array(0), c.shape(0)
    if len(shape) < 2:
        raise Refusal(f"It takes matrices, not {list(shape)}.", "Mend the model.")
    if 0 in shape:
        return x
    k = c.integer(1) if c.has(1) else 0
    row, column = c.iota(shape, len(shape) - 2), c.iota(shape, len(shape) - 1)
    keep = c.map(">=" if c.attribute("upper", 1) else "<=", column, c.add(row, k) if k else row)
    return c.where(keep, x, 0, dtype=x.dtype)
