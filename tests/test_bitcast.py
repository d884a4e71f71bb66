"""Bitcasts: the bits of a number as another dtype of the same size, as NumPy's ``view`` has them."""

from itertools import permutations

import numpy as np
import pytest

from dojo_core import TextError, parse, why
from dojo_core.codegen.code import NotGeneratable
from dojo_core.measure.pool import STORED, from_double, to_double
from dojo_core.moves.examples import WIDE
from dojo_core.program.dtypes import FLOATS, bitcast_dtypes
from dojo_core.program.interpret import interpret
from dojo_core.program.target import lanes_of
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.limits import cpu
from dojo_core.targets.gpu.codegen import generate as generate_gpu
from dojo_core.targets.snitch.codegen import generate as generate_snitch
from tests.compiled import load, run
from tests.emulated import emulate
from tests.test_moves import kernel

PAIRS = [pair for dtypes in bitcast_dtypes().values() for pair in permutations(dtypes, 2)]


def cast(have: str, want: str, lanes: int = 1) -> Program:
    at, scopes = ("{0}", "64") if lanes == 1 else (f"{{0}}*{lanes}+{{1}}", f"{64 // lanes} {lanes}:v")
    buffers = f"x {have} [64] heap\ny {want} [64] heap"
    text = kernel(f"{scopes} y[{at}] = bitcast(x[{at}])", buffers)
    return parse(text.replace("kernel k", f"kernel {want}_of_{have}_{lanes}"))


def numbers(have: str) -> np.ndarray:
    """Numbers as they are stored; of floating-point ones, no NaN, whose bits are not promised."""
    if have in FLOATS:
        some = [0.0, -0.0, 1, -1.5, 2.0**-14, 60000, np.inf, -np.inf]
        return np.resize(from_double(np.array(some), have), 64)
    least, most = np.iinfo(STORED[have]).min, np.iinfo(STORED[have]).max
    return np.resize(
        np.array([0, 1, 2, 3, most // 4, most // 4 + 1, least // 4, most // 5], STORED[have]), 64
    )


def test_c_the_interpreter_and_numpy_agree_in_every_width():
    programs = [(h, w, cast(h, w, n)) for h, w in PAIRS for n in (1, *lanes_of([h, w], cpu())[:1])]
    codes = [generate(p) for _, _, p in programs]
    library = load("\n".join(code.text for code in codes))
    for (have, want, program), code in zip(programs, codes, strict=True):
        stored = numbers(have)
        x = to_double(stored, have) if have in FLOATS else stored
        view = stored.view(STORED[want])
        meant = to_double(view, want) if want in FLOATS else view
        np.testing.assert_array_equal(interpret(program, {"x": x})["y"], meant, program.name)
        given = {"x": x if have == "bf16" else stored}
        np.testing.assert_array_equal(np.asarray(run(code, given, library)["y"], float), meant.astype(float))


@pytest.mark.parametrize(("have", "want"), [("f32", "u32"), ("i64", "f64")])
def test_a_gpu_has_the_same_bits(have, want):
    stored = numbers(have)
    got, fault = emulate(generate_gpu(cast(have, want), "strict", "cuda"), {"x": stored})
    assert not fault
    np.testing.assert_array_equal(got["y"], stored.view(STORED[want]))


@pytest.mark.parametrize(
    ("x", "y", "line", "message", "remedy"),
    [
        ("f32", "i64", "8 y[{0}] = bitcast(x[{0}])", "x is f32, whose bits are none of i64", "i32, u32"),
        ("f32", "f32", "8 y[{0}] = bitcast(x[{0}])", "x is f32, whose bits are none of f32", "i32, u32"),
        ("u8", "f8e5m2", "8 y[{0}] = bitcast(x[{0}])", "u8, whose bits are none of f8e5m2", "bits of i8"),
        ("bool", "u8", "8 y[{0}] = bitcast(x[{0}])", "x is bool, whose bits", "16 bits and more"),
        ("f32", "i32", "8 y[{0}] = bitcast(1)", "takes an element of an array, not 1", "line before"),
        ("f32", "i32", "8 y[{0}] = bitcast({0})", "takes an element of an array, not {0}", "line before"),
        ("f32", "i32", "8 y[{0}] += bitcast(x[{0}])", "is a line of its own", "and then += that"),
    ],
)
def test_what_has_no_such_bits_is_refused(x, y, line, message, remedy):
    with pytest.raises(TextError) as raised:
        parse(kernel(line, f"x {x} [8] heap\ny {y} [8] heap"))
    assert message in raised.value.message and remedy in raised.value.remedy


def test_a_number_does_not_take_the_place_of_an_element_whose_bits_are_seen():
    buffers = "y i32 [8] heap\nt f32 [8] heap"
    program = parse(kernel("8 t[{0}] = 1\n8 y[{0}] = bitcast(t[{0}])", "x f32 [8] heap\n" + buffers))
    assert not why(program, "forward y t", WIDE).legal


def test_snitch_has_no_bitcasts_and_says_so():
    with pytest.raises(NotGeneratable, match="Snitch"):
        generate_snitch(cast("f64", "i64"))
