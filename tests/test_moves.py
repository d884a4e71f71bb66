# ruff: noqa: E501  (before and after stand side by side)
"""Each move: before, the move, after, and its inverse. Refusals stand in test_refusals.py."""

import math
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import or_
from typing import TypeVar, get_args

import numpy as np
import pytest

from dojo_core import IllegalMove, MoveSyntax, apply, kernels, legal_moves, parse, why
from dojo_core.moves import REGISTRY, inverse, parse_move
from dojo_core.moves.core import KINDS
from dojo_core.moves.examples import WIDE
from dojo_core.moves.legality import all_candidates, context, is_legal, outcome
from dojo_core.program.interpret import interpret
from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.program.validity import Fault
from dojo_core.targets.registry import target as target_named
from tests import oracle
from tests.compiled import random_inputs


def kernel(body: str, buffers: str) -> str:
    names = [line.split()[0] for line in buffers.strip().splitlines()]
    inputs = [n for n in names if n.startswith(("x", "w"))]
    text = f"kernel k\nin {', '.join(inputs)}\nout y\n{buffers.strip()}\n{body.strip()}\n"
    return "\n".join(line.strip() for line in text.splitlines())


def body_of(program) -> list[str]:
    lines = program.text.splitlines()
    return lines[3 + len(program.buffers) :]


def buffers_of(program) -> list[str]:
    return [str(b) for b in program.buffers]


XY = "x f32 [64] heap\ny f32 [64] heap"
XTY = "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap"
X2 = "x f32 [8, 16] heap\ny f32 [8, 16] heap"
SUM = "x f32 [8, 64] heap\ny f32 [8] heap"

GOLDEN = [
    # move, buffers, before, after
    ("split_scope y@0 16", XY, "64 y[{0}] = x[{0}]", "4 16 y[{0}*16+{1}] = x[{0}*16+{1}]"),
    ("merge_scopes y@0", XY, "4 16 y[{0}*16+{1}] = x[{0}*16+{1}]", "64 y[{0}] = x[{0}]"),
    ("join_scopes t@0", XTY, "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]"),
    ("fission_scope t@0 y", XTY, "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]"),
    ("interchange y@0", X2, "8 16 y[{0},{1}] = x[{0},{1}]", "16 8 y[{1},{0}] = x[{1},{0}]"),
    (
        "reorder t@0",
        XTY + "\nu f32 [8] heap",
        "8 t[{0}] = x[{0}]\n8 u[{0}] = x[{0}]\n8 y[{0}] = t[{0}] + u[{0}]",
        "8 u[{0}] = x[{0}]\n8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}] + u[{0}]",
    ),
    (
        "split_reduction y#1@2 p",
        SUM,
        "8 y[{0}] = 0\n8 4 16 y[{0}] += x[{0},{1}*16+{2}]",
        "8 y[{0}] = 0\n8 16 p[{0},{1}] = 0\n| 4 16 p[{0},{2}] += x[{0},{1}*16+{2}]\n| 16 y[{0}] += p[{0},{1}]",
    ),
    ("unroll y@0", XY, "64 y[{0}] = x[{0}]", "64:u y[{0}] = x[{0}]"),
    ("parallelize y@0", XY, "64 y[{0}] = x[{0}]", "64:p y[{0}] = x[{0}]"),
    ("vectorize y@1", X2, "8 16 y[{0},{1}] = x[{0},{1}]", "8 16:v y[{0},{1}] = x[{0},{1}]"),
    ("clear_mark y@0", XY, "64:u y[{0}] = x[{0}]", "64 y[{0}] = x[{0}]"),
    (
        "prefetch y x[{0}+1,{1}]",
        X2,
        "8 16 y[{0},{1}] = x[{0},{1}]",
        "8 16 y[{0},{1}] = x[{0},{1}] !prefetch(x[{0}+1,{1}])",
    ),
    (
        "forward y t",  # the value comes from the write, not from the read before
        XTY + "\nu f32 [8] heap",
        "8 t[{0}] = x[{0}]\n8 u[{0}] = t[{0}]\n| y[{0}] = t[{0}]*2",
        "8 t[{0}] = x[{0}]\n8 u[{0}] = t[{0}]\n| y[{0}] = x[{0}]*2",
    ),
    (
        "swap_dims t 0 1",  # a nest that only prefetches it is changed too
        X2 + "\nt f32 [8, 16] heap",
        "8 16 t[{0},{1}] = x[{0},{1}]\n8 16 y[{0},{1}] = 0 !prefetch(t[{0},{1}])\n8 16 y[{0},{1}] += t[{0},{1}]",
        "8 16 t[{1},{0}] = x[{0},{1}]\n8 16 y[{0},{1}] = 0 !prefetch(t[{1},{0}])\n8 16 y[{0},{1}] += t[{1},{0}]",
    ),
    (
        "clear_prefetch y x[{0}+1,{1}]",
        X2,
        "8 16 y[{0},{1}] = x[{0},{1}] !prefetch(x[{0}+1,{1}])",
        "8 16 y[{0},{1}] = x[{0},{1}]",
    ),
    (
        "recompute y t r",  # a reduction: its start and its nest, for the row that is read
        X2 + "\nt f32 [8] heap",
        "8 t[{0}] = x[{0},0]\n16 8 t[{1}] max= x[{1},{0}]\n8 16 y[{0},{1}] = x[{0},{1}] - t[-{0}+7]",
        "8 t[{0}] = x[{0},0]\n16 8 t[{1}] max= x[{1},{0}]\n8 16 r[{0},{1}] = x[-{0}+7,0]\n"
        "| | 16 r[{0},{1}] max= x[-{0}+7,{2}]\n| | y[{0},{1}] = x[{0},{1}] - r[{0},{1}]",
    ),
    (
        "contract y t",
        XTY,
        "8 t[{0}] = x[{0}]*3\n8 y[{0}] = x[-{0}+7] + t[-{0}+7]",
        "8 y[{0}] = fma(x[-{0}+7],3,x[-{0}+7])",
    ),
    (
        "expand y t",
        XTY.replace("t f32 [8] heap", "u f32 [8] heap"),
        "8 y[{0}] = fma(x[{0}],3,x[-{0}+7])",
        "8 t[{0}] = x[{0}]*3\n| y[{0}] = t[{0}] + x[-{0}+7]",
    ),
    (  # a sum of sums, each of an iteration
        "merge_reduction t",
        "x f32 [8, 16] heap\ny f32 [8] heap\nt f32 [8:N, 4:N] stack",
        "8 y[{0}] = 0\n| 4 t[{0},{1}] = 0\n| | 4 t[{0},{1}] += x[{0},{1}*4+{2}]\n| | y[{0}] += t[{0},{1}]",
        "8 y[{0}] = 0\n| 4 4 y[{0}] += x[{0},{1}*4+{2}]",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("move", "buffers", "before", "after"), GOLDEN, ids=[g[0] for g in GOLDEN])
def test_before_and_after(move, buffers, before, after):
    program = parse(kernel(before, buffers))
    result = apply(program, move, WIDE)
    assert body_of(result) == after.splitlines()
    assert parse(result.text) == result
    back = inverse(program, move, WIDE)
    if back is not None:
        assert apply(result, back, WIDE) == program


STORAGE = [
    # move, buffers, body, the buffer's line after
    ("reuse_dims t 0", XTY, "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "t f32 [8:N] heap"),
    ("materialise_dims t 0", XTY.replace("t f32 [8]", "t f32 [8:N]"), "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "t f32 [8] heap"),
    ("set_location t stack", XTY, "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "t f32 [8] stack"),
    ("set_location t register", XTY.replace("t f32 [8]", "t f32 [8:N]"), "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "t f32 [8:N] register"),
    ("share_buffer t y", XTY, "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", "y f32 [8] heap -> t, y"),
    ("unshare_buffer t", "x f32 [8] heap\ny f32 [8] heap -> t, y", "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", "t f32 [8] heap"),
    ("split_dim t 0 4", XTY, "2 4 t[{0}*4+{1}] = x[{0}*4+{1}]\n2 4 y[{0}*4+{1}] = t[{0}*4+{1}]", "t f32 [2, 4] heap"),
    ("merge_dims t 0", XTY.replace("t f32 [8]", "t f32 [2, 4]"), "2 4 t[{0},{1}] = x[{0}*4+{1}]\n2 4 y[{0}*4+{1}] = t[{0},{1}]", "t f32 [8] heap"),
    ("split_dim x 0 4", XTY, "2 4 t[{0}*4+{1}] = x[{0}*4+{1}]\n2 4 y[{0}*4+{1}] = t[{0}*4+{1}]", "x f32 [2, 4] heap"),
]  # fmt: skip


@pytest.mark.parametrize(("move", "buffers", "body", "line"), STORAGE, ids=[s[0] for s in STORAGE])
def test_storage_moves(move, buffers, body, line):
    program = parse(kernel(body, buffers))
    result = apply(program, move, WIDE)
    assert line in buffers_of(result)
    assert parse(result.text) == result
    back = inverse(program, move, WIDE)
    assert back is not None
    assert apply(result, back, WIDE) == program


def test_reciprocal_needs_the_policy_algebraic():
    text = kernel(
        "8 16 y[{0},{1}] = x[{0},{1}] / w[{0}]", "x f32 [8, 16] heap\nw f32 [8] heap\ny f32 [8, 16] heap"
    )
    program = parse(text)
    assert why(program, "use_reciprocal y@1 r", WIDE).refusal.code == "policy"
    result = apply(program, "use_reciprocal y@1 r", WIDE, "algebraic")
    assert body_of(result) == ["8 r[{0}] = 1 / w[{0}]", "| 16 y[{0},{1}] = x[{0},{1}]*r[{0}]"]
    assert apply(result, "divide_again r", WIDE, "algebraic") == program


@pytest.mark.parametrize("dtype", ["u8", "i32", "f64"])
def test_a_quotient_of_whole_numbers_is_a_product_to_the_oracle_too(dtype):
    program = parse(kernel("4 4 y[{0},{1}] = x[{0}] / x[{0}]", f"x {dtype} [4] heap\ny f64 [4, 4] heap"))
    result = apply(program, "use_reciprocal y@1 r", WIDE, "algebraic")
    terms = oracle.Terms()
    wanted, computed = (oracle.run(each, "algebraic", terms).outputs for each in (program, result))
    assert list(computed.values()) == list(wanted.values())


@pytest.mark.parametrize(
    ("kernel", "shape", "move", "back"),
    [
        ("layernorm", "4x8", "expand_moment v#1@1 o", "sum_squares_again o d"),
        ("groupnorm", "2x2x2x2x4", "expand_moment v#1@2 o", "sum_squares_again o d"),
        ("batchnorm", "2x3x4x4", "expand_moment q#1@3 o", "sum_squares_again o d"),
        ("softmax", "4x8", "online_rescale s#1@1 o", "sum_exp_again o e"),
        ("log_softmax", "4x8", "online_rescale s#1@1 o", "sum_exp_again o e"),
        ("attention", "2x4x4x8", "online_rescale z#1@2 o", "sum_exp_again o e"),
    ],
)
def test_a_one_pass_rewrite_of_a_kernel_is_taken_back(kernel, shape, move, back):
    found = kernels.get(kernel)
    program = found.program(found.shape(shape))
    result = apply(program, move, WIDE, "algebraic")
    assert str(inverse(program, move, WIDE, "algebraic")) == back
    listed = [str(m) for m in legal_moves(result, WIDE, "algebraic") if m.name == back.split()[0]]
    assert listed == [back]
    again = apply(result, back, WIDE, "algebraic")
    assert again == program and again.text == program.text
    assert str(inverse(result, back, WIDE, "algebraic")) == move
    inputs = random_inputs(program)
    for name, value in interpret(program, inputs).items():
        np.testing.assert_allclose(interpret(result, inputs)[name], value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("guard", "legal"), [("{1} >= 1", True), ("{1} == 3", True), ("{1} < 3", False)])
def test_a_value_set_again_and_again_is_that_of_the_last_iteration_where_this_one_runs(guard, legal):
    buffers = "x f32 [4, 4] heap\ny f32 [4] heap\nt f32 [4] heap"
    body = f"4 t[{{0}}] = 0\n4 4 t[{{0}}] = x[{{0}},{{1}}] if {guard}\n4 y[{{0}}] = t[{{0}}]"
    program = parse(kernel(body, buffers))
    assert why(program, "recompute y t r", WIDE).legal == legal
    if legal:
        assert "r[{0}] = x[{0},3]" in apply(program, "recompute y t r", WIDE).text


def test_the_online_sum_of_a_masked_row():
    """Minus infinity, what a mask leaves of an element, may stand anywhere in a row, but not in all of it."""
    found = kernels.get("softmax")
    program = found.program(found.shape("3x4"))
    result = apply(program, "online_rescale s#1@1 o", WIDE, "algebraic")
    masked = -math.inf
    x = np.array([[masked, 0, 1, 2], [masked, masked, 3, masked], [1, 2, masked, masked]], np.float32)
    expected = interpret(program, {"x": x})["y"]
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(interpret(result, {"x": x})["y"], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("sizes", "kept", "loops", "read"),
    [
        ("65, 8", "8 64 d[{1}+1,{0}] = x[{0},{1}] - w[{0}]", "64", "d[{1}+1,{0}]"),  # transposed, shifted
        (
            "8, 64",
            "8 4 16 d[{0},{1}*16+{2}] = x[{0},{1}*16+{2}] - w[{0}]",
            "4 16",
            "d[{0},{1}*16+{2}]",
        ),  # split
        (
            "8, 64",
            "512 d[0,0] = 0\n64 8 d[{1},{0}] = x[{1},{0}] - w[{1}]",
            "64",
            "d[{0},{1}]",
        ),  # the second write
    ],
)
def test_the_sum_reads_differences_however_they_are_kept(sizes, kept, loops, read):
    buffers = "x f32 [8, 64] heap\nw f32 [8] heap\ny f32 [8] heap"
    body = f"{kept}\n8 y[{{0}}] = 0\n| {loops} y[{{0}}] += {read}*{read}"
    program = parse(kernel(body, f"{buffers}\nd f32 [{sizes}] heap"))
    result = apply(program, "expand_moment y#1@1 o", WIDE, "algebraic")
    assert apply(result, "sum_squares_again o d", WIDE, "algebraic") == program


def test_of_differences_kept_twice_the_inverse_reads_those_it_is_told():
    program = parse(
        kernel(
            """8 64 d[{0},{1}] = x[{0}*64+{1}] - w[{0}]
512 e[{0}] = 0
8 64 e[{0}*64+{1}] = x[{0}*64+{1}] - w[{0}]
8 y[{0}] = 0
| 64 y[{0}] += d[{0},{1}]*d[{0},{1}]
8 y[{0}] += e[{0}]""",
            "x f32 [512] heap\nw f32 [8] heap\ny f32 [8] heap\nd f32 [8, 64] heap\ne f32 [512] heap",
        )
    )
    result = apply(program, "expand_moment y#1@1 o", WIDE, "algebraic")
    assert apply(result, "sum_squares_again o d", WIDE, "algebraic") == program
    other = apply(result, "sum_squares_again o e", WIDE, "algebraic")
    assert "| 64 y[{0}] += e[{0}*64+{1}]*e[{0}*64+{1}]" in body_of(other)


def test_a_sum_of_sums_in_two_loops_is_merged_once_they_are_joined():
    apart = parse(
        kernel(
            "8 y[{0}] = 0\n| 4 t[{0},{1}] = 0\n| | 4 t[{0},{1}] += x[{0},{1}*4+{2}]\n| 4 y[{0}] += t[{0},{1}]",
            "x f32 [8, 16] heap\ny f32 [8] heap\nt f32 [8, 4] heap",
        )
    )
    assert why(apart, "merge_reduction t").refusal.enablers == ("join_scopes t@1",)
    merged = apply(apply(apart, "join_scopes t@1"), "merge_reduction t")
    assert body_of(merged) == ["8 y[{0}] = 0", "| 4 4 y[{0}] += x[{0},{1}*4+{2}]"]


def test_strict_keeps_the_order_of_a_sum():
    program = parse(kernel("8 y[{0}] = 0\n8 64 y[{0}] += x[{0},{1}]", SUM))
    assert why(program, "split_reduction y#1@1 p", WIDE, "strict").refusal.code == "policy"
    assert why(program, "split_reduction y#1@1 p", WIDE, "reassoc").legal
    largest = parse(kernel("8 y[{0}] = -inf\n8 64 y[{0}] max= x[{0},{1}]", SUM))
    assert why(largest, "split_reduction y#1@1 p", WIDE, "strict").legal


def test_partials_carry_the_guard():
    body = "6 y[{0}] = 0\n4 8 y[{1}] += x[{0},{1}] if {1} < 6"
    program = parse(kernel(body, "x f32 [4, 8] heap\ny f32 [6] heap"))
    assert body_of(apply(program, "split_reduction y#1@0 p", WIDE)) == [
        "6 y[{0}] = 0",
        "4 8 p[{0},{1}] = 0 if {1} < 6",
        "4 8 p[{0},{1}] += x[{0},{1}] if {1} < 6",
        "4 8 y[{1}] += p[{0},{1}] if {1} < 6",
    ]


def test_a_move_has_a_text_form_and_bad_ones_say_how_it_is_written():
    assert str(parse_move("reuse_dims  t 0   1")) == "reuse_dims t 0 1"
    for text, told in [
        ("", "An empty line is no move."),
        ("splt_scope y@0 4", "Did you mean split_scope?"),
        ("split_scope y 4", "It is written: split_scope SCOPE FACTOR"),
        ("split_scope y@0 four", "It is written"),
        ("unroll y@0 4", "is too much"),
        ("reuse_dims t", "It is written"),
        ("set_location t ../../etc", "It is written"),
    ]:
        with pytest.raises(MoveSyntax, match=told.replace("?", r"\?")):
            parse_move(text)


def test_every_listed_move_is_legal_and_every_transformation_is_documented():
    program = parse(kernel("8 y[{0}] = 0\n8 64 y[{0}] += x[{0},{1}]", SUM))
    for move in legal_moves(program, WIDE):
        result = apply(program, move, WIDE)
        assert parse(result.text) == result
        assert parse_move(str(move)) == move
    for transformation in REGISTRY.values():
        told = type(transformation).__doc__ or ""
        assert "Before::" in told and "After ``" in told and "Legal iff" in told, transformation.name


def types_of(transformation):
    """What ``Transformation[...]`` says that its arguments are."""
    bases = (base for each in type(transformation).__mro__ for base in vars(each).get("__orig_bases__", ()))
    return next(t for base in bases for t in get_args(base) if not isinstance(t, TypeVar))


@pytest.mark.parametrize("transformation", REGISTRY.values(), ids=lambda each: each.name)
def test_a_moves_arguments_have_the_types_of_their_kinds(transformation):
    kinds = [parameter.kind for parameter in transformation.parameters]
    single = kinds.index("numbers") if "numbers" in kinds else len(kinds)  # numbers take all that is left
    types = [KINDS[kind] for kind in kinds[:single]]
    rest = [KINDS[kind] for kind in kinds[single:]]
    expected = tuple[*types, *tuple[reduce(or_, rest), ...]] if rest else tuple[*types]
    assert types_of(transformation) == expected


def test_a_move_that_the_target_lacks_is_neither_listed_nor_played():
    program = parse(kernel("64 y[{0}] = x[{0}]", XY))
    target = replace(WIDE, without=frozenset(REGISTRY) - {"unroll"})
    assert {m.name for m in legal_moves(program, target)} == {"unroll"}
    with pytest.raises(IllegalMove, match=r"has no move split_scope"):
        apply(program, "split_scope y@0 16", target)


def test_a_move_answers_to_what_others_call_it():
    assert str(parse_move("fusion t@0")) == "join_scopes t@0"
    assert str(parse_move("fuse t@0")) == "merge_scopes t@0"
    with pytest.raises(MoveSyntax, match="no move 'fuse'"):
        parse_move("fuse t@0", ["fuse"])  # where a recipe has that name
    names = [name for move in REGISTRY.values() for name in move.also]
    assert len(names) == len(set(names)) and not set(names) & set(REGISTRY)


@dataclass(frozen=True)
class Shallow(Target):
    """Counts no more than four loops inside each other, whatever marks they have."""

    def __hash__(self) -> int:
        return hash(self.name)

    def fault(self, program: Program, policy: str) -> Fault | None:
        if program.summary.height <= 5:  # an operation is one of them
            return None
        return Fault("shallow", "", "", "Four loops at most.", ())


def test_what_a_target_s_own_condition_refuses_is_not_listed() -> None:
    here = context(
        parse(
            "kernel k\nin x\nout y\nx f32 [4, 4, 4, 4] heap\ny f32 [4, 4, 4, 4] heap\n"
            "4 4 4 4 y[{0},{1},{2},{3}] = x[{0},{1},{2},{3}]\n"
        ),
        Shallow(**{field.name: getattr(target_named("cpu"), field.name) for field in fields(Target)}),
    )
    candidates = list(all_candidates(here))
    listed = [move for move in candidates if is_legal(here, move)]
    assert listed == [move for move in candidates if isinstance(outcome(here, move), Program)]
    assert len(listed) > 0 and not any(move.name == "split_scope" for move in listed)
