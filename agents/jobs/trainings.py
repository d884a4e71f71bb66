"""PerfLLM's training runs as the app sees them. What needs torch happens in processes (trainer.py)."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agents.jobs.hosted import ENDED, RESUMABLE, STATES, Hosted
from agents.jobs.processes import locked
from agents.jobs.refused import JobRefused, interrupted, no_run, not_resumable, not_started, still_open
from dojo_core.bounded_json import read_object
from dojo_core.extras import absent, sentence
from dojo_core.files import write_text

AT_ONCE = 2  # learning keeps a core busy by itself
MOST_BUDGET = 100_000
PLAN, STATE, EVENTS, TRIED = "plan.json", "state.jsonl", "events.jsonl", "tried.jsonl"
Event = Mapping[str, Any]


@dataclass(frozen=True)
class TrainingSpec:
    """A training run. ``settings`` are those of ``agents.perfllm.settings.Settings`` that differ from the
    defaults; ``budget`` counts programs; with ``counting`` operations are counted in place of time."""

    id: str
    kernel: str
    shape: str
    policy: str
    budget: int
    seed: int
    counting: bool = False
    encoder: str = "ir"
    settings: Mapping[str, Any] = field(default_factory=dict)
    created: float = 0.0

    @staticmethod
    def of(kernel: str, shape: str, **others: Any) -> TrainingSpec:
        return TrainingSpec(secrets.token_hex(5), kernel, shape, created=time.time(), **others)

    @property
    def title(self) -> str:
        return f"{self.kernel} {self.shape}"

    @staticmethod
    def read(path: Path) -> TrainingSpec:
        """Raises ValueError or OSError."""
        try:
            return TrainingSpec(**read_object(path.read_bytes()))
        except TypeError as fault:
            raise ValueError(str(fault)) from None


class Followed:
    """A file of JSON lines that another process writes; one that was cut back is read anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Event] = []
        self._at = 0
        self._lock = threading.Lock()

    def refresh(self) -> list[Event]:
        """All lines so far; half a line is none yet."""
        with self._lock:
            with contextlib.suppress(OSError):
                if self.path.stat().st_size < self._at:
                    self._at, self.lines = 0, []
                with self.path.open("rb") as file:
                    file.seek(self._at)
                    for line in file:
                        if not line.endswith(b"\n"):
                            break
                        self._at += len(line)
                        with contextlib.suppress(ValueError):
                            self.lines.append(read_object(line, nonfinite=True))
            return list(self.lines)


@dataclass(frozen=True)
class TrainingView:
    """A training run as it stands, in the states of ``JobView``. ``tried``: what a checkpoint played."""

    spec: TrainingSpec
    state: str
    message: str
    events: tuple[Event, ...]
    tried: tuple[Event, ...]
    trying: bool

    @property
    def works(self) -> bool:
        return self.trying or (self.learns and self.state != "paused")

    @property
    def learns(self) -> bool:
        """Is a process at it, if only waiting? Its checkpoint is then not the last."""
        return self.state in ("starting", "running", "pausing", "stopping", "paused", "elsewhere")

    @property
    def resumable(self) -> bool:
        return self.state in RESUMABLE

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.get("event") == kind]


class Trainings(Hosted[TrainingView]):
    """The training runs in a folder. Thread-safe."""

    told_by = PLAN

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._files: dict[Path, Followed] = {}

    # ------------------------------------------------------------------ to be looked at

    def view(self, run: str) -> TrainingView:
        """Raises JobRefused where there is no such run."""
        folder = self._place(run)
        try:
            spec = TrainingSpec.read(folder / PLAN)
        except (OSError, ValueError):
            raise no_run("training run") from None
        state, message = self._stands(run)
        events, tried = self._lines(folder / EVENTS), self._lines(folder / TRIED)
        return TrainingView(spec, state, message, events, tried, self._processes.alive(_trying(run)))

    def _place(self, run: str) -> Path:
        if not re.fullmatch("[0-9a-f]{4,32}", run):
            raise no_run("training run")
        return self.folder / run

    def _lines(self, path: Path) -> tuple[Event, ...]:
        return tuple(self._files.setdefault(path, Followed(path)).refresh())

    def _stands(self, run: str) -> tuple[str, str]:
        folder = self._place(run)
        states = self._lines(folder / STATE)
        last = states[-1] if states else {}
        state, message = str(last.get("state", "")), str(last.get("message", ""))
        if self._processes.alive(run):
            return (state if state in STATES else "starting"), ""
        if state in ENDED:
            return state, message
        if locked(folder / "measurements.jsonl"):
            return "elsewhere", "Another process of yours is at this run."
        return "interrupted", self._processes.blamed(run) or interrupted("its checkpoint")

    # ------------------------------------------------------------------ to be told

    def start(self, spec: TrainingSpec) -> str:
        """Begin a run; its id. Raises JobRefused."""
        if names := absent("learn"):
            raise JobRefused(sentence("learn", "Training", names))
        if not 2 <= spec.budget <= MOST_BUDGET:
            raise JobRefused(f"Give a budget of 2 to {MOST_BUDGET} programs.")
        self._room()
        folder = self._place(spec.id)
        try:
            folder.mkdir()
            write_text(folder / PLAN, json.dumps(asdict(spec), indent=1) + "\n")
            self._spawn(spec.id, folder)
        except OSError as fault:
            raise not_started(fault) from fault
        return spec.id

    def resume(self, run: str) -> None:
        """Go on from the last checkpoint. Raises JobRefused."""
        if not self.view(run).resumable:
            raise not_resumable()
        self._room()
        folder = self._place(run)
        with contextlib.suppress(OSError), (folder / STATE).open("a") as file:
            file.write('{"state": "starting"}\n')
        self._spawn(run, folder)

    def play(self, run: str, kernel: str, shape: str) -> None:
        """Let the run's last checkpoint play a kernel greedily. Raises JobRefused."""
        view = self.view(run)
        folder = self._place(run)
        if view.learns:
            raise JobRefused("Stop the run before its checkpoint plays.")
        if view.trying:
            raise JobRefused("Its checkpoint plays already.")
        if not (folder / "checkpoint").exists():
            raise JobRefused("This run has no checkpoint yet.")
        words = [str(folder), "--try", kernel, shape]
        self._processes.spawn(_trying(run), "agents.jobs.trainer", words, folder / "child.log")

    def delete(self, run: str) -> None:
        """Forget a run. Raises JobRefused while it goes on."""
        view = self.view(run)
        if view.learns or view.trying:
            raise still_open()
        folder = self._place(run)
        for path in [path for path in self._files if path.parent == folder]:
            self._files.pop(path, None)
        shutil.rmtree(folder, ignore_errors=True)

    def _room(self) -> None:
        if self._processes.count() >= AT_ONCE:
            raise JobRefused(f"{AT_ONCE} training runs go on already: stop one of them first.")

    def _spawn(self, run: str, folder: Path) -> None:
        self._processes.spawn(run, "agents.jobs.trainer", [str(folder)], folder / "child.log")


def _trying(run: str) -> str:
    return f"{run} tried"
