"""What takes minutes with a study, its times and its page: each by a process, which goes on unwatched.

``python -m dojo_core.study.work timing FILE`` takes the study's times on this machine and keeps them beside
it; ``… building FILE`` makes ``FILE.html``. How far it is stands in ``FILE.timing.json``, or
``FILE.building.json``, after each position. Of times, what was measured stands there too: a process that was
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dojo_core.bounded_json import NotJson, read_object
from dojo_core.faults import text_fault
from dojo_core.files import replace_text, trouble_text
from dojo_core.launch import module_command
from dojo_core.measure.exclusive import announcer
from dojo_core.program.expressions import TextError
from dojo_core.study.study import Study, read_study
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
from dojo_core.system import end_group, process, yield_to_others

log = logging.getLogger(__name__)

TIMING, BUILDING = "timing", "building"
NICENESS = 5  # of who builds a page: the app answers meanwhile


@dataclass(frozen=True)
class Progress:
    """How far a work is: ``state`` is none, running, stopped, done or failed. ``message``: why it failed, or
    whom it waits for. ``times``: what a process that takes them has."""

    state: str = "none"
    done: int = 0
    total: int = 0
    message: str = ""
    times: Times | None = None


def page_file(study: Path) -> Path:
    """Where the page of a study's file is built."""
    return study.with_suffix(".html")


def times_of(study: Path) -> list[Times]:
    """The times that stand beside a study's file; none where they cannot be read."""
    try:
        return read_times(times_file(study).read_text(encoding="utf-8"))
    except (OSError, TextError, UnicodeDecodeError):
        return []


def _progress_file(what: str, study: Path) -> Path:
    return study.with_suffix(f".{what}.json")


def _kept(what: str, study: Path) -> dict[str, Any]:
    try:
        return read_object(_progress_file(what, study).read_text(encoding="utf-8"), 2 * LARGEST)
    except (OSError, NotJson, UnicodeDecodeError):
        return {}


def _keep(what: str, study: Path, progress: Progress, pid: int) -> None:
    found = process(pid)
    known = _kept(what, study).get("times", "") if progress.times is None else write_times([progress.times])
    content = {
        "state": progress.state, "pid": pid, "started": None if found is None else found.started,
        "done": progress.done, "total": progress.total, "message": progress.message,
        "times": known if progress.state == "running" else "",
    }  # fmt: skip
    replace_text(_progress_file(what, study), json.dumps(content))


def progress_of(what: str, study: Path) -> Progress:
    """How far the times, or the page, of a study's file are."""
    told = _kept(what, study)
    if not told:
        return Progress()
    state = str(told.get("state", "none"))
    if state == "running":
        found = process(int(told.get("pid", 0)))
        if found is None or found.state == "Z" or found.started != told.get("started"):
            state = "stopped"
    return Progress(state, int(told.get("done", 0)), int(told.get("total", 0)), str(told.get("message", "")))


def begin(what: str, study: Path, again: bool = False) -> subprocess.Popen[bytes] | None:
    """Start a work on a study's file, where it is not under way. Times are taken of what has none yet on this
    machine, or of all positions ``again``."""
    if progress_of(what, study).state == "running":
        return None
    child = subprocess.Popen(
        module_command("dojo_core.study.work", what, str(study), *(["--again"] if again else [])),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    _keep(what, study, Progress("running"), child.pid)
    threading.Thread(target=child.wait, name=f"reaps the {what} of a study", daemon=True).start()
    return child


def stop(what: str, study: Path) -> None:
    """End it; what it has of times stays, for the next one to go on with."""
    if progress_of(what, study).state == "running":
        end_group(int(_kept(what, study)["pid"]), signal.SIGTERM)


def _begun(study: Path, key: str, again: bool) -> Times | None:
    """What an ended process left, else, unless all is to be taken ``again``, what this machine has."""
    left = _kept(TIMING, study).get("times")
    try:
        every = read_times(left) if isinstance(left, str) and left else []
    except TextError:
        every = []
    every += [] if again else times_of(study)
    return next((times for times in every if times.key == key), None)


def tell_of_waiting(what: str, study: Path) -> None:
    """From now on this process says whom it waits for with how far it is, until the next position is done.

    Building measures nothing, but compiles the assembly, which stays away from what others measure.
    """

    def say(sentence: str) -> None:
        _keep(what, study, replace(progress_of(what, study), state="running", message=sentence), os.getpid())

    announcer.say = say


def take_times(file: Path, again: bool) -> None:
    """Take the times of a study's file. Raises TextError."""
    from dojo_core.study.limits import limits_of

    study = read_study(file.read_text(encoding="utf-8"), file)
    begun = _begun(file, clock_of(study.games)[0], again)
    total, done = _positions(study), 0

    def keep(times: Times) -> None:
        nonlocal done
        done += 1
        _keep(TIMING, file, Progress("running", done, total, times=times), os.getpid())

    _keep(TIMING, file, Progress("running", 0, total), os.getpid())
    times = take(study, limits=limits_of, begun=begun, keep=keep)
    if not times.seconds:
        raise TextError(next(iter(times.failed.values()), "no program was timed"), "Look at its positions.")
    replace_text(times_file(file), write_times(joined(times_of(file), times)))
    _keep(TIMING, file, Progress("done", done, total), os.getpid())


def build(file: Path) -> None:
    """Build the page of a study's file. Raises TextError."""
    from dojo_core.study.page import study_page
    from dojo_core.study.sheets import study_data

    yield_to_others(NICENESS)
    study = read_study(file.read_text(encoding="utf-8"), file)
    total, done = _positions(study), 0

    def advance() -> None:
        nonlocal done
        done += 1
        _keep(BUILDING, file, Progress("running", done, total), os.getpid())

    _keep(BUILDING, file, Progress("running", 0, total), os.getpid())
    replace_text(page_file(file), study_page(study_data(study, times_of(file), advance=advance)))
    _keep(BUILDING, file, Progress("done", done, total), os.getpid())


def _positions(study: Study) -> int:
    return sum(len(game.positions) for game in study.games)


def main() -> None:
    what, file, again = sys.argv[1], Path(sys.argv[2]), "--again" in sys.argv[3:]
    tell_of_waiting(what, file)
    try:
        if what == TIMING:
            take_times(file, again)
        else:
            build(file)
    except (TextError, OSError) as fault:
        why = text_fault(fault) if isinstance(fault, TextError) else trouble_text(fault)
        _keep(what, file, Progress("failed", message=why), os.getpid())
    except Exception:
        log.exception("the %s of %s failed", what, file)
        told = "A fault of the Dojo, noted in its log."
        _keep(what, file, Progress("failed", message=told), os.getpid())
        raise


if __name__ == "__main__":
    main()
