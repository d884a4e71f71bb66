# ruff: noqa: E501  (programs and what is said of them stand side by side)
"""Indices that are read from arrays: their text, their bounds, their meaning, and what moves make of them."""

import random
import re

import numpy as np
import pytest

from dojo_core import TextError, apply, legal_moves, parse, why
from dojo_core.faults import program_fault
from dojo_core.measure.pool import draw
from dojo_core.moves import inverse
from dojo_core.program.definedness import first_unset
from dojo_core.program.dependence import accesses
from dojo_core.program.indices import bounds_of
from dojo_core.program.interpret import interpret
from dojo_core.program.marks import mark_fault
from dojo_core.program.physical import interpret_physical
from dojo_core.program.unset import unset_origin
from dojo_core.targets.cpu.codegen import generate
from tests import oracle
from tests.compiled import random_inputs, run_program
from tests.emulated import emulate
from tests.gpu import TINY
from tests.programs import random_program

GATHER = """\
kernel gather
in x, i
out y
domain i 0 4
x f32 [5, 8] heap
i i32 [3, 2] heap
y f32 [3, 8] heap
3 8 y[{0},{1}] = 0
3 2 8 y[{0},{2}] += x[i[{0},{1}],{2}]
"""


def program(body: str, arrays: str = "", domain: str = "domain i 0 3", dtype: str = "i32") -> object:
    head = f"kernel p\nin x, i\nout y\n{domain}\nx f32 [4] heap\ni {dtype} [4] heap\ny f32 [4] heap\n"
    return parse(f"{head}{arrays}\n{body}\n")


def agree(found: dict, wanted: dict, rtol: float = 1e-12) -> None:
    for name, values in wanted.items():
        np.testing.assert_allclose(np.reshape(found[name], values.shape), values, rtol=rtol)


def test_the_text_is_canonical():
    assert parse(GATHER).text == GATHER
    assert parse(GATHER).index_arrays == {"i"} and not parse(GATHER).tables
    assert parse(GATHER.replace("x[i[{0},{1}],{2}]", "x[{0}+i[{0},{1}]*1-{0},{2}]")) == parse(GATHER)
    both = GATHER.replace("domain i 0 4", "domain i 0 1\ntable k u8 [3] = 3 0 2").replace(
        "x[i[{0},{1}],", "x[k[{0}]+i[{0},{1}],"
    )
    assert "x[i[{0},{1}]+k[{0}],{2}]" in parse(both).text


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("domain i 0 4\n", "", "index 0 of x, i[{0},{1}], may run from -2147483648 to 2147483647, outside 0 to 4"),
        ("domain i 0 4\n", "", "Promise where the values of i lie, below the line in: domain i 0 4"),
        ("domain i 0 4", "domain i 0 5", "may run from 0 to 5, outside 0 to 4"),
        ("domain i 0 4", "domain i -1 4", "may run from -1 to 4, outside 0 to 4"),
        ("x[i[{0},{1}],", "x[i[{0},{1}]*2+1,", "below the line in: domain i 0 1"),
        ("x[i[{0},{1}],", "x[i[{0},{1}]*9-9,", "below the line in: domain i 1 1"),
        ("x[i[{0},{1}],", "x[i[{0},{1}]*9+6,", "No value of i would do"),
        ("i i32", "i f32", "i is f32, and an index is a whole number"),
        ("i i32", "i bool", "domain i 0 4 holds no whole numbers, or some that bool does not"),
        ("x[i[{0},{1}],", "x[i[{0}],", "i has 2 dimensions, not 1"),
        ("x[i[{0},{1}],", "x[i[{1},{0}],", "index 1 of i runs from 0 to 2, outside 0 to 1"),
        ("x[i[{0},{1}],", "x[i[i[0,0],{1}],", "what i[0,0] holds where only iterators may stand"),
        ("x[i[{0},{1}],", "x[j[{0},{1}],", "no buffer holds an array j"),
        ("x[i[{0},{1}],", "x[i[{0},{1}]*{1},", "i[{0},{1}] is an index, and more is done with it"),
        ("y[{0},{2}] +=", "y[i[{0},{1}],{2}] +=", "index 0 of y, i[{0},{1}], may run from 0 to 4, outside 0 to 2"),
        ("{2}]\n", "{2}] !prefetch(x[i[{0},{1}],0])\n", "x[i[{0},{1}],0] goes through an array"),
        ("{2}]\n", "{2}] if i[{0},{1}] < 3\n", "what i[{0},{1}] holds where only iterators may stand"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_at_the_door(old, new, told):
    assert old in GATHER
    with pytest.raises(TextError) as error:
        parse(GATHER.replace(old, new, 1))
    assert told in str(error.value), error.value
    if "may run" in told:
        assert "3 2 8 y" in str(error.value), "with the operation's line"


def test_what_a_dtype_holds_may_be_promise_enough():
    wide = "kernel p\nin x, i\nout y\nx f32 [256] heap\ni u8 [4] heap\ny f32 [4] heap\n4 y[{0}] = x[i[{0}]]\n"
    assert bounds_of(parse(wide)) == {"i": (0, 255)}
    with pytest.raises(TextError, match="outside 0 to 254"):
        parse(wide.replace("256", "255"))


@pytest.mark.parametrize(
    ("made", "bounds"),
    [
        ("4 j[{0}] = i[{0}]", (0, 3)),
        ("4 j[{0}] = -i[{0}]\n4 j[{0}] = abs(j[{0}])", None),  # of both that it may hold
        ("4 c[{0}] = max(w[{0}],0)\n4 j[{0}] = min(c[{0}],3)", (0, 3)),
        ("4 c[{0}] = max(w[{0}],0)\n4 j[{0}] = min(c[{0}],4)", None),
        ("4 c[{0}] = min(w[{0}],3)\n4 j[{0}] = c[{0}]", None),
        ("4 j[{0}] = -{0}+3", (0, 3)),
        ("4 j[{0}] = {0}*2", None),
        ("8 j[{0}] = {0} if {0} < 4", (0, 3)),
        ("4 j[{0}] = 0\n4 j[{0}] max= i[{0}]", (0, 3)),
        ("4 j[{0}] = -inf\n4 j[{0}] max= i[{0}]", None),
        ("4 j[{0}] = 0\n4 j[{0}] += i[{0}]", None),
        ("4 j[{0}] = 0\n3 j[{0}+1] = j[{0}] + 1", None),  # it grows with the iterations
        ("c[0] = 0\n3 c[{0}+1] = c[{0}] + w[{0}]\n4 k[{0}] = max(c[{0}],0)\n4 j[{0}] = min(k[{0}],3)", (0, 3)),
        ("4 c[{0}] = w[{0}] < 3\n4 j[{0}] = select(c[{0}],{0},0)", (0, 3)),
        ("4 c[{0}] = w[{0}] > 3\n4 j[{0}] = 3 - c[{0}]", (2, 3)),
        ("4 c[{0}] = w[{0}] > 3\n4 j[{0}] = c[{0}]*3", (0, 3)),
        ("4 a[{0}] = min(z[{0}],3)\n4 b[{0}] = max(a[{0}],1)\n4 j[{0}] = i32(b[{0}])", (0, 3)),  # 0 where it is NaN
        ("4 a[{0}] = min(z[{0}],3.5)\n4 b[{0}] = max(a[{0}],0)\n4 j[{0}] = i32(b[{0}])", None),  # 3.5 may be rounded
        ("4 j[{0}] = i32(z[{0}])", None),
        ("4 a[{0}] = round(x[{0}])\n4 b[{0}] = abs(a[{0}])\n4 j[{0}] = i32(b[{0}])", None),
        ("4 j[{0}] = w[{0}] / 2", None),
        ("4 j[{0}] = 3\n4 j[{0}] = i[{0}] - 1", None),  # -1 is less than all before
        ("4 j[{0}] = 0\n4 j[{0}] = c[{0}-1] if {0} >= 1\n| c[{0}] = i[{0}]", (0, 3)),  # read before it is written
        ("4 a[{0}] = 1\n4 b[{0}] = a[{0}] + 1\n4 j[{0}] = i32(b[{0}])", None),  # sums of reals are rounded
        ("4 j[{0}] = shl(i[{0}],0)", None),
    ],
)  # fmt: skip
def test_what_operations_make_has_bounds(made, bounds):
    text = (
        "kernel p\nin x, i, w, z\nout y\ndomain i 0 3\nx f32 [4] heap\ni i32 [4] heap\nw i32 [4] heap\n"
        "z f32 [4] heap\ny f32 [4] heap\nj i32 [8] heap\nc i32 [4] heap\nk i32 [4] heap\na f32 [4] heap\nb f32 [4] heap\n"
        f"{made}\n4 y[{{0}}] = x[j[{{0}}]]\n"
    )
    if bounds is None:
        with pytest.raises(TextError, match=re.escape("Clamp it in lines before: a[{0}] = max(j[{0}],0)")):
            parse(text)
        return
    held = parse(text)
    assert bounds_of(held)["j"] == bounds and parse(held.text) == held
    inputs = random_inputs(held)
    agree(run_program(held, inputs), interpret(held, inputs))


def test_what_grows_with_the_iterations_has_no_end():
    text = (
        "kernel p\nin x\nout y\nx f32 [60] heap\ny f32 [61] heap\nj i32 [61] heap\n"
        "j[0] = 0\n60 j[{0}+1] = j[{0}] + 1\n61 y[{0}] = x[j[{0}]]\n"
    )
    with pytest.raises(TextError, match="may run from -2147483648 to 2147483647"):
        parse(text)


def test_what_may_wrap_around_may_be_anything():
    text = (
        "kernel p\nin w, x\nout y\nw i32 [4] heap\nx f32 [4] heap\ny f32 [4] heap\nc u8 [4] heap\nj u8 [4] heap\n"
        "4 c[{0}] = w[{0}] < 3\n4 j[{0}] = c[{0}] + 254\n4 y[{0}] = x[j[{0}]-254]\n"
    )
    assert bounds_of(parse(text))["j"] == (254, 255)
    with pytest.raises(TextError, match="may run from -255 to 0"):
        parse(text.replace("254", "255"))


@pytest.mark.parametrize(("domain", "dtype", "most"), [
    ("0 3", "f32", 3), ("0 3.5", "f32", 4), ("0 3.99999999", "f32", 4), ("0.5 3.999", "bf16", 4),
    ("0 300", "bf16", 2**31 - 1),  # 300 lies between two values
])  # fmt: skip
def test_the_end_of_a_domain_may_be_rounded(domain, dtype, most):
    text = (
        f"kernel p\nin z, x\nout y\ndomain z {domain}\nz {dtype} [4] heap\nx f32 [5] heap\ny f32 [4] heap\nj i32 [4] heap\n"
        "4 j[{0}] = i32(z[{0}])\n4 y[{0}] = x[j[{0}]]\n"
    )
    if most < 5:
        assert bounds_of(parse(text))["j"] == (0, most)
    else:
        with pytest.raises(TextError, match=f"to {most}, outside 0 to 4"):
            parse(text)


def test_an_iterator_may_be_rounded():
    text = (
        "kernel p\nin x\nout y\nx f32 [2052] heap\ny f32 [2052] heap\na f16 [2052] heap\nj i32 [2052] heap\n"
        "2052 a[{0}] = {0}\n2052 j[{0}] = i32(a[{0}])\n2052 y[{0}] = x[j[{0}]]\n"
    )
    with pytest.raises(TextError, match="outside 0 to 2051"):
        parse(text)
    assert bounds_of(parse(text.replace("a f16", "a f32")))["j"] == (0, 2051)


def test_meaning_is_numpys_indexing():
    gather = parse(GATHER)
    inputs = random_inputs(gather)
    wanted = {"y": inputs["x"][inputs["i"]].astype(float).sum(axis=1)}
    agree(interpret(gather, inputs), wanted)
    agree(interpret_physical(gather, inputs), wanted)
    agree(run_program(gather, inputs), wanted, 1e-5)
    assert oracle.run(gather).fault is None
    with pytest.raises(IndexError, match="leaves the array"):
        interpret(gather, inputs | {"i": inputs["i"] + 5})
    assert "y[i0*8 + i2] += x[i[i0*2 + i1]*8 + i2];" in generate(gather).text


def test_a_part_of_an_index_may_be_beyond_32_bits():
    text = (
        "kernel far\nin x, i\nout y\ndomain i 1000000 1000003\nx f32 [12289] heap\ni i32 [4] heap\ny f32 [4] heap\n"
        "4 y[{0}] = x[i[{0}]*4096-4096000000]\n"
    )
    far = parse(text)
    assert "(i64)i[i0]*4096 - 4096000000" in generate(far).text
    inputs = random_inputs(far)
    agree(run_program(far, inputs), interpret(far, inputs))


def test_an_index_array_may_be_written_while_it_is_read():
    """A walk along links, each step where the one before led."""
    linked = program("j[0] = 0\n4 y[{0}] = x[j[0]]\n| j[0] = i[{0}]", "j i32 [1] heap")
    inputs = random_inputs(linked)
    at = [0, *inputs["i"][:3]]
    for run in (interpret, interpret_physical, run_program):
        agree(run(linked, inputs), {"y": inputs["x"][at].astype(float)}, 1e-6)
    for move in ("parallelize y@0", "fission_scope y@0 j#1", "interchange y@0"):
        assert not why(linked, move).legal


def test_measured_programs_draw_indices_from_the_domain():
    values = draw("i32", (64, 64), np.random.default_rng(0), parse(GATHER).domains[0])
    assert values.min() == 0 and values.max() == 4 and values.dtype == np.int32


J, T = "j i32 [4] heap", "t f32 [4] heap"
COPIED = "4 j[{0}] = i[{0}]\n4 y[{0}] = x[j[{0}]]"


@pytest.mark.parametrize(
    ("body", "arrays", "move", "code"),
    [
        ("4 t[{0}] = x[{0}]*2\n4 y[{0}] = t[i[{0}]]", T, "reuse_dims t 0", "clobber"),
        ("4 t[{0}] = x[{0}]*2\n4 y[{0}] = t[i[{0}]]", T, "join_scopes t@0", "order"),
        ("4 t[{0}] = x[{0}]*2\n4 y[{0}] = t[i[{0}]]", T, "set_location t register", "register-index"),
        ("4 t[{0}] = x[{0}]*2\n4 y[{0}] = t[i[{0}]]", T, "split_dim t 0 2", "not-decomposed"),
        ("4 t[{0}] = x[{0}]*2\n4 y[{0}] = t[i[{0}]]", T, "forward y t", "not-one-definition"),
        ("4 t[{0}] = x[{0}]*2\n4 y[{0}] = t[i[{0}]]", T, "recompute y t r", "not-one-definition"),
        ("4 j[{0}] = i[{0}]\n| i0[{0}] = j[{0}]\n4 y[{0}] = y[i0[{0}]] + 1", "j i32 [4] heap\ni0 i32 [4] heap", "vectorize y@0", "vector-flow"),
        ("4 y[{0}] = x[{0}]\n4 y[{0}] = y[i[{0}]]", "", "parallelize y#1@0", "race"),
        # the index array is written in between
        (f"{COPIED}", J, "join_scopes j@0", None),
        ("4 j[{0}] = i[{0}]\n4 y[{0}] = x[j[-{0}+3]]", J, "join_scopes j@0", "order"),
        (f"{COPIED}\n4 j[{{0}}] = 0", J, "reorder y@0", "order"),
        (f"{COPIED}", J, "reuse_dims j 0", "clobber"),
        (f"{COPIED}", J, "drop_dead j", "seen"),
        ("j[0] = 1\n4 t[{0}] = x[j[0]]\nj[0] = 2\n4 y[{0}] = t[{0}]*j[0]", f"{T}\nj u8 [1] heap", "forward y t", "changed-between"),
        ("j[0] = 1\n4 t[{0}] = x[j[0]]*2\nj[0] = 2\n4 y[{0}] = t[{0}]*j[0]", f"{T}\nj u8 [1] heap", "recompute y t r", "changed-between"),
        # an index stays an element at an affine place
        ("4 j[{0}] = 2\n4 y[{0}] = x[j[{0}]]", J, "forward y j", "index-form"),
        ("4 k[{0}] = i[{0}]\n4 j[{0}] = i[k[{0}]]\n4 y[{0}] = x[j[{0}]]", f"{J}\nk i32 [4] heap", "forward y j", "index-form"),
        ("4 k[{0}] = w[{0}]\n4 k[{0}] = i[{0}]\n4 y[{0}] = x[k[{0}]]", "w i64 [4] heap\nk i64 [4] heap\n4 w[{0}] = 0", "forward y k", None),
    ],
)  # fmt: skip
def test_what_an_index_array_hides_is_refused(body, arrays, move, code):
    if "4 w[" in arrays:
        arrays, first = arrays.rsplit("\n", 1)
        body = f"{first}\n{body}"
    if move == "forward y k":
        code = "other-dtype"
    verdict = why(program(body, arrays), move)
    assert (verdict.refusal.code if verdict.refusal else None) == code, verdict


def played(start: object, *moves: str) -> object:
    for move in moves:
        start = apply(start, move)
    return start


PADDED = "4 j[{0}] = {0}\n4 t[{0}] = x[j[{0}]]\n4 y[{0}] = t[{0}]"


def test_added_iterations_may_not_read_an_index_that_nothing_set():
    """Their values reach no output, but the reads would be anywhere."""
    roomy = played(program(PADDED, f"{J}\n{T}"), "pad_dim j 0 8", "pad_dim t 0 8")
    assert why(roomy, "pad_scope t@0 8 guard").legal
    verdict = why(roomy, "pad_scope t@0 8 free")
    assert (
        verdict.refusal.code == "undefined"
        and "j[{0}], of which an index is made" in verdict.refusal.sentence
    )
    wide = parse(roomy.text.replace("4 t[{0}] = x[j[{0}]]", "8 t[{0}] = x[j[{0}]]"))
    assert "Set all of j before" in program_fault(wide)


@pytest.mark.parametrize(
    "body",
    [
        "3 j[{0}] = i[{0}]\n4 y[{0}] = x[j[{0}]]",
        "3 k[{0}] = i[{0}]\n4 j[{0}] = k[{0}]\n4 y[{0}] = x[j[{0}]]",  # the copy of what nothing set
        "4 j[{0}] max= i[{0}]\n4 y[{0}] = x[j[{0}]]",
        "4 y[{0}] = x[j[{0}]]\n4 j[{0}] = i[{0}]",
        "3 j[{0}] = i[{0}]\n4 y[{0}] = x[j[{0}]]\n4 y[{0}] = x[{0}]",  # nobody sees it
    ],
)  # fmt: skip
def test_an_index_comes_from_what_is_set(body):
    assert "of which an index is made, is not surely set" in program_fault(
        program(body, f"{J}\nk i32 [4] heap")
    )


def test_added_iterations_may_not_make_an_index_that_leads_outside():
    roomy = played(program(PADDED, f"{J}\n{T}"), "pad_dim j 0 8")
    assert why(roomy, "pad_scope j@0 8 guard").legal
    verdict = why(roomy, "pad_scope j@0 8 free")
    assert verdict.refusal.code == "index-bounds"
    assert verdict.refusal.sentence == "Index 0 of x, j[{0}], may run from 0 to 7, outside 0 to 3."


@pytest.mark.parametrize("moves", [
    ["join_scopes j@0", "forward y j", "drop_dead j"],
    ["recompute y j r", "reuse_dims j 0"],
    ["pad_dim j 0 8", "split_dim j 0 4", "swap_dims j 0 1"],
    ["join_scopes j@0", "set_location j stack", "reuse_dims j 0"],
    ["stage_read i root s", "elide_copy s"],
    ["stage_read x root s", "parallelize y@0"],
    ["split_scope y@0 2", "stage_read j y@0 s", "interchange s@0"],
    ["unroll j@0", "unroll y@0", "set_location j register"],
    ["cut_scope y@0 1"],
    ["pad_scope y@0 6 guard", "parallelize y@0"],
])  # fmt: skip
def test_moves_keep_the_meaning(moves):
    start = here = program(COPIED, J)
    inputs = random_inputs(start)
    for move in moves:
        verdict = why(here, move)
        if not verdict.legal and move in ("reuse_dims j 0", "interchange s@0"):
            continue
        here = apply(here, move)
        assert parse(here.text) == here
        agree(interpret_physical(here, inputs), interpret(start, inputs))
    agree(run_program(here, inputs), interpret(start, inputs), 1e-6)


def test_every_legal_move_keeps_the_meaning_and_inverts():
    start = parse(GATHER)
    terms = oracle.Terms()
    wanted = oracle.run(start, "reassoc", terms).outputs
    moves = list(legal_moves(start))
    assert {
        "vectorize y#1@2",
        "parallelize y#1@0",
        "interchange y#1@1",
        "merge_dims i 0",
        "stage_read i root ip",
    } <= set(map(str, moves))
    for move in moves:
        made = apply(start, move)
        found = oracle.run(made, "reassoc", terms)
        assert found.fault is None and list(found.outputs.values()) == list(wanted.values()), move
        back = inverse(start, move)
        assert back is None or apply(made, back) == start


def test_a_guard_bounds_what_is_counted():
    """Of a sum that it compares; where that is not how the text says it, the move that would need more is refused."""
    start = program("4 j[{0}] = {0}\n4 y[{0}] = x[j[{0}]]", J)
    split = played(start, "pad_dim j 0 6", "pad_scope j@0 6 guard", "split_scope j@0 2")
    assert "j[{0}*2+{1}] = {0}*2+{1} if {0}*2+{1} < 4" in split.text and parse(split.text) == split
    doubled = parse(start.text.replace("= {0}\n", "= {0}*2\n").replace("x f32 [4]", "x f32 [7]"))
    padded = played(doubled, "pad_dim j 0 6", "pad_scope j@0 6 guard")
    assert why(padded, "split_scope j@0 2").refusal.code == "index-bounds"
    assert "split_scope j@0 2" not in map(str, legal_moves(padded))


def test_two_indices_of_one_range_are_two():
    """Storage is judged without their names, and their difference is anything."""
    text = (
        "kernel p\nin x, i, k\nout y\ndomain i 0 3\ndomain k 0 3\nx f32 [8] heap\ni i32 [4] heap\nk i32 [4] heap\n"
        "y f32 [4] heap\nt f32 [8] heap\n8 t[{0}] = x[{0}]\nt[4] = x[4]\n4 y[{0}] = t[i[{0}]-k[{0}]+4]\n"
    )
    assert why(parse(text.replace("i[{0}]-k[{0}]+", "")), "reuse_dims t 0").legal
    assert why(parse(text), "reuse_dims t 0").refusal.code == "clobber"


def test_lanes_share_an_index_or_have_one_array_between_them():
    """An embedding's rows in vectors: the index is read once for all lanes."""
    fast = played(parse(GATHER), "split_scope y#1@2 4", "vectorize y#1@3")
    assert "f32x4_load(&x[i[i0*2 + i1]*8 + i2*4])" in generate(fast).text
    inputs = random_inputs(fast)
    agree(run_program(fast, inputs), interpret(parse(GATHER), inputs), 1e-5)


def test_what_may_be_read_has_to_be_set():
    """A read through an array is one of any cell in range."""
    arrays = "t f32 [8] heap"
    head = program("4 t[{0}] = x[{0}]\n4 y[{0}] = t[i[{0}]]", arrays)
    assert program_fault(head) is None, "the domain ends where the writes do"
    short = program("3 t[{0}] = x[{0}]\n4 y[{0}] = t[i[{0}]]", arrays)
    assert "t[i[{0}]] is read where no earlier write has set it" in program_fault(short)
    read = next(t for t in accesses(short.leaves[1]) if t.element.array == "t")
    assert first_unset(read, accesses(short.leaves[0]), [8]) == (0,)
    assert unset_origin(short, "t") is not None
    harmless = program("3 t[{0}] = x[{0}]\n4 y[{0}] = t[i[{0}]]\n4 y[{0}] = 0", arrays)
    assert program_fault(harmless) is None


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i32"])
def test_lanes_gather_through_an_array(dtype):
    """Each lane where its own index says: a row of a sparse matrix, a permutation."""
    text = (
        f"kernel spmv\nin v, c, x\nout y, z\ndomain c 0 31\nv {dtype} [4, 8] heap\nc u8 [4, 8] heap\n"
        f"x {dtype} [32] heap\ny {dtype} [4] heap\nz {dtype} [4, 8] heap\n"
        "4 y[{0}] = 0\n| 8 y[{0}] += v[{0},{1}]*x[c[{0},{1}]]\n4 8 z[{0},{1}] = x[-c[{0},{1}]+{1}*0+31]\n"
    )
    start = parse(text)
    width = {"f64": 2}.get(dtype, 4)
    fast = played(
        start, f"split_scope y#1@1 {width}", "vectorize y#1@2", f"split_scope z@1 {width}", "vectorize z@2"
    )
    assert oracle.run(fast).fault is None
    assert "{x[c[" in generate(fast).text
    inputs = random_inputs(start)
    agree(run_program(fast, inputs), interpret(start, inputs), 1e-5 if dtype != "bf16" else 1e-2)


GPU = """\
kernel gather
in x, i
out y
domain i 0 4
x f32 [5, 16] heap
i u8 [4] heap
y f32 [4, 16] heap
s u8 [2:N, 2] shared
2:g 2:b s[{0},{1}] = i[{0}*2+{1}]
| 2:b 4 4:v y[{0}*2+{1},{2}*4+{3}] = x[s[{0},{1}],{2}*4+{3}]
"""


def test_gpu_code_reads_indices_from_memory():
    from dojo_core.targets.gpu.codegen import generate as gpu_code

    mapped = parse(GPU)
    assert mark_fault(mapped, TINY, "reassoc") is None and oracle.run(mapped).fault is None
    inputs = random_inputs(mapped)
    found, fault = emulate(gpu_code(mapped, "reassoc", "cuda", 4), inputs)
    assert not fault
    agree(found, interpret(mapped, inputs), 1e-6)


def test_lanes_gather_on_a_gpu():
    """Each index is loaded by itself, however its bytes lie; what is read through it too."""
    from dojo_core.targets.gpu.codegen import generate as gpu_code

    mapped = parse(
        "kernel pick\nin x, i\nout y\ndomain i 0 6\nx f32 [7] heap\ni u8 [9] heap\ny f32 [8] heap\n"
        "2:g 2:b 2:v y[{0}*4+{1}*2+{2}] = x[i[{0}*4+{1}*2+{2}+1]] + 1\n"
    )
    assert mark_fault(mapped, TINY, "reassoc") is None and oracle.run(mapped).fault is None
    inputs = random_inputs(mapped)
    found, fault = emulate(gpu_code(mapped, "reassoc", "cuda", 4), inputs)
    assert not fault
    agree(found, interpret(mapped, inputs), 1e-6)


def test_what_a_thread_has_of_its_own_is_not_read_through_an_array():
    own = (
        GPU.replace("s u8 [2:N, 2] shared", "p f32 [2:N, 2:N, 4] stack")
        .replace("2:g 2:b s[{0},{1}] = i[{0}*2+{1}]", "2:g 2:b 4 p[{0},{1},{2}] = x[0,{2}]")
        .replace(
            "2:b 4 4:v y[{0}*2+{1},{2}*4+{3}] = x[s[{0},{1}],{2}*4+{3}]",
            "2:b 16 y[{0}*2+{1},{2}] = p[{0},{1},i[{1}]]",
        )
        .replace("0 4\n", "0 3\n")
    )
    fault = mark_fault(parse(own), TINY, "reassoc")
    assert fault.code == "local-index" and "put p into shared memory or on the heap" in fault.sentence
    odd = GPU.replace("x[s[{0},{1}],{2}*4+{3}]", "x[0,s[{0},{1}]+{3}]")
    assert mark_fault(parse(odd), TINY, "reassoc").code == "vector-alignment"


def test_a_core_without_indirection_says_so():
    told = program_fault(parse(GATHER), "snitch")
    assert (
        told
        == "The target Snitch (RISC-V with streams) reads no indices from arrays yet: play this program on the CPU."
    )


def test_random_programs_have_index_arrays():
    found = [random_program(random.Random(seed)).index_arrays for seed in range(24)]
    assert sum(map(bool, found)) >= 3


CHAIN = """\
kernel softmax
in x, i, k, u
out y
domain i 0 5
domain k 0 3
x f32 [6, 8] heap
i i32 [4] heap
k i32 [4] heap
u f32 [4] heap
d f32 [4, 8] heap
e f32 [4, 8] heap
y f32 [4] heap
4 8 d[{0},{1}] = x[i[{0}],{1}] - SHIFT
4 8 e[{0},{1}] = exp(d[{0},{1}])
4 y[{0}] = 0
| 8 y[{0}] += e[{0},{1}]
"""


@pytest.mark.parametrize(("shift", "back"), [("u[{0}]", True), ("u[k[{0}]]", False)])
def test_one_pass_over_rows_that_are_looked_up(shift, back):
    start = parse(CHAIN.replace("SHIFT", shift))
    once = apply(start, "online_rescale y#1@1 o", policy="algebraic")
    inputs = random_inputs(start)
    agree(interpret(once, inputs), interpret(start, inputs), 1e-9)
    assert why(once, "sum_exp_again o e", policy="algebraic").legal == back
