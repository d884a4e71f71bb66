"""conv2d: a convolution with stride and padding, as the layers of networks have it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dojo_core.kernels.kernel import Array, Kernel, Shape, executed_flops, kernel_text
from dojo_core.program.text import parse


def _conv2d_text(shape: Shape) -> str:
    n, out, channels, h, w, k, s, p = shape
    rows, columns = (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1
    padded = (n, channels, h + 2 * p, w + 2 * p)
    nest, at = f"{n} {out} {rows} {columns}", "{0},{1},{2},{3}"
    stride = f"*{s}" if s > 1 else ""
    read, first = "x", ""
    arrays = {"x": (n, channels, h, w), "w": (out, channels, k, k), "y": (n, out, rows, columns)}
    if p:
        arrays["z"], read = padded, "z"
        first = f"""
        {" ".join(map(str, padded))} z[{at}] = 0
        {n} {channels} {h} {w} z[{{0}},{{1}},{{2}}+{p},{{3}}+{p}] = x[{at}]
        """
    window = f"{read}[{{0}},{{4}},{{2}}{stride}+{{5}},{{3}}{stride}+{{6}}]"
    body = f"""{first}
        {nest} y[{at}] = 0
        {nest} {channels} {k} {k} y[{at}] += {window}*w[{{1}},{{4}},{{5}},{{6}}]
    """
    return kernel_text("conv2d", arrays, "x, w", "y", body)


def _conv2d(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    n, out, _, h, wide, k, s, p = shape
    rows, columns = (h + 2 * p - k) // s + 1, (wide + 2 * p - k) // s + 1
    x = np.pad(inputs["x"], ((0, 0), (0, 0), (p, p), (p, p)))
    y = np.zeros((n, out, rows, columns))
    for i in range(k):
        for j in range(k):
            part = x[:, :, i : i + s * (rows - 1) + 1 : s, j : j + s * (columns - 1) + 1 : s]
            y += np.einsum("nchw,oc->nohw", part, inputs["w"][:, :, i, j], optimize=True)
    return {"y": y}


def _conv2d_fits(shape: Shape) -> str:
    h, w, k, _, p = shape[3:8]
    if p >= k:
        return f"The padding of conv2d, {p}, is smaller than its filter, {k}."
    if k > min(h, w) + 2 * p:
        return f"The filter of conv2d, {k}, is larger than the padded image, {h + 2 * p}x{w + 2 * p}."
    return ""


KERNELS = (
    Kernel(
        name="conv2d",
        title="Convolution with stride and padding",
        formula="y = pad(x, P) ⋆ w, stride S, no bias",
        group="contraction",
        parameters=("N", "Cout", "Cin", "H", "W", "K", "S", "P"),
        shapes=((1, 128, 128, 56, 56, 3, 2, 1),),
        text=_conv2d_text,
        result=_conv2d,
        flops=lambda shape: executed_flops(parse(_conv2d_text(shape))),
        fits=_conv2d_fits,
        zero=("P",),
    ),
)
