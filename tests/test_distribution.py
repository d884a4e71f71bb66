"""What is built from this folder is whole: a wheel plays in an environment without the checkout."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tarfile
import time
import urllib.request
from pathlib import Path

import pytest

from tests.browser.conftest import free_port
from tests.distribution import Installed, done

ROOT = Path(__file__).resolve().parent.parent


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
