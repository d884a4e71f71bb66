"""Runs as the app sees them: started, followed, paused, stopped, resumed, found again."""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agents.jobs import journal as journals
from agents.jobs.child import JOURNAL
from agents.jobs.hosted import ENDED, RESUMABLE, STATES, Hosted
from agents.jobs.journal import Entry, Journal
from agents.jobs.refused import JobRefused, interrupted, no_run, not_resumable, not_started, still_open
from agents.jobs.spec import JobSpec
from agents.players import NoAgent, agent_named
from dojo_core.extras import NotInstalled

log = logging.getLogger("dojo.jobs")

AT_ONCE = 4  # runs of one app side by side: more only wait for each other's measurements
KEPT = 200  # finished runs that stay in the folder; older ones make room


@dataclass(frozen=True)
class JobView:
    """A run as it stands.

    ``state``: ``starting``, ``running``, ``pausing``, ``paused``, ``stopping``, ``done``, ``stopped``,
    ``failed``, ``interrupted`` (its app ended; it can be resumed) or ``elsewhere`` (another app
    of this user runs it).
    """

    spec: JobSpec
    state: str
    message: str
    entries: tuple[Entry, ...]
    best: Entry | None
    saved_as: tuple[str, int] | None
    expert: float | None = None  # seconds of the heuristic pass's program

    @property
    def works(self) -> bool:
        """Will there be more to see?"""
        return self.state in ("starting", "running", "pausing", "stopping", "elsewhere")

    @property
    def resumable(self) -> bool:
        return self.state in RESUMABLE

    @property
    def first(self) -> float | None:
        """Seconds of the first program that ran: what speed-ups refer to."""
        return next((e.seconds for e in self.entries if e.seconds is not None), None)


Keep = Callable[[JobView], tuple[str, int] | None]


class Jobs(Hosted[JobView]):
    """The runs in a folder. One for each app; thread-safe.

    ``keep`` is called, in a thread of its own, with each run that ended having found something, and answers
    the game and position it was kept as.
    """

    told_by = JOURNAL

    def __init__(self, folder: Path, keep: Keep | None = None) -> None:
        super().__init__(folder, self._over)
        self._keep = keep
        self._lock = threading.RLock()
        self._journals: dict[str, Journal] = {}

    # ------------------------------------------------------------------ to be looked at

    def view(self, job: str) -> JobView:
        """A run as it stands. Raises JobRefused where there is none."""
        state, message = self._stands(job)
        journal = self._journal(job)
        entries = tuple(journal.entries)
        best, saved = journal.best, journal.saved_as
        return JobView(journal.spec, state, message, entries, best, saved, journal.expert)

    def file(self, job: str) -> Path:
        """Where the journal lies: a recording of the run."""
        return self._journal(job).path

    def _journal(self, job: str) -> Journal:
        with self._lock:
            if job not in self._journals:
                if not (job.isalnum() and job.isascii() and len(job) <= 32):
                    raise no_run()
                try:
                    self._journals[job] = Journal(self.folder / job / JOURNAL)
                except (OSError, ValueError):
                    raise no_run() from None
            return self._journals[job]

    def _stands(self, job: str) -> tuple[str, str]:
        journal = self._journal(job)
        journal.refresh()
        if self._processes.alive(job):
            known = journal.state in STATES
            return (journal.state if known and journal.written else "starting"), ""
        if journal.state in ENDED:
            return journal.state, journal.message
        if journal.written:
            return "elsewhere", "Another app of yours runs this."
        return "interrupted", self._processes.blamed(job) or interrupted("there")

    # ------------------------------------------------------------------ to be told

    def start(self, spec: JobSpec) -> str:
        """Begin a run; its id. Raises JobRefused."""
        try:
            agent_named(spec.agent)
        except (NoAgent, NotInstalled) as missing:
            raise JobRefused(str(missing)) from None
        if spec.fault:
            raise JobRefused(spec.fault)
        self._room()
        folder = self.folder / spec.id
        try:
            folder.mkdir()
            journals.begin(folder / JOURNAL, spec)
            self._spawn(spec.id)
        except OSError as fault:
            raise not_started(fault) from fault
        self._make_room()
        return spec.id

    def resume(self, job: str) -> None:
        """Let a run that ended early go on. Raises JobRefused."""
        view = self.view(job)
        if not view.resumable:
            raise not_resumable()
        self._room()
        try:
            self._spawn(job)
        except OSError as fault:
            raise JobRefused(f"The run could not be resumed: {fault.strerror or fault}.") from fault

    def pause(self, job: str) -> None:
        self.say(job, "pause")

    def step(self, job: str) -> None:
        """One batch of proposals more, then a pause."""
        self.say(job, "step")

    def go_on(self, job: str) -> None:
        self.say(job, "go on")

    def stop(self, job: str) -> None:
        """End it with what it has; that is kept."""
        self.say(job, "stop")

    def delete(self, job: str) -> None:
        """Forget a run. Raises JobRefused while it goes on."""
        view = self.view(job)
        if view.works or view.state == "paused":
            raise still_open()
        with self._lock:
            self._journals.pop(job, None)
        shutil.rmtree(self.folder / job, ignore_errors=True)

    def note_saved(self, job: str, game: str, position: int) -> None:
        """Note that what the run found is in a game. Raises JobRefused while it goes on."""
        journal = self._journal(job)
        try:
            with journals.Writer(journal.path) as writer:
                writer.write({"kept": game, "position": position})
        except journals.JournalBusy:
            raise JobRefused("The run still goes on: stop it, then keep what it found.") from None
        journal.refresh()

    # ------------------------------------------------------------------ children

    def _room(self) -> None:
        if self._processes.count() >= AT_ONCE:
            raise JobRefused(
                f"{AT_ONCE} runs go on already, and one machine measures one program at a time: "
                "stop one of them first."
            )

    def _make_room(self) -> None:
        for old in [view for view in self.all() if view.state in ENDED][KEPT:]:
            with contextlib.suppress(JobRefused):
                self.delete(old.spec.id)

    def _spawn(self, job: str) -> None:
        folder = self.folder / job
        self._processes.spawn(job, "agents.jobs.child", [str(folder)], folder / "child.log")

    def _over(self, job: str) -> None:
        """A process has ended: keep what it found."""
        try:
            view = self.view(job)
            if self._keep is not None and view.state in ("done", "stopped") and view.best is not None:
                where = self._keep(view)
                if where is not None:
                    self.note_saved(job, *where)
        except JobRefused:
            pass  # deleted, or resumed, meanwhile
        except OSError as fault:
            log.warning("what run %s found is not kept: %s", job, fault)
