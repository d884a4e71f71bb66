"""The times of a study taken by a process of its own, which goes on when nobody looks.

``python -m dojo_core.study.timing FILE``: the study's times on this machine, kept beside it at the end. How
far it is stands in ``FILE.timing.json`` after each position, together with what it has; a process that was
ended is followed by one that goes on from there.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dojo_core.bounded_json import NotJson, read_object
from dojo_core.faults import text_fault
from dojo_core.files import replace_text, trouble_text
from dojo_core.launch import module_command
from dojo_core.program.expressions import TextError
from dojo_core.study.study import read_study
from dojo_core.study.times import (
    LARGEST,
    Times,
    clock_of,
    joined,
    read_times,
    take,
    times_file,
    write_times,
)
from dojo_core.system import end_group, process

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Timing:
    """How far the times of a study are: ``state`` is none, running, stopped, done or failed (``message``)."""

    state: str = "none"
    done: int = 0
    total: int = 0
    message: str = ""


def progress_file(study: Path) -> Path:
    return study.with_suffix(".timing.json")


def _progress(study: Path) -> dict[str, Any]:
    try:
        return read_object(progress_file(study).read_text(encoding="utf-8"), 2 * LARGEST)
    except (OSError, NotJson, UnicodeDecodeError):
        return {}


def timing_of(study: Path) -> Timing:
    """How far the times of a study's file are."""
    told = _progress(study)
    if not told:
        return Timing()
    state = str(told.get("state", "none"))
    if state == "running":
        found = process(int(told.get("pid", 0)))
        if found is None or found.state == "Z" or found.started != told.get("started"):
            state = "stopped"
    return Timing(state, int(told.get("done", 0)), int(told.get("total", 0)), str(told.get("message", "")))


def begin(study: Path, again: bool = False) -> None:
    """Start taking the times of a study's file, where nobody does: of what has none yet on this machine, or
    of all positions ``again``."""
    if timing_of(study).state == "running":
        return
    options = ["--again"] if again else []
    child = subprocess.Popen(
        module_command("dojo_core.study.timing", str(study), *options),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    _tell(study, _Progress(child.pid, 0, 0))
    threading.Thread(target=child.wait, name="reaps the timing of a study", daemon=True).start()


def stop(study: Path) -> None:
    """End it; what it has stays, for the next one to go on with."""
    told = _progress(study)
    if timing_of(study).state == "running":
        end_group(int(told["pid"]), signal.SIGTERM)


@dataclass(frozen=True)
class _Progress:
    pid: int
    done: int
    total: int
    state: str = "running"
    message: str = ""
    times: Times | None = None


def _tell(study: Path, progress: _Progress) -> None:
    found = process(progress.pid)
    known = _progress(study).get("times", "") if progress.times is None else write_times([progress.times])
    content = {
        "state": progress.state, "pid": progress.pid, "started": None if found is None else found.started,
        "done": progress.done, "total": progress.total, "message": progress.message,
        "times": known if progress.state == "running" else "",
    }  # fmt: skip
    replace_text(progress_file(study), json.dumps(content))


def _known(study: Path) -> list[Times]:
    """The times that stand beside a study; none where they cannot be read."""
    try:
        return read_times(times_file(study).read_text(encoding="utf-8"))
    except (OSError, TextError):
        return []


def _begun(study: Path, key: str, again: bool) -> Times | None:
    """What an ended process left, else, unless all is to be taken ``again``, what this machine has."""
    left = _progress(study).get("times")
    try:
        every = read_times(left) if isinstance(left, str) and left else []
    except TextError:
        every = []
    every += [] if again else _known(study)
    return next((times for times in every if times.key == key), None)


def run(file: Path, again: bool) -> None:
    """Take the times of a study's file. Raises TextError."""
    from dojo_core.study.limits import limits_of

    study = read_study(file.read_text(encoding="utf-8"), file)
    key, _ = clock_of(study)
    begun = _begun(file, key, again)
    total = sum(len(game.positions) for game in study.games)
    done = 0

    def keep(times: Times) -> None:
        nonlocal done
        done += 1
        _tell(file, _Progress(os.getpid(), done, total, times=times))

    _tell(file, _Progress(os.getpid(), 0, total))
    times = take(study, limits=limits_of, begun=begun, keep=keep)
    if not times.seconds:
        raise TextError(next(iter(times.failed.values()), "no program was timed"), "Look at its positions.")
    replace_text(times_file(file), write_times(joined(_known(file), times)))
    _tell(file, _Progress(os.getpid(), done, total, "done"))


def main() -> None:
    file, again = Path(sys.argv[1]), "--again" in sys.argv[2:]
    try:
        run(file, again)
    except (TextError, OSError) as fault:
        why = text_fault(fault) if isinstance(fault, TextError) else trouble_text(fault)
        _tell(file, _Progress(os.getpid(), 0, 0, "failed", why))
    except Exception:
        log.exception("the times of %s were not taken", file)
        _tell(file, _Progress(os.getpid(), 0, 0, "failed", "A fault of the Dojo, noted in its log."))
        raise


if __name__ == "__main__":
    main()
