"""The heuristic pass on a GPU maps whole programs, and what it makes computes what its kernel is."""

import re

import numpy as np
import pytest

from agents.passes import play_pass
from agents.passes.gpu import bands, rows, sums
from dojo_core import kernels, parse
from dojo_core.game import Game
from dojo_core.program.gpu import kernels as launches
from dojo_core.program.tree import Program
from tests.compiled import random_inputs
from tests.emulated import ORDERS, code_of, emulate
from tests.thorough import covering, group

# Small, but such that tiles divide them and rows are worth a warp or a block.
SHAPES = {
    "add": "8x96", "mul": "6x512", "relu": "3x508", "relu_ffn": "2x3x16x28", "reducemean": "8x512",
    "softmax": "16x128", "log_softmax": "8x96", "layernorm": "8x1024", "rmsnorm": "8x2048",
    "batchnorm": "2x3x8x256", "groupnorm": "1x2x2x16x112", "cross_entropy": "8x128", "matmul": "64x64x128",
    "bmm": "2x64x64x32", "swiglu": "1x64x256x64", "conv": "1x10x2x14x14x3", "attention": "2x16x64x16",
    "maxpool": "1x2x32x32x3x2", "gemv": "64x256", "sum": "65536", "dot": "32768", "transpose": "64x96",
}  # fmt: skip


@pytest.fixture
def few(monkeypatch):
    """As though a handful of blocks kept the device busy: small shapes then go the ways of large ones."""
    for module in (bands, rows, sums):
        monkeypatch.setattr(module, "ENOUGH", 8)
    monkeypatch.setattr(rows, "SHORT", 256)


def played(name: str, shape: str) -> Game:
    kernel = kernels.get(name)
    game = Game.new(kernel.program(kernel.shape(shape)), name, shape, "cuda")
    play_pass(game, "heuristic")
    return game


def check(program: Program, name: str, sizes: str = "") -> None:
    kernel, shape = kernels.get(name), kernels.get(name).shape(sizes or SHAPES[name])
    inputs = random_inputs(program)
    got, fault = emulate(code_of(program), inputs)
    assert not fault
    for output, expected in kernel.reference(inputs, shape).items():
        have = got[program.buffer_of[output].name].reshape(expected.shape)
        np.testing.assert_allclose(have, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


# Mapped in the same ways as others: make soak tries them too.
LIKE_OTHERS = ("mul", "relu", "log_softmax", "rmsnorm", "bmm", "gemv", "dot")


@pytest.mark.parametrize(
    "name",
    covering((pytest.param(n, marks=pytest.mark.soak if n in LIKE_OTHERS else ()) for n in SHAPES), group),
)
def test_what_the_pass_makes_is_mapped_and_right(name, few):
    program = played(name, SHAPES[name]).current.program
    assert all(launch.mapped for launch in launches(program)), program.text
    check(program, name)


@pytest.mark.parametrize("name", ["softmax", "matmul", "batchnorm", "layernorm"])
def test_what_the_greedy_pass_makes_is_right(name):
    kernel = kernels.get(name)
    game = Game.new(kernel.program(kernel.shape(SHAPES[name])), name, SHAPES[name], "cuda")
    assert play_pass(game, "greedy")
    program = game.current.program
    assert any(launch.mapped for launch in launches(program))
    assert (":w" in program.text) == (name in ("softmax", "layernorm")), "their rows are long"
    check(program, name)


@pytest.mark.parametrize("name", ["layernorm", "groupnorm", "matmul"])
def test_no_barrier_of_what_the_pass_makes_can_be_left_out(name, few):
    program = played(name, SHAPES[name]).current.program
    code, kernel = code_of(program), kernels.get(name)
    inputs, shape = random_inputs(program), kernel.shape(SHAPES[name])
    lines = code.text.splitlines()
    assert code.barriers
    for barrier in code.barriers:
        without = "\n".join(lines[:barrier] + lines[barrier + 1 :]) + "\n"
        right = []
        for order in ORDERS:
            got, fault = emulate(code, inputs, order, without)
            for output, expected in kernel.reference(inputs, shape).items():
                have = got[program.buffer_of[output].name].reshape(expected.shape)
                bound = 1e-5 * np.abs(expected).max()
                right.append(not fault and np.allclose(have, expected, rtol=1e-5, atol=bound))
        assert not all(right), lines[barrier - 2 : barrier + 2]


def test_a_row_of_softmax_is_read_once_into_registers():
    program = played("softmax", "24576x512").current.program
    assert len(launches(program)) == 1
    assert sum(any(a.array == "x" for a in leaf.op.reads) for leaf in program.leaves) == 1
    assert {b.location for b in program.buffers if b.name not in ("x", "y")} == {"local"}


def test_what_no_registers_hold_is_made_where_it_is_summed():
    program = played("groupnorm", "8x32x2x112x112").current.program
    large = [b.name for b in program.buffers if b.location == "heap" and b.name not in program.interface]
    assert sorted(large) == ["r", "u"], "a mean and a deviation for each group"


def test_a_product_goes_through_shared_memory():
    program = played("matmul", "1536x1024x1024").current.program
    assert sum(b.location == "shared" for b in program.buffers) == 2
    assert len(code_of(program).barriers) == 2


def test_rows_that_no_warp_divides_leave_lanes_idle(monkeypatch):
    monkeypatch.setattr(bands, "ENOUGH", 8)
    monkeypatch.setattr(rows, "ENOUGH", 8)
    program = played("batchnorm", "8x2x4x300").current.program
    sums = [leaf for leaf in program.leaves if leaf.op.accumulate and leaf.op.guard]
    assert len(sums) >= 4 and {condition.bound for leaf in sums for condition in leaf.op.guard} == {25}
    check(program, "batchnorm", "8x2x4x300")


def test_few_tiles_cut_the_sum_into_parts():
    program = played("matmul", "512x1024x256").current.program
    product, rest = code_of(program).steps
    assert (product.blocks, rest.threads) == (8 * 8 * 4, 256), "32 tiles, of 1024 terms each 8 times 128"


def test_a_convolution_keeps_a_patch_of_results_in_registers():
    program = played("conv", "8x64x64x56x56x3").current.program
    assert [b.dims[-1].size for b in program.buffers if b.location == "shared"] == [36, 56]
    (launch,) = code_of(program).steps
    sums = next(b for b in program.buffers if b.name == "ys")
    assert (sums.location, launch.threads, [d.size for d in sums.dims[-2:]]) == ("local", 144, [4, 6])


@pytest.mark.parametrize(
    "name, shape",
    [("conv", "2x3x4x11x9x2"), ("conv", "1x4x3x8x18x5"), ("matmul", "96x40x30"), ("matmul", "128x256x128")],
)
def test_patches_and_parts_of_sums_are_right(name, shape):
    program = played(name, shape).current.program
    assert sum(b.location == "shared" for b in program.buffers) == 2, program.text
    check(program, name, shape)


def test_names_mean_nothing():
    text = kernels.get("rmsnorm").program((64, 4096)).text.replace("kernel rmsnorm", "kernel k")
    renamed = Game.new(parse(re.sub(r"\bs\b", "total", text)), target="cuda")
    play_pass(renamed, "heuristic")
    named = played("rmsnorm", "64x4096")
    marks = [re.findall(r"\d+:[a-z]", game.current.program.text) for game in (renamed, named)]
    assert marks[0] == marks[1] and len(marks[0]) > 10


def test_what_cannot_be_mapped_stays():
    text = "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [9] heap\ny[0] = 0\n8 y[{0}+1] = y[{0}] + x[{0}]\n"
    game = Game.new(parse(text), target="cuda")
    play_pass(game, "heuristic")
    program = game.current.program
    inputs = random_inputs(program)
    got, fault = emulate(code_of(program), inputs)
    assert not fault
    np.testing.assert_allclose(got["y"][1:], np.cumsum(inputs["x"]), rtol=1e-4)
