# ruff: noqa: E501  (program, move and refusal stand side by side)
"""Products on tensor cores: rounded in the text, given to a warp by a mark, judged by what rounding comes to."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from agents.passes import play_pass
from dojo_core import apply, kernels, parse, why
from dojo_core.codegen.code import Parameter
from dojo_core.game import Game
from dojo_core.measure.pool import make_pool
from dojo_core.moves import REGISTRY
from dojo_core.program.arithmetic import tf32_value
from dojo_core.program.dependence import stricter
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import Program
from dojo_core.targets.registry import target
from tests.compiled import run_program
from tests.emulated import ORDERS, code_of, emulate
from tests.targets import GPU
from tests.test_refusals import Case, conditions_have_cases, heap, refused

TENSOR = replace(GPU, name="tensor", marks=GPU.marks | {"m"})

COPIED = heap(x="16,8", w="8,8", y="16,8", t="16,8", u="16,8")
COPY = "16 8 t[{0},{1}] = x[{0},{1}]\n16 8 8 y[{0},{1}] += t[{0},{2}]*w[{2},{1}]"
PANELS = heap(x="16,8", w="8,8", y="16,8", p="16,8 shared", q="8,8 shared")
ROUNDED = "1:g 16:b 8 p[{1},{2}] = tf32(x[{1},{2}])\n| 8:b 8 q[{1},{2}] = tf32(w[{1},{2}])\n"
TILE = ROUNDED + "| 8:b 4:b 2 2 8 y[{1}+{3}*8,{2}*2+{4}] += p[{1}+{3}*8,{5}]*q[{5},{2}*2+{4}]"
REFUSED = [
    Case(1, "round_tf32 t", COPIED, COPY, "policy"),
    Case(1, "round_tf32 t", COPIED, COPY, "policy", None, "algebraic"),
    Case(2, "round_tf32 t", COPIED, COPY.replace("= x[{0},{1}]", "= abs(x[{0},{1}])"), "not-a-copy", None, "tf32"),
    Case(2, "round_tf32 y", COPIED, "16 8 y[{0},{1}] = x[{0},{1}]", "not-a-copy", None, "tf32"),
    Case(2, "round_tf32 t#1", COPIED, "16 8 t[{0},{1}] = 0\n" + COPY.replace("= x[{0},{1}]", "+= x[{0},{1}]"), "not-a-copy", None, "tf32"),
    Case(2, "round_tf32 t", COPIED, COPY.replace("= x[{0},{1}]", "= 1"), "not-a-copy", None, "tf32"),
    Case(2, "round_tf32 t", COPIED.replace("x f32", "x f16"), COPY, "not-a-copy", None, "tf32"),
    Case(3, "round_tf32 t", COPIED, COPY + "\n16 8 y[{0},{1}] += t[{0},{1}]", "not-a-product", None, "tf32"),
    Case(3, "round_tf32 t", COPIED, COPY + "\n16 8 y[{0},{1}] = t[{0},{1}]*w[{1},{1}]", "not-a-product", None, "tf32"),
    Case(3, "round_tf32 t", COPIED.replace("w f32", "w f16"), COPY, "not-a-product", None, "tf32"),
    Case(3, "round_tf32 t", COPIED, "16 8 t[{0},{1}] = x[{0},{1}]\n16 8 8 y[{0},{1}] += t[{0},{2}]*t[{0},{1}]", "not-a-product", None, "tf32"),
    Case(1, "map_tensor_core y@3", PANELS, TILE.replace("2 2 8", "2:u 2 8"), "marked", "clear_mark y@3", on=TENSOR),
    Case(1, "map_tensor_core y@3", PANELS, TILE, "mark-unknown", on=GPU),
    Case(2, "map_tensor_core y@2", PANELS, TILE.replace("8:b 4:b 2 2", "8:b 4 2 2"), "tile-place", on=TENSOR),
    Case(2, "map_tensor_core y@3", heap(x="16,8", w="8,8", y="8,16", p="8,16 shared", q="16,8 shared"), ROUNDED.replace("16:b 8", "8:b 16").replace("| 8:b 8", "| 16:b 8").replace("w[{1},{2}]", "w[{2},{2}]").replace("x[{1},{2}]", "x[{2},{1}]") + "| 4:b 8:b 2 2 8 y[{1}+{3}*4,{2}*2+{4}] += p[{1}+{3}*4,{5}]*q[{5},{2}]", "tile-place", on=TENSOR),
    Case(2, "map_tensor_core y@4", PANELS.replace("y f32 [16, 8]", "y f32 [16, 8, 32]"), TILE.replace("2 2 8 y[{1}+{3}*8,{2}*2+{4}]", "32:w 2 2 8 y[{1}+{4}*8,{2}*2+{5},{3}]").replace("p[{1}+{3}*8,{5}]*q[{5},{2}*2+{4}]", "p[{1}+{4}*8,{6}]*q[{6},{2}*2+{5}]"), "tile-place", on=TENSOR),
    Case(3, "map_tensor_core y@4", PANELS, TILE, "instruction-shape", on=TENSOR),
    Case(3, "map_tensor_core y@3", PANELS, TILE.replace("2 2 8", "2 2 8 3:u"), "instruction-shape", on=TENSOR),
    Case(3, "map_tensor_core y@3", PANELS, TILE + "\n| | | | | | " + TILE[TILE.index("y[") :], "instruction-shape", on=TENSOR),
    Case(4, "map_tensor_core y@3", PANELS, TILE.replace("*q[", "+q["), "instruction-operation", on=TENSOR),
    Case(4, "map_tensor_core y@3", PANELS, TILE.replace("*q[{5},{2}*2+{4}]", "*2"), "instruction-operation", on=TENSOR),
    Case(4, "map_tensor_core y@3", PANELS, TILE + " if {3} < 1", "instruction-operation", on=TENSOR),
    Case(4, "map_tensor_core y@3", PANELS, TILE.replace("tf32(w[{1},{2}])", "w[{1},{2}]"), "not-rounded", "round_tf32 q", "tf32", TENSOR),
    Case(4, "map_tensor_core y@3", PANELS, TILE.replace("q[{5},", "w[{5},"), "not-rounded", None, "tf32", TENSOR),
    Case(4, "map_tensor_core y@3", PANELS.replace("y f32", "y f64"), TILE, "instruction-dtype", on=TENSOR),
    Case(5, "map_tensor_core y@3", PANELS, TILE, "warp-regroup", None, "strict", TENSOR),
    Case(6, "map_tensor_core y@3", PANELS, TILE.replace("q[{5},{2}*2+{4}]", "q[{5},{2}+{4}*4]"), "instruction-access", on=TENSOR),
    Case(6, "map_tensor_core y@3", PANELS, TILE.replace("q[{5},{2}*2+{4}]", "q[{5},{1}]"), "instruction-access", on=TENSOR),
    Case(6, "map_tensor_core y@3", PANELS, TILE.replace("p[{1}+{3}*8,{5}]", "q[{5},{2}*2+{4}]"), "instruction-access", on=TENSOR),
    Case(6, "map_tensor_core y@3", "domain xi 0 15\n" + PANELS + "\nxi i32 [16] heap", TILE.replace("p[{1}+{3}*8,{5}]", "p[xi[{1}+{3}*8],{5}]"), "instruction-access", on=TENSOR),
    Case(6, "map_tensor_core y@3", PANELS + "\nr f32 [8:N, 2, 8] local", TILE.replace("4:b 2 2 8", "4:b 2 8 r[{1},{3},{4}] = tf32(x[{1}+{3}*8,{4}])\n| | | 2 2 8").replace("p[{1}+{3}*8,{5}]", "r[{1},{3},{5}]"), "instruction-access", on=TENSOR),
    Case(6, "map_tensor_core y@3", heap(x="16,8", w="8,8", y="16,8,8", p="16,8 shared", q="8,8 shared"), TILE.replace("{2}*2+{4}] +=", "{2}*2+{4},{5}] +="), "instruction-access", on=TENSOR),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=[f"{c.move}: {c.code}" for c in REFUSED])
def test_each_condition_refuses(case):
    refused(case)


@pytest.mark.parametrize("name", [n for n, t in REGISTRY.items() if t.family == "tensor cores"])
def test_every_condition_of_a_move_has_a_case(name):
    conditions_have_cases(name, REFUSED)


def test_a_gpu_without_such_an_instruction_says_so():
    start = parse(f"kernel k\nin x, w\nout y\n{PANELS}\n{TILE}\n")
    assert why(start, "map_tensor_core y@3", target("cuda")).legal
    refusal = why(start, "map_tensor_core y@3", target("hip")).refusal
    assert refusal.sentence.startswith("The target hip knows no tensor-core scopes")


SPECIAL = [
    1 + 2**-11,
    -1 - 2**-11,
    1 + 2**-11 - 2**-23,
    3.4028235e38,
    -np.inf,
    np.nan,
    0.0,
    -0.0,
    2**-149,
    1e-39,
]


@pytest.mark.parametrize("where", ["C", "emulated"])
def test_tf32_rounds_to_nearest_and_ties_away_from_zero(where):
    assert tf32_value(np.array(SPECIAL[:3])).tolist() == [1 + 2**-10, -1 - 2**-10, 1]
    x = np.array([*SPECIAL, *np.random.default_rng(0).standard_normal(54)], np.float32)
    vector, block = ("8", "8:v") if where == "C" else ("1:g 8:b", "2 4:v")
    index = "{0}*8+{1}" if where == "C" else "{1}*8+{2}*4+{3}"
    program = parse(
        f"kernel k\nin x\nout y\nx f32 [64] heap\ny f32 [64] heap\n{vector} {block} y[{index}] = tf32(x[{index}])\n"
    )
    have = (
        run_program(program, {"x": x})["y"] if where == "C" else emulate(code_of(program), {"x": x})[0]["y"]
    )
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(have, tf32_value(x).astype(np.float32))
    np.testing.assert_array_equal(np.signbit(have), np.signbit(x))


def tile() -> Program:
    """One instruction's worth of a product, with the mark."""
    start = "1:g 8:b 4:b 2 2 y[{1}+{3}*8,{2}*2+{4}] = 0\n"
    body = start + (ROUNDED + TILE[len(ROUNDED) :]).replace("1:g 16:b", "| 16:b")
    return apply(parse(f"kernel k\nin x, w\nout y\n{PANELS}\n{body}\n"), "map_tensor_core y#1@3", TENSOR)


@pytest.mark.parametrize("order", ORDERS)
def test_a_tile_is_the_product_of_what_its_warp_brings(order):
    """Of whole numbers that TF32 has all is exact: a factor that the wrong lane brings shows."""
    rng = np.random.default_rng(1)
    x, w = (rng.integers(-1000, 1000, shape).astype(np.float32) for shape in ((16, 8), (8, 8)))
    have, fault = emulate(code_of(tile()), {"x": x, "w": w}, order)
    assert not fault
    np.testing.assert_array_equal(have["y"], x @ w)


def test_the_instruction_cuts_off_what_was_not_rounded():
    """As the device does: text that rounds no factor is refused by the mark, and computes something else."""
    x, w = np.full((16, 8), 1 + 2**-10 + 2**-11, np.float32), np.eye(8, dtype=np.float32)
    code = code_of(tile())
    text = code.text.replace("f32_tf32(x_", "(x_")
    assert text != code.text
    rounded, cut = (emulate(code, {"x": x, "w": w}, text=t)[0]["y"][0, 0] for t in (code.text, text))
    assert (rounded, cut) == (1 + 2**-9, 1 + 2**-10)


@cache
def played(name: str, shape: str) -> Program:
    kernel = kernels.get(name)
    game = Game.new(kernel.program(kernel.shape(shape)), name, shape, "cuda", "tf32")
    play_pass(game, "heuristic")
    return game.current.program


def inputs_of(program: Program) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    shapes = {name: [d.size for d in program.buffer_of[name].dims] for name in program.inputs}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize(("name", "shape"), [("matmul", "128x96x128"), ("bmm", "2x128x64x128")])
def test_the_pass_gives_products_to_tensor_cores(name, shape):
    """What comes out is what the text means, factors rounded, and no more than that from the exact product."""
    program = played(name, shape)
    assert ":m" in program.text and "= tf32(" in program.text
    inputs = inputs_of(program)
    have, fault = emulate(code_of(program), inputs)
    assert not fault
    np.testing.assert_allclose(have["c"], interpret(program, inputs)["c"], rtol=1e-5, atol=1e-4)
    exact, bound = inputs["a"].astype(float) @ inputs["b"], np.abs(inputs["a"]) @ np.abs(inputs["b"])
    assert (np.abs(have["c"] - exact) < 2**-10 * bound).all() and np.abs(have["c"] - exact).max() > 1e-4


def test_no_barrier_around_tensor_cores_can_be_left_out():
    program = played("matmul", "128x96x128")
    code, inputs = code_of(program), inputs_of(program)
    meant = interpret(program, inputs)["c"]
    lines = code.text.splitlines()
    assert len(code.barriers) == 4
    for number in code.barriers:
        text = "\n".join(line for n, line in enumerate(lines) if n != number) + "\n"
        runs = (emulate(code, inputs, order, text) for order in ORDERS)
        assert any(fault or not np.allclose(got["c"], meant, rtol=1e-4, atol=1e-3) for got, fault in runs)


def test_factors_are_judged_by_one_rounding_each():
    """What rounding to nearest leaves is right; what cutting off leaves is not, nor under another policy."""
    program = kernels.get("matmul").program((64, 256, 64))
    parameters = tuple(
        Parameter(n, "f32", s, role)
        for n, s, role in (("a", (64, 256), "in"), ("b", (256, 64), "in"), ("c", (64, 64), "out"))
    )
    pool = make_pool(program, parameters, 0, tame=True, tf32=True)
    a, b = (pool.inputs[n].astype(np.float64) for n in "ab")
    own = np.abs((pool.inputs["a"] @ pool.inputs["b"]) - a @ b).max(axis=1)
    allowed = pool.tolerance(parameters[2], own, np.abs(a @ b).max(axis=1), "tf32")

    def right(factors):
        return (
            np.abs(factors(pool.inputs["a"]) @ factors(pool.inputs["b"]) - a @ b).max(axis=1) <= allowed
        ).mean()

    def cut_off(x):
        return (x.view(np.uint32) & np.uint32(0xFFFFC000)).view(np.float32).astype(np.float64)

    assert right(tf32_value) == 1 and right(cut_off) < 0.2
    usual = make_pool(program, parameters, 0, tame=True)
    allowed = usual.tolerance(parameters[2], own, np.abs(a @ b).max(axis=1), "reassoc")
    assert right(tf32_value) < 0.2


def test_records_of_a_policy_are_those_of_what_allows_no_more():
    assert stricter("tf32") == ("strict", "reassoc", "tf32")
    assert stricter("algebraic") == ("strict", "reassoc", "algebraic")
