"""A kernel for other instruction sets than x86: replayed with the limits of each level of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from dojo_core.codegen.code import Code, NotGeneratable
from dojo_core.export.choice import TARGET, Choice, NotExported, heuristic_end, line_end
from dojo_core.export.narrow import narrowed
from dojo_core.game import Game
from dojo_core.line import line_for
from dojo_core.program.instructions import available
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.processor import Processor, known


@dataclass(frozen=True)
class Level:
    """Processors of an instruction set that have as much as ``processor``. ``flags`` make a compiler use it;
    where it does, the C preprocessor's ``condition`` holds."""

    name: str
    processor: Processor
    flags: tuple[str, ...] = ()
    condition: str = ""

    @property
    def instructions(self) -> frozenset[tuple[str, int]]:
        """Those that a program can ask for, with their lanes."""
        return available(self.processor.features)


@dataclass(frozen=True)
class InstructionSet:
    """``word`` in --for; ``macro`` is the compiler's. ``levels``: what a processor may have, least first."""

    word: str
    title: str
    macro: str
    levels: tuple[Level, ...]


_DOT = ("-march=armv8.2-a+dotprod", "-march=armv8.2-a+dotprod+i8mm")
SETS = {
    each.word: each
    for each in (
        InstructionSet(
            "arm",
            "64-bit Arm",
            "__aarch64__",
            (
                Level("neon", known("armv8-a")),
                Level("dotprod", known("armv8.4-a"), _DOT[:1], "defined __ARM_FEATURE_DOTPROD"),
                Level("i8mm", known("armv8.6-a"), _DOT[1:], "defined __ARM_FEATURE_MATMUL_INT8"),
            ),
        ),
        InstructionSet(
            "riscv",
            "64-bit RISC-V",
            "__riscv",
            (
                Level("scalar", known("rv64gc")),
                Level("v128", known("rv64gcv-128"), ("-march=rv64gcv_zvl128b",), "__riscv_v_min_vlen >= 128"),
                Level("v256", known("rv64gcv-256"), ("-march=rv64gcv_zvl256b",), "__riscv_v_min_vlen >= 256"),
            ),
        ),
    )
}
OWN = "x86"
"""What a library is for without being asked: C that has x86's builtins behind macros, and builds anywhere."""


def sets_for(words: str) -> tuple[InstructionSet, ...]:
    """The instruction sets of ``x86,arm,riscv`` beside x86, which is always there. Raises NotExported for
    another word."""
    asked = [word.strip() for word in words.split(",")]
    for word in asked:
        if word not in (OWN, *SETS):
            raise NotExported(f"--for takes {', '.join((OWN, *SETS))}, with commas between, not {word!r}.")
    return tuple(SETS[word] for word in SETS if word in asked)


@dataclass(frozen=True)
class Elsewhere:
    """A kernel at one level of an instruction set. ``source``: in words, what the program is the end of."""

    of: InstructionSet
    level: Level
    program: Program
    code: Code
    source: str


def elsewhere(
    choice: Choice, of: InstructionSet, fits: Callable[[Program, Code], bool]
) -> Iterator[Elsewhere]:
    """The choice at each level whose C is another than the level's below, and where a level is but
    instructions that a program asks for: one that does.

    ``fits``: whether a program takes the arrays that callers of the choice pass.
    """
    below = None
    for level in of.levels:
        made = _at(choice, of, level, fits)
        used = any(re.search(rf"\b{name}_{n}\(", made.code.text) for name, n in level.instructions)
        if below is None or (made.code.text != below.code.text and (used or not level.instructions)):
            below = made
            yield made


def _at(choice: Choice, of: InstructionSet, level: Level, fits: Callable[[Program, Code], bool]) -> Elsewhere:
    for program, source in _programs(choice, level.processor):
        with suppress(NotGeneratable):
            code = generate(program, choice.policy, level.processor)
            if fits(program, code):
                return Elsewhere(of, level, program, code, source)
    raise NotExported(f"{choice.title} cannot be generated for {of.title}: leave {of.word} out of --for.")


def _programs(choice: Choice, processor: Processor) -> Iterator[tuple[Program, str]]:
    """Programs of a choice for a processor, in the order in which they are tried."""
    on = limits_of(processor)
    start = Game.new(choice.start, choice.kernel, choice.shape, TARGET, choice.policy)
    again = choice.again(on) if choice.again is not None else None
    if again is not None:
        yield again
    line = line_for(choice.kernel, choice.shape, on=on) if choice.kernel else None
    end = line_end(line, start, on) if line is not None else None
    if end is not None:
        yield end
    passed = heuristic_end(start, on)
    if passed is not None:
        yield passed
    yield (
        narrowed(choice.program, processor.vector_bytes[0]),
        f"{choice.source}, its wider vector loops unrolled loops of narrower ones here",
    )
    yield choice.start, "the start program"
