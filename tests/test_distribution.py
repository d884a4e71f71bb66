"""What is built from this folder is whole: a wheel plays in an environment without the checkout."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.browser.conftest import free_port

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

    def run(self, *words: str) -> str:
        ran = subprocess.run(
            [str(self.folder / "bin" / words[0]), *words[1:]], cwd=self.place, env=self.environment,
            capture_output=True, text=True, timeout=240,
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


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """One process at a time builds."""
    file.parent.mkdir(exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def done(*command: str, cwd: Path = ROOT) -> None:
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, f"{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Built, and installed beside nothing; once, whichever of pytest's workers are given a test of it."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "distribution"
    with alone(place.with_suffix(".lock")):
        if not (place / "installed").exists():
            install(place)
            (place / "installed").touch()
    return Installed(place / "environment")


def install(place: Path) -> None:
    """A wheel of this folder in a virtual environment; the dependencies are those of the tests."""
    place.mkdir(exist_ok=True)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    with alone(ROOT / "build" / "native.lock"):
        done(*pip, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(place),
             f"--config-settings=build-dir={NATIVE_BUILD}", str(ROOT))  # fmt: skip
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
        "--no-compile",  # most of it is not imported here
        str(wheel),
    )
    dependencies = next(path for path in map(Path, sys.path) if (path / "streamlit").is_dir())
    [packages] = made.folder.glob("lib/python3*/site-packages")
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    told = {"checkout": str(ROOT), "dependencies": str(dependencies)}
    (packages / "sitecustomize.py").write_text(DELETED.format(**told))


def test_nothing_is_imported_from_the_checkout(installed: Installed) -> None:
    names = ("dojo_core", "agents", "pages", "dojo_native", "dojo_snitch")
    script = f"import importlib\nfor name in {names}: print(importlib.import_module(name).__file__)"
    for path in installed.run("python", "-c", script).splitlines():
        assert Path(path).is_relative_to(installed.folder), path
    with pytest.raises(AssertionError, match="deleted with the checkout"):
        installed.run("python", "-c", f"open({str(ROOT / 'pyproject.toml')!r})")


def test_it_plays_teaches_exports_and_searches(installed: Installed) -> None:
    assert installed.run("dojo", "--version").startswith("dojo ")
    assert ":v y[" in installed.run("dojo", "play", "relu", "--line", "relu")
    assert "01-scopes" in installed.run("dojo", "lesson", "list")
    installed.run("dojo", "export", "relu", "--shape", "64x64", "--to", "fast")
    assert (installed.place / "fast" / "pyproject.toml").is_file()
    tune = ("dojo", "tune", "relu", "--shape", "64x64", "--agent", "random-edges", "--budget", "2", "--json")
    assert [json.loads(line)["status"] for line in installed.run(*tune).splitlines()][:2] == ["ok", "ok"]


def test_it_measures_with_its_own_modules(installed: Installed) -> None:
    [entry] = json.loads(installed.run("dojo", "time", "relu", "--shape", "64x64", "--json"))
    assert entry["status"] == "ok" and entry["seconds"] > 0
    [cycles] = json.loads(
        installed.run("dojo", "time", "relu", "--shape", "4x64", "--target", "snitch", "--json")
    )
    assert cycles["run"]["cycles"] > 0
    told = installed.run("dojo", "bench", "relu", "--shape", "64x64", "--against", "hand", "--rounds", "1")
    assert "C by hand" in told  # whose script ships, and says that it has this shape not


def test_the_app_answers_with_its_own_settings(installed: Installed) -> None:
    port = free_port()
    app = subprocess.Popen(
        [str(installed.folder / "bin" / "dojo"), "app", "--no-browser", "--port", str(port)],
        cwd=installed.place, env=installed.environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        answer = waited_for(f"http://127.0.0.1:{port}/", app)
        assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"  # our door
        stranger = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Host": "example.org"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(stranger, timeout=30)
    finally:
        app.send_signal(signal.SIGTERM)
        said = app.communicate(timeout=60)[0]
    assert "Traceback" not in said and "Welcome" not in said, said  # hideWelcomeMessage, of the settings


def waited_for(url: str, app: subprocess.Popen[str]) -> urllib.request.addinfourl:
    end = time.monotonic() + 120
    while True:
        try:
            return urllib.request.urlopen(url, timeout=30)
        except OSError:
            if app.poll() is not None or time.monotonic() > end:
                app.kill()
                raise AssertionError(app.communicate()[0]) from None
            time.sleep(0.2)


def test_its_pages_show_what_ships(installed: Installed) -> None:
    """The tour replays recordings, Learn has the lessons, Play the lines."""
    script = """
from streamlit.testing.v1 import AppTest
def page(name):
    from importlib import import_module
    import_module(f"pages.{name}").page()
for name in ("play", "watch", "learn", "tour"):
    drawn = AppTest.from_function(page, args=(name,), default_timeout=120).run()
    assert not drawn.exception and not drawn.error, (name, drawn.exception, drawn.error)
from agents.jobs.recording import shipped
from dojo_core.line import recorded_lines
from dojo_core.package_data import document
from dojo_core.school.school import open_school
print(len(shipped()), len(recorded_lines()), len(open_school().lessons), document("serving.md"))
"""
    (installed.place / "drawing.py").write_text(script)
    *counts, page = installed.run("python", "drawing.py").split(maxsplit=3)
    assert all(int(count) > 0 for count in counts)
    assert "secrets.toml" in Path(page.strip()).read_text()


def test_a_source_distribution_has_what_a_build_needs(tmp_path: Path) -> None:
    script = f"from scikit_build_core.build import build_sdist; build_sdist({str(tmp_path)!r})"
    done(sys.executable, "-c", script)
    [archive] = tmp_path.glob("dojo-*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    ours = [ROOT / name for name in ("dojo_core", "agents", "pages", "native", "docs")]
    needed = {
        str(path.relative_to(ROOT))
        for folder in ours
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".so", ".pyc")
    }
    needed |= {"CMakeLists.txt", "pyproject.toml", "app.py", ".streamlit/config.toml", "LICENSE", "README.md"}
    assert needed - names == set()
