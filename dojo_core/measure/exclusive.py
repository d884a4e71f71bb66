"""One measurement at a time on this machine, and none beside a compiler.

A lock shared by all users' processes on a machine: compilers hold it shared, whoever times holds it
exclusively. The kernel (flock) releases it when its holder dies, however it dies. There is one for each
*clock*: the CPU's, and each GPU's; what waits for one does not wait for another. None who holds it may ask
for it.

**Turns.** Who waits leaves a note (``holders.py``) with a ticket, and lets those with older tickets go first:
else compilers that overlap would keep out for good who wants to time. A waiter renews its note several times
a second; a note that is not renewed, since its process is stopped or hangs, counts for nothing.

**Generations.** The lock is the file ``CLOCK.lock.N`` with the largest N. A stopped process keeps what it
holds; so a waiter that sees that every holder is *at rest* makes the file N + 1 and goes on with that:

- Making a file that exists already is no fault, so that waiters who decide the same at once exclude each
  other by the same new file.
- Whoever has locked a generation looks again whether that is the largest, and otherwise begins anew.
- Whoever has locked N + 1 looks whether the older ones are free, and removes those. One that is held by who
  is at rest is left alone. One that is held by who runs (it was continued, or it locked the file just before
  the new one came) is waited for as any other holder.
- At rest is a process that is stopped (state T or t) and has used no processor time for a second, neither it
  nor what it started: Ctrl-Z does not stop a worker in a session of its own.
- Who was passed over finds at its end that its generation is not the largest (``Claim.alone``): what it timed
  does not count as taken alone, and it asks anew.
- Who goes on while somebody is at rest looks at its end whether that one stayed so, by the processor time.

**Beside.** A holder that hangs but runs cannot be passed over. Who does not want to wait for it measures
beside it (``DOJO_ANYWAY=1``, or ``Wait.measure_anyway`` for a user's processes that wait): without the lock,
and its times say so. It touches ``CLOCK.disturbed`` before and after, so that those of others who hold the
lock meanwhile say so too.
"""

from __future__ import annotations

import fcntl
import logging
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

from dojo_core.measure.holders import (
    BESIDE,
    HOLDS,
    WAITS,
    Activity,
    Holder,
    LockFolder,
    NoteName,
    OwnNote,
    activity,
    descends_from,
    holders,
    unknown_holder,
)

log = logging.getLogger(__name__)

CPU = "cpu"
ANYWAY = "DOJO_ANYWAY"  # set to 1: nobody is waited for, and times that were not taken alone say so
TELL_SECONDS = 3.0  # after which people are told for whom a process waits
_POLL_SECONDS = 0.01
_LOOK_SECONDS = 0.25  # between looks at who it is that holds the lock
_LAPSE_SECONDS = 4 * _LOOK_SECONDS  # a waiter that was silent for longer has no turn


class Announcer:
    """Where sentences about measuring go: to the log, or where a command line says. Each once a process."""

    def __init__(self) -> None:
        self.say: Callable[[str], None] = log.warning
        self._said: set[tuple[str, int, str]] = set()
        self._advised: set[str] = set()

    def advise(self, sentence: str) -> None:
        """Say what would make measuring better, if there is something to say."""
        if sentence and sentence not in self._advised:
            self._advised.add(sentence)
            self.say(sentence)

    def tell(self, what: str, about: list[Holder], sentence: str) -> None:
        new = {(what, holder.pid, holder.command) for holder in about} - self._said
        self._said |= new
        if new:
            self.say(sentence)


announcer = Announcer()


class Claim:
    """What came of asking for the lock: true where its holder may go on."""

    def __init__(self, folder: LockFolder, clock: str, shared: bool) -> None:
        self.beside = False  # others were not waited for
        self._folder = folder
        self._clock = clock
        self._mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._note = OwnNote(folder, clock, shared)
        self._descriptor = -1
        self._generation = 0
        self._busy = False  # was the lock itself held when it was asked for last?
        self._disturbed = 0
        self._passed: list[tuple[Holder, Activity | None]] = []  # those at rest, as they were

    def __bool__(self) -> bool:
        return self.beside or self._descriptor >= 0

    def alone(self) -> bool:
        """Has the lock kept everybody else off, from the beginning until now?"""
        if not self or self.beside or not self._folder.is_here():
            return False
        if self._newest(self._folder.names()) != self._generation or not self._is_file():
            return False  # passed over
        if any(activity(holder.pid) != before for holder, before in self._passed):
            return False  # continued
        if self._folder.changed(f"{self._clock}.disturbed") != self._disturbed:
            return False
        return not any(holders(self._folder, self._clock, [BESIDE]))

    # ------------------------------------------------------------------ taking it

    def wait(self, cancelled: Callable[[], bool] | None) -> None:
        """Take the lock; the claim stays false where ``cancelled`` says so first.

        Raises FileNotFoundError where somebody has removed the folder.
        """
        begun, looked = time.monotonic(), -math.inf
        while not self._taken():
            if cancelled is not None and cancelled():
                return
            now = time.monotonic()
            if now - looked >= _LOOK_SECONDS:
                looked = now
                self._note.renew()
                if not self._folder.is_here():
                    raise FileNotFoundError(self._folder.path)
                if self._settled(now - begun):
                    return
            time.sleep(_POLL_SECONDS)

    def release(self) -> None:
        if self.beside:
            with suppress(FileNotFoundError):  # the folder was removed
                self._disturb()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._note.remove()

    def _taken(self) -> bool:
        """One try, without waiting."""
        names = self._folder.names()
        self._busy = False
        if any(map(self._before_me, names)):
            return False
        generation = max(1, self._newest(names))
        descriptor = self._folder.open(self._lock_name(generation), create=True)
        try:
            fcntl.flock(descriptor, self._mode | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            self._busy = True
            return False
        self._descriptor, self._generation = descriptor, generation
        names = self._folder.names()
        newest = self._newest(names) == generation and self._is_file() and self._folder.is_here()
        if not newest or not self._older_are_settled(names):
            os.close(descriptor)
            self._descriptor = -1
            return False
        self._disturbed = self._folder.changed(f"{self._clock}.disturbed")
        self._note.becomes(HOLDS, generation)
        return True

    def _lock_name(self, generation: int) -> str:
        return f"{self._clock}.lock.{generation}"

    def _generations(self, names: list[str]) -> list[int]:
        begin = f"{self._clock}.lock."
        return [int(n[len(begin) :]) for n in names if n.startswith(begin) and n[len(begin) :].isdecimal()]

    def _newest(self, names: list[str]) -> int:
        return max(self._generations(names), default=0)

    def _is_file(self) -> bool:
        """Is what is locked the file that others find under that name?"""
        try:
            status = os.stat(
                self._lock_name(self._generation), dir_fd=self._folder.descriptor, follow_symlinks=False
            )
        except OSError:
            return False
        return status.st_ino == os.fstat(self._descriptor).st_ino

    def _before_me(self, file: str) -> bool:
        """Is that the note of a waiter whose turn is first?"""
        name, mine = NoteName.of(file), self._note.name
        if name is None or name.clock != self._clock or name.role != WAITS or name.ticket >= mine.ticket:
            return False
        silent = time.time() - self._folder.changed(file) / 1e9
        return not (name.shared and mine.shared) and abs(silent) < _LAPSE_SECONDS

    def _older_are_settled(self, names: list[str]) -> bool:
        """Older generations: the free ones are removed; is everybody who holds another at rest?"""
        self._passed = []
        held = False
        for generation in self._generations(names):
            if generation < self._generation:
                held = not self._removed(generation) or held
        if not held:
            return True
        everybody = [h for h in self._others() if h.name.generation < self._generation]
        opposed = [h for h in everybody if not (h.name.shared and self._note.name.shared)]
        self._passed = [(h, activity(h.pid)) for h in opposed if h.at_rest()]
        self._busy = True
        return bool(everybody) and len(self._passed) == len(opposed)

    def _removed(self, generation: int) -> bool:
        with suppress(FileNotFoundError):
            descriptor = self._folder.open(self._lock_name(generation))
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._folder.unlink(self._lock_name(generation))
            except BlockingIOError:
                return False
            finally:
                os.close(descriptor)
        return True

    # ------------------------------------------------------------------ while somebody else has it

    def _others(self) -> list[Holder]:
        """Who else holds the lock; where nobody says so, who was stopped perhaps just before saying it."""
        ticket = self._note.name.ticket
        holding = [h for h in holders(self._folder, self._clock, [HOLDS]) if h.name.ticket != ticket]
        if holding:
            return holding
        waiting = holders(self._folder, self._clock, [WAITS])
        return [h for h in waiting if h.name.ticket != ticket and h.state == "stopped"]

    def _settled(self, waited: float) -> bool:
        """See who holds the lock: pass over those at rest, or go on beside them where that is asked for."""
        shared = self._note.name.shared
        others = [h for h in self._others() if not (h.name.shared and shared)]
        if not others and self._busy and waited > _LAPSE_SECONDS:
            others = [unknown_holder(self._clock)]
        if not others:
            return False
        if _anyway() or all(map(self._is_ignored, others)):
            self._go_beside(others)
            return True
        resting = [holder.at_rest() for holder in others]
        if all(resting):
            self._pass_over(others)
        elif waited >= TELL_SECONDS and not any(holder.pid == os.getpid() for holder in others):
            announcer.tell("waiting", others, Wait(self._clock, tuple(others)).sentence)
        return False

    def _pass_over(self, others: list[Holder]) -> None:
        newest = self._newest(self._folder.names())
        if any(h.name.generation == newest or h.name.role == WAITS for h in others):
            os.close(self._folder.open(self._lock_name(newest + 1), create=True))
        sentence = f"Going on without {_listed(others)}: its time will not count as taken alone."
        announcer.tell("passed", others, sentence)

    def _go_beside(self, others: list[Holder]) -> None:
        self.beside = True
        self._note.becomes(BESIDE)
        self._disturb()
        sentence = f"Measuring beside {_listed(others)}: the times are marked."
        announcer.tell("beside", others, sentence)

    def _disturb(self) -> None:
        descriptor = self._folder.open(f"{self._clock}.disturbed", create=True)
        try:
            os.utime(descriptor)
        except PermissionError:  # another user's file: written to, it changes all the same
            os.pwrite(descriptor, b"\n", 0)
        finally:
            os.close(descriptor)

    def _is_ignored(self, holder: Holder) -> bool:
        """Has this user said that it is not to be waited for?"""
        try:
            status = os.stat(_ignoring(holder), dir_fd=self._folder.descriptor, follow_symlinks=False)
        except OSError:
            return False
        return status.st_uid == os.getuid()


def _anyway() -> bool:
    return os.environ.get(ANYWAY) == "1"


def _ignoring(holder: Holder) -> str:
    """The file by which a user says that a holder is not to be waited for."""
    return f"{holder.name.clock}.ignored.{os.getuid()}.{holder.name.ticket}"


def _listed(others: list[Holder] | tuple[Holder, ...]) -> str:
    return " and ".join(map(str, others))


@contextmanager
def _claimed(shared: bool, clock: str, cancelled: Callable[[], bool] | None) -> Iterator[Claim]:
    while True:
        with LockFolder() as folder:
            claim = Claim(folder, clock, shared)
            try:
                try:
                    claim.wait(cancelled)
                except FileNotFoundError:
                    if folder.is_here():
                        raise
                    continue  # somebody has removed the folder: others are in a new one
                yield claim
                return
            finally:
                claim.release()


def compiling(cancelled: Callable[[], bool] | None = None) -> AbstractContextManager[Claim]:
    """Hold the CPU's clock together with other compilers. The claim is false where ``cancelled`` said so."""
    return _claimed(True, CPU, cancelled)


def measuring(cancelled: Callable[[], bool] | None = None, clock: str = CPU) -> AbstractContextManager[Claim]:
    """Hold a clock alone: no compiler and no other measurement runs meanwhile, unless ``Claim.alone`` denies
    that in the end. ``clock``: the CPU's, or the name of a GPU's (letters, digits and hyphens)."""
    return _claimed(False, clock, cancelled)


# ---------------------------------------------------------------------- what people are told


@dataclass(frozen=True)
class Wait:
    """Who has been waited for too long."""

    clock: str
    holders: tuple[Holder, ...]

    @property
    def sentence(self) -> str:
        """``Waiting for the measuring lock: held by `dojo bench` (pid 123), since 14:02, running.``"""
        which = "measuring lock" if self.clock == CPU else "GPU's measuring lock"
        return f"Waiting for the {which}: held by {_listed(self.holders)}."

    def measure_anyway(self) -> None:
        """Let all of this user's processes that wait for these go on beside them; times are marked."""
        with LockFolder() as folder:
            living = {name.ticket for name in map(NoteName.of, folder.names()) if name is not None}
            for file in folder.names():
                parts = file.split(".")
                if parts[1:3] == ["ignored", str(os.getuid())] and parts[-1] not in living:
                    folder.unlink(file)
            for holder in self.holders:
                os.close(folder.open(_ignoring(holder), create=True))


def waiting() -> Wait | None:
    """Whom this process, or one that it started, has waited for longer than ``TELL_SECONDS``, if anybody."""
    try:
        with LockFolder() as folder:
            names = [name for name in map(NoteName.of, folder.names()) if name is not None]
            for clock in sorted({name.clock for name in names if name.role == WAITS}):
                wait = _waiting(folder, clock)
                if wait is not None:
                    return wait
    except OSError:
        log.exception("the measuring lock cannot be looked at")
    return None


def _waiting(folder: LockFolder, clock: str) -> Wait | None:
    pid, now = os.getpid(), time.time()
    waiters = [
        waiter
        for waiter in holders(folder, clock, [WAITS])
        if now - waiter.since >= TELL_SECONDS and waiter.local and descends_from(waiter.pid, pid)
    ]
    if not waiters:
        _nameless.pop(clock, None)
        return None
    everybody = holders(folder, clock, [HOLDS])
    waited_for = [h for h in everybody if not all(h.name.shared and w.name.shared for w in waiters)]
    if not waited_for:
        waited_for = [h for h in holders(folder, clock, [WAITS]) if h.state == "stopped"]
    if waited_for:
        _nameless.pop(clock, None)
        return None if any(holder.pid == pid for holder in waited_for) else Wait(clock, tuple(waited_for))
    # Between two holders, or before one has written its note, there is nobody for a moment.
    since = _nameless.setdefault(clock, time.monotonic())
    return Wait(clock, (unknown_holder(clock),)) if time.monotonic() - since > TELL_SECONDS else None


_nameless: dict[str, float] = {}  # clocks that are waited for though nobody is seen to hold them
