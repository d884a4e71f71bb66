"""What is built from this folder is whole: a wheel plays in an environment without the checkout."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest

from tests.browser.conftest import free_port
from tests.distribution import Installed, done, said

ROOT = Path(__file__).resolve().parent.parent


def test_what_is_imported_is_in_the_list_that_is_built_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = project["tool"]["scikit-build"]["wheel"]["packages"]
    ignored = (ROOT / ".gitignore").read_text().split()  # which the build leaves out
    assert not {f"{folder}/" for folder in folders} & set(ignored)
    for words in project["project"]["entry-points"].values():
        for module in (word.partition(":")[0] for word in words.values()):
            assert module.partition(".")[0] in folders, module
            place = ROOT.joinpath(*module.split("."))
            assert place.with_suffix(".py").is_file() or place.is_dir(), module
    ours = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert ours <= set(folders)


@pytest.mark.thorough  # the list that it is built from: above; its parts as they are here: all other tests
def test_nothing_is_imported_from_the_checkout(installed: Installed) -> None:
    names = ("dojo_core", "agents", "pages", "dojo_native", "dojo_snitch")
    script = f"import importlib\nfor name in {names}: print(importlib.import_module(name).__file__)"
    for path in installed.run("python", "-c", script).splitlines():
        assert Path(path).is_relative_to(installed.folder), path
    with pytest.raises(AssertionError, match="deleted with the checkout"):
        installed.run("python", "-c", f"open({str(ROOT / 'pyproject.toml')!r})")


@pytest.mark.thorough  # test_packages.py plays on the command line of the same wheel
def test_it_plays_teaches_exports_searches_and_measures_with_its_own_modules(installed: Installed) -> None:
    assert installed.run("dojo", "--version").startswith("dojo ")
    played, lessons, exported, tuned, timed, emulated, benched = said(
        installed,
        "play|relu|--line|relu",
        "lesson|list",
        "export|relu|--shape|64x64|--to|fast",
        "tune|relu|--shape|64x64|--agent|random-edges|--budget|2|--json",
        "time|relu|--shape|64x64|--json",
        "time|relu|--shape|4x64|--target|snitch|--json",
        "bench|relu|--shape|64x64|--against|hand|--rounds|1",
    )
    assert ":v y[" in played.out
    assert "01-scopes" in lessons.out
    assert exported.code == 0 and (installed.place / "fast" / "pyproject.toml").is_file()
    assert [json.loads(line)["status"] for line in tuned.out.splitlines()][:2] == ["ok", "ok"]
    [entry] = json.loads(timed.out)
    assert entry["status"] == "ok" and entry["seconds"] > 0
    [cycles] = json.loads(emulated.out)
    assert cycles["run"]["cycles"] > 0
    assert "C by hand" in benched.out, benched  # whose script ships, and says that it has this shape not


@pytest.mark.thorough  # browser/test_safety.py; what is installed plays: test_packages.py
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


@pytest.mark.thorough  # test_extras.py and test_train_page.py are without them
def test_the_command_line_and_every_page_start_without_the_extras_and_show_what_ships(
    installed: Installed,
) -> None:
    """The tour replays recordings, Learn has the lessons, Play the lines."""
    shipped = """
from agents.jobs.recording import shipped
from dojo_core.line import recorded_lines
from dojo_core.package_data import document
from dojo_core.school.school import open_school
print(len(shipped()), len(recorded_lines()), len(open_school().lessons), document("serving.md"))
"""
    drawing = (ROOT / "tests" / "without_extras.py").read_text()
    (installed.place / "drawing.py").write_text(drawing + shipped)
    *drawn, told = installed.run("python", "drawing.py").splitlines()
    warnings = dict(line.partition(" ")[::2] for line in drawn)
    assert warnings.pop("train").startswith("Training needs torch, transformers, safetensors and gymnasium")
    assert set(warnings) == {
        "play",
        "watch",
        "compare",
        "study",
        "learn",
        "class",
        "library",
        "model",
        "tour",
    } and not any(warnings.values())
    *counts, page = told.split(maxsplit=3)
    assert all(int(count) > 0 for count in counts)
    assert "secrets.toml" in Path(page.strip()).read_text()


@pytest.mark.thorough  # the wheel, above, is built from the same list
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
