"""RISC-V with the vector extension 1.0, in two widths of registers."""

from __future__ import annotations

from dojo_core.targets.backend import Words
from dojo_core.targets.cpu.other import OtherProcessor

_ABOUT = "C for RISC-V with vectors, compiled here and verified under an emulator; nothing has a time."
_PLAY = "Each position that you play is compiled for RISC-V and verified under an emulator."


class RiscV(OtherProcessor):
    name = "riscv"
    processor = "rv64gcv-128"
    words = Words("RISC-V (vectors, VLEN 128)", _ABOUT, play=_PLAY)


class RiscV256(OtherProcessor):
    name = "riscv256"
    processor = "rv64gcv-256"
    words = Words("RISC-V (vectors, VLEN 256)", _ABOUT, play=_PLAY)
