"""Whole models beside PyTorch eager, Inductor and ONNX Runtime: ``python -m benchmarks.models``.

Seven networks with random weights (``networks.py``) run in the Dojo three ways: by
``torch.compile(model, backend="dojo", options={"freeze": True})``, the same with ``"policy": "algebraic"``,
by which convolutions may have fewer products, and as an ONNX file by ``dojo_core.open_model``. Each
contender has a process of its own (``contender.py``), so that no two share threads or memory; ONNX
Runtime's is in the baselines' Python (``make bench``). All run on all cores, freed memory stays with them,
and weights are constants for whoever can make use of that.

The Dojo and Inductor start twice: first without anything kept on disk, then with what the first start kept.
Starts are counted from the model to its first result, without the import of libraries. Results are held
against eager's: off by at most TOLERANCE of the largest magnitude. Times are medians of the medians of
interleaved rounds, ratios medians of the rounds' ratios. ``--json`` keeps a row for each network; the same
command goes on where it was, and ``--write`` puts the tables into a page.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.networks import NETWORKS
from benchmarks.sections import fill
from dojo_core.bench.baselines import alone, how_to_get, pinned_environment
from dojo_core.bench.processes import Process, Silent
from dojo_core.files import replace_text
from dojo_core.measure.exclusive import measuring

Values = np.ndarray[Any, Any]

OURS = {"dojo": "torch.compile", "dojo-algebraic": "algebraic", "dojo-onnx": "ONNX file"}  # in the tables
OTHERS = {"eager": "eager", "inductor": "Inductor", "onnxruntime": "ONNX Runtime"}
TWICE = ("dojo", "dojo-algebraic", "dojo-onnx", "inductor")  # who keeps something for the next start
TOLERANCE = 1e-4
ROUNDS, ROUND_SECONDS = 9, 0.5
START_SECONDS, ANSWER_SECONDS = 1800.0, 300.0
END = "<!-- end of models -->"


@dataclass
class Entry:
    """What a contender came to. ``seconds``: of each round, the median of its runs. ``first`` and ``second``:
    seconds from the model to its first result, without and with what the first start kept; ``parts``: what
    of the first went to programs (play), their code (compile) and weights (prepare). ``error``: against the
    largest magnitude of eager's results."""

    status: str = "ok"  # or wrong, failed, timeout, missing
    message: str = ""
    by: str = ""
    seconds: list[float] = field(default_factory=list)
    first: float = 0.0
    second: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)
    error: float = 0.0
    stays: list[str] = field(default_factory=list)


@dataclass
class Row:
    """A network with its contenders by name. ``alone``: nobody else measured or compiled meanwhile."""

    network: str
    rounds: int
    entries: dict[str, Entry]
    alone: bool = True

    def ratio(self, ours: str, others: Sequence[str]) -> float | None:
        """How many times as fast ours is as the fastest of others: the median over the rounds. None where a
        time is missing."""
        mine = self.entries[ours].seconds
        theirs = [self.entries[name].seconds for name in others if self.entries[name].seconds]
        if not (mine and theirs):
            return None
        fastest = min(theirs, key=statistics.median)
        return statistics.median(other / own for own, other in zip(mine, fastest, strict=True))


# ---------------------------------------------------------------------------- one network


def compared(network: str, rounds: int) -> Row:
    """A network in all contenders."""
    row = Row(network, rounds, {name: Entry() for name in (*OTHERS, *OURS)})
    with TemporaryDirectory(prefix="dojo-models-") as place, ExitStack() as stack:
        folder, processes = Path(place), dict[str, Process]()
        exported = _exported(network, folder)
        for name, entry in row.entries.items():
            try:
                if exported and name in ("onnxruntime", "dojo-onnx"):
                    raise Silent("failed", exported)
                processes[name] = stack.enter_context(closing(_started(name, network, folder, entry)))
                entry.error = _error(_result(folder, name), _result(folder, "eager"))
                if not entry.error <= TOLERANCE:  # NaN is not
                    del processes[name]
                    raise Silent("wrong", f"Its result is off by {entry.error:.2g} of the largest magnitude.")
            except Silent as silent:
                entry.status, entry.message = silent.status, str(silent)
        with measuring() as claim:
            _rounds(row, processes)
            row.alone = claim.alone()
    return row


def _exported(network: str, folder: Path) -> str:
    """Write the ONNX file; gives why there is none."""
    try:
        with closing(_process("export", network, folder, os.environ)) as process:
            _answer(process, START_SECONDS)
    except Silent as silent:
        return f"PyTorch did not export it: {silent}"
    return ""


def _process(kind: str, network: str, folder: Path, environment: Mapping[str, str]) -> Process:
    """A contender of ours, which keeps what it makes in the folder."""
    kept = {"DOJO_HOME": str(folder / f"home-{kind}"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    command = [sys.executable, "-m", "benchmarks.contender", kind, network, str(folder)]
    return Process(command, {**environment, **kept})


def _started(name: str, network: str, folder: Path, entry: Entry) -> Process:
    """A contender that is ready for rounds, on its cores. Raises Silent."""
    if name == "onnxruntime":
        files = [str(folder / each) for each in ("model.onnx", "inputs.npz", "onnxruntime.npz")]
        process = alone("onnx_model.py", files, pinned_environment())
        entry.by = _answer(process, START_SECONDS)["by"]
        return process
    if name in TWICE:  # as a user starts it, which pins nothing: compilers may have all cores
        first, second = (_as_user(name, network, folder) for _ in range(2))
        entry.first, entry.parts, entry.second = first["start"], first["parts"], second["start"]
    process = _process(name, network, folder, pinned_environment())
    said = _answer(process, START_SECONDS)
    entry.by, entry.stays = said["by"], said["stays"]
    return process


def _as_user(name: str, network: str, folder: Path) -> dict[str, Any]:
    """What a contender says of a start of its own. Raises Silent."""
    with closing(_process(name, network, folder, os.environ)) as process:
        return _answer(process, START_SECONDS)


def _answer(process: Process, seconds: float) -> dict[str, Any]:
    """What a process says at first. Raises Silent, and has ended it, where it is not ready."""
    said = process.read(seconds)
    if said["status"] != "ok":
        process.close()
        remedy = how_to_get("onnxruntime") if said["status"] == "missing" else ""
        raise Silent(said["status"], f"{said['message']} {remedy}".strip())
    return said


def _result(folder: Path, name: str) -> Values:
    """The first result of a contender."""
    if name != "onnxruntime":
        found: Values = np.load(folder / f"{name}.npy")
        return found
    with np.load(folder / "onnxruntime.npz") as archive:
        (found,) = archive.values()
    return found


def _error(ours: Values, wanted: Values) -> float:
    if ours.shape != wanted.shape:
        return math.inf
    return float(np.abs(ours - wanted).max() / np.abs(wanted).max())


def _rounds(row: Row, processes: dict[str, Process]) -> None:
    """Time all in turns. Who falls silent has no times."""
    runs: dict[str, int] = {}
    for number in range(row.rounds + 1):  # the first finds out how many runs fill a round
        for name, process in list(processes.items()):
            entry = row.entries[name]
            try:
                seconds = process.ask(runs.get(name, 3), ANSWER_SECONDS)["seconds"]
            except Silent as silent:
                entry.status, entry.message, entry.seconds = silent.status, str(silent), []
                del processes[name]
                continue
            if number:
                entry.seconds.append(statistics.median(seconds))
            else:
                runs[name] = min(max(int(ROUND_SECONDS / min(seconds)), 3), 1000)


# ---------------------------------------------------------------------------- what is told


def tables(rows: Sequence[Row]) -> str:
    """All networks: speeds, then starts, then what is to be said of single contenders."""
    ours = [name for name in OURS if all(name in row.entries for row in rows)]  # older rows have fewer
    names = {**OTHERS, **{name: f"Dojo, {OURS[name]}" for name in ours}}
    against = [f"{OURS[name]}, {which}" for name in ours for which in ("eager", "best other")]
    lines = [
        _line(["network, ms of a run", *names.values()]),
        "|---|" + "---:|" * len(names),
        *(_line([row.network, *(_cell(row, name) for name in names)]) for row in rows),
        "",
        _line(["times as fast as", *against]),
        "|---|" + "---:|" * len(against),
    ]
    ratios = {
        row.network: [row.ratio(name, others) for name in ours for others in (("eager",), tuple(OTHERS))]
        for row in rows
    }
    lines += [_line([name, *(_number(r) for r in each)]) for name, each in ratios.items()]
    columns = [[r for r in column if r] for column in zip(*ratios.values(), strict=True)]
    lines.append(_line(["geometric mean", *(_mean(column) for column in columns)]))
    lines += [
        "",
        _line(["start, s", "first", "import", "programs", "code", "weights", "second", "Inductor", "second"]),
        "|---|" + "---:|" * 8,
    ]
    for row in rows:
        lines += [_start(row, name) for name in ours]
    lines += ["", *(f"- {row.network}: {NETWORKS[row.network].about}." for row in rows)]
    lines += [
        f"- {row.network}, {names[name]}: {note}"
        for row in rows
        for name, entry in row.entries.items()
        if name in names
        for note in filter(None, (entry.message, *entry.stays))
    ]
    lines += [f"- {row.network}: not measured alone." for row in rows if not row.alone]
    versions = sorted({entry.by for row in rows for entry in row.entries.values() if entry.by})
    return "\n".join([*lines, f"- {'; '.join(versions)}.", ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(row: Row, name: str) -> str:
    entry = row.entries[name]
    if entry.status != "ok":
        return entry.status
    return f"{statistics.median(entry.seconds) * 1e3:.3g}" if entry.seconds else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _mean(ratios: Sequence[float]) -> str:
    return f"{statistics.geometric_mean(ratios):.2f}" if ratios else ""


def _start(row: Row, name: str) -> str:
    """How long a model's first start takes, and where that goes; and the second. Inductor's beside it."""
    entry, inductor = row.entries[name], row.entries["inductor"]
    parts = [entry.parts.get(part, 0.0) for part in ("play", "compile", "prepare")]
    ours = [entry.first, entry.first - sum(parts), *parts, entry.second]
    theirs = [inductor.first, inductor.second] if name == "dojo" else []
    cells = [f"{seconds:.1f}" if seconds else "" for seconds in (*ours, *theirs)]
    return _line([f"{row.network}, {OURS[name]}", *cells, *[""] * (2 - len(theirs))])


# ---------------------------------------------------------------------------- all networks


def _kept(path: Path | None) -> dict[str, Row]:
    """The rows of a file, by network."""
    if path is None or not path.exists():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {
        row["network"]: Row(**{**row, "entries": {k: Entry(**e) for k, e in row["entries"].items()}})
        for row in rows
    }


def begin(rows: Path) -> str:
    """Where a page has the tables of a file of rows."""
    return f"<!-- written by python -m benchmarks.models {rows.name} -->"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(NETWORKS), help="networks, such as bert,lstm")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of times; 0: none are taken")
    parser.add_argument("--json", type=Path, help="a file of all rows; those in it are not measured again")
    parser.add_argument("--write", type=Path, help="a page that has the file's section")
    given = parser.parse_args()
    chosen = given.only.split(",")
    if unknown := [name for name in chosen if name not in NETWORKS]:
        parser.error(f"There is no network {unknown[0]}: there are {', '.join(NETWORKS)}.")
    if given.write and not given.json:
        parser.error("--write needs --json: a page has a section for each file of rows.")
    rows = _kept(given.json)
    for network in chosen:
        if network in rows and rows[network].rounds == given.rounds:
            continue
        print(f"{network}: {NETWORKS[network].about} …", file=sys.stderr, flush=True)
        rows[network] = compared(network, given.rounds)
        if given.json:
            replace_text(given.json, json.dumps([asdict(row) for row in rows.values()], indent=1))
    told = tables([rows[network] for network in NETWORKS if network in rows])
    print(told, end="")
    if given.write:
        fill(given.write, begin(given.json), END, told)


if __name__ == "__main__":
    main()
