"""A run as a file of JSON lines: what it is, each program it measured, what became of it; what the expert's
program takes, and of a recording what a policy said of the programs.

Only one process writes, and holds the file locked while it does; others follow it, or replay it later. Half a
line at the end, left by a process that was killed, is no line.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from agents.agent import Event, Thought
from agents.jobs.processes import locked
from agents.jobs.spec import JobSpec
from dojo_core.bounded_json import read_object
from dojo_core.files import naming
from dojo_core.service.learned import Learned

VERSION = 1
LONGEST_LINE = 4 << 20  # bytes; what is longer was not written by us


@dataclass(frozen=True)
class Entry:
    """One program of a run, as a page shows it.

    ``moves`` lead to it from the position where the run began; ``elapsed`` are seconds without pauses;
    ``best`` and ``best_hash`` tell the fastest verified program so far.
    """

    number: int
    evaluation: int
    elapsed: float
    moves: tuple[str, ...]
    hash: str
    text: str
    status: str
    message: str
    seconds: float | None
    best: float | None
    best_hash: str
    final: bool
    thoughts: tuple[Thought, ...] = ()


def event_line(event: Event, before: int, number: int) -> dict[str, Any]:
    """An event as a line of a journal. ``before``: moves of its line that the game had already."""
    measurement = event.measurement
    return {
        "event": number,
        "evaluation": event.evaluation,
        "elapsed": round(event.seconds, 3),
        "moves": [str(move) for move in event.line[before:]],
        "hash": event.program.hash,
        "text": event.program.text,
        "status": measurement.status,
        "message": measurement.message[:600],
        "seconds": measurement.seconds,
        "best": None if event.best is None else event.best.seconds,
        "best_hash": "" if event.best is None else event.best.program.hash,
        "final": event.final,
        "thoughts": [_thought_line(thought) for thought in event.thoughts],
    }


def _thought_line(thought: Thought) -> list[Any]:
    """Its values in order; those of a player that talks only where it did."""
    values = list(astuple(thought))
    return values if thought.words or thought.tokens is not None else values[:6]


def entry_line(entry: Entry) -> dict[str, Any]:
    """An entry as a line of a journal: what ``read_entry`` reads."""
    line = asdict(entry)
    line["event"] = line.pop("number")
    line["thoughts"] = [_thought_line(thought) for thought in entry.thoughts]
    return line


def read_entry(line: Mapping[str, Any]) -> Entry:
    """Raises KeyError, TypeError or ValueError where it is none."""
    number = (int, float)
    if not (line["seconds"] is None or isinstance(line["seconds"], number)):
        raise ValueError("seconds")
    if not (line["best"] is None or isinstance(line["best"], number)):
        raise ValueError("best")
    return Entry(
        number=int(line["event"]),
        evaluation=int(line["evaluation"]),
        elapsed=float(line["elapsed"]),
        moves=tuple(map(str, line["moves"])),
        hash=str(line["hash"]),
        text=str(line["text"]),
        status=str(line["status"]),
        message=str(line["message"]),
        seconds=line["seconds"],
        best=line["best"],
        best_hash=str(line["best_hash"]),
        final=bool(line["final"]),
        thoughts=tuple(Thought(*map(_plain, each)) for each in line["thoughts"]),
    )


def _plain(value: Any) -> Any:
    if value is not None and not isinstance(value, (str, int, float)):
        raise ValueError("a thought of something else")
    return value


def learned_line(program: str, learned: Learned) -> dict[str, Any]:
    """What a policy said of a program, by its hash, as a line of a journal."""
    return {"learned": program, **learned.as_json(changes=True)}


class Journal:
    """Follows a journal: ``refresh`` takes in what was written since. Thread-safe.

    Raises ValueError where the file is no journal.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self.state = ""  # what the run said of itself last
        self.message = ""
        self.saved_as: tuple[str, int] | None = None  # the game and position that the best was kept as
        self.expert: float | None = None  # seconds of the heuristic pass's program, on the run's clock
        self.learned: dict[str, Learned] = {}  # what a policy said then, by the program's hash
        self._at = 0
        self._lock = threading.Lock()
        spec: JobSpec | None = None
        with path.open("rb") as file:
            line = file.readline(LONGEST_LINE)
            try:
                head = read_object(line) if line.endswith(b"\n") else {}
                if head.get("dojo job") == VERSION:
                    spec = JobSpec.from_json(head)
            except ValueError:
                spec = None
        if spec is None:
            raise ValueError(f"{path.name} is no journal of a run.")
        self.spec = spec
        self._at = len(line)
        self.refresh()

    @property
    def best(self) -> Entry | None:
        """The entry of the fastest verified program."""
        with self._lock:
            if not self.entries or self.entries[-1].best is None:
                return None
            wanted = self.entries[-1].best_hash
            return next((e for e in reversed(self.entries) if e.hash == wanted), None)

    def refresh(self) -> int:
        """Read on; how many entries there are now."""
        with self._lock:
            try:
                with self.path.open("rb") as file:
                    file.seek(self._at)
                    for line in file:
                        if not line.endswith(b"\n"):
                            break
                        self._at += len(line)
                        self._take(line)
            except FileNotFoundError:
                pass  # deleted meanwhile
            return len(self.entries)

    def _take(self, line: bytes) -> None:
        """A line that says nothing we know is passed over."""
        try:
            data = read_object(line, nonfinite=True)
            if "event" in data:
                self.entries.append(read_entry(data))
            elif "state" in data:
                self.state, self.message = str(data["state"]), str(data.get("message", ""))
            elif "kept" in data:
                self.saved_as = str(data["kept"]), int(data["position"])
            elif "expert" in data:
                self.expert = float(data["expert"])
            elif "learned" in data:
                self.learned[str(data["learned"])] = Learned.of_json(data)
        except (ValueError, KeyError, TypeError):
            pass

    @property
    def written(self) -> bool:
        """Is a process at this run?"""
        return locked(self.path)


class JournalBusy(RuntimeError):
    """Another process writes this journal."""


class Writer:
    """Appends to a journal and holds it locked. Raises JournalBusy while another process does."""

    def __init__(self, path: Path, spec: JobSpec | None = None) -> None:
        """``spec`` begins a new journal; without it, an old one goes on after its last whole line."""
        self.path = path
        self._lock = threading.Lock()
        self._file: BinaryIO = path.open("w+b" if spec is not None else "r+b")
        try:
            _held(self._file)
        except BlockingIOError:
            self._file.close()
            raise JournalBusy(f"Another process writes {path}.") from None
        if spec is not None:
            self.write({"dojo job": VERSION, **spec.to_json()})
            return
        whole = 0
        for line in self._file:
            if line.endswith(b"\n"):
                whole += len(line)
        self._file.truncate(whole)
        self._file.seek(whole)

    def write(self, line: Mapping[str, Any]) -> None:
        """Add a line at once. Its order is as told; measurements are safe in the run's log already."""
        with self._lock, naming(self.path):
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()

    def state(self, state: str, message: str = "") -> None:
        self.write({"state": state, "message": message, "time": round(time.time(), 1)})

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _held(file: BinaryIO, seconds: float = 1.0) -> None:
    """Lock the file; one who only asks whether it is locked holds it for a moment."""
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def begin(path: Path, spec: JobSpec) -> None:
    """Make the file with its first line; nothing half written is ever under that name."""
    temporary = path.with_suffix(".new")
    with Writer(temporary, spec):
        pass
    os.replace(temporary, path)


def save(path: Path, spec: JobSpec, lines: Sequence[Mapping[str, Any]]) -> None:
    """A whole journal at once."""
    with Writer(path, spec) as writer:
        for line in lines:
            writer.write(line)
