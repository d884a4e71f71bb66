"""Kernels of narrow dtypes: int8 products with int32 sums, requantised; bf16 and f16 with f32 sums.

Quantised: real numbers stand as whole ones, x ≈ scale · (q − zero point). a is u8 with one zero point z, w is
i8 with a scale per column; the sums of a − z take w's column sums, Σ (a − z)·w = Σ a·w − z · Σ w, as in
gemmlowp (B. Jacob et al., "Quantization and training of neural networks for efficient integer-arithmetic-only
inference", CVPR 2018). The scale of a column is s times a power of two, R, so that s is near 1.
"""

from __future__ import annotations

import math

import numpy as np

from dojo_core.kernels.kernel import Array, Shape
from dojo_core.kernels.normalisation import RMSNORM_EPS
from dojo_core.kernels.template import Sizes, templated

_SUMS = """
    M N c[{0},{1}] = 0
    M N K c[{0},{1}] += a[{0},{2}]*w[{2},{1}]
    N r[{0}] = 0
    N K r[{0}] += w[{1},{0}]
    N o[{0}] = r[{0}]*z[]
    M N d[{0},{1}] = c[{0},{1}] - o[{1}]
    M N f[{0},{1}] = f32(d[{0},{1}])
"""
_QUANTISED = {
    "a": "u8 M K", "w": "i8 K N", "z": "u8", "s": "f32 N", "c": "i32 M N", "r": "i32 N", "o": "i32 N",
    "d": "i32 M N", "f": "f32 M N",
}  # fmt: skip


def scale_factor(shape: Shape) -> float:
    """R: the power of two that brings sums of random bytes to a few dozen; a product of two is near 2**13."""
    return 2.0 ** -(8 + round(math.log2(shape[1]) / 2))


def _sizes(sizes: Sizes) -> Sizes:
    return {"R": scale_factor((0, int(sizes["K"])))}


def _sums(a: Array, w: Array, z: Array) -> Array:
    """Σ (a − z)·w in f32, as the program converts it: float64 holds the sums exactly."""
    return np.asarray(a @ w - z * w.sum(axis=0), np.float32)


def _requantised(a: Array, w: Array, z: Array, s: Array, p: Array, shape: Shape) -> Array:
    with np.errstate(invalid="ignore"):
        scaled = _sums(a, w, z) * s.astype(np.float32) * np.float32(scale_factor(shape))
        y = np.clip(np.rint(scaled) + p.astype(np.float32), -128, 127)
    return np.where(np.isnan(y), 0, y).astype(np.float64)


def _dequantised(a: Array, w: Array, z: Array, s: Array, shape: Shape) -> Array:
    return np.asarray((a @ w - z * w.sum(axis=0)) * (s * scale_factor(shape)))


def _softmax(x: Array, shape: Shape) -> Array:
    with np.errstate(invalid="ignore"):  # a row of infinities is NaN, as in the program
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))


def _rmsnorm(x: Array, g: Array, shape: Shape) -> Array:
    return np.asarray(x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + RMSNORM_EPS) * g)


KERNELS = (
    templated(
        "qmatmul", "Quantised matrix product",
        "y = clamp(round(R·s[n] · Σ (a − z)·w) + p), u8 · i8 in i32 to i8", "quantised",
        "M K N", ((768, 1024, 1024), (128, 4096, 4096)),
        _QUANTISED | dict.fromkeys("ghqtuv", "f32 M N") | {"p": "i8", "y": "i8 M N"},
        "a, w, z, s, p", "y",
        _SUMS + """
        M N g[{0},{1}] = f[{0},{1}]*s[{1}]
        M N h[{0},{1}] = g[{0},{1}]*R
        M N q[{0},{1}] = round(h[{0},{1}])
        M N t[{0},{1}] = q[{0},{1}] + p[]
        M N u[{0},{1}] = max(t[{0},{1}],-128)
        M N v[{0},{1}] = min(u[{0},{1}],127)
        M N y[{0},{1}] = i8(v[{0},{1}])
        """,
        _requantised, _sizes,
    ),
    templated(
        "qmatmul_f32", "Quantised matrix product to f32",
        "y = R·s[n] · Σ (a − z)·w, u8 · i8 in i32 to f32", "quantised",
        "M K N", ((768, 1024, 1024), (128, 4096, 4096)),
        _QUANTISED | {"y": "f32 M N", "g": "f32 M N"}, "a, w, z, s", "y",
        _SUMS + """
        M N g[{0},{1}] = f[{0},{1}]*s[{1}]
        M N y[{0},{1}] = g[{0},{1}]*R
        """,
        _dequantised, _sizes,
    ),
    templated(
        "matmul_bf16", "Matrix product in bf16", "c = a · b, bf16 with f32 sums", "half precision",
        "M K N", ((768, 1024, 1024),),
        {"a": "bf16 M K", "b": "bf16 K N", "c": "bf16 M N", "s": "f32 M N"}, "a, b", "c",
        """
        M N s[{0},{1}] = 0
        M N K s[{0},{1}] += a[{0},{2}]*b[{2},{1}]
        M N c[{0},{1}] = bf16(s[{0},{1}])
        """,
        lambda a, b, shape: a @ b,
    ),
    templated(
        "softmax_bf16", "Softmax in bf16", "y = exp(x − max x) / Σ exp(x − max x), bf16 with f32 sums",
        "half precision", "M N", ((24576, 512),),
        {"x": "bf16 M N", "y": "bf16 M N", "m": "bf16 M", "d": "f32 M N", "e": "f32 M N", "s": "f32 M",
         "q": "f32 M N"}, "x", "y",
        """
        M m[{0}] = -inf
        | N m[{0}] max= x[{0},{1}]
        M N d[{0},{1}] = x[{0},{1}] - m[{0}]
        M N e[{0},{1}] = exp(d[{0},{1}])
        M s[{0}] = 0
        | N s[{0}] += e[{0},{1}]
        M N q[{0},{1}] = e[{0},{1}] / s[{0}]
        M N y[{0},{1}] = bf16(q[{0},{1}])
        """,
        _softmax,
    ),
    templated(
        "rmsnorm_f16", "RMS normalisation in f16", "y = x / √(mean x² + 1e-6) · g, f16 with f32 sums",
        "half precision", "M N", ((3072, 4096),),
        {"x": "f16 M N", "g": "f16 N", "y": "f16 M N", "s": "f32 M", "r": "f32 M", "t": "f32 M N",
         "n": "f32 M N"}, "x, g", "y",
        """
        M s[{0}] = 0
        | N s[{0}] += x[{0},{1}]*x[{0},{1}]
        M s[{0}] = s[{0}]*INVERSE
        M s[{0}] = s[{0}] + EPS
        M r[{0}] = rsqrt(s[{0}])
        M N t[{0},{1}] = x[{0},{1}]*r[{0}]
        M N n[{0},{1}] = t[{0},{1}]*g[{1}]
        M N y[{0},{1}] = f16(n[{0},{1}])
        """,
        _rmsnorm, lambda s: {"INVERSE": 1 / s["N"], "EPS": RMSNORM_EPS},
    ),
)  # fmt: skip
