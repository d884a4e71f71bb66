"""reducemean and softmax: a row becomes a number, or each row is divided by one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dojo_core.kernels.kernel import Array, Kernel, Shape, cells, kernel_text


def _mean_text(shape: Shape) -> str:
    m, n = shape
    body = f"""
        {m} s[{{0}}] = 0
        | {n} s[{{0}}] += x[{{0}},{{1}}]
        {m} y[{{0}}] = s[{{0}}] / {n}
    """
    return kernel_text("reducemean", {"x": shape, "y": (m,), "s": (m,)}, "x", "y", body)


def _mean(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    return {"y": inputs["x"].mean(axis=1)}


def _softmax_text(shape: Shape) -> str:
    m, n = shape
    body = f"""
        {m} m[{{0}}] = -inf
        | {n} m[{{0}}] max= x[{{0}},{{1}}]
        {m} {n} d[{{0}},{{1}}] = x[{{0}},{{1}}] - m[{{0}}]
        {m} {n} e[{{0}},{{1}}] = exp(d[{{0}},{{1}}])
        {m} s[{{0}}] = 0
        | {n} s[{{0}}] += e[{{0}},{{1}}]
        {m} {n} y[{{0}},{{1}}] = e[{{0}},{{1}}] / s[{{0}}]
    """
    arrays = {"x": shape, "m": (m,), "d": shape, "e": shape, "s": (m,), "y": shape}
    return kernel_text("softmax", arrays, "x", "y", body)


def _softmax(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    x = inputs["x"]
    with np.errstate(invalid="ignore"):  # a row of infinities is NaN, as in the program
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return {"y": e / e.sum(axis=1, keepdims=True)}


KERNELS = (
    Kernel(
        name="reducemean",
        title="Mean",
        formula="y = mean(x) along the last axis",
        group="reduction",
        parameters=("M", "N"),
        shapes=((4096, 4096),),
        text=_mean_text,
        result=_mean,
        flops=lambda shape: cells(shape) + shape[0],
    ),
    Kernel(
        name="softmax",
        title="Softmax",
        formula="y = exp(x − max x) / Σ exp(x − max x) along the last axis",
        group="reduction",
        parameters=("M", "N"),
        shapes=((24576, 512),),
        text=_softmax_text,
        result=_softmax,
        flops=lambda shape: 5 * cells(shape),
    ),
)
