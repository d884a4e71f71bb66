"""What is only stored: numbers of eight bits and fewer beside ml_dtypes, which ONNX's reference is made of.

Every code is read, and numbers are converted that lie on, beside and between the codes: the upper halves of
all f32 with the lower ones that a rounding may hang on, and all f16. The suite takes a share of these.
"""

import ctypes

import ml_dtypes
import numpy as np
import pytest

from dojo_core import TextError, apply, parse
from dojo_core.export.kernel import C_TYPES
from dojo_core.measure.pool import STORED, make_pool, numbers, to_double
from dojo_core.program.dtypes import (
    NUMPY_TYPES,
    STORAGE,
    STORAGE_FLOATS,
    STORAGE_INTEGERS,
    UNSIGNED,
    extremes,
    inexact_integers,
)
from dojo_core.program.interpret import interpret
from dojo_core.program.minifloats import MINIFLOATS, minifloat_codes, minifloat_values
from dojo_core.program.physical import interpret_physical
from dojo_core.program.target import lanes_of
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.limits import cpu
from tests.compiled import aligned, load, run_program
from tests.emulated import code_of, emulate
from tests.test_moves import kernel

THEIRS = {dtype: np.dtype(getattr(ml_dtypes, NUMPY_TYPES[dtype])) for dtype in STORAGE}
SHARES = [64, pytest.param(1, marks=pytest.mark.soak)]


def every_f16() -> np.ndarray:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def every_f32(share: int) -> np.ndarray:
    """f32 by their upper halves, one in a ``share``, more where codes are dense; six lower halves each."""
    upper = np.arange(1 << 16, dtype=np.uint32)
    dense = (upper & 0x7FFF >= 0x3700) & (upper & 0x7FFF < 0x4800)
    upper = upper[(upper % share == 0) | (dense & (upper % max(1, share // 16) == 0))]
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return (upper[:, None] << np.uint32(16) | lower).ravel().view(np.float32)


def inputs(share: int) -> np.ndarray:
    """A multiple of 64 of them."""
    with np.errstate(invalid="ignore"):
        single = np.concatenate([every_f32(share), every_f16()[::share].astype(np.float32)])
    return np.resize(single, -(-single.size // 64) * 64)


def theirs(x: np.ndarray, dtype: str) -> np.ndarray:
    """ONNX's conversion with saturation, as its reference has it: bits. NaN has no sign here."""
    if dtype == "f8e8m0fnu":
        return power_of_two(x)
    if dtype in STORAGE_INTEGERS:
        least, most = extremes(dtype)
        whole = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0)  # where ml_dtypes wraps around
        return np.clip(whole, least, most).astype(STORED[dtype])
    form = ml_dtypes.finfo(THEIRS[dtype])
    with np.errstate(all="ignore"):
        inside = np.clip(x, np.float32(form.min), np.float32(form.max))
        return np.where(np.isnan(x), np.float32(np.nan), inside).astype(THEIRS[dtype]).view(np.uint8)


def power_of_two(x: np.ndarray) -> np.ndarray:
    """The next one that is not below, and NaN of negative numbers, where ONNX leaves it open."""
    with np.errstate(all="ignore"):
        up = np.clip(np.exp2(np.ceil(np.log2(x.astype(np.float64)))), 2.0**-127, 2.0**127)
    codes = np.where(x == 0, np.float32(2.0**-127), up).astype(np.float32).astype(THEIRS["f8e8m0fnu"])
    return codes.view(np.uint8)


def read_by_them(codes: np.ndarray, dtype: str) -> np.ndarray:
    kind = THEIRS[dtype]
    return np.ascontiguousarray(codes).view(np.uint8).view(kind).astype(np.float32)


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """The same bits, or both NaN."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return bool((((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))).all())


def every_code(dtype: str) -> np.ndarray:
    """Of its own bits, as ml_dtypes takes them."""
    if dtype in STORAGE_INTEGERS:
        least, most = extremes(dtype)
        return np.arange(least, most + 1).astype(STORED[dtype])
    form = MINIFLOATS[dtype]
    return np.arange(2 * getattr(form, "sign", 128), dtype=np.uint8)


@pytest.mark.parametrize("dtype", STORAGE)
def test_every_code_is_the_number_that_ml_dtypes_has(dtype):
    codes = every_code(dtype)
    wanted, x = read_by_them(codes, dtype), numbers(codes, dtype)
    assert alike(to_double(codes, dtype), wanted)
    buffers = f"x {dtype} [{codes.size}] heap\ny f32 [{codes.size}] heap"
    program = parse(kernel(f"{codes.size} y[{{0}}] = x[{{0}}]", buffers))
    for run in (interpret, interpret_physical, run_program):
        assert alike(run(program, {"x": x})["y"], wanted)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("dtype", STORAGE_FLOATS)
def test_numbers_become_the_codes_that_onnx_has(dtype, share):
    x = inputs(share)
    x = np.where(np.isnan(x), np.float32(np.nan), x)
    np.testing.assert_array_equal(minifloat_codes(x, dtype), theirs(x, dtype))


def c_function(dtype: str, have: str, lanes: int, count: int, number: int) -> str:
    cell, scopes = (
        ("{0}", f"{count}") if lanes == 1 else (f"{{0}}*{lanes}+{{1}}", f"{count // lanes} {lanes}:v")
    )
    return (
        f"kernel k{number}\nin x\nout y\nx {have} [{count}] heap\ny {dtype} [{count}] heap\n"
        f"{scopes} y[{cell}] = {dtype}(x[{cell}])\n"
    )


def bytes_of(library: ctypes.CDLL, symbol: str, x: np.ndarray, kind: type) -> np.ndarray:
    """What a kernel writes, as it is stored."""
    given, y = aligned(x.shape, x.dtype), aligned(x.shape, kind)
    given[...] = x
    pointers = (ctypes.c_void_p * 2)(given.ctypes.data, y.ctypes.data)
    library[symbol](pointers, None)
    return y


@pytest.mark.parametrize("share", SHARES)
def test_c_writes_the_codes_that_onnx_has_in_every_width(share):
    single = inputs(share)
    single = np.where(np.isnan(single), np.float32(np.nan), single)
    with np.errstate(all="ignore"):
        given = {"f32": single, "f16": every_f16()[::share], "f64": single.astype(np.float64)}
    codes, wanted = [], []
    for dtype in STORAGE:
        for have, x in given.items():
            for lanes in (1, *lanes_of([dtype, have], cpu())):
                program = parse(c_function(dtype, have, lanes, x.size, len(codes)))
                codes.append(generate(program))
                wanted.append((dtype, have, lanes, x))
    library = load("\n".join(code.text for code in codes))
    for code, (dtype, have, lanes, x) in zip(codes, wanted, strict=True):
        got = bytes_of(library, code.symbol, x if have != "f16" else x.view(np.uint16), STORED[dtype])
        expected = theirs(np.where(np.isnan(x), x.dtype.type(np.nan), x).astype(np.float32), dtype)
        wrong = np.nonzero(got.view(np.uint8) != expected.view(np.uint8))[0]
        assert not wrong.size, (dtype, have, lanes, x[wrong[:3]], got[wrong[:3]], expected[wrong[:3]])


def test_bits_above_those_that_a_dtype_has_are_passed_over():
    for dtype in ("f6e2m3fn", "f6e3m2fn", "f4e2m1fn", *STORAGE_INTEGERS):
        every = np.arange(256, dtype=np.uint8).view(STORED[dtype])
        bits = int(dtype[1])
        own = (every.view(np.uint8) & ((1 << bits) - 1)).astype(np.uint8)
        if dtype[0] == "i":
            own = np.where(own >> (bits - 1), own | (0xFF << bits & 0xFF), own).astype(np.uint8)
        assert alike(to_double(every, dtype), read_by_them(own, dtype))
        for lanes in (1, *lanes_of([dtype, "f32"], cpu())[:1]):
            code = generate(parse(c_function("f32", dtype, lanes, 256, 0)))
            assert alike(bytes_of(load(code.text), code.symbol, every, np.float32), read_by_them(own, dtype))


def test_integers_wrap_around_in_few_bits_as_in_many():
    for dtype in STORAGE_INTEGERS:
        x = np.arange(-300, 340, dtype=np.int32)
        expected = x.astype(THEIRS[dtype]).astype(np.int32)
        program = parse(
            kernel(f"640 y[{{0}}] = {dtype}(x[{{0}}])", f"x i32 [640] heap\ny {dtype} [640] heap")
        )
        for outputs in (interpret(program, {"x": x}), run_program(program, {"x": x})):
            np.testing.assert_array_equal(outputs["y"], expected)


# ---------------------------------------------------------------------------- in programs


def text(x: str, y: str, operation: str) -> str:
    return kernel(f"4 {operation}", f"x {x} [4] heap\nw f32 [4] heap\ny {y} [4] heap")


@pytest.mark.parametrize(
    ("x", "y", "operation", "message", "remedy"),
    [
        ("f8e5m2", "f8e5m2", "y[{0}] = x[{0}]*x[{0}]",
         "f8e5m2, the dtype of y, is stored and converted, not computed in",
         "Compute in f32, and convert in a line of its own: y[{0}] = f8e5m2(...)."),
        ("i4", "i4", "y[{0}] += x[{0}]", "i4, the dtype of y, is stored and converted", "Compute in i32"),
        ("f32", "f4e2m1fn", "y[{0}] = x[{0}]", "f4e2m1fn, the dtype of y, is", "y[{0}] = f4e2m1fn(...)"),
        ("f8e4m3fn", "f8e5m2", "y[{0}] = x[{0}]", "f8e5m2, the dtype of y, is", "f8e5m2(...)"),
        ("f32", "f8e5m2", "y[{0}] max= f8e5m2(x[{0}])", "f8e5m2, the dtype of y, is", "Compute in f32"),
        ("i4", "i4", "y[{0}] = 8", "i4, the dtype of y, is stored", "i4(...)"),
        ("f8e4m3fn", "f8e4m3fn", "y[{0}] = select(w[{0}],x[{0}],inf)", "f8e4m3fn, the dtype of y", "(...)"),
        ("f8e5m2", "f8e5m2", "y[{0}] = select(x[{0}],w[{0}],x[{0}])", "f8e5m2, the dtype of y", "(...)"),
        ("f8e5m2", "f8e5m2", "y[{0}] = 1.1", "f8e5m2, the dtype of y, is stored", "f8e5m2(...)"),
        ("f8e5m2", "f8e5m2", "y[{0}] = {0}", "f8e5m2, the dtype of y, is stored", "f8e5m2(...)"),
        ("f32", "i4", "y[{0}] = i4(8)", "8 is no value of i4", "from -8 to 7"),
        ("f32", "u2", "y[{0}] = u2({0}+1)", "{0}+1 goes beyond u2, whose values are 0 to 3", "wider"),
        ("f8e8m0fnu", "f16", "y[{0}] = x[{0}]", "x is f8e8m0fnu, and f16", "f16(x[{0}])"),
        ("f8e5m2", "i32", "y[{0}] = x[{0}]", "x is f8e5m2, and i32", "i32(x[{0}])"),
        ("i4", "u8", "y[{0}] = x[{0}]", "x is i4, and u8", "u8(x[{0}])"),
        ("f8e5m2", "f4e2m1fn", "y[{0}] = f8e5m2(x[{0}])", "y is f4e2m1fn, which does not hold every f8e5m2",
         "Convert to f4e2m1fn"),
    ],
)  # fmt: skip
def test_what_is_only_stored_is_not_computed_in(x, y, operation, message, remedy):
    with pytest.raises(TextError) as raised:
        parse(text(x, y, operation))
    assert message in raised.value.message
    assert remedy in raised.value.remedy


SCALED = """\
kernel scaled
in x, w, s
out y, q, c
x u4 [6, 64] heap
w f8e4m3fn [6, 64] heap
s f8e8m0fnu [6] heap
y f32 [6] heap
q f8e5m2 [6, 64] heap
c u4 [6, 64] heap
p f32 [6, 64] heap
t f32 [6, 64] heap
6 64 p[{0},{1}] = x[{0},{1}]*w[{0},{1}]
6 64 t[{0},{1}] = p[{0},{1}]*s[{0}]
6 y[{0}] = 0
6 64 y[{0}] += t[{0},{1}]
6 64 q[{0},{1}] = f8e5m2(t[{0},{1}])
6 64 c[{0},{1}] = x[{0},{1}]
"""


def test_a_product_of_blocks_reads_them_exactly_everywhere():
    program = parse(SCALED)
    assert parse(program.text) == program
    pool = make_pool(program, generate(program).parameters, seed=3)
    given = {name: numbers(array, program.buffer_of[name].dtype) for name, array in pool.inputs.items()}
    meant = interpret(program, given)
    places = [interpret_physical(program, given), run_program(program, given)]
    outputs, fault = emulate(code_of(program), pool.inputs)
    assert not fault
    places.append({n: to_double(v, program.buffer_of[n].dtype) for n, v in outputs.items()})
    vectors, widths = program, cpu().vector_widths
    for array, lanes in (*((name, widths["f32"][0]) for name in "ptq"), ("c", widths["u4"][-1])):
        vectors = apply(vectors, f"split_scope {array}@1 {lanes}")
        vectors = apply(vectors, f"vectorize {array}@2")
    places.append(run_program(vectors, given))
    for got in places:
        for name in ("q", "c"):
            assert alike(got[name], meant[name]), name
        np.testing.assert_allclose(got["y"], meant["y"], rtol=1e-5)


def test_a_copy_keeps_the_bytes_and_an_infinity_that_a_conversion_would_not():
    x = np.array([np.inf, -np.inf, 1.0, np.nan])
    buffers = "x f8e5m2 [4] heap\ny f8e5m2 [4] heap"
    for operation, expected in (("x[{0}]", x), ("f8e5m2(x[{0}])", [57344, -57344, 1, np.nan])):
        program = parse(kernel(f"4 y[{{0}}] = {operation}", buffers))
        for outputs in (interpret(program, {"x": x}), run_program(program, {"x": x})):
            assert alike(outputs["y"], expected)


UNSATURATED = """\
kernel unsaturated
in x
out y
x f32 [12] heap
t DTYPE [12] heap
a bool [12] heap
b bool [12] heap
u DTYPE [12] heap
y DTYPE [12] heap
12 t[{0}] = DTYPE(x[{0}])
12 a[{0}] = x[{0}] >= LEAST
12 b[{0}] = x[{0}] <= -LEAST
12 u[{0}] = select(a[{0}],OVER,t[{0}])
12 y[{0}] = select(b[{0}],UNDER,u[{0}])
"""


@pytest.mark.parametrize(
    ("dtype", "least", "over", "under"),
    [("f8e5m2", "61440", "inf", "-inf"), ("f8e4m3fn", "464.00003", "nan", "nan")],
)
def test_without_saturation_a_choice_stands_behind_a_conversion(dtype, least, over, under):
    """ONNX's ``saturate = 0``: what rounds to more than the greatest number is infinite, or NaN."""
    text = UNSATURATED.replace("DTYPE", dtype).replace("LEAST", least)
    program = parse(text.replace("OVER", over).replace("UNDER", under))
    assert parse(program.text) == program
    x = [np.inf, -np.inf, np.nan, 61439.0, 61440.0, -61440.0, 1e9, -3.0, 448.0, 464.0, 465.0, -480.0]
    single = np.array(x, np.float32)
    with np.errstate(all="ignore"):
        expected = single.astype(THEIRS[dtype]).astype(np.float64)
    outputs, fault = emulate(code_of(program), {"x": single})
    assert not fault
    found = [run(program, {"x": single})["y"] for run in (interpret, interpret_physical, run_program)]
    for got in (*found, to_double(outputs["y"], dtype)):
        assert alike(got, expected)


def test_numbers_that_a_dtype_has_are_copied_in_vectors_too():
    for dtype, number in (("f8e5m2", "-inf"), ("f8e4m3fn", "448"), ("i4", "-8"), ("u2", "3")):
        lanes = cpu().vector_widths[dtype][0]
        at = f"[{{0}}*{lanes}+{{1}}]"
        body = f"2 {lanes}:v y{at} = {number}"
        program = parse(kernel(body, f"x f32 [4] heap\ny {dtype} [{2 * lanes}] heap"))
        x = np.zeros(4)
        for run in (interpret, run_program):
            assert (run(program, {"x": x})["y"] == float(number)).all()


def test_what_hangs_on_the_order_of_a_sum_may_be_a_neighbour():
    assert inexact_integers(parse(SCALED)) == set()
    summed = SCALED.replace("out y, q", "out q").replace("f8e5m2(t[{0},{1}])", "f8e5m2(y[{0}])")
    program = parse(summed)
    assert inexact_integers(program) == {"q"}
    pool = make_pool(program, generate(program).parameters, seed=3)
    q = next(p for p in generate(program).parameters if p.name == "q")
    scale = np.full(6, 8.0)
    np.testing.assert_array_equal(pool.tolerance(q, np.zeros(6), scale, "reassoc"), np.full(6, 2.0))
    c = next(p for p in generate(program).parameters if p.name == "c")
    np.testing.assert_array_equal(pool.tolerance(c, np.zeros(6), scale, "reassoc"), np.zeros(6))


@pytest.mark.parametrize("dtype", [*STORAGE, *UNSIGNED])
def test_the_measuring_process_reads_every_number_as_it_is(dtype):
    native = pytest.importorskip("dojo_native", reason="the native modules are not built: make setup")
    stored = np.random.default_rng(7).permutation(np.arange(512) % 256).astype(np.uint8).view(STORED[dtype])
    buffer = native.Buffer("y", stored.nbytes)
    np.frombuffer(memoryview(buffer), np.uint8)[:] = stored.view(np.uint8)
    meant = to_double(stored, dtype)
    assert native.compare(buffer, dtype, meant, np.zeros(stored.size), 1)["wrong"] == 0
    error, scale = native.row_errors(buffer, dtype, meant, 1)
    assert not error.any() and alike(scale, np.where(np.isfinite(meant), np.abs(meant), 0))
    other = np.where(meant == meant[5], 3 * meant + 5, meant)
    assert (
        native.compare(buffer, dtype, other, np.zeros(stored.size), 1)["wrong"] == (meant == meant[5]).sum()
    )


def test_a_library_names_them_as_ml_dtypes_does():
    for dtype in STORAGE:
        assert THEIRS[dtype].itemsize == 1
        assert C_TYPES[dtype] == ("int8_t" if dtype[0] == "i" else "uint8_t")
    assert minifloat_values(np.array([0x7E]), "f8e4m3fn") == 448
