"""layernorm, rmsnorm, batchnorm: moments of a row or a channel, then an element-wise step.

A mean is a sum times 1/n, as in the start programs of the recorded lines.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dojo_core.kernels.kernel import Array, Kernel, Shape, cells, kernel_text

LAYERNORM_EPS = 1e-5
RMSNORM_EPS = 1e-6
BATCHNORM_EPS = 1e-5


def _layernorm_text(shape: Shape) -> str:
    m, n = shape
    body = f"""
        {m} u[{{0}}] = 0
        | {n} u[{{0}}] += x[{{0}},{{1}}]
        | u[{{0}}] = u[{{0}}]*{1 / n!r}
        {m} {n} d[{{0}},{{1}}] = x[{{0}},{{1}}] - u[{{0}}]
        {m} v[{{0}}] = 0
        | {n} v[{{0}}] += d[{{0}},{{1}}]*d[{{0}},{{1}}]
        {m} v[{{0}}] = v[{{0}}]*{1 / n!r}
        {m} v[{{0}}] = v[{{0}}] + {LAYERNORM_EPS!r}
        {m} r[{{0}}] = rsqrt(v[{{0}}])
        {m} {n} n[{{0}},{{1}}] = d[{{0}},{{1}}]*r[{{0}}]
        {m} {n} n[{{0}},{{1}}] = n[{{0}},{{1}}]*g[{{1}}]
        {m} {n} y[{{0}},{{1}}] = n[{{0}},{{1}}] + h[{{1}}]
    """
    rows, columns = (m,), (n,)
    arrays = {"x": shape, "g": columns, "h": columns, "y": shape, "u": rows, "d": shape}
    return kernel_text("layernorm", arrays | {"v": rows, "r": rows, "n": shape}, "x, g, h", "y", body)


def _layernorm(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    x = inputs["x"]
    d = x - x.mean(axis=1, keepdims=True)
    v = np.mean(d * d, axis=1, keepdims=True)
    return {"y": d / np.sqrt(v + LAYERNORM_EPS) * inputs["g"] + inputs["h"]}


def _rmsnorm_text(shape: Shape) -> str:
    m, n = shape
    body = f"""
        {m} s[{{0}}] = 0
        | {n} s[{{0}}] += x[{{0}},{{1}}]*x[{{0}},{{1}}]
        {m} s[{{0}}] = s[{{0}}]*{1 / n!r}
        {m} s[{{0}}] = s[{{0}}] + {RMSNORM_EPS!r}
        {m} r[{{0}}] = rsqrt(s[{{0}}])
        {m} {n} t[{{0}},{{1}}] = x[{{0}},{{1}}]*r[{{0}}]
        {m} {n} y[{{0}},{{1}}] = t[{{0}},{{1}}]*g[{{1}}]
    """
    arrays = {"x": shape, "g": (n,), "y": shape, "s": (m,), "r": (m,), "t": shape}
    return kernel_text("rmsnorm", arrays, "x, g", "y", body)


def _rmsnorm(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    x = inputs["x"]
    return {"y": x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + RMSNORM_EPS) * inputs["g"]}


def _batchnorm_text(shape: Shape) -> str:
    # A channel has up to 33 million elements, and a running sum of so many ones in f32 stops at 2^24: so
    # each row is summed by itself, and then the rows.
    n, c, h, w = shape
    nest, at, count = f"{n} {c} {h} {w}", "{0},{1},{2},{3}", n * h * w
    rows = f"{c} {n} {h}"  # a channel's sum goes over the images: its iterator stands outside
    of, row = "{1},{0},{2},{3}", "{0},{1},{2}"
    body = f"""
        {rows} p[{row}] = 0
        | | | {w} p[{row}] += x[{of}]
        {c} u[{{0}}] = 0
        {rows} u[{{0}}] += p[{row}]
        {c} u[{{0}}] = u[{{0}}]*{1 / count!r}
        {nest} d[{at}] = x[{at}] - u[{{1}}]
        {rows} q[{row}] = 0
        | | | {w} q[{row}] += d[{of}]*d[{of}]
        {c} v[{{0}}] = 0
        {rows} v[{{0}}] += q[{row}]
        {c} v[{{0}}] = v[{{0}}]*{1 / count!r}
        {c} v[{{0}}] = v[{{0}}] + {BATCHNORM_EPS!r}
        {c} r[{{0}}] = rsqrt(v[{{0}}])
        {nest} t[{at}] = d[{at}]*r[{{1}}]
        {nest} t[{at}] = t[{at}]*g[{{1}}]
        {nest} y[{at}] = t[{at}] + b[{{1}}]
    """
    arrays = dict.fromkeys("xydt", shape) | dict.fromkeys("gbuvr", (c,)) | dict.fromkeys("pq", (c, n, h))
    return kernel_text("batchnorm", arrays, "x, g, b", "y", body)


def _batchnorm(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    x = inputs["x"]
    d = x - x.mean(axis=(0, 2, 3), keepdims=True)
    v = np.mean(d * d, axis=(0, 2, 3), keepdims=True)
    g, b = (inputs[name][:, None, None] for name in "gb")
    return {"y": d / np.sqrt(v + BATCHNORM_EPS) * g + b}


KERNELS = (
    Kernel(
        name="layernorm",
        title="Layer normalisation",
        formula="y = (x − mean x) / √(var x + 1e-5) · g + h along the last axis",
        group="normalisation",
        parameters=("M", "N"),
        shapes=((16384, 1024), (4096, 4096)),
        text=_layernorm_text,
        result=_layernorm,
        flops=lambda shape: 7 * cells(shape) + 4 * shape[0],
    ),
    Kernel(
        name="rmsnorm",
        title="Root-mean-square normalisation",
        formula="y = x / √(mean x² + 1e-6) · g along the last axis",
        group="normalisation",
        parameters=("M", "N"),
        shapes=((3072, 4096),),
        text=_rmsnorm_text,
        result=_rmsnorm,
        flops=lambda shape: 4 * cells(shape) + 3 * shape[0],
    ),
    Kernel(
        name="batchnorm",
        title="Batch normalisation",
        formula="y = (x − mean x) / √(var x + 1e-5) · g + b per channel, training statistics",
        group="normalisation",
        parameters=("N", "C", "H", "W"),
        shapes=((8, 3, 2048, 2048), (8, 64, 300, 300)),
        text=_batchnorm_text,
        result=_batchnorm,
        flops=lambda shape: 7 * cells(shape) + 2 * cells(shape[:3]) + 4 * shape[1],
    ),
)
