"""Whole models from Python::

import dojo_core as dojo

outputs = dojo.run("model.onnx", {"x": x})      # by the model's names, as NumPy arrays
model = dojo.open_model("model.dojo")           # once, to run it often
outputs = model.run({"x": x})
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dojo_core.from_onnx.as_nodes import graph_of, nodes_of
from dojo_core.from_onnx.ports import Given
from dojo_core.from_onnx.reader import folder_of, read_model
from dojo_core.graph.choices import chooser
from dojo_core.graph.graph import Graph
from dojo_core.graph.run import Model
from dojo_core.graph.store import load
from dojo_core.measure.records import Records
from dojo_core.program.dependence import POLICIES

Values = np.ndarray[Any, Any]
Shapes = Mapping[str, tuple[int, ...]]

KEPT = 4  # models that ``run`` has compiled and keeps for the next call


def open_model(
    path: str | Path, shapes: Shapes | None = None, source: str = "best", policy: str = "reassoc"
) -> Model:
    """The model in a file, compiled: of ONNX (``.onnx``), or what ``dojo import`` made of it.

    ``shapes`` are those of inputs that an ONNX model leaves open. ``source`` says which programs run, as in
    ``graph.choices``: by default this machine's best records, else what the heuristic pass plays, which takes
    seconds for a kernel. ``policy``: what kernels may compute otherwise (docs/promises.md); by ``algebraic``
    convolutions of stride 1 have fewer products. Raises Refusal, NotImported or GraphError with sentences,
    and ValueError for another policy.
    """
    if policy not in POLICIES:
        raise ValueError(f"The policy is one of {', '.join(POLICIES)}.")
    path = Path(path)
    graph = _imported(path, shapes or {}) if path.suffix == ".onnx" else load(path)
    with Records() as records:
        return Model(graph, chooser(graph, source, records, policy), policy)


def run(model: str | Path | Model, inputs: Mapping[str, Any]) -> dict[str, Values]:
    """The outputs of a model by name. Of a file, sizes that it leaves open are those of the inputs.

    The last models are kept compiled while their files stay as they are. Raises as ``open_model`` and
    ``Model.run`` do.
    """
    if not isinstance(model, Model):
        path = Path(model).resolve()
        state = path.stat()
        shapes = tuple((name, np.shape(array)) for name, array in sorted(inputs.items()))
        model = _kept(path, state.st_mtime_ns, state.st_size, shapes)
    return model.run(inputs)


@lru_cache(maxsize=KEPT)
def _kept(path: Path, _changed: int, _size: int, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> Model:
    return open_model(path, dict(shapes))


def _imported(path: Path, shapes: Shapes) -> Graph:
    model = read_model(path)
    given: dict[str, Given] = {}
    for each in model.graph.input:
        kind = each.type.tensor_type
        static = kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim)
        if each.name in shapes and not static:
            given[each.name] = Given(shape=shapes[each.name])
    return graph_of(nodes_of(model, given, path.stem, folder_of(path)))
