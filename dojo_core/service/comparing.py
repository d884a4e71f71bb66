"""Comparisons: programs and baselines measured in turns, in a process of its own; each kept as a file.

One runs at a time. A thread follows its events; pages ask for its state. What is kept has the form that
``dojo bench --json`` writes, so that ``dojo bench --from`` shows it too.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dojo_core.bench.summary import summary
from dojo_core.bounded_json import read_object
from dojo_core.drawn import Drawn
from dojo_core.files import write_text
from dojo_core.game import Game
from dojo_core.launch import module_command
from dojo_core.measure.machine import this_machine
from dojo_core.system import end_group
from dojo_core.version import version

log = logging.getLogger(__name__)

LEAST, MOST = 2, 6  # entries
FORMAT = 2  # of the document, as in dojo bench --json
KEPT = 50  # comparisons; older ones make room


@dataclass(frozen=True)
class Contender:
    """Something to compare. ``kind``: start, heuristic, line, game, program or baseline.

    ``text`` is the program's or the game's, ``line`` a recorded line's name, ``baseline`` one of
    bench.BASELINES; ``name`` tells it from the others of a comparison.
    """

    kind: str
    name: str
    text: str = ""
    line: str = ""
    baseline: str = ""
    details: str = ""
    policy: str = "reassoc"
    moves: int | None = None


def board_contender(game: Game, name: str = "") -> Contender | None:
    """The position where a game stands, by its move if it is given no ``name``; None at its start."""
    if game.current.parent is None:
        return None
    moves = len(game.line()) - 1
    text = game.current.program.text
    return Contender("program", name or f"the board, move {moves}", text, policy=game.policy, moves=moves)


@dataclass(frozen=True)
class Spec:
    """What to compare: a kernel (None: a text of one's own), its shape, its start program, the contenders."""

    kernel: str | None
    shape: str
    start: str
    policy: str
    contenders: tuple[Contender, ...]
    rounds: int = 10

    @property
    def title(self) -> str:
        return f"{self.kernel or 'own text'} {self.shape}".strip()


@dataclass
class Comparison(Drawn):
    """One comparison: ``state`` is waiting, running, done, stopped or failed."""

    id: str
    spec: Spec
    state: str = "waiting"
    step: str = ""
    rounds: int = 0
    of: int = 0  # rounds in all: those of the spec, for each group of baselines that fit the memory
    message: str = ""
    document: dict[str, Any] | None = None
    version: int = 0
    stopping: float = 0.0  # when it was asked to stop
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def open(self) -> bool:
        return self.state in ("waiting", "running")


class Comparisons:
    """All of a process. ``folder`` is where they are kept. Thread-safe."""

    def __init__(self, folder: Path, command: Sequence[str] | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._command = list(command or module_command("dojo_core.bench.job"))
        self._known: dict[str, Comparison] = {}
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # who holds it is being measured
        self._latest: dict[str, tuple[float, dict[str, Any] | None]] = {}

    def start(self, spec: Spec) -> Comparison:
        """Begin a comparison; it waits while another one runs. Raises ValueError for too few or too many."""
        if not LEAST <= len(spec.contenders) <= MOST:
            raise ValueError(f"Choose {LEAST} to {MOST} entries: {len(spec.contenders)} are chosen.")
        if all(each.kind == "baseline" for each in spec.contenders):
            raise ValueError("Choose at least one program of the Dojo to compare the baselines with.")
        made = Comparison(f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}", spec)
        with self._lock:
            self._known[made.id] = made
        threading.Thread(target=self._run, args=(made,), name="comparison", daemon=True).start()
        return made

    def get(self, identifier: str) -> Comparison | None:
        """A comparison of this process, or one that is kept."""
        with self._lock:
            comparison = self._known.get(identifier)
        if comparison is not None or not _plain(identifier):
            return comparison
        document = self._read(self.folder / f"{identifier}.json")
        if document is None:
            return None
        try:
            fields = dict(document["spec"])
            contenders = tuple(Contender(**each) for each in fields.pop("contenders"))
            spec = Spec(**fields, contenders=contenders)
        except (KeyError, TypeError):
            return None
        comparison = Comparison(identifier, spec, "done", rounds=spec.rounds, document=document)
        with self._lock:
            return self._known.setdefault(identifier, comparison)

    def stop(self, identifier: str) -> None:
        """End after the round under way, with what was measured; asked twice, at once."""
        with self._lock:
            comparison = self._known.get(identifier)
            if comparison is None or not comparison.open:
                return
            again, comparison.stopping = bool(comparison.stopping), time.time()
            if comparison.process is not None and comparison.process.poll() is None:
                sent = signal.SIGKILL if again else signal.SIGTERM
                end_group(comparison.process.pid, sent)

    def close(self) -> None:
        """End what runs."""
        with self._lock:
            running = [each for each in self._known.values() if each.open]
        for each in running:
            self.stop(each.id)
            self.stop(each.id)

    def files(self) -> list[Path]:
        """The files that are kept, newest first."""
        return sorted(self.folder.glob("*.json"), reverse=True)

    def seconds(self, start_hash: str, fingerprint: str, baseline: str) -> float | None:
        """A baseline's best time for a start program in the newest comparison that has it."""
        for path in self.files():
            document = self._read(path)
            if document is None or document.get("start_hash") != start_hash:
                continue
            if document.get("fingerprint") != fingerprint:
                continue
            for entry in document["reports"][0]["entries"]:
                if entry["entry"] == baseline and entry["status"] == "ok" and "min" in entry:
                    return float(entry["min"])
        return None

    def _read(self, path: Path) -> dict[str, Any] | None:
        """A kept document, read again only when its file changed."""
        try:
            changed = path.stat().st_mtime
            known = self._latest.get(path.name)
            if known is not None and known[0] == changed:
                return known[1]
            content = read_object(path.read_bytes(), nonfinite=True)
            document = content if content.get("reports") else None
        except (OSError, ValueError):
            return None
        self._latest[path.name] = (changed, document)
        return document

    # ------------------------------------------------------------------ the thread

    def _run(self, made: Comparison) -> None:
        with self._turn:
            if made.stopping:
                self._end(made, "stopped", "It was stopped before it began.")
                return
            try:
                self._follow(made)
            except Exception:
                log.exception("comparison %s", made.id)
                self._end(made, "failed", "The comparison failed: a fault of ours, noted in the log.")

    def _follow(self, made: Comparison) -> None:
        errors = (self.folder / "last-errors.log").open("w")
        with errors:
            process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                start_new_session=True,
            )  # fmt: skip
        with self._lock:
            made.process, made.state = process, "running"
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(_job(made.spec)) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            self._hear(made, json.loads(line))
        process.wait()
        process.stdin.close()
        process.stdout.close()
        if made.open:
            words = "It was stopped before it had a round." if made.stopping else "Its process ended early."
            self._end(made, "stopped" if made.stopping else "failed", words)

    def _hear(self, made: Comparison, event: Mapping[str, Any]) -> None:
        if "step" in event:
            made.step = str(event["step"])
        elif "round" in event:
            made.rounds, made.of = int(event["round"]), int(event["rounds"])
        elif "failed" in event:
            self._end(made, "failed", str(event["failed"]))
            return
        elif "report" in event:
            made.document = _document(made, event)
            self._keep(made)
            short = made.stopping and made.rounds < (made.of or made.spec.rounds)
            self._end(made, "stopped" if short else "done", "")
            return
        made.version += 1

    def _end(self, made: Comparison, state: str, message: str) -> None:
        with self._lock:
            made.state, made.message, made.process = state, message, None
            made.version += 1

    def _keep(self, made: Comparison) -> None:
        path = self.folder / f"{made.id}.json"
        write_text(path.with_suffix(".new"), json.dumps(made.document, indent=1) + "\n")
        os.replace(path.with_suffix(".new"), path)
        for old in self.files()[KEPT:]:
            old.unlink(missing_ok=True)


def _job(spec: Spec) -> dict[str, Any]:
    """As dojo_core/bench/job.py reads it."""
    ours = [asdict(each) for each in spec.contenders if each.kind != "baseline"]
    return {
        "kernel": spec.kernel,
        "shape": spec.shape,
        "start": spec.start,
        "policy": spec.policy,
        "rounds": spec.rounds,
        "entries": ours,
        "against": [each.baseline for each in spec.contenders if each.kind == "baseline"],
    }


def _document(made: Comparison, event: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {"dojo": version(), "python": platform.python_version()},
        "reports": [event["report"]],
        "skipped": [],
        "summary": summary([event["report"]]),
        "fingerprint": this_machine().fingerprint,
        "start_hash": event["start_hash"],
        "programs": event["programs"],
        "spec": asdict(made.spec),
    }


def _plain(identifier: str) -> bool:
    return 0 < len(identifier) <= 40 and all(c.isascii() and (c.isalnum() or c == "-") for c in identifier)
