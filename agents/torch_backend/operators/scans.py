"""Running sums and products."""

from __future__ import annotations

from agents.torch_backend.call import Call, aten
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
