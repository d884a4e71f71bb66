"""How threads share a parallel loop: by turns where much is computed of little data, else in equal parts."""

import re

import numpy as np
import pytest

from dojo_core import parse
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate
from tests.compiled import random_inputs, run_program


def product(rows: int, terms: int, columns: int, mark: str = ":p") -> Program:
    return parse(
        f"kernel k\nin x, w\nout y\nx f32 [{rows}, {terms}] heap\nw f32 [{terms}, {columns}] heap\n"
        f"y f32 [{rows}, {columns}] heap\n{rows}{mark} {columns} y[{{0}},{{1}}] = 0\n"
        f"| {terms} {columns} y[{{0}},{{2}}] += x[{{0}},{{1}}]*w[{{1}},{{2}}]\n"
    )


def row_by_row(rows: int, columns: int) -> Program:
    return parse(
        f"kernel k\nin x\nout y\nx f32 [{rows}, {columns}] heap\ny f32 [{rows}, {columns}] heap\n"
        f"s f32 [{rows}:N] register\n"
        f"{rows}:p s[{{0}}] = 0\n| {columns} s[{{0}}] += x[{{0}},{{1}}]\n"
        f"| {columns} y[{{0}},{{1}}] = x[{{0}},{{1}}] / s[{{0}}]\n"
    )


SCHEDULES = {
    "a product, 132,096 operations of a row": (product(128, 256, 512), "dynamic"),
    "a product, 16,640 operations of a row": (product(512, 64, 256), "dynamic, 8"),
    "a short one: no slow core matters in time": (product(64, 64, 64), "static"),
    "rows, as long: what is in a core's cache stays with it": (row_by_row(4096, 1024), "static"),
}


@pytest.mark.parametrize(("program", "expected"), SCHEDULES.values(), ids=SCHEDULES)
def test_who_takes_which_iterations(program, expected):
    assert re.findall(r"parallel for schedule\((.*)\)", generate(program).text) == [expected]


def test_an_array_of_which_iterations_reuse_the_cells_counts_once():
    """t has one row for 64 iterations: 128 operations stand beside three elements on the heap."""
    program = parse(
        "kernel k\nin x\nout y\nx f32 [8, 4096] heap\ny f32 [8, 4096] heap\nt f32 [8, 64:N, 4096] heap\n"
        "8:p 64 4096 t[{0},{1},{2}] = x[{0},{2}]*{1}\n| | 4096 y[{0},{2}] = t[{0},{1},{2}] + 1\n"
    )
    assert "schedule(dynamic)" in generate(program).text


def test_turns_change_no_result():
    """Each element is computed by one thread, in the order of the text, whichever that is."""
    program, alone = product(128, 64, 256), product(128, 64, 256, mark="")
    inputs = random_inputs(program)
    assert "schedule(dynamic" in generate(program, "strict").text
    expected = run_program(alone, inputs, "strict")["y"]
    assert np.array_equal(run_program(program, inputs, "strict")["y"], expected)
