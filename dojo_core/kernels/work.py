"""What one run of a game's kernel comes to: FLOPs and bytes."""

from __future__ import annotations

from dojo_core import kernels
from dojo_core.kernels.kernel import executed_flops, minimal_bytes
from dojo_core.program.tree import Program


def work_of(kernel: str | None, shape: str, start: Program) -> tuple[float, float]:
    """(FLOPs, bytes), each counted once: the kernel's own at a shape, else those of the start program."""
    if kernel is None:
        return executed_flops(start), minimal_bytes(start)
    known = kernels.get(kernel)
    sizes = known.shape(shape)
    return known.flops(sizes), known.bytes(sizes)
