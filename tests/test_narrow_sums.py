"""Sums of f16 and bf16 are rounded after every term; how sums are judged that rounding moves far."""

import itertools

import numpy as np
import pytest

from dojo_core import apply, parse
from dojo_core.codegen.code import Parameter
from dojo_core.measure.pool import Pool, make_pool, reach, to_double
from dojo_core.program.arithmetic import folded, rounded
from dojo_core.program.interpret import interpret
from dojo_core.program.physical import interpret_physical
from dojo_core.targets.cpu.codegen import generate
from tests.compiled import run_program
from tests.thorough import covering

ORDERED = {
    "stalls": ("y DTYPE [] heap", "y[] = 0\n4096 y[] += 1", 2048.0),
    "begins elsewhere": ("y DTYPE [4] heap", "4 y[{0}] = x[{0},0]\n| 63 y[{0}] += x[{0},{1}+1]", None),
    "of products": ("y DTYPE [4] heap", "4 y[{0}] = 0\n4 64 y[{0}] += x[{0},{1}]*x[{0},-{1}+63]", None),
    "of columns": ("y DTYPE [64] heap", "64 y[{0}] = 0\n4 64 y[{1}] += x[{0},{1}]", None),
    "a product": ("y DTYPE [4] heap", "4 y[{0}] = 1\n4 64 y[{0}] *= x[{0},{1}]", None),
    "guarded": ("y DTYPE [4] heap", "4 y[{0}] = 0\n4 64 y[{0}] += x[{0},{1}] if {0}*9+{1} >= 20", None),
    "shared cells": ("y DTYPE [67] heap", "67 y[{0}] = 0\n4 64 y[{0}+{1}] += x[{0},{1}]", None),
    "reversed": ("y DTYPE [67] heap", "67 y[{0}] = 0\n4 64 y[{0}-{1}+63] += x[{0},{1}]", None),
    "two in turn": ("y DTYPE [] heap", "y[] = 0\n64 y[] += x[0,{0}]\n| y[] += x[1,{0}]", None),
    "a difference": ("y DTYPE [] heap", "y[] = 100\n4 64 y[] += -x[{0},{1}]", None),
    "an iterator": ("y DTYPE [2] heap", "2 y[{0}] = 0\n2 64 y[{0}] += {0}*3+{1}", None),
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "case"), covering(itertools.product(["f16", "bf16"], ORDERED)))
def test_a_sum_of_halves_is_rounded_after_every_term(dtype, case):
    buffers, body, value = ORDERED[case]
    text = f"kernel k\nin x\nout y\nx DTYPE [4, 64] heap\n{buffers}\n{body}\n".replace("DTYPE", dtype)
    program = parse(text)
    x = rounded(np.random.default_rng(8).standard_normal((4, 64)) + 1, dtype)
    x[3, :2] = 0.0, -0.0
    y = interpret(program, {"x": x})["y"]
    np.testing.assert_array_equal(interpret_physical(program, {"x": x})["y"], y)
    np.testing.assert_array_equal(run_program(program, {"x": x}, "strict")["y"].astype(float), y)
    if value is not None:
        assert y == (value if dtype == "f16" else 256)
    else:
        assert (y != interpret(program, {"x": x}, each_write=False)["y"]).any()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("cells", [1, 3, 100])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_few_cells_and_many_are_summed_alike(dtype, cells):
    """Also where a sum becomes infinite, or NaN; negative zeros stay."""
    rng = np.random.default_rng(3)
    terms = rounded(rng.standard_normal((200, cells)) * 8, dtype)
    terms[5, 0] = np.inf if dtype == "bf16" else 65504
    terms[6, -1] = 65504
    terms[90, 0] = -np.inf
    for operator in ("+", "*"):
        start = rounded(rng.standard_normal(cells), dtype)
        wide = folded(operator, np.tile(start, 100), np.tile(terms, 100), dtype)
        np.testing.assert_array_equal(folded(operator, start, terms, dtype), wide[:cells])
    zeros = np.full((4, cells), -0.0)
    assert np.signbit(folded("+", zeros[0], zeros, dtype)).all()


SUM = """\
kernel k
in x
out y
domain x 1 1.01
x bf16 [64, 4096] heap
y bf16 [64] heap
64 y[{0}] = 0
| 4096 y[{0}] += x[{0},{1}]
"""


def judged(start, program, policy: str):
    """What a program is off by, and may be, row by row."""
    code = generate(start)
    pool = make_pool(start, code.parameters, seed=1)
    (y,) = (p for p in code.parameters if p.role == "out")
    inputs = {k: to_double(v, "bf16") if v.dtype == np.uint16 else v for k, v in pool.inputs.items()}
    scale = np.abs(pool.references["y"])
    own, off = (np.abs(run_program(p, inputs)["y"] - pool.references["y"]) for p in (start, program))
    return off, pool.tolerance(y, own, scale, policy)


def test_a_sum_of_halves_in_another_order_is_right_where_the_policy_lets_it_be():
    start = program = parse(SUM)
    for move in ("split_scope y#1@1 4", "split_reduction y#1@2 p", "vectorize p#1@2"):
        program = apply(program, move)
    off, allowed = judged(start, start, "strict")
    assert (off == 0).all() and np.isfinite(allowed).all()
    off, allowed = judged(start, program, "strict")
    assert (off > allowed).mean() > 0.9  # a row at the edge of its domain may be on either side of a rounding
    off, allowed = judged(start, program, "reassoc")
    assert (off > 256).all() and (off <= allowed).all()


LARGE_INTEGERS = """\
kernel k
in x
out y
domain x 0 1000
x f32 [16, 4096] heap
s f32 [16] heap
y i32 [16] heap
16 s[{0}] = 0
| 4096 s[{0}] += x[{0},{1}]
16 y[{0}] = i32(s[{0}])
"""


def test_a_start_program_is_not_wrong_for_what_rounding_makes_of_it():
    """A sum of seven digits and more as an integer; and one of f32 so long that it comes to a standstill."""
    start = parse(LARGE_INTEGERS)
    off, allowed = judged(start, start, "reassoc")
    assert off.max() > 1 and (off <= allowed).all() and (allowed < 100).all()
    y = Parameter("y", "f32", (), "out")
    own, scale = np.array([1.6e10]), np.array([3.3e10])
    for terms, wrong in ((2**26, False), (2**12, True)):
        long = parse(
            f"kernel k\nin x\nout y\nx f32 [{terms}] heap\ny f32 [] heap\ny[] = 0\n{terms} y[] += x[{{0}}]\n"
        )
        pool = Pool({}, {}, {}, reach={"y": np.asarray(reach(long, "f32"))})
        if wrong:
            with pytest.raises(ValueError, match="is off by"):
                pool.tolerance(y, own, scale, "reassoc")
        else:
            assert (pool.tolerance(y, own, scale, "reassoc") > own).all()
