"""What this machine's processor lets a program do: vector widths, sizes, known marks and locations."""

from __future__ import annotations

import platform
from dataclasses import replace
from functools import cache

from dojo_core.program.dtypes import arithmetic
from dojo_core.program.instructions import available
from dojo_core.program.target import Target
from dojo_core.program.tree import DTYPE_BYTES
from dojo_core.system import cache_bytes, cores, features, is_x86

# The smallest stack an OpenMP thread gets by default is 2 MiB (libgomp takes the system's default,
# 8 MiB on Linux, 2 MiB under some container limits); half of 2 MiB is left to everything else.
STACK_BYTES = 1 << 20

# Named locals of one register buffer: more than 32 vector registers spill in any case, and a compiler
# given hundreds of live locals spends its time on allocating them.
REGISTER_CELLS = 1024

# Operations after unrolling: a third of a second of gcc. The longest of the recorded lines has 280. The
# generator refuses C of more than MAX_LINES lines.
UNROLLED_OPS = 384
MAX_LINES = 8192

# One-letter scope marks and locations that the C generator knows.
MARKS = frozenset({"u", "p", "v"})
LOCATIONS = ("heap", "stack", "register")

# The dtypes that C vectors hold: bool is a byte of 0 or 1 without arithmetic of its own.
VECTOR_DTYPES = ("f64", "f32", "i64", "i32", "i16", "i8", "u8", "f16", "bf16")


# A virtual machine of few cores is told the last-level cache of a whole socket, which others share: no more
# of it counts as one's own than a core has that shares its cache with few.
SHARED_BYTES_OF_A_CORE = 16 << 20
VECTOR_BYTES = (64, 32, 16)  # of a vector register: AVX-512, AVX2, and what every x86-64 and AArch64 has


def vector_bytes(known: frozenset[str]) -> tuple[int, ...]:
    """Register sizes in bytes, widest first. SSE2 is part of x86-64, Advanced SIMD of AArch64."""
    if "avx512f" in known and "avx512bw" in known and "avx512vl" in known and "avx512dq" in known:
        return VECTOR_BYTES
    return VECTOR_BYTES[1:] if "avx2" in known else VECTOR_BYTES[2:]


def vector_widths(known: frozenset[str]) -> dict[str, tuple[int, ...]]:
    """Legal lane counts per dtype, widest first: of f16 and bf16 those of f32, in which they are computed."""
    return {d: tuple(b // DTYPE_BYTES[arithmetic(d)] for b in vector_bytes(known)) for d in VECTOR_DTYPES}


@cache
def cpu() -> Target:
    """The CPU target on this machine."""
    threads = len(cores())
    return Target(
        name="cpu",
        title=f"CPU ({platform.machine()})",
        vector_widths=vector_widths(features()),
        marks=MARKS,
        locations=LOCATIONS,
        stack_bytes=STACK_BYTES,
        register_cells=REGISTER_CELLS,
        unrolled_ops=UNROLLED_OPS,
        threads=threads,
        vector_registers=16 if is_x86() and "avx512f" not in features() else 32,
        first_cache_bytes=cache_bytes(1) or 32 << 10,
        cache_bytes=cache_bytes(2) or 1 << 20,
        shared_cache_bytes=min(cache_bytes(3), threads * SHARED_BYTES_OF_A_CORE) or cache_bytes(2) or 8 << 20,
        instructions=available(features()),
    )


target = cpu


def narrower(vector_bytes: int) -> Target:
    """This machine with vector registers of at most so many bytes, and 16 of them, as before AVX-512."""
    widths = {dtype: tuple(n for n in each if n * DTYPE_BYTES[arithmetic(dtype)] <= vector_bytes)
              for dtype, each in cpu().vector_widths.items()}  # fmt: skip
    few = min(16, cpu().vector_registers) if vector_bytes < VECTOR_BYTES[0] else cpu().vector_registers
    return replace(cpu(), vector_widths=widths, vector_registers=few, instructions=frozenset())
