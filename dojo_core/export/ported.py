"""What a library's common files say of the instruction sets beside x86."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from dojo_core.export.elsewhere import InstructionSet, Level
from dojo_core.export.kernel import Instance
from dojo_core.export.templates import filled


@dataclass(frozen=True)
class _Facts:
    """Of an instruction set's compilers: ``triple`` names them, and so the toolchain file. ``native``: flags
    for the machine at hand. ``about``: what README says of levels and compilers."""

    triple: str
    processor: str
    native: str
    compiler: str
    packages: str
    about: str


_CLANG = """\
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
_GCC = """\
if(NOT CMAKE_C_COMPILER)
  set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
endif()
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu) # for clang; gcc takes no heed of this"""

_OF = {
    "arm": _Facts(
        "aarch64-linux-gnu",
        "aarch64",
        "-mcpu=native",
        _GCC,
        "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user",
        "Arm: gcc or clang. Levels: {levels}; on Linux the library asks the system which the processor has, "
        "elsewhere it takes the first.",
    ),
    "riscv": _Facts(
        "riscv64-linux-gnu",
        "riscv64",
        "",
        _CLANG,
        "clang-19 gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user",
        "RISC-V: clang 16 or newer for vectors (V 1.0); with another compiler, gcc too, scalar code is "
        "built, and CMake says so. Levels: {levels}; on Linux the library asks the system for V and reads "
        "the width of its registers, elsewhere it takes the first. With `-D{guard}_NATIVE=ON`, "
        "`CMAKE_C_FLAGS` say what there is, `-march=rv64gcv_zvl256b` for example.",
    ),
}  # fmt: skip
# Where Linux tells of a feature: a word of the auxiliary vector and a bit in it (asm/hwcap.h of arm64).
_BITS = {"dotprod": ("AT_HWCAP", 20), "i8mm": ("AT_HWCAP2", 13)}


def levels(instances: Sequence[Instance], of: InstructionSet) -> list[Level]:
    """Those of an instruction set that a library has: the ones that are but instructions for programs to ask
    for, only where one does."""
    own = {(each.of, each.level) for instance in instances for each in instance.others}
    return [level for level in of.levels if (of, level) in own or not level.instructions]


def cmake(instances: Sequence[Instance], sets: Sequence[InstructionSet], library: str) -> dict[str, str]:
    """Fields of CMakeLists.txt."""
    guard = library.upper()
    others, natives = "", ""
    for of in sets:
        there, facts = levels(instances, of), _OF[of.word]
        kernels = "\n".join(
            f"  set(kernels_{level.name}\n"
            + "\n".join(f"    {each.file_for(level, of)}" for each in instances)
            + f")\n  set(bits_{level.name} {level.name})\n"
            + " ".join((f"  set(flags_{level.name}", *level.flags))
            + ")"
            for level in there
        )
        more = ""
        if of.word == "riscv":
            more = filled("riscv.cmake.in", guard=guard, vector_flags=" ".join(there[-1].flags))
        others += filled(
            "others.cmake.in",
            title=of.title,
            macro=of.macro,
            guard=guard,
            set=of.word.upper(),
            kernels=kernels,
            native_flags=f" {facts.native}".rstrip(),
            levels=" ".join(level.name for level in there),
            more=more,
        )
        checks = "".join(
            filled(
                "native_level.cmake.in",
                condition=level.condition,
                guard=guard,
                level=level.name.upper(),
                name=level.name,
            )
            for level in there[1:]
        )
        natives += filled(
            "native.cmake.in", guard=guard, set=of.word.upper(), least=there[0].name, checks=checks.rstrip()
        )
    return {"others": others, "native_others": natives}


def levels_of(instances: Sequence[Instance], sets: Sequence[InstructionSet], library: str) -> str:
    """What library.c has for each instruction set: its levels, and which of them the processor has."""
    guard, text = library.upper(), ""
    for of in sets:
        there = levels(instances, of)
        if of.word == "riscv":
            # A compiler without vectors builds the first level alone.
            best, unless = filled("riscv.c.in"), f" && !defined {guard}_SCALAR"
        else:
            tests = "\n".join(
                f"    if (getauxval({_BITS[level.name][0]}) & 1ul << {_BITS[level.name][1]}) best = {number};"
                for number, level in enumerate(there)
                if level.name in _BITS
            )
            best, unless = filled("arm.c.in", tests=tests), ""
        text += _branch(of, there, guard, unless, best)
        if unless:
            text += _branch(of, there[:1], guard, "", "static int best_level(void) { return 0; }\n")
    return text


def _branch(of: InstructionSet, there: Sequence[Level], guard: str, unless: str, best: str) -> str:
    return filled(
        "levels.c.in",
        macro=of.macro,
        guard=guard,
        unless=unless,
        count=str(len(there)),
        names=", ".join(f'"{level.name}"' for level in there),
        declared=" \\\n".join(f"    void name##__{level.name}(void *const *, void *);" for level in there),
        all=", ".join(f"name##__{level.name}" for level in there),
        best=best.rstrip(),
    )


def levels_told(instances: Sequence[Instance], sets: Sequence[InstructionSet]) -> str:
    """Lines of the header."""
    return "".join(
        f" *            On {of.title} it has kernels of its own: levels {_quoted(levels(instances, of))}.\n"
        for of in sets
    )


def _quoted(there: Sequence[Level]) -> str:
    return ", ".join(f'"{level.name}"' for level in there)


def toolchains(sets: Sequence[InstructionSet]) -> dict[str, str]:
    """CMake's toolchain files, by their paths."""
    return {
        f"cmake/{facts.triple}.cmake": filled(
            "toolchain.cmake.in",
            triple=facts.triple,
            title=of.title,
            packages=facts.packages,
            processor=facts.processor,
            compiler=facts.compiler,
        )
        for of in sets
        for facts in (_OF[of.word],)
    }


def readme(instances: Sequence[Instance], sets: Sequence[InstructionSet], library: str) -> str:
    """A section of README.md; empty where there are no others."""
    if not sets:
        return ""
    commands = [
        f"cmake -S . -B build-{triple} -DCMAKE_TOOLCHAIN_FILE=cmake/{triple}.cmake\n"
        f"cmake --build build-{triple}"
        for triple in (_OF[of.word].triple for of in sets)
    ]
    about = [
        _OF[of.word].about.format(levels=_named(levels(instances, of)), guard=library.upper()) for of in sets
    ]
    return (
        filled(
            "others.md.in",
            titles=" and ".join(of.title for of in sets),
            commands="\n".join(commands),
            about="\n\n".join(textwrap.fill(each, 118, break_on_hyphens=False) for each in about),
        )
        + "\n"
    )


def _named(there: Sequence[Level]) -> str:
    return ", ".join(f"`{level.name}`" for level in there)
