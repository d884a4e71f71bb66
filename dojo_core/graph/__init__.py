"""Models as kernels and wiring: what frontends give (``Node``), a ``Graph``, and its ``Model`` at work."""

from typing import TYPE_CHECKING

from dojo_core.lazy import attributes

if TYPE_CHECKING:
    from dojo_core.graph.building import build
    from dojo_core.graph.graph import Call, Graph, Kernel
    from dojo_core.graph.meaning import reference
    from dojo_core.graph.nodes import GraphError, Kind, Node, Tensor
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

# Where each is; imported when it is asked for: a model that is kept runs without what makes one.
_MODULES = {
    "dojo_core.graph.building": ("build",),
    "dojo_core.graph.graph": ("Call", "Graph", "Kernel"),
    "dojo_core.graph.meaning": ("reference",),
    "dojo_core.graph.nodes": ("GraphError", "Kind", "Node", "Tensor"),
    "dojo_core.graph.run": ("Choose", "Model", "Share"),
    "dojo_core.graph.store": ("load", "save"),
    "dojo_core.graph.text": ("parse_graph", "print_graph"),
}
__getattr__ = attributes(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
