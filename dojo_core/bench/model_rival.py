"""ONNX Runtime on the model that a graph was made of, in the baselines' own Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dojo_core.bench.baselines import alone, how_to_get, pinned_environment
from dojo_core.bench.processes import Silent
from dojo_core.graph.graph import Graph

Values = np.ndarray[Any, Any]

PREPARE, ANSWER = 300.0, 300.0  # seconds


class NoRival(Exception):
    """Why it does not run the model: a sentence."""


class OnnxRuntime:
    """A session on a model's file, with inputs as a graph's are stored. Use it as a context manager.

    ``outputs`` are its results by name. Raises NoRival where it is not
    installed, or does not take the model.
    """

    def __init__(self, model: Path, graph: Graph, inputs: Mapping[str, Values]) -> None:
        self._folder = TemporaryDirectory(prefix="dojo-model-")
        given, results = (Path(self._folder.name) / name for name in ("inputs.npz", "outputs.npz"))
        truths = {graph.label(name) for name in graph.inputs if graph.tensors[name].dtype == "bool"}
        taken = {name: a.view(np.bool_) if name in truths else a for name, a in inputs.items()}
        np.savez(given, allow_pickle=False, **taken)
        try:
            places = [str(model.resolve()), str(given), str(results)]
            self._process = alone("onnx_model.py", places, pinned_environment())
            answer = self._process.read(PREPARE)
        except Silent as silent:
            self._folder.cleanup()
            raise NoRival(f"ONNX Runtime did not run {model}: {silent}") from None
        if answer.get("status") != "ok":
            self.close()
            remedy = f" {how_to_get('onnxruntime')}" if answer.get("status") == "missing" else ""
            raise NoRival(f"ONNX Runtime did not run {model}: {answer.get('message')}{remedy}")
        self.by = str(answer["by"])
        with np.load(results) as archive:
            self.outputs = {name: archive[name] for name in archive.files}

    def __enter__(self) -> OnnxRuntime:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()

    def sample(self, runs: int) -> Sequence[float]:
        """So many runs, each in seconds. Raises NoRival where it stops."""
        try:
            return [float(s) for s in self._process.ask(runs, ANSWER)["seconds"]]
        except Silent as silent:
            raise NoRival(f"ONNX Runtime stopped: {silent}") from None

    def close(self) -> None:
        """End its process."""
        self._process.close()
        self._folder.cleanup()
