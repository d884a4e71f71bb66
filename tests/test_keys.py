"""Keys: the greatest or the least element and where it stands, in one accumulation, as NumPy finds them."""

import itertools

import numpy as np
import pytest

from dojo_core import TextError, apply, parse, why
from dojo_core.codegen.code import NotGeneratable
from dojo_core.measure.pool import STORED, from_double, to_double
from dojo_core.moves.examples import WIDE
from dojo_core.program.dtypes import FLOATS, KEYS, extremes
from dojo_core.program.interpret import interpret
from dojo_core.program.physical import interpret_physical
from dojo_core.program.target import VECTOR_DTYPES, lanes_of
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.cross import Call
from dojo_core.targets.cpu.limits import cpu, limits_of
from dojo_core.targets.cuda import build as cuda
from dojo_core.targets.gpu.codegen import generate as generate_gpu
from dojo_core.targets.gpu.feedback import Feedback
from dojo_core.targets.hip import build as hip
from dojo_core.targets.snitch.codegen import generate as generate_snitch
from tests.compiled import load, run, run_program
from tests.crossed import run_emulated, with_tools
from tests.emulated import emulate
from tests.test_moves import kernel

ROWS, COLUMNS = 24, 32


def found(way: str, place: str = "{1}", guard: str = "", name: str = "found") -> Program:
    """The extreme element of each row, and where it is."""
    start = {"max": "-inf", "min": "inf"}[way]
    return parse(
        f"""kernel {name}
in x
out i, v
x f32 [{ROWS}, {COLUMNS}] heap
i i64 [{ROWS}] heap
v f32 [{ROWS}] heap
k i64 [{ROWS}] heap
{ROWS} k[{{0}}] = {start}
{ROWS} {COLUMNS} k[{{0}}] {way}= {way}key(x[{{0}},{{1}}],{place}){guard}
{ROWS} i[{{0}}] = keyindex(k[{{0}}])
{ROWS} v[{{0}}] = keyvalue(k[{{0}}])
"""
    )


def ties() -> np.ndarray:
    """Rows of a few numbers each, so that nearly all are there several times; some with NaN."""
    rng = np.random.default_rng(0)
    sets = [
        [1, 2],
        [0.0, -0.0],
        [-0.0, -1e-45],
        [np.inf, -np.inf],
        [-np.inf],
        [-3, -3.5],
        [1e-45, 0.0],
        [3e38],
    ]
    x = np.array([rng.choice(sets[row % 7], COLUMNS) for row in range(ROWS)], np.float32)
    x[2, 5], x[2, 9], x[3, 31], x[4, 0] = np.nan, -np.nan, -np.nan, np.nan
    return x


def expected(x: np.ndarray, way: str) -> tuple[np.ndarray, np.ndarray]:
    """NumPy's answer: the first of equals (zeros are), a NaN before all; the value, -0 as 0."""
    i = {"max": np.argmax, "min": np.argmin}[way](x, axis=1)
    return i, np.take_along_axis(x, i[:, None], 1)[:, 0] + np.float32(0)


LINES = {
    "as it is": [],
    "lanes": ["split_scope k#1@1 4", "vectorize k#1@2"],
    "parts": ["split_scope k#1@1 4", "split_reduction k#1@2 p", "vectorize p#1@2", "vectorize p#0@1"],
    "threads": ["split_scope k#1@1 4", "split_reduction k#1@1 p", "parallelize p#1@1"],
    "from outside": ["interchange k#1@0", "split_scope k#1@0 8", "unroll k#1@1"],
    "in registers": [
        "join_scopes k#0@0",
        "join_scopes k#0@0",
        "join_scopes k#0@0",
        "reuse_dims k 0 register",
    ],
}


LANES_HERE = lanes_of(["i64", "f32"], cpu())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_one_pass_finds_what_numpy_finds_however_it_is_played():
    """Under strict, with ties, NaN and zeros of both signs: the order of an integer maximum is free."""
    played = {}
    for way, (number, moves) in itertools.product(("max", "min"), enumerate(LINES.values())):
        program = found(way, name=f"{way}{number}")
        for move in moves:
            program = apply(program, move, WIDE, policy="strict")
        played[program.name] = way, program
    fit = {n: p for n, (_, p) in played.items() if 4 in LANES_HERE or ":v" not in p.text}
    codes = {name: generate(program, "strict") for name, program in fit.items()}
    library = load("\n".join(code.text for code in codes.values()))
    x = ties()
    for name, (way, program) in played.items():
        index, value = expected(x, way)
        got = [interpret(program, {"x": x}), interpret_physical(program, {"x": x})]
        got += [run(codes[name], {"x": x}, library)] if name in codes else []
        for each in got:
            np.testing.assert_array_equal(each["i"], index, name)
            np.testing.assert_array_equal(each["v"], value, name)
            assert not np.signbit(np.where(each["v"] == 0, each["v"], 1)).any()


def test_places_counted_from_the_end_find_the_last_of_equals():
    x = ties()
    got = run_program(found("max", f"-{{1}}+{COLUMNS - 1}"), {"x": x})["i"]
    np.testing.assert_array_equal(COLUMNS - 1 - got, COLUMNS - 1 - np.argmax(x[:, ::-1], axis=1))


def test_of_no_elements_it_is_the_first_place_and_nan():
    for way in ("max", "min"):
        program = found(way, guard=" if {1} < 0")
        for got in (interpret(program, {"x": ties()}), run_program(program, {"x": ties()})):
            assert not got["i"].any() and np.isnan(got["v"]).all()


def special(dtype: str) -> np.ndarray:
    """Numbers of a dtype as they are stored, with what order goes wrong on; 64 of them."""
    if dtype in ("f32", "f16", "bf16"):
        some = [
            np.nan,
            0.0,
            -0.0,
            1e-45,
            -1e-45,
            2.0**-14,
            1,
            -1,
            1.5,
            2.5,
            60000,
            -60000,
            np.inf,
            -np.inf,
            7,
            -7,
        ]
        return from_double(np.array(some * 4), dtype)
    low, high = extremes(dtype)
    return np.resize(np.array([low, high, 0, 1, high - 1, low + 1, high // 2], STORED[dtype]), 64)


def pointwise(dtype: str, lanes: int) -> Program:
    """Keys of all numbers, and what comes out of them again."""
    at, scopes = ("{0}", "64") if lanes == 1 else (f"{{0}}*{lanes}+{{1}}", f"{64 // lanes} {lanes}:v")
    names = [f"{kind}{n}" for kind in "kiv" for n in range(4)]
    lines = [f"kernel keys_{dtype}_{lanes}", "in x, w", f"out {', '.join(names)}"]
    lines += [f"x {dtype} [64] heap", "w i64 [64] heap"]
    lines += [f"{name} {'f32' if name[0] == 'v' else 'i64'} [64] heap" for name in names]
    for n, (key, place) in enumerate(itertools.product(KEYS, (f"w[{at}]", f"-({at})*3+189"))):
        lines.append(f"{scopes} k{n}[{at}] = {key}(x[{at}],{place})")
        lines.append(f"{scopes} i{n}[{at}] = keyindex(k{n}[{at}])")
        lines.append(f"{scopes} v{n}[{at}] = keyvalue(k{n}[{at}])")
    return parse("\n".join(lines) + "\n")


DTYPES = ("f32", "f16", "bf16", "i16", "i8", "u8", "bool")
PLACES = np.resize(np.array([0, 1, 2**31 - 1, 2**31, -1, 12345, 2**40 + 3], np.int64), 64)


def wrong_keys(programs: list[tuple[str, Program]], results) -> list[str]:
    """Where generated code has other bits than the interpreter."""
    wrong = []
    for (dtype, program), got in zip(programs, results, strict=True):
        x = special(dtype)
        meant = interpret(program, {"x": to_double(x, dtype) if dtype in FLOATS else x, "w": PLACES})
        wrong += [f"{program.name} {y}" for y, value in meant.items() if not same(got[y], value)]
    return wrong


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


@pytest.mark.parametrize(
    "dtypes", [("f32", "bf16", "u8"), pytest.param(DTYPES, marks=pytest.mark.soak)], ids=["some", "all"]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_c_and_the_interpreter_agree_in_every_dtype_and_width(dtypes):
    programs = [
        (d, pointwise(d, n))
        for d in dtypes
        for n in (1, *lanes_of(["i64", "f32", d], cpu()))
        if n == 1 or d in VECTOR_DTYPES
    ]
    codes = [generate(p, "strict") for _, p in programs]
    library = load("\n".join(code.text for code in codes))
    results = []
    for (dtype, _), code in zip(programs, codes, strict=True):
        x = special(dtype)
        results.append(run(code, {"x": to_double(x, "bf16") if dtype == "bf16" else x, "w": PLACES}, library))
    assert not wrong_keys(programs, results)


@pytest.mark.parametrize("name", ["armv8-a", "rv64gcv-128"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_so_they_do_on_arm_and_riscv(name):
    processor = with_tools(name)
    widths = lanes_of(["i64", "f32"], limits_of(processor))
    programs = [("f32", pointwise("f32", n)) for n in (1, *widths)] + [("u8", pointwise("u8", 1))]
    if widths:  # iterators in the lanes of a function that is a macro on RISC-V
        text = "16 4:v y[{0}*4+{1}] = max(x[{0}*4+{1}],{0}+{1}*2)"
        programs.append(("f32", parse(kernel(text, "x f32 [64] heap\nw i64 [64] heap\ny f32 [64] heap"))))
    codes = [generate(p, "strict", processor) for _, p in programs]
    calls = [Call(n, {"x": special(d), "w": PLACES}) for n, (d, _) in enumerate(programs)]
    assert not wrong_keys(programs, run_emulated(codes, calls, processor))


def by_warps(way: str) -> Program:
    """A row for each block of one warp."""
    lines = found(way).text.splitlines()
    body = [line.replace(f"{ROWS} ", f"{ROWS}:g ", 1) for line in lines[-4:]]
    body[1] = f"{ROWS}:g 1:b {COLUMNS}:w k[{{0}}] {way}= {way}key(x[{{0}},{{2}}],{{2}})"
    return parse("\n".join([*lines[:-4], *body]) + "\n")


@pytest.mark.parametrize(("dialect", "way"), [("cuda", "max"), ("hip", "min")])
def test_a_gpu_finds_the_same_by_threads_and_by_warps(dialect, way):
    x, (index, value) = ties(), expected(ties(), way)
    got, fault = emulate(generate_gpu(by_warps(way), "strict", dialect), {"x": x})
    assert not fault
    np.testing.assert_array_equal(got["i"], index)
    np.testing.assert_array_equal(got["v"], value)


@pytest.mark.parametrize("target", ["cuda", "hip"])
def test_the_compilers_of_gpus_take_keys(target):
    """NVRTC has none of the macros that compilers for CPUs define."""
    build = {"cuda": cuda, "hip": hip}[target]
    if build.compiler() is None:
        pytest.skip(f"a compiler of {target} is missing (CONTRIBUTING.md)")
    made = build.feedback(generate_gpu(by_warps("max"), "strict", target))
    assert isinstance(made, Feedback), made


@pytest.mark.parametrize(
    ("x", "y", "operation", "message", "remedy"),
    [
        (
            "f64",
            "i64",
            "maxkey(x[{0}],{0})",
            "x is f64, and maxkey takes an f32 there",
            "t[{0}] = f32(x[{0}])",
        ),
        ("i32", "i64", "minkey(x[{0}],{0})", "x is i32, and minkey takes an f32 there", "f32(x[{0}])"),
        ("i64", "i64", "maxkey(x[{0}],{0})", "x is i64, and maxkey takes an f32", "f32(x[{0}])"),
        ("f32", "i64", "maxkey(1,x[{0}])", "x is f32, and maxkey takes an i64 there", "i64(x[{0}])"),
        ("f32", "i32", "maxkey(x[{0}],{0})", "maxkey gives an i64, and y is i32", "Give y the dtype i64"),
        ("f32", "f64", "minkey(x[{0}],{0})", "minkey gives an i64, and y is f64", "Give y the dtype i64"),
        ("f32", "i64", "maxkey(1e39,{0})", "1e+39 goes beyond f32", "Write inf"),
        ("f32", "i64", "maxkey(x[{0}],0.5)", "0.5 is no value of i64", "whole number"),
        ("i64", "bool", "keyindex(x[{0}])", "keyindex gives an i64, and y is bool", "Give y the dtype i64"),
        ("f32", "i64", "keyindex(x[{0}])", "x is f32, and keyindex takes an i64 there", "i64(x[{0}])"),
        ("i64", "i64", "keyvalue(x[{0}])", "keyvalue gives an f32, and y is i64", "Give y the dtype f32"),
        ("i64", "f16", "keyvalue(x[{0}])", "keyvalue gives an f32, and y is f16", "Give y the dtype f32"),
        ("f32", "f32", "keyvalue(x[{0}])", "x is f32, and keyvalue takes an i64 there", "i64(x[{0}])"),
    ],
)
def test_what_a_key_does_not_hold_is_refused(x, y, operation, message, remedy):
    with pytest.raises(TextError) as raised:
        parse(kernel(f"8 y[{{0}}] = {operation}", f"x {x} [8] heap\ny {y} [8] heap"))
    assert message in raised.value.message and remedy in raised.value.remedy


def test_a_number_does_not_take_the_place_of_an_element_in_a_key():
    """There it would be of another dtype than what was written: 0.1 is no f16."""
    program = parse(
        kernel(
            "8 t[{0}] = 0.1\n8 y[{0}] = maxkey(t[{0}],{0})",
            "x f16 [8] heap\ny i64 [8] heap\nt f16 [8] heap",
        )
    )
    assert why(program, "forward y t", WIDE).refusal.code == "inexact"


def test_snitch_has_no_keys_and_says_so():
    with pytest.raises(NotGeneratable, match="Snitch"):
        generate_snitch(found("max"))
