"""The C of known programs for three x86 processors, byte for byte: hashes in a golden file.

What is generated hangs on the program, the policy and the processor alone, whichever machine it happens on. The
suite takes the ends of all lines as they are recorded, cut for narrower vectors; make soak plays the lines anew on
each processor.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import pytest

from agents.passes import play_pass
from dojo_core import kernels, parse
from dojo_core.export.narrow import narrowed
from dojo_core.game import Game
from dojo_core.line import RecordedLine, recorded_lines
from dojo_core.moves.examples import WIDE
from dojo_core.program.instructions import INSTRUCTIONS, available
from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.targets.cpu import codegen, vecmath
from dojo_core.targets.cpu.limits import vector_bytes, vector_widths
from tests.goldens import FOLDER
from tests.tiny import TINY

PROCESSORS = {
    "AVX-512 VNNI": frozenset({"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"}),
    "AVX2": frozenset({"avx2"}),
    "SSE2": frozenset(),
}
HEURISTIC = ("softmax", "layernorm", "matmul", "conv", "qmatmul", "attention")
DIGITS = 16  # of 64: a difference is seen, and the file stays short


def limits(features: frozenset[str]) -> Target:
    """Of no machine: what moves ask besides vectors is the same everywhere."""
    return replace(
        WIDE,
        vector_widths=vector_widths(features),
        vector_registers=32 if "avx512f" in features else 16,
        instructions=available(features),
    )


def c_of(program: Program, policy: str, features: frozenset[str]) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codegen, "cpu", lambda: limits(features))
        return codegen.generate(program, policy).text


def preamble_of(features: frozenset[str]) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vecmath, "features", lambda: features)
        return vecmath.preamble.__wrapped__(vector_bytes(features))


def line_end(line: RecordedLine, features: frozenset[str]) -> Program:
    """The line played; where the processor lacks an instruction that it names, that is loops in the C."""
    every = frozenset((i.name, lanes) for i in INSTRUCTIONS.values() for lanes in i.needs)
    game = Game.new(
        kernels.get(line.kernel).program(kernels.get(line.kernel).shape(line.shape)),
        line.kernel, line.shape, policy=line.policy, limits=replace(limits(features), instructions=every),
    )  # fmt: skip
    line.play(game)
    return game.current.program


def heuristic_end(kernel: str, features: frozenset[str]) -> Program:
    start = kernels.get(kernel).program(kernels.get(kernel).shape("x".join(map(str, TINY[kernel]))))
    game = Game.new(start, kernel, limits=limits(features))
    play_pass(game, "heuristic")
    return game.current.program


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def ends(features: frozenset[str]) -> Iterator[tuple[str, Program, str]]:
    for name, line in recorded_lines().items():
        program = parse((FOLDER / f"{name}.txt").read_text())
        yield f"end of {name}", narrowed(program, max(vector_bytes(features))), line.policy


def played(features: frozenset[str]) -> Iterator[tuple[str, Program, str]]:
    for name, line in recorded_lines().items():
        if line.vectors in (None, max(vector_bytes(features))):
            yield f"line {name}", line_end(line, features), line.policy
    for kernel in HEURISTIC:
        yield f"heuristic {kernel}", heuristic_end(kernel, features), "reassoc"


@pytest.mark.parametrize(
    ("programs", "file"), [(ends, "ends"), pytest.param(played, "played", marks=pytest.mark.soak)]
)
def test_the_c_is_the_same_byte_for_byte(golden, programs, file):
    rows = []
    for processor, features in PROCESSORS.items():
        rows.append(f"{processor}: preamble {digest(preamble_of(features))}")
        for title, program, policy in programs(features):
            rows.append(f"{processor}: {title} {digest(c_of(program, policy, features))}")
    golden(FOLDER / "c" / f"{file}.txt", "\n".join(rows) + "\n")
