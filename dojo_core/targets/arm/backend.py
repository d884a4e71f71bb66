"""Arm with NEON: 64-bit processors of version 8.6, whose int8 products are one instruction."""

from __future__ import annotations

from dojo_core.targets.arm.library import INSTRUCTION_SET
from dojo_core.targets.backend import Words
from dojo_core.targets.cpu.other import OtherProcessor


class Arm(OtherProcessor):
    name = "arm"
    processor = "armv8.6-a"
    exported = INSTRUCTION_SET
    words = Words(
        "Arm (NEON)",
        "Compiled here, verified under an emulator, its cycles estimated by a model: small shapes.",
        play="Each position is verified under an emulator of Arm; its cycles are a model's estimate.",
    )
