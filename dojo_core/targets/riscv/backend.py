"""RISC-V with the vector extension 1.0, in two widths of registers."""

from __future__ import annotations

from dojo_core.targets.backend import Words
from dojo_core.targets.cpu.other import OtherProcessor
from dojo_core.targets.riscv.library import INSTRUCTION_SET

_ABOUT = "Compiled here, verified under an emulator, its cycles estimated by a model: small shapes."
_PLAY = "Each position is verified under an emulator of RISC-V; its cycles are a model's estimate."


class RiscV(OtherProcessor):
    name = "riscv"
    processor = "rv64gcv-128"
    exported = INSTRUCTION_SET  # has levels for both widths
    words = Words("RISC-V (vectors, VLEN 128)", _ABOUT, play=_PLAY)


class RiscV256(OtherProcessor):
    name = "riscv256"
    processor = "rv64gcv-256"
    words = Words("RISC-V (vectors, VLEN 256)", _ABOUT, play=_PLAY)
