"""What a compiler says of a kernel without running it: registers, spills, shared memory, and what follows."""

from __future__ import annotations

from dataclasses import dataclass

from dojo_core.extras import install_line


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel as compiled: per thread ``registers``, ``spill_bytes`` (stores and loads) and
    ``stack_bytes``; per block ``threads`` and ``shared_bytes``. ``occupancy``: resident warps over what a
    multiprocessor holds, 0 to 1. ``wide``: 128-bit loads and stores in the machine code, None where no
    disassembler is at hand."""

    symbol: str
    blocks: int
    threads: int
    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    occupancy: float
    wide: int | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """The kernels of a program compiled for ``architecture`` by ``tool``."""

    architecture: str
    tool: str
    kernels: tuple[KernelReport, ...]


@dataclass(frozen=True, slots=True)
class NoFeedback:
    """Why there is none: a tool that is missing (``missing``) or what the compiler said."""

    message: str
    missing: bool


def columns() -> tuple[str, ...]:
    """Of a table of kernels: names, then figures."""
    return ("kernel", "blocks", "threads", "registers", "spills", "stack", "shared", "occupancy", "128-bit")


def row(k: KernelReport) -> tuple[str, ...]:
    """A kernel in that table."""
    return (
        k.symbol, f"{k.blocks:,}", str(k.threads), str(k.registers), f"{k.spill_bytes} B",
        f"{k.stack_bytes} B", f"{k.shared_bytes:,} B", f"{k.occupancy:.0%}",
        "–" if k.wide is None else str(k.wide),
    )  # fmt: skip


def note(feedback: Feedback) -> str:
    """What the table's figures are."""
    sentences = f"Compiled for {feedback.architecture} by {feedback.tool}, not executed."
    sentences += " Registers, spills and stack are of a thread."
    if all(k.wide is None for k in feedback.kernels) and feedback.architecture.startswith("sm_"):
        sentences += f" The count of 128-bit accesses needs nvdisasm: {install_line('gpu')}"
    return sentences


def summary(feedback: Feedback | NoFeedback) -> str:
    """What was found in a sentence or two."""
    if isinstance(feedback, NoFeedback):
        return feedback.message
    sentences = [
        f"{k.symbol}: {k.blocks:,} x {k.threads} threads, {k.registers} registers, "
        f"{k.spill_bytes} bytes spilled, {k.shared_bytes:,} bytes shared, occupancy {k.occupancy:.0%}"
        f"{'' if k.wide is None else f', {k.wide} loads and stores of 128 bits'}."
        for k in feedback.kernels
    ]
    return f"Compiled for {feedback.architecture} by {feedback.tool}. {' '.join(sentences)}"


def occupancy(threads: int, registers: int, shared_bytes: int, warp: int = 32) -> float:
    """Resident warps of a multiprocessor over its 64, on NVIDIA compute capability 8.0 and 9.0.

    65,536 registers, given to warps by 256; 64 warps; 32 blocks; shared memory by 128 bytes and 1 KiB for
    each block of 228 KiB (CUDA programming guide, "Compute Capabilities").
    """
    warps = -(-threads // warp)
    each = -(-max(registers, 16) * warp // 256) * 256
    by_registers = 16384 // each * 4  # each of the four schedulers has its own
    by_shared = 228 * 1024 // (-(-shared_bytes // 128) * 128 + 1024)
    blocks = min(32, 64 // warps, by_registers // warps, by_shared)
    return blocks * warps / 64
