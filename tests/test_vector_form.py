"""Comparisons, choices and bools in vectors: what they compute is what the interpreter says."""

import re

import numpy as np
import pytest

from dojo_core.codegen.code import Code
from dojo_core.program.dtypes import extremes
from dojo_core.program.interpret import interpret
from dojo_core.program.marks import APART
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.program.vector_form import lanes_for
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.limits import cpu
from tests.compiled import load, run

SIZE = 128
FORMS = {  # the dtypes of x, w, b and y (x's and bool, where none are named), what is computed
    "less": "y = x < w", "not-more": "y = x <= w", "more": "y = x > 1", "not-less": "y = x >= w",
    "equal": "y = x == w", "unequal": "y = x != w", "none": "y = isnan(x)", "infinite": "y = isinf(x)",
    "counted": "y = x < w:x", "chosen": "y = select(b,x,w):x", "number": "y = select(b,1,x):x",
    "by-number": "y = select(x,w,3):x", "both": "y = and(b,x)", "no": "y = not(b)", "true": "y = bool(x)",
    "same": "y = b", "as-number": "y = b:x",
}  # fmt: skip


def in_vectors(name: str, form: str, dtype: str) -> Program:
    """A program of one form, in the widest vectors that there are."""
    body, _, result = form.partition(":")
    if "and(" in body:
        body = body.replace("x", "a")
    target = dtype if result == "x" else "bool"
    buffers = "".join(
        f"{array} {kind} [{SIZE}] heap\n"
        for array, kind in (("x", dtype), ("w", dtype), ("b", "bool"), ("a", "bool"), ("y", target))
    )
    head = f"kernel {name.replace('-', '_')}_{dtype}\nin x, w, b, a\nout y\n{buffers}"
    plain = body
    for array in "xwbay":
        plain = re.sub(rf"\b{array}\b", f"{array}[{{0}}]", plain)
    program = parse(f"{head}{SIZE} {plain}\n")
    lanes = lanes_for(program.leaves[0].op, {b.name: b.dtype for b in program.buffers}, cpu())[0]
    return parse(f"{head}{SIZE // lanes} {lanes}:v {plain.replace('{0}', f'{{0}}*{lanes}+{{1}}')}\n")


def inputs(dtype: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    if dtype.startswith("f"):
        some = [0.0, -0.0, 1.0, -1.5, 3.0, np.nan, np.inf, -np.inf]
    else:
        some = [0, 1, 2, 3, *extremes(dtype)]
    x, w = rng.choice(np.array(some, dtype=object), (2, SIZE)).astype(float if dtype[0] == "f" else object)
    b, a = rng.integers(0, 2, (2, SIZE))
    return {"x": x, "w": w, "b": b, "a": a}


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "u8", "i32", "i64", "f16"])
def test_comparisons_and_choices_in_vectors_are_those_of_single_numbers(dtype):
    programs = [in_vectors(name, form, dtype) for name, form in FORMS.items()]
    codes: list[Code] = [generate(program) for program in programs]
    library = load("\n".join(code.text for code in codes))
    given = inputs(dtype)
    for program, code in zip(programs, codes, strict=True):
        found = run(code, given, library)["y"].astype(float)
        np.testing.assert_array_equal(found, interpret(program, given)["y"].astype(float), program.text)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bf16"])
def test_lanes_a_few_cells_apart_are_put_together(dtype):
    """Up to the last cell of the array, in vectors of every width."""
    programs = []
    for lanes in cpu().vector_widths[dtype]:
        for step in range(2, APART + 1):
            size = (2 * lanes - 1) * step + 1
            programs.append(
                parse(
                    f"kernel k{lanes}_{step}\nin x\nout y\nx {dtype} [{size}] heap\n"
                    f"y {dtype} [{2 * lanes}] heap\n"
                    f"2 {lanes}:v y[{{0}}*{lanes}+{{1}}] = x[{{0}}*{lanes * step}+{{1}}*{step}]\n"
                )
            )
    codes = [generate(program) for program in programs]
    library = load("\n".join(code.text for code in codes))
    for program, code in zip(programs, codes, strict=True):
        given = {"x": np.arange(program.buffer_of["x"].dims[0].size) % 100}
        np.testing.assert_array_equal(run(code, given, library)["y"], interpret(program, given)["y"])
