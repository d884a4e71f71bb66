"""Whole programs on Arm and RISC-V, under an emulator: starts, lines and the heuristic's ends of kernels;
Arm's dot products; what is told where a tool is missing."""

import re
from dataclasses import replace

import numpy as np
import pytest

from agents.passes import play_pass
from dojo_core import kernels, parse
from dojo_core.game import Game
from dojo_core.line import applies, line_for
from dojo_core.program.dtypes import INTEGERS
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.cross import Call, NotRun
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.processor import Processor, known
from dojo_core.targets.cpu.verdict import judge
from dojo_core.targets.registry import target
from tests.compiled import random_inputs
from tests.crossed import run_emulated, with_tools
from tests.thorough import one_of

SHAPES = {
    "softmax": "8x192",
    "layernorm": "4x256",
    "matmul": "12x64x128",
    "conv": "1x16x4x8x56x3",
    "qmatmul": "12x128x128",
}
FLOATING = ("softmax", "layernorm", "matmul", "conv")


def ends(kernel: str, shape: str, processor: Processor) -> dict[str, tuple[Program, str]]:
    """Start, line and heuristic's end on a processor, each with its policy."""
    found, line = kernels.get(kernel), line_for(kernel, shape, on=limits_of(processor))
    start = found.program(found.shape(shape))
    assert line is not None
    played, passed = (
        Game.new(start, kernel, shape, policy=policy, limits=limits_of(processor))
        for policy in (line.policy, "reassoc")
    )
    assert [e.move for e in line.play(played).entries if e.outcome != "same"] == []
    play_pass(passed, "heuristic")
    return {
        "start": (start, "reassoc"),
        "line": (played.current.program, line.policy),
        "heuristic": (passed.current.program, "reassoc"),
    }


INT8 = ("qmatmul",)
# Of each processor, of floating point and of integers: one.
SOME = {
    ("armv8-a", FLOATING): (),
    ("rv64gcv-128", INT8): (),
    ("rv64gcv-128", FLOATING): pytest.mark.thorough,
    ("armv8.6-a", INT8): pytest.mark.thorough,
    ("rv64gcv-256", INT8): pytest.mark.thorough,
}
ALL = ("armv8-a", "armv8.4-a", "armv8.6-a", "rv64gc", "rv64gcv-128", "rv64gcv-256", "rv64gcv-256-m2")


@pytest.mark.parametrize(
    ("name", "tried"),
    [
        pytest.param(name, tried, id=f"{name} {tried[0]}", marks=SOME.get((name, tried), pytest.mark.soak))
        for name in ALL
        for tried in (FLOATING, INT8)
    ],
)
def test_starts_lines_and_heuristic_compute_what_their_kernels_are(name, tried):
    processor = with_tools(name)
    codes, calls, wanted = [], [], []
    for kernel in tried:
        shape = SHAPES[kernel]
        found = kernels.get(kernel)
        made = ends(kernel, shape, processor)
        start = made["start"][0]
        given = random_inputs(start, full=True)
        expected = found.reference(given, found.shape(shape))
        for title, (program, policy) in made.items():
            inputs = {
                a: given[a].reshape([d.size for d in program.buffer_of[a].dims]) for a in program.inputs
            }
            codes.append(generate(program, policy, processor))
            calls.append(Call(len(calls), {program.buffer_of[a].name: v for a, v in inputs.items()}))
            wanted.append((f"{kernel} {title}", program, expected))
    if tried is INT8:
        assert ("usdot_4(" in codes[1].text) == ("i8mm" in processor.features)
        # From half the size, clang multiplies and adds in one instruction.
        assert (re.search(r"i16x\d+_splat\(", codes[1].text) is not None) == ("v" in processor.features)
    results = run_emulated(codes, calls, processor)
    for got, (title, program, expected) in zip(results, wanted, strict=True):
        for output in program.outputs:
            buffer = program.buffer_of[output]
            meant = expected[output]
            allowed = 0 if buffer.dtype in INTEGERS else 1e-4
            np.testing.assert_allclose(
                got[buffer.name].reshape(meant.shape),
                meant,
                rtol=allowed,
                atol=allowed * np.abs(meant).max(),
                err_msg=f"{title} on {name}",
            )


@pytest.mark.parametrize("name", one_of(3, ["arm", "riscv", "riscv256"]))
def test_each_of_these_targets_has_lines_of_all_of_these_kernels(name):
    for kernel, shape in SHAPES.items():
        line = line_for(kernel, shape, name)
        assert line is not None and applies(line, shape, target(name)), kernel


DOT = """\
kernel k
in x, w
out y
x FIRST [3, 8] heap
w i8 [2, 4, 4] heap
y i32 [3, 4] heap
3 4 y[{0},{1}] = 7
3 2 4:NAME 4 y[{0},{2}] += x[{0},{1}*4+{3}]*w[{1},{2},{3}]
"""


def test_dot_products_of_arm_with_the_extreme_values():
    processor = with_tools("armv8.6-a")
    codes, calls, wanted = [], [], []
    for name, first in (("sdot", "i8"), ("usdot", "u8")):
        program = parse(DOT.replace("NAME", name).replace("FIRST", first))
        low, high = (-128, 127) if first == "i8" else (0, 255)
        codes.append(generate(program, processor=processor))
        assert f"{name}_4(" in codes[-1].text
        for x, w in ((low, -128), (high, -128), (high, 127), (None, None)):
            inputs = random_inputs(program, full=True)
            if x is not None:
                inputs = {"x": np.full_like(inputs["x"], x), "w": np.full_like(inputs["w"], w)}
            calls.append(Call(len(codes) - 1, inputs))
            wanted.append(interpret(program, inputs)["y"])
    for got, expected in zip(run_emulated(codes, calls, processor), wanted, strict=True):
        np.testing.assert_array_equal(got["y"], expected)


def test_without_the_instruction_loops_stand_there():
    program = parse(DOT.replace("NAME", "usdot").replace("FIRST", "u8"))
    for name in ("armv8-a", "x86-64-v4", "rv64gcv-128"):
        assert "usdot_4(" not in generate(program, processor=known(name)).text


def test_what_is_missing_and_what_goes_wrong_is_told():
    processor = known("armv8-a")
    assert processor.toolchain is not None
    code = generate(parse(DOT.replace(":NAME", "").replace("FIRST", "u8")), processor=processor)
    absent = replace(processor, toolchain=replace(processor.toolchain, emulator=("no-qemu",)))
    with pytest.raises(NotRun, match=r"^no-qemu is not here\. This brings it: apt-get install "):
        run_emulated([code], [], absent)
    with pytest.raises(NotRun, match=r"^There is no compiler for z15 \(s390x\) here\.$"):
        run_emulated([code], [], replace(processor, name="z15", instruction_set="s390x", toolchain=None))
    there = with_tools("armv8-a")
    with pytest.raises(NotRun, match=r"^The generated C does not compile for armv8-a: (?s:.*)nonsense"):
        run_emulated([replace(code, text=code.text.replace("{", "{ nonsense", 1))], [], there)
    ends = replace(code, text=code.text.replace("(void)workspace;", "__builtin_trap();", 1))
    inputs = random_inputs(parse(DOT.replace(":NAME", "").replace("FIRST", "u8")))
    with pytest.raises(NotRun, match=r"^The program for armv8-a ended with status \d+: "):
        run_emulated([ends], [Call(0, inputs)], there)


def test_halves_are_judged_as_they_are_stored():
    processor = with_tools("armv8-a")
    found = kernels.get("softmax_bf16")
    start = found.program(found.shape("6x8"))
    assert judge(start, start, "reassoc", processor) == ("ok", "")
    text = start.text
    wrong = parse(text.replace("exp(", "sigmoid("))
    assert wrong.text != text
    status, sentence = judge(wrong, start, "reassoc", processor)
    assert status == "wrong_result" and "and should be" in sentence
