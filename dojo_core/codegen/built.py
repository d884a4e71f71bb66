"""What builders hand on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel in a shared object; other kernels of its batch may lie in the same one."""

    library: str
    symbol: str
    code_hash: str


@dataclass(frozen=True, slots=True)
class CompileError:
    """What the compiler said. Not ``settled``: it was stopped, and another try may go well."""

    message: str
    code_hash: str
    settled: bool = True
