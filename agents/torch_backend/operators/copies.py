"""Copies: concatenations, paddings, and arrays with a part of them put in another's place."""

from __future__ import annotations

from collections.abc import Sequence

from agents.torch_backend.call import Call, aten
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array
from dojo_core.primitives.copies import fresh, write
from dojo_core.primitives.views import places


@aten("cat", kind=Kind.COPY)
def cat(c: Call, tensors: Sequence[Array], dim: int = 0) -> Array:
    present = [c.converted(t) for t in tensors if t.shape != (0,)]  # which goes with every shape
    return p.concatenate(c.b, present, dim) if present else p.filled(0, c.dtype, c.shape)


@aten("stack", kind=Kind.COPY)
def stack(c: Call, tensors: Sequence[Array], dim: int = 0) -> Array:
    return p.stack(c.b, [c.converted(t) for t in tensors], dim % len(c.shape))


def _pairs(x: Array, pad: Sequence[int]) -> list[tuple[int, int]]:
    """ATen's paddings, from the last axis on, as one pair for each axis."""
    given = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    return [(0, 0)] * (len(x.axes) - len(given)) + given


@aten("constant_pad_nd", kind=Kind.COPY)
def constant_pad(c: Call, self: Array, pad: Sequence[int], value: float = 0) -> Array:
    return p.pad(c.b, self, _pairs(self, pad), value=value)


def _padding(mode: str, name: str) -> None:
    @aten(*(f"{mode}_pad{rank}d" for rank in (1, 2, 3)), kind=Kind.COPY)
    def translate(c: Call, self: Array, padding: Sequence[int]) -> Array:
        return p.pad(c.b, self, _pairs(self, padding), mode=name)


_padding("reflection", "reflect")
_padding("replication", "edge")


@aten("slice_scatter", kind=Kind.COPY)
def slice_scatter(
    c: Call,
    self: Array,
    src: Array,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Array:
    begin, stop, step = slice(start, end, step).indices(self.shape[dim])
    return _replaced(c, self, src, dim, begin, len(range(begin, stop, step)), step)


@aten("select_scatter", kind=Kind.COPY)
def select_scatter(c: Call, self: Array, src: Array, dim: int, index: int) -> Array:
    src = p.unsqueeze(c.b, src, [dim])
    return _replaced(c, self, src, dim, index % self.shape[dim], 1, 1)


def _replaced(c: Call, x: Array, src: Array, dim: int, start: int, count: int, step: int) -> Array:
    whole = fresh(c.b, c.dtype, x.shape)
    write(c.b, whole, "", x)
    write(c.b, places(c.b, whole, dim % len(x.axes), start, count, step), "", c.converted(src))
    return whole


@aten("roll", kind=Kind.COPY)
def roll(c: Call, self: Array, shifts: Sequence[int], dims: Sequence[int] = ()) -> Array:
    x = self if dims else p.reshape(c.b, self, (-1,))
    for shift, dim in zip(shifts, dims or [0], strict=True):
        size = x.shape[dim]
        first = shift % size if size else 0
        if first:
            parts = p.split(c.b, x, [size - first, first], dim)
            x = p.concatenate(c.b, parts[::-1], dim)
    return p.reshape(c.b, x, c.shape)
