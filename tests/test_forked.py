"""Tests in forks of the process that collected them: what comes of them is what one process would say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forked import BESIDE
from tests.goldens import ROOT
from tests.thorough import one_of

Run = Callable[..., tuple[int, str]]

SOME = """\
import os, signal, warnings
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    yield folder
    Path("ended").open("a").write(f"{__name__}-{os.getpid()}\\n")

@pytest.mark.parametrize("number", range(9))
def test_passes(number, mine, tmp_path):
    assert mine.is_dir() and tmp_path.is_dir()

def test_fails(mine):
    print("printed")
    assert 1 + 1 == 3

@pytest.mark.skip(reason="not today")
def test_skipped():
    pass

@pytest.mark.xfail
def test_expected():
    assert False

def test_warns():
    warnings.warn("mind this")

@pytest.fixture
def broken():
    raise ValueError("no fixture")

def test_without_its_fixture(broken):
    pass

def test_output(capfd):
    os.system("echo told")
    assert capfd.readouterr().out == "told\\n"

"""
TWO = ("--numprocesses=2", "--dist=worksteal")
DIES = "def test_dies():\n    import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n\n"
LAST = "def test_last(mine):\n    pass\n"


def arguments(folder: Path, *options: str) -> list[str]:
    limits = [f"--rootdir={folder}", f"--confcutdir={folder}", "-p", "no:cacheprovider"]
    ours = ["-c", os.devnull, "-p", "tests.forked"]
    return [sys.executable, "-m", "pytest", *options, *ours, *limits, str(folder)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs pytest on files of tests; its exit status, and what it printed."""

    def pytest_(*options: str, **files: str) -> tuple[int, str]:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        ran = subprocess.run(
            arguments(tmp_path, *options),
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
        )
        return ran.returncode, ran.stdout + ran.stderr

    return pytest_


def environment(folder: Path) -> dict[str, str]:
    """Without a look at the folder of these tests' own files, which pytest would close to other users."""
    ours = {"PYTHONPATH": str(ROOT), "PYTEST_DEBUG_TEMPROOT": str(folder)}
    return {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **ours}


def test_all_is_told_also_of_a_process_that_dies(run: Run, tmp_path: Path) -> None:
    status, told = run(*TWO, test_some=SOME + DIES + LAST, test_more=SOME)
    assert status == pytest.ExitCode.TESTS_FAILED
    counts = "3 failed, 23 passed, 2 skipped, 2 xfailed, 2 warnings, 2 errors"
    assert counts in told, told
    assert "The process that ran it died: SIGSEGV." in told
    assert "assert (1 + 1) == 3" in told and "ValueError: no fixture" in told and "mind this" in told
    assert "Captured stdout call" in told, "what a test printed stands beside its failure"
    ended = (tmp_path / "ended").read_text().split()
    assert len(ended) == len(set(ended)) > 0, "what the tests of a file share ends once in each process"


def test_the_first_failure_ends_all_where_that_is_asked(run: Run) -> None:
    status, told = run(*TWO, "-x", test_some="def test_fails(): assert False\n" + SOME)
    assert status == pytest.ExitCode.TESTS_FAILED and "stopping after" in told, told
    assert " passed" not in told or int(told.rpartition(" passed")[0].split()[-1]) < 9


def test_a_file_that_cannot_be_imported_is_told_and_no_test_runs(run: Run) -> None:
    status, told = run(*TWO, test_some=SOME, test_broken="import nothing_of_that_name\n")
    assert status == pytest.ExitCode.INTERRUPTED and "nothing_of_that_name" in told and "passed" not in told


UNSTEADY = """\
import pytest
from pathlib import Path

@pytest.mark.flaky(reruns=1)
def test_passes_when_run_again():
    assert Path("tried").exists() or Path("tried").write_text("") != 0, "too early"

@pytest.mark.flaky(reruns=1)
def test_fails_again():
    assert False

"""


def test_a_test_that_may_fail_once_is_run_again_and_that_is_told(run: Run) -> None:
    status, told = run(*TWO, "-p", "pytest_rerunfailures", "-rR", test_some=UNSTEADY, test_more=SOME)
    assert status == pytest.ExitCode.TESTS_FAILED and "2 failed, 12 passed" in told and "2 rerun" in told, (
        told
    )
    assert "RERUN" in told and "test_passes_when_run_again" in told


@pytest.mark.thorough  # nobody asks for one here
def test_pytest_xdist_runs_them_where_another_distribution_is_asked(run: Run) -> None:
    status, told = run("-p", "xdist", "-n", "1", "--dist=load", test_some=SOME)
    assert status == pytest.ExitCode.TESTS_FAILED and "1 worker [15 items]" in told and "11 passed" in told, (
        told
    )


ALONE = """\
import os, pytest

@pytest.mark.xdist_group("alone")
@pytest.mark.parametrize("number", range(2))
def test_alone(number):
    assert os.nice(0) == {priority}
"""


def test_what_one_process_does_alone_goes_first(run: Run) -> None:
    alone, lower = (ALONE.format(priority=min(os.nice(0) + less, 19)) for less in (0, BESIDE))
    status, told = run(
        *TWO, test_alone=alone, test_more=lower.replace('@pytest.mark.xdist_group("alone")', "")
    )
    assert status == pytest.ExitCode.OK and "4 passed" in told, told


SLOW = """\
import os, time
from pathlib import Path
import pytest

@pytest.fixture(scope="session")
def server():
    yield
    time.sleep(0.3)  # in which a second Ctrl-C comes
    Path(f"ended-{os.getpid()}").touch()

@pytest.mark.parametrize("number", range(100))
def test_hangs(number, server):
    Path(f"begun-{os.getpid()}").touch()
    time.sleep(600)
"""


@pytest.mark.parametrize("all_of_them", one_of(2, [True, False]), ids=["keyboard", "one process"])
def test_ctrl_c_ends_all_processes_and_their_fixtures(tmp_path: Path, all_of_them: bool) -> None:
    (tmp_path / "test_slow.py").write_text(SLOW)
    ran = subprocess.Popen(
        arguments(tmp_path, *TWO),
        cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in what a shell has behind
    )  # fmt: skip
    while len(list(tmp_path.glob("begun-*"))) < 2:
        assert ran.poll() is None
        time.sleep(0.05)
    (os.killpg if all_of_them else os.kill)(ran.pid, signal.SIGINT)
    told, _ = ran.communicate()
    assert ran.returncode == pytest.ExitCode.INTERRUPTED, told
    assert len(list(tmp_path.glob("ended-*"))) == 2
    with pytest.raises(ProcessLookupError):
        os.killpg(ran.pid, 0)
