"""What a program means, against plain numpy; and what its storage makes of it."""

import numpy as np
import pytest

from dojo_core import kernels, parse
from dojo_core.program.interpret import interpret
from dojo_core.program.physical import interpret_physical
from tests.compiled import random_inputs
from tests.test_moves import kernel

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 6))
W = RNG.standard_normal(6)


def meaning(body: str, buffers: str, inputs: dict) -> np.ndarray:
    """y, the same whether evaluated a scope at a time or cell by cell."""
    program = parse(kernel(body, buffers))
    (y,) = interpret(program, inputs).values()
    np.testing.assert_allclose(interpret_physical(program, inputs)["y"], y, rtol=1e-12)
    return y


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("4 6 y[{0},{1}] = x[{0},{1}]", X),
        ("4 6 y[{0},{1}] = x[{0},{1}] - w[{1}]", X - W),
        ("4 6 y[{0},{1}] = -x[{0},{1}]", -X),
        ("4 6 y[{0},{1}] = x[{0},{1}] / 3", X / 3),
        ("4 6 y[{0},{1}] = max(x[{0},{1}],w[{1}])", np.maximum(X, W)),
        ("4 6 y[{0},{1}] = fma(x[{0},{1}],w[{1}],2)", X * W + 2),
        ("4 6 y[{0},{1}] = x[{0},{1}] < w[{1}]", X < W),
        ("4 6 y[{0},{1}] = x[{0},{1}] == x[{0},0]", X[:, :1] == X),
        ("4 6 y[{0},{1}] = select(x[{0},0],w[{1}],1)", np.broadcast_to(W, (4, 6))),
        ("4 6 y[{0},{1}] = exp(x[{0},{1}])", np.exp(X)),
        ("4 6 y[{0},{1}] = fmod(x[{0},{1}],0.25)", np.fmod(X, 0.25)),
        ("4 6 y[{0},{1}] = asinh(x[{0},{1}])", np.arcsinh(X)),
        ("4 6 y[{0},{1}] = sigmoid(x[{0},{1}])", 1 / (1 + np.exp(-X))),
        ("4 6 y[{0},{1}] = floor(x[{0},{1}])", np.floor(X)),
        ("4 6 y[{0},{1}] = pow(x[{0},{1}],2)", X**2),
        ("4 6 y[{0},{1}] = {0}*10+{1}", np.add.outer(10 * np.arange(4), np.arange(6))),
        ("4 6 y[{0},{1}] = {1} / 4", np.broadcast_to(np.arange(6) / 4, (4, 6))),
        # Reads and writes at other places than their own.
        ("4 6 y[{0},{1}] = x[-{0}+3,{1}]", X[::-1]),
        ("2 2 6 y[{0}*2+{1},{2}] = x[{0}*2+{1},{2}]", X),
        ("4 6 y[{0},{1}] = 0\n4 5 y[{0},{1}] = x[{0},{1}+1]", np.pad(X[:, 1:], ((0, 0), (0, 1)))),
        ("4 6 y[{0},{1}] = 0\n4 6 y[{0},-{1}+5] += x[{0},{1}]", X[:, ::-1]),
        # Guards.
        ("4 6 y[{0},{1}] = 1\n4 6 y[{0},{1}] = x[{0},{1}] if {1} < 2 and {0} >= 1",
         np.where((np.arange(6) < 2) & (np.arange(4) >= 1)[:, None], X, 1)),
        ("4 6 y[{0},{1}] = 0\n4 6 6 y[{0},{1}] += x[{0},{1}+{2}] if {1}+{2} < 6",
         np.cumsum(X[:, ::-1], axis=1)[:, ::-1]),
        # Iterations that need each other's results.
        ("4 y[{0},0] = x[{0},0]\n4 5 y[{0},{1}+1] = y[{0},{1}] + x[{0},{1}+1]", np.cumsum(X, axis=1)),
    ],
)  # fmt: skip
def test_operations(body, expected):
    buffers = "x f64 [4, 6] heap\nw f64 [6] heap\ny f64 [4, 6] heap"
    np.testing.assert_allclose(meaning(body, buffers, {"x": X, "w": W}), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("4 y[{0}] = 0\n4 6 y[{0}] += x[{0},{1}]", X.sum(axis=1)),
        ("4 y[{0}] = 1\n| 6 y[{0}] *= x[{0},{1}]", X.prod(axis=1)),
        ("4 y[{0}] = -inf\n4 6 y[{0}] max= x[{0},{1}]", X.max(axis=1)),
        ("4 y[{0}] = inf\n4 6 y[{0}] min= x[{0},{1}]", X.min(axis=1)),
        ("4 y[{0}] = 0\n4 6 y[{0}] += x[{0},{1}]*w[{1}]", X @ W),
        ("4 y[{0}] = 0\n4 6 y[{0}] += x[{0},{1}]*w[{1}] if {1} < 3", X[:, :3] @ W[:3]),
        ("4 y[{0}] = 0\n4 6 y[{0}] += 1", np.full(4, 6.0)),
        ("4 y[{0}] = 0\n4 6 y[{0}] += w[0]*w[1]", np.full(4, 6 * W[0] * W[1])),
        ("4 y[{0}] = 2\n3 4 y[{1}] *= 2", np.full(4, 16.0)),
        # Several iterations meet in one cell by their sum.
        ("4 y[{0}] = 0\n2 3 y[{0}+{1}] += w[{1}]", [W[0], W[1] + W[0], W[2] + W[1], W[2]]),
        ("4 y[{0}] = 0\n2 3 y[{0}+{1}] += x[{0},0]*w[{1}]", np.convolve(X[:2, 0], W[:3])),
    ],
)
def test_accumulations(body, expected):
    buffers = "x f64 [4, 6] heap\nw f64 [6] heap\ny f64 [4] heap"
    np.testing.assert_allclose(meaning(body, buffers, {"x": X, "w": W}), expected, rtol=1e-12)


def test_nan_and_infinity_pass():
    buffers = "x f32 [4] heap\ny f32 [4] heap"
    x = np.array([1, np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(
        meaning("4 y[{0}] = max(x[{0}],0)", buffers, {"x": x}), [1, np.nan, np.inf, 0]
    )
    np.testing.assert_array_equal(
        meaning("4 y[{0}] = x[{0}] - x[{0}]", buffers, {"x": x}), [0, np.nan, np.nan, np.nan]
    )
    np.testing.assert_array_equal(
        meaning("4 y[{0}] = -inf\n4 4 y[{0}] max= x[{1}]", buffers, {"x": x}), [np.nan] * 4
    )


@pytest.mark.parametrize("dtype", ["i64", "i32", "i16", "i8", "u8"])
def test_whole_numbers_wrap_as_their_dtype_does(dtype):
    kind = np.dtype(dtype.replace("i", "int").replace("u", "uint"))
    limits = np.iinfo(kind)
    x = np.array([limits.min, limits.max, 7, limits.max - 3], kind)
    buffers = f"x {dtype} [4] heap\ny {dtype} [4] heap"
    for body, expected in (
        ("4 y[{0}] = x[{0}] + 5", x + kind.type(5)),
        ("4 y[{0}] = x[{0}]*x[{0}]", x * x),
        ("4 y[{0}] = -x[{0}]", -x),
        ("4 y[{0}] = 0\n4 4 y[{0}] += x[{1}]", np.full(4, x.sum(dtype=kind))),
        ("4 y[{0}] = 1\n4 4 y[{0}] *= x[{1}]", np.full(4, x.prod(dtype=kind))),
        ("4 y[{0}] = -inf\n4 4 y[{0}] max= x[{1}]", np.full(4, x.max())),
    ):
        y = meaning(body, buffers, {"x": x})
        assert y.dtype == np.int64
        np.testing.assert_array_equal(y, expected.astype(np.int64))


@pytest.mark.parametrize(
    ("dtype", "body", "expected"),
    [
        ("i32", "4 y[{0}] = x[{0}] / 2", [1, -1, 3, 4]),  # towards zero, as in C
        ("f64", "4 y[{0}] = x[{0}] / 2", [1.5, -1.5, 3.5, 4]),
        ("f64", "4 y[{0}] = x[{0}]*2.5", [7.5, -7.5, 17.5, 20]),
        ("bool", "4 y[{0}] = x[{0}] + 3", [1, 0, 1, 1]),
        ("bool", "4 y[{0}] = x[{0}] > 3.5", [0, 0, 1, 1]),
        ("i32", "4 y[{0}] = u8(x[{0}])", [3, 253, 7, 8]),
        ("f32", "4 y[{0}] = bool(x[{0}])", [1, 1, 1, 1]),
        ("f32", "4 y[{0}] = f32(x[{0}])", [3, -3, 7, 8]),
    ],
)
def test_mixed_dtypes(dtype, body, expected):
    x = np.array([3, -3, 7, 8], np.int32)
    np.testing.assert_array_equal(meaning(body, f"x i32 [4] heap\ny {dtype} [4] heap", {"x": x}), expected)


def test_softmax_is_its_reference_also_where_numbers_are_large():
    found = kernels.get("softmax")
    program = found.program((3, 5))
    x = random_inputs(program)["x"].astype(float)
    x[1] *= 1e4
    x[2] = -np.inf
    np.testing.assert_allclose(
        interpret(program, {"x": x})["y"], found.reference({"x": x}, (3, 5))["y"], rtol=1e-12
    )


def test_a_copy_stays_as_it_was_when_what_it_was_copied_from_changes():
    text = "4 t[{0}] = x[{0}]\n4 y[{0}] = t[{0}]\n4 t[{0}] += 1"
    y = meaning(text, "x f32 [4] heap\ny f32 [4] heap\nt f32 [4] heap", {"x": np.ones(4)})
    np.testing.assert_array_equal(y, np.ones(4))


def test_a_cell_that_nothing_writes_is_nan():
    y = meaning("3 y[{0}] = x[{0}]", "x f32 [4] heap\ny f32 [4] heap", {"x": np.ones(4)})
    np.testing.assert_array_equal(y, [1, 1, 1, np.nan])


def test_storage_that_is_reused_too_early_shows_in_physical_addresses_alone():
    program = parse(
        kernel("4 t[{0}] = x[{0}]\n4 y[{0}] = t[{0}]", "x f32 [4] heap\ny f32 [4] heap\nt f32 [4:N] heap")
    )
    x = np.arange(4.0)
    np.testing.assert_array_equal(interpret(program, {"x": x})["y"], x)
    np.testing.assert_array_equal(interpret_physical(program, {"x": x})["y"], [3, 3, 3, 3])


def test_a_stack_buffer_is_new_in_each_iteration():
    program = parse(
        kernel(
            "4 t[0] = x[{0}] if {0} == 0\n| y[{0}] = t[0]", "x f32 [4] heap\ny f32 [4] heap\nt f32 [1] stack"
        )
    )
    y = interpret_physical(program, {"x": np.ones(4)})["y"]
    np.testing.assert_array_equal(y, [1, np.nan, np.nan, np.nan])


def test_inputs_that_are_missing_or_of_another_shape_are_named():
    program = parse(kernel("4 y[{0}] = x[{0}]", "x f32 [4] heap\ny f32 [4] heap"))
    with pytest.raises(ValueError, match="The input x is missing"):
        interpret(program, {})
    with pytest.raises(ValueError, match=r"The input x has the shape \(4,\), not \(5,\)"):
        interpret(program, {"x": np.ones(5)})
    with pytest.raises(ValueError, match="missing"):
        interpret_physical(program, {})


def test_steps_too_large_for_memory_are_cut(monkeypatch):
    monkeypatch.setattr("dojo_core.program.interpret.CHUNK_CELLS", 5)
    test_softmax_is_its_reference_also_where_numbers_are_large()
    matmul = kernels.get("matmul")
    inputs = random_inputs(matmul.program((3, 4, 5)))
    np.testing.assert_allclose(
        interpret(matmul.program((3, 4, 5)), inputs)["c"],
        matmul.reference(inputs, (3, 4, 5))["c"],
        rtol=1e-12,
    )


def test_a_guarded_store_into_one_element_keeps_the_last():
    text = "kernel k\nin x\nout y, z\nx f32 [4] heap\ny f32 [] heap\nz f32 [2] heap\n"
    text += "4 2 y[] = x[{0}] if {0} < 3\n2 z[{0}] = 0\n4 2 z[1] = x[{0}]*{1} if {0} < 3\n"
    found = interpret(parse(text), {"x": np.arange(4.0) + 1})
    assert found["y"] == 3 and found["z"].tolist() == [0, 3]


@pytest.mark.parametrize(
    ("operation", "dtype", "expected"),
    [
        ("and(x[{0}],w[{0}])", "i8", [0, 7, 1, -128, 8]),
        ("or(x[{0}],w[{0}])", "i8", [1, -9, 7, -1, -8]),
        ("xor(x[{0}],w[{0}])", "i8", [1, -16, 6, 127, -16]),
        ("not(x[{0}])", "i8", [-1, -8, -6, 127, 7]),
        ("shl(x[{0}],w[{0}])", "i8", [0, 0, 40, 0, 0]),
        ("shr(x[{0}],w[{0}])", "i8", [0, 0, 0, -1, -1]),
        ("shr(x[{0}],1)", "u8", [0, 3, 2, 64, 124]),
        ("shl(x[{0}],8)", "u8", [0, 0, 0, 0, 0]),
        ("fmod(x[{0}],w[{0}])", "i8", [0, 7, 2, 0, 0]),
        ("sign(x[{0}])", "i8", [0, 1, 1, -1, -1]),
        ("not(x[{0}])", "bool", [1, 0, 0, 0, 0]),
        ("xor(x[{0}],w[{0}])", "bool", [1, 0, 0, 0, 0]),
    ],
)
def test_bits_of_integers(operation, dtype, expected):
    """Counts that are negative, or as large as the number of bits, move all of them out."""
    stored = {"i8": np.int8, "u8": np.uint8, "bool": np.bool_}[dtype]
    inputs = {
        "x": np.array([0, 7, 5, -128, -8]).astype(stored),
        "w": np.array([1, -9, 3, -1, 8]).astype(stored),
    }
    buffers = "\n".join(f"{name} {dtype} [5] heap" for name in "xwy")
    assert meaning(f"5 y[{{0}}] = {operation}", buffers, inputs).tolist() == expected


def test_what_is_tested_for_infinity_is_rounded():
    """In f32, as C has it: float64 would hold the square."""
    body = "2 t[{0}] = x[{0}]*x[{0}]\n2 y[{0}] = isinf(t[{0}])"
    y = meaning(body, "x f32 [2] heap\nt f32 [2] heap\ny f32 [2] heap", {"x": np.array([1e30, 1e10])})
    assert y.tolist() == [1, 0]
