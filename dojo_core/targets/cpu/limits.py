"""What a processor lets a program do: vector widths, sizes, known marks and locations."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from dojo_core.program.instructions import available
from dojo_core.program.target import VECTOR_BYTES, Target, vector_widths
from dojo_core.targets.cpu.processor import SHARED_BYTES_OF_A_CORE, Processor, host

# The smallest stack an OpenMP thread gets by default is 2 MiB (libgomp takes the system's default,
# 8 MiB on Linux, 2 MiB under some container limits); half of 2 MiB is left to everything else.
STACK_BYTES = 1 << 20

# Named locals of one register buffer: more than 32 vector registers spill in any case, and a compiler
# given hundreds of live locals spends its time on allocating them.
REGISTER_CELLS = 1024

# Operations after unrolling: two thirds of a second of gcc. The longest of the recorded lines has 280. The
# generator refuses C of more than MAX_LINES lines.
UNROLLED_OPS = 768
MAX_LINES = 8192

# One-letter scope marks and locations that the C generator knows.
MARKS = frozenset({"u", "p", "v"})
LOCATIONS = ("heap", "stack", "register")


@lru_cache(maxsize=64)
def limits_of(processor: Processor) -> Target:
    """The CPU target on a processor."""
    first, second, last = processor.caches
    return Target(
        name="cpu",
        title=f"CPU ({processor.instruction_set})",
        vector_widths=vector_widths(processor.vector_bytes),
        marks=MARKS,
        locations=LOCATIONS,
        stack_bytes=STACK_BYTES,
        register_cells=REGISTER_CELLS,
        unrolled_ops=UNROLLED_OPS,
        threads=processor.threads,
        vector_registers=processor.vectors[0][1],
        first_cache_bytes=first or 32 << 10,
        cache_bytes=second or 1 << 20,
        shared_cache_bytes=min(last, processor.threads * SHARED_BYTES_OF_A_CORE) or second or 8 << 20,
        instructions=available(processor.features),
        without=frozenset({"stream_load", "clear_stream_load"}),  # loads of cached memory know no such hint
    )


def cpu() -> Target:
    """The CPU target on this machine."""
    return limits_of(host())


target = cpu


def narrower(vector_bytes: int) -> Target:
    """This machine with vector registers of at most so many bytes, and 16 of them, as before AVX-512."""
    host_limits = cpu()
    few = (
        min(16, host_limits.vector_registers)
        if vector_bytes < VECTOR_BYTES[0]
        else host_limits.vector_registers
    )
    sizes = host().narrower(vector_bytes).vector_bytes
    return replace(
        host_limits, vector_widths=vector_widths(sizes), vector_registers=few, instructions=frozenset()
    )
