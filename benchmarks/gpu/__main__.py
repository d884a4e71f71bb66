"""All that needs a GPU, in one run: ``python -m benchmarks.gpu --out DIR``.

First what the heuristic pass makes of the kernels outside the paper's table 3 is verified. Then for the 16
shapes of that table ``dojo bench --target cuda``: the recorded line and what the heuristic pass makes,
verified on fresh inputs and timed by events, interleaved with PyTorch eager, compiled, compiled with CUDA
graphs (TF32 off, and eager with TF32 on for products), cuBLAS and a copy of as many bytes on the device.
Then the products among them once more, all in TF32: ours on tensor cores, PyTorch's and cuBLAS with TF32 on.
Then a sample of random legal walks is verified, each line that has parameters is tried with half and twice of
each, and agents search, ``--search`` evaluations from the heuristic's position of some kernels. With
``--warm`` the bench comes once more, with a warm second-level cache.

Every part has a share of the time, and of it each kernel at most twice what is left for each; what fails is a
result that says so, and the rest goes on. After each
thing ``DIR/gpu.json`` and ``DIR/report.md`` are written anew, and a line tells it; ``DIR/records.sqlite`` has
what the searches measured (``dojo records-import`` takes it in). Needs NVIDIA's driver, a CUDA compiler (nvcc
or NVRTC), gcc, NumPy and Lark, PyTorch to compare with; downloads nothing. ``--emulate`` tries all of it but
the times on a machine without a GPU, at small shapes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents.agent import Budget, Task, run
from agents.players import AGENTS
from agents.timing import MeasurerTiming
from benchmarks.gpu.positions import OTHERS, SMALL, TABLE, position, shapes, walked, ways
from benchmarks.gpu.report import table
from dojo_core import kernels
from dojo_core.bench.ours import Entry
from dojo_core.bench.summary import summary
from dojo_core.game import Game
from dojo_core.line import line_for
from dojo_core.measure.evidence import FAULTS
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.records import Records
from dojo_core.targets.cuda.backend import Cuda, DeviceMeasurer
from dojo_core.targets.cuda.bench import IN_TF32, PRODUCTS, ROWS, run_gpu_bench
from dojo_core.targets.cuda.measurer import GpuMeasurer, NoGpu
from dojo_core.targets.registry import UnknownTarget
from tests.tiny import TINY

WALKS = 2  # of each kernel
SEARCHED = ("softmax", "rmsnorm", "relu_ffn", "conv", "matmul")
AGENT = "sampling-edges"
# Shares of the time, in order; what a part leaves over goes to the next ones.
SHARES = {
    "correct": 0.08, "bench": 0.62, "tf32": 0.84, "walks": 0.88, "lines": 0.92, "search": 0.98, "warm": 1.0,
}  # fmt: skip
STAND_IN = (sys.executable, "-m", "benchmarks.gpu.stand_in")
TORCH_STAND_IN = (sys.executable, str(Path(__file__).with_name("torch_stand_in.py")))
SEARCH_SECONDS = 30.0  # of one kernel


def benched(
    gpu: GpuMeasurer,
    name: str,
    shape: str,
    cold: bool,
    against: Sequence[str],
    until: float,
    tf32: bool = False,
) -> dict[str, Any]:
    """One kernel: each way verified, then all timed beside the others; with ``tf32`` all in TF32."""
    policy = "tf32" if tf32 else "reassoc"
    games = {way: position(name, shape, way, policy=policy) for way in ways(name, shape, tf32)}
    entries = [Entry(way, game.current.program) for way, game in games.items() if game is not None]
    game = next(game for game in reversed(games.values()) if game is not None)
    torch = () if gpu.device.timed else TORCH_STAND_IN
    report = run_gpu_bench(gpu, game, entries, against, cold=cold, torch=torch, until=until)
    right = all(e["verified"] for e in report["entries"] if e["kind"] == "ours")
    if not gpu.device.timed:  # what stands in for the device counts, and has no clock
        report["limits"] = None
        for entry in report["entries"]:
            for key in ("min", "median", "spread", "ratio", "share"):
                entry.pop(key, None)
            entry["samples_ns"] = []
    return {"part": "tf32" if tf32 else "bench", "verified": right, "report": report}


class LeftOut(Exception):
    """A kernel that this target has not; ``str()`` says why."""


def correct(gpu: GpuMeasurer, name: str, shape: str) -> dict[str, Any]:
    """What the heuristic pass makes of a kernel, verified. Raises LeftOut."""
    try:
        game = position(name, shape, "heuristic")
    except UnknownTarget as reason:
        raise LeftOut(str(reason)) from None
    assert game is not None
    workload = Workload(game.start, name, game.policy, "cuda")
    seen = gpu.measure(workload, [game.current.program])[0]
    if seen.status == "refused":
        raise LeftOut(seen.message)
    return {"part": "correct", **_told(seen)}


def varied(gpu: GpuMeasurer, records: Records | None, name: str, shape: str) -> dict[str, Any]:
    """A recorded line with half and twice of each of its parameters; the best of those that replay."""
    line = line_for(name, shape, "cuda")
    assert line is not None
    choices = [(value, *({value // 2} - {0}), 2 * value) for value in line.settings.values()]
    tried: dict[str, dict[str, int]] = {}
    games = []
    for values in itertools.product(*choices):
        settings = dict(zip(line.settings, values, strict=True))
        game = position(name, shape, "line", settings)
        if game is not None and game.current.program.hash not in tried:
            tried[game.current.program.hash] = settings
            games.append(game)
    lines = {game.current.program.hash: "\n".join(moves_of(game)) for game in games}
    kept: dict[str, Any] = {"records": records, "lines": lines, "player": "line"}
    workload = Workload(games[0].start, name, games[0].policy, "cuda")
    seen = gpu.measure(workload, [game.current.program for game in games], **kept)
    wrong = next((m for m in seen if m.status in FAULTS), None)
    found: dict[str, Any] = {"part": "lines", "evaluations": len(seen), "verified": wrong is None}
    found["message"] = wrong.message if wrong is not None else ""
    fastest = min(seen, key=lambda m: m.seconds or math.inf)
    by_hash = {game.current.program.hash: game.current.program for game in games}
    ends = [by_hash[seen[0].program_hash], by_hash[fastest.program_hash]]
    first, best = gpu.measure(workload, ends, Effort.FINAL, fresh=True, **kept)
    found["settings"] = tried[fastest.program_hash]
    if gpu.device.timed:
        found.update(start=first.seconds, best=best.seconds)
    return found


def walk(gpu: GpuMeasurer, name: str, seed: int) -> dict[str, Any]:
    """A random walk's end at a small shape, verified."""
    game = walked(name, seed)
    workload = Workload(game.start, name, game.policy, "cuda")
    seen = gpu.measure(workload, [game.current.program])[0]
    return {"part": "walk", "seed": seed, "line": moves_of(game), **_told(seen)}


def search(
    gpu: GpuMeasurer, records: Records | None, name: str, shape: str, evaluations: int
) -> dict[str, Any]:
    """An agent's best from what the heuristic pass makes."""
    game = position(name, shape, "heuristic")
    assert game is not None
    first = best = None
    tried, message = 0, ""
    budget = Budget(evaluations, SEARCH_SECONDS)
    timing = MeasurerTiming(DeviceMeasurer(Cuda(), records, gpu), AGENT)
    for event in run(Task(game), AGENTS[AGENT], timing, budget, seed=1):
        tried, best = event.evaluation, event.best or best
        message = event.measurement.message or message
        first = first or event.measurement.seconds
    found: dict[str, Any] = {"part": "search", "agent": AGENT, "evaluations": tried, "message": message}
    found["verified"] = best is not None
    if best is not None:
        found["line"] = [str(move) for move in best.line]
        if gpu.device.timed:
            found.update(start=first, best=best.seconds)
    return found


def _told(seen: Any) -> dict[str, Any]:
    return {"verified": seen.verified, "status": seen.status, "message": seen.message, "error": seen.error}


@contextmanager
def fresh_records(folder: Path, report: Report) -> Iterator[Records | None]:
    """An empty database in the folder; None, which the report tells, where the file system has no locks."""
    for old in folder.glob("records.sqlite*"):
        old.unlink()
    try:
        records = Records(folder / "records.sqlite")
    except sqlite3.OperationalError as error:
        report.data["left_out"].append(f"records.sqlite: {error}")
        yield None
        return
    with records:
        yield records


def moves_of(game: Game) -> list[str]:
    """The line of a game as text."""
    return [str(p.move) for p in game.line() if p.move is not None]


class Report:
    """The files of results, written anew with each."""

    def __init__(self, folder: Path, minutes: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._begin, self._seconds = time.monotonic(), 60 * minutes
        self.data: dict[str, Any] = {"device": "", "results": [], "left_out": []}

    def add(self, part: str, name: str, shape: str, one: Callable[[], dict[str, Any]]) -> None:
        """Do one thing, unless its part's time is over; what it raises is its result."""
        spent = time.monotonic() - self._begin
        if spent > SHARES[part] * self._seconds:
            self.data["left_out"].append(f"{part} {name} {shape}: no time was left")
        else:
            try:
                found = one()
            except LeftOut as reason:
                self.data["left_out"].append(f"{part} {name} {shape}: {reason}")
                return
            except Exception as error:  # one failure must not end the run
                told = f"{type(error).__name__}: {error}"
                found = {"part": part, "verified": False, "message": told, "error": traceback.format_exc()}
            found = {"kernel": name, "shape": shape, **found}
            found["seconds"] = round(time.monotonic() - self._begin - spent, 2)
            self.data["results"].append(found)
            print(f"[{spent:5.0f} s] {_line(found)}", flush=True)
        self.data["summary"] = summary(self.benches())
        for file, text in (("gpu.json", json.dumps(self.data, indent=1) + "\n"), ("report.md", self.text())):
            (self._folder / file).write_text(text)

    def until(self, part: str, things: int) -> float:
        """When one thing of a part must be done, if so many are left: twice its share of the time."""
        now = time.monotonic()
        left = self._begin + SHARES[part] * self._seconds - now
        return now + max(0.0, left) * min(1.0, 2 / things)

    def benches(self) -> list[dict[str, Any]]:
        """The reports of the first bench."""
        return [
            r["report"]
            for r in self.data["results"]
            if r["part"] == "bench" and "report" in r and r["report"]["cache"] == "cold"
        ]

    def text(self) -> str:
        """The results for people, in Markdown."""
        rows = [f"# {self.data['device']}", "", "Best times in µs, verified; a copy moves as many bytes.", ""]
        for found in self.data["results"]:
            rows.append(f"- {_line(found)}")
        rows += ["", *table(self.data), "", *table(self.data, "tf32")]
        told = (self.data.get("summary") or {}).get("against", {}).get("reference", {})
        for name, each in told.items():
            if each["geometric_mean"]:
                rows.append(
                    f"\nOurs against {name}: {each['geometric_mean']:.2f}x in the geometric mean of "
                    f"{each['kernels']} kernels, worst {each['worst']:.2f}x ({each['worst_kernel']})."
                )
        if self.data["left_out"]:
            rows += ["", "Left out:", "", *(f"- {each}" for each in self.data["left_out"])]
        return "\n".join(rows) + "\n"

    @property
    def right(self) -> bool:
        """Was everything verified?"""
        return all(found["verified"] for found in self.data["results"])


def _line(found: dict[str, Any]) -> str:
    """A result in one line."""
    state = "verified" if found["verified"] else f"WRONG {found.get('message', '')}"
    told = []
    report = found.get("report")
    for entry in report["entries"] if report else ():
        if "min" in entry:
            told.append(f"{entry['name']} {1e6 * entry['min']:.1f}")
        elif entry["status"] != "ok" and entry["message"]:
            told.append(f"{entry['name']} {entry['status']} ({entry['message'][:80]})")
    if report and report["limits"]:
        told.append(f"copy {1e6 * report['limits']['memory_seconds']:.1f}")
    if found.get("settings"):
        told.append(", ".join(f"{name} = {value}" for name, value in found["settings"].items()))
    if found.get("best") and found.get("start"):
        told.append(f"{found['start'] / found['best']:.2f}x after {found['evaluations']} evaluations")
    cache = f" ({report['cache']})" if report else ""
    return f"{found['part']}{cache} {found['kernel']} {found['shape']}: {state}. {'; '.join(told)}".strip()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder for the results")
    parser.add_argument("--minutes", type=float, default=8.5, help="nothing new begins later")
    parser.add_argument("--search", type=int, default=60, help="evaluations of each search")
    parser.add_argument("--only", nargs="*", choices=TABLE, default=TABLE, help="these kernels")
    parser.add_argument("--warm", action="store_true", help="the bench with a warm cache as well")
    parser.add_argument("--emulate", action="store_true", help="without a GPU: everything but times")
    given = parser.parse_args(arguments)
    try:
        gpu = GpuMeasurer(STAND_IN) if given.emulate else GpuMeasurer()
    except NoGpu as missing:
        print(f"{missing} --emulate tries everything but the times.")
        return 1
    report = Report(given.out, given.minutes)
    report.data["device"] = gpu.device.summary
    with gpu, fresh_records(given.out, report) as records:
        sizes = {name: [SMALL[name]] if given.emulate else shapes(name) for name in given.only}
        things = [(name, shape) for name in given.only for shape in sizes[name]]

        def bench(part: str, cold: bool) -> None:
            for number, (name, shape) in enumerate(things):
                until = report.until(part, len(things) - number)
                report.add(
                    part, name, shape,
                    lambda n=name, s=shape, u=until: benched(gpu, n, s, cold, tuple(ROWS), u),
                )  # fmt: skip

        if given.only == TABLE:
            for name in (n for n in kernels.names() if n not in TABLE):
                shape = OTHERS.get(name) or "x".join(map(str, TINY[name]))
                report.add("correct", name, shape, lambda n=name, s=shape: correct(gpu, n, s))
        bench("bench", True)
        products = [thing for thing in things if thing[0] in PRODUCTS["torch-tf32"]]
        for number, (name, shape) in enumerate(products):
            until = report.until("tf32", len(products) - number)
            report.add(
                "tf32", name, shape,
                lambda n=name, s=shape, u=until: benched(gpu, n, s, True, IN_TF32, u, tf32=True),
            )  # fmt: skip
        for name in given.only:
            for seed in range(WALKS):
                report.add("walks", name, SMALL[name], lambda n=name, s=seed: walk(gpu, n, s))
        for name, shape in things:
            line = line_for(name, shape, "cuda")
            if line is not None and line.settings:
                report.add("lines", name, shape, lambda n=name, s=shape: varied(gpu, records, n, s))
        for name in (n for n in SEARCHED if n in given.only):
            shape = sizes[name][0]
            report.add(
                "search", name, shape, lambda n=name, s=shape: search(gpu, records, n, s, given.search)
            )
        if given.warm:
            bench("warm", False)
    return 0 if report.right else 1


if __name__ == "__main__":
    raise SystemExit(main())
