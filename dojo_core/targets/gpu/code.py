"""What the GPU generator hands to builders, the emulator and the worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dojo_core.codegen.code import Parameter
from dojo_core.program.tree import Path


@dataclass(frozen=True, slots=True)
class Pointer:
    """A kernel's argument: a buffer of the interface (``array``: its number), or a piece of the workspace
    ``offset`` bytes in (``array`` None)."""

    array: int | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch: so many blocks of so many threads. ``pointers`` are its first arguments, then
    the iterators of the host's loops at ``loops`` (numbers of enclosing loops, outermost 0), each an int."""

    symbol: str
    blocks: int
    threads: int
    pointers: tuple[Pointer, ...]
    loops: tuple[int, ...]
    mapped: bool
    path: Path


@dataclass(frozen=True, slots=True)
class HostLoop:
    """``size`` times what stands in it, in order."""

    size: int
    body: tuple[HostLoop | Launch, ...]


Step = HostLoop | Launch


@dataclass(frozen=True, slots=True)
class GpuCode:
    """Generated CUDA or HIP: ``text`` goes to the compiler byte for byte; ``steps`` is what the host does.

    ``symbol`` names the host function in ``text``, ``kernels`` the device ones. ``nodes`` gives for each
    line of ``text`` the path of the program node it comes from, or None. ``barriers`` are the lines
    (from 0) on which a barrier of the block or of a warp stands. ``workspace_bytes`` is the size of the
    256-byte aligned device memory for heap temporaries; ``error_bound`` the sum of the stated relative
    error bounds of the functions used; ``strict`` forbids the compiler to fuse products and sums.
    """

    dialect: str
    text: str
    symbol: str
    kernels: tuple[str, ...]
    nodes: tuple[Path | None, ...]
    barriers: tuple[int, ...]
    steps: tuple[Step, ...]
    parameters: tuple[Parameter, ...]
    workspace_bytes: int
    error_bound: float
    strict: bool
    warp: int

    def launches(self) -> Iterator[tuple[Launch, tuple[int, ...]]]:
        """Every launch of a run in order, with the values of the host's loops around it."""

        def below(
            steps: tuple[Step, ...], iterators: tuple[int, ...]
        ) -> Iterator[tuple[Launch, tuple[int, ...]]]:
            for step in steps:
                if isinstance(step, Launch):
                    yield step, iterators
                else:
                    for value in range(step.size):
                        yield from below(step.body, (*iterators, value))

        return below(self.steps, ())
