"""Kernels of one's own: the documented examples run, and each mistake is a sentence."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from dojo_core import KernelError, kernel, legal_moves, parse, why
from dojo_core.game import Game
from dojo_core.measure.pool import make_pool
from dojo_core.own import (
    concatenate,
    cos,
    einsum,
    exp,
    exp2,
    fmod,
    isinf,
    isnan,
    iterator,
    maximum,
    rsqrt,
    sign,
    sin,
    size,
    where,
)
from dojo_core.targets.cpu.codegen import generate
from tests.compiled import run_program

DOC = Path(__file__).parent.parent / "docs" / "own_kernel.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", DOC.read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=["attention", "entropy"])
def test_the_documented_examples_run(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(example, str(DOC), "exec"), {})
    printed = capsys.readouterr().out
    if "causal" in example:
        assert printed.startswith("kernel causal_attention\nin q, k, v\nout y\n")
        assert parse(Path("causal.dojo").read_text()).name == "causal_attention"
        assert "1000 1000 64" in Path("causal_1000.dojo").read_text()
    else:
        assert "(64,)\nkernel entropy\n" in printed and "domain p 0.01 1\n" in printed


@kernel({"m": 5, "n": 7}, x="mn", g="n")
def rms(x, g):
    return x * rsqrt((x**2).mean("n") + 1e-6) * g


@kernel({"b": 2, "m": 4, "n": 4, "d": 3}, q="bmd", k="bnd", v="bnd")
def causal(q, k, v):
    s = einsum("bmd,bnd->bmn", q, k) / math.sqrt(size("d"))
    e = exp(where(iterator("n") <= iterator("m"), s, -math.inf))
    return einsum("bmn,bnd->bmd", e / e.sum("n"), v)


@kernel({"n": 2, "c": 3, "h": 9, "w": 8, "o": 4, "r": 3, "s": 3}, image="nchw", taps="ocrs", bias="o")
def strided_conv(image, taps, bias):
    windows = image.window("h", "p", "r", width=3, stride=2).window("w", "q", "s", width=3, stride=2)
    return maximum(einsum("ncpqrs,ocrs->nopq", windows, taps) + bias, 0)


@kernel({"i": 4, "j": 6}, x="ij f64", v="f64")
def several(x, v):
    return {"t": einsum("ij->ji", x), "largest": x.max(), "again": x, "scaled": (1 - x / v) ** 3, "d": -x + 1}


def numpy_rms(x, g):
    return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-6) * g


def numpy_causal(q, k, v):
    s = np.where(np.tri(4, dtype=bool), q @ k.swapaxes(1, 2) / math.sqrt(3), -np.inf)
    e = np.exp(s)
    return e / e.sum(axis=2, keepdims=True) @ v


def numpy_conv(image, taps, bias):
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    return np.maximum(np.einsum("ncpqrs,ocrs->nopq", windows, taps) + bias[:, None, None], 0)


@pytest.mark.parametrize(
    ("own", "formula"), [(rms, numpy_rms), (causal, numpy_causal), (strided_conv, numpy_conv)]
)
def test_reference_and_compiled_code_are_the_formula(own, formula):
    inputs = own.random_inputs()
    expected = formula(**{name: x.astype(float) for name, x in inputs.items()})
    np.testing.assert_allclose(own.reference(inputs)["y"], expected, rtol=1e-9)
    np.testing.assert_allclose(run_program(own.program, inputs)["y"], expected, rtol=1e-4, atol=1e-6)


@kernel({"m": 4, "d": 6}, x="md", y="md")
def rotary(x, y):
    angle = iterator("m").to("f32") * exp2(iterator("d").to("f32") * -0.5)
    c, s = cos(angle), sin(angle)
    return {"a": x * c - y * s, "b": x * s + y * c}


def test_rotary_embeddings():
    inputs = rotary.random_inputs()
    x, y = (inputs[name].astype(float) for name in "xy")
    angle = np.arange(4.0)[:, None] * 2.0 ** (np.arange(6) * -0.5)
    expected = x * np.cos(angle) - y * np.sin(angle)
    np.testing.assert_allclose(rotary.reference(inputs)["a"], expected, rtol=1e-6)
    np.testing.assert_allclose(run_program(rotary.program, inputs)["a"], expected, rtol=1e-5, atol=1e-6)


@kernel({"n": 5}, x="n i32", y="n")
def bits(x, y):
    return {"a": ((x << 2) ^ x) & 255, "b": ~(isnan(y) | isinf(y)), "c": (x | 1) >> 1, "d": sign(fmod(y, 2))}


def test_bits_and_tests_of_numbers():
    made = bits.reference({"x": np.array([1, -3, 0, 99, 7]), "y": np.array([np.nan, 5, -np.inf, -3, 0])})
    assert made["a"].tolist() == [((k << 2) ^ k) & 255 for k in (1, -3, 0, 99, 7)]
    assert made["b"].tolist() == [0, 1, 0, 1, 1]
    assert made["c"].tolist() == [0, -2, 0, 49, 3]
    np.testing.assert_array_equal(made["d"], [np.nan, 1, np.nan, -1, 0])


def test_several_outputs_and_scalars():
    x, v = np.arange(24.0).reshape(4, 6), np.asarray(3.0)
    made = several.reference({"x": x, "v": v})
    assert list(made) == ["t", "largest", "again", "scaled", "d"]
    np.testing.assert_array_equal(made["t"], x.T)
    np.testing.assert_array_equal(made["again"], x)
    np.testing.assert_allclose(made["scaled"], (1 - x / 3) ** 3)
    assert made["largest"] == 23 and made["d"][0, 1] == 0


def test_the_text_is_a_program_like_any_other():
    assert parse(rms.text) == rms.program
    game = rms.game()
    game.play(legal_moves(rms.program)[0])
    again = Game.from_text(game.to_text())
    assert again.current.program == game.current.program


def test_other_sizes_are_other_programs_of_the_same_function():
    wide = rms.at(n=64)
    assert wide.program.buffer_of["x"].dims[1].size == 64 and "/ 64" in wide.text
    assert rms.program.buffer_of["x"].dims[1].size == 7


def test_a_domain_bounds_what_is_drawn_and_stays_through_moves():
    @kernel({"m": 64, "n": 64}, x="mn", k="mn i8", domains={"x": (0.5, 2), "k": (-3, 3)})
    def bounded(x, k):
        return {"y": x.sum("n"), "z": k.max("n")}

    parameters = generate(bounded.program).parameters
    drawn = make_pool(bounded.program, parameters, seed=1).inputs
    assert drawn["x"].min() == 0.5 and drawn["x"].max() == 2 and len(np.unique(drawn["x"])) > 3000
    assert set(np.unique(drawn["k"])) == set(range(-3, 4))
    game = bounded.game()
    game.play(legal_moves(game.start)[0])
    assert game.current.program.domains == bounded.program.domains


@kernel({"row": 4, "col": 6}, x="row col", w="col")
def words(x, w):
    lower = x.sum("col", where=iterator("col") <= iterator("row") + 1)
    return {"y": einsum("row col, col -> row", x, w), "lower": lower, "total": x.sum("row")}


def test_axes_have_names_and_sums_are_restricted_to_places():
    x, w = np.arange(24.0).reshape(4, 6), np.arange(6.0)
    made = words.reference({"x": x, "w": w})
    np.testing.assert_array_equal(made["y"], x @ w)
    np.testing.assert_array_equal(made["lower"], np.tril(x, 1).sum(1))
    np.testing.assert_array_equal(made["total"], x.sum(0))
    assert "| 6 lower[{0}] += x[{0},{1}] if -{0}+{1} < 2\n" in words.text


@kernel({"m": 3, "c": 8, "h": 2, "k": 5}, x="mc", w="ck")
def heads(x, w):
    split = (-x).split("c", "hd").named("negative")
    merged = (split * split.max("d")).merge("h d", "c")
    return {"y": einsum("mc,ck->mk", merged, w), "d": concatenate("c", x, merged).pad({"m": (1, 0), "c": 2})}


def test_axes_are_split_merged_concatenated_and_padded():
    inputs = heads.random_inputs()
    x = -inputs["x"].astype(float).reshape(3, 2, 4)
    merged = (x * x.max(2, keepdims=True)).reshape(3, 8)
    made = heads.reference(inputs)
    np.testing.assert_allclose(made["y"], merged @ inputs["w"], rtol=1e-9)
    wide = np.pad(np.concatenate([inputs["x"], merged], 1), [(1, 0), (2, 2)])
    np.testing.assert_allclose(made["d"], wide, rtol=1e-9)
    assert "3 8 negative[{0},{1}] = -x[{0},{1}]\n" in heads.text  # the split is a view of it


@kernel({"v": 9, "d": 4, "b": 2, "k": 3}, rows="vd", i="bk i64", x="bv", domains={"i": (0, 8)})
def embedded(rows, i, x):
    return {"e": rows.take("v", i), "own": x.take("v", i)}


def test_places_are_read_from_an_array():
    inputs = embedded.random_inputs()
    made = embedded.reference(inputs)
    np.testing.assert_array_equal(made["e"], inputs["rows"][inputs["i"]].astype(float))
    np.testing.assert_array_equal(made["own"], np.take_along_axis(inputs["x"], inputs["i"], 1).astype(float))
    assert "2 3 own[{0},{1}] = x[{0},i[{0},{1}]]\n" in embedded.text


@kernel(
    {"v": 9, "d": 4, "b": 2, "k": 3},
    rows="vd", i="bk i64", new="bkd", seen="v", more="bk",
    domains={"i": (0, 8, "distinct")},
)  # fmt: skip
def scattered(rows, i, new, seen, more):
    return {"y": rows.scatter("v", i, new), "count": seen.scatter("v", i, more, "+")}


def test_places_are_written_that_an_array_says():
    inputs = scattered.random_inputs()
    made, i = scattered.reference(inputs), inputs["i"]
    assert np.unique(i).size == i.size
    y, count = inputs["rows"].astype(float), inputs["seen"].astype(float)
    y[i] = inputs["new"]
    np.add.at(count, i, inputs["more"].astype(float))
    np.testing.assert_array_equal(made["y"], y)
    np.testing.assert_allclose(made["count"], count, rtol=1e-12)
    assert "domain i 0 8 distinct\n" in scattered.text
    assert why(scattered.program, "parallelize y#1@0", "cpu").legal  # no two iterations hit one row


@kernel({"n": 6}, x="n")
def exponents(x):
    return (x.bitcast("i32") >> 23) - 127


def test_bits_are_another_dtypes():
    made = exponents.reference({"x": np.array([1.0, 1.5, 2, 0.25, 3e38, 1e-30])})
    np.testing.assert_array_equal(made["y"], [0, 0, 1, -2, 127, -100])


@kernel({"n": 6}, x="n")
def running(x):
    padded = x.pad({"n": (2, 1)}, mode="edge").slice("n", None, None, -1)
    before = x.scan("n", "max", exclusive=True)
    return {"total": x.scan("n", reverse=True), "edges": padded, "before": before, "least": x.argmin("n")}


def test_scans_slices_and_edges():
    x = np.array([3.0, 1, 4, 1, 5, 9])
    made = running.reference({"x": x})
    np.testing.assert_array_equal(made["total"], x[::-1].cumsum()[::-1])
    np.testing.assert_array_equal(made["edges"], np.pad(x, (2, 1), "edge")[::-1])
    np.testing.assert_array_equal(made["before"], [-np.inf, 3, 3, 4, 4, 5])
    assert made["least"] == 1


def refused(sizes, inputs, function, **options):
    with pytest.raises(KernelError) as raised:
        kernel(sizes, **options, **inputs)(function)
    return str(raised.value)


MN = {"m": 4, "n": 8}


@pytest.mark.parametrize(
    ("sizes", "inputs", "function", "sentence"),
    [
        (MN, {"x": "mn"}, lambda x: x.sum("k"), "x[m=4, n=8] has no axis 'k' to reduce over."),
        (MN, {"x": "mk"}, lambda x: x, "Axis 'k' of input x has no size; the sizes given: m, n."),
        (MN | {"n": 0}, {"x": "mn"}, lambda x: x, "Axis n has the size 0: a size is a whole number, at"),
        (MN, {"x": "mm"}, lambda x: x, "Input x has an axis twice"),
        (MN, {"x": "m, n"}, lambda x: x, "'m, n' declares no array"),
        (
            MN,
            {"x": "mn"},
            lambda x: None,
            "returns NoneType: return one array, or several by name",
        ),
        (MN, {"x": "mn"}, lambda y: y, "The function takes y and @kernel declares x"),
        (MN, {"x": "mn"}, lambda x: x + "1", "'1' is neither an array of the kernel nor a number"),
        (MN, {"x": "mn"}, lambda x: x if x > 0 else -x, "use where(...), not if."),
        (MN, {"x": "mn"}, lambda x: sum(x), "write over whole arrays"),
        (MN, {"x": "mn", "w": "n f16"}, lambda x, w: x * w, "w[n=8] is f16: convert one of them"),
        (MN, {"x": "mn"}, lambda x: x.to("f8"), "There is no dtype 'f8'."),
        (MN, {"x": "mn i4"}, lambda x: x * 2, "x[m=4, n=8] is i4, which is stored and converted"),
        (MN, {"x": "mn"}, lambda x: x.to("f8e5m2").sum("n"), "convert it first, with .to('f32')"),
        (MN, {"x": "mn"}, lambda x: {"x": x}, "an input and an output of the name x: rename one"),
        (MN, {"x": "mn"}, lambda x: {"in": x}, "'in' cannot be the name of an output"),
        (MN, {"x": "mn"}, lambda x: x.window("n", "p", "r", 9), "A window of 9 with stride 1 does not fit"),
        (MN, {"x": "mn"}, lambda x: x.window("n", "m", "r", 2), "'m' is no new axis for a window"),
        (MN, {"x": "mn"}, lambda x: x * size("k"), "The kernel has no axis 'k'; its axes are m, n."),
        (MN, {"x": "mn"}, lambda x: einsum("mn", x), "einsum takes a form such as 'mk,kn->mn'"),
        (MN, {"x": "mn"}, lambda x: einsum("m->m", x), "x[m=4, n=8] has 2 axes, and 'm' has 1."),
        (MN, {"x": "mn"}, lambda x: einsum("mk,kn->mn", x, x), "axis k is 8 long, and 4 in x[m=4, n=8]"),
        (MN, {"x": "mn"}, lambda x: einsum("mn->k", x), "'k' of the result is no axis of the arrays"),
        (
            MN,
            {"x": "mn"},
            lambda x: x + x.window("n", "n", "r", 3),
            "Axis n is 6 long in x[m=4, n=6, r=3] and 8 in x[m=4, n=8].",
        ),
        (MN | {"n": 2**40}, {"x": "mn"}, lambda x: x, "makes no program. line"),
        ({"m-n": 4}, {"x": "m"}, lambda x: x, "'m-n' cannot name an axis: take a letter or a word"),
        ({"f16": 4}, {"x": "f16"}, lambda x: x, "'f16' cannot name an axis"),
        (MN, {"x": "mn"}, lambda x: x.sum("n", where=x > 0), "restricted by comparisons of iterators"),
        (
            MN,
            {"x": "mn"},
            lambda x: x.max("m").sum("n", where=iterator("m") < 2),
            "the axis 'm', which t1[n=8]",
        ),
        (MN, {"x": "mn"}, lambda x: x.pad({"k": 1}), "x[m=4, n=8] has no axis 'k' to pad."),
        (MN, {"x": "mn"}, lambda x: x.split("n", "ab"), "n=8 does not split into 'ab': give all sizes but"),
        (MN, {"x": "mn"}, lambda x: x.split("n", "ab", a=3), "give all sizes but one, such as a=2"),
        (MN, {"x": "mn"}, lambda x: x.split("n", "mb", m=2), "'m' is no new axis for x[m=4, n=8]"),
        (MN, {"x": "mn"}, lambda x: x.merge("nm", "m").merge("mm", "k"), "do not become 'k': name each once"),
        (MN, {"x": "mn", "w": "n"}, lambda x, w: concatenate("n", x, w), "other axes differ."),
        (MN, {"x": "mn"}, lambda x: x.take("n", 3), "take reads places from an array"),
        (MN, {"x": "mn"}, lambda x: x.take("n", x), "Indices are integers, not f32"),
        (MN, {"x": "mn", "w": "mn u8"}, lambda x, w: x.slice("m", 1).take("n", w), "Axis m is 3 long"),
        (MN, {"x": "mn"}, lambda x: concatenate("k", x), "has no axis 'k' to concatenate along."),
    ],
)
def test_a_mistake_is_a_sentence(sizes, inputs, function, sentence):
    assert sentence in refused(sizes, inputs, function, name="mine")


def test_mistakes_outside_the_function_are_sentences(tmp_path):
    with pytest.raises(KernelError, match="has no axis 'k'; its axes are m, n"):
        rms.at(k=3)
    with pytest.raises(KernelError, match="could not be written: No such file or directory"):
        rms.save(tmp_path / "none" / "rms.dojo")
    with pytest.raises(KernelError, match=r"put @kernel\(\.\.\.\) above it"):
        iterator("n")
    told = refused(MN, {"x": "mn"}, lambda x: x, name="mine", domains={"y": (0, 1)})
    assert "domains names 'y', which is no input" in told
    told = refused(MN, {"x": "mn"}, lambda x: x, name="mine", domains={"x": (0, 99, "distinct")})
    assert "distinct: x is f32" in told.lower() and "drop the word" in told
    told = refused(MN, {"x": "mn i32"}, lambda x: x, name="mine", domains={"x": (0, 9, "distinct")})
    assert "holds 10 whole numbers, and x has 32 elements" in told
    told = refused(MN, {"x": "mn i32"}, lambda x: x, name="mine", domains={"x": (0, 99, "unlike")})
    assert "perhaps the word 'distinct', not (0, 99, 'unlike')" in told
    told = refused(MN, {"x": "mn"}, lambda x: x.bitcast("i64"), name="a")
    assert "The bits of f32 are none of i64." in told
    told = refused(MN, {"x": "mn", "i": "m i32", "u": "mn"}, lambda x, i, u: x.scatter("n", i, u), name="a")
    assert "u[m=4, n=8] does not go into x[m=4, n=8] at i[m=4]: its axes are those of i[m=4]" in told
    told = refused(
        MN, {"x": "mn", "i": "m i32", "u": "m"}, lambda x, i, u: x.scatter("n", i, u, "-"), name="a"
    )
    assert "scatter accumulates with +, *, max, min" in told
    told = refused(MN, {"x": "mn"}, lambda x: x, name="mine", domains={"x": (2, 1)})
    assert "two finite numbers, the lower first" in told
    assert "'<lambda>' cannot be the name of a kernel" in refused(MN, {"x": "mn"}, lambda x: x)


def test_the_lines_of_domains_are_checked_at_the_door():
    text = rms.text
    for line, told in [
        ("domain g 0.5", "expected an input and two numbers"),
        ("domain g 1e999 1", "1e999 to 1 is no range"),
        ("domain g 2 1", "2 to 1 is no range"),
        ("domain y 0 1", "y is no input"),
        ("domain g 0 1\ndomain g 0 1", "a second domain of g"),
    ]:
        with pytest.raises(ValueError, match=re.escape(told)):
            parse(text.replace("x f32", f"{line}\nx f32", 1))
    assert "domain g -1.5 0.25\n" in parse(text.replace("x f32", "domain  g -1.50 .25\nx f32", 1)).text


def test_what_is_only_stored_goes_in_and_comes_out():
    @kernel(MN, x="mn u4", s="m f8e8m0fnu")
    def scaled(x, s):
        return (x.to("f32") * s.to("f32")).to("f8e4m3fn")

    assert "y[{0},{1}] = f8e4m3fn(" in scaled.text
    inputs = scaled.random_inputs(seed=1)
    expected = np.clip(inputs["x"] * inputs["s"][:, None], -448, 448)
    np.testing.assert_allclose(scaled.reference(inputs)["y"], expected, rtol=2**-4, atol=2**-10)
