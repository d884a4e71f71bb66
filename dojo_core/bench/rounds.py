"""Interleaved rounds: each entry in a process of its own, on an exclusive machine.

In every round each entry runs ``SAMPLES`` times; a ratio is taken within a round, best run against best run,
so that the machine's slow periods cancel. Where not all baselines fit the memory beside each other they take
turns in groups; ours run along with each group, in rounds of its own.
"""

from __future__ import annotations

import re
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dojo_core import kernels
from dojo_core.bench.baselines import (
    BASELINES,
    ROUND_SECONDS,
    Baseline,
    Rivals,
    Start,
    alone,
    how_to_get,
    interpreter,
    pinned_environment,
    write_job,
)
from dojo_core.bench.contest import BenchFailed
from dojo_core.bench.ours import Entry
from dojo_core.bench.processes import Dialogue, Process, Silent
from dojo_core.bench.roofline import (
    PEAK_OF_ONE,
    PEAK_OPERATIONS,
    Question,
    beaten_by,
    command,
    keep,
    limits_of,
)
from dojo_core.game import Game
from dojo_core.measure.clock import TargetMeasurer
from dojo_core.measure.exclusive import measuring
from dojo_core.measure.load import Gauge, read_beside_family
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.records import Records
from dojo_core.program.dtypes import INTEGERS
from dojo_core.system import available_bytes
from dojo_core.targets.registry import backend

SAMPLES = 10  # runs of an entry in a round
START_ROUNDS = 3  # the start program is slow: it is timed in so many rounds, and gives up early
SLOW = 20.0  # times as long as the fastest of ours: a baseline that is takes part in as few rounds
GROUP_MEMORY = 0.5  # of the free memory, for the baselines that run beside each other
COPIES = 5  # of a kernel's arrays in a baseline's process at most: its sets, the library's own, temporaries
PROCESS_BYTES = 1 << 30


# An entry, its policy, a folder and a name in it: what starts it in a process as baselines have.
Make = Callable[[Entry, str, Path, str], Baseline]

# What a row says of a program of ours that gave no time.
_STATUS = {"wrong_result": "wrong_result", "timeout": "timeout"}


@dataclass
class Row:
    """An entry; ``rounds`` are its samples in ns, by number of the round, empty where it did not run."""

    entry: str
    name: str
    ours: bool
    details: str = ""
    status: str = "ok"
    message: str = ""
    verified: bool = False
    apart: bool = False
    policy: str = ""  # of one of ours
    constants: tuple[str, ...] = ()  # inputs of which it makes beforehand what hangs on these alone
    error: float | None = None  # the largest, of the largest of the reference
    variants: dict[str, Any] = field(default_factory=dict)
    rounds: list[list[float]] = field(default_factory=list)

    def fail(self, status: str, message: str) -> None:
        self.status, self.message = status, message

    def add(self, number: int, samples: list[float]) -> None:
        while len(self.rounds) <= number:
            self.rounds.append([])
        self.rounds[number] += samples

    def as_json(self, reference: Row | None, limit: float | None) -> dict[str, Any]:
        """As data; ``limit``: the machine's, in seconds."""
        flat = [ns for each in self.rounds for ns in each]
        if self.status == "ok" and not flat and not self.message:
            self.message = "It was stopped before it ran."
        result: dict[str, Any] = {
            "name": self.name,
            "entry": self.entry,
            "kind": "ours" if self.ours else "baseline",
            "apart": self.apart,
            "details": self.details,
            "status": "failed" if self.status == "ok" and not flat else self.status,
            "message": self.message,
            "verified": self.verified,
            "variants": self.variants,
            "samples_ns": self.rounds,
        }
        if self.policy:
            result["policy"] = self.policy
        if self.constants:
            result["constants"] = list(self.constants)
        if self.error is not None:
            result["error"] = self.error
        if flat and self.status == "ok":
            result["min"] = min(flat) / 1e9
            result["median"] = statistics.median(flat) / 1e9
            result["spread"] = statistics.median(flat) / min(flat) - 1.0
            if reference is not None and self is not reference:
                result["ratio"] = _over([min(r) if r else None for r in self.rounds], reference.rounds)
            if limit is not None:  # one with tensor cores may beat the limit of full precision
                result["share"] = limit / result["min"] if limit <= result["min"] else None
        return result

    @property
    def least(self) -> float | None:
        """Seconds of the shortest run of one that is right, else None."""
        flat = [ns for each in self.rounds for ns in each]
        return min(flat) / 1e9 if flat and self.status == "ok" and self.verified else None


def _over(values: Sequence[float | None], rounds: list[list[float]]) -> dict[str, Any]:
    """Values over the best runs of the same rounds: how often the latter fit."""
    ratios = [v / min(r) for v, r in zip(values, rounds, strict=False) if v and r]
    if not ratios:
        return {"median": None, "min": None, "max": None, "rounds": []}
    return {
        "median": statistics.median(ratios), "min": min(ratios), "max": max(ratios), "rounds": ratios,
    }  # fmt: skip


def flops_of(game: Game) -> int:
    """The operations that the machine's f32 peak limits; 0 where some are of integers, which have others."""
    if not game.kernel or any(b.dtype in INTEGERS for b in game.start.buffers):
        return 0
    return kernels.get(game.kernel).flops(_shape(game))


class _Limits:
    """The machine's limits for one kernel, measured in the same rounds."""

    def __init__(self, flops: int) -> None:
        self.flops = flops
        self.pattern: dict[str, Any] = {}
        self.message = ""
        self.memory: list[list[float]] = []  # ns, by round
        self.answers: list[dict[str, Any]] = []

    def add(self, number: int, answer: dict[str, Any]) -> None:
        while len(self.memory) <= number:
            self.memory.append([])
        self.memory[number] += [float(ns) for ns in answer["samples"]]
        self.answers.append(answer)

    def as_json(
        self, records: Records, kernel: Question, rows: Sequence[Row], policy: str
    ) -> dict[str, Any] | None:
        """The best that the machine was ever seen to do, in these rounds too, by the kernel's own runs too,
        but for those by another policy or with constants, which may compute less; None where it was not
        measured."""
        if not self.answers:
            return None
        keep(records, kernel, self.answers)
        whole = [row for row in rows if row.policy in ("", policy) and not row.constants]
        runs = [(row.name, row.least) for row in whole]
        roofline = beaten_by(records, kernel, [(name, least) for name, least in runs if least is not None])
        one = records.limit(this_machine().fingerprint, PEAK_OF_ONE)
        assert roofline is not None and one is not None
        return {
            **limits_of(roofline),
            "way": self.pattern["way"],
            "threads": self.pattern["threads"],
            "gflops_one_thread": PEAK_OPERATIONS / one.seconds / 1e9,
            "samples_ns": self.memory,
        }


class _Loads:
    """What others took of the cores while entries were timed."""

    def __init__(self) -> None:
        self._shares: list[float] = []
        self._gauge = Gauge(read_beside_family)

    def add(self, share: float | None) -> None:
        if share is not None:
            self._shares.append(share)

    def during(self, timed: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """An entry that does not tell itself what else the machine does."""
        self._gauge.begin()
        answer = timed()
        self.add(self._gauge.share())
        return answer

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self._shares) if self._shares else None


def run_bench(
    game: Game,
    ours: Sequence[Entry],
    against: Sequence[str],
    rounds: int,
    on_round: Callable[[int, int], None] = lambda done, of: None,
    on_step: Callable[[str], None] = lambda words: None,
    stopped: Callable[[], bool] = lambda: False,
    tolerant: bool = False,
    ready_within: float | None = None,
    records: Records | None = None,
    rivals: Rivals | None = None,
    measurer: TargetMeasurer | None = None,
    make: Make | None = None,
) -> dict[str, Any]:
    """Measure our entries, the baselines and the machine's limits; a report as JSON-ready data.

    What is missing, hangs or fails is a row that says so. Ratios are against the last of ours that is no
    record. Raises BenchFailed where that one cannot be measured; ``tolerant`` makes that a row too.
    Those of ours with constants run in processes as baselines do. Where some have a policy of their own or
    constants, each is told how far its results are from the float64 reference, as baselines are.
    No round begins once ``stopped`` says so. A baseline has at most ``ready_within`` seconds to be ready.
    The machine's limits are kept in ``records``, and are the best that these know; of a text of one's own
    they are not measured. ``rivals``: what such a text is held against, which has no counterpart otherwise.
    ``measurer``: what verifies and times ours, if not one for this bench alone. ``make``: what starts one of
    ours in a process of its own; without it none has constants, nor is told how far it is from float64.
    """
    machine = this_machine()
    if rivals is None and game.kernel is not None:
        rivals = Rivals(BASELINES, partial(write_job, kernel=game.kernel, shape=_shape(game)))
    baselines, start = (BASELINES, alone) if rivals is None else (rivals.baselines, rivals.start)
    workload = Workload(game.start, game.kernel, game.policy)
    made = [entry for entry in ours if entry.constants]
    if made and make is None:
        raise BenchFailed("What is made of constants beforehand cannot be timed apart here.")
    told = bool(made) or any(entry.policy not in ("", game.policy) for entry in ours)
    ours = [entry for entry in ours if not entry.constants]
    rows = [_row(entry, game) for entry in ours]
    others = [_row(entry, game) for entry in made]
    others += [Row(n, baselines[n].name, False, apart=baselines[n].apart) for n in against]
    mine = [row for row in rows if row.policy == game.policy and row.entry != "record"]
    reference = mine[-1] if mine else None
    needed = None if tolerant else reference
    limits = _Limits(flops_of(game))
    kernel = Question(game.start, game.kernel, game.shape, limits.flops)
    loads = _Loads()
    with (
        backend(game.target).measurer() if measurer is None else nullcontext(measurer) as measurer,
        tempfile.TemporaryDirectory(prefix="dojo-bench-") as place,
    ):
        for entry, row in zip([*ours, *made], [*rows, *others], strict=False):
            on_step(f"verifying {row.name}")
            effort = Effort.NORMAL if entry.program is game.start or entry.constants else Effort.FINAL
            judged = replace(workload, policy=row.policy)
            first = measurer.measure(judged, [entry.program], effort, fresh=True)[0]
            if first.status != "ok":
                if row is needed:
                    raise BenchFailed(f"Our {entry.name} of {game.title} is not measurable: {first.message}")
                row.fail(_STATUS.get(first.status, "failed"), first.message)
            row.verified = first.verified
        folder = Path(place)
        runnable: list[Row] = []
        if rivals is None:
            for row in others:
                row.fail("unsupported", "A text of one's own has no counterpart there.")
        else:
            try:
                rivals.write(folder)
                runnable = others
            except ValueError as error:
                limits.message = str(error)
                for row in others:
                    row.fail("unsupported", str(error))
        if told and make is not None and rivals is not None and not limits.message:
            arguments = [game.kernel or "", game.shape]
            ready: dict[str, Baseline] = {}
            for number, (row, entry) in enumerate(zip([*rows, *others], [*ours, *made], strict=False)):
                if row.status == "ok" and entry.program is not game.start:
                    try:
                        ready[row.entry] = make(entry, row.policy, folder, f"ours {number}")
                    except BenchFailed as fault:
                        row.fail("failed", str(fault))
            baselines = {**baselines, **ready}
            for row in rows:
                if row.status == "ok" and row.entry in ready:
                    on_step(f"comparing {row.name} with float64")
                    _judge(row, baselines, [*arguments, "1", str(folder)], start)
        started = rivals is not None and not limits.message
        groups = _groups([row for row in runnable if row.status == "ok"], game)
        total = rounds * len(groups)
        disturbed: set[int] = set()
        for begin, group in zip(range(0, total, rounds), groups, strict=True):
            _run_group(
                game, workload, measurer, ours, rows, group, baselines, start, folder if started else None,
                limits, kernel, loads, range(begin, begin + rounds), lambda done: on_round(done, total),
                on_step, stopped, needed, ready_within, disturbed,
            )  # fmt: skip
    with records_or_own(records) as known:
        limits_json = limits.as_json(known, kernel, rows + others, game.policy)
    least = limits_json["seconds"] if limits_json else None
    program = game.current.program
    return {
        "kernel": game.kernel or game.start.name,
        "shape": game.shape,
        "policy": game.policy,
        "line": [str(p.move) for p in game.line()[1:]],
        "program": program.text,
        "rounds": max(1, min(rounds, max((len(row.rounds) for row in rows + others), default=0))),
        "samples": SAMPLES,
        "flops": limits.flops,
        "bytes": kernels.get(game.kernel).bytes(_shape(game)) if game.kernel else 0,
        "machine": machine.details,
        "machine_summary": machine.summary,
        "reference": reference.entry if reference else None,
        "load": loads.mean,
        "limits": limits_json,
        "remarks": [*filter(None, (limits.message, remark_on_disturbed(disturbed, total)))],
        "entries": [row.as_json(reference, least) for row in rows + others],
    }


def _row(entry: Entry, game: Game) -> Row:
    name = f"ours: {entry.name}"
    policy, constants = entry.policy or game.policy, tuple(sorted(entry.constants))
    return Row(entry.name, name, True, entry.details, policy=policy, constants=constants)


def _judge(row: Row, baselines: Mapping[str, Baseline], arguments: list[str], start: Start) -> None:
    """How far an entry's results are from the reference, by a process that is timed no further."""
    judged = replace(row)
    process = _start(judged, arguments, baselines=baselines, start=start)
    if process is not None:
        process.close()
    row.error = judged.error


def records_or_own(records: Records | None) -> AbstractContextManager[Records]:
    """The records, or some for one bench alone."""
    return Records(":memory:") if records is None else nullcontext(records)


def remark_on_disturbed(disturbed: set[int], rounds: int) -> str:
    """A remark on rounds that ran beside other measurements, "" where none did."""
    if not disturbed:
        return ""
    return f"{len(disturbed)} of {rounds} rounds ran beside other measurements: their times may be too long."


@contextmanager
def _alone(number: int, disturbed: set[int]) -> Iterator[None]:
    """What is timed for a round, with the machine held alone; the round is noted where it was not."""
    with measuring() as claim:
        yield
        if not claim.alone():
            disturbed.add(number)


def _shape(game: Game) -> kernels.Shape:
    return kernels.get(game.kernel or "").shape(game.shape)


def _groups(rows: list[Row], game: Game) -> list[list[Row]]:
    """Baselines that fit the memory beside each other; at least one group, perhaps empty."""
    arrays = sum(
        b.bytes for b in game.start.buffers if {*b.arrays} & {*game.start.inputs, *game.start.outputs}
    )
    together = max(1, int(GROUP_MEMORY * available_bytes() / (PROCESS_BYTES + COPIES * arrays)))
    return [rows[i : i + together] for i in range(0, len(rows), together)] or [[]]


def _run_group(
    game: Game,
    workload: Workload,
    measurer: TargetMeasurer,
    ours: Sequence[Entry],
    rows: list[Row],
    group: list[Row],
    baselines: Mapping[str, Baseline],
    start: Start,
    folder: Path | None,
    limits: _Limits,
    kernel: Question,
    loads: _Loads,
    numbers: range,
    on_round: Callable[[int], None],
    on_step: Callable[[str], None],
    stopped: Callable[[], bool],
    needed: Row | None,
    ready_within: float | None,
    disturbed: set[int],
) -> None:
    """The rounds of a group of baselines, by their numbers, with ours and the limits in each.

    ``disturbed`` takes the numbers of those that ran beside other measurements. Raises BenchFailed where the
    row that is needed fails.
    """
    arguments = [game.kernel or "", game.shape, str(measurer.input_sets), str(folder)]
    processes: list[tuple[Row, Dialogue]] = []
    probe: Process | None = None
    try:
        if folder is not None and game.kernel is not None:
            on_step("measuring the machine")
            probe = Process(command(kernel, str(folder)), pinned_environment())
            try:
                with _alone(numbers[0], disturbed):
                    limits.pattern = probe.read(ROUND_SECONDS)
            except Silent as silent:
                limits.message, probe = f"The machine's limits are not known: {silent}", None
        for row in group:
            if stopped():
                break
            on_step(f"preparing {row.name}")
            process = _start(row, arguments, ready_within, baselines, start)
            if process is not None:
                processes.append((row, process))
        on_step("")
        every = max(1, -(-len(numbers) // START_ROUNDS))
        for turn, number in enumerate(numbers):
            if stopped():
                break
            for entry, row in zip(ours, rows, strict=True):
                if row.status != "ok":
                    continue
                naive = entry.program is game.start
                if naive and len(ours) > 1 and turn % every:
                    continue
                effort = Effort.NORMAL if naive else Effort.ROUND
                judged = replace(workload, policy=row.policy)
                again = measurer.measure(judged, [entry.program], effort, fresh=True)[0]
                if again.status != "ok":
                    if row is needed:
                        raise BenchFailed(f"Our {entry.name} failed: {again.message}")
                    row.fail(_STATUS.get(again.status, "failed"), again.message)
                    continue
                if not again.conditions.exclusive:
                    disturbed.add(number)
                row.add(number, list(again.samples))
                loads.add(again.conditions.load)
            fastest = min((min(row.rounds[number]) for row in rows if _ran(row, number)), default=0.0)
            for row, process in processes:
                if row.status != "ok" or (turn % every and _slow(row, fastest)):
                    continue
                try:
                    with _alone(number, disturbed):
                        answer = loads.during(partial(process.ask, SAMPLES, ROUND_SECONDS))
                    row.add(number, [float(ns) for ns in answer["samples"]])
                except Silent as silent:
                    row.fail(silent.status, str(silent))
                except (KeyError, TypeError, ValueError):
                    row.fail("failed", "Its answer has no samples.")
            if probe is not None:
                try:
                    with _alone(number, disturbed):
                        answer = probe.ask(SAMPLES, ROUND_SECONDS)
                    limits.add(number, answer)
                    loads.add(answer.get("load"))
                except Silent as silent:
                    limits.message, probe = f"The machine's limits are not known: {silent}", None
            on_round(number + 1)
    finally:
        for _, process in processes:
            process.close()
        if probe is not None:
            probe.close()


def _ran(row: Row, number: int) -> bool:
    """Has a row samples of this round?"""
    return len(row.rounds) > number and bool(row.rounds[number])


def _slow(row: Row, fastest: float) -> bool:
    """Does a baseline take so much longer than ours that a few rounds tell all?"""
    return bool(fastest) and min((ns for each in row.rounds for ns in each), default=0.0) > SLOW * fastest


def _start(
    row: Row,
    arguments: list[str],
    ready_within: float | None = None,
    baselines: Mapping[str, Baseline] = BASELINES,
    start: Start = alone,
) -> Dialogue | None:
    """The baseline's process, ready; None, and the row says why, where it does not come to that."""
    baseline = baselines[row.entry]
    environment = {**pinned_environment(baseline.reuse), **baseline.environment}
    try:
        process = start(baseline.script, arguments, environment)
        with measuring():  # it times its variants, and some libraries tune
            ready = process.read(min(baseline.prepare, ready_within or baseline.prepare))
    except Silent as silent:
        absent = re.search(r"No module named '(\w+)", str(silent))
        if absent:
            row.fail("missing", f"{absent[1]} is not installed for {interpreter()}: {how_to_get(absent[1])}")
        else:
            row.fail(silent.status, str(silent))
        return None
    row.variants = dict(ready.get("variants") or {})
    if ready.get("status") != "ok":
        status = str(ready.get("status"))
        row.fail(status if status != "None" else "failed", str(ready.get("message", "It said nothing.")))
        process.close()
        return None
    row.verified, row.error = bool(ready.get("verified")), ready.get("error")
    if not row.verified:
        row.fail("wrong_result", "It did not prove its result.")
        process.close()
        return None
    row.details = baseline.details.format(version=ready.get("version", ""))
    if ready.get("variant") and not row.ours:
        row.details += f"; {ready['variant']}"
    if len(ready.get("openmp") or ()) > 1:
        row.details += f"; {len(ready['openmp'])} OpenMP runtimes ({', '.join(ready['openmp'])})"
    return process
