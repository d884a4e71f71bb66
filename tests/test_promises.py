"""What docs/promises.md says of values: the interpreter beside generated C, compiled directly, bit by bit.

Every function and accumulation, in every dtype, on single numbers and in vectors of every width, with the
instructions of this machine and of lesser ones, on NaN, zeros of both signs, infinities, denormals, extremes.
"""

import itertools
from collections.abc import Iterable
from functools import cache, partial

import numpy as np
import pytest

from dojo_core import apply, parse
from dojo_core.measure.machine import compiler_flags
from dojo_core.measure.pool import STORED, from_double, to_double
from dojo_core.measure.pool import numbers as as_interpreted
from dojo_core.program.arithmetic import rounded
from dojo_core.program.dtypes import (
    ARITHMETIC,
    COMPARISONS,
    DIVISIONS,
    FLOATS,
    KEYS,
    LOGICAL,
    OF_BITS,
    OF_REALS,
    SHIFTS,
    STORAGE,
    arithmetic,
    extremes,
    holds,
)
from dojo_core.program.functions import FUNCTIONS
from dojo_core.program.interpret import interpret
from dojo_core.program.target import lanes_of
from dojo_core.program.tree import DTYPE_BYTES, Program
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.cross import Call
from dojo_core.targets.cpu.excerpt import needed
from dojo_core.targets.cpu.limits import cpu
from dojo_core.targets.cpu.processor import Processor, host
from dojo_core.targets.cpu.vecmath import ERROR_BOUNDS, F64_ERROR_BOUND, preamble
from dojo_core.targets.gpu.codegen import generate as generate_gpu
from tests.compiled import load, run, run_program, shared
from tests.crossed import run_emulated, with_tools
from tests.emulated import emulate

FLAGS = ["-std=gnu11", *compiler_flags(), "-w"]
# What the compiler may use, and the widest vectors in bytes: this machine, AVX2, and what every x86-64 has.
MACHINES = {
    "native": ([], 64),
    "AVX2": (["-march=haswell", "-mtune=generic"], 32),
    "SSE2": (["-march=x86-64", "-mtune=generic"], 16),
}
# What arithmetic is told apart by: numbers of their own functions, rounded ones, integers of both signs.
OF_EACH_KIND = ("f32", "f16", "i32", "u64")
TINY = {"f64": 5e-324, "f32": 1e-45, "f16": 6e-8, "bf16": 9.2e-41}
LARGE = {
    "f64": 1.7976931348623157e308,
    "f32": 3.4028234663852886e38,
    "f16": 65504.0,
    "bf16": 3.3895313892515355e38,
}
UNARY = [f.name for f in FUNCTIONS.values() if f.arity == 1 and f.name not in (*DTYPE_BYTES, *OF_BITS)]
BINARY = [f.name for f in FUNCTIONS.values() if f.arity == 2 and f.name not in KEYS]
NUMBERS = ("0", "1", "-2", "inf", "-inf")  # max and min beside a number are compiled otherwise
SOME = ("sqrt", "rsqrt", "exp", "log", "tanh", "erf", "sigmoid", "pow", "sin", "log1p")
COUNT = 1280  # a multiple of every number of lanes
ROWS, TERMS = 64, 64


def special(dtype: str) -> np.ndarray:
    """The numbers of a dtype that arithmetic goes wrong on."""
    if dtype not in FLOATS:
        low, high = extremes(dtype)
        wanted = (low, low + 1, -2, -1, 0, 1, 2, 3, 7, high // 2, high - 1, high)
        return np.array([v for v in wanted if low <= v <= high], STORED[dtype])
    tiny, large = TINY[dtype], LARGE[dtype]
    normal = {"f64": 2.0**-1022, "f16": 2.0**-14}.get(dtype, 2.0**-126)
    half = [0.5, 1, 1.5, 2.5, 3, 88.75, 104.5, large / 2, large]
    positive = [0.0, tiny, 3 * tiny, normal - tiny, normal, 0.1, *half, np.inf]
    return from_double(np.array([np.nan, *positive, *(-v for v in positive)]), dtype)


def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Special numbers among ordinary ones, as they are stored."""
    rng = np.random.default_rng(seed)
    if dtype in STORAGE:
        return rng.integers(0, 256, shape, np.uint8).view(STORED[dtype])
    some = rng.choice(special(dtype), shape)
    if dtype not in FLOATS:
        low, high = extremes(dtype)
        return np.where(
            rng.random(shape) < 0.5, some, rng.integers(low, high, shape, STORED[dtype], endpoint=True)
        )
    return np.where(rng.random(shape) < 0.5, some, from_double(rng.standard_normal(shape) * 3, dtype))


@cache
def operands(dtype: str) -> dict[str, np.ndarray]:
    """x and w, every pair of special numbers first; v; a matrix by rows and by columns, some of zeros."""
    pairs = np.array(list(itertools.product(special(dtype), repeat=2)), STORED[dtype])
    x, w, v = (numbers(dtype, (COUNT,), seed) for seed in range(3))
    x[: len(pairs)], w[: len(pairs)] = pairs.T
    rows = numbers(dtype, (ROWS, TERMS), 3)
    if dtype in FLOATS:
        zeros = from_double(np.random.default_rng(4).choice([0.0, -0.0], (16, TERMS)), dtype)
        ordinary = from_double(np.random.default_rng(5).standard_normal((24, TERMS)), dtype)
        rows[:16], rows[16:40] = zeros, ordinary
        rows[0] = from_double(np.full(TERMS, -0.0), dtype)
    return {"x": x, "w": w, "v": v, "r": rows, "c": np.ascontiguousarray(rows.T)}


def expressions(dtype: str, lanes: int, whole: bool) -> list[str]:
    """What is computed of x, w and v. Of what has no vector form, nothing; where not ``whole``, some
    functions of reals in other dtypes than f32: they are the C library's, or those of f32."""
    real, vector = dtype in FLOATS, lanes > 1

    def has(f: str) -> bool:
        none = (*LOGICAL, *SHIFTS) if real else (*OF_REALS, *SHIFTS) if dtype == "bool" else OF_REALS
        if f == "tf32" and arithmetic(dtype) != "f32":
            return False
        if f in OF_REALS and not whole and dtype != "f32" and f not in SOME:
            return False
        return f not in none and not (vector and (not FUNCTIONS[f].vector or (f in DIVISIONS and not real)))

    found = [f"{f}({{x}})" if f != "neg" else "-{x}" for f in UNARY if has(f)]
    found += [f"{{x}} {f} {{w}}" if FUNCTIONS[f].infix else f"{f}({{x}},{{w}})" for f in BINARY if has(f)]
    found.append("fma({x},{w},{v})")
    if real:
        found += [f"{f}({{x}},{n})" for f in ("max", "min") for n in NUMBERS]
        found += [f"{f}({n},{{x}})" for f in ("max", "min") for n in ("0", "1")]
    if not vector:
        found.append("select({x},{w},{v})")
    return found


def pointwise(dtype: str, lanes: int, whole: bool) -> str:
    """A program of all expressions."""
    place, scopes = (
        ("{0}", f"{COUNT}") if lanes == 1 else (f"{{0}}*{lanes}+{{1}}", f"{COUNT // lanes} {lanes}:v")
    )
    arrays = {name: f"{name}[{place}]" for name in "xwv"}
    written = [e.format(**arrays) for e in expressions(dtype, lanes, whole)]
    bools = [(e.split(" ")[1] if " " in e else e.partition("(")[0]) in COMPARISONS for e in written]
    lines = [
        f"kernel p_{dtype}_{lanes}",
        "in x, w, v",
        "out " + ", ".join(f"y{k}" for k in range(len(written))),
    ]
    lines += [f"{a} {dtype} [{COUNT}] heap" for a in "xwv"]
    lines += [f"y{k} {'bool' if b else dtype} [{COUNT}] heap" for k, b in enumerate(bools)]
    lines += [f"{scopes} y{k}[{place}] = {e}" for k, e in enumerate(written)]
    return "\n".join(lines) + "\n"


# Operator, start (none: a number of its own for each cell), and what is done to a term.
ACCUMULATED = [("+", "0", ""), ("+", "", ""), ("+", "0", "*"), ("*", "1", "")]
ACCUMULATED += [("max", "-inf", ""), ("max", "", "-"), ("min", "inf", "")]


def accumulated(dtype: str, lanes: int) -> list[tuple[str, str, str, bool]]:
    """What is accumulated, and whether the lanes of a vector go into one cell (in an order that strict leaves
    open), or into one each."""
    found = [(*each, False) for each in ACCUMULATED]
    if lanes > 1:
        found += [(*each, True) for each in ACCUMULATED if each[0] in ("max", "min") or dtype not in FLOATS]
    return found


def accumulations(dtype: str, lanes: int, _whole: bool) -> str:
    """A program of all of them over the rows of ``r``, which are the columns of ``c``."""
    lines, buffers = [], []
    for number, (operator, start, function, across) in enumerate(accumulated(dtype, lanes)):
        buffers.append(f"y{number} {dtype} [{ROWS}] heap")
        lines.append(f"{ROWS} y{number}[{{0}}] = {start or 'v[{0}]'}")
        if lanes == 1:
            scopes, cell, term = f"{ROWS} {TERMS}", "{0}", "r[{0},{1}]"
        elif across:
            scopes, cell, term = f"{ROWS} {TERMS // lanes} {lanes}:v", "{0}", f"r[{{0}},{{1}}*{lanes}+{{2}}]"
        else:
            cell = f"{{1}}*{lanes}+{{2}}"
            scopes, term = f"{TERMS} {ROWS // lanes} {lanes}:v", f"c[{{0}},{cell}]"
        value = {"": term, "*": f"{term}*{term}", "-": f"-{term}"}[function]
        lines.append(f"{scopes} y{number}[{cell}] {operator}= {value}")
    outputs = ", ".join(f"y{k}" for k in range(len(buffers)))
    head = [f"kernel a_{dtype}_{lanes}", "in v, r, c", f"out {outputs}", f"v {dtype} [{ROWS}] heap"]
    head += [f"r {dtype} [{ROWS}, {TERMS}] heap", f"c {dtype} [{TERMS}, {ROWS}] heap", *buffers]
    return "\n".join(head + lines) + "\n"


def programs(
    processor: Processor, dtypes: Iterable[str] = ARITHMETIC, whole: bool = False
) -> dict[tuple[str, str, int], tuple]:
    """Program and code by kind, dtype and lanes; where not ``whole``, in every width those alone that are
    ``OF_EACH_KIND``, on this machine, and the others in one each, in turn."""
    made = {}
    for number, dtype in enumerate(dtypes):
        sizes = processor.vector_bytes
        if not whole and not (processor == host() and dtype in OF_EACH_KIND):
            sizes = (sizes[number % len(sizes)],)
        widths = () if dtype == "bool" else (size // DTYPE_BYTES[arithmetic(dtype)] for size in sizes)
        for lanes in (1, *widths):
            for kind, text in (("pointwise", pointwise), ("accumulations", accumulations)):
                program = parse(text(dtype, lanes, whole))
                made[kind, dtype, lanes] = program, generate(program, "strict", processor)
    return made


Results = dict[tuple[str, str, int], tuple[Program, dict[str, np.ndarray]]]  # by kind, dtype and lanes


def computed(machine: str, dtypes: Iterable[str], whole: bool) -> Results:
    """What this machine computes, in one translation unit."""
    flags, widest = MACHINES[machine]
    processor = host().narrower(widest)
    made = programs(processor, dtypes, whole)
    text = "\n".join(code.text for _, code in made.values())
    library = shared(needed(text, preamble(processor)) + text, ["gcc", *FLAGS, *flags])
    return {
        key: (program, run(code, given(program, key[1]), library)) for key, (program, code) in made.items()
    }


def emulated(processor: Processor, dtypes: Iterable[str], whole: bool) -> Results:
    """What an emulator of a processor computes, in one program and one run."""
    made = programs(processor, dtypes, whole)
    calls = []
    for (_, dtype, _), (program, _) in made.items():
        stored = {name: operands(dtype)[name] for name in program.inputs}
        stored["v"] = stored["v"][: ROWS if "r" in stored else COUNT]
        calls.append(Call(len(calls), stored))
    results = iter(run_emulated([code for _, code in made.values()], calls, processor))
    return {
        key: (program, {name: _values(array, key[1]) for name, array in next(results).items()})
        for key, (program, _) in made.items()
    }


def _values(stored: np.ndarray, dtype: str) -> np.ndarray:
    """As the tests compare them: of bf16 the numbers."""
    return to_double(stored, "bf16") if dtype == "bf16" and stored.dtype == np.uint16 else stored


def given(program, dtype: str) -> dict[str, np.ndarray]:
    """Operands as the interpreter takes them."""
    found = {k: to_double(v, dtype) if dtype in FLOATS else v for k, v in operands(dtype).items()}
    if "r" in program.inputs:
        found["v"] = found["v"][:ROWS]
    return {k: found[k] for k in program.inputs}


def unlike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two results differ: any NaN is like another, +0 is not like -0."""
    if a.dtype.kind != "f" and b.dtype.kind != "f":
        return a != b
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return ~((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b))))


def one_by_one(operator: str, start: np.ndarray, terms: np.ndarray, dtype: str) -> np.ndarray:
    """A sum or product of f32 or f64 as C computes it."""
    total = start
    for term in terms.T:
        total = rounded(total + term if operator == "+" else total * term, dtype)
    return total


def allowed(expression: str, dtype: str, inputs: dict, meant: np.ndarray) -> np.ndarray | float:
    """How far a number may be from what is meant, unrounded: 0 where it is exact once rounded."""
    function = next((f for f in OF_REALS if expression.startswith(f"{f}(")), "")
    if function and function != "sqrt":
        bound = F64_ERROR_BOUND if dtype == "f64" else ERROR_BOUNDS[function]
        bound += {"f16": 2.0**-11, "bf16": 2.0**-8}.get(dtype, 0)
        return bound * np.abs(meant) + 2 * TINY[dtype]
    if expression.startswith("fma") and dtype in ("f64", "f32"):  # one rounding or two
        parts = np.abs(inputs["x"] * inputs["w"]) + np.abs(inputs["v"])
        return parts * (2.0**-52 if dtype == "f64" else 2.0**-23) + 2 * TINY[dtype]
    return 0.0


def wrong_functions(results: Results, whole: bool) -> list[str]:
    wrong = []
    for (kind, dtype, lanes), (program, got) in results.items():
        if kind != "pointwise":
            continue
        inputs = given(program, dtype)
        meant = interpret(program, inputs)
        for number, expression in enumerate(expressions(dtype, lanes, whole)):
            name = f"y{number}"
            held = program.buffer_of[name].dtype
            stored = rounded(meant[name], held) if held in FLOATS else meant[name]
            bad = unlike(got[name], stored)
            most = allowed(expression, dtype, inputs, meant[name])
            if np.any(most):
                bad &= ~(np.abs(got[name].astype(np.float64) - meant[name]) <= most)
            for k in np.nonzero(bad)[0][:1]:
                at = ", ".join(f"{a}={inputs[a][k]}" for a in inputs)
                wrong.append(f"{dtype} x{lanes} {expression}: {got[name][k]}, not {stored[k]} at {at}")
    return wrong


def wrong_accumulations(results: Results) -> list[str]:
    wrong = []
    for (kind, dtype, lanes), (program, got) in results.items():
        if kind != "accumulations":
            continue
        inputs = given(program, dtype)
        meant = interpret(program, inputs)
        for number, (operator, start, function, across) in enumerate(accumulated(dtype, lanes)):
            name = f"y{number}"
            expected = meant[name]
            if operator in ("+", "*") and dtype in ("f32", "f64"):  # the interpreter rounds no term of it
                if function == "*":
                    near = np.abs(got[name] - expected) <= 1e-5 * np.abs(expected)
                    expected = np.where(near | (expected > LARGE[dtype]), got[name], expected)
                else:
                    begun = np.full(ROWS, float(start)) if start else inputs["v"]
                    expected = one_by_one(operator, begun, inputs["r"], dtype)
            for k in np.nonzero(unlike(got[name], expected))[0][:1]:
                told = f"row {k} of {operator}= {function}, from {start or inputs['v'][k]}, across: {across}"
                wrong.append(f"{dtype} x{lanes}: {got[name][k]}, not {expected[k]} in {told}")
    return wrong


def wrong_widths(results: Results, whole: bool) -> list[str]:
    """Vectors whose results are not the bits of single numbers."""
    wrong = []
    for (kind, dtype, lanes), (_, vectors) in results.items():
        if lanes == 1:
            continue
        singles = results[kind, dtype, 1][1]
        names = partial(expressions, whole=whole) if kind == "pointwise" else accumulated
        numbered = {what: k for k, what in enumerate(names(dtype, 1))}
        for number, what in enumerate(names(dtype, lanes)):
            same = what if kind == "pointwise" else (*what[:3], False)
            if unlike(vectors[f"y{number}"], singles[f"y{numbered[same]}"]).any():
                wrong.append(f"{dtype} x{lanes} {what}")
    return wrong


@pytest.mark.parametrize(
    ("machine", "dtypes", "whole"),
    [
        ("native", ARITHMETIC, False),
        *(
            (machine, OF_EACH_KIND, False)
            for machine in MACHINES
            if 2 * MACHINES[machine][1] == host().vector_bytes[0]
        ),
        *(pytest.param(machine, ARITHMETIC, True, marks=pytest.mark.soak) for machine in MACHINES),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_c_and_the_interpreter_agree_in_every_dtype_and_width(machine, dtypes, whole):
    """In one test a machine, so that it is compiled once. The suite tries every dtype with this machine's
    instructions, and those ``OF_EACH_KIND`` with narrower ones, which have the same text but for the
    instructions of a few functions; make soak tries all, in all widths."""
    if machine != "native" and (not host().is_x86 or MACHINES[machine][1] > host().vector_bytes[0]):
        pytest.skip("this machine has no such instructions")
    results = computed(machine, dtypes, whole)
    assert not wrong_functions(results, whole)
    assert not wrong_accumulations(results)
    assert not wrong_widths(results, whole)


@pytest.mark.thorough  # test_crossed.py runs starts, lines and passes there
@pytest.mark.parametrize(
    ("name", "dtypes", "whole"),
    [
        ("armv8-a", OF_EACH_KIND, False),
        ("rv64gcv-128", OF_EACH_KIND, False),
        *(
            pytest.param(name, ARITHMETIC, True, marks=pytest.mark.soak)
            for name in ("armv8-a", "rv64gc", "rv64gcv-128", "rv64gcv-256", "rv64gcv-128-m4")
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_so_it_is_on_arm_and_riscv(name, dtypes, whole):
    results = emulated(with_tools(name), dtypes, whole)
    assert not wrong_functions(results, whole)
    assert not wrong_accumulations(results)
    assert not wrong_widths(results, whole)


MIXED = ("{x} + {w}", "{x}*{x}", "max({x},{w})", "min({w},{x})", "+= {x}", "max= {x}*{x}")


def mixed(target: str, narrow: str, lanes: int) -> str:
    """Operations of a dtype on numbers of a narrower one, which it holds."""
    place, scopes = ("{0}", "256") if lanes == 1 else (f"{{0}}*{lanes}+{{1}}", f"{256 // lanes} {lanes}:v")
    lines = [
        f"kernel m_{target}_{narrow}_{lanes}",
        "in x, w",
        "out " + ", ".join(f"y{k}" for k in range(len(MIXED))),
    ]
    lines += [f"x {narrow} [256] heap", f"w {target} [256] heap"]
    lines += [f"y{k} {target} [256] heap" for k in range(len(MIXED))]
    for number, operation in enumerate(MIXED):
        cell, written = f"y{number}[{place}]", operation.format(x=f"x[{place}]", w=f"w[{place}]")
        if "= " in operation:
            lines += [f"{scopes} {cell} = w[{place}]", f"{scopes} {cell} {written}"]
        else:
            lines.append(f"{scopes} {cell} = {written}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operands_of_narrower_dtypes_are_read_exactly_in_every_width(share):
    made = []
    pairs = [(t, n) for t, n in itertools.product(ARITHMETIC, DTYPE_BYTES) if t != n and holds(t, n)]
    for target, narrow in pairs[::share]:
        for lanes in (1, *lanes_of([target, narrow], cpu())[:2]):
            program = parse(mixed(target, narrow, lanes))
            made.append((program, target, narrow, generate(program, "strict")))
    library = load("\n".join(code.text for *_, code in made))
    for program, target, narrow, code in made:
        x, w = numbers(narrow, (256,), 1), numbers(target, (256,), 2)
        inputs = {
            "x": as_interpreted(x, narrow),
            "w": to_double(w, target) if target in FLOATS else w,
        }
        got, meant = run(code, inputs, library), interpret(program, inputs)
        for number, operation in enumerate(MIXED):
            y = meant[f"y{number}"]
            bad = unlike(got[f"y{number}"], rounded(y, target) if target in FLOATS else y)
            assert not bad.any(), (target, narrow, operation, np.nonzero(bad)[0][:3])


# ---------------------------------------------------------------------------- zeros and NaN of a maximum

RECIPROCAL = """\
kernel k
in x
out y
x f32 [6, 32] heap
m f32 [6] heap
y f32 [6] heap
6 m[{0}] = -inf
| 32 m[{0}] max= x[{0},{1}]
6 y[{0}] = 1 / m[{0}]
"""


def zeros() -> np.ndarray:
    """Rows of -0 with a +0 somewhere, or nowhere, and a NaN in the last."""
    x = np.full((6, 32), -0.0, np.float32)
    x[1, 0] = x[2, 31] = x[3, 13] = x[5, 3] = 0.0
    x[5, 4] = np.nan
    return x


LANES = ["split_scope m#1@1 4", "vectorize m#1@2"]
PARTS = [
    "split_scope m#1@1 4",
    "split_reduction m#1@2 p",
    "vectorize p#1@2",
    "vectorize p#0@1",
    "vectorize m#1@1",
]
THREADS = ["split_scope m#1@1 4", "split_reduction m#1@1 p", "parallelize p#1@1"]
OUTWARDS = ["materialise_dims m 0", "fission_scope m#0@0 m#1@1", "interchange m#1@0"]


@pytest.mark.parametrize(
    "moves", [LANES, PARTS, THREADS, OUTWARDS[1:]], ids=["lanes", "parts", "threads", "outwards"]
)
def test_no_order_of_a_maximum_changes_the_sign_of_its_zero_under_strict(moves):
    start = program = parse(RECIPROCAL)
    for move in moves:
        program = apply(program, move, policy="strict")
    expected = np.array([-np.inf, np.inf, np.inf, np.inf, -np.inf, np.nan], np.float32)
    for version in (start, program):
        np.testing.assert_array_equal(run_program(version, {"x": zeros()}, "strict")["y"], expected)
        np.testing.assert_array_equal(interpret(version, {"x": zeros()})["y"], expected)


@pytest.mark.parametrize("dialect", ["cuda", "hip"])
def test_a_gpus_maximum_is_the_same(dialect):
    warps = ["6:g m[{0}] = -inf", "6:g 1:b 32:w m[{0}] max= x[{0},{2}]", "6:g y[{0}] = 1 / m[{0}]"]
    program = parse("\n".join([*RECIPROCAL.splitlines()[:-3], *warps]) + "\n")
    got, fault = emulate(generate_gpu(program, "strict", dialect), {"x": zeros()})
    assert not fault
    np.testing.assert_array_equal(got["y"], interpret(program, {"x": zeros()})["y"])


def folded(accumulate: str, first: int) -> str:
    return f"""kernel folded
in x
out y
x f32 [4] heap
y f32 [] heap
y[] = {first}
4 y[] {accumulate} x[{{0}}]
"""


@pytest.mark.parametrize(
    ("text", "terms", "in_order", "in_halves"),
    [
        (folded("+=", 0), [np.inf, 1, -3e38, 2], np.inf, np.inf),
        (folded("+=", 0), [-3e38, -3e38, np.inf, 1], np.nan, np.inf),
        (folded("+=", 0), [3e38, 3e38, -3e38, -3e38], np.inf, 0),
        (folded("*=", 1), [1e-30, 1e-30, 1e30, 1e30], 0, 1),
        (folded("*=", 1), [1e-30, 1e-30, 1e30, np.inf], np.nan, np.inf),
        (folded("*=", 1), [2, np.nan, 0, np.inf], np.nan, np.nan),
    ],
)
def test_what_overflows_or_underflows_on_the_way_hangs_on_the_order_that_reassoc_frees(
    text, terms, in_order, in_halves
):
    program = parse(text)
    # every second term, then the others: 0 and 2, 1 and 3
    moves = ["split_scope y#1@0 2", "interchange y#1@0", "split_reduction y#1@0 p"]
    for policy, played, expected in (("strict", [], in_order), ("reassoc", moves, in_halves)):
        for move in played:
            program = apply(program, move, policy=policy)
        got = run_program(program, {"x": np.array(terms, np.float32)}, policy)["y"]
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_double_goes_to_a_half_by_way_of_single_precision():
    program = parse("kernel h\nin x\nout y\nx f64 [1] heap\ny f16 [1] heap\n1 y[{0}] = f16(x[{0}])\n")
    inputs = {"x": np.array([1 + 2.0**-11 + 2.0**-40])}  # rounded once it would be 1 + 2**-10
    assert run_program(program, inputs)["y"] == interpret(program, inputs)["y"] == 1


@pytest.mark.parametrize("order", ["t[{0}]*x[{0},{1}]", "x[{0},{1}]*t[{0}]"])
def test_a_factor_that_all_terms_have_is_multiplied_into_each(order):
    program = parse(
        f"""kernel factor
in x, t
out s
x f64 [3, 4] heap
t f64 [3] heap
s f64 [3] heap
3 s[{{0}}] = 0
3 4 s[{{0}}] += {order}
"""
    )
    x = np.array([[1, -1, -1, -1], [1e308, 1e308, 1e308, 1], [-1, -1, -1, -1]])
    inputs = {"x": x, "t": np.array([np.inf, 1e-10, np.inf])}
    expected = [np.nan, 3e298, -np.inf]
    np.testing.assert_allclose(interpret(program, inputs)["s"], expected)
    np.testing.assert_allclose(run_program(program, inputs)["s"], expected)
