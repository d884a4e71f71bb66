"""Our own functions against numpy in float64: the whole range, every width, the special values."""

import ctypes
import itertools
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dojo_core.targets.cpu.limits import cpu
from dojo_core.targets.cpu.processor import host, known
from dojo_core.targets.cpu.vecmath import ERROR_BOUNDS, F64_ERROR_BOUND, preamble
from tests.compiled import aligned, load, shared
from tests.thorough import covering

DOCS = Path(__file__).parent.parent / "docs"
UNARY = ("exp", "log", "tanh", "erf", "sigmoid", "sqrt", "rsqrt")
OTHERS = (
    "exp2", "expm1", "log2", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh",
    "acosh", "atanh",
)  # fmt: skip
EXACT = ("abs", "sign", "floor", "ceil", "trunc", "round")


def sigmoid(x):
    z = np.exp(-np.abs(x))
    return np.where(np.isnan(x), x, np.where(x >= 0, 1, z) / (1 + z))


REFERENCES = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": lambda x: np.array([math.erf(v) for v in x]),
    "sigmoid": sigmoid,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "abs": np.abs,
    "floor": np.floor,
    "round": np.rint,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "sign": lambda x: np.where((x == 0) | np.isnan(x), x, np.copysign(1, x)),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    **{name: getattr(np, name) for name in OTHERS if hasattr(np, name)},
}
BINARY = ("max", "min", "fmod")
TYPES = {f"{e}x{w}" if w > 1 else e: (e, w) for e in ("f32", "f64") for w in (1, *cpu().vector_widths[e])}


def functions_of(name: str) -> tuple[str, ...]:
    """Those that are tried in a type: of vectors of f64, in which all are the C library's by lanes, some."""
    some = name.startswith("f64x")
    return (*UNARY, *(("sin",) if some else OTHERS), *EXACT, *BINARY)


@cache
def library() -> ctypes.CDLL:
    """``apply_T_f(x, y, n)`` for every type and function, and the binary and horizontal ones."""
    text = ""
    for name, (element, width) in TYPES.items():
        load_x, step = (f"{name}_load(x + i)", width) if width > 1 else ("x[i]", 1)
        load_y = load_x.replace("x +", "y +").replace("x[", "y[")
        store = f"{name}_store(z + i, v)" if width > 1 else "z[i] = v"
        for function in functions_of(name):
            second = f", {load_y}" if function in BINARY else ""
            text += (
                f"void apply_{name}_{function}(const {element} *x, const {element} *y,"
                f" {element} *z, i64 n) {{\n"
                f"    for (i64 i = 0; i < n; i += {step}) {{\n"
                f"        {name} v = {name}_{function}({load_x}{second});\n        {store};\n    }}\n}}\n"
            )
        if width > 1:
            for function in ("sum", "product", "maximum", "minimum"):
                text += (
                    f"{element} reduce_{name}_{function}(const {element} *x)"
                    f" {{ return {name}_{function}({name}_load(x)); }}\n"
                )
    return load(text)


def apply(name, function, x, y=None):
    count = len(x)
    padded = aligned((-(-count // 64) * 64,), x.dtype)
    padded[:count] = x
    other, result = np.zeros_like(padded), aligned(padded.shape, x.dtype)
    if y is not None:
        other[:count] = y
    call = getattr(library(), f"apply_{name}_{function}")
    call(*(ctypes.c_void_p(a.ctypes.data) for a in (padded, other, result)), ctypes.c_int64(len(padded)))
    return result[:count]


@cache
def arguments(element):
    """Every exponent, both signs, dense where the functions bend, and the special values."""
    rng = np.random.default_rng(1)
    kind, bits = (np.float32, np.uint32) if element == "f32" else (np.float64, np.uint64)
    anywhere = rng.integers(0, np.iinfo(bits).max, 60_000, bits).view(kind)
    dense = [rng.uniform(-r, r, 30_000) for r in (1e-3, 1, 4, 20, 110, 760, 1e5)]
    special = [
        0.0,
        -0.0,
        1,
        -1,
        np.inf,
        -np.inf,
        np.nan,
        88.72283,
        88.73,
        -87.34,
        -103.97,
        -104.1,
        0.5,
        1.5,
        2.5,
    ]
    tiny = [np.finfo(kind).smallest_subnormal, np.finfo(kind).tiny, np.finfo(kind).max]
    return np.concatenate([anywhere, *(d.astype(kind) for d in dense), np.array([*special, *tiny], kind)])


# The widths of what came later are compared with the scalar form below.
SINGLE = [(name, function) for name in ("f32", "f64") for function in OTHERS]


# Every function of each element once, and every width.
FACETS = (lambda row: (row[0].partition("x")[0], row[1]), lambda row: row[0])


@pytest.mark.parametrize(("name", "function"), covering([*itertools.product(TYPES, UNARY), *SINGLE], *FACETS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_stated_bound_holds_everywhere(name, function):
    element = TYPES[name][0]
    x = arguments(element)
    got, expected = apply(name, function, x).astype(np.float64), REFERENCES[function](x.astype(np.float64))
    kind = np.finfo(np.float32 if element == "f32" else np.float64)
    bound = ERROR_BOUNDS[function] if element == "f32" else F64_ERROR_BOUND
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    stored = expected.astype(kind.dtype).astype(np.float64)
    infinite = np.isinf(stored) | np.isinf(got)
    # Where the result overflows, the last finite number is a neighbour of infinity.
    assert np.all((got[infinite] == stored[infinite]) | (np.abs(stored[infinite]) >= kind.max))
    finite = np.isfinite(got) & ~infinite
    error = np.abs(got - expected)[finite]
    denormal = float(kind.smallest_subnormal)
    excess = error - bound * np.abs(expected[finite])
    worst = int(np.argmax(excess))
    assert excess[worst] <= denormal, (x[finite][worst], got[finite][worst], error[worst])


@pytest.mark.parametrize(("name", "function"), covering(itertools.product(TYPES, EXACT), *FACETS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_exact_functions_are_exact(name, function):
    x = arguments(TYPES[name][0])
    got, expected = apply(name, function, x), REFERENCES[function](x)
    np.testing.assert_array_equal(got, expected)
    assert np.array_equal(np.signbit(got), np.signbit(expected)), "zeros keep their signs"


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_remainder_is_exact(name):
    x = arguments(TYPES[name][0])[:20_000]
    y = np.concatenate([x[1:], x[:1]])
    np.testing.assert_array_equal(apply(name, "fmod", x, y), np.fmod(x, y))


def near_quarters() -> np.ndarray:
    """Numbers up to 1e5 next to multiples of pi/2, of which a short pi leaves nothing, and some beyond."""
    multiples = np.arange(1, 63662) * (np.pi / 2)
    near = multiples.astype(np.float32)
    below, above = (np.nextafter(near, np.float32(end)) for end in (0, 1e9))
    beyond = np.array([1e5, 100000.01, 1e6, 16367173 * 2.0**72, 3.4e38], np.float32)
    return np.concatenate([near, below, above, beyond])


@pytest.mark.parametrize("function", ["sin", "cos", "tan"])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_turn_is_reduced_to_the_last_digit(function, sign):
    x = near_quarters() * np.float32(sign)
    expected = REFERENCES[function](x.astype(np.float64))
    for name in ("f32", f"f32x{cpu().vector_widths['f32'][0]}"):
        error = np.abs(apply(name, function, x) - expected)
        assert (error <= ERROR_BOUNDS[function] * np.abs(expected)).all()


@pytest.mark.skipif(not host().is_x86, reason="this machine's compiler makes no code for x86")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bounds_hold_where_a_product_and_a_sum_are_rounded_twice():
    names = ("exp", "log", "tanh", *OTHERS)
    text = preamble(known("x86-64-v2")) + "".join(
        f"void {f}_(const f32 *x, f32 *z, i64 n) {{ for (i64 k = 0; k < n; ++k) z[k] = f32_{f}(x[k]); }}\n"
        for f in names
    )
    twice = shared(text, ["gcc", "-std=gnu11", "-O2", "-march=x86-64", "-w"])
    x = np.concatenate([arguments("f32")[::3], near_quarters()[::2]])
    for function in names:
        got = np.empty_like(x)
        places = [ctypes.c_void_p(array.ctypes.data) for array in (x, got)]
        getattr(twice, f"{function}_")(*places, ctypes.c_int64(len(x)))
        expected = REFERENCES[function](x.astype(np.float64))
        normal = np.isfinite(expected) & (np.abs(expected) > 2e-38) & (np.abs(expected) < 3e38)
        error = np.abs(got[normal] / expected[normal] - 1)
        assert error.max() <= ERROR_BOUNDS[function], function


def test_the_bounds_are_those_that_the_docs_state():
    rows = re.findall(r"^  \| ([\d.]+e-7) \| (.*) \|$", (DOCS / "promises.md").read_text(), re.MULTILINE)
    stated = {name: float(bound) for bound, names in rows for name in re.findall(r"\w+", names)}
    assert stated.keys() == ERROR_BOUNDS.keys() - {"sqrt"}
    assert all(ERROR_BOUNDS[name] <= bound for name, bound in stated.items())


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_limits_of_functions_are_those_of_mathematics(element):
    kind = np.float32 if element == "f32" else np.float64
    at = {
        "sin": "0 0 -0 -0 inf nan -inf nan nan nan",
        "cos": "0 1 inf nan -inf nan nan nan",
        "tan": "0 0 -0 -0 inf nan nan nan",
        "asin": "0 0 -0 -0 1.5 nan nan nan",
        "acos": "1 0 -1.5 nan inf nan nan nan",
        "atan": "0 0 -0 -0 nan nan",
        "sinh": "0 0 -0 -0 inf inf -inf -inf nan nan",
        "cosh": "0 1 -0 1 inf inf -inf inf nan nan",
        "asinh": "0 0 -0 -0 inf inf -inf -inf nan nan",
        "acosh": "1 0 0.5 nan -2 nan -inf nan inf inf nan nan",
        "atanh": "0 0 -0 -0 1 inf -1 -inf 1.5 nan inf nan nan nan",
        "exp2": "-inf 0 10 1024 -3 0.125 2000 inf inf inf nan nan",
        "expm1": "0 0 -0 -0 -inf -1 inf inf nan nan",
        "log2": "1 0 8 3 0 -inf -0 -inf -1 nan inf inf nan nan",
        "log1p": "0 0 -0 -0 -1 -inf -2 nan inf inf nan nan",
    }
    for name in (name for name, (own, _) in TYPES.items() if own == element):
        for function, pairs in ((f, at[f]) for f in functions_of(name) if f in at):
            x, expected = np.array([float(word) for word in pairs.split()], kind).reshape(-1, 2).T
            got = apply(name, function, x)
            np.testing.assert_array_equal(got, expected, f"{name} {function}")
            ordinary = ~np.isnan(expected)
            assert np.array_equal(np.signbit(got)[ordinary], np.signbit(expected)[ordinary]), (name, function)


@pytest.mark.parametrize(
    ("element", "function"), covering(itertools.product(["f32", "f64"], [*UNARY, *OTHERS, *EXACT]))
)
def test_every_width_gives_the_same_bits(element, function):
    x = arguments(element)
    x = x[~np.isnan(x)]
    scalar = apply(element, function, x)
    for name, (own, width) in TYPES.items():
        if own == element and width > 1 and function in functions_of(name):
            np.testing.assert_array_equal(apply(name, function, x), scalar)


@pytest.mark.parametrize("function", ["max", "min"])
@pytest.mark.parametrize("name", TYPES)
def test_max_and_min_keep_a_nan_on_either_side(name, function):
    values = [1.0, 2.0, -3.0, 0.0, np.inf, -np.inf, np.nan]
    x, y = (
        a.ravel().astype(np.float32 if name[:3] == "f32" else np.float64) for a in np.meshgrid(values, values)
    )
    expected = (np.maximum if function == "max" else np.minimum)(x, y)
    np.testing.assert_array_equal(apply(name, function, x, y), expected)


@pytest.mark.parametrize("name", [n for n, (_, width) in TYPES.items() if width > 1])
def test_horizontal_reductions(name):
    element, width = TYPES[name]
    kind, c_kind = (np.float32, ctypes.c_float) if element == "f32" else (np.float64, ctypes.c_double)
    x = np.random.default_rng(0).standard_normal(width).astype(kind)
    for function, expected in (
        ("sum", x.sum()),
        ("product", x.prod()),
        ("maximum", x.max()),
        ("minimum", x.min()),
    ):
        call = getattr(library(), f"reduce_{name}_{function}")
        call.restype = c_kind
        assert call(ctypes.c_void_p(x.ctypes.data)) == pytest.approx(float(expected), rel=1e-5)
        for lane in range(width):
            broken = x.copy()
            broken[lane] = np.nan
            assert math.isnan(call(ctypes.c_void_p(broken.ctypes.data)))


@pytest.mark.skipif(not host().is_x86, reason="this machine's compiler makes no code for x86")
@pytest.mark.parametrize("level, machine", [("x86-64-v2", "x86-64"), ("x86-64-v3", "haswell")])
def test_the_preamble_compiles_for_lesser_machines(level, machine, tmp_path):
    import subprocess

    source = tmp_path / "preamble.c"
    source.write_text(preamble(known(level)))
    command = [
        "gcc",
        "-std=gnu11",
        "-O2",
        f"-march={machine}",
        "-Wall",
        "-Werror",
        "-Wno-unused",
        "-c",
        str(source),
    ]
    done = subprocess.run([*command, "-o", "/dev/null"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif("avx2" not in host().features, reason="this machine has no AVX2")
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_wide_vectors_round_once_on_a_machine_of_narrower_ones(element):
    # As where C that was exported on a machine with AVX-512 is compiled on one with AVX2.
    lanes, kind = (16, np.float32) if element == "f32" else (8, np.float64)
    one, wide = (
        f"void {name}({element} *y, {element} *a, {element} *b, {element} *c)"
        f" {{ for (int k = 0; k < 4096; k += {step}) {function}; }}\n"
        for name, step, function in (
            ("one", 1, f"y[k] = {element}_fma(a[k], b[k], c[k])"),
            (
                "wide",
                lanes,
                f"{element}x{lanes}_store(y + k, {element}x{lanes}_fma("
                + ", ".join(f"{element}x{lanes}_load({x} + k)" for x in "abc")
                + "))",
            ),
        )
    )
    command = ["gcc", "-std=gnu11", "-O2", "-march=haswell", "-ffp-contract=off", "-w", "-Wno-psabi"]
    library = shared(preamble(known("x86-64-v4")) + one + wide, command)
    terms = [np.random.default_rng(n).standard_normal(4096).astype(kind) for n in range(3)]
    results = [np.empty(4096, kind) for _ in range(2)]
    for function, result in zip((library.one, library.wide), results, strict=True):
        function(*(ctypes.c_void_p(array.ctypes.data) for array in (result, *terms)))
    np.testing.assert_array_equal(*results)
    assert (results[0] != terms[0] * terms[1] + terms[2]).any(), "one rounding, not two"
