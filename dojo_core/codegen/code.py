"""What generators hand on: to builders, measurers and those who show code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dojo_core.program.tree import Path


class NotGeneratable(Exception):
    """The program is outside what the generator supports; ``str()`` is a sentence for a person."""


class Generated(Protocol):
    """Code in whatever language: its ``text``, and for each line of it the path of the program node it comes
    from, or None."""

    @property
    def text(self) -> str: ...

    @property
    def nodes(self) -> tuple[Path | None, ...]: ...


@dataclass(frozen=True, slots=True)
class Parameter:
    """One buffer of the interface. ``role`` is ``"in"`` or ``"out"``; ``dtype`` as in the program text."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str


@dataclass(frozen=True, slots=True)
class Code:
    """One generated C function, ``void SYMBOL(void *const *arrays, void *workspace)``.

    ``text`` needs only the generator's ``PREAMBLE`` before it; its first line is the signature.
    ``nodes`` gives for each line of ``text`` the path of the program node it comes from, or None.
    ``parameters`` are the entries of ``arrays``: inputs, then outputs. ``workspace_bytes`` is the size
    of the 64-byte aligned workspace, and ``error_bound`` the sum of the stated relative error bounds
    of the functions used.
    """

    text: str
    symbol: str
    nodes: tuple[Path | None, ...]
    parameters: tuple[Parameter, ...]
    workspace_bytes: int
    error_bound: float
