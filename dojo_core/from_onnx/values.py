"""What a name of an ONNX graph stands for while it is imported: a tensor, a sequence, nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dojo_core.primitives.array import Array
from dojo_core.program.tree import NUMBER_DTYPES

Numbers = np.ndarray[Any, Any]

# The Dojo's name of each element type of ONNX (TensorProto.DataType), whether this Dojo has it or not.
ELEMENTS = {
    1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64",
    12: "u32", 13: "u64", 16: "bf16", 17: "f8e4m3fn", 18: "f8e4m3fnuz", 19: "f8e5m2", 20: "f8e5m2fnuz",
    21: "u4", 22: "i4", 23: "f4e2m1fn", 24: "f8e8m0fnu", 25: "u2", 26: "i2",
}  # fmt: skip
TYPE_NAMES = {8: "strings", 14: "complex64", 15: "complex128"}
CODES = {name: code for code, name in ELEMENTS.items()}
HALVES = ("f16", "bf16")
NARROW_FLOATS = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1fn", "f8e8m0fnu")
FLOATS = ("f64", "f32", *HALVES, *NARROW_FLOATS)

# What of one value there may be while shapes are worked out, in elements: a hostile shape ends in a sentence.
KNOWN_ELEMENTS = 1 << 20


class Refusal(ValueError):
    """Why something of a model cannot be taken: ``why`` and ``remedy`` are sentences for a person."""

    def __init__(self, why: str, remedy: str = "", unforeseen: bool = False) -> None:
        super().__init__(f"{why} {remedy}".strip())
        self.why, self.remedy, self.unforeseen = why, remedy, unforeseen


class Asked(Exception):
    """The value of these graph inputs says a shape: the import begins again with them as constants."""

    def __init__(self, names: frozenset[str], operator: str) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names, self.operator = names, operator


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of the graph. ``element`` is its element type by the Dojo's name.

    ``values`` holds its elements where they are known at import; ``array`` is what the text computes: of f16
    and bf16 it may be held in f32, unrounded, until the graph asks for its 16 bits. ``sources`` are the
    graph inputs that its values depend on.
    """

    element: str
    shape: tuple[int, ...]
    values: Numbers | None = None
    array: Array | None = None
    sources: frozenset[str] = frozenset()
    name: str = ""  # of an initializer, which its array may be called by
    wire: str = ""  # what it is called where a model becomes nodes of a graph

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Sequence_:
    """A list of values whose length is known; ``element`` of what an empty one would hold."""

    items: tuple[Value, ...]
    element: str = "f32"


@dataclass(frozen=True, eq=False)
class Nothing:
    """An optional without an element."""


@dataclass(frozen=True, eq=False)
class Lost:
    """What a node that was refused would have given."""


Value = Tensor | Sequence_ | Nothing | Lost


def dtype_of(code: int) -> str:
    """The Dojo's name of an element type. Raises Refusal for strings and complex numbers."""
    if code in ELEMENTS:
        return ELEMENTS[code]
    if code in TYPE_NAMES:
        raise Refusal(
            f"It holds {TYPE_NAMES[code]}, which are no numbers of a kernel.",
            "Leave it to the program around.",
        )
    raise Refusal(f"Its element type {code} is none of ONNX.", "Export the model again.")


def available(element: str) -> bool:
    return element in NUMBER_DTYPES


def checked(element: str) -> str:
    """Raises Refusal where this Dojo's texts have no such dtype."""
    if not available(element):
        raise Refusal(f"Texts have no dtype {element}.", "Convert to f32 (or a wider integer) outside of it.")
    return element


def numpy_dtype(element: str) -> np.dtype[Any]:
    """The NumPy dtype that ONNX keeps an element type in (ml_dtypes' for what NumPy has not)."""
    from onnx.helper import tensor_dtype_to_np_dtype

    return np.dtype(tensor_dtype_to_np_dtype(CODES[element]))


def bits(element: str) -> int:
    """How many bits an element has in a file."""
    return {"u4": 4, "i4": 4, "f4e2m1fn": 4, "u2": 2, "i2": 2}.get(element) or 8 * numpy_dtype(
        element
    ).itemsize


def of_numpy(dtype: np.dtype[Any]) -> str:
    from onnx.helper import np_dtype_to_tensor_dtype

    try:
        return dtype_of(np_dtype_to_tensor_dtype(dtype))
    except (KeyError, ValueError) as fault:
        if isinstance(fault, Refusal):
            raise
        raise Refusal(f"NumPy's {dtype} is no element type of ONNX.", "Convert it.") from None


def within(count: int, what: str) -> int:
    """A number of elements or steps that the import goes through itself. Raises Refusal for too many."""
    if count > KNOWN_ELEMENTS:
        raise Refusal(
            f"{what} would be {count:,} at import, more than {KNOWN_ELEMENTS:,}.", "Use smaller sizes."
        )
    return count


def known(values: Numbers | Sequence[Any] | float | int, element: str) -> Tensor:
    """A tensor whose values are known."""
    array = np.asarray(values)
    if array.size > KNOWN_ELEMENTS:
        raise Refusal(
            f"A constant of {array.size} elements is too large to be worked out at import.",
            "Make it an input of the graph.",
        )
    with np.errstate(all="ignore"):
        array = array.astype(numpy_dtype(element))
    return Tensor(element, array.shape, values=array)
