"""How long PyTorch eager takes for what a program computes: for kernels of models, which have no name there.

The program's lines go to ``others/torch_text.py`` as data; it computes them by PyTorch's functions in a
process of its own, in the baselines' Python, and its result is held against the program's meaning. The least
time that was seen on the machine is kept in the records.
"""

from __future__ import annotations

import importlib.metadata
import logging
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dojo_core.bench.baselines import interpreter, pinned_environment, save_job
from dojo_core.bench.forks import Forks
from dojo_core.bench.processes import Silent
from dojo_core.bench.roofline import Question
from dojo_core.measure.conditions import stands
from dojo_core.measure.exclusive import measuring
from dojo_core.measure.load import Gauge, load_is_told, read_beside_family
from dojo_core.measure.machine import this_machine
from dojo_core.measure.pool import draw, to_double
from dojo_core.measure.records import Limit, Records
from dojo_core.program.interpret import interpret
from dojo_core.program.tables import Index, Indirect
from dojo_core.program.tree import Access, Leaf, Number, Operand, Program

log = logging.getLogger(__name__)

SCRIPT = "torch_text.py"
ASK, PREPARE, ROUND = 20.0, 120.0, 60.0  # seconds, until it is given up
ROUNDS, SAMPLES = 3, 10
_DTYPES = {"f64", "f32", "f16", "bf16", "i64", "i32"}  # those that mean the same there


class NoCounterpart(Exception):
    """PyTorch has no function for a line of the program: a sentence."""


@cache
def version() -> str:
    """The PyTorch of the baselines' Python, such as ``2.9.1``; empty where there is none."""
    try:
        if interpreter() == sys.executable:
            return importlib.metadata.version("torch").partition("+")[0]
        asked = "import importlib.metadata as m; print(m.version('torch'))"
        found = subprocess.run(
            [interpreter(), "-c", asked], capture_output=True, text=True, timeout=ASK, check=True
        )
    except (importlib.metadata.PackageNotFoundError, OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip().partition("+")[0]


def known(records: Records, start: Program) -> Limit | None:
    """The least time that PyTorch was seen to take for a start program on this machine, in seconds."""
    return records.limit(this_machine().fingerprint, _name(start)) if version() else None


def doubtful(records: Records, start: Program) -> bool:
    """Whether PyTorch is to be timed (again): nothing is known, or the machine was busy."""
    if not version():
        return False
    seen = known(records, start)
    return seen is None or not stands(seen.conditions, 0.0, load_is_told())


def timed(records: Records, questions: Sequence[Question]) -> None:
    """Time PyTorch on the starts of these where that is ``doubtful``; it is imported once for all of them.

    Where it has no counterpart or fails, the log says why. Takes some seconds and the whole machine.
    """
    with Forks() as forks:
        for question in questions:
            start = question.start
            if not doubtful(records, start):
                continue
            try:
                seconds, load = _measured(question, forks)
            except (NoCounterpart, Silent) as fault:
                log.info("no time of PyTorch for %s: %s", start.name, fault)
            else:
                seen = Limit(_name(start), seconds, f"PyTorch {version()} eager", load)
                records.lower_limit(this_machine().fingerprint, seen)


def _name(start: Program) -> str:
    """What a time is kept by."""
    return f"PyTorch {version()} eager: {start.hash}"


def _measured(question: Question, forks: Forks) -> tuple[float, float | None]:
    """Seconds of the shortest run, and what others took of the cores. Raises NoCounterpart and Silent."""
    gauge = Gauge(read_beside_family)
    with tempfile.TemporaryDirectory(prefix="dojo-eager-") as folder:
        write(Path(folder), question.start)
        with measuring():
            process = forks.start(SCRIPT, ["text", "", str(question.sets), folder], pinned_environment())
            try:
                ready = process.read(PREPARE)
                if ready["status"] != "ok":
                    raise NoCounterpart(str(ready["message"]))
                gauge.begin()
                samples = [float(ns) for _ in range(ROUNDS) for ns in process.ask(SAMPLES, ROUND)["samples"]]
                return min(samples) / 1e9, gauge.share()
            finally:
                process.close()


def write(folder: Path, start: Program) -> None:
    """The job of a program: its lines, drawn inputs, what it means for them. Raises NoCounterpart."""
    lines = [line(each) for each in start.leaves]
    buffers = {a: start.buffer_of[a] for each in start.buffers for a in each.arrays}
    shapes = {array: [dim.size for dim in buffer.dims] for array, buffer in buffers.items()}
    dtypes = {array: buffer.dtype for array, buffer in buffers.items()}
    strange = sorted({*dtypes.values()} - _DTYPES)
    if strange:
        raise NoCounterpart(f"It has arrays of {', '.join(strange)}.")
    rng = np.random.default_rng(0)
    domains = {domain.array: domain for domain in start.domains}
    drawn = {a: draw(dtypes[a], tuple(shapes[a]), rng, domains.get(a)) for a in start.inputs}
    meant = interpret(start, {a: to_double(array, dtypes[a]) for a, array in drawn.items()})
    save_job(folder, drawn, {a: meant[a] for a in start.outputs}, shapes, dtypes, lines=lines)


def line(leaf: Leaf) -> dict[str, Any]:
    """A line of a text as data: sizes of its scopes, target and operands, their indices as a number and
    the factor of each iterator. Raises NoCounterpart."""
    op = leaf.op
    if op.guard:
        raise NoCounterpart("A line holds for some of its iterations alone.")
    return {
        "sizes": [scope.size for scope in leaf.scopes],
        "target": _access(op.target),
        "accumulate": op.accumulate,
        "function": op.function,
        "operands": [_operand(each) for each in op.operands],
    }


def _operand(operand: Operand) -> Any:
    if isinstance(operand, Access):
        return _access(operand)
    if isinstance(operand, Number):
        return operand.value
    raise NoCounterpart("A line computes with its iterators.")


def _access(access: Access) -> tuple[str, Sequence[Any]]:
    return access.array, [_index(each) for each in access.index]


def _index(index: Index) -> Any:
    if isinstance(index, Indirect):
        raise NoCounterpart("An index is read from an array.")
    return [index.const, dict(index.terms)]
