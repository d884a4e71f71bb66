"""What a library's common files say of the instruction sets beside x86."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from dojo_core.export.kernel import Instance
from dojo_core.export.templates import filled
from dojo_core.targets.cpu.instruction_set import InstructionSet, Level


def levels(instances: Sequence[Instance], of: InstructionSet) -> list[Level]:
    """Those of an instruction set that a library has: the ones that are but instructions for programs to ask
    for, only where one does."""
    with_code = {(each.of, each.level) for instance in instances for each in instance.others}
    return [level for level in of.levels if (of, level) in with_code or not level.instructions]


def cmake(instances: Sequence[Instance], sets: Sequence[InstructionSet], library: str) -> dict[str, str]:
    """Fields of CMakeLists.txt."""
    guard = library.upper()
    others, natives = "", ""
    for of in sets:
        present = levels(instances, of)
        kernels = "\n".join(
            f"  set(kernels_{level.name}\n"
            + "\n".join(f"    {each.file_for(level, of)}" for each in instances)
            + f")\n  set(bits_{level.name} {level.name})\n"
            + " ".join((f"  set(flags_{level.name}", *level.flags))
            + ")"
            for level in present
        )
        more = ""
        if of.compiler_check is not None:
            more = filled(of.compiler_check, guard=guard, vector_flags=" ".join(present[-1].flags))
        others += filled(
            "others.cmake.in",
            title=of.title,
            macro=of.macro,
            guard=guard,
            set=of.word.upper(),
            kernels=kernels,
            native_flags=f" {of.native}".rstrip(),
            levels=" ".join(level.name for level in present),
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
            for level in present[1:]
        )
        natives += filled(
            "native.cmake.in", guard=guard, set=of.word.upper(), least=present[0].name, checks=checks.rstrip()
        )
    return {"others": others, "native_others": natives}


def levels_of(instances: Sequence[Instance], sets: Sequence[InstructionSet], library: str) -> str:
    """What library.c has for each instruction set: its levels, and which of them the processor has."""
    guard, text = library.upper(), ""
    for of in sets:
        present = levels(instances, of)
        tests = "\n".join(
            f"    if (getauxval({level.bit[0]}) & 1ul << {level.bit[1]}) best = {number};"
            for number, level in enumerate(present)
            if level.bit is not None
        )
        # A compiler without what the levels need builds the first one alone.
        unless = f" && !defined {guard}_SCALAR" if of.compiler_check is not None else ""
        text += _branch(of, present, guard, unless, filled(of.best_level, tests=tests))
        if unless:
            text += _branch(of, present[:1], guard, "", "static int best_level(void) { return 0; }\n")
    return text


def _branch(of: InstructionSet, present: Sequence[Level], guard: str, unless: str, best: str) -> str:
    return filled(
        "levels.c.in",
        macro=of.macro,
        guard=guard,
        unless=unless,
        count=str(len(present)),
        names=", ".join(f'"{level.name}"' for level in present),
        declared=" \\\n".join(f"    void name##__{level.name}(void *const *, void *);" for level in present),
        all=", ".join(f"name##__{level.name}" for level in present),
        best=best.rstrip(),
    )


def header_lines(instances: Sequence[Instance], sets: Sequence[InstructionSet]) -> str:
    """Lines of the header."""
    return "".join(
        f" *            On {of.title} it has kernels of its own: levels {_quoted(levels(instances, of))}.\n"
        for of in sets
    )


def _quoted(present: Sequence[Level]) -> str:
    return ", ".join(f'"{level.name}"' for level in present)


def toolchains(sets: Sequence[InstructionSet]) -> dict[str, str]:
    """CMake's toolchain files, by their paths."""
    return {
        f"cmake/{of.triple}.cmake": filled(
            "toolchain.cmake.in",
            triple=of.triple,
            title=of.title,
            packages=of.packages,
            processor=of.processor,
            compiler=of.compiler,
        )
        for of in sets
    }


def readme(instances: Sequence[Instance], sets: Sequence[InstructionSet], library: str) -> str:
    """A section of README.md; empty where there are no others."""
    if not sets:
        return ""
    commands = [
        f"cmake -S . -B build-{of.triple} -DCMAKE_TOOLCHAIN_FILE=cmake/{of.triple}.cmake\n"
        f"cmake --build build-{of.triple}"
        for of in sets
    ]
    about = [of.about.format(levels=_named(levels(instances, of)), guard=library.upper()) for of in sets]
    return (
        filled(
            "others.md.in",
            titles=" and ".join(of.title for of in sets),
            commands="\n".join(commands),
            about="\n\n".join(textwrap.fill(each, 118, break_on_hyphens=False) for each in about),
        )
        + "\n"
    )


def _named(present: Sequence[Level]) -> str:
    return ", ".join(f"`{level.name}`" for level in present)
