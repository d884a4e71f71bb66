"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from agents.torch_backend.call import Call, aten
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array


def _product(c: Call, form: str, x: Array, y: Array) -> Array:
    return p.contract(c.b, form, x, y, dtype=c.dtype)


@aten("mm", kind=Kind.CONTRACTION)
def mm(c: Call, self: Array, mat2: Array) -> Array:
    return _product(c, "mk,kn->mn", self, mat2)


@aten("bmm", kind=Kind.CONTRACTION)
def bmm(c: Call, self: Array, mat2: Array) -> Array:
    return _product(c, "bmk,bkn->bmn", self, mat2)


@aten("mv", kind=Kind.CONTRACTION)
def mv(c: Call, self: Array, vec: Array) -> Array:
    return _product(c, "mk,k->m", self, vec)


@aten("dot", "vdot", kind=Kind.CONTRACTION)
def dot(c: Call, self: Array, tensor: Array) -> Array:
    return _product(c, "k,k->", self, tensor)


def _added(c: Call, form: str, self: Array, x: Array, y: Array, beta: float, alpha: float) -> Array:
    """``beta * self + alpha * (x @ y)``; where beta is 0 ``self`` is not read, NaNs and all."""
    if alpha == 1 and beta == 1:
        return p.contract(c.b, form, x, y, dtype=c.dtype, start=self)
    product = p.contract(c.b, form, x, y, dtype=c.computed)
    if beta == 0:
        return c.formula("a * p", p=product, a=alpha)
    return c.formula("b * x + a * p", x=self, p=product, a=alpha, b=beta)


@aten("addmm", kind=Kind.CONTRACTION)
def addmm(c: Call, self: Array, mat1: Array, mat2: Array, beta: float = 1, alpha: float = 1) -> Array:
    return _added(c, "mk,kn->mn", self, mat1, mat2, beta, alpha)


@aten("baddbmm", kind=Kind.CONTRACTION)
def baddbmm(c: Call, self: Array, batch1: Array, batch2: Array, beta: float = 1, alpha: float = 1) -> Array:
    return _added(c, "bmk,bkn->bmn", self, batch1, batch2, beta, alpha)


@aten("addmv", kind=Kind.CONTRACTION)
def addmv(c: Call, self: Array, mat: Array, vec: Array, beta: float = 1, alpha: float = 1) -> Array:
    return _added(c, "mk,k->m", self, mat, vec, beta, alpha)


@aten("linear", kind=Kind.CONTRACTION)
def linear(c: Call, input: Array, weight: Array, bias: Array | None = None) -> Array:  # noqa: A002
    names = "abcdefgh"[: len(input.axes) - 1]
    out = "n" if len(weight.axes) == 2 else ""
    form = f"{names}k,{out}k->{names}{out}"
    return p.contract(c.b, form, input, weight, dtype=c.dtype, start=bias)


@aten("_trilinear", kind=Kind.CONTRACTION)
def trilinear(
    c: Call,
    i1: Array,
    i2: Array,
    i3: Array,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Array:
    """The product of three, each with new axes, summed over some: what ``bilinear`` is."""
    grown = [p.unsqueeze(c.b, x, e) for x, e in ((i1, expand1), (i2, expand2), (i3, expand3))]
    names = [f"a{k}" for k in range(len(grown[0].axes))]
    kept = [name for k, name in enumerate(names) if k not in sumdim]
    one = " ".join(names)
    return p.contract(c.b, f"{one}, {one}, {one} -> {' '.join(kept)}", *grown, dtype=c.dtype)
