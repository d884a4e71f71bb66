# ruff: noqa: E501  (programs and what is said of them stand side by side)
"""Writes at places that arrays say: their text, their meaning, what they surely set, and what may be moved around them."""

import random
from dataclasses import replace

import numpy as np
import pytest

from dojo_core import TextError, apply, legal_moves, parse, why
from dojo_core.faults import program_fault
from dojo_core.measure.pool import draw, reach
from dojo_core.moves import inverse
from dojo_core.program.dependence import Order, accesses, meeting
from dojo_core.program.interpret import interpret
from dojo_core.program.marks import mark_fault
from dojo_core.program.physical import interpret_physical
from dojo_core.program.tree import Program
from dojo_core.program.unset import unset_origin
from dojo_core.program.validity import storage_fault
from dojo_core.targets.cpu.codegen import generate
from tests import oracle
from tests.compiled import random_inputs, run_program
from tests.emulated import emulate
from tests.gpu import TINY
from tests.programs import random_program

SCATTER = """\
kernel scatter
in x, i
out y
domain i 0 4
x f32 [3, 8] heap
i i32 [3] heap
y f32 [5, 8] heap
5 8 y[{0},{1}] = 0
3 8 y[i[{0}],{1}] = x[{0},{1}]
"""


def scattered(body: str, arrays: str = "", domain: str = "domain i 0 4", y: str = "f32 [5]") -> Program:
    """A program over x [3, 4] and the indices i [3]."""
    head = f"kernel p\nin x, i\nout y\n{domain}\nx {y.split()[0]} [3, 4] heap\ni i32 [3] heap\ny {y} heap\n"
    return parse(f"{head}{arrays}\n{body}\n")


def agree(found: dict, wanted: dict, rtol: float = 1e-12) -> None:
    for name, values in wanted.items():
        np.testing.assert_allclose(np.reshape(found[name], values.shape), values, rtol=rtol)


def test_the_text_is_canonical():
    assert parse(SCATTER).text == SCATTER and parse(SCATTER).index_arrays == {"i"}
    promised = SCATTER.replace("domain i 0 4", "domain i 0 4 distinct")
    assert parse(promised).text == promised and parse(promised) != parse(SCATTER)
    assert parse(promised).hash != parse(SCATTER).hash, "the key of all that is measured"
    clamped = SCATTER.replace("[i[{0}],{1}] =", "[i[{0}]*2+{1}-{1}-2,{1}] +=").replace("0 4", "1 3")
    assert "y[i[{0}]*2-2,{1}] += x[{0},{1}]" in parse(clamped).text


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("domain i 0 4", "domain i 0 5", "index 0 of y, i[{0}], may run from 0 to 5, outside 0 to 4"),
        ("domain i 0 4\n", "", "Promise where the values of i lie, below the line in: domain i 0 4"),
        ("domain i 0 4\n", "table k u8 [3] = 0 4 2\n", "y[k[{0}],{1}] goes through a table"),
        ("y[i[{0}],{1}] = x[{0},{1}]", "y[i[{0}],{1}] = x[{0},{1}] !prefetch(y[i[{0}],{1}])", "y[i[{0}],{1}] goes through an array"),
        ("y[i[{0}],{1}] =", "x[i[{0}],{1}] =", "x is an input and may not be written"),
        ("i i32", "i f32", "i is f32, and an index is a whole number"),
        ("= x[{0},{1}]", "= x[{0},{1}] if i[{0}] < 2", "what i[{0}] holds where only iterators may stand"),
        ("3 8 y[i[{0}],{1}] =", "4 8 y[i[{0}],{1}] =", "index 0 of i runs from 0 to 3, outside 0 to 2"),
        ("y[i[{0}],{1}] = x[{0},{1}]", "y[i[{0}],{1}] = x[0,{1}] if {0} >= 1 and {0} < 5", None),
        ("3 8 y[i[{0}],{1}] = x[{0},{1}]", "5 8 y[i[{0}],{1}] = x[0,{1}] if {0} < 4", "index 0 of i, {0}, leaves 0 to 2"),
        ("domain i 0 4", "domain i 0 4 different", "domain i 0 127 distinct"),
        ("domain i 0 4", "domain i 0 1 distinct", "domain i 0 1 distinct holds 2 whole numbers, and i has 3 elements"),
        ("domain i 0 4", "domain i 0 2 distinct", None),
        ("domain i 0 4", "domain i 0 4\ndomain x 0 4 distinct", "domain x 0 4 distinct: x is f32"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_at_the_door(old, new, told):
    assert old in SCATTER
    text = SCATTER.replace(old, new, 1)
    if "table" in new:
        text = text.replace("i[{0}]", "k[{0}]").replace("in x, i", "in x").replace("i i32 [3] heap\n", "")
    if told is None:
        assert parse(parse(text).text) == parse(text)
        return
    with pytest.raises(TextError) as error:
        parse(text)
    assert told in str(error.value), error.value


@pytest.mark.parametrize(
    ("sign", "ufunc"), [("", None), ("+", np.add), ("max", np.maximum), ("*", np.multiply)]
)
def test_meaning_is_numpys(sign, ufunc):
    """In the order of the text: of two at one place the last stays."""
    start = parse(SCATTER.replace("i[{0}],{1}] =", f"i[{{0}}],{{1}}] {sign}="))
    inputs = random_inputs(start) | {"i": np.array([3, 1, 3], np.int32)}
    y = np.zeros((5, 8))
    if ufunc is None:
        y[3], y[1] = inputs["x"][2], inputs["x"][1]
    else:
        ufunc.at(y, inputs["i"], inputs["x"].astype(float))
    for run in (interpret, interpret_physical, run_program):
        agree(run(start, inputs), {"y": y}, 1e-6)
    assert oracle.run(start).fault is None
    with pytest.raises(IndexError, match="leaves the array"):
        interpret(start, inputs | {"i": inputs["i"] + 2})


def test_order_is_kept_where_a_scope_is_gone_through_at_once():
    """Of two operations in one scope, and of one that reads what it writes, each iteration in turn."""
    two = scattered("5 y[{0}] = 0\n3 y[i[{0}]] = x[{0},0]\n| y[{0}] = x[{0},1]")
    own = scattered("5 y[{0}] = {0}\n3 y[i[{0}]] = y[{0}] + x[{0},0]")
    nest = scattered("5 y[{0}] = 0\n3 4 y[i[{0}]] = x[{0},{1}]")
    root = scattered("5 y[{0}] = 0\ny[i[1]] = x[1,2]")
    chained = scattered(
        "5 y[{0}] = 0\n2 z[{0},0] = 0\n2 2 y[i[{0}+{1}]] = {0}*2+{1}\n| | z[{0},{1}+1] = z[{0},{1}] + 1",
        "z f32 [2, 3] heap",
    )
    tiles = scattered("11 5 y[{0},{1}] = 0\n2 7 y[{0}*4+{1},i[0]] = y[{0}*4+3,4] + {1}", y="f32 [11, 5]")
    for start in (two, own, nest, root, chained, tiles):
        inputs = random_inputs(start) | {"i": np.array([1, 1, 0], np.int32)}
        agree(interpret(start, inputs), interpret_physical(start, inputs))
        agree(run_program(start, inputs), interpret(start, inputs), 1e-6)


def test_narrow_sums_are_rounded_after_each_term():
    start = scattered("5 y[{0}] = 0\n3 4 y[i[{0}]] += x[{0},{1}]", y="bf16 [5]")
    inputs = random_inputs(start) | {"i": np.array([2, 2, 2], np.int32)}
    agree(interpret(start, inputs), interpret_physical(start, inputs))


def test_an_array_may_say_where_it_is_written_itself():
    """A list turned round in place: each step writes where the one before says."""
    start = parse(
        "kernel p\nin i\nout y\ndomain i 0 4\ni u8 [5] heap\ny u8 [5] heap\n"
        "5 y[{0}] = i[{0}]\n4 y[y[{0}]] = {0}\n"
    )
    inputs = {"i": np.array([1, 4, 0, 0, 2], np.uint8)}
    y = inputs["i"].astype(float)
    for k in range(4):
        y[int(y[k])] = k
    for run in (interpret, interpret_physical, run_program):
        agree(run(start, inputs), {"y": y})
    assert oracle.run(start).fault is None and why(start, "parallelize y#1@0").refusal.code == "race"


# ---------------------------------------------------------------------------- what is surely set


@pytest.mark.parametrize(("body", "told"), [
    ("3 y[i[{0}]] = x[{0},0]", "y[0] of the output y is not surely written. Which elements y[i[{0}]] writes hangs on an array"),
    ("3 y[i[{0}]] += x[{0},0]", "y[i[{0}]] is read where no earlier write has surely set it."),
    ("4 y[{0}] = 0\n3 y[i[{0}]] = x[{0},0]", "y[4] of the output y is not surely written"),
    ("4 y[{0}] = 0\n3 y[i[{0}]] = x[{0},0]\ny[4] = 1", None),
    ("3 t[i[{0}]] = x[{0},0]\n5 y[{0}] = t[{0}]", "t[{0}] is read where no earlier write has surely set it."),
    ("5 t[{0}] = 0\n3 t[i[{0}]] = x[{0},0]\n5 y[{0}] = t[{0}]", None),
    ("3 t[i[{0}]] = x[{0},0]\n5 y[{0}] = t[{0}]\n5 y[{0}] = 0", None),  # nobody sees it
    # what is not set may be written anywhere
    ("5 y[{0}] = 0\n4 t[{0}] = 0\n3 y[i[{0}]] = t[{0}+2]", "t[{0}+2] is read where no earlier write has set it"),
    ("3 y[i[{0}]] = x[{0},0]\n5 y[{0}] = 0", None),
    ("5 y[{0}] = 0\n2 j[{0}] = i[{0}]\n3 y[j[{0}]] = x[{0},0]", "j[{0}], of which an index is made, is not surely set before it is read"),
])  # fmt: skip
def test_what_arrays_say_sets_nothing_in_particular(body, told):
    found = program_fault(scattered(body, "t f32 [5] heap\nj i32 [3] heap"))
    assert found is None if told is None else told in found, found


def test_what_is_not_set_may_go_anywhere():
    """A copy of it taints all that it may be written to; written over, it does no harm."""
    tainted = scattered("5 y[{0}] = 0\n3 y[i[{0}]] = t[{0}]", "t f32 [5] heap")
    assert str(unset_origin(tainted, "t").output) == "y[0]"
    added = scattered("5 y[{0}] = 0\n3 y[i[{0}]] += t[{0}]", "t f32 [5] heap")
    assert unset_origin(added, "t") is not None
    over = scattered("5 y[{0}] = 0\n3 y[i[{0}]] = t[{0}]\n5 y[{0}] = 1", "t f32 [5] heap")
    assert unset_origin(over, "t") is None and program_fault(over) is None


# ---------------------------------------------------------------------------- what may be moved

Y, T, J = "5 y[{0}] = 0\n", "t f32 [5] heap", "j i32 [3] heap"


@pytest.mark.parametrize(
    ("body", "arrays", "move", "code"),
    [
        # two iterations may write one element, whose last value stays
        ("3 4 y[i[{0}]] = x[{0},{1}]", "", "interchange y#1@0", "order"),
        ("3 y[i[{0}]] = x[{0},0]", "", "parallelize y#1@0", "race"),
        ("3 y[i[{0}]] = x[{0},0]\n3 y[i[{0}]] = x[{0},1]", "", "join_scopes y#1@0", "order"),
        ("3 y[i[{0}]] = x[{0},0]\n| y[i[{0}]] = x[{0},1]", "", "fission_scope y#1@0 y#2", "order"),
        ("3 y[i[{0}]] = x[{0},0]\n5 y[{0}] = 1", "", "reorder y#1@0", "order"),
        ("3 y[i[{0}]] = x[{0},0]\n3 t[{0}] = y[{0}]", T, "join_scopes y#1@0", "order"),
        # sums commute, but not at the same time; the policy strict keeps their order
        ("3 4 y[i[{0}]] += x[{0},{1}]", "", "interchange y#1@0", None),
        ("3 4 y[i[{0}]] += x[{0},{1}]", "", "strict interchange y#1@0", "order"),
        ("3 4 y[i[{0}]] max= x[{0},{1}]", "", "strict interchange y#1@0", None),
        ("3 4 y[i[{0}]] += x[{0},{1}]", "", "parallelize y#1@0", "race"),
        ("3 4 y[i[{0}]] += x[{0},{1}]", "", "split_reduction y#1@1 p", None),
        ("3 4 y[i[{0}]] += x[{0},{1}]", "", "split_reduction y#1@0 p", "target-uses"),
        ("3 4 y[i[{0}]] += x[{0},{1}]", "", "vectorize y#1@1", None),
        # lanes are written side by side or not at all
        ("4 y[k[{0}]] = x[0,{0}]", "k i32 [4] heap", "vectorize y#1@0", "vector-stride"),
        ("4 y[k[{0}]] += x[0,{0}]", "k i32 [4] heap", "vectorize y#1@0", "vector-stride"),
        # a write through an array sees to nothing for certain
        ("3 y[i[{0}]] = x[{0},0]\n5 t[{0}] = y[{0}]\n5 y[{0}] = t[{0}]", T, "drop_dead y", "seen"),
        ("3 y[i[{0}]] = x[{0},0]\n5 t[{0}] = y[{0}]\n5 y[{0}] = t[{0}]", T, "drop_dead y#1", "seen"),
        ("3 y[i[{0}]] = x[{0},0]\n5 t[{0}] = y[{0}]\n5 y[{0}] = t[{0}]*2", T, "forward t y", "not-one-definition"),
        ("3 y[i[{0}]] = x[{0},0]\n5 t[{0}] = y[{0}]\n5 y[{0}] = t[{0}]*2", T, "recompute t y r", "not-one-definition"),
        ("5 t[{0}] = 1\n3 t[i[{0}]] = x[{0},0]\n5 y[{0}] = t[{0}]", T, "reuse_dims t 0", "clobber"),
        ("5 t[{0}] = 1\n3 t[i[{0}]] = x[{0},0]\n5 y[{0}] = t[{0}]", T, "set_location t register", "register-index"),
        ("5 t[{0}] = 1\n3 t[i[{0}]] = x[{0},0]\n5 y[{0}] = t[{0}]", T, "set_location t stack", None),
        ("3 y[i[{0}]] = x[{0},0]", "", "split_dim y 0 5", "split-factor"),
        ("3 y[i[{0}]] = x[{0},0]", "", "stage_write y y#1@0 t", "not-dense"),
        ("3 y[i[{0}]] = x[{0},0]", "", "pad_scope y#1@0 4 free", "pad-bounds"),
        ("3 z[i[{0}]] = x[{0},0]", "z f32 [5] heap", "wrap z 2", None),  # the same again, in the same order
        # what is read to know where to write is a read like any other
        ("3 j[{0}] = i[{0}]\n3 y[j[{0}]] = x[{0},0]", J, "join_scopes j@0", None),
        ("3 j[{0}] = i[{0}]\n3 y[j[-{0}+2]] = x[{0},0]", J, "join_scopes j@0", "order"),
        ("3 j[{0}] = i[{0}]\n3 y[j[{0}]] = x[{0},0]\n3 j[{0}] = 0", J, "reorder y#1@0", "order"),
        ("3 j[{0}] = i[{0}]\n3 y[j[{0}]] = x[{0},0]", J, "reuse_dims j 0", "clobber"),
        ("3 j[{0}] = i[{0}]\n3 y[j[{0}]] = x[{0},0]", J, "drop_dead j", "seen"),
        ("3 j[{0}] = 2\n3 y[j[{0}]] = x[{0},0]", J, "forward y#1 j", "index-form"),
        ("3 j[{0}] = 2\n3 y[j[{0}]] = x[{0},0]", J, "elide_copy j", "no-copy"),
        ("3 j[{0}] = 2\n3 y[j[{0}]] = 3", J, "elide_copy j", "no-copy"),
        ("3 j[{0}] = i[{0}]\n3 4 y[j[{0}]] += x[{0},{1}]\n| j[{0}] = 1", J, "split_reduction y#1@1 p", None),
        ("3 j[{0}] = i[{0}]\n4 3 y[j[{1}]] += x[{1},{0}]\n| 3 j[{1}] = 1", J, "split_reduction y#1@0 p", "touched"),
    ],
)  # fmt: skip
def test_what_a_scattered_write_lets_be_moved(body, arrays, move, code):
    *policy, move = move.split(" ", 1) if move.startswith("strict") else (move,)
    if "k i32" in arrays:
        body = f"4 k[{{0}}] = {{0}}\n{body}"
    verdict = why(scattered(Y + body, arrays), move, policy=policy[0] if policy else "reassoc")
    assert (verdict.refusal.code if verdict.refusal else None) == code, verdict


def played(start: Program, *moves: str) -> Program:
    for move in moves:
        start = apply(start, move)
    return start


COPIED = "5 y[{0}] = 0\n3 j[{0}] = i[{0}]\n3 4 y[j[{0}]] += x[{0},{1}]"


@pytest.mark.parametrize("moves", [
    ["forward y#1 j", "drop_dead j"],
    ["recompute y#1 j r", "drop_dead j"],
    ["pad_dim j 0 4", "unroll y#1@1"],
    ["join_scopes j@0", "set_location j stack", "reuse_dims j 0"],
    ["stage_read i root s", "elide_copy s"],
    ["stage_read j y#1@0 s", "vectorize y#1@1"],
    ["stage_write y root t", "set_location t stack"],
    ["interchange y#1@0", "cut_scope y#1@1 1", "unroll y#1@1"],
    ["unroll j@0", "unroll y#1@0", "set_location j register"],
    ["pad_scope y#1@0 4 guard", "split_scope y#1@0 2"],
    ["split_reduction y#1@1 p", "vectorize p@1", "vectorize y#1@1"],
])  # fmt: skip
def test_moves_keep_the_meaning(moves):
    start = here = scattered(COPIED, J)
    inputs = random_inputs(start)
    for move in moves:
        here = apply(here, move)
        assert parse(here.text) == here
        agree(interpret_physical(here, inputs), interpret(start, inputs))
    agree(run_program(here, inputs), interpret(start, inputs), 1e-6)


def test_an_index_is_read_where_the_value_was():
    """What is added may not be taken into the sum where it also says into which."""
    start = parse(
        "kernel p\nin i\nout y\ndomain i 0 1\ni i32 [3] heap\ny i32 [4] heap\nt i32 [3] heap\n"
        "4 y[{0}] = 0\n3 t[{0}] = i[{0}]*i[{0}]\n3 y[i[{0}]] += t[{0}]\n"
    )
    assert why(start, "contract y#1 t").legal
    both = parse(start.text.replace("t i32 [3] heap", "t i32 [3] heap\nu i32 [3] heap").replace(
        "3 y[i[{0}]] +=", "3 u[{0}] = max(t[{0}],0)\n3 t[{0}] = min(u[{0}],3)\n3 y[t[{0}]] +="
    ))  # fmt: skip
    assert why(both, "contract y#1 t").refusal.code == "not-a-sum"


@pytest.mark.parametrize("body", [
    "5 p[{0}] = 0\n3 4 p[i[{0}]] += x[{0},{1}]\n5 y[{0}] += p[{0}]",
    "3 p[{0}] = 0\n| 4 p[{0}] += x[{0},{1}]\n| y[p[{0}]] += p[{0}]",
])  # fmt: skip
def test_partial_results_that_say_where_stay(body):
    start = scattered(f"256 y[{{0}}] = 0\n{body}", "p u8 [5] heap", y="u8 [256]")
    assert why(start, "merge_reduction p").refusal.code == "no-partials"


@pytest.mark.parametrize("text", [
    SCATTER,
    SCATTER.replace("0 4", "0 4 distinct"),
    SCATTER.replace("= x", "+= x"),
    scattered("5 y[{0}] = 0\n3 t[{0}] = 1\n3 t[i[{0}]-1] = x[{0},0]\n3 y[{0}+2] = t[{0}]\n", "t f32 [3] heap", "domain i 1 3").text,
])  # fmt: skip
def test_every_legal_move_keeps_the_meaning_and_inverts(text):
    start, terms = parse(text), oracle.Terms()
    wanted = oracle.run(start, "reassoc", terms)
    assert wanted.fault is None and wanted.defined
    moves = list(legal_moves(start))
    assert len(moves) >= 20
    for move in moves:
        made = apply(start, move)
        found = oracle.run(made, "reassoc", terms)
        assert found.fault is None and found.outputs == wanted.outputs, move
        back = inverse(start, move)
        assert back is None or apply(made, back) == start


# ---------------------------------------------------------------------------- distinct indices

DISTINCT = "domain i 0 4 distinct"


@pytest.mark.parametrize(
    ("body", "move", "code"),
    [
        ("3 y[i[{0}]] = x[{0},0]", "parallelize y#1@0", None),
        ("3 y[i[{0}]] += x[{0},0]", "parallelize y#1@0", None),
        ("3 4 y[i[{0}]] = x[{0},{1}]", "interchange y#1@0", None),
        ("3 4 y[i[{0}]] = x[{0},{1}]", "parallelize y#1@1", "race"),
        ("3 4 y[i[{0}]] += x[{0},{1}]", "strict interchange y#1@0", None),
        ("3 y[i[{0}]] = x[{0},0]\n| y[i[-{0}+2]] = x[{0},1]", "parallelize y#1@0", "race"),
        ("3 y[i[{0}]] = x[{0},0]\n| y[{0}] = x[{0},1]", "parallelize y#1@0", "race"),
        ("3 y[i[{0}]] = x[{0},0]\n3 y[i[{0}]] = x[{0},1]", "join_scopes y#1@0", None),
        ("3 y[i[{0}]] = x[{0},0]\n3 z[{0}] = y[i[{0}]]", "join_scopes y#1@0", None),
        ("3 y[i[{0}]] = x[{0},0]\n3 z[{0}] = y[i[-{0}+2]]", "join_scopes y#1@0", "order"),
        # an element's place beside the index counts while it is less than what lies between two indices
        ("3 2 z[i[{0}]*2+{1}] = x[{0},{1}]", "parallelize z@0", None),
        ("3 2 z[i[{0}]*2+{1}] = x[{0},{1}]", "parallelize z@1", None),
        ("3 3 z[i[{0}]*2+{1}] = x[{0},{1}]", "parallelize z@0", "race"),
        ("3 2 z[-i[{0}]*2+{1}+8] = x[{0},{1}]", "parallelize z@0", None),
        ("2 z[i[{0}]+i[{0}+1]] = x[{0},0]", "parallelize z@0", "race"),
        ("3 z[i[{0}]*2] = x[{0},0]\n| z[i[{0}]] = x[{0},1]", "parallelize z@0", "race"),
        ("3 z[i[{0}]*2] = x[{0},0]\n| z[i[{0}]*2+1] = x[{0},1]", "parallelize z@0", None),
        ("3 z[i[{0}]*2] = x[{0},0]\n| z[i[{0}]*2+2] = x[{0},1]", "parallelize z@0", "race"),
        ("3 z[i[{0}]*2+2] = x[{0},0]\n| z[i[{0}]*2] = x[{0},1]", "parallelize z@0", "race"),
        # the sum of two indices is another one
        ("3 j[{0}] = i[{0}]\n3 z[i[{0}]] = x[{0},0]\n3 z[i[{0}]+j[0]] = x[{0},1]", "join_scopes z@0", "order"),
        ("3 j[{0}] = i[{0}]\n3 z[i[{0}]+j[0]] = x[{0},0]\n3 z[i[{0}]] = x[{0},1]", "join_scopes z@0", "order"),
        # a copy's elements are not known to be distinct
        ("3 j[{0}] = i[{0}]\n3 y[j[{0}]] = x[{0},0]", "parallelize y#1@0", "race"),
    ],
)  # fmt: skip
def test_what_distinct_indices_let_be_moved(body, move, code):
    *policy, move = move.split(" ", 1) if move.startswith("strict") else (move,)
    start = scattered(Y + body, "z f32 [11] heap\nj i32 [3] heap", DISTINCT)
    verdict = why(start, move, policy=policy[0] if policy else "reassoc")
    assert (verdict.refusal.code if verdict.refusal else None) == code, verdict


def test_a_promise_is_of_the_array_that_bears_it():
    """Where an index comes to be read from a copy, what rested on the promise is asked again."""
    start = apply(scattered(f"{Y}3 y[i[{{0}}]] = x[{{0}},0]", domain=DISTINCT), "parallelize y#1@0")
    assert why(start, "stage_read i root s").refusal.code == "race"
    two = parse(
        "kernel p\nin x, i, k\nout y\ndomain i 0 4 distinct\ndomain k 0 4 distinct\nx f32 [3] heap\ni i32 [3] heap\n"
        f"k i32 [3] heap\ny f32 [5] heap\n{Y}3 y[i[{{0}}]] = x[{{0}}]\n| y[k[{{0}}]] = 1\n"
    )  # fmt: skip
    assert why(two, "parallelize y#1@0").refusal.code == "race", "two arrays may hold one value"


def test_private_storage_is_judged_by_the_same_promise():
    """In buffers of their own, where names are left out."""
    text = (
        "kernel p\nin x, i, k\nout y\ndomain i 0 4 distinct\ndomain k 0 4 distinct\nx f32 [3] heap\ni i32 [3] heap\n"
        "k i32 [3] heap\ny f32 [2, 5] heap\nt f32 [2:N, 5] stack\n"
        "2 5 t[{0},{1}] = 0\n| 3:p t[{0},i[{1}]] = x[{1}]\n| | t[{0},i[{1}]] += 1\n| 5 y[{0},{1}] = t[{0},{1}]\n"
    )
    assert storage_fault(parse(text)) is None and oracle.run(parse(text)).fault is None
    assert storage_fault(parse(text.replace("t[{0},i[{1}]] += 1", "t[{0},k[{1}]] += 1"))).code == "race"
    assert storage_fault(parse(text.replace(" distinct", ""))).code == "race"


def test_instances_meet_as_their_indices_do():
    """The two ends of what the solver is told: the same element of the array, another one."""
    start = scattered(f"{Y}3 y[i[{{0}}]] = x[{{0}},0]", domain=DISTINCT)
    write = accesses(start.leaves[1])[-1]
    assert meeting(write, write, 0, [Order(0, "<")]) is None
    assert meeting(write, write, 0, [Order(0, "=")]) is not None
    open_ = accesses(scattered(f"{Y}3 y[i[{{0}}]] = x[{{0}},0]").leaves[1])[-1]
    assert str(meeting(open_, open_, 0, [Order(0, "<")])).endswith("both touch y[i[{0}]]")


@pytest.mark.parametrize("dtype", ["i32", "u8", "i64", "i4"])
def test_distinct_values_are_drawn_so(dtype):
    domain = replace(parse(SCATTER).domains[0], low=-0.0, high=7, distinct=True)
    values = draw(dtype, (2, 4), np.random.default_rng(0), domain)
    assert sorted(values.ravel().astype(int)) == list(range(8))
    wide = draw("i64", (5,), np.random.default_rng(0), replace(domain, low=-(2.0**62), high=2.0**62))
    assert len({*wide.tolist()}) == 5 and wide.min() >= -(2**62)


def test_all_that_is_added_may_go_to_one_element():
    """What rounding may come to counts all terms."""
    text = (
        "kernel p\nin x, i\nout y\ndomain i 0 127\nx f32 [128, 128] heap\ni i32 [128] heap\ny f32 [128] heap\n"
        "128 y[{0}] = 0\n128 128 y[i[{0}]] += x[{0},{1}]\n"
    )
    apart = reach(parse(text.replace("y[i[{0}]]", "y[{0}]")), "f32")
    assert reach(parse(text), "f32") > 2 * apart


def test_threads_write_where_distinct_indices_say():
    start = scattered(
        f"{Y}3 4 z[i[{{0}}],{{1}}] = x[{{0}},{{1}}]\n5 y[{{0}}] = z[{{0}},1]", "z f32 [5, 4] heap", DISTINCT
    )
    start = parse(start.text.replace("5 y[{0}] = 0", "5 4 z[{0},{1}] = 0"))
    fast = played(start, "parallelize z#1@0", "vectorize z#1@1")
    assert "omp parallel for" in generate(fast).text and "_store(&z[i[i0]*4]" in generate(fast).text
    inputs = random_inputs(start)
    agree(run_program(fast, inputs), interpret(start, inputs), 1e-6)


# ---------------------------------------------------------------------------- other targets

GPU = """\
kernel place
in x, i
out y
domain i 0 4 distinct
x f32 [4, 8] heap
i u8 [4] heap
y f32 [5, 8] heap
5:g 2:b 4:v y[{0},{1}*4+{2}] = 0
2:g 2:b 2 4:v y[i[{0}*2+{1}],{2}*4+{3}] += x[{0}*2+{1},{2}*4+{3}]
"""


def test_a_gpu_writes_where_distinct_indices_say():
    from dojo_core.targets.gpu.codegen import generate as gpu_code

    mapped = parse(GPU)
    assert storage_fault(mapped) is None and mark_fault(mapped, TINY, "reassoc") is None
    assert oracle.run(mapped).fault is None
    inputs = random_inputs(mapped)
    found, fault = emulate(gpu_code(mapped, "reassoc", "cuda", 4), inputs)
    assert not fault
    agree(found, interpret(mapped, inputs), 1e-6)
    assert storage_fault(parse(GPU.replace(" distinct", ""))).code == "race", "threads add at the same time"
    own = parse(GPU.replace("y f32 [5, 8] heap", "y f32 [5, 8] heap\np f32 [2:N, 2:N, 5] stack").replace(
        "2:g 2:b 2 4:v y[i[{0}*2+{1}],{2}*4+{3}] += x[{0}*2+{1},{2}*4+{3}]",
        "2:g 2:b 5 p[{0},{1},{2}] = 0\n| | 2 p[{0},{1},i[{2}]] = x[{0},{2}]\n| | 5 y[{2},{0}*2+{1}] = p[{0},{1},{2}]",
    ))  # fmt: skip
    assert mark_fault(own, TINY, "reassoc").code == "local-index"


def test_a_core_without_indirection_says_so():
    assert program_fault(parse(SCATTER), "snitch") == (
        "The target Snitch (RISC-V with streams) reads no indices from arrays yet: play this program on the CPU."
    )


def test_random_programs_are_scattered():
    found = (random_program(random.Random(seed)) for seed in range(300))
    assert any(leaf.op.target.indirect for program in found for leaf in program.leaves)
