"""Run by a test with the exported package on the path and nothing of the Dojo: NumPy."""

import multiprocessing
import sys

import kept
import numpy as np

assert not any(name.partition(".")[0] in ("dojo_core", "dojo_native") for name in sys.modules)


def refused(kind, sentence, call):
    try:
        call()
    except kind as error:
        assert sentence in str(error), error
    else:
        raise AssertionError(f"not refused: {sentence}")


rng = np.random.default_rng(0)
x = rng.standard_normal((64, 64), np.float32)
expected = np.exp(x.astype(np.float64))
expected /= expected.sum(1, keepdims=True)

# NumPy: every level that this processor has
best = kept.level()
tried = []
for level in ("baseline", "avx2", "avx512", "native"):
    try:
        kept.use_level(level)
    except ValueError:
        continue
    tried.append(level)
    np.testing.assert_allclose(kept.softmax(x), expected, rtol=1e-5)
kept.use_level()
assert kept.level() == best == tried[-1]

# arrays that are not dense, or begin between two elements, are copied; out is written in place
raw = np.zeros(x.nbytes + 1, np.uint8)
misaligned = raw[1:].view(np.float32).reshape(64, 64)
misaligned[...] = x
assert not misaligned.flags.aligned
out = np.empty_like(x)
assert kept.softmax(misaligned, out=out) is out
np.testing.assert_array_equal(out, kept.softmax(x))
np.testing.assert_array_equal(kept.softmax(np.asfortranarray(x)), out)
np.testing.assert_array_equal(kept.softmax(np.repeat(x, 2, 1)[:, ::2]), out)

lam = rng.integers(0, 9, (6, 32), np.int32)
halves, counts = kept.pair(x[:6, :32], lam)
np.testing.assert_allclose(halves, np.exp(x[:6, :32]) / 2, rtol=1e-5)
np.testing.assert_array_equal(counts, lam.sum(1))
assert kept.shapes("pair") == [{"new_": (6, 32), "lambda_": (6, 32)}]
assert all(kept.softmax(x).ctypes.data % 64 == 0 for _ in range(8)), "stores past the caches need it"
assert [s["x"] for s in kept.shapes("softmax")] == [(64, 64), (8, 96)]
assert kept.softmax(x[:8, :48].repeat(2, 1)).shape == (8, 96), "the shape chooses the kernel"

table, picks = rng.standard_normal((5, 8), np.float32), np.array([2, 6, 3, 4])
zeros = np.zeros(4, np.float32)
np.testing.assert_array_equal(kept.rows(table, picks, zeros), table[picks - 2] + table[0])
refused(ValueError, "a value beyond those that the kernel takes", lambda: kept.rows(table, picks + 1, zeros))
refused(ValueError, "holds one of them twice", lambda: kept.rows(table, picks[[0, 1, 2, 1]], zeros))
refused(
    ValueError, "a value beyond those that the kernel takes", lambda: kept.rows(table, picks - 2**40, zeros)
)

refused(ValueError, "softmax was exported for x float32 [64, 64]; or x float32", lambda: kept.softmax(x[:3]))
refused(TypeError, "x of softmax is float64, and the kernel takes float32", lambda: kept.softmax(expected))
refused(TypeError, "x of softmax is a list: pass a NumPy array.", lambda: kept.softmax([1.0]))
refused(ValueError, "overlaps another array", lambda: kept.softmax(x, out=x))
refused(ValueError, "out takes y of softmax, float32 [64, 64], not", lambda: kept.softmax(x, out=x[:2]))
refused(ValueError, "must be dense", lambda: kept.softmax(x, out=np.empty((64, 128), np.float32)[:, ::2]))
refused(ValueError, "pair has 2 outputs, and out has 1", lambda: kept.pair(x[:6, :32], lam, out=[halves]))

# a process that forked after a call calls again, and gets the same
with multiprocessing.get_context("fork").Pool(2) as pool:
    for result in pool.map_async(kept.softmax, [x, x, x]).get(timeout=300):
        np.testing.assert_array_equal(result, out)
np.testing.assert_array_equal(kept.softmax(x), out)
print(best, "of", len(tried), "levels")
