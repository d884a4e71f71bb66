"""The C of selections of which no lane takes an arm: what is asked, what is left out, and that nothing of the
results changes."""

import numpy as np
import pytest

from dojo_core import parse
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import Program
from dojo_core.targets.cpu import codegen
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.cross import Call
from dojo_core.targets.cpu.processor import host
from dojo_core.targets.cpu.profile.timers import with_timers
from dojo_core.targets.cpu.shortcuts import shortcuts
from tests.compiled import random_inputs, run
from tests.crossed import run_emulated, with_tools

WIDE = np.float32([np.nan, np.inf, -np.inf, -0.0, 0.0, -1e-40, 1e-40, -3.0, 30.0])


def rows(lines: str, dtype: str = "f32", vectors: int = 4) -> Program:
    """Rows of some vectors, written out; V is where a lane is, R one in registers."""
    lanes = 128 // int(dtype[1:])
    body = lines.replace("V", f"{{0}},{{1}}*{lanes}+{{2}}").replace("R", f"{{0}}*{vectors}+{{1}},{{2}}")
    first, *others = (f"{lanes}:v {line}" for line in body.splitlines())
    arrays = "\n".join(f"{name} {dtype} [64, {vectors * lanes}] heap" for name in "xy")
    values = "\n".join(
        f"{name} {'bool' if name == 'b' else dtype} [{64 * vectors}:N, {lanes}] register"
        for name in "abcdef"
        if f"{name}[" in body
    )
    text = "\n".join([f"64 {vectors}:u {first}", *(f"| | {other}" for other in others)])
    return parse(f"kernel k\nin x\nout y\n{arrays}\n{values}\n{text}\n")


def spared(program: Program) -> list[str]:
    """What no run needs where its masks are alike; as the generator has them, all of truth are."""
    integers = "i64" if program.buffer_of["x"].dtype == "f64" else "i32"
    masks = {b.name: integers for b in program.buffers if b.dtype == "bool"}
    return [name for shortcut in shortcuts(program, masks).values() for name in shortcut.names]


ELU = "b[R] = x[V] > 0\nc[R] = expm1(x[V])\nd[R] = 1.5*c[R]\ny[V] = select(b[R],x[V],d[R])"
FORMS = {
    "an exponential and what is made of it": (ELU, ["c", "d"]),
    "the arm of what is true": (
        "b[R] = x[V] < 0\nc[R] = exp(x[V])\ny[V] = select(b[R],c[R],1)",
        ["c"],
    ),
    "a chain that two read": (
        "b[R] = x[V] > 20\nc[R] = exp(x[V])\nd[R] = log1p(c[R])\ne[R] = d[R] - c[R]\n"
        "y[V] = select(b[R],x[V],e[R])",
        ["c", "d", "e"],
    ),
    "a mask of what is computed before it": (
        "a[R] = x[V] + 1\nb[R] = a[R] > 0\nc[R] = exp(a[R])\ny[V] = select(b[R],a[R],c[R])",
        ["c"],
    ),
    "two selections by one mask": (
        "b[R] = x[V] > 0\nc[R] = exp(x[V])\nd[R] = sin(x[V])\ne[R] = select(b[R],x[V],c[R])\n"
        "f[R] = select(b[R],1,d[R])\ny[V] = e[R]*f[R]",
        ["c", "d"],
    ),
}
NONE = {
    "the value is looked at beside": ELU.replace("y[V] = ", "e[R] = ") + "\ny[V] = e[R] + d[R]",
    "both arms": "b[R] = x[V] > 0\nc[R] = exp(x[V])\nd[R] = 2*c[R]\ny[V] = select(b[R],c[R],d[R])",
    "the mask is of what the run writes": "y[V] = 2*x[V]\n" + ELU.replace("x[V] > 0", "y[V] > 0"),
    "the mask is of a long function itself": (
        "c[R] = expm1(x[V])\nb[R] = c[R] > 0\nd[R] = exp(c[R])\ny[V] = select(b[R],c[R],d[R])"
    ),
    "nothing that takes long": ELU.replace("expm1(x[V])", "-x[V]"),
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("lines", "without"), FORMS.values(), ids=FORMS)
def test_what_no_lane_takes_is_left_out_and_every_bit_stays(lines, without, dtype, monkeypatch):
    program = rows(lines, dtype)
    assert spared(program) == without
    short = generate(program)
    monkeypatch.setattr(codegen, "shortcuts", lambda program, masks: {})
    plain = generate(program)
    assert "_any(taken0)" in short.text and "taken" not in plain.text
    assert short.error_bound == plain.error_bound
    # Rows of one sign, rows in which one lane differs, and what is neither.
    x = np.random.default_rng(1).uniform(0.5, 25, (64, 16 if dtype == "f32" else 8))
    x[16:] *= -1
    x[32:48] *= np.random.default_rng(2).choice([-1, 1], x[32:48].shape)
    for row, value in enumerate(WIDE):
        x[row, row % 8] = x[16 + row, row % 8] = value
    given = {"x": x.astype(np.float32 if dtype == "f32" else np.float64)}
    first, second = (run(code, given)["y"] for code in (short, plain))
    np.testing.assert_array_equal(first.view(np.uint8), second.view(np.uint8))


def test_every_node_of_a_run_can_have_a_timer():
    """Each of them stands in three places, each whole in its braces."""
    program = parse(
        "kernel k\nin x\nout y\nx f32 [64, 4, 4] heap\ny f32 [64, 4, 4] heap\n"
        "b bool [64:N, 4, 4] register\nc f32 [64:N, 4, 4] register\n"
        "64 4:u 4:v b[{0},{1},{2}] = x[{0},{1},{2}] > 0\n| | 4:v c[{0},{1},{2}] = exp(x[{0},{1},{2}])\n"
        "| | 4:v y[{0},{1},{2}] = select(b[{0},{1},{2}],2,c[{0},{1},{2}])\n| 4:u 4:v y[{0},{1},{2}] += 1\n"
    )
    code = generate(program)
    assert "taken0" in code.text
    timed = with_timers(code, program, [(0, 0), (0, 1)], 1, host().instruction_set).code
    x = np.random.default_rng(0).standard_normal((64, 4, 4)).astype(np.float32)
    for each in (code, timed):
        expected = np.where(x > 0, 2, np.exp(x)) + 1
        np.testing.assert_allclose(run(each, {"x": x})["y"], expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["armv8-a", "rv64gcv-128"])
def test_on_other_processors_too(name):
    processor = with_tools(name)
    programs = [rows(ELU, "f32"), rows(ELU, "f64")]
    codes = [generate(program, processor=processor) for program in programs]
    assert all("_any(taken0)" in code.text for code in codes)
    calls, wanted = [], []
    for number, program in enumerate(programs):
        inputs = {"x": np.abs(random_inputs(program)["x"])}
        inputs["x"][32:, 5] *= -1
        calls.append(Call(number, inputs))
        wanted.append(interpret(program, inputs)["y"])
    for got, expected in zip(run_emulated(codes, calls, processor), wanted, strict=True):
        np.testing.assert_allclose(got["y"], expected, rtol=1e-6)


@pytest.mark.parametrize("lines", NONE.values(), ids=NONE)
def test_what_is_looked_at_in_any_case_is_computed(lines):
    program = rows(lines)
    assert spared(program) == []
    assert "taken" not in generate(program).text


def test_few_vectors_are_not_worth_the_test():
    assert spared(rows(ELU, vectors=4)) and not spared(rows(ELU, vectors=2))


def test_a_name_that_the_test_has_is_changed():
    program = rows(ELU.replace("c[R]", "a[R]"))
    named = parse(program.text.replace("a[", "taken0[").replace("a f32", "taken0 f32"))
    assert "f32x4 v_taken0;" in generate(named).text
