"""Kernels for Arm in a C library: NEON, and the products of bytes of later processors."""

from __future__ import annotations

from pathlib import Path

from dojo_core.targets.cpu.instruction_set import InstructionSet, Level
from dojo_core.targets.cpu.processor import known

_COMPILER = """\
if(NOT CMAKE_C_COMPILER)
  set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
endif()
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu) # for clang; gcc takes no heed of this"""
_DOTPROD, _I8MM = "-march=armv8.2-a+dotprod", "-march=armv8.2-a+dotprod+i8mm"

INSTRUCTION_SET = InstructionSet(
    word="arm",
    title="64-bit Arm",
    macro="__aarch64__",
    levels=(
        Level("neon", known("armv8-a")),
        # The bits are those of asm/hwcap.h of arm64.
        Level("dotprod", known("armv8.4-a"), (_DOTPROD,), "defined __ARM_FEATURE_DOTPROD", ("AT_HWCAP", 20)),
        Level("i8mm", known("armv8.6-a"), (_I8MM,), "defined __ARM_FEATURE_MATMUL_INT8", ("AT_HWCAP2", 13)),
    ),
    triple="aarch64-linux-gnu",
    processor="aarch64",
    native="-mcpu=native",
    compiler=_COMPILER,
    packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user",
    about="Arm: gcc or clang. Levels: {levels}; on Linux the library asks the system which the processor "
    "has, elsewhere it takes the first.",
    best_level=Path(__file__).with_name("best_level.c.in"),
)
