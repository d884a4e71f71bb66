"""Keys: the greatest or the least element and where it stands, in one accumulation, as NumPy finds them."""

import itertools

import numpy as np
import pytest

from dojo_core import TextError, apply, parse, why
from dojo_core.codegen.code import NotGeneratable
from dojo_core.measure.pool import STORED, from_double, to_double
from dojo_core.moves.examples import WIDE
from dojo_core.program.dtypes import ARITHMETIC, FLOATS, KEY_ELEMENTS, KEYS, extremes, holds, key_of
from dojo_core.program.interpret import interpret
from dojo_core.program.physical import interpret_physical
from dojo_core.program.target import VECTOR_DTYPES, Target, lanes_of
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
from tests.thorough import one_of

ROWS, COLUMNS = 24, 32


def found(
    way: str, place: str = "{1}", guard: str = "", name: str = "found", dtype: str = "f32", key: str = "i64"
) -> Program:
    """The extreme element of each row, and where it is."""
    start = {"max": "-inf", "min": "inf"}[way]
    return parse(
        f"""kernel {name}
in x
out i, v
x {dtype} [{ROWS}, {COLUMNS}] heap
i i64 [{ROWS}] heap
v {dtype} [{ROWS}] heap
k {key} [{ROWS}] heap
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


@pytest.mark.parametrize(("dtype", "key"), one_of(2, [("f32", "i64"), ("f64", "i128")]))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_one_pass_finds_what_numpy_finds_however_it_is_played(dtype, key):
    """Under strict, with ties, NaN and zeros of both signs: the order of an integer maximum is free."""
    played = {}
    for way, (number, moves) in itertools.product(("max", "min"), enumerate(LINES.values())):
        program = found(way, "{1}", "", f"{way}{number}", dtype, key)
        for move in moves:
            program = apply(program, move, WIDE, policy="strict")
        played[program.name] = way, program
    lanes = lanes_of([key, dtype], cpu())
    fit = {n: p for n, (_, p) in played.items() if 4 in lanes or ":v" not in p.text}
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
    if dtype in FLOATS:
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
            1 + 2.0**-40,
            -7,
        ]
        return from_double(np.array(some * 4), dtype)
    low, high = extremes(dtype)
    return np.resize(np.array([low, high, 0, 1, high - 1, low + 1, high // 2], STORED[dtype]), 64)


def pointwise(dtype: str, lanes: int, key: str) -> Program:
    """Keys of all numbers, and what comes out of them again."""
    value = dtype if dtype in KEY_ELEMENTS[key] else KEY_ELEMENTS[key][0]
    at, scopes = ("{0}", "64") if lanes == 1 else (f"{{0}}*{lanes}+{{1}}", f"{64 // lanes} {lanes}:v")
    names = [f"{kind}{n}" for kind in "kiv" for n in range(4)]
    outputs = [name for name in names if name[0] != "k" or key == "i64"]
    lines = [f"kernel keys_{dtype}_{lanes}_{key}", "in x, w", f"out {', '.join(outputs)}"]
    lines += [f"x {dtype} [64] heap", "w i64 [64] heap"]
    lines += [f"{name} {({'k': key, 'i': 'i64', 'v': value})[name[0]]} [64] heap" for name in names]
    for n, (function, place) in enumerate(itertools.product(KEYS, (f"w[{at}]", f"-({at})*3+189"))):
        lines.append(f"{scopes} k{n}[{at}] = {function}(x[{at}],{place})")
        lines.append(f"{scopes} i{n}[{at}] = keyindex(k{n}[{at}])")
        lines.append(f"{scopes} v{n}[{at}] = keyvalue(k{n}[{at}])")
    return parse("\n".join(lines) + "\n")


SOME = (("f32", "i64"), ("bf16", "i64"), ("u8", "i64"), ("u32", "i64"), ("f64", "i128"), ("u64", "i128"))
EVERY = [(dtype, key) for key, elements in KEY_ELEMENTS.items() for dtype in ARITHMETIC
         if dtype in elements or holds(elements[0], dtype)]  # fmt: skip
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


def widths(dtype: str, key: str, target: Target) -> tuple[int, ...]:
    """How many at once, one among them, where the value that comes out again has a vector too."""
    value = dtype if dtype in KEY_ELEMENTS[key] else KEY_ELEMENTS[key][0]
    return (1, *(lanes_of([key, "i64", value, dtype], target) if dtype in VECTOR_DTYPES else ()))


@pytest.mark.parametrize("kinds", [SOME, pytest.param(EVERY, marks=pytest.mark.soak)], ids=["some", "all"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_c_and_the_interpreter_agree_in_every_dtype_and_width(kinds):
    programs = [(d, pointwise(d, n, key)) for d, key in kinds for n in widths(d, key, cpu())]
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
    target = limits_of(processor)
    kinds = (("f32", "i64"), ("u32", "i64"), ("f64", "i128"), ("u64", "i128"))
    programs = [(d, pointwise(d, n, key)) for d, key in kinds for n in widths(d, key, target)]
    programs.append(("u8", pointwise("u8", 1, "i64")))
    if (
        len(widths("f32", "i64", target)) > 1
    ):  # iterators in the lanes of a function that is a macro on RISC-V
        text = "16 4:v y[{0}*4+{1}] = max(x[{0}*4+{1}],{0}+{1}*2)"
        programs.append(("f32", parse(kernel(text, "x f32 [64] heap\nw i64 [64] heap\ny f32 [64] heap"))))
    codes = [generate(p, "strict", processor) for _, p in programs]
    calls = [Call(n, {"x": special(d), "w": PLACES}) for n, (d, _) in enumerate(programs)]
    assert not wrong_keys(programs, run_emulated(codes, calls, processor))


def by_warps(way: str, dtype: str = "f32", key: str = "i64") -> Program:
    """A row for each block of one warp."""
    lines = found(way, dtype=dtype, key=key).text.splitlines()
    body = [line.replace(f"{ROWS} ", f"{ROWS}:g ", 1) for line in lines[-4:]]
    body[1] = f"{ROWS}:g 1:b {COLUMNS}:w k[{{0}}] {way}= {way}key(x[{{0}},{{2}}],{{2}})"
    return parse("\n".join([*lines[:-4], *body]) + "\n")


@pytest.mark.parametrize(
    ("dialect", "way", "dtype", "key"),
    [("cuda", "max", "f32", "i64"), ("hip", "min", "f32", "i64"), ("cuda", "min", "f64", "i128")],
)
def test_a_gpu_finds_the_same_by_threads_and_by_warps(dialect, way, dtype, key):
    x, (index, value) = ties(), expected(ties(), way)
    got, fault = emulate(generate_gpu(by_warps(way, dtype, key), "strict", dialect), {"x": x})
    assert not fault
    np.testing.assert_array_equal(got["i"], index)
    np.testing.assert_array_equal(got["v"], value)


@pytest.mark.parametrize(
    ("target", "dtype"), one_of(2, [("cuda", "f32"), ("cuda", "u64"), ("hip", "u64"), ("hip", "f32")])
)
def test_the_compilers_of_gpus_take_keys(target, dtype):
    """NVRTC has none of the macros that compilers for CPUs define."""
    build = {"cuda": cuda, "hip": hip}[target]
    if build.compiler() is None:
        pytest.skip(f"a compiler of {target} is missing (CONTRIBUTING.md)")
    program = by_warps("max", dtype, key_of(dtype)[0])
    made = build.feedback(generate_gpu(program, "strict", target))
    assert isinstance(made, Feedback), made


@pytest.mark.parametrize(
    ("x", "y", "operation", "message", "remedy"),
    [
        (
            "f64",
            "i64",
            "maxkey(x[{0}],{0})",
            "x is f64, of which there are no keys in i64",
            "Give y the dtype i128",
        ),
        ("i64", "i64", "maxkey(x[{0}],{0})", "x is i64, of which there are no keys in i64", "i128"),
        ("f64", "i128", "maxkey(x[{0}],{0})", "y is i128, of keys, which inputs and outputs", "keyindex"),
        ("f32", "i64", "maxkey(1,x[{0}])", "x is f32, and maxkey takes an i64 there", "i64(x[{0}])"),
        (
            "f32",
            "i32",
            "maxkey(x[{0}],{0})",
            "maxkey gives an i64 or i128, and y is i32",
            "dtype i64 or i128",
        ),
        ("f32", "f64", "minkey(x[{0}],{0})", "minkey gives an i64 or i128, and y is f64", "dtype i64"),
        ("f32", "i64", "maxkey(1e39,{0})", "1e+39 goes beyond f32", "Write inf"),
        ("f32", "i64", "maxkey(x[{0}],0.5)", "0.5 is no value of i64", "whole number"),
        ("i64", "bool", "keyindex(x[{0}])", "keyindex gives an i64, and y is bool", "Give y the dtype i64"),
        ("f32", "i64", "keyindex(x[{0}])", "x is f32, and keyindex takes an i64 there", "i64(x[{0}])"),
        ("i64", "i64", "keyvalue(x[{0}])", "keyvalue gives an f32, i32 or u32, and y is i64", "dtype f32"),
        ("i64", "f16", "keyvalue(x[{0}])", "keyvalue gives an f32, i32 or u32, and y is f16", "dtype f32"),
        ("f32", "f32", "keyvalue(x[{0}])", "x is f32, and keyvalue takes an i64 there", "i64(x[{0}])"),
    ],
)
def test_what_a_key_does_not_hold_is_refused(x, y, operation, message, remedy):
    with pytest.raises(TextError) as raised:
        parse(kernel(f"8 y[{{0}}] = {operation}", f"x {x} [8] heap\ny {y} [8] heap"))
    assert message in raised.value.message and remedy in raised.value.remedy


@pytest.mark.parametrize(
    ("line", "message", "remedy"),
    [
        ("8 y[{0}] = k[{0}]", "k is i128, a key, of which nothing is computed", "keyindex(k[{0}])"),
        ("8 y[{0}] = i64(k[{0}])", "k is i128, a key, of which nothing is computed", "keyvalue(k[{0}])"),
        ("8 y[{0}] = k[{0}] < 3", "k is i128, a key", "keyindex"),
        ("8 y[{0}] = i128(x[{0}])", "unknown function i128", "maxkey"),
        ("8 k[{0}] = x[{0}]", "k is i128, which has keys alone", "Write one with maxkey"),
        ("8 k[{0}] += maxkey(x[{0}],{0})", "k is i128, a key, of which nothing is computed", "Write max=."),
        ("8 y[{0}] = keyvalue(k[{0}])", "keyvalue gives an f64, i64 or u64, and y is f32", "dtype f64"),
    ],
)
def test_of_a_wide_key_its_place_and_its_element_are_taken_and_nothing_else(line, message, remedy):
    dtype = "f32" if "keyvalue(" in line else "i64"
    buffers = f"x f64 [8] heap\ny {dtype} [8] heap\nk i128 [8] heap"
    with pytest.raises(TextError) as raised:
        parse(kernel(f"8 k[{{0}}] = maxkey(x[{{0}}],{{0}})\n{line}", buffers))
    assert message in raised.value.message and remedy in raised.value.remedy


def test_keys_of_128_bits_lie_in_memory_in_registers_and_apart():
    """What a vector of them is read from and written to: neighbours, cells apart, gathered, single lanes."""
    program = parse("""kernel k
in x, j
out i, l
domain j 0 15
x f64 [16] heap
j i32 [4] heap
i i64 [4] heap
l i64 [] heap
k i128 [16] heap
r i128 [4] register
m i128 [4] heap
4 4:v k[{0}*4+{1}] = maxkey(x[{0}*4+{1}],{0}*4+{1})
4:u r[{0}] = -inf
4:v r[{0}] max= k[{0}*2+1]
4:v r[{0}] max= k[j[{0}]]
4:v m[{0}] = r[{0}]
4:v i[{0}] = keyindex(m[{0}])
4:v r[3] max= k[{0}+12]
l[] = keyindex(r[3])
""")
    x, j = np.random.default_rng(3).permutation(16).astype(float), np.array([5, 15, 0, 8], np.int32)
    wanted = np.where(x[1:8:2] > x[j], np.arange(1, 8, 2), j)
    for got in (interpret(program, {"x": x, "j": j}), run_program(program, {"x": x, "j": j})):
        np.testing.assert_array_equal(got["i"], wanted)
        places = [wanted[3], *range(12, 16)]
        assert got["l"] == max(places, key=lambda place: x[place])


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
