"""What a target is to the core: its limits and the marks and locations it knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Target:
    """Limits of one kind of machine. Legality reads these and knows no target by name."""

    name: str
    title: str
    vector_widths: Mapping[str, tuple[int, ...]]  # lanes per dtype, widest first
    marks: frozenset[str]  # scope marks that the code generator knows
    locations: tuple[str, ...]
    stack_bytes: int  # of all stack buffers that live at once, per thread
    register_cells: int  # scalars or vectors of one register buffer
    unrolled_ops: int  # operations after unrolling, in the whole kernel
    threads: int
    vector_registers: int = 16
    cache_bytes: int = 1 << 20  # the cache of one core that a block of data should fit (the second level)
    shared_cache_bytes: int = 8 << 20  # the last level, which all cores share
    moves: frozenset[str] | None = None  # None: every move whose marks and locations it knows

    def __hash__(self) -> int:
        return hash(self.name)


class UnknownTarget(ValueError):
    """Raised with a sentence that lists the known targets."""


@cache
def target(name: str) -> Target:
    """The target of that name. Raises UnknownTarget."""
    if name == "cpu":
        from dojo_core.targets.cpu.limits import cpu

        return cpu()
    raise UnknownTarget(f"There is no target {name!r}. The targets are: cpu.")
