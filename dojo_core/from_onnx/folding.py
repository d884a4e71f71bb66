"""Constant folding: what is computed of shapes, before there is a kernel.

Whole numbers and scalars that are known go through the operators that shapes are worked out with. Larger
floating-point constants are left to the text, which computes them as it does data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dojo_core.from_onnx.values import KNOWN_ELEMENTS, Numbers, Refusal, Tensor, Value, known, numpy_dtype

if TYPE_CHECKING:
    import onnx


def _quotient(a: Numbers, b: Numbers) -> Numbers:
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    if not np.all(b):
        raise Refusal("It divides whole numbers that are known by 0.", "Mend the model.")
    return np.asarray(np.sign(a) * np.sign(b) * (abs(a) // abs(b))).astype(a.dtype)


_BINARY: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _quotient,
    "Equal": np.equal, "Greater": np.greater, "Less": np.less, "GreaterOrEqual": np.greater_equal,
    "LessOrEqual": np.less_equal, "Mod": lambda a, b: _remainder(a, b), "Pow": np.power,
    "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
}  # fmt: skip
_UNARY: dict[str, Callable[[Numbers], Numbers]] = {
    "Neg": np.negative, "Abs": np.abs, "Not": np.logical_not, "Floor": np.floor, "Ceil": np.ceil,
    "Sqrt": np.sqrt, "Relu": lambda x: np.maximum(x, 0), "Identity": lambda x: x,
}  # fmt: skip
_SEVERAL: dict[str, Callable[[Sequence[Numbers]], Numbers]] = {
    "Max": lambda xs: _reduced(np.maximum, xs),
    "Min": lambda xs: _reduced(np.minimum, xs),
    "Sum": lambda xs: _reduced(np.add, xs),
}


def _remainder(a: Numbers, b: Numbers) -> Numbers:
    if a.dtype.kind in "iu" and not np.all(b):
        raise Refusal("It divides whole numbers that are known by 0.", "Mend the model.")
    return np.asarray(np.mod(a, b))


def _reduced(function: Any, arrays: Sequence[Numbers]) -> Numbers:
    result = arrays[0]
    for each in arrays[1:]:
        result = function(result, each)
    return np.asarray(result)


def fold(node: onnx.NodeProto, inputs: Sequence[Value | None]) -> list[Value] | None:
    """The results of a node whose inputs are known; None: they are not worked out at import."""
    if node.domain not in ("", "ai.onnx"):
        return None
    tensors = [v for v in inputs if v is not None]
    if not tensors or not all(isinstance(v, Tensor) and v.values is not None for v in tensors):
        return None
    given: list[Tensor] = [v for v in tensors if isinstance(v, Tensor)]
    if not all(_small(t) for t in given):
        return None
    values = [t.values for t in given if t.values is not None]
    if len(values) != len(inputs):
        return None
    with np.errstate(all="ignore"):
        return _folded(node, given, values)


def _small(tensor: Tensor) -> bool:
    kind = tensor.values.dtype.kind if tensor.values is not None else ""
    return tensor.size <= 1 or (kind in "iub" and tensor.size <= 4096)


def _folded(node: onnx.NodeProto, given: list[Tensor], values: list[Numbers]) -> list[Value] | None:
    name = node.op_type
    if name == "Mod" and any(a.name == "fmod" and a.i for a in node.attribute):
        return None
    if name in _BINARY and len(values) == 2:
        _bounded(np.broadcast_shapes(values[0].shape, values[1].shape) if _fits(values) else None)
        result = _BINARY[name](*values)
        comparing = result.dtype == bool
        return [known(result, "bool" if comparing else given[0].element)]
    if name == "Where" and len(values) == 3 and _fits(values):
        return [known(np.where(*values), given[1].element)]
    if name in _UNARY and len(values) == 1:
        return [known(_UNARY[name](values[0]), given[0].element)]
    if name in _SEVERAL and _fits(values):
        return [known(_SEVERAL[name](values), given[0].element)]
    return None


def _fits(values: Sequence[Numbers]) -> bool:
    try:
        np.broadcast_shapes(*(v.shape for v in values))
    except ValueError:
        raise Refusal("The shapes of its inputs do not fit.", "Mend the model.") from None
    return True


def _bounded(shape: tuple[int, ...] | None) -> None:
    if shape is not None and np.prod(shape, dtype=object) > KNOWN_ELEMENTS:
        raise Refusal("What it works out at import is too large.", "Make it an input.")


__all__ = ["fold", "numpy_dtype"]
