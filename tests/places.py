"""The Dojo where people are: ``python -m tests.places [PLACE...]``; minutes, as root on Linux.

Each place is tried with a copy of the checkout without git: a line is played, a position timed, a library
exported, a page of the app run, and the app started twice: the second one says that its port is occupied.
``--python`` names another Python that has what requirements.txt lists. Prints a row for each place; ends
with 1 where one fails.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT = (".git", ".venv*", "build", "__pycache__", ".*_cache")
SECONDS = 300.0  # a command, on a busy machine
NOBODY = "nobody"
# One page of the app without a browser: whatever goes wrong on it is printed.
PAGE = """
import os
from streamlit.testing.v1 import AppTest
page = AppTest.from_file("pages/site.py", default_timeout=120).run()
told = [*page.exception, *page.error]
assert not told, told
os._exit(0)  # threads of the service's go on, as they do until a server ends
"""


@dataclass(frozen=True)
class Place:
    """``before``: the command that leads there, a script that is given the command line to run as ``"$@"``.
    ``environment``: variables that are different there; ``fails`` says what a command is to say there."""

    about: str
    before: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    user: str = ""
    fails: str = ""


PLACES = {
    "plain": Place("a copy without git, in a folder with a space and letters beyond ASCII"),
    "user": Place("a user that is not root", f'exec runuser -u {NOBODY} -- "$@"', user=NOBODY),
    "home": Place(
        "a home that cannot be written, files in DOJO_HOME",
        'mount -t tmpfs -o ro none "$HOME" && exec "$@"',
        {"HOME": "{place}/home"},
    ),
    "nohome": Place(
        "a home that cannot be written, and nothing else named",
        'mount -t tmpfs -o ro none "$HOME" && exec "$@"',
        {"HOME": "{place}/home", "DOJO_HOME": ""},
        fails="name another folder in DOJO_HOME",
    ),
    "umask": Place("umask 077", 'umask 077; exec "$@"'),
    "lang": Place("LANG=C", environment={"LANG": "C"}),
    "posix": Place("LC_ALL=POSIX, without Python's own UTF-8 mode",
                   environment={"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "shm": Place("no /dev/shm", 'umount -l /dev/shm; mount -t tmpfs -o ro none /dev/shm && exec "$@"'),
    "network": Place("no network", 'ip link set lo up; exec "$@"'),
}  # fmt: skip


def visited(place: Place, copy: Path, home: Path, python: str) -> list[str]:
    """What failed there."""
    base = {
        name: value for name, value in os.environ.items() if not name.startswith(("DOJO_", "LC_", "LANG"))
    }
    own = {"DOJO_HOME": str(home / "dojo"), "DOJO_LOCK_DIR": str(home / "lock"), "LANG": "C.UTF-8"}
    named = {name: value.format(place=home) for name, value in place.environment.items()}
    environment = {k: v for k, v in {**base, **own, **named, "PYTHONPATH": _paths(copy)}.items() if v}
    # A namespace of its own for what is mounted; without a network where that is the place.
    lead = ["unshare", "--mount", *["--net"] * ("ip link" in place.before), "sh", "-c", place.before, "sh"]
    lead = lead if place.before else []
    port = _free_port()
    commands = {
        "play": ["-m", "agents.cli", "play", "softmax", "--shape", "64x64", "--line", "softmax", "--text"],
        "time": ["-m", "agents.cli", "time", "softmax", "--shape", "64x64"],
        "export": ["-m", "agents.cli", "export", "softmax:64x64", "--to", str(home / "library")],
        "page": ["-c", PAGE],
    }
    failed = []
    for name, words in commands.items():
        ran = subprocess.run(
            [*lead, python, *words], cwd=copy, env=environment, capture_output=True, encoding="utf-8",
            errors="replace", timeout=SECONDS, check=False,
        )  # fmt: skip
        said = ran.stdout + ran.stderr
        if place.fails and name in ("time", "export"):  # what only reads goes on
            right = ran.returncode == 1 and place.fails in said and "Traceback" not in said
        else:
            right = ran.returncode == 0 or (name == "page" and bool(place.fails))
        if not right:
            failed.append(f"{name} ended with {ran.returncode}:\n{said[-3000:]}")
    if not place.fails and "ip link" not in place.before:  # there its port is in a network of its own
        failed += _app_fault([*lead, python], copy, environment, port)
    return failed


def _paths(copy: Path) -> str:
    """The copy before what this environment adds, such as a native module that is not installed."""
    others = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return os.pathsep.join([*(entry for entry in others if Path(entry).resolve() != ROOT), str(copy)])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _app_fault(lead: list[str], copy: Path, environment: dict[str, str], port: int) -> list[str]:
    """Start the app and ask for its page; a second one says that the port is occupied."""
    command = [*lead, "-m", "agents.cli", "app", "--no-browser", "--port", str(port)]
    with tempfile.TemporaryFile() as log:
        app = subprocess.Popen(
            command, cwd=copy, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            until = time.monotonic() + SECONDS
            while True:
                try:
                    with urllib.request.urlopen(
                        f"http://127.0.0.1:{port}/_stcore/health", timeout=10
                    ) as answer:
                        answer.read()
                    break
                except (urllib.error.URLError, ConnectionError, TimeoutError):
                    if app.poll() is not None or time.monotonic() > until:
                        log.seek(0)
                        return [f"the app did not start:\n{log.read().decode(errors='replace')[-3000:]}"]
                    time.sleep(0.2)
            again = subprocess.run(
                command, cwd=copy, env=environment, capture_output=True, encoding="utf-8", errors="replace",
                timeout=SECONDS, check=False,
            )  # fmt: skip
            if f"Port {port} is occupied" not in again.stdout + again.stderr:
                return [f"a second app does not say that its port is occupied:\n{again.stdout}{again.stderr}"]
        finally:
            with suppress(ProcessLookupError):  # it ended by itself, which the fault tells
                os.killpg(app.pid, 9)
            app.wait()
    return []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.places", description=__doc__.splitlines()[0])
    parser.add_argument("places", nargs="*", choices=[[], *PLACES], help=", ".join(PLACES))
    parser.add_argument("--python", default=sys.executable, help="the Python that runs it")
    given = parser.parse_args()
    worst = 0
    with tempfile.TemporaryDirectory(prefix="dojo-places-") as folder:
        Path(folder).chmod(0o755)
        copy = Path(folder, "Übungen am Rechner")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT))
        for name in given.places or PLACES:
            place = PLACES[name]
            home = Path(folder, name)
            (home / "home").mkdir(parents=True)
            if place.user:
                entry = pwd.getpwnam(place.user)
                for path in (home, home / "home"):
                    os.chown(path, entry.pw_uid, entry.pw_gid)
            failed = visited(place, copy, home, given.python)
            print(f"{name:8} {place.about}: {'; '.join(failed) if failed else 'good'}", flush=True)
            worst |= bool(failed)
    return worst


if __name__ == "__main__":
    sys.exit(main())
