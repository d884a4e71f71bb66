"""Primitives: operations on arrays that make program text.

Kernels written in Python (``own``) and imported operators stand on them. A ``Builder`` is a kernel in the
making; each function takes it first, then arrays and plain values, and gives arrays.
"""

from dojo_core.primitives.array import Array, BuildError, filled, identifier
from dojo_core.primitives.builder import Builder
from dojo_core.primitives.conditions import Condition, condition
from dojo_core.primitives.constants import constant
from dojo_core.primitives.contractions import contract
from dojo_core.primitives.convolutions import convolve, convolve_transposed
from dojo_core.primitives.copies import concatenate, pad, split, stack, tile
from dojo_core.primitives.elementwise import (
    WHOLE_POWERS,
    bitcast,
    convert,
    elementwise,
    formula,
    iterator,
    select,
)
from dojo_core.primitives.gathering import gather, gather_along
from dojo_core.primitives.pooling import max_pool_with_places, pool
from dojo_core.primitives.recurrences import recurrence
from dojo_core.primitives.reductions import arg_reduce, mean, reduce
from dojo_core.primitives.scans import scan
from dojo_core.primitives.scattering import scatter
from dojo_core.primitives.top import top
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
    "WHOLE_POWERS",
    "Array",
    "BuildError",
    "Builder",
    "Condition",
    "arg_reduce",
    "bitcast",
    "broadcast",
    "concatenate",
    "condition",
    "constant",
    "contract",
    "convert",
    "convolve",
    "convolve_transposed",
    "elementwise",
    "filled",
    "flip",
    "formula",
    "gather",
    "gather_along",
    "identifier",
    "iterator",
    "max_pool_with_places",
    "mean",
    "pad",
    "pool",
    "recurrence",
    "reduce",
    "reshape",
    "scan",
    "scatter",
    "select",
    "slice_",
    "split",
    "squeeze",
    "stack",
    "tile",
    "top",
    "transpose",
    "unsqueeze",
    "window",
]
