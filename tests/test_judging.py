"""Long start programs are judged in a quicker order of loops, which sums every result in the same order."""

import pytest

from dojo_core import kernels
from dojo_core.measure.judging import LONG, hastened
from tests.compiled import random_inputs, run_program


@pytest.fixture(autouse=True)
def all_are_long(monkeypatch):
    monkeypatch.setattr("dojo_core.measure.judging.LONG", 0)
    hastened.cache_clear()
    yield
    hastened.cache_clear()


def operations(program):
    return [line for line in program.text.splitlines() if "{" in line]


def test_sums_go_along_rows_and_threads_share_the_rows():
    assert operations(hastened(kernels.get("matmul").program((8, 12, 16)))) == [
        "8:p 16 c[{0},{1}] = 0",
        "8:p 12 16 c[{0},{2}] += a[{0},{1}]*b[{1},{2}]",
    ]
    assert operations(hastened(kernels.get("conv2d").program((1, 4, 3, 6, 6, 3, 1, 1))))[-1].startswith(
        "1 4:p 6 6"
    )


@pytest.mark.parametrize(
    "kernel, shape",
    [("matmul", (20, 24, 33)), ("swiglu", (1, 8, 24, 40)), ("layernorm", (12, 50)), ("gemv", (9, 31))],
)
def test_the_results_are_the_same_to_the_last_bit(kernel, shape):
    start = kernels.get(kernel).program(shape)
    inputs = random_inputs(start)
    # strict: else the compiler may fuse a product into its sum in one loop and not in the other
    first, quick = run_program(start, inputs, "strict"), run_program(hastened(start), inputs, "strict")
    assert all((first[name] == quick[name]).all() for name in start.outputs)


def test_short_start_programs_stay_as_they_are(monkeypatch):
    monkeypatch.setattr("dojo_core.measure.judging.LONG", LONG)
    start = kernels.get("matmul").program((8, 12, 16))
    assert hastened(start) is start
