"""matmul, bmm, conv, swiglu: sums of products over shared axes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dojo_core.kernels.kernel import Array, Kernel, Shape, cells, kernel_text


def _matmul_text(shape: Shape) -> str:
    m, k, n = shape
    body = f"""
        {m} {n} c[{{0}},{{1}}] = 0
        {m} {n} {k} c[{{0}},{{1}}] += a[{{0}},{{2}}]*b[{{2}},{{1}}]
    """
    return kernel_text("matmul", {"a": (m, k), "b": (k, n), "c": (m, n)}, "a, b", "c", body)


def _matmul(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    return {"c": inputs["a"] @ inputs["b"]}


def _bmm_text(shape: Shape) -> str:
    s, m, k, n = shape
    body = f"""
        {s} {m} {n} c[{{0}},{{1}},{{2}}] = 0
        {s} {m} {n} {k} c[{{0}},{{1}},{{2}}] += a[{{0}},{{1}},{{3}}]*b[{{0}},{{3}},{{2}}]
    """
    return kernel_text("bmm", {"a": (s, m, k), "b": (s, k, n), "c": (s, m, n)}, "a, b", "c", body)


def _conv_text(shape: Shape) -> str:
    n, out, channels, h, w, k = shape
    rows, columns = h - k + 1, w - k + 1
    nest, at = f"{n} {out} {rows} {columns}", "{0},{1},{2},{3}"
    body = f"""
        {nest} y[{at}] = 0
        {nest} {channels} {k} {k} y[{at}] += x[{{0}},{{4}},{{2}}+{{5}},{{3}}+{{6}}]*w[{{1}},{{4}},{{5}},{{6}}]
    """
    arrays = {"x": (n, channels, h, w), "w": (out, channels, k, k), "y": (n, out, rows, columns)}
    return kernel_text("conv", arrays, "x, w", "y", body)


def _conv(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    # One filter tap at a time: the memory of a window view would be k*k times the image's.
    x, w = inputs["x"], inputs["w"]
    n, out, _, h, wide, k = shape
    rows, columns = h - k + 1, wide - k + 1
    y = np.zeros((n, out, rows, columns))
    for i in range(k):
        for j in range(k):
            part = x[:, :, i : i + rows, j : j + columns].reshape(n, x.shape[1], rows * columns)
            y += (w[:, :, i, j] @ part).reshape(y.shape)
    return {"y": y}


def _swiglu_text(shape: Shape) -> str:
    _, m, k, n = shape
    body = f"""
        {m} {n} a[{{0}},{{1}}] = 0
        {m} {n} {k} a[{{0}},{{1}}] += x[{{0}},{{2}}]*w[{{2}},{{1}}]
        {m} {n} b[{{0}},{{1}}] = 0
        {m} {n} {k} b[{{0}},{{1}}] += x[{{0}},{{2}}]*v[{{2}},{{1}}]
        {m} {n} s[{{0}},{{1}}] = sigmoid(a[{{0}},{{1}}])
        {m} {n} t[{{0}},{{1}}] = a[{{0}},{{1}}]*s[{{0}},{{1}}]
        {m} {n} y[{{0}},{{1}}] = t[{{0}},{{1}}]*b[{{0}},{{1}}]
    """
    arrays = {"x": (m, k), "w": (k, n), "v": (k, n), "y": (m, n)} | dict.fromkeys("abst", (m, n))
    return kernel_text("swiglu", arrays, "x, w, v", "y", body)


def _swiglu(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    a, b = inputs["x"] @ inputs["w"], inputs["x"] @ inputs["v"]
    with np.errstate(over="ignore"):  # exp(-a) of a large negative a is inf, its reciprocal 0
        return {"y": a / (1 + np.exp(-a)) * b}


def _conv_flops(shape: Shape) -> int:
    n, out, channels, h, w, k = shape
    return 2 * n * out * channels * (h - k + 1) * (w - k + 1) * k * k


def _filter_fits(shape: Shape) -> str:
    h, w, k = shape[3:6]
    return f"The filter of conv, {k}, is larger than the image, {h}x{w}." if k > min(h, w) else ""


KERNELS = (
    Kernel(
        name="matmul",
        title="Matrix product",
        formula="c = a · b",
        group="contraction",
        parameters=("M", "K", "N"),
        shapes=((768, 1024, 1024),),
        text=_matmul_text,
        result=_matmul,
        flops=lambda shape: 2 * cells(shape),
    ),
    Kernel(
        name="bmm",
        title="Batch of matrix products",
        formula="c[i] = a[i] · b[i]",
        group="contraction",
        parameters=("B", "M", "K", "N"),
        shapes=((192, 256, 128, 256),),
        text=_bmm_text,
        result=_matmul,
        flops=lambda shape: 2 * cells(shape),
    ),
    Kernel(
        name="conv",
        title="Convolution",
        formula="y = x ⋆ w, stride 1, no padding, no bias",
        group="contraction",
        parameters=("N", "Cout", "Cin", "H", "W", "K"),
        shapes=((8, 10, 3, 512, 512, 5), (8, 64, 64, 56, 56, 3)),
        text=_conv_text,
        result=_conv,
        flops=_conv_flops,
        fits=_filter_fits,
    ),
    Kernel(
        name="swiglu",
        title="SwiGLU",
        formula="y = silu(x · w) ⊙ (x · v)",
        group="contraction",
        parameters=("1", "M", "K", "N"),
        shapes=((1, 256, 4096, 448),),
        text=_swiglu_text,
        result=_swiglu,
        flops=lambda shape: 4 * cells(shape) + 3 * shape[1] * shape[3],
        fits=lambda shape: "The first size of swiglu, the batch, is 1." if shape[0] != 1 else "",
    ),
)
