"""A kernel of the package's own."""

from __future__ import annotations

from collections.abc import Mapping

from dojo_core.kernels.kernel import Array, Kernel, Shape, cells, kernel_text


def text(shape: Shape) -> str:
    m, n = shape
    body = f"""
        {m} {n} t[{{0}},{{1}}] = x[{{0}},{{1}}] + y[{{0}},{{1}}]
        {m} {n} z[{{0}},{{1}}] = t[{{0}},{{1}}]*0.5
    """
    return kernel_text("midpoint", dict.fromkeys("xyzt", shape), "x, y", "z", body)


def result(inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
    return {"z": (inputs["x"] + inputs["y"]) / 2}


MIDPOINT = Kernel(
    name="midpoint",
    title="Midpoint",
    formula="z = (x + y)/2",
    group="element-wise",
    parameters=("M", "N"),
    shapes=((16, 64),),
    text=text,
    result=result,
    flops=lambda shape: 2 * cells(shape),
)
