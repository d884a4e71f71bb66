# ruff: noqa: E501  (programs and what is said of them stand side by side)
"""Constant tables: their text, their meaning, and what the analyses and moves make of a read through one."""

import random
import re

import numpy as np
import pytest

from dojo_core import TextError, apply, legal_moves, parse, why
from dojo_core.moves import inverse
from dojo_core.program.interpret import interpret
from dojo_core.program.physical import interpret_physical
from dojo_core.targets.cpu.codegen import generate
from tests import oracle
from tests.compiled import random_inputs, run_program
from tests.programs import random_program

GATHER = """\
kernel gather
in x
out y
table idx u8 [3, 2] = 4 0 2 2 1 3
x f32 [5, 8] heap
y f32 [3, 8] heap
3 8 y[{0},{1}] = 0
3 2 8 y[{0},{2}] += x[idx[{0},{1}],{2}]
"""


def program(body: str, table: str = "table k i32 [4] = 2 0 3 1", arrays: str = "") -> object:
    head = "kernel p\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n"
    return parse(f"{head}{table}\n{arrays}\n{body}\n")


def agree(found: dict, wanted: dict, rtol: float = 1e-12) -> None:
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=rtol)


def test_the_text_is_canonical():
    assert parse(GATHER).text == GATHER
    loose = GATHER.replace("[3, 2] = 4 0 2", "[3,2]=4  0 2").replace("heap\ny", "heap\n# a note\ny")
    assert parse(loose) == parse(GATHER)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("x[{0}*2+k[{0}]-{0}*2]", "x[k[{0}]]"),
        ("x[1+k[{0}]*1]", "x[k[{0}]+1]"),
        ("x[k[{0}]+k[{0}]]", "x[k[{0}]*2]"),
        ("x[3-k[{0}]]", "x[-k[{0}]+3]"),
        ("x[2*(k[3-{0}]+1)-1]", "x[k[-{0}+3]*2+1]"),
        ("x[{0}+k[2]]", "x[{0}+3]"),
        ("x[k[{0}]-k[{0}]+{0}]", "x[{0}]"),
        ("x[k[{0}]+j[{0}]]", "x[j[{0}]+k[{0}]]"),
    ],
)
def test_indices_are_collected_and_known_places_folded(written, canonical):
    tables = "table k i32 [4] = 2 0 3 1\ntable j i8 [4] = 0 1 1 4"
    made = program(f"4 y[{{0}}] = {written}\n4 y[{{0}}+4] = 0", tables)
    assert f"y[{{0}}] = {canonical}\n" in made.text
    assert parse(made.text) == made
    assert set(made.tables) == set(re.findall(r"([kj])\[", canonical)), "unused tables leave"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("= 4 0 2 2 1 3", "= 4 0 2 2 1", "5 values for 3 x 2 places"),
        ("[3, 2] = 4 0 2 2 1 3", "[3, 0] = 4", "1 values for 3 x 0 places"),
        ("u8 [3, 2]", "f32 [3, 2]", "a table of f32"),
        ("= 4 0", "= 256 0", "256 does not fit u8"),
        ("= 4 0", "= x 0", "this is no table"),
        ("= 4 0", "= 5 0", "index 0 of x runs from 0 to 5, outside 0 to 4"),
        ("table idx", "table x", "a second buffer named x"),
        ("x f32 [5, 8] heap", "x f32 [5, 8] heap\ntable idx u8 [1] = 0", "a second thing named idx"),
        ("idx[{0},{1}]", "idx[{0}]", "idx has 2 dimensions, not 1"),
        ("idx[{0},{1}]", "idx[{1},{0}]", "index 1 of idx runs from 0 to 2, outside 0 to 1"),
        ("idx[{0},{1}]", "idx[idx[{0},{1}],0]", "a table's value where only iterators may stand"),
        ("idx[{0},{1}]", "idx[{0},{1}]*{1}", "idx[{0},{1}] is a table's value"),
        ("y[{0},{2}] +=", "y[idx[0,1]+idx[0,{1}]*0+idx[{0},1]*0,idx[0,{1}]] +=", "y[0,idx[0,{1}]] goes through a table"),
        ("{2}]\n", "{2}] !prefetch(x[idx[{0},{1}],0])\n", "x[idx[{0},{1}],0] goes through a table"),
        ("+= x[idx[{0},{1}],{2}]", "+= idx[{0},{1}]", "idx[{0},{1}] is a table's value"),
        ("+= x[idx[{0},{1}],{2}]", "+= x[0,{2}]*idx[{0},{1}]", "idx[{0},{1}] is a table's value"),
        ("{2}]\n", "{2}] if idx[{0},{1}] < 3\n", "a table's value where only iterators may stand"),
        ("{2}]\n", "{2}] if {0} < 4\ntable more u8 [1] = 0\n", "a table after the body has begun"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_table_is_told_at_the_door(old, new, told):
    assert old in GATHER
    with pytest.raises(TextError, match=re.escape(told)):
        parse(GATHER.replace(old, new, 1))


def test_tables_have_a_limit():
    values = " ".join(["0"] * 16385)
    with pytest.raises(TextError, match="more than 16384 values in tables"):
        parse(GATHER.replace("[3, 2] = 4 0 2 2 1 3", f"[16385] = {values}"))


def test_a_guard_may_keep_an_index_within_a_table():
    text = GATHER.replace("3 2 8 y", "3 4 8 y").replace(
        "x[idx[{0},{1}],{2}]", "x[idx[{0},{1}],{2}] if {1} < 2"
    )
    guarded, inputs = parse(text), random_inputs(parse(GATHER))
    agree(interpret(guarded, inputs), interpret(parse(GATHER), inputs))
    agree(run_program(guarded, inputs), interpret(parse(GATHER), inputs), 1e-5)
    with pytest.raises(
        TextError, match=re.escape("index 1 of idx, {1}, leaves 0 to 1 where the guard holds")
    ):
        parse(text.replace("{1} < 2", "{1} < 3"))


def test_meaning_is_numpys_indexing():
    gather = parse(GATHER)
    inputs = random_inputs(gather)
    wanted = {"y": inputs["x"][np.array([[4, 0], [2, 2], [1, 3]])].astype(float).sum(axis=1)}
    agree(interpret(gather, inputs), wanted)
    agree(interpret_physical(gather, inputs), wanted)
    agree(run_program(gather, inputs), wanted, 1e-5)
    assert oracle.run(gather).fault is None


def test_the_c_has_a_constant_array_and_an_unrolled_lookup_is_a_number():
    text = generate(parse(GATHER)).text
    assert "static const u8 idx[] = {" in text and "x[idx[i0*2 + i1]*8 + i2]" in text
    unrolled = apply(apply(parse(GATHER), "unroll y#1@0"), "unroll y#1@1")
    text = generate(unrolled).text
    assert "x[i2 + 32]" in text and not re.search(r"^[^/]*idx\[", text, re.MULTILINE)
    inputs = random_inputs(unrolled)
    agree(run_program(unrolled, inputs), interpret(parse(GATHER), inputs), 1e-5)


BACK = "8 t[{0}] = x[{0}]*2\n4 y[{0}] = t[k[{0}]]\n4 y[{0}+4] = 0"
T = "t f32 [8] heap"


def test_a_read_through_a_table_may_be_of_any_cell_between_its_extremes():
    """V1: only what lies beyond the extremes is surely another cell."""
    text = "4 y[{0}] = x[{0}]\n4 y[{0}+4] = y[k[{0}]]"
    assert why(program(text), "parallelize y#1@0").legal
    later = program(text, "table k i32 [4] = 2 0 4 1").text.replace(
        "table k i32 [4] = 2 0 4 1", "table k i32 [4] = 2 0 4 1"
    )
    verdict = why(parse(later), "parallelize y#1@0")
    assert not verdict.legal and verdict.refusal.code == "race"
    assert "y[k[{0}]]" in str(verdict.refusal.witness)


def test_scopes_are_not_joined_where_a_table_reads_ahead():
    ahead = program("4 t[{0}] = x[{0}]*2\n4 y[{0}] = t[k[{0}]]\n4 y[{0}+4] = 0", arrays="t f32 [4] heap")
    assert not why(ahead, "join_scopes t@0").legal
    behind = program(
        "4 t[{0}] = x[{0}]*2\n4 y[{0}] = t[k[0]]\n4 y[{0}+4] = 0",
        "table k i32 [4] = 0 0 3 1",
        "t f32 [4] heap",
    )
    assert why(behind, "join_scopes t@0").legal, "a place that is known is an index like any other"


@pytest.mark.parametrize(
    ("move", "code"),
    [
        ("reuse_dims t 0", "clobber"),
        ("set_location t register", "register-index"),
        ("split_dim t 0 2", "not-decomposed"),
        ("vectorize y@0", "vector-stride"),
        ("forward y t", "not-one-definition"),
        ("recompute y t r", "not-one-definition"),
        ("unpad_dim t 0 3", "dim-used"),
        ("stage_read x root k", "name-taken"),
    ],
)
def test_what_a_table_hides_is_refused(move, code):
    verdict = why(program(BACK, arrays=T), move)
    assert not verdict.legal and verdict.refusal.code == code, verdict


@pytest.mark.parametrize("moves", [
    ["set_location t stack"],
    ["pad_dim t 0 16", "unpad_dim t 0 8"],
    ["split_scope y@0 2", "merge_scopes y@0"],
    ["cut_scope y@0 1"],
    ["pad_scope y@0 6 guard"],
    ["parallelize y@0"],
    ["unroll y@0"],
])  # fmt: skip
def test_moves_keep_the_meaning(moves):
    start = here = program(BACK, arrays=T)
    inputs = random_inputs(start)
    for move in moves:
        here = apply(here, move)
        assert parse(here.text) == here
        agree(interpret(here, inputs), interpret(start, inputs))
        agree(run_program(here, inputs), interpret(start, inputs), 1e-5)


def test_a_copy_is_staged_for_reads_through_a_table_and_elided():
    start = parse(GATHER)
    staged = apply(start, "stage_read x root s")
    assert "y[{0},{2}] += s[idx[{0},{1}],{2}]" in staged.text
    inside = apply(start, "stage_read x y#1@0 s")
    assert "| 2 8 y[{0},{2}] += s[{0},idx[{0},{1}],{2}]" in inside.text, "all rows that the table may name"
    inputs = random_inputs(start)
    for made in (staged, inside):
        agree(interpret(made, inputs), interpret(start, inputs))
        assert apply(made, "elide_copy s") == start


def test_every_legal_move_on_sparse_products_keeps_meaning_and_inverts():
    from dojo_core import kernels

    for name, shape in (("sparse24", (2, 8, 4, 2)), ("blocksparse", (2, 6, 4, 2, 2))):
        start = kernels.get(name).program(shape)
        terms = oracle.Terms()
        wanted = oracle.run(start, "reassoc", terms).outputs
        for move in legal_moves(start):
            made = apply(start, move)
            found = oracle.run(made, "reassoc", terms)
            assert found.fault is None and list(found.outputs.values()) == list(wanted.values()), move
            back = inverse(start, move)
            assert back is None or apply(made, back) == start


def test_random_programs_have_tables():
    found = [random_program(random.Random(seed)).tables for seed in range(20)]
    assert sum(map(bool, found)) >= 4
