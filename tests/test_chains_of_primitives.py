"""Random chains of primitives compute what NumPy does: views of views, of copies, of parts of others."""

import numpy as np
import pytest

from dojo_core.faults import program_fault
from dojo_core.primitives import (
    Builder,
    concatenate,
    elementwise,
    formula,
    gather,
    pad,
    reduce,
    reshape,
    scan,
    slice_,
    tile,
    transpose,
    window,
)
from dojo_core.program.interpret import interpret
from tests.thorough import one_of

LARGEST = 3000  # elements of an array
INDEX = np.array([[0, 2, -1], [-2, 1, 5]])


def shape_of(count, rng):
    """A random shape of so many elements."""
    shape = []
    while count > 1 and rng.random() < 0.8:
        divisors = [d for d in range(1, count + 1) if count % d == 0]
        shape.append(int(rng.choice(divisors)))
        count //= shape[-1]
    return (*shape, count)


def reshaped(b, a, x, rng, axis, others):
    shape = shape_of(x.size, rng)
    return reshape(b, a, shape), x.reshape(shape)


def transposed(b, a, x, rng, axis, others):
    order = [int(k) for k in rng.permutation(x.ndim)]
    return transpose(b, a, order), x.transpose(order)


def sliced(b, a, x, rng, axis, others):
    low = int(rng.integers(x.shape[axis]))
    high = int(rng.integers(low + 1, x.shape[axis] + 1))
    step = int(rng.choice([1, 2, -1, -2]))
    start, stop = (low, high) if step > 0 else (high - 1, low - 1 if low else None)
    index = [slice(None)] * x.ndim
    index[axis] = slice(start, stop, step)
    return slice_(b, a, axis, start, stop, step), x[tuple(index)]


def negated(b, a, x, rng, axis, others):
    return elementwise(b, "neg", a), -x


def combined(b, a, x, rng, axis, others):
    c, y = others[rng.integers(len(others))]
    if x.size == y.size and rng.random() < 0.5:
        c, y = reshape(b, c, x.shape), y.reshape(x.shape)
    if np.broadcast(x, y).size > LARGEST:
        return None
    return formula(b, "max(x, y)*2 - x", x=a, y=c), np.maximum(x, y) * 2 - x


def reduced(b, a, x, rng, axis, others):
    keep = bool(rng.integers(2))
    accumulation, numpys = [("+", np.sum), ("max", np.max)][rng.integers(2)]
    return reduce(b, accumulation, a, axis, keep), numpys(x, axis=axis, keepdims=keep)


def concatenated(b, a, x, rng, axis, others):
    rest = np.delete(x.shape, axis)
    fitting = [o for o in others if o[1].ndim == x.ndim and np.array_equal(np.delete(o[1].shape, axis), rest)]
    parts = [(a, x), *fitting[:2]]
    return concatenate(b, [p for p, _ in parts], axis), np.concatenate([y for _, y in parts], axis)


def padded(b, a, x, rng, axis, others):
    mode = str(rng.choice(["constant", "edge", "reflect", "wrap"]))
    pads = [(int(rng.integers(3)), int(rng.integers(3))) if rng.random() < 0.5 else (0, 0) for _ in x.shape]
    return pad(b, a, pads, mode), np.pad(x, pads, mode)


def tiled(b, a, x, rng, axis, others):
    repeats = [int(rng.integers(1, 3)) for _ in x.shape]
    return tile(b, a, repeats), np.tile(x, repeats)


def taken(b, a, x, rng, axis, others):
    index = rng.integers(-x.shape[axis], x.shape[axis], size=int(rng.integers(1, 5)))
    return gather(b, a, index, axis), x.take(index, axis)


def looked_up(b, a, x, rng, axis, others):
    """By indices that are data, brought into the axis where they lie beyond it."""
    size = x.shape[axis]
    i = reshape(b, b.index, shape_of(INDEX.size, rng)) if rng.random() < 0.5 else b.index
    at = INDEX.reshape(i.shape)
    return gather(b, a, i, axis), x.take(np.clip(np.where(at < 0, at + size, at), 0, size - 1), axis)


def scanned(b, a, x, rng, axis, others):
    return scan(b, "+", a, axis, reverse=True), np.flip(np.flip(x, axis).cumsum(axis), axis)


def windowed(b, a, x, rng, axis, others):
    width, stride = int(rng.integers(1, x.shape[axis] + 1)), int(rng.integers(1, 3))
    rows = np.lib.stride_tricks.sliding_window_view(x, width, axis=axis)
    index = [slice(None)] * rows.ndim
    index[axis] = slice(None, None, stride)
    return window(b, a, axis, width, stride), rows[tuple(index)]


STEPS = [
    reshaped, transposed, sliced, negated, combined, combined, reduced, concatenated, padded, tiled, taken,
    looked_up, scanned, windowed,
]  # fmt: skip


def check(seed):
    """Eight random steps from two inputs; the last result and two others are outputs."""
    rng = np.random.default_rng(seed)
    b = Builder("chain")
    b.index = b.input("i", "i32", INDEX.shape, (-2, 5))
    arrays, inputs = [], {"i": INDEX}
    for k in range(2):
        shape = tuple(int(n) for n in rng.integers(1, 5, size=rng.integers(1, 4)))
        inputs[f"x{k}"] = rng.integers(-4, 5, size=shape).astype(float)
        arrays.append((b.input(f"x{k}", "f64", shape), inputs[f"x{k}"]))
    while len(arrays) < 10:
        a, x = arrays[rng.integers(len(arrays))]
        step = STEPS[rng.integers(len(STEPS))]
        if not x.ndim and step not in (reshaped, negated):
            continue
        try:
            made = step(b, a, x, rng, int(rng.integers(x.ndim)) if x.ndim else 0, arrays)
        except ValueError as error:
            if "broadcast" not in str(error):
                raise
            continue
        if made is not None and made[1].size <= LARGEST:
            assert made[0].shape == made[1].shape
            arrays.append(made)
    outputs = [arrays[-1], *(arrays[k] for k in rng.choice(9, size=2, replace=False))]
    for k, (a, _) in enumerate(outputs):
        b.output(f"y{k}", a)
    program = b.program()
    assert program_fault(program) is None
    results = interpret(program, {k: x for k, x in inputs.items() if k in program.inputs} | b.constants)
    for k, (_, x) in enumerate(outputs):
        np.testing.assert_array_equal(results[f"y{k}"], x, err_msg=f"seed {seed}\n{program.text}")


@pytest.mark.parametrize("seed", one_of(4, range(40)))
def test_a_chain_is_what_numpy_computes(seed):
    check(seed)


@pytest.mark.soak
def test_many_chains_are_what_numpy_computes():
    for seed in range(40, 3000):
        check(seed)
