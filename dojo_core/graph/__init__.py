"""Models as kernels and wiring: what frontends give (``Node``), a ``Graph``, and its ``Model`` at work."""

from dojo_core.graph.build import build
from dojo_core.graph.graph import Call, Graph, Kernel
from dojo_core.graph.nodes import GraphError, Kind, Node, Tensor
from dojo_core.graph.run import Model, Share

__all__ = ["Call", "Graph", "GraphError", "Kernel", "Kind", "Model", "Node", "Share", "Tensor", "build"]
