"""What a kernel is: its mathematics, its start program for any shape, and its floors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dojo_core.kernels.networks import layers
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse
from dojo_core.program.tree import DTYPE_BYTES, Program

_ARRAY = re.compile(r"\w+ (?P<dtype>\w+) \[(?P<sizes>[\d, ]*)\] heap")

Shape = tuple[int, ...]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Kernel:
    """One kernel. ``shapes`` are the paper's (PerfDojo, table 3), the first the one shown by default.

    ``text(shape)`` is the naive start program: one nest per mathematical step, every temporary on the
    heap, nothing marked. ``result(inputs, shape)`` takes float64 arrays and returns the outputs by name.
    ``flops(shape)`` counts the additions, multiplications, divisions, comparisons and function calls.
    ``fits(shape)`` is a sentence about a shape that makes no sense, else empty. Every size is at least 1, but
    for those of the parameters named in ``zero``.
    """

    name: str
    title: str
    formula: str
    group: str
    parameters: tuple[str, ...]
    shapes: tuple[Shape, ...]
    text: Callable[[Shape], str]
    result: Callable[[Mapping[str, Array], Shape], dict[str, Array]]
    flops: Callable[[Shape], int]
    fits: Callable[[Shape], str] = lambda shape: ""
    zero: tuple[str, ...] = ()

    def shape(self, text: str) -> Shape:
        """A shape from ``"24576x512"`` or the name of a layer (networks.txt).

        Raises ValueError with a sentence that says what is expected.
        """
        layer = layers().get(text.strip())
        if layer is not None:
            if layer.kernel != self.name:
                raise ValueError(f"{layer.name} is a shape of {layer.kernel}, not of {self.name}.")
            text = layer.shape
        form = "x".join(self.parameters)
        example = "x".join(map(str, self.shapes[0]))
        if not re.fullmatch(r"\s*\d{1,12}(?:\s*[x×]\s*\d{1,12})*\s*", text):
            raise ValueError(f"{text!r} is no shape: {self.name} takes {form}, for example {example}.")
        return self._checked(tuple(int(size) for size in re.split("[x×]", text)))

    def _checked(self, shape: Shape) -> Shape:
        form, example = "x".join(self.parameters), "x".join(map(str, self.shapes[0]))
        if len(shape) != len(self.parameters):
            raise ValueError(
                f"{self.name} takes {len(self.parameters)} sizes, {form}, for example {example}; "
                f"{'x'.join(map(str, shape))} has {len(shape)}."
            )
        if any(n < 1 and name not in self.zero for n, name in zip(shape, self.parameters, strict=True)):
            but = f" ({', '.join(self.zero)} may be 0)" if self.zero else ""
            raise ValueError(f"Every size of {self.name} is at least 1{but}: {form}, for example {example}.")
        sentence = self.fits(shape)
        if sentence:
            raise ValueError(sentence)
        return shape

    def within(self, memory: float = math.inf, flops: float = math.inf) -> Shape:
        """The first shape, its largest sizes halved until the start program's arrays take few enough bytes
        and a run few enough FLOPs; the smallest shape that this leads to, where none does."""
        return _within(self, memory, flops)

    def _array_bytes(self, shape: Shape) -> float:
        """What the arrays of the start program take, read off its lines: nothing else of it is needed."""
        lines = (_ARRAY.fullmatch(line) for line in self.text(shape).splitlines())
        return sum(
            DTYPE_BYTES.get(line["dtype"], 0) * math.prod(map(int, re.findall(r"\d+", line["sizes"])))
            for line in lines
            if line is not None
        )

    def program(self, shape: Shape) -> Program:
        """The start program. Raises ValueError on a shape that does not fit the kernel, or is too large."""
        text = self.text(self._checked(shape))
        try:
            return parse(text)
        except TextError as fault:  # a person named a shape, and has not written a line of this text
            sizes = "x".join(map(str, shape))
            raise ValueError(f"{self.name} at {sizes}: {fault.message}. {fault.remedy}") from fault

    def reference(self, inputs: Mapping[str, Array], shape: Shape) -> dict[str, Array]:
        """The outputs in float64 from the inputs by name."""
        doubles = {name: np.asarray(value, np.float64) for name, value in inputs.items()}
        return self.result(doubles, self._checked(shape))

    def bytes(self, shape: Shape) -> int:
        """Minimal traffic: every input read once and every output written once, in bytes."""
        return minimal_bytes(self.program(shape))


@lru_cache(maxsize=1024)
def _within(kernel: Kernel, memory: float, flops: float) -> Shape:
    """Kept: whoever sees the start screen asks for every kernel on every target."""
    shape = kernel.shapes[0]
    while (memory < math.inf and kernel._array_bytes(shape) > memory) or _flops(kernel, shape) > flops:
        halves = (
            (*shape[:k], shape[k] // 2, *shape[k + 1 :])
            for k in sorted(range(len(shape)), key=lambda k: -shape[k])
            if shape[k] > 1
        )
        smaller = next((half for half in halves if not kernel.fits(half)), None)
        if smaller is None:
            break
        shape = smaller
    return shape


@lru_cache(maxsize=1024)
def _flops(kernel: Kernel, shape: Shape) -> float:
    """Read off the start program: once for the targets of whatever memory."""
    return kernel.flops(shape)


def executed_flops(program: Program) -> int:
    """Functions and accumulations that a program executes, guards aside."""
    return sum(
        (bool(leaf.op.function) + bool(leaf.op.accumulate)) * math.prod(s.size for s in leaf.scopes)
        for leaf in program.leaves
    )


def minimal_bytes(program: Program) -> int:
    """Minimal traffic: every input read once and every output written once, in bytes."""
    return sum(program.buffer_of[array].bytes for array in {*program.inputs, *program.outputs})


def kernel_text(
    name: str,
    arrays: Mapping[str, Shape],
    inputs: str,
    output: str,
    body: str,
    dtypes: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """A program text of heap arrays, f32 where ``dtypes`` says nothing; the body's lines may be indented."""
    lines = [f"kernel {name}", f"in {inputs}", f"out {output}"]
    lines += [
        f"{array} {dtypes.get(array, 'f32')} [{', '.join(map(str, shape))}] heap"
        for array, shape in arrays.items()
    ]
    lines += [line.strip() for line in body.splitlines() if line.strip()]
    return "\n".join(lines) + "\n"


def cells(shape: Shape) -> int:
    """Number of elements of an array."""
    return math.prod(shape)
