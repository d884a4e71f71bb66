"""Layers of networks beyond table 3: activations, losses, group norm, pooling, depthwise, attention."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dojo_core.kernels.kernel import Array, Kernel, Shape
from dojo_core.kernels.template import Sizes, templated

GROUPNORM_EPS = 1e-5


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _log_softmax(x: Array) -> Array:
    d = x - x.max(axis=1, keepdims=True)
    return np.asarray(d - np.log(np.exp(d).sum(axis=1, keepdims=True)))


def _groupnorm(x: Array, g: Array, b: Array, shape: Shape) -> Array:
    d = x - x.mean(axis=(2, 3, 4), keepdims=True)
    v = (d * d).mean(axis=(2, 3, 4), keepdims=True)
    return np.asarray(d / np.sqrt(v + GROUPNORM_EPS) * g[..., None, None] + b[..., None, None])


def _windows(x: Array, shape: Shape) -> Array:
    """The windows of a pooling, two axes behind the rest."""
    k, s = shape[4:6]
    return np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(2, 3))[:, :, ::s, ::s]


def _pooled(sizes: Sizes) -> Sizes:
    h, w, k, s = (int(sizes[name]) for name in ("H", "W", "K", "S"))
    return {"P": (h - k) // s + 1, "Q": (w - k) // s + 1, "KK": k * k}


def _window_fits(shape: Shape) -> str:
    h, w, k = shape[2:5]
    return f"A window of {k} does not fit an image of {h}x{w}." if k > min(h, w) else ""


def _pool(name: str, title: str, formula: str, body: str, result: Callable[..., Array]) -> Kernel:
    window = "x[{0},{1},{2}*S+{4},{3}*S+{5}]"
    return templated(
        name, title, formula, "pooling", "N C H W K S", ((8, 64, 112, 112, 3, 2),),
        {"x": "N C H W", "y": "N C P Q"}, "x", "y", body.replace("WINDOW", window),
        result, _pooled, _window_fits,
    )  # fmt: skip


def _dwconv(x: Array, w: Array, shape: Shape) -> Array:
    k = shape[4]
    windows = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(2, 3))
    return np.asarray(np.einsum("nchwij,cij->nchw", windows, w))


def _gqa(q: Array, k: Array, v: Array, shape: Shape) -> Array:
    s = q @ k[:, None].swapaxes(2, 3) / math.sqrt(shape[4])
    e = np.exp(s - s.max(axis=3, keepdims=True))
    return np.asarray(e / e.sum(axis=3, keepdims=True) @ v[:, None])


def _rope(x: Array, c: Array, s: Array, shape: Shape) -> Array:
    low, high = np.split(x, 2, axis=2)
    c, s = c[:, None], s[:, None]
    return np.concatenate([low * c - high * s, high * c + low * s], axis=2)


def _attention(q: Array, k: Array, v: Array, shape: Shape) -> Array:
    s = q @ k.swapaxes(1, 2) / math.sqrt(shape[3])
    e = np.exp(s - s.max(axis=2, keepdims=True))
    return np.asarray(e / e.sum(axis=2, keepdims=True) @ v)


_LOG_SOFTMAX = """
        M m[{0}] = -inf
        | N m[{0}] max= x[{0},{1}]
        M N d[{0},{1}] = x[{0},{1}] - m[{0}]
        M N e[{0},{1}] = exp(d[{0},{1}])
        M s[{0}] = 0
        | N s[{0}] += e[{0},{1}]
        M l[{0}] = log(s[{0}])
"""
_ROWS = {"m": "M", "d": "M N", "e": "M N", "s": "M", "l": "M"}

KERNELS = (
    templated(
        "gelu", "GELU", "y = x/2 · (1 + erf(x/√2))", "element-wise", "M N", ((4096, 4096),),
        {"x": "M N", "y": "M N", "t": "M N", "u": "M N", "v": "M N", "w": "M N"}, "x", "y",
        """
        M N t[{0},{1}] = x[{0},{1}]*0.7071067811865476
        M N u[{0},{1}] = erf(t[{0},{1}])
        M N v[{0},{1}] = u[{0},{1}] + 1
        M N w[{0},{1}] = x[{0},{1}]*v[{0},{1}]
        M N y[{0},{1}] = w[{0},{1}]*0.5
        """,
        lambda x, shape: x / 2 * (1 + _erf(x / math.sqrt(2))),
    ),
    templated(
        "silu", "SiLU", "y = x · sigmoid(x)", "element-wise", "M N", ((4096, 4096),),
        {"x": "M N", "y": "M N", "s": "M N"}, "x", "y",
        """
        M N s[{0},{1}] = sigmoid(x[{0},{1}])
        M N y[{0},{1}] = x[{0},{1}]*s[{0},{1}]
        """,
        lambda x, shape: x / (1 + np.exp(-x)),
    ),
    templated(
        "log_softmax", "Log-softmax", "y = x − max x − log Σ exp(x − max x) along the last axis", "reduction",
        "M N", ((24576, 512),), {"x": "M N", "y": "M N"} | _ROWS, "x", "y",
        _LOG_SOFTMAX + "M N y[{0},{1}] = d[{0},{1}] - l[{0}]",
        lambda x, shape: _log_softmax(x),
    ),
    templated(
        "cross_entropy", "Cross entropy", "y = −Σ t · log softmax(x) along the last axis", "reduction",
        "M N", ((24576, 512),), {"x": "M N", "t": "M N", "y": "M", "n": "M N"} | _ROWS, "x, t", "y",
        _LOG_SOFTMAX + """
        M N n[{0},{1}] = l[{0}] - d[{0},{1}]
        M y[{0}] = 0
        | N y[{0}] += t[{0},{1}]*n[{0},{1}]
        """,
        lambda x, t, shape: -(t * _log_softmax(x)).sum(axis=1),
    ),
    templated(
        "groupnorm", "Group normalisation",
        "y = (x − mean x) / √(var x + 1e-5) · g + b per group of channels",
        "normalisation", "N G C H W", ((8, 32, 2, 112, 112),),
        {"x": "N G C H W", "g": "G C", "b": "G C", "y": "N G C H W", "u": "N G", "d": "N G C H W", "v": "N G",
         "r": "N G", "n": "N G C H W", "m": "N G C H W"}, "x, g, b", "y",
        """
        N G u[{0},{1}] = 0
        | | C H W u[{0},{1}] += x[{0},{1},{2},{3},{4}]
        N G u[{0},{1}] = u[{0},{1}] / COUNT
        N G C H W d[{0},{1},{2},{3},{4}] = x[{0},{1},{2},{3},{4}] - u[{0},{1}]
        N G v[{0},{1}] = 0
        | | C H W v[{0},{1}] += d[{0},{1},{2},{3},{4}]*d[{0},{1},{2},{3},{4}]
        N G v[{0},{1}] = v[{0},{1}] / COUNT
        N G v[{0},{1}] = v[{0},{1}] + 1e-05
        N G r[{0},{1}] = rsqrt(v[{0},{1}])
        N G C H W n[{0},{1},{2},{3},{4}] = d[{0},{1},{2},{3},{4}]*r[{0},{1}]
        N G C H W m[{0},{1},{2},{3},{4}] = n[{0},{1},{2},{3},{4}]*g[{1},{2}]
        N G C H W y[{0},{1},{2},{3},{4}] = m[{0},{1},{2},{3},{4}] + b[{1},{2}]
        """,
        _groupnorm, lambda s: {"COUNT": s["C"] * s["H"] * s["W"]},
    ),
    _pool(
        "maxpool", "Maximum pooling", "y = max of each K×K window, stride S",
        """
        N C P Q y[{0},{1},{2},{3}] = -inf
        N C P Q K K y[{0},{1},{2},{3}] max= WINDOW
        """,
        lambda x, shape: _windows(x, shape).max(axis=(4, 5)),
    ),
    _pool(
        "sumpool", "Sum pooling", "y = Σ of each K×K window, stride S",
        """
        N C P Q y[{0},{1},{2},{3}] = 0
        N C P Q K K y[{0},{1},{2},{3}] += WINDOW
        """,
        lambda x, shape: _windows(x, shape).sum(axis=(4, 5)),
    ),
    _pool(
        "avgpool", "Average pooling", "y = mean of each K×K window, stride S",
        """
        N C P Q y[{0},{1},{2},{3}] = 0
        N C P Q K K y[{0},{1},{2},{3}] += WINDOW
        N C P Q y[{0},{1},{2},{3}] = y[{0},{1},{2},{3}] / KK
        """,
        lambda x, shape: _windows(x, shape).mean(axis=(4, 5)),
    ),
    templated(
        "dwconv", "Depthwise convolution", "y[c] = x[c] ⋆ w[c], stride 1, no padding", "contraction",
        "N C H W K", ((8, 64, 112, 112, 3),), {"x": "N C H W", "w": "C K K", "y": "N C P Q"}, "x, w", "y",
        """
        N C P Q y[{0},{1},{2},{3}] = 0
        N C P Q K K y[{0},{1},{2},{3}] += x[{0},{1},{2}+{4},{3}+{5}]*w[{1},{4},{5}]
        """,
        _dwconv, lambda s: _pooled(s | {"S": 1}), _window_fits,
    ),
    templated(
        "attention", "Attention", "y = softmax(q · kᵀ / √D) · v for each head", "attention",
        "H M N D", ((12, 512, 512, 64), (1, 1024, 1024, 64)),
        {"q": "H M D", "k": "H N D", "v": "H N D", "y": "H M D", "s": "H M N", "a": "H M N", "m": "H M",
         "d": "H M N", "e": "H M N", "z": "H M", "p": "H M N"}, "q, k, v", "y",
        """
        H M N s[{0},{1},{2}] = 0
        H M N D s[{0},{1},{2}] += q[{0},{1},{3}]*k[{0},{2},{3}]
        H M N a[{0},{1},{2}] = s[{0},{1},{2}]*R
        H M m[{0},{1}] = -inf
        | | N m[{0},{1}] max= a[{0},{1},{2}]
        H M N d[{0},{1},{2}] = a[{0},{1},{2}] - m[{0},{1}]
        H M N e[{0},{1},{2}] = exp(d[{0},{1},{2}])
        H M z[{0},{1}] = 0
        | | N z[{0},{1}] += e[{0},{1},{2}]
        H M N p[{0},{1},{2}] = e[{0},{1},{2}] / z[{0},{1}]
        H M D y[{0},{1},{2}] = 0
        H M D N y[{0},{1},{2}] += p[{0},{1},{3}]*v[{0},{3},{2}]
        """,
        _attention, lambda s: {"R": 1 / math.sqrt(s["D"])},
    ),
    templated(
        "gqa", "Grouped-query attention", "y = softmax(q · kᵀ / √D) · v, G heads of queries on each of H",
        "attention", "H G M N D", ((8, 4, 512, 512, 128),),
        {"q": "H G M D", "k": "H N D", "v": "H N D", "y": "H G M D", "s": "H G M N", "a": "H G M N",
         "m": "H G M", "d": "H G M N", "e": "H G M N", "z": "H G M", "p": "H G M N"}, "q, k, v", "y",
        """
        H G M N s[{0},{1},{2},{3}] = 0
        H G M N D s[{0},{1},{2},{3}] += q[{0},{1},{2},{4}]*k[{0},{3},{4}]
        H G M N a[{0},{1},{2},{3}] = s[{0},{1},{2},{3}]*R
        H G M m[{0},{1},{2}] = -inf
        | | | N m[{0},{1},{2}] max= a[{0},{1},{2},{3}]
        H G M N d[{0},{1},{2},{3}] = a[{0},{1},{2},{3}] - m[{0},{1},{2}]
        H G M N e[{0},{1},{2},{3}] = exp(d[{0},{1},{2},{3}])
        H G M z[{0},{1},{2}] = 0
        | | | N z[{0},{1},{2}] += e[{0},{1},{2},{3}]
        H G M N p[{0},{1},{2},{3}] = e[{0},{1},{2},{3}] / z[{0},{1},{2}]
        H G M D y[{0},{1},{2},{3}] = 0
        H G M D N y[{0},{1},{2},{3}] += p[{0},{1},{2},{4}]*v[{0},{4},{3}]
        """,
        _gqa, lambda s: {"R": 1 / math.sqrt(s["D"])},
    ),
    templated(
        "rope", "Rotary position embedding", "y = x · cos + rotate(x) · sin, halves of D rotated by position",
        "element-wise", "M H D", ((512, 32, 128),),
        {"x": "M H D", "c": "M E", "s": "M E", "y": "M H D", "a": "M H E", "b": "M H E", "e": "M H E",
         "f": "M H E"}, "x, c, s", "y",
        """
        M H E a[{0},{1},{2}] = x[{0},{1},{2}]*c[{0},{2}]
        M H E b[{0},{1},{2}] = x[{0},{1},{2}+E]*s[{0},{2}]
        M H E y[{0},{1},{2}] = a[{0},{1},{2}] - b[{0},{1},{2}]
        M H E e[{0},{1},{2}] = x[{0},{1},{2}+E]*c[{0},{2}]
        M H E f[{0},{1},{2}] = x[{0},{1},{2}]*s[{0},{2}]
        M H E y[{0},{1},{2}+E] = e[{0},{1},{2}] + f[{0},{1},{2}]
        """,
        _rope, lambda s: {"E": int(s["D"]) // 2},
        lambda shape: "The last size of rope, D, is even: it is rotated in halves." if shape[2] % 2 else "",
    ),
)  # fmt: skip
