"""One contender of ``benchmarks/models.py``, in a process of its own:
``python -m benchmarks.contender KIND NETWORK FOLDER``.

Standard output carries JSON lines. The first says whether it is ready: ``status`` and ``message``; ``by``,
what it is; ``start``, the seconds from the model to its first result; ``parts``, those of the Dojo by what
they went to; ``stays``, what it leaves to PyTorch. The first result lies in ``KIND.npy`` of the folder then.
Each line of standard input, a number of runs, is answered with their ``seconds``.

TorchDynamo gives recurrent layers to all whom it serves (``torch._dynamo.config.allow_rnn``).

The kind ``export`` writes ``model.onnx`` and ``inputs.npz``, and ends.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.architectures import Made
from benchmarks.networks import NETWORKS

OPSET = 20
INDUCTOR = {"freezing": True, "max_autotune": True}

Values = np.ndarray[Any, Any]
Run = Callable[[], Values]


@dataclass
class Ready:
    """A contender that gives results. ``parts``: what its start took, by what it went to, in seconds."""

    by: str
    run: Run
    parts: dict[str, float] = field(default_factory=dict)
    stays: list[str] = field(default_factory=list)


class _Told(logging.Handler):
    """Keeps what the backend says: the seconds that compiling took, and what stays in PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[str, float] = {}
        self.stays: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, dict):
            for name, seconds in record.args.items():
                self.parts[name] = self.parts.get(name, 0.0) + seconds
        else:
            self.stays.append(record.getMessage())


# ---------------------------------------------------------------------------- the kinds


def export(made: Made, folder: Path) -> None:
    """The model and its inputs in files, by PyTorch's exporter that needs no package but onnx."""
    model, (x,) = made
    torch.onnx.register_custom_op_symbolic("aten::diff", _diff, OPSET)
    torch.onnx.register_custom_op_symbolic("aten::cumsum", _cumsum, OPSET)
    torch.onnx.export(
        model, (x,), folder / "model.onnx", dynamo=False, opset_version=OPSET, input_names=["x"],
        output_names=["y"],
    )  # fmt: skip
    np.savez(folder / "inputs.npz", x=x.numpy())


def _diff(g: Any, x: Any, n: Any, dim: Any, prepend: Any, append: Any) -> Any:
    """Differences along the last axis, as the masks of ``transformers`` take them of positions."""

    def number(value: int) -> Any:
        return g.op("Constant", value_t=torch.tensor([value]))

    def part(begin: int, end: int) -> Any:
        return g.op("Slice", joined, number(begin), number(end), number(-1))

    joined = g.op("Concat", prepend, x, axis_i=-1)
    return g.op("Sub", part(1, 2**62), part(0, -1))


def _cumsum(g: Any, x: Any, dim: Any, dtype: Any) -> Any:
    """Running sums, of truth values as of integers: the standard adds up no truth values."""
    integers = g.op("Cast", x, to_i=torch.onnx.TensorProtoDataType.INT64)
    return g.op("CumSum", integers if x.type().dtype() is torch.bool else x, dim)


def eager(made: Made, folder: Path) -> Ready:
    model, inputs = made
    return Ready(f"PyTorch {torch.__version__} eager", lambda: _values(model(*inputs)))


def inductor(made: Made, folder: Path) -> Ready:
    model, inputs = made
    compiled = torch.compile(model, options=INDUCTOR)
    return Ready(f"Inductor of PyTorch {torch.__version__}", lambda: _values(compiled(*inputs)))


def dojo(made: Made, folder: Path, policy: str = "reassoc") -> Ready:
    import agents.torch_backend  # noqa: F401  (registers the backend)

    model, inputs = made
    told, logger = _Told(), logging.getLogger("agents.torch_backend")
    logger.addHandler(told)
    logger.setLevel(logging.INFO)
    compiled = torch.compile(model, backend="dojo", options={"freeze": True, "policy": policy})
    return Ready("the Dojo as backend", lambda: _values(compiled(*inputs)), told.parts, told.stays)


def dojo_onnx(made: None, folder: Path) -> Ready:
    from dojo_core.model import open_model

    inputs = {"x": np.load(folder / "inputs.npz")["x"]}
    model = open_model(folder / "model.onnx")
    parts = {
        "play": model.choose_seconds,
        "compile": model.compile_seconds,
        "prepare": model.prepare_seconds,
    }
    return Ready("the Dojo by ONNX", lambda: model.run(inputs)["y"], parts)


def _values(tensor: torch.Tensor) -> Values:
    values: Values = tensor.numpy()
    return values


KINDS: dict[str, Callable[[Any, Path], Ready]] = {
    "eager": eager,
    "inductor": inductor,
    "dojo": dojo,
    "dojo-algebraic": partial(dojo, policy="algebraic"),
    "dojo-onnx": dojo_onnx,
}


def main() -> None:
    kind, network, place = sys.argv[1:]
    folder = Path(place)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not disturb the answers

    def answer(**said: object) -> None:
        print(json.dumps(said), file=answers, flush=True)

    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    try:
        if kind == "export":
            export(NETWORKS[network].made(), folder)
            answer(status="ok")
            return
        torch._dynamo.config.allow_rnn = True
        made = None if kind == "dojo-onnx" else NETWORKS[network].made()
        begin = time.perf_counter()
        ready = KINDS[kind](made, folder)
        first = ready.run()
        if kind.startswith("dojo") and not ready.parts:
            ready.stays.append("TorchDynamo gave the Dojo no graph of it: all of it runs in PyTorch.")
        start = time.perf_counter() - begin
        np.save(folder / f"{kind}.npy", first)
    except Exception as fault:  # whatever a library raises, it does not take this model
        answer(status="failed", message=f"{type(fault).__name__}: {' '.join(str(fault).split())[:300]}")
        return
    answer(status="ok", by=ready.by, start=start, parts=ready.parts, stays=ready.stays)
    for line in sys.stdin:
        seconds = []
        for _ in range(json.loads(line)):
            begin = time.perf_counter()
            ready.run()
            seconds.append(time.perf_counter() - begin)
        answer(seconds=seconds)


if __name__ == "__main__":
    main()
