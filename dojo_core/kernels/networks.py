"""The layers of known networks as named shapes of kernels; the table is networks.txt."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("networks.txt")


@dataclass(frozen=True)
class Layer:
    """One layer: its name (network, dot, layer), the kernel that computes it, and the shape's text."""

    name: str
    kernel: str
    shape: str

    @property
    def network(self) -> str:
        return self.name.partition(".")[0]


@cache
def layers() -> dict[str, Layer]:
    """All layers by name, in the order of the table."""
    rows = (line.split() for line in TABLE.read_text(encoding="utf-8").splitlines())
    return {row[0]: Layer(*row) for row in rows if row and not row[0].startswith("#")}


def networks() -> tuple[str, ...]:
    """The networks' names."""
    return tuple(dict.fromkeys(layer.network for layer in layers().values()))


def layers_of(kernel: str) -> tuple[Layer, ...]:
    """The layers that a kernel computes."""
    return tuple(layer for layer in layers().values() if layer.kernel == kernel)
