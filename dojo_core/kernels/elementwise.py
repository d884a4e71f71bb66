"""add, mul, relu, relu_ffn: every output element from input elements of its own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dojo_core.kernels.kernel import Array, Kernel, Shape, cells, kernel_text


def _binary(name: str, sign: str) -> Kernel:
    def text(shape: Shape) -> str:
        m, n = shape
        return kernel_text(
            name,
            dict.fromkeys("xyz", shape),
            "x, y",
            "z",
            f"{m} {n} z[{{0}},{{1}}] = x[{{0}},{{1}}] {sign} y[{{0}},{{1}}]",
        )

    def result(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
        x, y = inputs["x"], inputs["y"]
        return {"z": x + y if sign == "+" else x * y}

    return Kernel(
        name=name,
        title="Addition" if sign == "+" else "Multiplication",
        formula=f"z = x {sign} y",
        group="element-wise",
        parameters=("M", "N"),
        shapes=((3072, 4096),) if sign == "+" else ((6, 14336),),
        text=text,
        result=result,
        flops=cells,
    )


def _relu_text(shape: Shape) -> str:
    m, n = shape
    body = f"{m} {n} y[{{0}},{{1}}] = max(x[{{0}},{{1}}],0)"
    return kernel_text("relu", {"x": shape, "y": shape}, "x", "y", body)


def _relu(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    return {"y": np.maximum(inputs["x"], 0)}


def _relu_ffn_text(shape: Shape) -> str:
    nest = " ".join(map(str, shape))
    at = "{0},{1},{2},{3}"
    body = f"""
        {nest} t[{at}] = x[{at}]*w[{{1}}]
        {nest} u[{at}] = t[{at}] + b[{{1}}]
        {nest} y[{at}] = max(u[{at}],0)
    """
    channels = (shape[1],)
    arrays = {"x": shape, "w": channels, "b": channels, "y": shape, "t": shape, "u": shape}
    return kernel_text("relu_ffn", arrays, "x, w, b", "y", body)


def _relu_ffn(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    w, b = (inputs[name][:, None, None] for name in "wb")
    return {"y": np.maximum(inputs["x"] * w + b, 0)}


KERNELS = (
    _binary("add", "+"),
    _binary("mul", "*"),
    Kernel(
        name="relu",
        title="ReLU",
        formula="y = max(x, 0)",
        group="element-wise",
        parameters=("M", "N"),
        shapes=((4096, 4096),),
        text=_relu_text,
        result=_relu,
        flops=cells,
    ),
    Kernel(
        name="relu_ffn",
        title="Scale, shift, ReLU",
        formula="y = max(x·w[c] + b[c], 0)",
        group="element-wise",
        parameters=("N", "C", "H", "W"),
        shapes=((8, 64, 112, 112),),
        text=_relu_ffn_text,
        result=_relu_ffn,
        flops=lambda shape: 3 * cells(shape),
    ),
)
