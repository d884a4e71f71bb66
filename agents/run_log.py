"""The log of a run: what an agent measured, in order, one JSON object a line, so that a run can go on.

A run is decided by its seed and its times. So a stopped run begins again from the start, takes the times of
the log without measuring, and then goes on with the clock; what a player was answered from outside is there
too (outside.py). Each line ends with a checksum: what a killed process left half written is cut off, and so
is what comes behind a line that is damaged.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents.outside import Answer, Ask, digest, read_answer
from agents.timing import Timing
from dojo_core.bounded_json import NotJson, read_object
from dojo_core.files import naming
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.measure.places import data_directory
from dojo_core.program.tree import Program

VERSION = 1


@dataclass(frozen=True)
class RunKey:
    """All that decides a run beside its times."""

    kernel: str
    shape: str
    policy: str
    target: str
    start: str  # hash of the start program
    before: tuple[str, ...]  # moves that led to the position
    agent: str
    seed: int
    evaluations: int
    seconds: float | None
    machine: str
    lanes: int = 1

    @property
    def name(self) -> str:
        """A file name that differs where any of it does."""
        key = asdict(self)
        if self.lanes == 1:  # as before there were lanes
            del key["lanes"]
        identity = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:12]
        agent = re.sub(r"[^\w.+-]", "_", self.agent)[:80]  # a name may have an address in it
        return f"{self.kernel}-{agent}-{self.seed}-{identity}.jsonl"


def run_file(key: RunKey) -> Path:
    """Where the log of a run lies."""
    folder = data_directory() / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / key.name


_SUM = b', "sum": "'


def _line(entry: Mapping[str, Any]) -> bytes:
    """An entry as a line, with its checksum at the end."""
    text = json.dumps(entry).encode()[:-1]
    return text + _SUM + f"{zlib.crc32(text):08x}".encode() + b'"}\n'


def _entry(line: bytes) -> dict[str, Any] | None:
    """The entry of a line that is whole; older logs have no checksums."""
    text, mark, end = line.rpartition(_SUM)
    if mark and end != f"{zlib.crc32(text):08x}".encode() + b'"}\n':
        return None
    try:
        return read_object(line, nonfinite=True) if line.endswith(b"\n") else None
    except NotJson:
        return None


def _measured(entry: Mapping[str, Any]) -> tuple[Effort, Measurement, float]:
    """What an entry says was measured: effort, outcome, seconds of the run until then."""
    load, exclusive = entry.get("load"), entry.get("exclusive", True)
    measurement = Measurement(
        str(entry["hash"]),
        "",
        str(entry["status"]),
        str(entry["message"]),
        tuple(map(float, entry["samples"])),
        entry["seconds"],
        entry["median"],
        bool(entry["verified"]),
        known=True,
        conditions=Conditions(None if load is None else float(load), bool(exclusive)),
    )
    return Effort[entry["effort"].upper()], measurement, float(entry["elapsed"])


class RunBusy(RuntimeError):
    """Another process has the log open."""


class RunLog:
    """A log that is open for writing; ``known`` has what it held, ``spent`` the seconds of the earlier part.

    Raises RunBusy while another process has it.
    """

    def __init__(self, path: Path, key: RunKey, again: bool = False) -> None:
        self.path = path
        self._lock = threading.Lock()
        self.known: dict[tuple[Effort, str], Measurement] = {}
        self.answers: list[Answer] = []  # all that were given, in this part and in earlier ones
        self._earlier: list[tuple[str, Answer]] = []  # of an earlier part, by question; not yet given again
        self.spent = 0.0
        self.result: dict[str, Any] | None = None  # of a run that is done
        self._file = path.open("r+b" if path.exists() else "w+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise RunBusy(
                f"Another process is at this run: wait for it, or give another seed. ({path})"
            ) from None
        size = 0 if again else self._read()
        self._file.truncate(size)
        self._file.seek(size)
        if not size:
            self._write({"dojo run": VERSION, **asdict(key)})

    def _read(self) -> int:
        """Take in whole lines; how many bytes they are."""
        size = 0
        for number, line in enumerate(self._file):
            entry = _entry(line)
            if not entry or (number == 0 and entry.get("dojo run") != VERSION):
                break
            if "hash" in entry:
                try:
                    effort, measurement, elapsed = _measured(entry)
                except (KeyError, TypeError, ValueError, AttributeError):  # not ours
                    break
                self.known[effort, measurement.program_hash] = measurement
                self.spent = elapsed
            elif "answer" in entry:
                try:
                    answer, elapsed = read_answer(entry["answer"]), float(entry["elapsed"])
                    self._earlier.append((str(entry["question"]), answer))
                except (KeyError, TypeError, ValueError):  # not ours
                    break
                self.answers.append(answer)
                self.spent = elapsed
            elif "done" in entry:
                self.result = entry
            size += len(line)
        return size

    def add(self, measurement: Measurement, effort: Effort, elapsed: float, line: str) -> None:
        """Keep a measurement. When this returns, it survives the process."""
        self.add_all([(measurement, line)], effort, elapsed)

    def add_all(self, measured: Iterable[tuple[Measurement, str]], effort: Effort, elapsed: float) -> None:
        """Keep the measurements of a batch, each with its line: the disk is waited for once."""
        self._write(
            *(
                {
                    "hash": measurement.program_hash,
                    "status": measurement.status,
                    "message": measurement.message,
                    "samples": measurement.samples,
                    "seconds": measurement.seconds,
                    "median": measurement.median,
                    "verified": measurement.verified,
                    "load": measurement.conditions.load,
                    "exclusive": measurement.conditions.exclusive,
                    "effort": effort.label,
                    "elapsed": round(elapsed, 3),
                    "line": line.split("\n") if line else [],
                }
                for measurement, line in measured
            )
        )

    def answered(self, question: str, ask: Ask, elapsed: Callable[[], float]) -> Answer:
        """What an earlier part was answered to this question at this place; else what is answered now, kept.

        Where another question stands in its place, as after a change of the player, none of the rest is
        taken.
        """
        named = digest(question)
        if self._earlier and self._earlier[0][0] == named:
            return self._earlier.pop(0)[1]
        self._earlier.clear()
        answer = ask()
        self.answers.append(answer)
        self._write({"answer": asdict(answer), "question": named, "elapsed": round(elapsed(), 3)})
        return answer

    def done(self, **result: Any) -> None:
        """Mark the run as done, with what came out."""
        self.result = {"done": True, **result}
        self._write(self.result)

    def _write(self, *entries: Mapping[str, Any]) -> None:
        with self._lock, naming(self.path):
            self._file.write(b"".join(map(_line, entries)))
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LoggedTiming:
    """Times from a log where it has them, else from another source, and then into the log."""

    def __init__(self, log: RunLog, otherwise: Timing, elapsed: Callable[[], float]) -> None:
        self._log, self._otherwise, self._elapsed = log, otherwise, elapsed

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        known = {
            p.hash: self._log.known[effort, p.hash] for p in programs if (effort, p.hash) in self._log.known
        }
        rest = [p for p in programs if p.hash not in known]
        if rest:
            measured = self._otherwise.measure(workload, rest, lines, effort, cancelled)
            known.update((each.program_hash, each) for each in measured)
            new = [(m, lines.get(m.program_hash, "")) for m in measured if m.status != "cancelled"]
            if new:
                self._log.add_all(new, effort, self._elapsed())
        return [known[p.hash] for p in programs]


class SharedStart:
    """Times from another source, but for that of one program, which runs side by side begin from: it is
    measured by whichever of them comes first, and kept at ``path`` for all. Where its folder is gone, each
    measures its own.
    """

    def __init__(self, path: Path, key: RunKey, program: str, otherwise: Timing) -> None:
        self._path, self._key, self._program, self._otherwise = path, key, program, otherwise

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        shared = effort is not Effort.FINAL and self._path.parent.is_dir()
        start = [p for p in programs if shared and p.hash == self._program]
        rest = [p for p in programs if p not in start]
        known = {p.hash: self._start(workload, p, lines, cancelled) for p in start[:1]}
        if rest:
            measured = self._otherwise.measure(workload, rest, lines, effort, cancelled)
            known.update(zip([p.hash for p in rest], measured, strict=True))
        return [known[p.hash] for p in programs]

    def _start(
        self,
        workload: Workload,
        program: Program,
        lines: Mapping[str, str],
        cancelled: Callable[[], bool],
    ) -> Measurement:
        while not cancelled():
            try:
                with RunLog(self._path, self._key) as log:
                    timing = LoggedTiming(log, self._otherwise, lambda: 0.0)
                    return timing.measure(workload, [program], lines, Effort.NORMAL, cancelled)[0]
            except RunBusy:  # the other one is measuring it
                time.sleep(0.05)
        return Measurement(program.hash, "", "cancelled")
