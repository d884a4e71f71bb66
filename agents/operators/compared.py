"""A case beside PyTorch and ONNX Runtime: does it mean the same, and how long does each take?

Both run in the baselines' own Python (``dojo_core/bench/baselines.py``), on the same inputs, ONNX Runtime on
the very model that was imported; ``dojo_core/bench/rounds.py`` times all in interleaved rounds. Each imports
its library once for all cases (``dojo_core/bench/forks.py``).
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from agents.operators.node import Made
from dojo_core.bench import Entry, run_bench
from dojo_core.bench.baselines import (
    Baseline,
    Rivals,
    how_to_get,
    interpreter,
    pinned_environment,
    save_job,
)
from dojo_core.bench.forks import Forks
from dojo_core.bench.processes import Silent
from dojo_core.files import naming
from dojo_core.game import Game
from dojo_core.measure.clock import TargetMeasurer
from dojo_core.measure.records import Records
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


class Others:
    """The judge and the rivals, whose processes go on from case to case. Close it, or use it in ``with``."""

    def __init__(self) -> None:
        self._forks = Forks()

    def close(self) -> None:
        self._forks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def judged(self, made: Made) -> Judgement:
        """The start program's meaning on drawn inputs, held against ONNX Runtime or the standard's
        reference."""
        with TemporaryDirectory(prefix="dojo-operator-") as place:
            write(Path(place), made=made)
            arguments = (made.case.operator, _NOTHING, "1", place)
            try:
                with closing(self._forks.start(JUDGE, arguments, pinned_environment())) as judge:
                    answer = judge.read(JUDGE_SECONDS)
            except Silent as silent:
                return Judgement(silent.status, "", str(silent))
            return Judgement(*(str(answer.get(each, "")) for each in ("status", "by", "message")))

    def compared(
        self,
        made: Made,
        program: Program,
        policy: str,
        against: Sequence[str],
        rounds: int,
        records: Records,
        measurer: TargetMeasurer,
    ) -> dict[str, Any]:
        """A report as ``dojo bench`` has it, of one program of a case beside the rivals that are named."""
        game = Game.new(made.program, policy=policy, title=made.case.title)
        return run_bench(
            game,
            [Entry("tuned", program)],
            against,
            rounds,
            tolerant=True,
            records=records,
            rivals=Rivals(RIVALS, partial(write, made=made), self._forks.start),
            measurer=measurer,
        )


def write(folder: Path, *, made: Made) -> None:
    """The job of a case: the model, inputs as they are stored, what the program means for them."""
    case, program = made.case, made.program
    drawn = made.drawn()
    expected = made.expected(drawn)
    buffers = {name: program.buffer_of[array] for name, array in made.arrays.items()}
    dtypes = {each.name: each.dtype for each in case.data} | {n: buffers[n].dtype for n in case.outputs}
    shapes = {each.name: list(each.shape) for each in case.data}
    shapes |= {n: [d.size for d in buffers[n].dims] for n in case.outputs}
    node = {
        "operator": case.operator,
        "attributes": dict(case.attributes),
        "inputs": [
            None if i is None else {"values": i.values, "dtype": i.dtype} if i.known else i.name
            for i in case.inputs
        ],
        "weights": [each.name for each in case.data if each.weight],
    }
    save_job(folder, drawn, {name: expected[name] for name in case.outputs}, shapes, dtypes, node=node)
    with naming(folder):
        (folder / "model.onnx").write_bytes(made.model)


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
