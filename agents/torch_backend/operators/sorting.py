"""Order: sorting, the largest, and places among what is sorted. All of it by counting, which needs no data
to say where a program goes."""

from __future__ import annotations

from collections.abc import Sequence

from agents.torch_backend.call import Call, Number, aten, is_float
from agents.torch_backend.refusal import Refusal
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array
from dojo_core.primitives.views import places

LONGEST = 1024  # of what is compared pair by pair


def _ranks(c: Call, x: Array, descending: bool) -> Array:
    """How many elements of its row [..., n] come before each: those ahead of it, and equal ones on its left.
    A NaN is larger than all, as PyTorch has it."""
    rank, size = len(x.axes), x.shape[-1]
    if size > LONGEST:
        raise Refusal(f"it compares each of {size} elements with each, where PyTorch sorts", "keep it there")
    mine, other = p.unsqueeze(c.b, x, [rank]), p.unsqueeze(c.b, x, [rank - 1])
    pairs = (*x.shape, size)
    i, j = p.iterator(c.b, pairs, rank - 1), p.iterator(c.b, pairs, rank)
    text = f"select(o {'>' if descending else '<'} m, 1, select(o == m, j < i, 0))"
    if is_float(x.dtype):
        among = "select(isnan(o), j < i, 0)" if descending else "select(isnan(o), j < i, 1)"
        text = f"select(isnan(m), {among}, {f'select(isnan(o), 1, {text})' if descending else text})"
    ahead = p.formula(c.b, text, dtype="i32", o=other, m=mine, i=i, j=j)
    return p.reduce(c.b, "+", p.broadcast(c.b, ahead, pairs), rank)


def _sorted(c: Call, x: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    """The elements in their order along an axis, and where each was."""
    if not x.axes:
        return x, p.filled(0, "i64", ())
    axis = dim % len(x.axes)
    order = [*(k for k in range(len(x.axes)) if k != axis), axis]
    rows = p.transpose(c.b, x, order)
    rank = _ranks(c, rows, descending)
    at: list[Array | int] = [*range(len(order) - 1), rank]
    place = p.iterator(c.b, rows.shape, len(order) - 1, "i64")
    back = [order.index(k) for k in range(len(order))]
    values, index = (
        p.transpose(c.b, p.scatter(c.b, p.filled(0, each.dtype, rows.shape), each, at), back)
        for each in (rows, place)
    )
    return values, index


@aten("sort", kind=Kind.OTHER)
def sort(c: Call, self: Array, dim: int = -1, descending: bool = False) -> Sequence[Array]:
    return _sorted(c, self, dim, descending)


@aten("sort.stable", kind=Kind.OTHER)
def stable_sort(
    c: Call, self: Array, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> Sequence[Array]:
    return _sorted(c, self, dim, descending)


@aten("topk", kind=Kind.OTHER)
def topk(
    c: Call, self: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Sequence[Array]:
    if not self.axes:
        return _sorted(c, self, dim, largest)
    return [places(c.b, x, dim % len(x.axes), 0, k) for x in _sorted(c, self, dim, largest)]


@aten("kthvalue", kind=Kind.OTHER)
def kthvalue(c: Call, self: Array, k: int, dim: int = -1, keepdim: bool = False) -> Sequence[Array]:
    results = _sorted(c, self, dim, False)
    if not self.axes:
        return results
    axis = dim % len(self.axes)
    chosen = [places(c.b, x, axis, k - 1, 1) for x in results]
    return chosen if keepdim else [p.squeeze(c.b, x, [axis]) for x in chosen]


@aten("searchsorted.Tensor", kind=Kind.REDUCTION)
def searchsorted(
    c: Call,
    sorted_sequence: Array,
    self: Array,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Array:
    """How many of a sorted row are below each value, or not above it: where it goes."""
    if sorter is not None:
        sorted_sequence = p.gather_along(c.b, sorted_sequence, sorter, -1)
    rank = len(self.axes)
    row = p.unsqueeze(c.b, sorted_sequence, [len(sorted_sequence.axes) - 1] if self.axes else [])
    sign = ">" if right or side == "right" else ">="
    # Not (s >= v), rather than s < v: a NaN goes to the end.
    behind = p.formula(c.b, f"select(s {sign} v, 0, 1)", dtype="i64", s=row, v=p.unsqueeze(c.b, self, [rank]))
    behind = p.broadcast(c.b, behind, (*self.shape, sorted_sequence.shape[-1]))
    return c.converted(p.reduce(c.b, "+", behind, rank))


@aten("bucketize.Tensor", kind=Kind.REDUCTION)
def bucketize(c: Call, self: Array, boundaries: Array, out_int32: bool = False, right: bool = False) -> Array:
    return searchsorted(c, boundaries, self, out_int32, right)


@aten("bucketize.Scalar", kind=Kind.REDUCTION)
def bucketize_number(
    c: Call, self: Number, boundaries: Array, out_int32: bool = False, right: bool = False
) -> Array:
    return searchsorted(c, boundaries, p.filled(self, boundaries.dtype, ()), out_int32, right)
