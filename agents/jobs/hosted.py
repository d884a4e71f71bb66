"""Runs in a folder, each a process of this app: what all kinds of them have in common."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from agents.jobs.processes import Gone, Processes
from agents.jobs.refused import JobRefused, not_going_on


class _Created(Protocol):
    @property
    def created(self) -> float: ...


class _View(Protocol):
    @property
    def spec(self) -> _Created: ...


View = TypeVar("View", bound=_View)
STATES = ("running", "pausing", "paused", "stopping")  # that a run tells of itself while its process lives
ENDED = ("done", "stopped", "failed")
RESUMABLE = ("interrupted", "stopped", "failed")


class Hosted(ABC, Generic[View]):
    """The runs in a folder, one folder each, known by the file ``told_by`` in it. Thread-safe.

    ``on_end`` is called with the name of each process that has ended, in a thread of its own.
    """

    told_by: str

    def __init__(self, folder: Path, on_end: Callable[[str], None] | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._processes = Processes(on_end)

    @abstractmethod
    def view(self, run: str) -> View:
        """A run as it stands. Raises JobRefused where there is none."""

    @abstractmethod
    def _stands(self, run: str) -> tuple[str, str]:
        """The state of a run and what is said of it. Raises JobRefused where there is none."""

    def state(self, run: str) -> str:
        """That of its view, or ``gone``: for one who only asks whether it has changed."""
        try:
            return self._stands(run)[0]
        except JobRefused:
            return "gone"

    def all(self) -> list[View]:
        """Every run, newest first."""
        views = []
        for path in self.folder.glob(f"*/{self.told_by}"):
            with contextlib.suppress(JobRefused):
                views.append(self.view(path.parent.name))
        return sorted(views, key=lambda view: -view.spec.created)

    def say(self, run: str, words: str) -> None:
        """``pause``, ``go on``, ``stop`` or what else its process understands. Raises JobRefused."""
        try:
            self._processes.say(run, words)
        except Gone:
            raise not_going_on() from None

    def close(self) -> None:
        """End all that was started here; it can be resumed."""
        self._processes.close()
