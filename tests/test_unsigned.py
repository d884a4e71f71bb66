"""Unsigned integers beside Python's own, which know no width: interpreted, by addresses, in C, on a GPU."""

import operator

import numpy as np
import pytest

from dojo_core import parse
from dojo_core.codegen.code import Parameter
from dojo_core.export.kernel import C_TYPES
from dojo_core.measure.pool import STORED, draw
from dojo_core.moves.reductions import identity_of
from dojo_core.program.dtypes import NUMPY_TYPES, UNSIGNED, compute_dtype, dtypes_of, extremes
from dojo_core.program.interpret import interpret
from dojo_core.program.physical import interpret_physical
from dojo_core.program.tree import Domain, Program
from tests.compiled import run_program
from tests.emulated import code_of, emulate
from tests.test_moves import kernel


def whole(dtype: str, count: int, seed: int) -> list[int]:
    """The extremes and many between them, as Python has them."""
    least, most = extremes(dtype)
    rng = np.random.default_rng(seed)
    edges = [
        v for v in (least, least + 1, 0, 1, 2, 3, 7, most // 2, most // 2 + 1, most - 1, most) if v >= least
    ]
    some = rng.integers(least, most, count - len(edges), STORED[dtype], endpoint=True)
    return rng.permutation(np.array([*edges, *map(int, some)], object)).tolist()


def wrapped(value: int, dtype: str) -> int:
    least, most = extremes(dtype)
    return (value - least) % (most - least + 1) + least


def everywhere(
    program: Program, inputs: dict[str, np.ndarray], gpu: bool = True
) -> list[dict[str, np.ndarray]]:
    """What the interpreter, that of addresses, C, and CUDA under the emulator make of it."""
    found = [interpret(program, inputs), interpret_physical(program, inputs), run_program(program, inputs)]
    if gpu:
        outputs, fault = emulate(code_of(program), inputs)
        assert not fault
        found.append(outputs)
    return found


def same(program: Program, inputs: dict[str, np.ndarray], expected: dict[str, list]) -> None:
    for place, outputs in enumerate(everywhere(program, inputs)):
        for name, values in expected.items():
            got = [int(v) for v in np.ravel(outputs[name])]
            assert got == values, (
                place,
                name,
                [p for p in zip(got, values, strict=True) if p[0] != p[1]][:3],
            )


COUNT = 64
ARITHMETIC = {
    "x[{0}] + w[{0}]": operator.add,
    "x[{0}] - w[{0}]": operator.sub,
    "x[{0}]*w[{0}]": operator.mul,
    "x[{0}] / w[{0}]": lambda x, w: x // w if w else 0,
    "max(x[{0}],w[{0}])": max,
    "min(x[{0}],w[{0}])": min,
    "-x[{0}]": lambda x, w: -x,
    "abs(x[{0}])": lambda x, w: x,
    "fma(x[{0}],w[{0}],x[{0}])": lambda x, w: x * w + x,
    "select(w[{0}],x[{0}],7)": lambda x, w: x if w else 7,
    "x[{0}] / 3": lambda x, w: x // 3,
    "x[{0}] / 0": lambda x, w: 0,
    "x[{0}] / -inf": lambda x, w: 0,
    "x[{0}] - {0}": None,
}


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_arithmetic_wraps_around_and_quotients_are_those_of_whole_numbers(dtype):
    names = [f"y{k}" for k in range(len(ARITHMETIC))]
    buffers = "\n".join(f"{n} {dtype} [{COUNT}] heap" for n in ("x", "w", *names))
    body = "\n".join(f"{COUNT} {n}[{{0}}] = {e}" for n, e in zip(names, ARITHMETIC, strict=True))
    program = parse(f"kernel k\nin x, w\nout {', '.join(names)}\n{buffers}\n{body}\n")
    assert parse(program.text) == program
    x, w = whole(dtype, COUNT, 1), whole(dtype, COUNT, 2)
    expected = {}
    for name, function in zip(names, ARITHMETIC.values(), strict=True):
        values = [function(a, b) if function else a - k for k, (a, b) in enumerate(zip(x, w, strict=True))]
        expected[name] = [wrapped(v, dtype) for v in values]
    same(program, {"x": np.array(x, STORED[dtype]), "w": np.array(w, STORED[dtype])}, expected)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_accumulations_begin_with_the_extremes_of_their_dtype(dtype):
    operators = {
        "+": ("0", operator.add),
        "*": ("1", operator.mul),
        "max": ("-inf", max),
        "min": ("inf", min),
    }
    names = {sign: f"y{k}" for k, sign in enumerate(operators)}
    buffers = "\n".join(f"{n} {dtype} [4] heap" for n in names.values())
    body = "\n".join(
        f"4 {names[s]}[{{0}}] = {start}\n4 16 {names[s]}[{{0}}] {s}= x[{{0}},{{1}}]"
        for s, (start, _) in operators.items()
    )
    program = parse(
        f"kernel k\nin x\nout {', '.join(names.values())}\nx {dtype} [4, 16] heap\n{buffers}\n{body}\n"
    )
    x = whole(dtype, 64, 3)
    x = [v | 1 for v in x]  # a product that is not 0
    expected = {}
    for sign, (_, function) in operators.items():
        totals = []
        for row in range(4):
            total = {"+": 0, "*": 1, "max": 0, "min": extremes(dtype)[1]}[sign]
            for value in x[16 * row : 16 * row + 16]:
                total = wrapped(function(total, value), dtype)
            totals.append(total)
        expected[names[sign]] = totals
        assert wrapped(identity_of(sign, dtype).value, dtype) == identity_of(sign, dtype).value
    same(program, {"x": np.array(x, STORED[dtype]).reshape(4, 16)}, expected)


COMPARED = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
SIDES = [  # with the dtype that holds both sides
    ("u8", "i8", "i16"), ("u16", "i8", "i32"), ("u16", "u8", "u16"), ("u16", "i64", "i64"),
    ("u32", "i32", "i64"), ("u32", "u16", "u32"), ("u64", "u32", "u64"), ("u64", "u64", "u64"),
    ("u32", "i8", "i64"), ("u16", "i16", "i32"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "common"), SIDES)
def test_comparisons_are_of_the_numbers_whatever_their_signs(left, right, common):
    names = [f"y{k}" for k in range(2 * len(COMPARED))]
    buffers = "\n".join(f"{n} bool [{COUNT}] heap" for n in names)
    sides = [(s, "x[{0}]", "w[{0}]") for s in COMPARED] + [(s, "w[{0}]", "x[{0}]") for s in COMPARED]
    body = "\n".join(f"{COUNT} {n}[{{0}}] = {a} {s} {b}" for n, (s, a, b) in zip(names, sides, strict=True))
    program = parse(
        f"kernel k\nin x, w\nout {', '.join(names)}\nx {left} [{COUNT}] heap\nw {right} [{COUNT}] heap\n"
        f"{buffers}\n{body}\n"
    )
    assert {compute_dtype(leaf.op, dtypes_of(program)) for leaf in program.leaves} == {common}
    x, w = whole(left, COUNT, 4), whole(right, COUNT, 5)
    x[:8] = [min(abs(v), extremes(left)[1]) for v in w[:8]]  # some that are equal
    expected = {}
    for name, (sign, first, _) in zip(names, sides, strict=True):
        pairs = zip(x, w, strict=True) if first == "x[{0}]" else zip(w, x, strict=True)
        expected[name] = [int(COMPARED[sign](a, b)) for a, b in pairs]
    same(program, {"x": np.array(x, STORED[left]), "w": np.array(w, STORED[right])}, expected)


def test_what_is_compared_with_numbers_and_iterators():
    operations = {
        "x[{0}] > 18446744073709551614": lambda v, k: v > 2**64 - 2,
        "x[{0}] >= {0}*3+1": lambda v, k: v >= 3 * k + 1,
        "{0} == x[{0}]": lambda v, k: v == k,
        "x[{0}] != inf": lambda v, k: v != 2**64 - 1,
    }
    names = [f"y{k}" for k in range(len(operations))]
    buffers = "\n".join(f"{n} bool [{COUNT}] heap" for n in names)
    body = "\n".join(f"{COUNT} {n}[{{0}}] = {o}" for n, o in zip(names, operations, strict=True))
    program = parse(f"kernel k\nin x\nout {', '.join(names)}\nx u64 [{COUNT}] heap\n{buffers}\n{body}\n")
    assert parse(program.text) == program
    x = whole("u64", COUNT, 6)
    x[20:24] = range(20, 24)
    expected = {
        n: [int(test(v, k)) for k, v in enumerate(x)]
        for n, test in zip(names, operations.values(), strict=True)
    }
    same(program, {"x": np.array(x, np.uint64)}, expected)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_a_number_goes_to_the_nearest_there_is_towards_zero_and_nan_to_zero(dtype):
    most = extremes(dtype)[1]
    x = [np.nan, np.inf, -np.inf, -0.0, -0.5, -1, -3e9, 0.99, 1.5, 200.7, 65535.9, 4294967295.0, 1e30, 3e9]
    x = np.array([*x, *(2.0**k for k in (31, 32, 63, 64)), 2.0**63 + 2048, 2.0**64 - 2048])
    expected = [0 if not v > 0 else most if v >= 2.0**64 else min(int(v), most) for v in x]
    buffers = f"x f64 [{len(x)}] heap\ny {dtype} [{len(x)}] heap"
    program = parse(kernel(f"{len(x)} y[{{0}}] = {dtype}(x[{{0}}])", buffers))
    same(program, {"x": x}, {"y": expected})


def test_a_domain_reaches_the_extremes_of_u64():
    text = (
        "kernel k\nin x\nout y\ndomain x 0 18446744073709551615\nx u64 [64] heap\ny u64 [64] heap\n"
        "64 y[{0}] = x[{0}]\n"
    )
    program = parse(text)
    ends = Domain("x", 2.0**64, 2.0**64)
    assert (draw("u64", (3, 4), np.random.default_rng(1), ends) == 2**64 - 1).all()
    assert parse(program.text) == program


def test_a_table_of_u16():
    text = (
        "kernel k\nin x\nout y\ntable t u16 [2] = 65535 3\nx f32 [65536] heap\ny f32 [2] heap\n"
        "2 y[{0}] = x[t[{0}]]\n"
    )
    x = np.arange(65536, dtype=np.float32)
    np.testing.assert_array_equal(run_program(parse(text), {"x": x})["y"], [65535, 3])


def test_libraries_and_numpy_name_them():
    for dtype in UNSIGNED:
        bits = dtype[1:]
        assert (C_TYPES[dtype], NUMPY_TYPES[dtype]) == (f"uint{bits}_t", f"uint{bits}")
        assert np.dtype(STORED[dtype]) == f"uint{bits}"
        assert Parameter("x", dtype, (4,), "in").dtype == dtype
