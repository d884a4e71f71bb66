"""One ONNX node, as the baselines run it: ``model.onnx`` beside the job, which tells its attributes and
inputs.

``job.json`` has for it ``node``: the operator, its attributes, and its inputs in order, each ``null`` where
left out, a name, or ``{"values": …, "dtype": …}`` for what the model says itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from protocol import Job, Unsupported

NUMPY: dict[str, type[np.generic]] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bool": np.bool_,
    "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
    "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8,
}  # fmt: skip


@dataclass(frozen=True)
class Node:
    operator: str
    attributes: dict[str, object]
    inputs: tuple[object, ...]
    weights: tuple[str, ...]
    model: Path


def read_node(job: Job) -> Node:
    """That of a job's folder."""
    node = json.loads((job.folder / "job.json").read_text(encoding="utf-8"))["node"]
    return Node(
        node["operator"],
        node["attributes"],
        tuple(node["inputs"]),
        tuple(node["weights"]),
        job.folder / "model.onnx",
    )


def as_numpy(job: Job, number: int, name: str) -> np.ndarray:
    """An array of a set in its own dtype: a bool is stored as a byte. Raises Unsupported."""
    array, dtype = job.sets[number][name], job.dtypes[name]
    if dtype not in NUMPY:
        raise Unsupported(f"NumPy has no {dtype}.")
    return array.view(NUMPY[dtype])
