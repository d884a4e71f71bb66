"""Bilinear algorithms: exactly what they replace, in a program like any other, as exact as they say."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from agents.passes.bilinear import find_convolution, use_fewer_products
from dojo_core import IllegalMove, apply, kernels, legal_moves, parse, why
from dojo_core.graph.hoisting import hoisted
from dojo_core.measure.worst import input_sets
from dojo_core.moves.algorithms import (
    MOST_GROWTH,
    AlgorithmError,
    algorithm,
    difference,
    names,
    read_algorithm,
)
from dojo_core.moves.examples import WIDE
from dojo_core.moves.legality import context
from dojo_core.program.interpret import interpret
from dojo_core.recipes import Sketch
from tests.compiled import run_program

CONVOLUTION = """kernel c
in x, w
out y
x f32 [2, 9, 10, 10] heap
w f32 [8, 9, 3, 3] heap
y f32 [2, 8, 8, 8] heap
2 8 8 8 y[{0},{1},{2},{3}] = 0
2 2 2 9 8 4 4 3 3 y[{0},{4},{1}*4+{5},{2}*4+{6}] += x[{0},{3},{1}*4+{5}+{7},{2}*4+{6}+{8}]*w[{4},{3},{7},{8}]
"""
IN_PAIRS = CONVOLUTION.replace("2 2 2 9 8 4 4", "2 4 4 9 8 2 2").replace("*4+", "*2+")
PRODUCT = """kernel m
in a, b
out c
a f32 [8, 8] heap
b f32 [8, 8] heap
c f32 [8, 8] heap
8 8 c[{0},{1}] = 0
4 4 4 2 2 2 c[{0}*2+{3},{1}*2+{4}] += a[{0}*2+{3},{2}*2+{5}]*b[{2}*2+{5},{1}*2+{4}]
"""


def windows(outputs, taps):
    """The tensor of a filter over so many outputs."""
    return {((o,), (o + t,), (t,)): Fraction(1) for o in range(outputs) for t in range(taps)}


def drawn(program, dtype=np.float32):
    rng = np.random.default_rng(3)
    shapes = {n: [d.size for d in program.buffer_of[n].dims] for n in program.inputs}
    return {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("name", "outputs"), [("winograd_2_3", 2), ("winograd_4_3", 4), ("winograd_4_3_usual", 4)]
)
def test_winograds_algorithms_are_filters_exactly(name, outputs):
    assert difference(algorithm(name), 1, windows(outputs, 3)) == ""
    assert algorithm(name).products == outputs + 2


def test_strassens_algorithm_is_the_product_of_matrices_exactly():
    wanted = {((i, j), (i, k), (k, j)): Fraction(1) for i, j, k in product(range(2), repeat=3)}
    assert difference(algorithm("strassen"), 1, wanted) == ""
    assert algorithm("strassen").products == 7


def test_an_algorithm_of_ones_own_is_compared_in_fractions(tmp_path, monkeypatch):
    good = "left 4\n1 0 -1 0\n0 1 1 0\n0 -1 1 0\n0 -1 0 1\nright 3\n1 0 0\n1/2 1/2 1/2\n0.5 -0.5 0.5\n0 0 1\n"
    good += "result 2\n1 0\n1 1\n1 -1\n0 1\n"
    (tmp_path / "mine.txt").write_text(good)
    # Off by a billionth: no tolerance would tell.
    (tmp_path / "off.txt").write_text(good.replace("0.5 -0.5", "0.500000001 -0.5"))
    monkeypatch.setenv("DOJO_ALGORITHMS", str(tmp_path))
    assert {"mine", "off", "strassen"} <= set(names())
    filter_of_two = """kernel f
        in x, w
        out y
        x f32 [4] heap
        w f32 [3] heap
        y f32 [2] heap
        2 y[{0}] = 0
        2 3 y[{0}] += x[{0}+{1}]*w[{1}]"""
    program = parse(filter_of_two)
    assert "bilinear y#1@0 mine u" in map(str, legal_moves(program, WIDE, "algebraic"))
    refused = why(program, "bilinear y#1@0 off u", WIDE, "algebraic")
    assert not refused.legal and refused.refusal.code == "not-the-same"
    assert (
        "in result [0] the product of left [1] and right [0] counts -1/1000000000 times, and should 0 times"
        in refused.sentence
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 2", "Line 1 of mine: begin with left"),
        ("left 0", "Line 1 of mine: write left and its sizes"),
        ("left 2\n1", "Line 2 of mine: a row has 2 numbers here, this 1"),
        ("left 2\n1 x", "Line 2 of mine: 'x' is no number"),
        ("left 2\n1 1/0", "'1/0' is no number"),
        ("left 2\n1 1\nleft 2", "Line 3 of mine: there is a matrix left already"),
        ("left 9 9", "a matrix has at most 64 cells in a row"),
        ("left 1\n1\nright 1\n1", "mine has no matrix result"),
        ("left 1\n1\nright 1\n1\nresult 1\n1\n1", "all as many: left 1, right 1, result 2"),
        ("left 1\n1\nright 1\n1\nresult 1 1\n1", "have as many sizes each"),
    ],
)
def test_what_is_wrong_with_a_text_is_told(text, told):
    with pytest.raises(AlgorithmError, match=told.replace("[", "\\[")):
        read_algorithm("mine", text)


@pytest.mark.parametrize(
    ("text", "move"),
    [
        (CONVOLUTION, "bilinear y#1@5 winograd_4_3 u"),
        (IN_PAIRS, "bilinear y#1@5 winograd_2_3 u"),
        (PRODUCT, "bilinear c#1@3 strassen u"),
    ],
)
def test_a_program_keeps_its_meaning(text, move):
    program = parse(text)
    after = apply(program, move, WIDE, "algebraic")
    inputs = drawn(program)
    (name,) = program.outputs
    wanted = interpret(program, inputs)[name]
    assert np.allclose(interpret(after, inputs)[name], wanted, rtol=0, atol=1e-12 * abs(wanted).max())
    assert parse(after.text) == after
    with pytest.raises(IllegalMove):
        apply(program, move, WIDE, "reassoc")


def nested(chosen, x, w):
    """A tile's results in f32, channels (the first axis) added up between."""
    left, right, result = (
        np.array([[float(c) for c in row] for row in matrix.rows], np.float32)
        for matrix in (chosen.left, chosen.right, chosen.result)
    )
    return result.T @ (left @ x @ left.T * (right @ w @ right.T)).sum(axis=0, dtype=np.float32) @ result


def test_an_algorithms_growth_is_how_much_its_roundings_are_larger():
    """Measured against float64: beside the sum itself in f32, over tiles of 64 channels."""
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal((300, 64, n, n)).astype(np.float32) for n in (6, 3))

    def direct(x, w):
        views = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
        return np.einsum("cijrs,crs->ij", views, w, dtype=x.dtype)

    exact = [direct(a.astype(np.float64), b.astype(np.float64)) for a, b in zip(x, w, strict=True)]

    def error(run):
        return np.sqrt(np.mean([np.square(run(a, b) - e) for a, b, e in zip(x, w, exact, strict=True)]))

    for name in ("winograd_4_3", "winograd_4_3_usual"):
        chosen = algorithm(name)
        worse = error(lambda a, b, c=chosen: nested(c, a, b)) / error(direct)
        assert chosen.growth(2) / 10 < worse < chosen.growth(2) <= MOST_GROWTH, (name, worse)
    assert algorithm("winograd_4_3").growth(2) < algorithm("winograd_4_3_usual").growth(2) / 3


def test_sums_of_products_are_judged_beside_their_largest_operands():
    first, *others = input_sets(parse(CONVOLUTION), "algebraic")
    assert first.tame and first.normwise and all(each.normwise for each in others) and others
    assert not input_sets(parse(CONVOLUTION), "reassoc")[0].normwise


def test_the_pass_plays_a_whole_convolution():
    program = parse(kernels.get("conv2d").text((64, 32, 32, 6, 6, 3, 1, 1)))
    sketch = Sketch(context(program, policy="algebraic"), most=500)
    (operation,) = (leaf.op.provenance for leaf in program.leaves if leaf.op.accumulate)
    assert find_convolution(sketch, operation).x == "z"
    use_fewer_products(sketch, operation)
    assert [move for move in sketch.moves if move.name == "bilinear"]
    inputs = drawn(program)
    wanted = interpret(program, inputs)["y"]
    assert np.abs(run_program(sketch.program, inputs)["y"] - wanted).max() < 1e-5 * np.abs(wanted).max()
    strict = Sketch(context(program), most=500)
    use_fewer_products(strict, operation)
    assert not strict.moves


def test_the_sums_of_weights_are_made_panel_by_panel_where_each_run_makes_them():
    """So that what is made of a weight does not fall into few sets of a cache; constants lie as products read
    them."""
    program = parse(kernels.get("conv2d").text((64, 32, 32, 6, 6, 3, 1, 1)))
    (operation,) = (leaf.op.provenance for leaf in program.leaves if leaf.op.accumulate)
    shapes = {}
    for constants in ((), ("w",)):
        sketch = Sketch(context(program, policy="algebraic", constants=frozenset(constants)), most=500)
        use_fewer_products(sketch, operation)
        shapes[constants] = [dim.size for dim in sketch.program.buffer_of["ub"].dims]
    assert shapes[()][0] * shapes[()][-1] == 32, "panels come first"
    assert shapes[("w",)][0] == shapes[("w",)][1] == shapes[()][1], "products of the algorithm do"


LAYER = """kernel conv_relu
in x1, x2, x3
out y1
x1 f32 [32, 6, 6] heap
x2 f32 [32] heap
x3 f32 [32, 32, 3, 3] heap
y1 f32 [32, 6, 6] heap
t1 f32 [32, 8, 8] heap
t2 f32 [32, 6, 6] heap
t3 f32 [32, 6, 6] heap
32 8 8 t1[{0},{1},{2}] = 0
32 6 6 t1[{0},{1}+1,{2}+1] = x1[{0},{1},{2}]
32 6 6 t2[{0},{1},{2}] = x2[{0}]
32 6 6 32 3 3 t2[{0},{1},{2}] += t1[{3},{1}+{4},{2}+{5}]*x3[{0},{3},{4},{5}]
32 6 6 t3[{0},{1},{2}] = t2[{0},{1},{2}] + x1[{0},{1},{2}]
32 6 6 y1[{0},{1},{2}] = max(t3[{0},{1},{2}],0)
"""


def test_in_a_model_the_sums_of_weights_are_made_once_and_pay_for_one_small_image():
    """As a model's kernels have a layer: one image without a dimension for it, a bias, what follows."""
    program = parse(LAYER)
    (operation,) = (leaf.op.provenance for leaf in program.leaves if leaf.op.accumulate)
    alone = Sketch(context(program, policy="algebraic"), most=500)
    use_fewer_products(alone, operation)
    assert not alone.moves
    sketch = Sketch(context(program, policy="algebraic", constants=frozenset({"x2", "x3"})), most=500)
    use_fewer_products(sketch, operation)
    made = sketch.program
    inputs = drawn(program)
    wanted = interpret(program, inputs)["y1"]
    assert np.abs(run_program(made, inputs)["y1"] - wanted).max() < 1e-5 * np.abs(wanted).max()
    # What follows is computed while a block's results are near.
    stores = [leaf for leaf in made.leaves if leaf.op.target.array in ("t3", "y1")]
    products = [leaf for leaf in made.leaves if leaf.op.target.array == "um"]
    assert stores and len({leaf.path[0] for leaf in (*stores, *products)}) == 1
    parts = hoisted(made, ["x2", "x3"])
    assert parts is not None and parts.once.outputs == ("ub",) and "x3" not in parts.each_run.inputs


def test_a_convolution_whose_result_is_read_elsewhere_keeps_its_products():
    """Nobody could read it where only a block of it is kept."""
    program = parse(LAYER.replace("t2[{0},{1},{2}] + x1[{0},{1},{2}]", "t2[{0},{2},{1}] + x1[{0},{1},{2}]"))
    sketch = Sketch(context(program, policy="algebraic", constants=frozenset({"x3"})), most=500)
    use_fewer_products(sketch, next(leaf.op.provenance for leaf in program.leaves if leaf.op.accumulate))
    assert not sketch.moves
