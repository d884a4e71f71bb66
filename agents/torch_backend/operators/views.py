"""Views: what is an index and no pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agents.torch_backend.call import Call, aten
from agents.torch_backend.refusal import Refusal
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array
from dojo_core.primitives.views import places

Ints = Sequence[int]


@aten("view", "_unsafe_view", "reshape", kind=Kind.VIEW)
def view(c: Call, self: Array, size: Ints) -> Array:
    return p.reshape(c.b, self, c.shape)


@aten("permute", kind=Kind.VIEW)
def permute(c: Call, self: Array, dims: Ints) -> Array:
    return p.transpose(c.b, self, dims)


@aten("transpose.int", kind=Kind.VIEW)
def transpose(c: Call, self: Array, dim0: int, dim1: int) -> Array:
    order = list(range(len(self.axes)))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return p.transpose(c.b, self, order)


@aten("t", kind=Kind.VIEW)
def matrix_transpose(c: Call, self: Array) -> Array:
    return p.transpose(c.b, self)


@aten("unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims", kind=Kind.VIEW)
def of_size_one(c: Call, self: Array, dim: Ints | int | None = None) -> Array:
    return p.reshape(c.b, self, c.shape)


@aten("expand", kind=Kind.VIEW)
def expand(c: Call, self: Array, size: Ints, implicit: bool = False) -> Array:
    return p.broadcast(c.b, self, c.shape)


@aten("slice.Tensor", kind=Kind.VIEW)
def slice_(
    c: Call, self: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    return p.slice_(c.b, self, dim, start, end, step)


@aten("select.int", kind=Kind.VIEW)
def select(c: Call, self: Array, dim: int, index: int) -> Array:
    size = self.shape[dim]
    return p.squeeze(c.b, places(c.b, self, dim % len(self.axes), index % size, 1), [dim])


@aten("split_with_sizes", kind=Kind.VIEW)
def split_with_sizes(c: Call, self: Array, split_sizes: Ints, dim: int = 0) -> Sequence[Array]:
    return p.split(c.b, self, split_sizes, dim)


@aten("split.Tensor", kind=Kind.VIEW)
def split(c: Call, self: Array, split_size: int, dim: int = 0) -> Sequence[Array]:
    return p.split(c.b, self, [shape[dim] for shape in c.shapes], dim)


@aten("unbind.int", kind=Kind.VIEW)
def unbind(c: Call, self: Array, dim: int = 0) -> Sequence[Array]:
    return [select(c, self, dim, k) for k in range(self.shape[dim])]


@aten("diagonal", kind=Kind.VIEW)
def diagonal(c: Call, self: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    first, second, rank = dim1 % len(self.axes), dim2 % len(self.axes), len(self.axes)
    count = c.shape[-1]
    self = places(c.b, self, first, max(-offset, 0), count)
    self = places(c.b, self, second, max(offset, 0), count)
    names = [f"a{k}" for k in range(rank)]
    names[first] = names[second] = "d"
    kept = [name for name in names if name != "d"]
    return p.contract(c.b, f"{' '.join(names)} -> {' '.join([*kept, 'd'])}", self)


@aten("repeat", kind=Kind.VIEW)
def repeat(c: Call, self: Array, repeats: Ints) -> Array:
    added = len(repeats) - len(self.axes)
    return p.tile(c.b, p.unsqueeze(c.b, self, range(added)), repeats)


@aten("flip", kind=Kind.VIEW)
def flip(c: Call, self: Array, dims: Ints) -> Array:
    for dim in dims:
        self = p.flip(c.b, self, dim)
    return self


@aten("as_strided", kind=Kind.VIEW)
def as_strided(c: Call, self: Array, size: Ints, stride: Ints, storage_offset: int | None = None) -> Array:
    if not c.row_major:
        raise Refusal("it asks how a tensor lies in memory", "use slices, unfold or view")
    offset, count = storage_offset or 0, math.prod(self.shape)
    if not offset and math.prod(size) == count and _is_row_major(size, stride):
        return p.reshape(c.b, self, size)
    x = places(c.b, p.reshape(c.b, self, (count,)), 0, offset, count - offset)
    for axis, (number, step) in enumerate(zip(size, stride, strict=True)):
        # Where this axis leads, all that is within reach of the inner ones begins.
        inner = zip(size[axis + 1 :], stride[axis + 1 :], strict=True)
        reach = 1 + sum((several - 1) * apart for several, apart in inner)
        x = p.window(c.b, x, axis, reach, max(step, 1))
        x = places(c.b, x, axis, 0, number if step else 1)
        x = p.broadcast(c.b, x, (*x.shape[:axis], number, reach))
    return p.squeeze(c.b, x, [len(size)])


def _is_row_major(size: Ints, stride: Ints) -> bool:
    wanted = 1
    for number, step in reversed(list(zip(size, stride, strict=True))):
        if number > 1 and step != wanted:
            return False
        wanted *= number
    return True


@aten("unfold", kind=Kind.VIEW)
def unfold(c: Call, self: Array, dimension: int, size: int, step: int) -> Array:
    return p.window(c.b, self, dimension, size, step)
