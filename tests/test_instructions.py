"""Machine instructions: what a scope unifies with, the C it becomes, and what it computes without them."""

from dataclasses import replace

import numpy as np
import pytest

from dojo_core import TextError, apply, parse, why
from dojo_core.export.choice import of_game
from dojo_core.export.kernel import instance
from dojo_core.game import Game
from dojo_core.moves import inverse
from dojo_core.moves.examples import WIDE
from dojo_core.moves.notation import parse_move
from dojo_core.program.instructions import INSTRUCTIONS, available
from dojo_core.program.interpret import interpret
from dojo_core.program.unification import Mismatch, Unified, meaning, unify
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.limits import cpu
from dojo_core.targets.cpu.processor import host, known
from dojo_core.targets.cpu.vecmath import preamble
from tests.compiled import load, random_inputs, run

SUMS = """\
kernel k
in x, w
out y
x u8 [3, 8] heap
w i8 [2, LANES, 4] heap
y i32 [3, LANES] heap
3 LANES y[{0},{1}] = 7
3 2 LANES 4 y[{0},{2}] += x[{0},{1}*4+{3}]*w[{1},{2},{3}]
"""


def sums(lanes: int):
    return parse(SUMS.replace("LANES", str(lanes)))


def marked(lanes: int, register: bool = False):
    """Sums of products with the instruction in, in memory or in one register a row."""
    program = sums(lanes)
    if register:
        text = program.text.replace("y[{0},{1}] = 7", "a[{0},{1}] = 7").replace(
            "y[{0},{2}] +=", "a[{0},{2}] +="
        )
        text = text.replace(f"\n3 {lanes} a", f"\na i32 [3:N, {lanes}] register\n3 {lanes}:v a")
        text = text.replace("\n3 2 ", "\n| 2 ") + f"| {lanes}:v y[{{0}},{{1}}] = a[{{0}},{{1}}]\n"
        text = text.replace(f"2 {lanes} 4 a", f"2 {lanes}:vpdpbusd 4 a")
        return parse(text)
    every = replace(WIDE, instructions=frozenset({("vpdpbusd", lanes)}))
    return apply(program, "use_instruction y#1@2 vpdpbusd", every)


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_an_instruction_unifies_with_its_own_text(name):
    for lanes in INSTRUCTIONS[name].needs:
        program, _ = meaning(name, lanes)
        found = unify(program, program.body[0], 0, name)
        assert isinstance(found, Unified) and found.lanes == lanes
        assert [shared for _, shared in found.operands] == [False] * len(found.operands)
        said = INSTRUCTIONS[name]
        assert said.rows or said.assembly or said.builtin.keys() == said.needs.keys()


def test_operands_in_either_order_and_one_for_all_lanes():
    swapped = sums(16).text.replace("x[{0},{1}*4+{3}]*w[{1},{2},{3}]", "w[{1},{2},{3}]*x[{0},{1}*4+{3}]")
    for program in (sums(16), parse(swapped)):
        found = unify(program, program.node((1, 0, 0)), 2, "vpdpbusd")
        assert [(str(access), shared) for access, shared in found.operands] == [
            ("x[{0},{1}*4+{3}]", True),
            ("w[{1},{2},{3}]", False),
        ]


def test_what_is_in_the_way_is_told_in_a_sentence():
    program = parse(
        sums(16).text.replace("w[{1},{2},{3}]", "w[{1},{3},{2}]").replace("[2, 16, 4]", "[2, 4, 16]")
    )
    found = unify(program, program.node((1, 0, 0)), 2, "vpdpbusd")
    assert found == Mismatch(
        "instruction-access",
        "Neighbours along its scopes are 1 and 16 cells apart in w[{1},{3},{2}]; vpdpbusd takes "
        "4 and 1 cells apart, or 0 and 1 cells apart.",
    )
    refusal = why(program, "use_instruction y#1@2 vpdpbusd", WIDE).refusal
    assert "stage_read w y@0 pw" in refusal.enablers or "stage_read w y#1@0 pw" in refusal.enablers


def test_the_mark_reads_back_and_is_taken_away_again():
    program = sums(16)
    result = apply(program, "use_instruction y#1@2 vpdpbusd", WIDE)
    assert result.text.splitlines()[-1].startswith("3 2 16:vpdpbusd 4 y")
    assert parse(result.text) == result
    back = inverse(program, "use_instruction y#1@2 vpdpbusd", WIDE)
    assert str(back) == "clear_mark y#1@2" and apply(result, back, WIDE) == program
    assert str(inverse(result, back, WIDE)) == "use_instruction y#1@2 vpdpbusd"
    with pytest.raises(TextError) as raised:
        parse(result.text.replace(":vpdpbusd", ":vpdpbsud"))
    assert "and the instructions :vpdpbusd" in raised.value.remedy


def test_a_move_that_would_break_the_pattern_is_refused():
    result = apply(sums(16), "use_instruction y#1@2 vpdpbusd", WIDE)
    for move, code in (
        ("unroll y#1@3", "instruction-shape"),
        ("split_scope y#1@3 2", "instruction-shape"),
        ("split_scope y#1@2 4", "marked"),
        ("expand y#1 t", "instruction-shape"),
    ):
        assert why(result, move, WIDE).refusal.code == code
    whole = apply(result, "parallelize y#1@0", WIDE)
    assert ":p 2 16:vpdpbusd" in whole.text


C_IN_MEMORY = (
    "i32x16_store(&y[i0*16], vpdpbusd_16(i32x16_load(&y[i0*16]), "
    "i32x16_splat(i32_word(&x[i0*8 + i1*4])), i32x16_load((const i32 *)&w[i1*64])));"
)


WITHOUT = known("x86-64-v4")
WITH = replace(WITHOUT, features=WITHOUT.features | {"avx512_vnni"})


def test_its_c_is_one_call():
    text = generate(marked(16), processor=WITH).text
    assert C_IN_MEMORY in text
    assert "// y[{0},{2}] += x[{0},{1}*4+{3}]*w[{1},{2},{3}]" in text
    held = generate(marked(16, register=True), processor=WITH).text
    assert "a = vpdpbusd_16(a, i32x16_splat(i32_word(&x[i0*8 + i1*4])), i32x16_load(" in held


def test_without_the_instruction_plain_loops_stand_there():
    text = generate(marked(16), processor=WITHOUT).text
    assert "vpdpbusd" not in text
    assert text.count("for (int") == 2 + 4


@pytest.mark.parametrize("register", [False, True])
@pytest.mark.parametrize("lanes", cpu().vector_widths["i32"])
def test_it_computes_what_the_program_means(lanes, register):
    """With the instruction where the machine has it, else without; also of the extreme values."""
    check(marked(lanes, register))


@pytest.mark.parametrize("lanes", [16, 8, 4])
def test_it_computes_the_same_without_it(lanes):
    bare = replace(host(), features=host().features - {"avx512_vnni"})
    check(marked(lanes), bare)
    check(marked(4, register=True), bare)


def check(program, processor=None) -> None:
    code = generate(program, processor=processor)
    library = load(code.text)
    for fill in (None, (255, -128), (255, 127), (0, -128)):
        inputs = random_inputs(program, full=True)
        if fill is not None:
            inputs = {"x": np.full_like(inputs["x"], fill[0]), "w": np.full_like(inputs["w"], fill[1])}
        expected = interpret(program, inputs)["y"]
        np.testing.assert_array_equal(run(code, inputs, library)["y"], expected)


def test_which_machine_has_what():
    assert available(frozenset({"avx2"})) == {("transpose", 8)}
    assert available(frozenset({"avx512f", "avx512_vnni"})) == {("transpose", 16), ("vpdpbusd", 16)}
    assert available(frozenset({"avx512f", "avx512vl", "avx512_vnni"})) == {
        ("transpose", 16), ("vpdpbusd", 16), ("vpdpbusd", 8), ("vpdpbusd", 4),
    }  # fmt: skip


TURNED = """\
kernel k
in x
out y
x f32 [2, LANES, 40] heap
y f32 [2, 35, LANES] heap
2 35 LANES y[{0},{1},{2}] = 0
2 LANES LANES y[{0},{2}+3,{1}] = x[{0},{1},{2}+4]
"""


def turned(lanes: int, **changes: str):
    """A square of a larger array, copied with its rows and columns exchanged, in an instruction."""
    text = TURNED.replace("LANES", str(lanes))
    for before, after in changes.items():
        text = text.replace(before, after)
    every = replace(WIDE, instructions=frozenset({("transpose", lanes)}))
    return parse(text), every


@pytest.mark.parametrize("lanes", INSTRUCTIONS["transpose"].needs)
def test_a_square_of_rows_is_turned(lanes):
    program, every = turned(lanes)
    result = apply(program, "use_instruction y#1@1 transpose", every)
    wide = known("x86-64-v4")
    text = generate(result, processor=wide).text
    assert (
        f"transpose_{lanes}(&y[i0*{35 * lanes} + {3 * lanes}], {lanes}, &x[i0*{40 * lanes} + 4], 40);" in text
    )
    # Its constants take no registers of a product beside it.
    assert f"CALLED void transpose_{lanes}(" in preamble(wide)
    bare = generate(result, processor=replace(wide, features=wide.features - {"avx512f", "avx2"}))
    assert "transpose" not in bare.text
    inputs = random_inputs(program)
    for code in (generate(result), generate(result, processor=replace(host(), features=frozenset()))):
        np.testing.assert_array_equal(run(code, inputs)["y"], interpret(program, inputs)["y"])


def test_what_is_no_square_of_rows_is_refused():
    rows = "2 16 16 y[{0},{2}+3,{1}] = x[{0},{1},{2}+4]"
    for changes, code, words in (
        ({rows: rows.replace("x[{0},{1},{2}+4]", "x[{0},{2},{1}+4]")}, "instruction-access", "takes rows"),
        ({rows: rows.replace("x[{0},{1},{2}+4]", "y[{0},{1},{2}]")}, "instruction-access", "another array"),
        (
            {"y f32 [": "y f64 ["},
            "instruction-dtype",
            "transpose takes f32 and f32; here they are f64 and f32",
        ),
        ({rows: rows.replace("= x", "= abs(x").replace("+4]", "+4])")}, "instruction-operation", "computes"),
        (
            {rows: rows.replace("x[{0},", "x[k[{0}],"), "in x\n": "in x\ntable k i32 [2] = 1 0\n"},
            "instruction-access",
            "is indirect",
        ),
    ):
        program, every = turned(16, **changes)
        refusal = why(program, "use_instruction y#1@1 transpose", every).refusal
        assert refusal.code == code and words in refusal.sentence, refusal


def test_a_library_turns_rows_where_its_vectors_are_as_wide():
    lanes = cpu().vector_widths["f32"][0]
    program, every = turned(lanes)
    moves = "use_instruction y#1@1 transpose", "vectorize y@2"
    game = Game.new(program, limits=every)
    for move in moves:
        game.play(parse_move(move))
    codes = instance(of_game(game, "a test")).codes
    assert {width: f"transpose_{lanes}(" in code.text for width, code in codes.items()} == {
        4 * width: width == lanes for width in (16, 8, 4) if width <= lanes
    }
