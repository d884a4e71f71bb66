"""The promise that a legal move never changes what a program computes, tried on random programs and walks.

``python -m tests.prove SECONDS`` goes on for as long as asked; what it found stands below, each as a program
and the move that went wrong.
"""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from dojo_core import kernels, parse
from dojo_core.program.interpret import interpret, interpret_physical
from dojo_core.program.tree import Program
from dojo_core.program.validity import definition_fault, storage_fault
from dojo_core.targets.cpu.codegen import generate
from tests import compiled, oracle
from tests.programs import programs, storage_steps
from tests.walks import KERNELS, Tally, start, walk_from

FIXED = settings(
    max_examples=40, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


# ---------------------------------------------------------------------------- the oracle itself


XY = "x f32 [4] heap\ny f32 [4] heap"
XYT = XY + "\nt f32 [4:N] heap"


def outcome(body: str, buffers: str, policy: str = "reassoc") -> oracle.Outcome:
    names = [line.split()[0] for line in buffers.splitlines()]
    inputs = ", ".join(n for n in names if n[0] in "xw")
    return oracle.run(parse(f"kernel k\nin {inputs}\nout y\n{buffers}\n{body}\n"), policy)


@pytest.mark.parametrize(
    ("body", "buffers", "fault"),
    [
        ("4 t[{0}] = x[{0}]\n4 y[{0}] = t[{0}]", XYT, "clobber"),
        ("4 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", XYT, None),
        ("4:p t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", XYT, "race"),
        ("4:p t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", XYT.replace("N] heap", "N] stack"), None),
        ("4 t[{0}] = x[{0}]\n| y[{0}] = t[0]", XY + "\nt f32 [4] stack", "lifetime"),
        ("4 y[{0}] = x[{0}]\n| t[{0}] = x[{0}]", XY + " -> t, y", "clobber"),
        ("y[] = 0\n4:p y[] += x[{0}]", "x f32 [4] heap\ny f32 [] heap", "race"),
        ("4 y[{0}] = x[{0}]\n3:v y[{0}+1] = y[{0}]", XY, "clobber"),
        ("4 y[{0}] = x[{0}]\n3:v y[{0}] = y[{0}+1]", XY, None),
        ("4:v y[0] = x[{0}]", "x f32 [4] heap\ny f32 [1] heap", "lanes"),
    ],
)  # fmt: skip
def test_the_oracle_sees(body, buffers, fault):
    found = outcome(body, buffers).fault
    assert (found and found.split()[0]) == fault


def test_the_oracle_regroups_sums_where_the_policy_does():
    buffers = "x f32 [6] heap\ny f32 [] heap\np f32 [2] heap"
    texts = (
        "y[] = 0\n6 y[] += x[{0}]",
        "y[] = 0\n2 p[{0}] = 0\n3 2 p[{1}] += x[{0}*2+{1}]\n2 y[] += p[{0}]",
    )
    for policy, alike in (("reassoc", True), ("strict", False)):
        terms = oracle.Terms()
        first, second = (
            oracle.run(parse(f"kernel k\nin x\nout y\n{buffers}\n{t}\n"), policy, terms) for t in texts
        )
        assert (first.outputs == second.outputs) is alike


def test_what_is_undefined_shows_in_the_output():
    holes = outcome("3 y[{0}] = x[{0}]", "x f32 [4] heap\ny f32 [4] heap")
    assert not holes.defined
    assert outcome("4 y[{0}] = x[{0}]", "x f32 [4] heap\ny f32 [4] heap").defined


# ---------------------------------------------------------------------------- random programs


@FIXED
@given(programs())
def test_storage_that_is_allowed_keeps_the_meaning(program):
    """Every buffer contracted, shared or moved, every scope parallel: the judge never says yes where the
    oracle says no."""
    for step in storage_steps(program, random.Random(1)):
        if storage_fault(step) is None:
            assert oracle.run(step).fault is None, step.text


@FIXED
@given(programs())
def test_the_interpreters_agree_on_valid_programs(program):
    inputs = compiled.random_inputs(program)
    logical, physical = interpret(program, inputs), interpret_physical(program, inputs)
    for array in program.outputs:
        np.testing.assert_allclose(logical[array], physical[array], rtol=1e-9, atol=1e-9)


@FIXED
@given(programs())
def test_what_the_judge_calls_defined_is_defined(program):
    if definition_fault(program) is None:
        assert oracle.run(program).defined


# ---------------------------------------------------------------------------- random walks


def walked(seed: int, length: int, others: int) -> tuple[Program, str, Program]:
    rng = random.Random(f"walk {seed}")
    first, policy = start(rng)
    last, finding = walk_from(first, policy, rng, Tally(), length, others)
    assert finding is None, finding
    return first, policy, last


@pytest.mark.parametrize("seed", range(24))
def test_a_random_walk_keeps_the_meaning(seed):
    """Each move's outputs by the oracle, text, inverse; a sample of the other legal moves; the lists."""
    walked(seed, 10 + seed % 4 * 10, 3)


@pytest.mark.parametrize("name", KERNELS)
def test_a_walk_from_a_kernel_keeps_the_meaning(name):
    program = kernels.get(name).program(KERNELS[name])
    _, finding = walk_from(program, "algebraic", random.Random(name), Tally(), 15, 3)
    assert finding is None, finding


def test_generated_code_agrees_after_walks():
    """One C file of all last positions, run, against the interpreter on the start programs."""
    pairs = [walked(seed, 14, 0) for seed in range(100, 120)]
    codes = [generate(replace(last, name=f"k{n}"), policy) for n, (_, policy, last) in enumerate(pairs)]
    library = compiled.load("\n".join(code.text for code in codes))
    for (first, policy, last), code in zip(pairs, codes, strict=True):
        inputs = compiled.random_inputs(first)
        got, expected = compiled.run(code, inputs, library), interpret(first, inputs)
        for array in first.outputs:
            want = expected[array].ravel()
            exact = first.buffer_of[array].dtype == "i32"
            close = {"rtol": 0} if exact else {"rtol": 1e-3, "atol": 1e-4 * max(1, np.nanmax(np.abs(want)))}
            have = np.asarray(got[last.buffer_of[array].name], np.float64).ravel()
            np.testing.assert_allclose(have, want, **close, err_msg=f"{policy}\n{first.text}\n{last.text}")
