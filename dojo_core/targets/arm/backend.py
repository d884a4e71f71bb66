"""Arm with NEON: 64-bit processors of version 8.6, whose int8 products are one instruction."""

from __future__ import annotations

from dojo_core.targets.backend import Words
from dojo_core.targets.cpu.other import OtherProcessor


class Arm(OtherProcessor):
    name = "arm"
    processor = "armv8.6-a"
    words = Words(
        "Arm (NEON)",
        "C for a 64-bit Arm processor, compiled here and verified under an emulator; nothing has a time.",
        play="Each position that you play is compiled for Arm and verified under an emulator.",
    )
