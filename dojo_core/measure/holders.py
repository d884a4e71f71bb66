"""Who holds the measuring lock, or waits for it: a note of each beside it, and whether its process runs.

A note is a small file that its writer keeps locked for as long as it means something, so that what a dead
process left is told from what a living one says, in whatever container it lives. Notes of other users are
read with suspicion: short, as JSON, without what a terminal would obey.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import pwd
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dojo_core import system
from dojo_core.measure.places import lock_directory

WAITS, HOLDS, BESIDE = "waits", "holds", "beside"
COMMAND_CHARACTERS = 120  # of a command line that is shown
NOTE_BYTES = 4096
REST_SECONDS = 1.0  # a stopped process that used no processor time for so long does not disturb a measurement
_OPEN_SECONDS = 1.0  # until a folder that somebody else has just made is open for all


class LockFolder:
    """The folder of the lock, open. Raises OSError with a sentence where it cannot be used.

    All users write there. Files are opened below this descriptor and never through a link, so that nobody
    can lead another user's process astray; what anybody deletes is noticed (``is_here``).
    """

    def __init__(self) -> None:
        self.path = lock_directory()
        until = time.monotonic() + _OPEN_SECONDS
        while True:
            try:
                self.descriptor = self._opened()
                return
            except PermissionError as fault:  # the user who has just made it opens it to all in a moment
                if time.monotonic() > until:
                    raise PermissionError(self._sentence(fault)) from None
                time.sleep(0.02)
            except OSError as fault:
                raise OSError(self._sentence(fault)) from None

    def _opened(self) -> int:
        with suppress(FileExistsError):
            self.path.mkdir(parents=True)
            self.path.chmod(0o777)
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if not os.access(self.path, os.W_OK | os.X_OK):
            os.close(descriptor)
            raise PermissionError("you may not write there")
        return descriptor

    def _sentence(self, fault: OSError) -> str:
        reason = fault.strerror or str(fault)
        return (
            f"The folder of the measuring lock, {self.path}, cannot be used ({reason}): "
            "remove it, or name another in DOJO_LOCK_DIR."
        )

    def close(self) -> None:
        os.close(self.descriptor)

    def __enter__(self) -> LockFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_here(self) -> bool:
        """Is this still the folder that other processes find?"""
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        mine = os.fstat(self.descriptor)
        return (status.st_dev, status.st_ino) == (mine.st_dev, mine.st_ino)

    def names(self) -> list[str]:
        return os.listdir(self.descriptor)

    def open(self, name: str, create: bool = False) -> int:
        """A file's descriptor, for all users to lock. Raises FileNotFoundError where it is not there."""
        flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        while True:
            try:
                descriptor = self._open(name, flags | os.O_RDWR)
            except PermissionError:  # made by somebody whose file it is: enough to lock it
                descriptor = self._open(name, flags | os.O_RDONLY)
            except FileNotFoundError:
                if not create:
                    raise
                try:
                    descriptor = self._open(name, flags | os.O_RDWR | os.O_CREAT | os.O_EXCL)
                    os.fchmod(descriptor, 0o666)
                except FileExistsError:
                    continue  # another process was quicker
                except FileNotFoundError:
                    raise
                except OSError as fault:
                    raise OSError(self._sentence(fault)) from None
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return descriptor
            os.close(descriptor)
            raise OSError(self._sentence(OSError(0, f"{name} is no file")))

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, flags, 0o600, dir_fd=self.descriptor)

    def rename(self, name: str, to: str) -> None:
        os.rename(name, to, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def unlink(self, name: str) -> None:
        with suppress(OSError):  # gone already, or another user's
            os.unlink(name, dir_fd=self.descriptor)

    def changed(self, name: str) -> int:
        """When a file was changed last, in ns of the system's clock; 0 where there is none."""
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False).st_mtime_ns
        except OSError:
            return 0


class NoteName(NamedTuple):
    """What the name of a note says; ``generation`` of the lock that its writer holds, else 0."""

    clock: str
    role: str
    generation: int
    shared: bool
    ticket: str

    @staticmethod
    def of(name: str) -> NoteName | None:
        parts = name.split(".")
        if len(parts) != 5 or parts[1] not in (WAITS, HOLDS, BESIDE) or not parts[2].isdigit():
            return None
        return NoteName(parts[0], parts[1], int(parts[2]), parts[3] == "shared", parts[4])

    @property
    def file(self) -> str:
        mode = "shared" if self.shared else "alone"
        return f"{self.clock}.{self.role}.{self.generation}.{mode}.{self.ticket}"


@dataclass(frozen=True)
class Holder:
    """A process as its note tells of it. ``since`` it holds the lock or waits, in seconds since the epoch;
    ``pid`` 0: nobody knows.

    ``local``: its process id means something here, and is still that of the process that wrote the note.
    """

    name: NoteName
    pid: int
    command: str
    since: float
    uid: int
    local: bool

    @property
    def state(self) -> str:
        """``running``, ``stopped`` or ``state unknown``."""
        does = activity(self.pid) if self.local else None
        if does is None:
            return "state unknown"
        return "stopped" if does.stopped else "running"

    def __str__(self) -> str:
        """```dojo bench softmax` (pid 123), since 14:02, stopped``."""
        if not self.pid:
            return "a process that left no note of itself"
        owner = "" if self.uid == os.getuid() else f" of {_user(self.uid)}"
        state = self.state
        if state == "stopped" and not self.at_rest():
            rest = _resting.get(self.name.ticket)
            state += ", though what it started runs on" if rest is not None and rest.moved else ""
        return f"`{self.command}` (pid {self.pid}{owner}), since {_clock_time(self.since)}, {state}"

    def at_rest(self) -> bool:
        """Is it stopped, and has it, with all that it started, used no processor time for a while?

        Asked at least twice: what was seen is remembered.
        """
        does = activity(self.pid) if self.local else None
        ticket, now = self.name.ticket, time.monotonic()
        if does is None or not does.stopped:
            _resting.pop(ticket, None)
            return False
        before = _resting.get(ticket, _Rest(-1, now, False))
        if before.ticks != does.ticks:
            before = _Rest(does.ticks, now, before.ticks >= 0)
            _resting[ticket] = before
        return now - before.since >= REST_SECONDS


class _Rest(NamedTuple):
    """What was seen of a stopped process: its ticks, since when, and whether there had been fewer."""

    ticks: int
    since: float
    moved: bool


_resting: dict[str, _Rest] = {}  # by ticket


class Activity(NamedTuple):
    """``ticks`` of processor time that a process and its descendants have used."""

    stopped: bool
    ticks: int


def activity(pid: int) -> Activity | None:
    """Whether a process is stopped, and what it and its descendants have used; None: not to be known."""
    process = system.process(pid)
    if process is None or process.state in "ZX":
        return None
    stopped = process.state in "Tt"
    if not stopped:
        return Activity(False, process.ticks)
    ticks, family = process.ticks, system.children(pid)
    while family:
        child = family.pop()
        ticks += child.ticks
        family += system.children(child.pid)
    return Activity(True, ticks)


def descends_from(pid: int, ancestor: int) -> bool:
    """Is a process another one, or started by it, or by what that started?"""
    for _ in range(64):
        if pid == ancestor:
            return True
        status = system.process(pid)
        if status is None or status.parent <= 1:
            return False
        pid = status.parent
    return False


_numbers = itertools.count()


class OwnNote:
    """This process' note of one claim on the lock; its name changes with what becomes of that."""

    def __init__(self, folder: LockFolder, clock: str, shared: bool) -> None:
        self._folder = folder
        ticket = f"{time.monotonic_ns():020d}-{os.getpid()}-{next(_numbers)}"
        self.name = NoteName(clock, WAITS, 0, shared, ticket)
        draft = f"{ticket}.draft"
        self._descriptor = folder.open(draft, create=True)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            status = system.process(os.getpid())
            text = json.dumps(
                {
                    "pid": os.getpid(),
                    "started": status.started if status is not None else None,
                    "namespace": system.process_namespace(),
                    "command": command_line(),
                    "since": time.time(),
                }
            )
            with suppress(OSError):  # no space left: then it says nothing, but is there
                os.write(self._descriptor, text.encode()[:NOTE_BYTES])
            folder.rename(draft, self.name.file)
        except BaseException:
            folder.unlink(draft)
            os.close(self._descriptor)
            raise

    def becomes(self, role: str, generation: int = 0) -> None:
        """Say that this process waits no longer, but holds a generation of the lock, or goes on beside it."""
        self.renew()  # a holder's note was changed last when it took the lock
        new = self.name._replace(role=role, generation=generation)
        with suppress(FileNotFoundError):  # somebody cleaned up: the lock itself is what counts
            self._folder.rename(self.name.file, new.file)
        self.name = new

    def renew(self) -> None:
        """Say by the note's time that this process still waits, and looks."""
        with suppress(OSError):
            os.utime(self._descriptor)

    def remove(self) -> None:
        self._folder.unlink(self.name.file)
        os.close(self._descriptor)


def holders(folder: LockFolder, clock: str, roles: Sequence[str]) -> Iterator[Holder]:
    """The living ones of these roles; the notes of dead ones are removed."""
    for file in folder.names():
        name = NoteName.of(file)
        if name is None or name.clock != clock or name.role not in roles:
            continue
        holder = _read(folder, name)
        if holder is not None:
            yield holder


def _read(folder: LockFolder, name: NoteName) -> Holder | None:
    try:
        descriptor = folder.open(name.file)
    except OSError:
        return None  # gone, or renamed meanwhile
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            folder.unlink(name.file)
            return None
        status = os.fstat(descriptor)
        text = os.pread(descriptor, NOTE_BYTES, 0)
    finally:
        os.close(descriptor)
    try:
        note = json.loads(text)
        pid, since = int(note["pid"]), float(note["since"])
        shown = "".join(c if c.isprintable() else " " for c in str(note["command"]))
        process = system.process(pid) if note["namespace"] == system.process_namespace() else None
        local = process is not None and process.started == note["started"]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return Holder(name, 0, "", 0.0, status.st_uid, False)
    since = since if name.role == WAITS else status.st_mtime
    command = _cut(" ".join(shown.split()))
    return Holder(name, pid, command, since, status.st_uid, local)


def unknown_holder(clock: str) -> Holder:
    """Of a lock that is held though no note says by whom."""
    return Holder(NoteName(clock, HOLDS, 0, False, "unknown"), 0, "", 0.0, -1, False)


def command_line() -> str:
    """What this process was started as, for people: ``dojo bench softmax``."""
    words = list(sys.orig_argv)
    if len(words) > 1 and not words[1].startswith("-"):
        del words[0]  # the interpreter of a script
    words[:1] = [Path(word).name for word in words[:1]]
    return _cut(" ".join(words)) or "python"


def _cut(command: str) -> str:
    """A command line that is no longer than people read, and that says where it goes on."""
    return command if len(command) <= COMMAND_CHARACTERS else f"{command[: COMMAND_CHARACTERS - 1]}…"


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _clock_time(seconds: float) -> str:
    """``14:02``, with the day where that is not today."""
    try:
        local = time.localtime(seconds)
    except (OverflowError, ValueError, OSError):
        return "an unknown time"
    today = time.localtime()[:3] == local[:3]
    return time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", local)
