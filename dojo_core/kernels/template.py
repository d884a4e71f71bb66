"""Kernels written as texts whose sizes have names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from dojo_core.kernels.kernel import Array, Kernel, Shape, executed_flops, kernel_text
from dojo_core.program.text import parse
from dojo_core.program.tree import DTYPE_BYTES

Sizes = dict[str, int | float]


def templated(
    name: str,
    title: str,
    formula: str,
    group: str,
    sizes: str,
    shapes: tuple[Shape, ...],
    arrays: Mapping[str, str],
    inputs: str,
    output: str,
    body: str,
    result: Callable[..., Array],
    derived: Callable[[Sizes], Sizes] = lambda sizes: {},
    fits: Callable[[Shape], str] = lambda shape: "",
) -> Kernel:
    """A kernel from its text. In ``arrays`` and ``body`` a name in capitals stands for a size.

    ``arrays`` has the sizes of each array, behind its dtype where that is not f32: ``{"x": "bf16 M N"}``.

    ``derived`` gives further names from the shape's own. ``result`` takes the inputs in order, as float64
    arrays, then the shape. FLOPs are those that the start program executes.
    """
    parameters = tuple(sizes.split())

    def text(shape: Shape) -> str:
        known: Sizes = dict(zip(parameters, shape, strict=True))
        known |= derived(known)

        def filled(form: str) -> str:
            return re.sub(r"\b[A-Z][A-Z0-9]*\b", lambda m: str(known.get(m[0], m[0])), form)

        shaped: dict[str, Shape] = {}
        dtypes: dict[str, str] = {}
        for array, form in arrays.items():
            words = filled(form).split()
            if words and words[0] in DTYPE_BYTES:
                dtypes[array] = words.pop(0)
            shaped[array] = tuple(map(int, words))
        return kernel_text(name, shaped, inputs, output, filled(body), dtypes)

    def outputs(given: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
        return {output: result(*(given[array.strip()] for array in inputs.split(",")), shape)}

    def flops(shape: Shape) -> int:
        return executed_flops(parse(text(shape)))

    return Kernel(name, title, formula, group, parameters, shapes, text, outputs, flops, fits)
