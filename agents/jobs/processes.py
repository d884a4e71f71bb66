"""Child processes by name: started in groups of their own, told what to do down a pipe, ended as a whole."""

from __future__ import annotations

import contextlib
import fcntl
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from dojo_core.launch import module_command
from dojo_core.system import end_group


class Gone(RuntimeError):
    """There is no such process any more."""


class Processes:
    """Thread-safe. ``on_end`` is called with the name of each that has ended, in a thread of its own."""

    def __init__(self, on_end: Callable[[str], None] | None = None) -> None:
        self._on_end = on_end
        self._lock = threading.RLock()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._blamed: dict[str, str] = {}

    def spawn(self, name: str, module: str, arguments: Sequence[str], log: Path) -> None:
        """Run a module of ours; what it prints goes to the end of a file, and it inherits no other."""
        with log.open("ab") as file:
            child = subprocess.Popen(
                module_command(module, *arguments),
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        with self._lock:
            self._running[name] = child
            self._blamed.pop(name, None)
        threading.Thread(target=self._reap, args=(name, child), name=f"reaps {name}", daemon=True).start()

    def alive(self, name: str) -> bool:
        with self._lock:
            return name in self._running

    def blamed(self, name: str) -> str:
        """How it ended, as a sentence, where a signal ended it; else empty."""
        with self._lock:
            return self._blamed.get(name, "")

    def count(self) -> int:
        with self._lock:
            return len(self._running)

    def pid(self, name: str) -> int | None:
        with self._lock:
            child = self._running.get(name)
            return None if child is None else child.pid

    def say(self, name: str, words: str) -> None:
        """A line down the pipe. Raises Gone."""
        with self._lock:
            child = self._running.get(name)
            if child is None or child.poll() is not None or child.stdin is None:
                raise Gone(name)
            try:
                child.stdin.write(words.encode() + b"\n")
                child.stdin.flush()
            except OSError:
                raise Gone(name) from None

    def hang_up(self, name: str) -> None:
        """Close the pipe, as it is closed when this process is killed."""
        with self._lock:
            child = self._running.get(name)
            if child is not None and child.stdin is not None:
                child.stdin.close()

    def close(self) -> None:
        """End them all."""
        with self._lock:
            children = list(self._running.values())
        for child in children:
            _kill(child)

    def _reap(self, name: str, child: subprocess.Popen[bytes]) -> None:
        status = child.wait()
        _kill(child)  # whatever it left in its group
        with self._lock:
            if self._running.get(name) is child:
                del self._running[name]
                self._blamed[name] = _blamed(status)
        if self._on_end is not None:
            self._on_end(name)


def locked(path: Path) -> bool:
    """Does a process hold this file's lock?"""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _blamed(status: int) -> str:
    if status >= 0:
        return ""
    name = signal.Signals(-status).name
    return (
        f"Its process was ended by {name}: out of memory or time, or by hand. "
        "Resume goes on from what it measured."
    )


def _kill(child: subprocess.Popen[bytes]) -> None:
    end_group(child.pid)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(5)
    if child.stdin is not None:
        with contextlib.suppress(OSError):
            child.stdin.close()
