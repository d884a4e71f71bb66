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
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.instruction_set import InstructionSet, Level
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.processor import Processor
from dojo_core.targets.registry import backends

OWN = "x86"
"""What a library is for without being asked: C that has x86's builtins behind macros, and builds anywhere."""


def sets_for(words: str) -> tuple[InstructionSet, ...]:
    """The instruction sets of ``x86,arm,riscv`` beside x86, which is always there. Raises NotExported for
    another word."""
    offered = [each.exported for each in backends() if each.exported is not None]
    asked = [word.strip() for word in words.split(",")]
    known = (OWN, *(each.word for each in offered))
    for word in asked:
        if word not in known:
            raise NotExported(f"--for takes {', '.join(known)}, with commas between, not {word!r}.")
    return tuple(each for each in offered if each.word in asked)


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
