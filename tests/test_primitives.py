# ruff: noqa: E501  (a primitive and what NumPy computes stand side by side)
"""Primitives make program text: each is what NumPy computes, interpreted, and some as generated code."""

import math
import re
from functools import partial

import numpy as np
import pytest

from dojo_core import parse
from dojo_core.faults import program_fault
from dojo_core.primitives import (
    Builder,
    BuildError,
    arg_reduce,
    broadcast,
    concatenate,
    condition,
    constant,
    contract,
    convert,
    convolve,
    convolve_transposed,
    elementwise,
    filled,
    flip,
    formula,
    gather,
    gather_along,
    identifier,
    iterator,
    max_pool_with_places,
    mean,
    pad,
    pool,
    recurrence,
    reduce,
    reshape,
    scan,
    scatter,
    select,
    slice_,
    split,
    squeeze,
    stack,
    tile,
    top,
    transpose,
    unsqueeze,
    window,
)
from dojo_core.program.interpret import interpret
from tests.compiled import run_program

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32,
          "i8": np.int8, "u8": np.uint8, "u16": np.uint16, "u64": np.uint64, "bool": np.bool_}  # fmt: skip


def values(shape, dtype, seed=0):
    """Random values of a dtype: small whole numbers, or normal ones."""
    rng = np.random.default_rng(seed)
    if dtype in ("f64", "f32", "f16"):
        return rng.normal(size=shape).astype(DTYPES[dtype])
    return rng.integers(0 if dtype[0] in "ub" else -5, 2 if dtype == "bool" else 6, shape).astype(
        DTYPES[dtype]
    )


def built(build, *shapes, compiled=False):
    """What a function of a Builder and inputs of these shapes (and dtypes) gives, the inputs, and the text."""
    b = Builder("k")
    forms = [(s[:-1], s[-1]) if s and isinstance(s[-1], str) else (s, "f32") for s in shapes]
    arrays = [b.input(f"x{k}", dtype, shape) for k, (shape, dtype) in enumerate(forms)]
    given = [values(shape, dtype, k) for k, (shape, dtype) in enumerate(forms)]
    made = build(b, *arrays)
    for k, array in enumerate(made if isinstance(made, (list, tuple)) else [made]):
        b.output(f"y{k}", array)
    program = b.program()
    text = b.text()
    assert parse(text).text == text and program_fault(program) is None
    inputs = {f"x{k}": x for k, x in enumerate(given) if f"x{k}" in program.inputs} | b.constants
    run = (run_program if compiled else interpret)(program, inputs)
    return list(run.values()), given, text


def agrees(build, expected, *shapes, compiled=False):
    """The primitive's result is NumPy's, of its shape; gives the text."""
    results, given, text = built(build, *shapes, compiled=compiled)
    wanted = expected(*(x.astype(float) if x.dtype.kind == "f" else x for x in given))
    wanted = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    assert len(results) == len(wanted)
    half = any(isinstance(s[-1], str) and s[-1] == "f16" for s in shapes if s)
    for result, each in zip(results, wanted, strict=True):
        assert result.shape == np.shape(each)
        rtol = 2e-3 if half else 1e-4 if compiled else 1e-9
        np.testing.assert_allclose(result.astype(float), np.asarray(each, float), rtol=rtol, atol=rtol)
    return text


def body(text):
    """The lines of the operations."""
    return [line for line in text.splitlines() if re.match(r"[\d|]|\w+\[.*\] \S*= ", line)]


# ---------------------------------------------------------------------------- element by element


@pytest.mark.parametrize(
    "shapes", [[(3, 4), (4,)], [(3, 1), (1, 4)], [(2, 1, 3), ()], [(1, 1), (1,)]], ids=str
)
def test_functions_broadcast_as_numpy_does(shapes):
    agrees(lambda b, x, y: elementwise(b, "-", x, y), np.subtract, *shapes)


def test_a_formula_is_one_nest_and_what_depends_on_fewer_axes_a_smaller_one():
    text = agrees(
        lambda b, x, s: formula(b, "x * exp(s) + max(x, 0)", x=x, s=s),
        lambda x, s: x * np.exp(s) + np.maximum(x, 0),
        (3, 4),
        (4,),
    )
    assert body(text) == [
        "4 t1[{0}] = exp(x1[{0}])",
        "3 4 t2[{0},{1}] = x0[{0},{1}]*t1[{1}]",
        "| | t3[{0},{1}] = max(x0[{0},{1}],0)",
        "| | y0[{0},{1}] = t2[{0},{1}] + t3[{0},{1}]",
    ]


def test_sixteen_bits_are_computed_in_f32_and_rounded_once():
    text = agrees(lambda b, x: formula(b, "x * sigmoid(x)", x=x), lambda x: x / (1 + np.exp(-x)), (5, "f16"))
    assert body(text) == [
        "5 t1[{0}] = sigmoid(x0[{0}])",
        "| t2[{0}] = x0[{0}]*t1[{0}]",
        "| y0[{0}] = f16(t2[{0}])",
    ]
    assert "t1 f32 [5]" in text and "t2 f32 [5]" in text
    assert body(built(lambda b, x, y: elementwise(b, "+", x, y), (5, "f16"), (5, "f16"))[2]) == [
        "5 y0[{0}] = x0[{0}] + x1[{0}]"
    ]
    text = agrees(lambda b, x: reduce(b, "+", x), np.sum, (300, "f16"))
    assert body(text) == ["t1[] = 0", "300 t1[] += x0[{0}]", "y0[] = f16(t1[])"]


@pytest.mark.parametrize(
    ("function", "formula_of"),
    [
        ("relu", lambda x: np.maximum(x, 0)),
        ("silu", lambda x: x / (1 + np.exp(-x))),
        ("softplus", lambda x: np.log1p(np.exp(x))),
        ("softsign", lambda x: x / (1 + abs(x))),
        ("isnan", np.isnan),
    ],
)
def test_functions_that_are_put_together(function, formula_of):
    agrees(lambda b, x: elementwise(b, function, x), formula_of, (7,))


def test_logic_bits_and_remainders():
    agrees(
        lambda b, x, y: formula(b, "(x % 3) * 4 + ((x & 6) ^ ~y) + (x << 2)", x=x, y=y),
        lambda x, y: (x % 3) * 4 + ((x & 6) ^ ~y) + (x << 2),
        (50, "i32"),
        (1, "i32"),
    )
    agrees(lambda b, x: formula(b, "(x > 0) | (x < -1)", x=x), lambda x: (x > 0) | (x < -1), (9,))


def test_conversions_selections_comparisons_and_numbers():
    agrees(lambda b, x: convert(b, convert(b, x, "i32"), "f32"), np.trunc, (9,))
    agrees(lambda b, x: convert(b, x, "bool"), lambda x: x != 0, (9, "i32"))
    agrees(
        lambda b, x, y: select(b, elementwise(b, "<", x, y), x, 7),
        lambda x, y: np.where(x < y, x, 7),
        (4,),
        (4,),
    )
    agrees(lambda b, x: formula(b, "(x > 0) * x - 2**x", x=x), lambda x: (x > 0) * x - 2**x, (4,))
    agrees(
        lambda b: [filled(3, "f32", (2, 3)), convert(b, filled(2.7, "f32", (2,)), "u8")],
        lambda: [np.full((2, 3), 3), np.full(2, 2)],
    )
    agrees(lambda b, x: elementwise(b, "+", x, iterator(b, (3, 4), 1)), lambda x: x + np.arange(4), (3, 1))


# ---------------------------------------------------------------------------- views


VIEWS = {
    "transpose": (lambda b, x: transpose(b, x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    "reverse": (lambda b, x: transpose(b, x), lambda x: x.T),
    "slice": (lambda b, x: slice_(b, x, 1, 1, None, 2), lambda x: x[:, 1::2]),
    "backwards": (lambda b, x: slice_(b, x, -1, 3, 0, -2), lambda x: x[..., 3:0:-2]),
    "flip": (lambda b, x: flip(b, x, 0), lambda x: x[::-1]),
    "merge": (lambda b, x: reshape(b, x, (2, 20)), lambda x: x.reshape(2, 20)),
    "other cut": (lambda b, x: reshape(b, x, (20, 2)), lambda x: x.reshape(20, 2)),
    "transposed and merged": (lambda b, x: reshape(b, transpose(b, x, (1, 0, 2)), (5, -1)), lambda x: x.transpose(1, 0, 2).reshape(5, 8)),
    "no common factors": (lambda b, x: reshape(b, slice_(b, x, 1, 0, 3), (3, 8)), lambda x: x[:, :3].reshape(3, 8)),
    "ones": (lambda b, x: squeeze(b, unsqueeze(b, x, (0, -1)), (0,)), lambda x: x[..., None]),
    "broadcast": (lambda b, x: broadcast(b, slice_(b, x, 0, 0, 1), (3, 1, 5, 4)), lambda x: np.broadcast_to(x[:1], (3, 1, 5, 4))),
    "window": (lambda b, x: window(b, x, 1, 2, 1, 3), lambda x: np.stack([x[:, :2], x[:, 3:]], -1)),
    "tile": (lambda b, x: tile(b, x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3))),
    "part of a tile": (lambda b, x: slice_(b, tile(b, x, (2, 2, 1)), 1, 3, 8), lambda x: np.tile(x, (2, 2, 1))[:, 3:8]),
    "parts": (lambda b, x: split(b, x, (1, 4), 1), lambda x: np.split(x, [1], 1)),
    "taken": (lambda b, x: gather(b, x, np.array([[4, -4, 1]]), 1), lambda x: x.take([[4, 1, 1]], 1)),
    "taken twice": (lambda b, x: gather(b, gather(b, x, [3, 0, 0, 1], 2), np.array([2, 3, 1]), 2), lambda x: x[..., [0, 1, 0]]),
    "taken evenly": (lambda b, x: gather(b, x, np.array([4, 2, 0]), 1), lambda x: x[:, ::-2]),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_numpys_and_cost_the_copy_to_the_output(name):
    view, expected = VIEWS[name]
    text = agrees(view, expected, (2, 5, 4))
    copies = {"no common factors": 2, "part of a tile": 2, "parts": 2, "taken twice": 2}.get(name, 1)
    assert len(body(text)) == copies


def test_a_view_stands_in_what_is_computed_from_it():
    """Heads are split, merged and projected without a copy."""

    def attended(b, x, w):
        heads = transpose(
            b, reshape(b, elementwise(b, "exp", x), (3, 2, 4)), (1, 0, 2)
        )  # head, place, feature
        weighted = elementwise(b, "*", heads, heads)
        merged = reshape(b, transpose(b, weighted, (1, 0, 2)), (3, 8))
        return contract(b, "mk,kn->mn", merged, w)

    text = agrees(attended, lambda x, w: np.exp(x) ** 2 @ w, (3, 8), (8, 5))
    assert body(text) == [
        "3 8 t1[{0},{1}] = exp(x0[{0},{1}])",
        "2 3 4 t2[{0},{1},{2}] = t1[{1},{0}*4+{2}]*t1[{1},{0}*4+{2}]",
        "3 5 y0[{0},{1}] = 0",
        "3 5 2 4 y0[{0},{1}] += t2[{2},{0},{3}]*x1[{2}*4+{3},{1}]",
    ]


def test_results_are_written_where_the_output_has_them():
    def merged(b, x):
        return reshape(b, transpose(b, elementwise(b, "neg", x), (1, 0)), (1, 12))

    assert body(agrees(merged, lambda x: -x.T.reshape(1, 12), (3, 4))) == [
        "3 4 y0[0,{0}+{1}*3] = -x0[{0},{1}]"
    ]


def test_axes_of_different_factors_meet():
    def added(b, x, y):
        return elementwise(b, "+", reshape(b, x, (12,)), reshape(b, y, (12,)))

    text = agrees(added, lambda x, y: x.ravel() + y.ravel(), (2, 6), (4, 3))
    assert body(text) == ["2 2 3 y0[{0}*6+{1}*3+{2}] = x0[{0},{1}*3+{2}] + x1[{0}*2+{1},{2}]"]
    agrees(added, lambda x, y: x.ravel() + y.ravel(), (3, 4), (4, 3))


def test_arrays_without_elements_leave_no_text():
    def nothing(b, x, y):
        empty = elementwise(b, "*", slice_(b, x, 0, 2, 2), 2.0)
        assert empty.shape == (0, 3) and empty.empty
        assert gather(b, x, np.zeros(0, int), 0).shape == (0, 3)
        return concatenate(b, [empty, x, convolved(b, y)], 0)

    def convolved(b, y):
        return reduce(b, "+", broadcast(b, y, (1, 0, 3)), 1)

    assert len(body(agrees(nothing, lambda x, y: np.concatenate([x, np.zeros((1, 3))]), (2, 3), (0, 3)))) == 2


def test_iterators_are_added_without_a_pass():
    def placed(b, x):
        places = elementwise(b, "-", elementwise(b, "*", iterator(b, (3, 4), 1), 2), iterator(b, (3, 4), 0))
        return elementwise(b, "*", x, places)

    row, column = np.ogrid[:3, :4]
    product = lambda b, x: [elementwise(b, "*", iterator(b, (3, 4), 0), iterator(b, (3, 4), 1)), placed(b, x)]  # noqa: E731
    agrees(product, lambda x: [row * column, x * (2 * column - row)], (3, 4))
    text = agrees(placed, lambda x: x * (2 * column - row), (3, 4))
    assert body(text) == ["3 4 y0[{0},{1}] = x0[{0},{1}]*(-{0}+{1}*2)"]


# ---------------------------------------------------------------------------- reductions and contractions


@pytest.mark.parametrize("accumulation", ["+", "*", "max", "min"])
@pytest.mark.parametrize("axes", [None, (1,), (0, -1), ()], ids=str)
def test_reductions(accumulation, axes):
    numpys = {"+": np.sum, "*": np.prod, "max": np.max, "min": np.min}[accumulation]
    for keep in (False, True):
        agrees(
            lambda b, x, keep=keep: reduce(b, accumulation, x, axes, keep),
            lambda x, keep=keep: numpys(x, axis=axes, keepdims=keep),
            (3, 1, 4),
        )


def test_means_and_reductions_over_nothing():
    agrees(lambda b, x: mean(b, x, (0, 2)), lambda x: x.mean((0, 2)), (3, 2, 4))
    agrees(lambda b, x: mean(b, x, 0, True), lambda x: x.mean(0, keepdims=True), (5, 2, "f16"))
    agrees(lambda b, x: reduce(b, "+", broadcast(b, x, (4, 3)), 0), lambda x: 4 * x, (3,))
    agrees(lambda b, x: reduce(b, "*", x, 0), lambda x: np.ones(2), (0, 2))
    for accumulation, numpys in (("max", np.any), ("+", np.any), ("min", np.all), ("*", np.all)):
        agrees(lambda b, x, a=accumulation: reduce(b, a, x, 1), lambda x, n=numpys: n(x, 1), (6, 2, "bool"))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_the_place_of_the_largest(axis, last):
    def expected(x):
        turned = np.flip(x, axis) if last else x
        place = turned.argmax(axis)
        return [x.max(axis), x.shape[axis] - 1 - place if last else place]

    agrees(lambda b, x: arg_reduce(b, "max", x, axis, last=last), expected, (4, 6, "i8"))
    agrees(
        lambda b, x: arg_reduce(b, "min", x, axis, True)[1], lambda x: x.argmin(axis, keepdims=True), (2, 3)
    )


def test_an_element_and_its_place_are_one_pass():
    text = built(lambda b, x: arg_reduce(b, "max", x, 1, last=True), (3, 5))[2]
    assert body(text) == [
        "3 t1[{0}] = -inf",
        "| 5 t1[{0}] max= maxkey(x0[{0},{1}],-{1}+4)",
        "3 y0[{0}] = keyvalue(t1[{0}])",
        "3 t3[{0}] = keyindex(t1[{0}])",
        "3 y1[{0}] = 4 - t3[{0}]",
    ]
    for dtype in ("f32", "f64"):  # a NaN is the largest, and the first of them is found
        agrees(
            lambda b, x: arg_reduce(
                b, "max", formula(b, "select(i == 2, inf - inf, x)", x=x, i=iterator(b, (5,), 0)), 0
            )[1],
            lambda x: 2,
            (5, dtype),
        )
    for dtype in ("f64", "i32", "u64"):
        agrees(lambda b, x: arg_reduce(b, "max", x, 0), lambda x: [x.max(0), x.argmax(0)], (5, 3, dtype))


@pytest.mark.parametrize(
    ("accumulation", "shape", "axis", "count"),
    [("max", (3, 7), 1, 4), ("min", (5, 3, 2, "i64"), 0, 5), ("max", (2, 9, "u8"), -1, 1)],
)
def test_the_largest_and_the_least_few_and_their_places(accumulation, shape, axis, count):
    def expected(x):
        order = np.argsort(x * (-1.0 if accumulation == "max" else 1.0), axis, kind="stable")
        places = np.take(order, range(count), axis)
        return [np.take_along_axis(x, places, axis), places]

    agrees(lambda b, x: top(b, accumulation, x, axis, count), expected, shape)


def test_of_a_few_there_are_no_more_than_all():
    b = Builder("k")
    with pytest.raises(BuildError, match="There is no first 4 of 3"):
        top(b, "max", b.input("x", "f32", (3,)), 0, 4)


@pytest.mark.parametrize(
    ("form", "shapes"),
    [
        ("mk,kn->mn", [(3, 4), (4, 5)]),
        ("bmk,bnk->bmn", [(2, 3, 4), (1, 5, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ij->", [(2, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        (",i->i", [(), (3,)]),
    ],
)
def test_contractions(form, shapes):
    agrees(lambda b, *xs: contract(b, form, *xs), lambda *xs: np.einsum(form, *xs), *shapes)


def test_a_contraction_begins_with_its_bias_and_takes_words():
    text = agrees(
        lambda b, x, w, c: contract(b, "row k, k col -> row col", x, w, start=c), lambda x, w, c: x @ w + c, (3, 4), (4, 5), (5,)
    )  # fmt: skip
    assert body(text) == ["3 5 y0[{0},{1}] = x2[{1}]", "3 5 4 y0[{0},{1}] += x0[{0},{2}]*x1[{2},{1}]"]
    text = agrees(lambda b, x, w: contract(b, "mk,kn->mn", x, w), np.matmul, (2, 3, "f16"), (3, 2, "f16"))
    assert "t1 f32 [2, 2] heap" in text and "y0[{0},{1}] = f16(t1[{0},{1}])" in text
    agrees(
        lambda b, x, w: contract(b, "k,k->", x, w, dtype="i32"),
        lambda x, w: x.astype(int) @ w,
        (9, "u8"),
        (9, "i8"),
    )


def test_conditions_on_places_are_guards():
    def causal(b, x, w):
        row, column = iterator(b, (4, 5), 0), iterator(b, (4, 5), 1)
        where = condition(b, column, "<=", row) & condition(b, column, ">", 0)
        product = contract(b, "mn,nk->mk", x, w, where=condition(b, *below(b)))
        return [reduce(b, "+", x, 1, where=where), reduce(b, "max", x, 0, where=where), product]

    def below(b):
        return iterator(b, (4, 3, 5), 2), "<", iterator(b, (4, 3, 5), 0)

    def expected(x, w):
        held = np.tri(4, 5, dtype=bool) & (np.arange(5) > 0)
        return [
            (x * held).sum(1),
            np.where(held, x, -math.inf).max(0),
            np.tril(x, -1) @ w,
        ]

    text = agrees(causal, expected, (4, 5), (5, 3))
    assert "| 5 y0[{0}] += x0[{0},{1}] if -{0}+{1} < 1 and -{1} < 0" in body(text)
    assert condition(Builder("k"), 1.5, "<", 2) is None


# ---------------------------------------------------------------------------- copies


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [((1, 2), (0, 3)), ((0, 0), (7, 9)), ((0, 1), (0, 0))], ids=str)
def test_paddings(mode, pads):
    agrees(lambda b, x: pad(b, x, pads, mode), lambda x: np.pad(x, pads, mode), (3, 4))
    agrees(lambda b, x: pad(b, x, pads, mode), lambda x: np.pad(x, pads, mode), (1, 1, "i8"))


def test_padding_takes_away_and_fills():
    agrees(lambda b, x: pad(b, x, [(-1, 2), (0, -2)], value=-math.inf), lambda x: np.pad(x[1:, :2], [(0, 2), (0, 0)], constant_values=-math.inf), (3, 4))  # fmt: skip


def test_what_is_put_into_a_larger_array_is_computed_there():
    def joined(b, x):
        e = elementwise(b, "exp", x)
        return pad(b, concatenate(b, [e, elementwise(b, "neg", e), x], 0), [(1, 0), (0, 0)])

    text = agrees(
        joined, lambda x: np.pad(np.concatenate([np.exp(x), -np.exp(x), x]), [(1, 0), (0, 0)]), (2, 3)
    )
    assert body(text) == [
        "7 3 y0[{0},{1}] = 0",
        "2 3 y0[{0}+1,{1}] = exp(x0[{0},{1}])",
        "2 3 y0[{0}+3,{1}] = -y0[{0}+1,{1}]",
        "2 3 y0[{0}+5,{1}] = x0[{0},{1}]",
    ]


def test_what_is_put_into_two_arrays_is_copied_into_the_second():
    def twice(b, x):
        e = elementwise(b, "exp", x)
        return [concatenate(b, [e, x], 0), concatenate(b, [x, e], 0), e]

    text = agrees(
        twice, lambda x: [np.concatenate([np.exp(x), x]), np.concatenate([x, np.exp(x)]), np.exp(x)], (2,)
    )
    assert body(text)[0] == "2 y2[{0}] = exp(x0[{0}])" and len(body(text)) == 5


def test_what_is_padded_is_computed_in_the_middle():
    def convolved(b, x, w):
        return convolve(b, elementwise(b, "exp", x), w, pads=[(1, 2)])

    text = agrees(
        convolved, lambda x, w: numpy_conv(np.exp(x), w, (1,), (1,), 1, ((1, 2),)), (2, 3, 5), (4, 3, 2)
    )
    assert body(text)[:2] == [
        "2 3 8 padded[{0},{1},{2}] = 0",
        "2 3 5 padded[{0},{1},{2}+1] = exp(x0[{0},{1},{2}])",
    ]


def test_a_scan_from_the_end_is_written_from_the_end():
    text = agrees(lambda b, x: scan(b, "+", x, 0, reverse=True), lambda x: x[::-1].cumsum()[::-1], (5,))
    assert body(text) == ["y0[4] = x0[4]", "4 y0[-{0}+3] = y0[-{0}+4] + x0[-{0}+3]"]


def test_part_of_an_array_and_another_dtype_are_copies():
    parts = {"first": (0, 2, 1), "last": (1, 3, 1), "backwards": (1, None, -1)}
    for start, stop, step in parts.values():
        text = agrees(
            lambda b, x, s=start, e=stop, t=step: slice_(b, elementwise(b, "exp", x), 0, s, e, t),
            lambda x, s=start, e=stop, t=step: np.exp(x)[s:e:t],
            (3,),
        )
        assert len(body(text)) == 2
    text = agrees(lambda b, x: formula(b, "e", dtype="f64", e=elementwise(b, "exp", x)), np.exp, (3,))
    assert body(text) == ["3 t1[{0}] = exp(x0[{0}])", "3 y0[{0}] = t1[{0}]"]


def test_what_a_later_pass_overwrites_stays_where_it_was():
    """The sum begins with e, which is read again afterwards."""

    def begun(b, x, w):
        e = elementwise(b, "exp", x)
        return [contract(b, "ij,jk->ik", w, x, start=e), elementwise(b, "neg", e)]

    agrees(begun, lambda x, w: [np.exp(x) + w @ x, -np.exp(x)], (2, 3), (2, 2))


def test_concatenations():
    agrees(
        lambda b, x, y: concatenate(b, [x, y, x], -1),
        lambda x, y: np.concatenate([x, y, x], -1),
        (2, 3),
        (2, 1),
    )
    agrees(
        lambda b, x, y: stack(b, [x, transpose(b, y)], 1), lambda x, y: np.stack([x, y.T], 1), (2, 3), (3, 2)
    )


# ---------------------------------------------------------------------------- convolutions


def numpy_conv(x, w, strides, dilations, groups, pads):
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    reach = [(t - 1) * d + 1 for t, d in zip(w.shape[2:], dilations, strict=True)]
    rows = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, 2 + rank)))
    rows = rows[
        (
            slice(None),
            slice(None),
            *(slice(None, None, s) for s in strides),
            *(slice(None, None, d) for d in dilations),
        )
    ]
    parts = [
        np.tensordot(r, k, ([1, *range(2 + rank, 2 + 2 * rank)], range(1, 2 + rank)))
        for r, k in zip(np.split(rows, groups, 1), np.split(w, groups, 0), strict=True)
    ]
    return np.moveaxis(np.concatenate(parts, -1), -1, 1)


CONVOLUTIONS = {
    "1d": ((2, 3, 9), (4, 3, 3), (1,), (1,), 1, ((0, 0),)),
    "strided": ((1, 2, 9, 8), (3, 2, 3, 2), (2, 3), (1, 1), 1, ((1, 0), (2, 1))),
    "dilated": ((1, 2, 9, 8), (3, 2, 3, 2), (1, 2), (2, 3), 1, ((1, 2), (0, 1))),
    "grouped": ((2, 4, 5, 5), (6, 2, 3, 3), (1, 1), (1, 1), 2, ((1, 1), (1, 1))),
    "depthwise": ((1, 3, 5, 6), (3, 1, 3, 3), (2, 1), (1, 1), 3, ((1, 1), (0, 0))),
    "1x1": ((1, 3, 4, 4), (2, 3, 1, 1), (1, 1), (1, 1), 1, ((0, 0), (0, 0))),
    "3d": ((1, 2, 4, 5, 4), (2, 2, 2, 3, 2), (1, 2, 1), (1, 1, 2), 1, ((0, 1), (1, 1), (0, 0))),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name):
    x, w, strides, dilations, groups, pads = CONVOLUTIONS[name]
    agrees(
        lambda b, x, w, c: convolve(b, x, w, c, strides, dilations, groups, pads),
        lambda x, w, c: (
            numpy_conv(x, w, strides, dilations, groups, pads) + c.reshape(1, -1, *[1] * len(strides))
        ),
        x,
        w,
        (w[0],),
    )


def test_a_convolution_is_a_padded_copy_and_two_nests():
    text = built(lambda b, x, w, c: convolve(b, x, w, c, pads=[(1, 1)]), (2, 3, 8), (4, 3, 3), (4,))[2]
    assert body(text) == [
        "2 3 10 padded[{0},{1},{2}] = 0",
        "2 3 8 padded[{0},{1},{2}+1] = x0[{0},{1},{2}]",
        "2 4 8 y0[{0},{1},{2}] = x2[{1}]",
        "2 4 8 3 3 y0[{0},{1},{2}] += padded[{0},{3},{2}+{4}]*x1[{1},{3},{4}]",
    ]


def numpy_transposed(x, w, strides, dilations, groups, pads, extra):
    n, c, *sizes = x.shape
    full = [
        (s - 1) * st + (t - 1) * d + 1 + e
        for s, st, t, d, e in zip(sizes, strides, w.shape[2:], dilations, extra, strict=True)
    ]
    m = w.shape[1]
    y = np.zeros((n, m * groups, *full))
    for place in np.ndindex(*sizes):
        for tap in np.ndindex(*w.shape[2:]):
            at = tuple(p * s + t * d for p, s, t, d in zip(place, strides, tap, dilations, strict=True))
            for g in range(groups):
                part = slice(g * c // groups, (g + 1) * c // groups)
                y[(slice(None), slice(g * m, g * m + m), *at)] += (
                    x[(slice(None), part, *place)] @ w[(part, slice(None), *tap)]
                )
    return y[(slice(None), slice(None), *(slice(a, f - z) for (a, z), f in zip(pads, full, strict=True)))]


TRANSPOSED = {
    "1d": ((1, 2, 4), (2, 3, 3), (1,), (1,), 1, ((0, 0),), (0,)),
    "strided": ((2, 2, 3, 4), (2, 3, 3, 2), (2, 3), (1, 1), 1, ((0, 0), (0, 0)), (0, 0)),
    "cut": ((1, 2, 4, 4), (2, 1, 4, 3), (2, 2), (1, 1), 1, ((1, 1), (0, 2)), (1, 0)),
    "dilated": ((1, 1, 4, 3), (1, 2, 3, 2), (2, 3), (2, 2), 1, ((1, 0), (0, 0)), (0, 2)),
    "many strides": ((1, 2, 3, 2), (2, 1, 3, 4), (4, 3), (1, 2), 1, ((1, 0), (0, 1)), (1, 2)),
    "dilated against the stride": ((1, 1, 5), (1, 1, 3), (4,), (6,), 1, ((3, 2),), (3,)),
    "grouped": ((1, 4, 3), (4, 2, 2), (2,), (1,), 2, ((0, 1),), (0,)),
    "3d": ((1, 1, 2, 3, 2), (1, 2, 2, 2, 3), (1, 2, 2), (1, 1, 1), 1, ((0, 0), (1, 0), (1, 1)), (0, 1, 0)),
    "mostly padding": ((1, 4, 2, 3), (4, 8, 3, 4), (1, 1), (1, 1), 2, ((0, 0), (1, 0)), (0, 0)),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolutions(name):
    x, w, *attributes = TRANSPOSED[name]
    strides, dilations, groups, pads, extra = attributes
    agrees(
        lambda b, x, w, c: convolve_transposed(b, x, w, c, strides, dilations, groups, pads, extra),
        lambda x, w, c: numpy_transposed(x, w, *attributes) + c.reshape(1, -1, *[1] * len(strides)),
        x,
        w,
        (w[1] * groups,),
    )


@pytest.mark.parametrize(
    ("size", "taps", "channels", "lanes", "padded"),
    [
        (6, 4, 8, False, False),
        (7, 4, 8, False, True),
        (3, 4, 7, False, True),
        (99, 4, 8, True, False),
        (16, 5, 8, True, False),
        (17, 5, 8, True, True),
        (3, 4, 7, True, True),
    ],
)
def test_a_transposed_convolution_leaves_its_padding_out(size, taps, channels, lanes, padded):
    """Where vectors can go along the channels: of a small input, half as many results again as inputs; for lanes
    of any, of many taps from a quarter more on."""
    made = partial(convolve_transposed, lanes=lanes)
    text = built(made, (1, 2, size), (2, channels, taps))[2]
    assert ("padded[" in text) == padded
    (products,) = [line for line in body(text) if "*" in line and "+=" in line]
    assert products == (
        f"{channels} {size + taps - 1} 2 {taps} y0[0,{{0}},{{1}}]"
        f" += padded[{{2}},{{1}}+{{3}}]*x1[{{2}},{{0}},-{{3}}+{taps - 1}]"
        if padded
        else f"{channels} {size} {taps} 2 y0[0,{{0}},{{1}}+{{2}}] += x0[0,{{3}},{{1}}]*x1[{{3}},{{0}},{{2}}]"
    )


# ---------------------------------------------------------------------------- poolings


def windows(x, taps, strides, dilations, pads, ceil, fill):
    """All windows of NumPy's x, with ``fill`` where they reach beyond it; and which places are x, padding, none."""
    rank = x.ndim - 2
    reach = [(t - 1) * d + 1 for t, d in zip(taps, dilations, strict=True)]
    counts, ends = [], []
    for k in range(rank):
        free = x.shape[2 + k] + sum(pads[k]) - reach[k]
        count = -(-free // strides[k]) + 1 if ceil else free // strides[k] + 1
        if ceil and (count - 1) * strides[k] >= x.shape[2 + k] + pads[k][0]:
            count -= 1
        counts.append(count)
        ends.append(max((count - 1) * strides[k] + reach[k] - x.shape[2 + k] - pads[k][0], pads[k][1]))
    around = [(0, 0), (0, 0), *((p, e) for (p, _), e in zip(pads, ends, strict=True))]
    rows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, around, constant_values=fill), reach, axis=tuple(range(2, 2 + rank))
    )
    cut = tuple(slice(0, (c - 1) * s + 1, s) for c, s in zip(counts, strides, strict=True))
    return rows[(slice(None), slice(None), *cut, *(slice(None, None, d) for d in dilations))]


POOLINGS = {
    "1d": ((2, 3, 7), (2,), (1,), (1,), ((0, 0),), False),
    "strided": ((1, 2, 7, 8), (3, 2), (2, 3), (1, 1), ((1, 0), (1, 1)), False),
    "ceil": ((1, 2, 7, 6), (3, 3), (2, 2), (1, 1), ((0, 0), (1, 1)), True),
    "ceil left out": ((1, 1, 5), (1,), (3,), (1,), ((0, 1),), True),
    "dilated": ((1, 1, 9, 6), (2, 3), (2, 1), (3, 2), ((1, 1), (0, 0)), True),
    "dilated, many": ((1, 1, 40), (3,), (1,), (2,), ((2, 2),), False),
    "3d": ((1, 2, 4, 4, 5), (2, 2, 2), (2, 1, 2), (1, 1, 1), ((0, 0), (1, 0), (0, 1)), False),
}


@pytest.mark.parametrize("name", POOLINGS)
def test_poolings(name):
    shape, taps, strides, dilations, pads, ceil = POOLINGS[name]
    rank = len(taps)
    over = tuple(range(-rank, 0))

    def seen(x, fill):
        return windows(x, taps, strides, dilations, pads, ceil, fill)

    def averaged(x, count_pads):
        inside = np.pad(np.ones(x.shape), [(0, 0), (0, 0), *pads], constant_values=float(count_pads))
        counted = windows(inside, taps, strides, dilations, [(0, 0)] * rank, False, 0) if not ceil else None
        if counted is None:
            extra = seen(x, 0).shape[2 : 2 + rank]
            reach = [(t - 1) * d + 1 for t, d in zip(taps, dilations, strict=True)]
            more = [
                max((c - 1) * s + r - n, 0)
                for c, s, r, n in zip(extra, strides, reach, inside.shape[2:], strict=True)
            ]
            grown = np.pad(inside, [(0, 0), (0, 0), *((0, m) for m in more)])
            counted = windows(grown, taps, strides, dilations, [(0, 0)] * rank, False, 0)
            counted = counted[(slice(None), slice(None), *(slice(c) for c in extra))]
        return seen(x, 0).sum(over) / counted.sum(over)

    options = {"strides": strides, "dilations": dilations, "pads": pads, "ceil": ceil}
    agrees(lambda b, x: pool(b, "max", x, taps, **options), lambda x: seen(x, -math.inf).max(over), shape)
    for count_pads in (False, True):
        agrees(
            lambda b, x, c=count_pads: pool(b, "average", x, taps, count_pads=c, **options),
            lambda x, c=count_pads: averaged(x, c),
            shape,
        )


def test_what_an_average_is_divided_by_is_counted_in_a_line_of_places():
    text = built(lambda b, x: pool(b, "average", x, (3,), (2,), pads=((1, 1),)), (2, 4, 9))[2]
    assert body(text)[-4:] == [
        "5 t3[{0}] = min({0}*2+2,9)",
        "| t4[{0}] = max({0}*2-1,0)",
        "| t5[{0}] = t3[{0}] - t4[{0}]",
        "2 4 5 y0[{0},{1},{2}] = t2[{0},{1},{2}] / t5[{2}]",
    ]


def test_norms_over_windows_and_the_places_of_the_largest():
    taps, options = (2, 3), {"strides": (2, 1), "pads": ((0, 1), (1, 1))}
    seen = lambda x, fill: windows(x, taps, (2, 1), (1, 1), ((0, 1), (1, 1)), False, fill)  # noqa: E731
    for p in (1, 2, 3):
        agrees(
            lambda b, x, p=p: pool(b, "lp", x, taps, p=p, **options),
            lambda x, p=p: (np.abs(seen(x, 0)) ** p).sum((-2, -1)) ** (1 / p),
            (1, 2, 3, 4),
        )

    def expected(x):
        numbers = np.arange(12).reshape(1, 1, 3, 4)
        rows, at = seen(x.astype(float), -math.inf), seen(numbers, 99)
        largest = rows.max((-2, -1), keepdims=True)
        return [largest[..., 0, 0], np.where(rows == largest, at, 99).min((-2, -1))]

    agrees(lambda b, x: max_pool_with_places(b, x, taps, **options), expected, (1, 2, 3, 4, "u8"))


# ---------------------------------------------------------------------------- gathers, scans, constants


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_indices_that_are_data(axis):
    agrees(lambda b, x, i: gather(b, x, i, axis), lambda x, i: x.take(i, axis), (6, 7, 8), (2, 3, "i8"))
    for dtype in ("i64", "u16", "u64"):
        agrees(lambda b, x, i: gather(b, x, i, axis), lambda x, i: x.take(i, axis), (6, 6, "bool"), (dtype,))


def test_rows_are_read_where_they_are_used():
    """An embedding and what is made of it: the rows are not copied; indices of a domain need no clamp."""
    b = Builder("k")
    rows, w = b.input("rows", "f32", (50, 8)), b.input("w", "f32", (8, 3))
    i = b.input("i", "i64", (4,), (0, 49))
    b.output("y", contract(b, "mk,kn->mn", gather(b, rows, i, 0), w))
    b.output("z", gather(b, gather(b, rows, i, 0), i, 1))
    assert body(b.text()) == [
        "4 3 y[{0},{1}] = 0",
        "4 3 8 y[{0},{1}] += rows[i[{0}],{2}]*w[{2},{1}]",
        "4 t2[{0}] = min(i[{0}],7)",
        "4 4 z[{0},{1}] = rows[i[{0}],t2[{1}]]",
    ]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_indices_of_each_place(axis):
    shape = [3, 4, 2]
    shape[axis] = 5
    text = agrees(
        lambda b, x, i: gather_along(b, x, formula(b, "i & 1", i=i), axis),
        lambda x, i: np.take_along_axis(x, i & 1, axis),
        (3, 4, 2),
        (*shape, "i32"),
    )
    assert body(text)[-1].count("t6[{0},{1},{2}]") == 1
    agrees(
        lambda b, x, i: gather_along(b, x, i, 1),
        lambda x, i: np.take_along_axis(x, i, 1),
        (2, 6),
        (1, 3, "u8"),
    )


def put(x, places, updates, accumulate=""):
    """NumPy's, where a later update comes later."""
    result = x.copy()
    if accumulate:
        {"+": np.add, "*": np.multiply, "max": np.maximum}[accumulate].at(result, places, updates)
    else:
        for at in np.ndindex(updates.shape):
            result[tuple(np.broadcast_to(p, updates.shape)[at] for p in places)] = updates[at]
    return result


@pytest.mark.parametrize("accumulate", ["", "+", "*", "max"])
def test_updates_at_places_that_are_data(accumulate):
    """Whole rows; each element along an axis, of fewer places; at places in two axes; of one element."""
    columns = np.arange(3)
    agrees(
        lambda b, x, i, u: scatter(b, x, u, [unsqueeze(b, i, [1]), 1], accumulate),
        lambda x, i, u: put(x, (i[:, None], columns), u, accumulate),
        (6, 3), (4, "i8"), (4, 3), compiled=accumulate == "",
    )  # fmt: skip
    agrees(
        lambda b, x, i, u: scatter(b, x, u, [0, i, 2], accumulate),
        lambda x, i, u: put(x, (np.arange(2)[:, None, None], i, np.arange(2)), u, accumulate),
        (3, 6, 2), (2, 4, 2, "u8"), (2, 4, 2),
    )  # fmt: skip
    agrees(
        lambda b, x, i, k, u: scatter(b, x, u, [i, k], accumulate),
        lambda x, i, k, u: put(x, (i, k), u, accumulate),
        (6, 6), (5, "i64"), (5, "u8"), (5,),
    )  # fmt: skip
    agrees(
        lambda b, x, i: scatter(b, x, filled(2, "f32", ()), [squeeze(b, i, [0])], accumulate),
        lambda x, i: put(x, (i[0],), np.float64(2), accumulate),
        (6,), (1, "u8"),
    )  # fmt: skip


def test_what_is_scattered_is_one_pass_over_a_copy():
    b = Builder("k")
    x, u, i = b.input("x", "f32", (5, 8)), b.input("u", "f32", (3, 8)), b.input("i", "i64", (3,), (0, 4))
    made = scatter(b, x, formula(b, "2*u", u=u), [unsqueeze(b, i, [1]), 1])
    b.output("y", concatenate(b, [made, x], 0))
    assert body(b.text()) == [
        "3 8 t1[{0},{1}] = 2*u[{0},{1}]",
        "5 8 y[{0},{1}] = x[{0},{1}]",
        "3 8 y[i[{0}],{1}] = t1[{0},{1}]",
        "5 8 y[{0}+5,{1}] = x[{0},{1}]",
    ]


def test_places_may_be_known_or_of_an_axis_of_one():
    agrees(
        lambda b, x, i: scatter(b, x, x, [flip(b, iterator(b, (3, 1), 0), 0), unsqueeze(b, i, [0])]),
        lambda x, i: x[::-1],
        (3, 1), (1, "u8"),
    )  # fmt: skip
    agrees(lambda b, x: scatter(b, x, slice_(b, x, 0, 5, 5), [0, 1]), lambda x: x, (3, 4))


def test_elements_of_what_is_stored_nowhere():
    def chosen(b, i):
        return [gather(b, iterator(b, (3, 8), 1), i, 1), gather(b, filled(2, "f32", (3, 8)), i, 0)]

    agrees(chosen, lambda i: [np.broadcast_to(i, (3, 5)), np.full((5, 8), 2)], (5, "u8"))


def test_indices_may_be_parts_of_others_and_outputs():
    def twice(b, x, i):
        j = concatenate(b, [formula(b, "i & 3", i=i), filled(1, "i32", (2,))], 0)
        return [gather(b, x, formula(b, "i & 3", i=i), 0), gather(b, x, j, 0), j]

    def expected(x, i):
        j = np.concatenate([i & 3, [1, 1]])
        return [x[i & 3], x[j], j]

    agrees(twice, expected, (4, 3), (5, "i32"))
    agrees(lambda b, x, i: gather(b, x, gather(b, i, i, 0), 0), lambda x, i: x[i[i]], (6,), (6, "u8"))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("accumulation", "ufunc"), [("+", np.add), ("max", np.maximum)])
def test_scans(accumulation, ufunc, exclusive, reverse):
    def expected(x, axis):
        x = np.flip(x, axis) if reverse else x
        run = ufunc.accumulate(x, axis)
        if exclusive:
            first = np.full_like(np.take(x, [0], axis), 0 if ufunc is np.add else -math.inf)
            run = np.concatenate([first, np.delete(run, -1, axis)], axis)
        return np.flip(run, axis) if reverse else run

    for shape, axis in (((4, 3), 0), ((2, 3, 5), -1), ((1,), 0)):
        agrees(lambda b, x, a=axis: scan(b, accumulation, x, a, exclusive, reverse), lambda x, a=axis: expected(x, a), shape)  # fmt: skip


@pytest.mark.parametrize(
    ("known", "lines"),
    [
        (np.float32(0.1), 1),
        (np.full((3, 4), 7), 1),
        (np.arange(12).reshape(3, 4) * 2 - 5, 1),
        (np.array([2**63, 5, 0], np.uint64), 3),
        (np.array([[1.5], [-0.25], [np.nan]]), 3),
        (np.array([3, 3, 1, 2] * 9), 4),
        (np.random.default_rng(1).normal(size=(5, 6)), 1),
    ],
    ids=["number", "equal", "even", "large", "cells", "table", "bound"],
)
def test_constants(known, lines):
    known = np.asarray(known)
    results, _, text = built(lambda b: elementwise(b, "", constant(b, known)))
    np.testing.assert_array_equal(results[0].astype(known.dtype), known)
    assert len(body(text)) == lines
    assert ("in constant\n" in text) == (known.size == 30)


def test_a_few_run_as_generated_code():
    agrees(lambda b, x, w, c: convolve(b, x, w, c, (2, 1), (1, 2), 2, ((1, 0), (2, 2))), lambda x, w, c: numpy_conv(x, w, (2, 1), (1, 2), 2, ((1, 0), (2, 2))) + c[:, None, None], (2, 4, 7, 8), (6, 2, 3, 3), (6,), compiled=True)  # fmt: skip
    agrees(lambda b, x: scan(b, "+", x, 1, True, True), lambda x: np.flip(np.cumsum(np.flip(x, 1), 1), 1) - x, (3, 9), compiled=True)  # fmt: skip
    agrees(lambda b, x: pad(b, reshape(b, x, (2, 6)), [(1, 1), (8, 8)], "reflect"), lambda x: np.pad(x.reshape(2, 6), [(1, 1), (8, 8)], "reflect"), (3, 4), compiled=True)  # fmt: skip
    agrees(lambda b, x, i: gather(b, formula(b, "x*sigmoid(x)", x=x), i, 1), lambda x, i: (x / (1 + np.exp(-x)))[:, i], (3, 8), (5, "i32"), compiled=True)  # fmt: skip


# ---------------------------------------------------------------------------- names, mistakes


def test_names_are_made_of_any_text_and_told_apart():
    b = Builder("k")
    x = b.input("x", "f32", (3,))
    y = b.named(elementwise(b, "exp", x), "/layer/conv:0")
    z = b.named(elementwise(b, "neg", y), "layer_conv_0")
    b.output("out_", elementwise(b, "*", y, z))
    assert "layer_conv_0[{0}] = exp(x[{0}])" in b.text() and "layer_conv_0_[{0}] = -layer_conv_0" in b.text()
    assert [identifier(n) for n in ("in", "7up", "a.b", "ß", "inf")] == ["in_", "a7up", "a_b", "a", "inf_"]


def test_what_no_output_needs_is_left_out():
    b = Builder("k")
    x = b.input("x", "f32", (3,))
    elementwise(b, "exp", x)
    b.output("y", elementwise(b, "neg", x))
    assert len(body(b.text())) == 1


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (lambda b, x: elementwise(b, "+", x, filled(1, "f32", (3,))), "[3, 4], [3] are not broadcast together"),
        (lambda b, x: elementwise(b, "gamma", x), "There is no function 'gamma'."),
        (lambda b, x: elementwise(b, "exp", x, x), "exp takes 1 operands, not 2."),
        (lambda b, x: elementwise(b, "+", x, convert(b, x, "i64")), "f32 and i64 do not mix by themselves"),
        (lambda b, x: formula(b, "x + z", x=x), "The formula names 'z', which it is not given."),
        (lambda b, x: formula(b, "x if x else 0", x=x), "is no formula"),
        (lambda b, x: formula(b, "x +", x=x), "'x +' is no formula"),
        (lambda b, x: convert(b, x, "f8"), "There is no dtype 'f8'."),
        (lambda b, x: reshape(b, x, (5, -1)), "12 elements have no shape [5, -1]."),
        (lambda b, x: transpose(b, x, (0, 0)), "[0, 0] is no order of the 2 axes"),
        (lambda b, x: squeeze(b, x, (0,)), "Axis 0 has the size 3"),
        (lambda b, x: slice_(b, x, 2), "There is no axis 2 in an array of 2"),
        (lambda b, x: slice_(b, x, 0, step=0), "a step other than 0"),
        (lambda b, x: window(b, x, 1, 3, 1, 2), "does not fit an axis of 4"),
        (lambda b, x: reduce(b, "-", x), "There is no accumulation '-'"),
        (lambda b, x: reduce(b, "+", x, (0, -2)), "name one twice"),
        (lambda b, x: contract(b, "mk->kk", x), "each once"),
        (lambda b, x: contract(b, "mk,km->mm", x), "names 2 arrays and is given 1"),
        (lambda b, x: contract(b, "mk,mk->m", x, transpose(b, x)), "axis m is 3 long, and 4"),
        (lambda b, x: concatenate(b, [x, transpose(b, x)], 0), "do not go together along axis 0"),
        (lambda b, x: split(b, x, (1, 1), 0), "do not make an axis of 3"),
        (lambda b, x: pad(b, x, [(0, 0)]), "1 paddings are given for 2 axes"),
        (lambda b, x: pad(b, x, [(-2, -2), (0, 0)]), "takes more than there is of an axis of 3"),
        (lambda b, x: pad(b, x, [(0, 0)] * 2, "mirror"), "There is no padding 'mirror'"),
        (lambda b, x: convolve(b, reshape(b, x, (1, 3, 4)), reshape(b, x, (1, 4, 3))), "3 channels in 1 groups"),
        (lambda b, x: pool(b, "max", reshape(b, x, (1, 3, 4)), (5,)), "A window of 5 does not fit"),
        (lambda b, x: gather(b, x, np.array([4]), 1), "The index 4 is beyond an axis of 4"),
        (lambda b, x: scatter(b, x, x, [0]), "1 places are given for 2 axes"),
        (lambda b, x: scatter(b, x, transpose(b, x), [0, 1]), "Updates of the shape [4, 3] go beyond [3, 4]"),
        (lambda b, x: scatter(b, x, x, [0, x]), "Indices are integers, not f32"),
        (lambda b, x: recurrence(b, "GRU", x, x, x, order="nzr"), "The gates of GRU are z, r, n, not 'nzr'."),
        (lambda b, x: recurrence(b, "RNN", reshape(b, x, (1, 3, 4)), x, x, order="n"), "[T, N, 1*H], [1*H, H] and [N, H]"),
        (lambda b, x: b.output("x", x), "an input and an output of the name x"),
        (lambda b, x: b.output("y", slice_(b, x, 0, 1, 1)), "no elements: leave it out"),
        (lambda b, x: b.input("in", "f32", ()), "'in' cannot be the name of an input"),
        (lambda b, x: b.input("x", "f32", ()), "There is an input x already"),
        (lambda b, x: b.text(), "has no output"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_sentence(mistake, sentence):
    b = Builder("k")
    with pytest.raises(BuildError) as raised:
        mistake(b, b.input("x", "f32", (3, 4)))
    assert sentence in str(raised.value)


def test_beyond_the_limits_of_a_text_is_a_sentence():
    b = Builder("k")
    x = b.input("x", "f32", (2**40,))
    b.output("y", elementwise(b, "exp", x))
    with pytest.raises(BuildError, match="k makes no program"):
        b.text()
