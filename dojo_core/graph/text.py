"""The text form of a graph, for people: what calls what, and the kernels' programs (docs/graph.md).

::

    graph perceptron
    in x f32 [64, 512]
    constant w f32 [512, 1024] "fc1.weight"
    constant v f32 [1024, 10] "fc2.weight"
    tensor h f32 [64, 1024]
    out y f32 [64, 10]

    h = matmul_relu(x, w) of "fc1" "relu"
    y = matmul(h, v) of "fc2"

    program matmul_relu
    kernel matmul_relu
    …

What somebody else wrote is read within limits, and checked: the wiring as ``Graph`` does, the programs as all
that are played.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from dojo_core.bounded_json import encodes
from dojo_core.faults import program_fault, text_fault
from dojo_core.graph.graph import Call, Graph, Kernel
from dojo_core.graph.nodes import GraphError, Tensor
from dojo_core.primitives.array import is_identifier
from dojo_core.program.expressions import TextError
from dojo_core.program.nodes import number_text
from dojo_core.program.text import parse

Values = np.ndarray[Any, Any]

# What is read at most: characters of a text, lines of a kind, dimensions, characters of a name in the text
# and of one in quotes, nodes of a call.
TEXT, LINES, DIMENSIONS, NAME, LABEL, NODES = 32 << 20, 20_000, 16, 200, 2_000, 2_000


def print_graph(graph: Graph) -> str:
    """The text, without the constants' values."""
    lines = [f"graph {graph.name}"]
    lines += [_tensor("in", graph, name) for name in graph.inputs]
    lines += [_tensor("constant", graph, name) for name in graph.constants]
    lines += [_tensor("tensor", graph, name) for name in graph.intermediates]
    given = {*graph.inputs, *graph.constants}
    lines += [f"out {name}" if name in given else _tensor("out", graph, name) for name in graph.outputs]
    lines.append("")
    for call in graph.calls:
        nodes = "".join(f" {json.dumps(node)}" for node in call.nodes)
        made = f"{', '.join(call.outputs)} = {call.kernel}({', '.join(call.inputs)})"
        lines.append(f"{made} of{nodes}" if nodes else made)
    for name, kernel in graph.kernels.items():
        lines += ["", f"program {name}", kernel.program.text.rstrip("\n")]
    return "\n".join(lines) + "\n"


def _tensor(word: str, graph: Graph, name: str) -> str:
    tensor = graph.tensors[name]
    text = f"{word} {tensor}"
    if tensor.domain is not None:
        text += f" from {number_text(tensor.domain[0])} to {number_text(tensor.domain[1])}"
    return f"{text} {json.dumps(graph.labels[name])}" if name in graph.labels else text


# ---------------------------------------------------------------------------- reading

_STRING = r'"(?:[^"\\]|\\.)*"'
_NUMBER = r"[-+]?[\w.+-]{1,40}"
_TENSOR = re.compile(
    rf"(in|constant|tensor|out) (\w+) (\w+) \[([\d, ]*)\](?: from ({_NUMBER}) to ({_NUMBER}))?( {_STRING})?",
    re.ASCII,
)
_OUT = re.compile(r"out (\w+)", re.ASCII)
_CALL = re.compile(rf"([\w, ]+) = (\w+)\(([\w, ]*)\)( of(?: {_STRING})+)?", re.ASCII)
_HEADER = re.compile(r"(graph|program) (\w+)", re.ASCII)


def parse_graph(text: str, constants: Mapping[str, Values] | None = None) -> Graph:
    """Read a graph; ``constants`` are the values of its constants. Raises GraphError with line and remedy."""
    return _Reader(text, constants or {}).graph()


def parse_kernels(text: str) -> dict[str, Kernel]:
    """The kernels of a graph alone, by name, for which its constants need not be there. Raises GraphError."""
    reader = _Reader(text, {})
    reader.read()
    return reader.kernels


class _Reader:
    def __init__(self, text: str, constants: Mapping[str, Values]) -> None:
        self.number = 0  # of the line that is read
        if len(text) > TEXT:
            raise GraphError(
                f"The graph's text is longer than {TEXT >> 20} MiB: take out a part of the model."
            )
        self.lines = text.splitlines()
        self.values = constants
        self.name = ""
        self.tensors: dict[str, Tensor] = {}
        self.labels: dict[str, str] = {}
        self.inputs: list[str] = []
        self.constants: list[str] = []
        self.outputs: list[str] = []
        self.calls: list[Call] = []
        self.kernels: dict[str, Kernel] = {}

    def fail(self, message: str, remedy: str) -> NoReturn:
        raise GraphError(f"Line {self.number} of the graph: {message} {remedy}")

    def read(self) -> None:
        """Line by line."""
        while self.number < len(self.lines):
            line = self.lines[self.number].strip()
            self.number += 1
            if not line or line.startswith("#"):
                continue
            header = _HEADER.fullmatch(line)
            if header is None:
                self.wiring(line)
            elif header[1] == "program":
                self.program(self.named(header[2]))
            elif self.name:
                self.fail("a second graph begins.", "Write one in a file.")
            else:
                self.name = self.named(header[2])
        if not self.name:
            self.fail("there is no graph.", "Begin with a line such as: graph my_model")

    def graph(self) -> Graph:
        self.read()
        missing = [name for name in self.constants if name not in self.values]
        if missing:
            raise GraphError(
                f"The values of {_some(missing)} are missing: keep the file of the constants beside that of "
                "the graph."
            )
        return Graph(
            self.name,
            self.tensors,
            tuple(self.inputs),
            tuple(self.outputs),
            self.kernels,
            tuple(self.calls),
            {name: self.values[name] for name in self.constants},
            self.labels,
        )

    def wiring(self, line: str) -> None:
        tensor, out, call = _TENSOR.fullmatch(line), _OUT.fullmatch(line), _CALL.fullmatch(line)
        if max(len(self.tensors), len(self.outputs), len(self.calls)) >= LINES:
            self.fail(f"there are more than {LINES:,} lines.", "Take out a part of the model.")
        if tensor is not None:
            self.tensor(tensor)
        elif out is not None:
            self.outputs.append(self.named(out[1]))
        elif call is not None:
            made, kernel, read, nodes = call.groups()
            names = [self.string(each[0]) for each in re.finditer(_STRING, nodes or "")]
            if len(names) > NODES:
                self.fail(f"a call has more than {NODES:,} nodes.", "Leave them out.")
            self.calls.append(Call(kernel, self.list(read), self.list(made), tuple(names)))
        else:
            self.fail(
                f"{line[:60]!r} is no part of a graph.",
                'Write a tensor, as in: in x f32 [64, 512]; or a call, as in: y = matmul(x, w) of "fc1".',
            )

    def tensor(self, match: re.Match[str]) -> None:
        word, name, dtype, dims, low, high, label = match.groups()
        self.named(name)
        sizes = [size.strip() for size in dims.split(",")] if dims.strip() else []
        if len(sizes) > DIMENSIONS or not all(re.fullmatch(r"\d{1,13}", size) for size in sizes):
            self.fail(f"[{dims[:60]}] is no shape.", f"Write up to {DIMENSIONS} sizes, such as [64, 512].")
        if name in self.tensors:
            self.fail(f"there is a tensor {name} already.", "Give each its own name.")
        domain = None if low is None else (self.float(low), self.float(high))
        self.tensors[name] = Tensor(name, dtype, tuple(map(int, sizes)), domain)
        if label is not None:
            self.labels[name] = self.string(label.strip())
        places = {"in": self.inputs, "constant": self.constants, "out": self.outputs}
        if word in places:
            places[word].append(name)

    def program(self, name: str) -> None:
        """The program that follows, up to an empty line."""
        if name in self.kernels:
            self.fail(f"there is a program {name} already.", "Give each its own name.")
        if len(self.kernels) >= LINES:
            self.fail(f"there are more than {LINES:,} programs.", "Take out a part of the model.")
        first = self.number
        while self.number < len(self.lines) and self.lines[self.number].strip():
            self.number += 1
        text = "\n".join(self.lines[first : self.number]) + "\n"
        try:
            program = parse(text)
        except TextError as error:
            raise GraphError(f"The program {name}, from line {first + 1} on: {text_fault(error)}") from None
        fault = program_fault(program, None, source=text)
        if fault is not None:
            raise GraphError(f"The program {name}, from line {first + 1} on: {fault}")
        self.kernels[name] = Kernel(name, program)

    def named(self, name: str) -> str:
        if len(name) > NAME or not is_identifier(name):
            self.fail(
                f"{name[:60]!r} is no name.",
                f"Take up to {NAME} letters, digits and _, and no word of the text form.",
            )
        return name

    def list(self, names: str) -> tuple[str, ...]:
        return tuple(self.named(name.strip()) for name in names.split(",")) if names.strip() else ()

    def string(self, text: str) -> str:
        try:
            value = json.loads(text)
        except ValueError:
            self.fail(f"{text[:60]} is no text in quotes.", "Write it as JSON does.")
        if len(value) > LABEL or not encodes(value):
            self.fail(f"{text[:60]} is too long, or no text.", f"Take up to {LABEL:,} characters.")
        return str(value)

    def float(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            self.fail(f"{text!r} is no number.", "Write one such as 0 or 30521.")


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
