"""Primitives: operations on arrays that make program text.

Kernels written in Python (``own``) and imported operators stand on them. A ``Builder`` is a kernel in the
making; each function takes it first, then arrays and plain values, and gives arrays.
"""

from dojo_core.primitives.array import Array, BuildError, filled, identifier
from dojo_core.primitives.builder import Builder
from dojo_core.primitives.contractions import contract
from dojo_core.primitives.copies import concatenate, pad, split, stack, tile
from dojo_core.primitives.elementwise import convert, elementwise, formula, iterator, select
from dojo_core.primitives.reductions import arg_reduce, mean, reduce
from dojo_core.primitives.views import (
    broadcast,
    flip,
    reshape,
    slice_,
    squeeze,
    transpose,
    unsqueeze,
    window,
)

__all__ = [
    "Array",
    "BuildError",
    "Builder",
    "arg_reduce",
    "broadcast",
    "concatenate",
    "contract",
    "convert",
    "elementwise",
    "filled",
    "flip",
    "formula",
    "identifier",
    "iterator",
    "mean",
    "pad",
    "reduce",
    "reshape",
    "select",
    "slice_",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "unsqueeze",
    "window",
]
