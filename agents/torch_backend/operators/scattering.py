"""Writes at places that are data: scatters, assignments to what arrays index, masks that take from a list."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agents.torch_backend.call import Call, Value, aten, is_float
from agents.torch_backend.operators.gathering import counted
from agents.torch_backend.refusal import Refusal
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array
from dojo_core.primitives.elementwise import identity
from dojo_core.primitives.views import joint_shape, places

REDUCTIONS = {"sum": "+", "add": "+", "mean": "+", "prod": "*", "multiply": "*", "amax": "max", "amin": "min"}


def _scattered(c: Call, self: Array, dim: int, index: Array, src: Value, accumulation: str) -> Array:
    """Elements written along an axis at the places that the index has for them, row by row."""
    if not isinstance(src, Array):
        src = p.filled(src, self.dtype, index.shape)
    if not self.axes:
        self, index, src = (p.reshape(c.b, x, (1,)) for x in (self, index, src))
    axis = dim % len(self.axes)
    c.promise(index, 0, self.shape[axis])
    for k, size in enumerate(index.shape):  # of the source so many are taken
        src = places(c.b, src, k, 0, size)
    at = [index if k == axis else k for k in range(len(self.axes))]
    return p.reshape(c.b, p.scatter(c.b, self, src, at, accumulation), c.shape)


@aten("scatter.src", "scatter.value", kind=Kind.OTHER)
def scatter(c: Call, self: Array, dim: int, index: Array, src: Value) -> Array:
    return _scattered(c, self, dim, index, src, "")


@aten("scatter_add", kind=Kind.OTHER)
def scatter_add(c: Call, self: Array, dim: int, index: Array, src: Array) -> Array:
    return c.converted(_scattered(c, c.widened(self), dim, index, c.widened(src), "+"))


@aten("scatter.reduce", "scatter.value_reduce", kind=Kind.OTHER)
def scatter_by(c: Call, self: Array, dim: int, index: Array, src: Value, reduce: str) -> Array:
    return scatter_reduce(c, self, dim, index, src, reduce)


@aten("scatter_reduce.two", kind=Kind.OTHER)
def scatter_reduce(
    c: Call, self: Array, dim: int, index: Array, src: Value, reduce: str, include_self: bool = True
) -> Array:
    """Where ``include_self`` is false, an element that is written to begins anew."""
    x, accumulation = c.widened(self), REDUCTIONS[reduce]
    given = c.widened(src) if isinstance(src, Array) else src
    if not include_self:
        begin = identity(accumulation, x.dtype)
        if math.isinf(begin) or abs(begin) > 1:  # of max and min: the first that is written
            x = _scattered(c, x, dim, index, given, "")
        else:
            x = _scattered(c, x, dim, index, begin, "")
    total = _scattered(c, x, dim, index, given, accumulation)
    if reduce != "mean":
        return c.converted(total)
    start = p.filled(1 if include_self else 0, "i64", self.shape)
    count = _scattered(c, start, dim, index, 1, "+")
    if not is_float(c.computed):
        raise Refusal("means of whole numbers are rounded down", "convert to a floating-point dtype")
    return c.formula("t / max(n, 1)", t=total, n=p.convert(c.b, count, c.computed))


@aten("index_put", "_unsafe_index_put", kind=Kind.OTHER)
def index_put(
    c: Call, self: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False
) -> Array:
    """NumPy's ``self[indices] = values``, or ``+=``; of two values for one element the later one stays."""
    given = [each for each in indices if each is not None]
    if any(each.dtype == "bool" for each in given):
        return _masked(c, self, indices, values, accumulate)
    indexed = [k for k, each in enumerate(indices) if each is not None]
    together = indexed == list(range(indexed[0], indexed[-1] + 1))
    first = indexed[0] if together else 0
    shape = joint_shape([each.shape for each in given])
    rest = [k for k in range(len(self.axes)) if k not in indexed]
    whole = [self.shape[k] for k in rest]
    updates = p.broadcast(c.b, c.widened(values), (*whole[:first], *shape, *whole[first:]))
    at: list[Array | int] = [0] * len(self.axes)
    behind = len(rest) - first
    for each, k in zip(given, indexed, strict=True):
        c.promise(each, -self.shape[k], self.shape[k])
        place = p.broadcast(c.b, counted(c, each, self.shape[k]), shape)
        at[k] = p.unsqueeze(c.b, place, range(len(shape), len(shape) + behind))
    for number, k in enumerate(rest):
        at[k] = number if number < first else number + len(shape)
    if not accumulate:
        return p.scatter(c.b, self, c.converted(updates), at)
    return c.converted(p.scatter(c.b, c.widened(self), updates, at, "+"))


def _masked(c: Call, self: Array, indices: Sequence[Array | None], values: Array, accumulate: bool) -> Array:
    """With one mask that stands in front, and the same values for all that it selects."""
    mask, *others = indices
    if mask is None or mask.dtype != "bool" or any(each is not None for each in others):
        raise Refusal("how many a mask selects hangs on data", "use torch.where")
    behind = len(self.axes) - len(mask.axes)
    if len(values.axes) > behind and any(size != 1 for size in values.shape[: len(values.axes) - behind]):
        raise Refusal("how many a mask selects hangs on data", "use torch.where or masked_scatter")
    if len(values.axes) > behind:
        values = p.reshape(c.b, values, values.shape[len(values.axes) - behind :])
    mask = p.unsqueeze(c.b, mask, range(len(mask.axes), len(self.axes)))
    if accumulate:
        return c.formula("select(m, x + v, x)", m=mask, x=self, v=values)
    return p.select(c.b, mask, c.converted(values), self, dtype=c.dtype)


@aten("masked_scatter", kind=Kind.OTHER)
def masked_scatter(c: Call, self: Array, mask: Array, source: Array) -> Array:
    """Each element that the mask selects is the next one of the source."""
    mask = p.broadcast(c.b, mask, self.shape)
    count = math.prod(self.shape)
    chosen = p.convert(c.b, p.reshape(c.b, mask, (count,)), "i64")
    number = p.scan(c.b, "+", chosen, 0, exclusive=True)
    flat = p.reshape(c.b, source, (math.prod(source.shape),))
    taken = p.reshape(c.b, p.gather(c.b, flat, number, 0), self.shape)
    return p.select(c.b, mask, taken, self, dtype=c.dtype)


@aten("_embedding_bag", "_embedding_bag_forward_only", kind=Kind.OTHER)
def embedding_bag(
    c: Call,
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Sequence[Array | None]:
    """Rows of a table, summed (mode 0), averaged (1), or the largest of them (2), bag by bag."""
    if c.wanted != {0}:
        raise Refusal("what it tells of its bags is wanted, which is for gradients")
    count, bags = indices.shape[0], c.shape[0]
    c.promise(indices, 0, weight.shape[0])
    # The bag of a place: how many begin there or before, less one.
    first = p.unsqueeze(c.b, places(c.b, offsets, 0, 0, bags), [0])
    begun = p.formula(
        c.b, "select(o <= i, 1, 0)", dtype="i64", o=first, i=p.iterator(c.b, (count, 1), 0, "i64")
    )
    bag = p.elementwise(c.b, "-", p.reduce(c.b, "+", p.broadcast(c.b, begun, (count, bags)), 1), 1)
    at: list[Array | int] = [p.unsqueeze(c.b, bag, [1]), 1]
    kept = p.elementwise(c.b, "!=", p.unsqueeze(c.b, indices, [1]), padding_idx)
    rows = c.widened(p.gather(c.b, weight, indices, 0))
    if per_sample_weights is not None:
        rows = p.formula(c.b, "r * w", r=rows, w=p.unsqueeze(c.b, per_sample_weights, [1]))
    one = p.select(c.b, kept, 1, 0, dtype=c.computed)
    total = p.scatter(c.b, p.filled(0, c.computed, (bags, 1)), one, at, "+")
    accumulation = "max" if mode == 2 else "+"
    begin = identity(accumulation, c.computed)
    rows = p.select(c.b, kept, rows, begin, dtype=c.computed)
    result = p.scatter(c.b, p.filled(begin, c.computed, c.shape), rows, at, accumulation)
    text = ("r", "r / max(n, 1)", "select(n > 0, r, 0)")[mode]
    return [c.formula(text, r=result, n=total), None, None, None]
