"""Graphs that were traced and translated before, kept on disk, so that a second process does neither.

An entry is data alone: which tensor goes where as JSON, the graph as a text, constants as NumPy's arrays. It
is read like anybody's; one that is damaged, or is no such entry, is as good as none.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.torch_backend.dtypes import WORDS, word_of
from agents.torch_backend.part import Interface, Part, Port
from agents.torch_backend.refusal import Refusal
from agents.torch_backend.settings import Settings
from dojo_core.graph.graph import Graph
from dojo_core.graph.nodes import GraphError
from dojo_core.graph.store import from_bytes, to_bytes
from dojo_core.measure import sealed
from dojo_core.measure.places import cache_directory

log = logging.getLogger(__name__)

BYTES = 64 << 20  # of constants: graphs with more are traced in each process

_DTYPES = {word: dtype for dtype, word in WORDS.items()}


def keep(key: str, part: Part) -> None:
    """Keep a part that is all of a graph, each result of which the model gives."""
    graph = part.model.graph
    if sum(values.nbytes for values in graph.constants.values()) > BYTES:
        return
    interface = {
        "ports": [[number, *_described(port)] for number, port in part.interface.ports.items()],
        "results": [_described(port) for port in part.interface.results if isinstance(port, Port)],
    }
    try:
        sealed.keep(_path(key), json.dumps(interface).encode() + b"\n" + to_bytes(graph))
    except OSError as fault:
        log.warning("What was traced is not kept: %s", fault)


def kept(key: str, inputs: Sequence[Any], settings: Settings) -> Part | None:
    """The part that was kept for inputs like these, compiled for these options; None where there is none."""
    content = sealed.read(_path(key))
    if content is None:
        return None
    head, _, rest = bytes(content).partition(b"\n")
    try:
        graph, interface = from_bytes(rest), json.loads(head)
        ports = {int(number): _port(each) for number, *each in interface["ports"]}
        known = Interface(ports, tuple(_port(each) for each in interface["results"]))
        _check(known, graph, inputs)
        return Part(known, lambda fixed: graph, settings, {})
    except (GraphError, Refusal, ValueError, TypeError, LookupError, AttributeError) as fault:
        log.info("%s cannot be read (%s): it is traced again", _path(key), fault)
        return None


def _path(key: str) -> Path:
    return sealed.folder(cache_directory() / "graphs") / f"{key}.graph"


def _described(port: Port) -> list[Any]:
    return [port.name, list(port.order), word_of(port.dtype), list(port.shape)]


def _port(described: list[Any]) -> Port:
    name, order, word, shape = described
    if sorted(order) != list(range(len(shape))):
        raise ValueError(f"{order} is no order of the axes of {shape}.")
    return Port.dense_of(name, tuple(order), _DTYPES[word], tuple(shape))


def _check(interface: Interface, graph: Graph, inputs: Sequence[Any]) -> None:
    """Raises ValueError where an interface is none of this graph's, or takes other inputs."""
    tensors = {graph.label(name): tensor for name, tensor in graph.tensors.items()}
    taken = [port.name for port in interface.ports.values()]
    given = {port.name for port in interface.results if isinstance(port, Port)}
    if sorted(taken) != sorted(graph.label(name) for name in graph.inputs):
        raise ValueError("its inputs are others")
    if given != {graph.label(name) for name in graph.outputs}:
        raise ValueError("its outputs are others")
    for number, port in interface.ports.items():
        value, tensor = inputs[number], tensors[port.name]
        if value.dtype != port.dtype or tuple(value.shape[axis] for axis in port.order) != tensor.shape:
            raise ValueError(f"{port.name} is {tensor.kind}")
    results = (port for port in interface.results if isinstance(port, Port))
    for port in (*interface.ports.values(), *results):
        tensor = tensors[port.name]
        lies = tuple(port.shape[axis] for axis in port.order)
        if (tensor.dtype, tuple(tensor.shape)) != (word_of(port.dtype), lies):
            raise ValueError(f"{port.name} is {tensor.kind}")
