"""Models as kernels and wiring: what frontends give (``Node``), a ``Graph``, and its ``Model`` at work."""

from dojo_core.graph.build import build
from dojo_core.graph.graph import Call, Graph, Kernel
from dojo_core.graph.nodes import GraphError, Kind, Node, Tensor
from dojo_core.graph.reference import reference
from dojo_core.graph.run import Choose, Model, Share
from dojo_core.graph.store import load, save
from dojo_core.graph.text import parse_graph, print_graph

__all__ = [
    "Call",
    "Choose",
    "Graph",
    "GraphError",
    "Kernel",
    "Kind",
    "Model",
    "Node",
    "Share",
    "Tensor",
    "build",
    "load",
    "parse_graph",
    "print_graph",
    "reference",
    "save",
]
