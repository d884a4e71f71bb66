"""Pooling over windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents.torch_backend.call import Call, aten, several
from agents.torch_backend.refusal import Refusal
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array

Ints = Sequence[int]


def _batched(c: Call, x: Array, rank: int, pooled: Callable[[Array], Sequence[Array]]) -> list[Array]:
    """Pooling of an image alone is that of a batch of one."""
    if len(x.axes) == rank + 2:
        return list(pooled(x))
    return [p.squeeze(c.b, y, [0]) for y in pooled(p.unsqueeze(c.b, x, [0]))]


def _max_pool(rank: int) -> None:
    @aten(f"max_pool{rank}d_with_indices", kind=Kind.REDUCTION)
    def translate(
        c: Call,
        self: Array,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints | int = 0,
        dilation: Ints | int = 1,
        ceil_mode: bool = False,
    ) -> Sequence[Array | None]:
        taps = several(kernel_size, rank)
        frame: tuple[Any, ...] = (
            taps,
            several(stride, rank) if stride else taps,
            several(dilation, rank),
            [(size, size) for size in several(padding, rank)],
            ceil_mode,
        )
        if 1 in c.wanted:
            return _batched(c, self, rank, lambda x: p.max_pool_with_places(c.b, x, *frame))
        return [*_batched(c, self, rank, lambda x: [p.pool(c.b, "max", x, *frame)]), None]


def _average_pool(rank: int) -> None:
    @aten(f"avg_pool{rank}d", kind=Kind.REDUCTION)
    def translate(
        c: Call,
        self: Array,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints | int = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Array:
        taps = several(kernel_size, rank)
        strides = several(stride, rank) if stride else taps
        pads = [(size, size) for size in several(padding, rank)]

        if divisor_override is not None and ceil_mode:
            raise Refusal("its windows beyond the end are divided by a number that is given")

        def pooled(x: Array) -> list[Array]:
            counted = count_include_pad or divisor_override is not None
            y = p.pool(c.b, "average", x, taps, strides, None, pads, ceil_mode, counted)
            if divisor_override is None:
                return [y]
            return [c.formula("y * r", y=y, r=math.prod(taps) / divisor_override)]

        return _batched(c, self, rank, pooled)[0]


def _adaptive_average(rank: int) -> None:
    @aten(f"_adaptive_avg_pool{rank}d", f"adaptive_avg_pool{rank}d", kind=Kind.REDUCTION)
    def translate(c: Call, self: Array, output_size: Ints) -> Array:
        sizes = self.shape[-rank:]
        counts = [s if n is None else n for s, n in zip(sizes, several(output_size, rank), strict=True)]
        x = c.widened(self)
        if all(size % count == 0 for size, count in zip(sizes, counts, strict=True)):
            parts = [n for s, count in zip(sizes, counts, strict=True) for n in (count, s // count)]
            x = p.reshape(c.b, x, (*x.shape[:-rank], *parts))
            return c.converted(p.mean(c.b, x, range(-2 * rank + 1, 0, 2)))
        for axis, count in zip(range(-rank, 0), counts, strict=True):
            x = _shared(c, x, axis, count)
        return c.converted(x)


def _shared(c: Call, x: Array, axis: int, count: int) -> Array:
    """The means of ``count`` windows along an axis that they do not divide: a product with their shares."""
    size = x.shape[axis]
    starts = [k * size // count for k in range(count)]
    ends = [-(-(k + 1) * size // count) for k in range(count)]
    shares = np.zeros((count, size))
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        shares[k, start:end] = 1 / (end - start)
    names = [f"a{k}" for k in range(len(x.axes))]
    summed = names[axis]
    result = [*names[:axis], "out", *names[len(names) + axis + 1 :]]
    weights = p.constant(c.b, shares, x.dtype, "shares")
    return p.contract(c.b, f"{' '.join(names)}, out {summed} -> {' '.join(result)}", x, weights)


def _adaptive_max(rank: int) -> None:
    @aten(f"adaptive_max_pool{rank}d", kind=Kind.REDUCTION)
    def translate(c: Call, self: Array, output_size: Ints) -> Sequence[Array | None]:
        sizes = self.shape[-rank:]
        taps = [size // count for size, count in zip(sizes, output_size, strict=True)]
        if any(size % count for size, count in zip(sizes, output_size, strict=True)):
            raise Refusal("its windows are of several sizes", "use an output size that divides the input's")
        if 1 in c.wanted:
            return _batched(c, self, rank, lambda x: p.max_pool_with_places(c.b, x, taps, taps))
        return [*_batched(c, self, rank, lambda x: [p.pool(c.b, "max", x, taps, taps)]), None]


for _rank in (1, 2, 3):
    _max_pool(_rank)
    _average_pool(_rank)
    _adaptive_average(_rank)
    _adaptive_max(_rank)
