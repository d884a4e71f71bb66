"""Running sums, products and extremes."""

from __future__ import annotations

from collections.abc import Sequence

from agents.torch_backend.call import Call, aten, is_float
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array


def _scan(name: str, accumulation: str) -> None:
    @aten(name, kind=Kind.OTHER)
    def translate(c: Call, self: Array, dim: int, dtype: str | None = None) -> Array:
        x = c.converted(self)
        return p.scan(c.b, accumulation, x, dim) if x.axes else x


_scan("cumsum", "+")
_scan("cumprod", "*")


def _extreme(name: str, accumulation: str) -> None:
    @aten(name, kind=Kind.OTHER)
    def translate(c: Call, self: Array, dim: int) -> Sequence[Array]:
        """The largest or least so far, and where the last of equals was; behind a NaN it is the last NaN."""
        if not self.axes:
            return self, p.filled(0, "i64", ())
        running = p.scan(c.b, accumulation, self, dim)
        is_it = "(x == m) | isnan(x)" if is_float(self.dtype) else "x == m"
        place = p.iterator(c.b, self.shape, dim, "i64")
        at = p.formula(c.b, f"select({is_it}, i, 0)", dtype="i64", x=self, m=running, i=place)
        return running, p.scan(c.b, "max", at, dim)


_extreme("cummax", "max")
_extreme("cummin", "min")
