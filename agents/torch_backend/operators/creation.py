"""Arrays made of numbers and places alone; none of them costs a pass."""

from __future__ import annotations

from collections.abc import Sequence

from agents.torch_backend.call import Call, Number, aten
from agents.torch_backend.refusal import Refusal
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array


def _filled(c: Call, value: Number) -> Array:
    if value != value:
        return p.broadcast(c.b, not_a_number(c), c.shape)
    return p.convert(c.b, p.filled(value, "f64" if isinstance(value, float) else "i64", c.shape), c.dtype)


def not_a_number(c: Call) -> Array:
    """No number of a text is NaN: it is inf - inf."""
    infinite = p.elementwise(c.b, "log", 0, dtype=c.computed)
    return p.elementwise(c.b, "-", infinite, infinite, dtype=c.dtype)


@aten("full", kind=Kind.VIEW)
def full(c: Call, size: Sequence[int], fill_value: Number, dtype: str | None = None) -> Array:
    return _filled(c, fill_value)


@aten("full_like", kind=Kind.VIEW)
def full_like(c: Call, self: Array, fill_value: Number, dtype: str | None = None) -> Array:
    return _filled(c, fill_value)


@aten("fill.Scalar", kind=Kind.VIEW)
def fill(c: Call, self: Array, value: Number) -> Array:
    return _filled(c, value)


@aten("scalar_tensor", kind=Kind.VIEW)
def scalar_tensor(c: Call, s: Number, dtype: str | None = None) -> Array:
    return _filled(c, s)


@aten(
    "zeros", "zeros_like", "empty.memory_format", "empty_like", "empty_strided", "new_zeros", "new_empty",
    kind=Kind.VIEW,
)  # fmt: skip
def zeros(c: Call, self: object, size: object = None, dtype: str | None = None) -> Array:
    """What is empty holds anything: it is 0 here."""
    return _filled(c, 0)


@aten("ones", "ones_like", "new_ones", kind=Kind.VIEW)
def ones(c: Call, self: object, size: object = None, dtype: str | None = None) -> Array:
    return _filled(c, 1)


@aten("arange.start_step", kind=Kind.VIEW)
def arange(c: Call, start: Number, end: Number, step: Number = 1, dtype: str | None = None) -> Array:
    if not all(isinstance(n, int) for n in (start, step)):
        place = p.iterator(c.b, c.shape, 0, "i32")
        return c.formula("a + i * s", a=start, s=step, i=p.convert(c.b, place, c.computed))
    place = p.iterator(c.b, c.shape, 0, "i64")
    return c.converted(p.formula(c.b, "i * s + a", dtype="i64", i=place, s=int(step), a=int(start)))


@aten("arange", kind=Kind.VIEW)
def arange_to(c: Call, end: Number, dtype: str | None = None) -> Array:
    return arange(c, 0, end)


@aten("arange.start", kind=Kind.VIEW)
def arange_from(c: Call, start: Number, end: Number, dtype: str | None = None) -> Array:
    return arange(c, start, end)


@aten("eye", "eye.m", kind=Kind.POINTWISE)
def eye(c: Call, n: int, m: int | None = None, dtype: str | None = None) -> Array:
    rows, columns = (p.iterator(c.b, c.shape, axis, "i64") for axis in (0, 1))
    return p.elementwise(c.b, "==", rows, columns, dtype=c.dtype)


def _triangle(name: str, sign: str) -> None:
    @aten(name, kind=Kind.POINTWISE)
    def translate(c: Call, self: Array, diagonal: int = 0) -> Array:
        row, column = (p.iterator(c.b, self.shape, axis, "i64") for axis in (-2, -1))
        inside = p.elementwise(c.b, sign, p.elementwise(c.b, "-", column, row), diagonal)
        return p.select(c.b, inside, self, 0, dtype=c.dtype)


_triangle("tril", "<=")
_triangle("triu", ">=")


@aten("rand", "randn", "randperm", "bernoulli.p", "rand_like", "randn_like", kind=Kind.OTHER)
def random(c: Call, *given: object, **named: object) -> Array:
    raise Refusal("it draws random numbers, and a kernel's results are those of its inputs")
