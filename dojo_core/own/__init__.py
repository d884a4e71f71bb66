"""A kernel of one's own, written in Python as expressions over arrays with named axes (docs/own_kernel.md).

The Python function is run once, by the person who wrote it: it leaves a program, which is plain text from
then on. No door of the Dojo reads Python.
"""

from dojo_core.own.arrays import (
    Array,
    absolute,
    concatenate,
    einsum,
    erf,
    exp,
    floor,
    iterator,
    log,
    maximum,
    minimum,
    rint,
    rsqrt,
    sigmoid,
    size,
    sqrt,
    tanh,
    where,
)
from dojo_core.own.axes import KernelError
from dojo_core.own.kernel import OwnKernel, kernel

__all__ = [
    "Array",
    "KernelError",
    "OwnKernel",
    "absolute",
    "concatenate",
    "einsum",
    "erf",
    "exp",
    "floor",
    "iterator",
    "kernel",
    "log",
    "maximum",
    "minimum",
    "rint",
    "rsqrt",
    "sigmoid",
    "size",
    "sqrt",
    "tanh",
    "where",
]
