"""The wheel of this checkout in a virtual environment of its own, made once for all tests that want one."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tests.homes import with_objects

ROOT = Path(__file__).resolve().parent.parent
NATIVE_BUILD = ROOT / "build" / "native"  # where make setup built: the compiler has little to do then

# As if the checkout were deleted: nothing below it is opened but the environment of the tests, which has the
# dependencies (its own path entries and finders are not followed).
DELETED = """
import os, sys
CHECKOUT, DEPENDENCIES = {checkout!r} + os.sep, {dependencies!r} + os.sep
def deny(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], (str, os.PathLike)):
        path = os.path.abspath(os.fspath(arguments[0]))
        if path.startswith(CHECKOUT) and not (path + os.sep).startswith(DEPENDENCIES):
            raise FileNotFoundError(2, "deleted with the checkout", path)
sys.addaudithook(deny)
"""


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the wheel, used from a folder of its own."""

    folder: Path

    def run(self, *words: str, **more: str) -> str:
        """What a command says; ``more``: of its environment."""
        ran = subprocess.run(
            [str(self.folder / "bin" / words[0]), *words[1:]],
            cwd=self.place, env={**self.environment, **more},
            capture_output=True, text=True,
        )  # fmt: skip
        assert ran.returncode == 0, f"{' '.join(words)}\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"
        return ran.stdout

    @property
    def place(self) -> Path:
        """Where it is used. What lies there by the names of ours is not ours."""
        place = self.folder / "a place"
        (place / "agents").mkdir(parents=True, exist_ok=True)
        (place / "agents" / "__init__.py").write_text(
            "raise SystemExit('imported from the working directory')"
        )
        return place

    @property
    def environment(self) -> dict[str, str]:
        ours = {"DOJO_HOME": str(self.folder / "home"), "DOJO_LOCK_DIR": str(self.folder / "lock")}
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {**inherited, **ours, "PYTHONSAFEPATH": "1"}


# Commands in one process, as each would spend a second on imports; what they said as JSON.
COMMANDS = """
import json, sys
from typer.testing import CliRunner
from agents.cli import app
said = []
for words in json.loads(sys.argv[1]):
    ran = CliRunner().invoke(app, words.split("|"))
    fault = "" if ran.exception is None or isinstance(ran.exception, SystemExit) else repr(ran.exception)
    said.append([ran.exit_code, ran.stdout, ran.stderr, fault])
print(json.dumps(said))
"""


@dataclass(frozen=True)
class Said:
    """What a command said."""

    code: int
    out: str
    err: str
    fault: str


def said(where: Installed, *commands: str, beside: Path | None = None) -> list[Said]:
    """What commands say; their words are parted by bars. ``beside``: a folder with more packages."""
    more = {} if beside is None else {"PYTHONPATH": str(beside)}
    ran = subprocess.run(
        [str(where.folder / "bin" / "python"), "-c", COMMANDS, json.dumps(commands)],
        cwd=where.place, env={**where.environment, **more}, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert "Traceback" not in ran.stderr, ran.stderr[-4000:]
    return [Said(*each) for each in json.loads(ran.stdout.splitlines()[-1])]


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """One process at a time builds."""
    file.parent.mkdir(exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def done(*command: str, cwd: Path = ROOT) -> None:
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert ran.returncode == 0, f"{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that ``make`` fills; once, whichever of pytest's workers ask for it."""
    base = factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with alone(place.with_suffix(".lock")):
        if not (place / "made").exists():
            place.mkdir(exist_ok=True)
            make(place)
            (place / "made").touch()
    return place


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, installed beside nothing."""
    return Installed(made_once(tmp_path_factory, "distribution", install) / "environment")


def take_bytecode(packages: Path) -> None:
    """Modules that are the same in the checkout are compiled there already: bytecode tells by the time of its
    source whether it is of that, and by nothing else where it lies."""
    for name in ("dojo_core", "agents", "pages"):
        for source in (ROOT / name).rglob("*.py"):
            theirs, compiled = packages / source.relative_to(ROOT), Path(cache_from_source(str(source)))
            if compiled.exists() and theirs.is_file() and theirs.read_bytes() == source.read_bytes():
                place = Path(cache_from_source(str(theirs)))
                place.parent.mkdir(exist_ok=True)
                shutil.copyfile(compiled, place)
                shutil.copystat(source, theirs)


def install(place: Path) -> None:
    """A wheel of this folder in a virtual environment; the dependencies are those of the tests."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    settings = {"build-dir": str(NATIVE_BUILD)}
    build = f"from scikit_build_core.build import build_wheel; build_wheel({str(place)!r}, {settings!r})"
    with alone(ROOT / "build" / "native.lock"):
        done(sys.executable, "-c", build)  # as pip does, which would be a process more
    [wheel] = place.glob("*.whl")
    made = Installed(place / "environment")
    done(sys.executable, "-m", "venv", "--without-pip", str(made.folder))
    done(
        *pip,
        "--python",
        str(made.folder / "bin" / "python"),
        "install",
        "--no-index",
        "--no-deps",
        "--no-compile",
        str(wheel),
    )
    with_objects(made.folder / "home")
    dependencies = next(path for path in map(Path, sys.path) if (path / "streamlit").is_dir())
    [packages] = made.folder.glob("lib/python3*/site-packages")
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    take_bytecode(packages)
    told = {"checkout": str(ROOT), "dependencies": str(dependencies)}
    (packages / "sitecustomize.py").write_text(DELETED.format(**told))
