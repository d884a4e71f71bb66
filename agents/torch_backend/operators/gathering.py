"""Elements at places that are data: embeddings, gathers, indexing by arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agents.torch_backend.call import Call, aten
from agents.torch_backend.refusal import Refusal
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array
from dojo_core.primitives.views import joint_shape, places


@aten("embedding", kind=Kind.COPY)
def embedding(
    c: Call,
    weight: Array,
    indices: Array,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    c.promise(indices, 0, weight.shape[0])
    return p.gather(c.b, weight, indices, 0)


@aten("index_select", kind=Kind.COPY)
def index_select(c: Call, self: Array, dim: int, index: Array) -> Array:
    if not self.axes:
        return self
    c.promise(index, 0, self.shape[dim])
    if not index.axes:
        index = p.reshape(c.b, index, (1,))
    return p.gather(c.b, self, index, dim)


@aten("gather", kind=Kind.COPY)
def gather(c: Call, self: Array, dim: int, index: Array, sparse_grad: bool = False) -> Array:
    if not self.axes:
        return p.broadcast(c.b, self, c.shape)
    axis = dim % len(self.axes)
    c.promise(index, 0, self.shape[axis])
    for k, size in enumerate(index.shape):
        if k != axis:
            self = places(c.b, self, k, 0, size)
    return p.gather_along(c.b, self, index, axis)


@aten("index.Tensor", "_unsafe_index.Tensor", kind=Kind.COPY)
def index(c: Call, self: Array, indices: Sequence[Array | None]) -> Array:
    """NumPy's indexing: the axes of the indices stand where the indexed ones were, in front where those are
    apart."""
    indexed = [k for k, each in enumerate(indices) if each is not None]
    given = [each for each in indices if each is not None]
    if any(each.dtype == "bool" for each in given):
        raise Refusal(
            "the shape of what a mask selects hangs on data", "multiply by the mask, or use torch.where"
        )
    together = indexed == list(range(indexed[0], indexed[-1] + 1))
    first = indexed[0] if together else 0
    rest = [k for k in range(len(self.axes)) if k not in indexed]
    self = p.transpose(c.b, self, [*rest[:first], *indexed, *rest[first:]])
    sizes = self.shape[first : first + len(indexed)]
    if len(given) == 1:
        c.promise(given[0], -sizes[0], sizes[0])
        return p.gather(c.b, self, given[0], first)
    shape = joint_shape([each.shape for each in given])
    place = p.filled(0, "i64", ())
    for each, size in zip(given, sizes, strict=True):
        c.promise(each, -size, size)
        place = p.formula(c.b, "p * n + i", dtype="i64", p=place, n=size, i=counted(c, each, size))
    self = p.reshape(c.b, self, (*self.shape[:first], math.prod(sizes), *self.shape[first + len(indexed) :]))
    return p.gather(c.b, self, p.broadcast(c.b, place, shape), first)


def counted(c: Call, index: Array, size: int) -> Array:
    """Indices from 0 on, of ones that may count from the end."""
    index = p.convert(c.b, index, "i64")
    if index.is_free:  # places along an axis, or numbers
        return index
    return p.formula(c.b, "min(max(select(i < 0, i + n, i), 0), n - 1)", dtype="i64", i=index, n=size)
