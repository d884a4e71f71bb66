"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from agents.torch_backend.call import Call, aten, several
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array


@aten("convolution", kind=Kind.CONTRACTION)
def convolution(
    c: Call,
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Array:
    rank = len(weight.axes) - 2
    strides, dilations = several(stride, rank), several(dilation, rank)
    pads = [(size, size) for size in several(padding, rank)]
    single = len(input.axes) == rank + 1
    x = p.unsqueeze(c.b, input, [0]) if single else input
    if transposed:
        extra = several(output_padding, rank)
        y = p.convolve_transposed(
            c.b, x, weight, bias, strides, dilations, groups, pads, extra, c.dtype, lanes=True
        )
    else:
        y = p.convolve(c.b, x, weight, bias, strides, dilations, groups, pads, c.dtype)
    return p.squeeze(c.b, y, [0]) if single else y
