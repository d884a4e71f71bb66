"""The C of known programs for three x86 processors, byte for byte: hashes in a golden file.

What is generated hangs on the program, the policy and the processor alone, whichever machine it happens on.
The suite takes the ends of all lines as they are recorded, cut for narrower vectors, each for one of the
processors in turn; make soak each for all three, and plays the lines anew on each processor.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest

from agents.passes import play_pass
from dojo_core import kernels, parse
from dojo_core.export.narrow import narrowed
from dojo_core.game import Game
from dojo_core.line import RecordedLine, recorded_lines
from dojo_core.moves.examples import WIDE
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate, preamble
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.processor import Processor, known
from tests.goldens import FOLDER
from tests.tiny import TINY

PROCESSORS = {
    "AVX-512 VNNI": replace(known("x86-64-v4"), features=known("x86-64-v4").features | {"avx512_vnni"}),
    "AVX2": known("x86-64-v3"),
    "SSE2": known("x86-64-v2"),
}
HEURISTIC = ("softmax", "layernorm", "matmul", "conv", "qmatmul", "attention")
DIGITS = 16  # of 64: a difference is seen, and the file stays short


def limits(processor: Processor) -> Target:
    """What moves ask besides vectors is the same on all."""
    own = limits_of(processor)
    return replace(
        WIDE,
        vector_widths=own.vector_widths,
        vector_registers=own.vector_registers,
        instructions=own.instructions,
    )


def line_end(line: RecordedLine, processor: Processor) -> Program:
    """The line played; where the processor lacks an instruction that it names, that is loops in the C."""
    every = frozenset((i.name, lanes) for i in INSTRUCTIONS.values() for lanes in i.needs)
    game = Game.new(
        kernels.get(line.kernel).program(kernels.get(line.kernel).shape(line.shape)),
        line.kernel, line.shape, policy=line.policy, limits=replace(limits(processor), instructions=every),
    )  # fmt: skip
    line.play(game)
    return game.current.program


def heuristic_end(kernel: str, processor: Processor) -> Program:
    start = kernels.get(kernel).program(kernels.get(kernel).shape("x".join(map(str, TINY[kernel]))))
    game = Game.new(start, kernel, limits=limits(processor))
    play_pass(game, "heuristic")
    return game.current.program


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def ends(processor: Processor, first: int = 0, step: int = 1) -> Iterator[tuple[str, Program, str]]:
    for name, line in islice(recorded_lines().items(), first, None, step):
        program = parse((FOLDER / f"{name}.txt").read_text())
        yield f"end of {name}", narrowed(program, max(processor.vector_bytes)), line.policy


def in_turn(processor: Processor) -> Iterator[tuple[str, Program, str]]:
    return ends(processor, list(PROCESSORS.values()).index(processor), len(PROCESSORS))


def played(processor: Processor) -> Iterator[tuple[str, Program, str]]:
    for name, line in recorded_lines().items():
        if line.vectors in (None, max(processor.vector_bytes)):
            yield f"line {name}", line_end(line, processor), line.policy
    for kernel in HEURISTIC:
        yield f"heuristic {kernel}", heuristic_end(kernel, processor), "reassoc"


@pytest.mark.parametrize(
    ("programs", "file"),
    [
        (in_turn, "in_turn"),
        pytest.param(ends, "ends", marks=pytest.mark.soak),
        pytest.param(played, "played", marks=pytest.mark.soak),
    ],
)
def test_the_c_is_the_same_byte_for_byte(golden, programs, file):
    rows = []
    for name, processor in PROCESSORS.items():
        rows.append(f"{name}: preamble {digest(preamble(processor))}")
        for title, program, policy in programs(processor):
            rows.append(f"{name}: {title} {digest(generate(program, policy, processor).text)}")
    golden(FOLDER / "c" / f"{file}.txt", "\n".join(rows) + "\n")
