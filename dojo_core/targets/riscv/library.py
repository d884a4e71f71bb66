"""Kernels for RISC-V in a C library: scalar code, and vectors in registers of two widths."""

from __future__ import annotations

from pathlib import Path

from dojo_core.targets.cpu.instruction_set import InstructionSet, Level
from dojo_core.targets.cpu.processor import known

_COMPILER = """\
# clang has RISC-V's vectors; where there is none, gcc builds scalar code.
if(NOT CMAKE_C_COMPILER)
  find_program(clang_for_riscv64
    NAMES clang-22 clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 clang)
  if(clang_for_riscv64)
    set(CMAKE_C_COMPILER ${clang_for_riscv64})
  else()
    set(CMAKE_C_COMPILER riscv64-linux-gnu-gcc)
  endif()
endif()
set(CMAKE_C_COMPILER_TARGET riscv64-linux-gnu) # gcc has one already, and takes no heed of this"""

INSTRUCTION_SET = InstructionSet(
    word="riscv",
    title="64-bit RISC-V",
    macro="__riscv",
    levels=(
        Level("scalar", known("rv64gc")),
        Level("v128", known("rv64gcv-128"), ("-march=rv64gcv_zvl128b",), "__riscv_v_min_vlen >= 128"),
        Level("v256", known("rv64gcv-256"), ("-march=rv64gcv_zvl256b",), "__riscv_v_min_vlen >= 256"),
    ),
    triple="riscv64-linux-gnu",
    processor="riscv64",
    native="",
    compiler=_COMPILER,
    packages="clang-19 gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user",
    about="RISC-V: clang 16 or newer for vectors (V 1.0); with another compiler, gcc too, scalar code is "
    "built, and CMake says so. Levels: {levels}; on Linux the library asks the system for V and reads "
    "the width of its registers, elsewhere it takes the first. With `-D{guard}_NATIVE=ON`, "
    "`CMAKE_C_FLAGS` say what there is, `-march=rv64gcv_zvl256b` for example.",
    best_level=Path(__file__).with_name("best_level.c.in"),
    compiler_check=Path(__file__).with_name("compiler_check.cmake.in"),
)
