"""A case beside PyTorch and ONNX Runtime: does it mean the same, and how long does each take?

Both run in the baselines' own Python (``dojo_core/bench/baselines.py``), on the same inputs, ONNX Runtime on
the very model that was imported; ``dojo_core/bench/rounds.py`` times all in interleaved rounds.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from agents.operators.node import Made
from dojo_core.bench import Entry, run_bench
from dojo_core.bench.baselines import (
    SCRIPTS,
    Baseline,
    Process,
    Rivals,
    Silent,
    how_to_get,
    interpreter,
    pinned_environment,
)
from dojo_core.files import naming, write_text
from dojo_core.game import Game
from dojo_core.measure.records import Records
from dojo_core.program.dtypes import INTEGERS
from dojo_core.program.tree import Program

RIVALS: Mapping[str, Baseline] = {
    "torch": Baseline(
        "PyTorch eager", "PyTorch {version} eager, memory reused", "torch_of_onnx.py", prepare=120.0
    ),
    "onnxruntime": Baseline(
        "ONNX Runtime", "ONNX Runtime {version}, CPU, outputs bound", "onnx_runtime_node.py", prepare=120.0
    ),
}
JUDGE = "onnx_judge.py"
JUDGE_SECONDS = 90.0  # the reference implementation computes some operators element by element
IMPORT_SECONDS = 60.0
_NOTHING = ""  # a text of one's own has no shape of a kernel


@dataclass(frozen=True)
class Judgement:
    """What another implementation makes of a case. ``status``: ok, wrong_result, or unsupported, timeout,
    failed where nobody has a word on it; ``by``: whose word it is."""

    status: str
    by: str
    message: str = ""

    def __str__(self) -> str:
        if self.status == "ok":
            return f"agrees with {self.by}"
        if self.status == "wrong_result":
            return f"differs from {self.by}: {self.message}"
        return f"not judged by another: {self.message}"


def judged(made: Made) -> Judgement:
    """The start program's meaning on drawn inputs, held against ONNX Runtime or the standard's reference."""
    with TemporaryDirectory(prefix="dojo-operator-") as place:
        write(Path(place), made=made)
        arguments = [interpreter(), str(SCRIPTS / JUDGE), made.case.operator, _NOTHING, "1", place]
        try:
            process = Process(arguments, pinned_environment())
        except OSError as fault:
            return Judgement("failed", "", f"{interpreter()} does not start ({fault.strerror}).")
        try:
            answer = process.read(JUDGE_SECONDS)
        except Silent as silent:
            return Judgement(silent.status, "", str(silent))
        process.close()
        return Judgement(str(answer.get("status")), str(answer.get("by", "")), str(answer.get("message", "")))


def write(folder: Path, *, made: Made) -> None:
    """The job of a case: the model, inputs as they are stored, what the program means for them."""
    case, program = made.case, made.program
    drawn = made.drawn()
    expected = made.expected(drawn)
    buffers = {name: program.buffer_of[array] for name, array in made.arrays.items()}
    dtypes = {each.name: each.dtype for each in case.data} | {n: buffers[n].dtype for n in case.outputs}
    shapes = {each.name: list(each.shape) for each in case.data}
    shapes |= {n: [d.size for d in buffers[n].dims] for n in case.outputs}
    job = {
        "inputs": [each.name for each in case.data],
        "outputs": list(case.outputs),
        "shapes": shapes,
        "dtypes": dtypes,
        "node": {
            "operator": case.operator,
            "attributes": dict(case.attributes),
            "inputs": [
                None if i is None else {"values": i.values, "dtype": i.dtype} if i.known else i.name
                for i in case.inputs
            ],
            "weights": [each.name for each in case.data if each.weight],
        },
    }
    write_text(folder / "job.json", json.dumps(job))
    with naming(folder):
        (folder / "model.onnx").write_bytes(made.model)
        for name, array in drawn.items():
            np.save(folder / f"in.{name}.npy", array)
        for name in case.outputs:
            whole = dtypes[name] in INTEGERS
            values = np.reshape(expected[name], shapes[name])
            np.save(folder / f"out.{name}.npy", values if whole else values.astype(np.float32))


def compared(
    made: Made,
    program: Program,
    policy: str,
    against: Sequence[str],
    rounds: int,
    records: Records,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """A report as ``dojo bench`` has it, of one program of a case beside the rivals that are named."""
    game = Game.new(made.program, policy=policy, title=made.case.title)
    rivals = Rivals(RIVALS, partial(write, made=made))
    return run_bench(
        game,
        [Entry("tuned", program)],
        against,
        rounds,
        stopped=stopped,
        tolerant=True,
        records=records,
        rivals=rivals,
    )


def absent() -> Mapping[str, str]:
    """The rivals that the baselines' Python lacks, each with a sentence on how it is brought."""
    return _absent(interpreter())


@cache
def _absent(python: str) -> Mapping[str, str]:
    missing: dict[str, str] = {}
    for name in RIVALS:
        try:
            found = subprocess.run(
                [python, "-c", f"import {name}"], capture_output=True, timeout=IMPORT_SECONDS, check=False
            ).returncode
        except (OSError, subprocess.TimeoutExpired):
            found = 1
        if found:
            missing[name] = f"{RIVALS[name].name} is not installed for {python}: {how_to_get(name)}"
    return missing
