# ruff: noqa: E501  (an operation and what is wrong with it stand side by side)
"""Dtypes: which mixes are refused, and that every conversion is the interpreter's, bit by bit, in C too."""

import ctypes
import struct

import numpy as np
import pytest

from dojo_core import TextError, parse
from dojo_core.codegen.code import Parameter
from dojo_core.measure.pool import EPSILON, STORED, from_double, make_pool, numbers, to_double, tolerance
from dojo_core.program.arithmetic import rounded
from dojo_core.program.dtypes import (
    ARITHMETIC,
    FLOATS,
    INTEGERS,
    STORAGE,
    STORAGE_FLOATS,
    arithmetic,
    extremes,
    holds,
    inexact_integers,
)
from dojo_core.program.interpret import interpret
from dojo_core.program.target import Target, lanes_of
from dojo_core.program.tree import NUMBER_DTYPES, Program
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.cross import Call
from dojo_core.targets.cpu.limits import cpu, limits_of
from tests.compiled import load, run, run_program
from tests.crossed import run_emulated, with_tools
from tests.test_moves import kernel


def text(x: str, w: str, y: str, operation: str) -> str:
    return kernel(f"4 {operation}", f"x {x} [4] heap\nw {w} [4] heap\ny {y} [4] heap")


@pytest.mark.parametrize(
    ("x", "w", "y", "operation", "message", "remedy"),
    [
        ("i32", "i8", "i8", "y[{0}] = x[{0}]", "x is i32, and i8, the dtype of y, does not hold all its values", "y[{0}] = i8(x[{0}])"),
        ("f32", "f32", "bf16", "y[{0}] = x[{0}]*w[{0}]", "x is f32, and bf16", "bf16(x[{0}])"),
        ("f16", "bf16", "f16", "y[{0}] = x[{0}] + w[{0}]", "w is bf16, and f16", "f16(w[{0}])"),
        ("i32", "f32", "f32", "y[{0}] = x[{0}]*w[{0}]", "x is i32, and f32", "f32(x[{0}])"),
        ("i8", "u8", "i8", "y[{0}] = x[{0}] + w[{0}]", "w is u8, and i8", "i8(w[{0}])"),
        ("i32", "i8", "i8", "y[{0}] += x[{0}]", "x is i32, and i8", "i8(x[{0}])"),
        ("f32", "f32", "i32", "y[{0}] = floor(x[{0}])", "x is f32, and i32", "i32(x[{0}])"),
        ("i32", "i8", "i8", "y[{0}] = i16(x[{0}])", "y is i8, which does not hold every i16", "Convert to i8"),
        ("i32", "i32", "i32", "y[{0}] = sqrt(x[{0}])", "sqrt is a function of floating-point numbers, and y is i32", "Compute it in f32"),
        ("i32", "i32", "i32", "y[{0}] = sin(x[{0}])", "sin is a function of floating-point numbers, and y is i32", "Compute it in f32"),
        ("f32", "f32", "f32", "y[{0}] = and(x[{0}],w[{0}])", "and is a function of integers and of bool, and y is f32", "i[{0}] = i32(x[{0}])"),
        ("i8", "i8", "f16", "y[{0}] = not(x[{0}])", "not is a function of integers and of bool, and y is f16", "Compute it in i32"),
        ("bool", "bool", "bool", "y[{0}] = shl(x[{0}],w[{0}])", "shl is a function of integers, and y is bool", "Compute it in i32"),
        ("f32", "i32", "i32", "y[{0}] = xor(x[{0}],w[{0}])", "x is f32, and i32", "i32(x[{0}])"),
        ("i32", "bool", "bool", "y[{0}] = or(x[{0}],w[{0}])", "x is i32, and bool", "bool(x[{0}])"),
        ("u8", "u8", "u8", "y[{0}] = shr(x[{0}],-1)", "-1 is no value of u8", "from 0 to 255"),
        ("i8", "i8", "i8", "y[{0}] = x[{0}] + 300", "300 is no value of i8", "from -128 to 127"),
        ("u8", "u8", "u8", "y[{0}] = x[{0}]*(-1)", "-1 is no value of u8", "from 0 to 255"),
        ("i8", "i8", "i8", "y[{0}] = x[{0}]*2.5", "2.5 is no value of i8", "compute in f32"),
        ("i8", "i8", "i8", "y[{0}] = nan", "nan is no value of i8", "from -128 to 127"),
        ("i64", "f32", "bool", "y[{0}] = x[{0}] < w[{0}]", "i64 and f32 are held by no one dtype", "t[{0}] = f64(x[{0}])"),
        ("u64", "i8", "bool", "y[{0}] = x[{0}] < w[{0}]", "u64 and i8 are held by no one dtype", "t[{0}] = i64(x[{0}])"),
        ("u64", "f32", "bool", "y[{0}] = x[{0}] < w[{0}]", "u64 and f32 are held by no one dtype", "t[{0}] = f64(x[{0}])"),
        ("u64", "u64", "bool", "y[{0}] = x[{0}] > -1", "u64 and -1 are held by no one dtype", "t[{0}] = i64(x[{0}])"),
        ("u64", "u64", "bool", "y[{0}] = x[{0}] == 3-{0}", "u64 and i64 are held by no one dtype", "t[{0}] = i64(x[{0}])"),
        ("u64", "u64", "bool", "y[{0}] = x[{0}] - w[{0}]", "x is u64, and bool", "bool(x[{0}])"),
        ("u32", "i8", "i32", "y[{0}] = x[{0}] + w[{0}]", "x is u32, and i32", "i32(x[{0}])"),
        ("u64", "f64", "f64", "y[{0}] = x[{0}]*w[{0}]", "x is u64, and f64", "f64(x[{0}])"),
        ("u16", "u16", "u16", "y[{0}] = x[{0}]*65536", "65536 is no value of u16", "from 0 to 65535"),
        ("u64", "u64", "u64", "y[{0}] = x[{0}] + 18446744073709551616", "18446744073709551616 is no value of u64", "from 0 to 18446744073709551615"),
        ("u16", "u16", "u16", "y[{0}] = {0}*30000", "{0}*30000 goes beyond u16, whose values are 0 to 65535", "wider dtype"),
        ("u64", "u64", "u64", "y[{0}] = {0}-1", "{0}-1 goes beyond u64", "wider dtype"),
        ("f32", "f32", "bool", "y[{0}] = x[{0}] + w[{0}]", "x is f32, and bool", "bool(x[{0}])"),
    ],
)  # fmt: skip
def test_a_mix_that_would_lose_something_is_refused(x, w, y, operation, message, remedy):
    with pytest.raises(TextError) as raised:
        parse(text(x, w, y, operation))
    assert message in raised.value.message
    assert remedy in raised.value.remedy
    assert raised.value.source[raised.value.column - 1 :] in operation


@pytest.mark.parametrize(
    ("x", "w", "y", "operation"),
    [
        ("u8", "i8", "i32", "y[{0}] += x[{0}]*w[{0}]"),
        ("bf16", "bf16", "f32", "y[{0}] += x[{0}]*w[{0}]"),
        ("bf16", "i8", "f32", "y[{0}] = x[{0}]*w[{0}]"),
        ("f32", "i8", "f16", "y[{0}] = f16(x[{0}])"),
        ("f64", "i8", "i32", "y[{0}] = i16(x[{0}])"),
        ("i8", "i8", "i8", "y[{0}] = -inf"),
        ("f32", "i8", "bool", "y[{0}] = x[{0}] < w[{0}]"),
        ("i32", "f32", "f32", "y[{0}] = select(x[{0}],w[{0}],2.5)"),
        ("i64", "i64", "i64", "y[{0}] = x[{0}]*{0}"),
        ("u8", "i8", "i32", "y[{0}] = shl(x[{0}],w[{0}])"),
        ("bool", "bool", "bool", "y[{0}] = and(x[{0}],w[{0}])"),
        ("f16", "f32", "bool", "y[{0}] = isnan(x[{0}])"),
        ("i32", "f32", "f32", "y[{0}] = isinf(x[{0}])"),
        ("u8", "u32", "u64", "y[{0}] += x[{0}]*w[{0}]"),
        ("u64", "u64", "u64", "y[{0}] = x[{0}] + 18446744073709551615"),
        ("u64", "u32", "bool", "y[{0}] = x[{0}] <= w[{0}]"),
        ("u64", "u32", "bool", "y[{0}] = x[{0}] == {0}*3+1"),
        ("u32", "i32", "bool", "y[{0}] = x[{0}] < w[{0}]"),
        ("u64", "u64", "bool", "y[{0}] = select(w[{0}],0,1)"),
    ],
)
def test_a_mix_that_loses_nothing_is_a_program(x, w, y, operation):
    program = parse(text(x, w, y, operation))
    assert parse(program.text) == program


HELD = {
    "bool": "bool", "i8": "bool i8", "i16": "bool u8 i8 i16", "i32": "bool u8 u16 i8 i16 i32",
    "i64": "bool u8 u16 u32 i8 i16 i32 i64", "u8": "bool u8", "u16": "bool u8 u16", "u32": "bool u8 u16 u32",
    "u64": "bool u8 u16 u32 u64", "f16": "bool u8 i8 f16", "bf16": "bool u8 i8 bf16",
    "f32": "bool u8 u16 i8 i16 f16 bf16 f32", "f64": "bool u8 u16 u32 i8 i16 i32 f16 bf16 f32 f64",
}  # fmt: skip
FEW = "u2 u4 i2 i4"
HELD |= {wide: f"{HELD[wide]} {FEW}" for wide in HELD if wide in FLOATS or wide[0] == "i"}
HELD |= {wide: f"{HELD[wide]} u2 u4" for wide in HELD if wide[0] == "u"}
HELD |= {wide: " ".join([HELD[wide], *STORAGE_FLOATS]) for wide in FLOATS}
HELD["f16"] = HELD["f16"].replace("f8e8m0fnu", "")
HELD |= {dtype: dtype for dtype in STORAGE}


def test_what_holds_what():
    assert {w: {n for n in NUMBER_DTYPES if holds(w, n)} for w in NUMBER_DTYPES} == {
        wide: set(held.split()) for wide, held in HELD.items()
    }
    every = np.arange(-128, 256)
    for dtype in ("f16", "bf16"):
        np.testing.assert_array_equal(rounded(every, dtype), every)
        assert rounded(np.array(2**12 + 1), dtype) != 2**12 + 1


# ---------------------------------------------------------------------------- every conversion

INTERESTING = np.array(
    [0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 126.5, 127, 127.9, 128, -128.9, -129, 200.7, 255, 255.9, 256, 1e-7, 32767, 32768,
     -32769, 65504, 65519, 65520, 1e5, 2147483520.0, 2147483647.0, 2147483648.0, -2147483648.0, -2147483904.0, 3e9,
     9.2e18, 9.3e18, -9.3e18, 1e39, -1e39, 3.3895e38, 3.4e38, 1e-40, 6e-8, 2.9e-8, 1.00390625, 1.01171875, 1.0004883, 1.0014648,
     np.inf, -np.inf, np.nan, 16777217.0, 0.1]
)  # fmt: skip


def values(dtype: str) -> np.ndarray:
    """Numbers of a dtype, as they are stored: the extremes, ties, and many at random."""
    rng = np.random.default_rng(5)
    if dtype in STORAGE:  # each code, under other bits where it has fewer than eight
        return np.arange(256, dtype=np.uint8).view(STORED[dtype])
    if dtype in FLOATS:
        anywhere = rng.standard_normal(80) * 10.0 ** rng.integers(-9, 12, 80)
        with np.errstate(over="ignore"):
            return from_double(np.concatenate([INTERESTING, anywhere]), dtype)
    least, most = extremes(dtype)
    edges = [
        v for v in (least, least + 1, -1, 0, 1, most - 1, most, 2**24 + 1, 2**53 + 1) if least <= v <= most
    ]
    some = rng.integers(least, most, 128 - len(edges), STORED[dtype], endpoint=True)
    return np.concatenate([np.array(edges, STORED[dtype]), some])


def conversions(target: Target, share: int) -> list[tuple[Program, str]]:
    """Every dtype to every other, or one in a ``share`` of these pairs, so that each dtype is read and written
    as often; scalars, and vectors of each legal number of lanes; with what is read."""
    programs = []
    for row, have in enumerate(NUMBER_DTYPES):
        count = len(values(have)) // 64 * 64
        for want in list(NUMBER_DTYPES)[row % share :: share]:
            for lanes in (1, *lanes_of([want, have], target)):
                body = f"{count} y[{{0}}] = {want}(x[{{0}}])"
                if lanes > 1:
                    cell = f"{{0}}*{lanes}+{{1}}"
                    body = f"{count // lanes} {lanes}:v y[{cell}] = {want}(x[{cell}])"
                buffers = f"x {have} [{count}] heap\ny {want} [{count}] heap"
                number = len(programs)
                programs.append((parse(f"kernel k{number}\nin x\nout y\n{buffers}\n{body}\n"), have))
    scalars = len(NUMBER_DTYPES) ** 2 / share
    assert len(programs) >= 1.5 * scalars  # vectors of 16 bytes: bool has none, and f64 and f16 none together
    return programs


SHARES = [9, pytest.param(1, marks=pytest.mark.soak)]


def converted_as_meant(program: Program, have: str, got: np.ndarray) -> None:
    x = numbers(values(have)[: program.buffer_of["x"].dims[0].size], have)
    expected, want = interpret(program, {"x": x})["y"], program.buffer_of["y"].dtype
    with np.errstate(over="ignore"):
        expected = rounded(expected, want) if want in FLOATS else expected
    np.testing.assert_array_equal(got.astype(expected.dtype), expected, err_msg=program.text)


@pytest.mark.parametrize("share", SHARES)
def test_every_conversion_is_the_same_in_c_as_in_the_interpreter(share):
    """The same bits."""
    programs = conversions(cpu(), share)
    codes = [generate(program) for program, _ in programs]
    library = load("\n".join(code.text for code in codes))
    for code, (program, have) in zip(codes, programs, strict=True):
        x = numbers(values(have)[: program.buffer_of["x"].dims[0].size], have)
        converted_as_meant(program, have, run(code, {"x": x}, library)["y"])


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("armv8-a", 8),
        ("rv64gcv-128", 8),
        *(pytest.param(n, 1, marks=pytest.mark.soak) for n in ("armv8-a", "rv64gcv-128", "rv64gcv-256")),
    ],
)
def test_every_conversion_is_the_same_on_other_processors(name, share):
    processor = with_tools(name)
    programs = conversions(limits_of(processor), share)
    codes = [generate(program, processor=processor) for program, _ in programs]
    calls = [
        Call(number, {"x": values(have)[: program.buffer_of["x"].dims[0].size]})
        for number, (program, have) in enumerate(programs)
    ]
    results = run_emulated(codes, calls, processor)
    for got, (program, have) in zip(results, programs, strict=True):
        y, want = got["y"], program.buffer_of["y"].dtype
        converted_as_meant(program, have, to_double(y, want) if want in ("bf16", *STORAGE) else y)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_every_half_is_read_and_written_as_it_is(dtype):
    """All 65536 patterns through f32 and back, scalar and in vectors."""
    bits = np.arange(65536, dtype=np.uint16)
    lanes = cpu().vector_widths[dtype][0]
    plain = "65536 t[{0}] = f32(x[{0}])\n65536 y[{0}] = DTYPE(t[{0}])"
    vectors = f"{65536 // lanes} {lanes}:v t[{{0}}*{lanes}+{{1}}] = f32(x[{{0}}*{lanes}+{{1}}])\n"
    vectors += f"{65536 // lanes} {lanes}:v y[{{0}}*{lanes}+{{1}}] = DTYPE(t[{{0}}*{lanes}+{{1}}])"
    for body in (plain, vectors):
        buffers = "x DTYPE [65536] heap\ny DTYPE [65536] heap\nt f32 [65536] heap"
        code = generate(parse(kernel(body, buffers).replace("DTYPE", dtype)))
        x, y, space = bits.copy(), np.zeros_like(bits), np.zeros(65536, np.float32)
        pointers = (ctypes.c_void_p * 2)(x.ctypes.data, y.ctypes.data)
        load(code.text)[code.symbol](pointers, ctypes.c_void_p(space.ctypes.data))
        nan = np.isnan(to_double(bits.view(STORED[dtype]), dtype))
        np.testing.assert_array_equal(y[~nan], bits[~nan])
        assert np.isnan(to_double(y[nan].view(STORED[dtype]), dtype)).all()


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (1.0, 0x3F80), (1.00390625, 0x3F80), (1.01171875, 0x3F82),  # ties to even, down and up
        (1.0039064, 0x3F81), (3.3895313892515355e38, 0x7F7F), (3.4e38, 0x7F80), (float("nan"), 0x7FC0), (1e-40, 0x0001),
    ],
)  # fmt: skip
def test_bf16_is_the_upper_half_of_f32_to_nearest_even(value, stored):
    assert from_double(np.array([value]), "bf16") == [stored]
    if stored != 0x7FC0:
        (single,) = struct.unpack("<f", struct.pack("<I", stored << 16))
        assert to_double(np.array([stored], np.uint16), "bf16") == [single]


def test_arithmetic_in_halves_is_rounded_once_per_operation():
    x = np.array([1.0, 0.1, 3.0, 65000.0])
    for dtype in ("f16", "bf16"):
        program = parse(text(dtype, dtype, dtype, "y[{0}] = x[{0}]*w[{0}]\n| y[{0}] += x[{0}]"))
        x_held = rounded(x, dtype)
        wanted = rounded(rounded(x_held * x_held, dtype) + x_held, dtype)
        inputs = {"x": x_held, "w": x_held}
        np.testing.assert_array_equal(interpret(program, inputs)["y"], wanted)
        np.testing.assert_array_equal(run(generate(program), inputs)["y"].astype(float), wanted)


# ---------------------------------------------------------------------------- verification

QUANTISE = """\
kernel q
in x, w
out y
x i32 [40, 8] heap
w f32 [8] heap
y i8 [40, 8] heap
f f32 [40, 8] heap
g f32 [40, 8] heap
h f32 [40, 8] heap
40 8 f[{0},{1}] = f32(x[{0},{1}])
40 8 g[{0},{1}] = f[{0},{1}]*w[{1}]
40 8 h[{0},{1}] = round(g[{0},{1}])
40 8 y[{0},{1}] = i8(h[{0},{1}])
"""


def test_floats_on_the_way_to_integers_are_rounded_in_the_reference():
    program = parse(QUANTISE)
    x = np.full((40, 8), 16777217, np.int32)  # no f32: 16777216 is
    w = np.full(8, np.float32(1.5 / 16777216))
    found = interpret(program, {"x": x, "w": w})["y"]
    assert (found == 2).all()  # 1.5, a tie; unrounded it would be above
    np.testing.assert_array_equal(run(generate(program), {"x": x, "w": w})["y"], found)


def test_which_integers_may_be_off_by_one():
    assert inexact_integers(parse(QUANTISE)) == set()
    summed = QUANTISE.replace(
        "40 8 h[{0},{1}] = round(g[{0},{1}])", "40 h[{0},0] = 0\n| 8 h[{0},{1}] += g[{0},{1}]"
    )
    assert inexact_integers(parse(summed)) == {"y"}
    fused = QUANTISE.replace(
        "round(g[{0},{1}])", "g[{0},{1}] + f[{0},{1}]"
    )  # a product and a sum: one instruction
    assert inexact_integers(parse(fused)) == {"y"}
    for function in ("exp(g[{0},{1}])", "g[{0},{1}] / 3"):
        assert inexact_integers(parse(QUANTISE.replace("round(g[{0},{1}])", function))) == {"y"}
    whole = parse(text("u8", "i8", "i32", "y[{0}] += x[{0}]*w[{0}]"))
    assert inexact_integers(whole) == set()


def test_integers_are_exact_or_off_by_one():
    y = Parameter("y", "i8", (3, 8), "out")
    scale = np.array([100.0, 100.0, 100.0])
    np.testing.assert_array_equal(tolerance(y, np.zeros(3), scale, None), [0, 0, 0])
    np.testing.assert_array_equal(tolerance(y, np.array([0, 1.0, 0]), scale, None, True), [1, 1, 1])
    for own, inexact in ((1.0, False), (2.0, True)):
        with pytest.raises(ValueError, match="the start program's y is off by"):
            tolerance(y, np.array([0, own, 0]), scale, None, inexact)


@pytest.mark.parametrize("dtype", NUMBER_DTYPES)
def test_inputs_reach_the_extremes_of_their_dtype(dtype):
    program = parse(
        f"kernel k\nin x\nout y\nx {dtype} [400, 8] heap\ny {dtype} [400, 8] heap\n400 8 y[{{0}},{{1}}] = x[{{0}},{{1}}]\n"
    )
    pool = make_pool(program, generate(program).parameters, seed=1)
    x = to_double(pool.inputs["x"], dtype)
    np.testing.assert_array_equal(x, pool.references["y"])
    if dtype in INTEGERS:
        assert (x.min(), x.max()) == tuple(map(float, extremes(dtype)))
        assert len(pool.adversarial["x"]) == 4
    elif dtype in EPSILON:
        assert np.isnan(x).any() and np.isinf(x).any() and (np.abs(x[np.isfinite(x)]) > 90).any()
    elif dtype in STORAGE:
        every = to_double(np.arange(256, dtype=np.uint8), dtype)
        every = every[np.isfinite(every)]
        assert (x.min(), x.max()) == (every.min(), every.max())
    assert pool.inputs["x"].dtype == STORED[dtype]
    if dtype in ARITHMETIC:
        assert arithmetic(dtype) == ("f32" if dtype in ("f16", "bf16") else dtype)


def test_a_literal_beside_what_becomes_an_integer_is_rounded_as_the_code_rounds_it():
    text = (
        "kernel k\nin x\nout y\nx u8 [120] heap\ny i8 [120] heap\nr f32 [120] heap\n"
        "120 r[{0}] = x[{0}]*0.53\n120 y[{0}] = i8(r[{0}])\n"
    )
    program, inputs = parse(text), {"x": np.arange(120, dtype=np.uint8)}
    np.testing.assert_array_equal(interpret(program, inputs)["y"], run_program(program, inputs)["y"])
