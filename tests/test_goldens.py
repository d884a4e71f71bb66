"""Goldens and the switch that writes them anew, as a contributor meets them: in runs of pytest."""

import os
import subprocess
import sys

import pytest

from dojo_core.line import recorded_lines
from tests.goldens import FOLDER, ROOT

TEST = """\
from pathlib import Path

def test_the_square(golden):
    golden(Path(__file__).parent / "golden" / "square.txt", "1\\n4\\n9\\n")
"""


@pytest.fixture
def run(tmp_path):
    """Runs the test above in a folder of its own; returns the exit status and what pytest printed."""
    (tmp_path / "test_square.py").write_text(TEST)

    def pytest_(*options, **environment):
        # An __init__.py that somebody left above, in /tmp say, would be imported without the second limit.
        command = [sys.executable, "-m", "pytest", "-c", os.devnull]
        command += [f"--rootdir={tmp_path}", f"--confcutdir={tmp_path}"]
        command += ["-p", "no:cacheprovider", "-p", "tests.goldens", *options]
        known = {name: value for name, value in os.environ.items() if name != "CI"}
        known |= {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_DEBUG_TEMPROOT": str(tmp_path),
            **environment,
        }
        command.append(str(tmp_path / "test_square.py"))
        ran = subprocess.run(command, cwd=ROOT, env=known, capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr

    return pytest_


def test_a_golden_that_differs_fails_with_the_difference_and_the_command_that_rewrites_it(run, tmp_path):
    file = tmp_path / "golden" / "square.txt"
    status, told = run()
    assert status == 1 and f"There is no {file}." in told

    file.parent.mkdir()
    file.write_text("1\n4\n8\n")
    status, told = run()
    assert status == 1 and "\n-8\n+9\n" in told
    assert "If that is meant: python -m pytest 'test_square.py::test_the_square' --update-goldens" in told
    assert file.read_text() == "1\n4\n8\n", "only the switch writes"


@pytest.mark.thorough  # the difference and its command: above
def test_the_switch_writes_what_differs_and_lists_it_also_where_tests_run_in_parallel(run, tmp_path):
    file = tmp_path / "golden" / "square.txt"
    status, told = run("-p", "tests.forked", "--numprocesses=1", "--dist=worksteal", "--update-goldens")
    assert status == 0 and "goldens written anew: look at git diff" in told and f"\n{file}\n" in told
    assert file.read_text() == "1\n4\n9\n"
    status, told = run("--update-goldens")
    assert status == 0 and "written anew" not in told, "what is right is left alone"


def test_where_CI_is_set_goldens_are_only_compared(run, tmp_path):
    status, told = run("--update-goldens", CI="true")
    assert status == pytest.ExitCode.USAGE_ERROR and "CI is set: there they are compared only" in told
    assert not (tmp_path / "golden").exists()


def test_each_file_belongs_to_a_line_that_is_there():
    """What was renamed leaves nothing behind that no test reads."""
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(recorded_lines())
    for target, beside in {"cuda": set(), "snitch": {"exp", "vadd"}}.items():
        assert {file.stem for file in (FOLDER / target).iterdir()} == set(recorded_lines(target)) | beside
