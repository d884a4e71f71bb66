"""One measurement at a time on the machine, whoever asks for it, and no compiler beside one."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents.cli import app
from dojo_core.measure import exclusive, holders
from dojo_core.measure.alone import measured_alone
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.exclusive import announcer, compiling, measuring, waiting
from dojo_core.measure.measurement import Measurement
from dojo_core.measure.records import Records
from tests.homes import with_objects
from tests.thorough import one_of

pytestmark = pytest.mark.usefixtures("kept_workers")

ROOT = Path(__file__).resolve().parent.parent
TAKING_TURNS = """
import json, time
from dojo_core.measure.exclusive import compiling, measuring
held = []
for n in range(20):
    with (measuring if n % 2 else compiling)() as claim:
        begin = time.monotonic()
        time.sleep(0.003)
        held.append((n % 2, begin, time.monotonic(), claim.alone()))
print(json.dumps(held))
"""
# Holds the lock until a line comes, then says whether it had it alone; once more for each line.
HOLDING = """
import sys
from dojo_core.measure.exclusive import compiling, measuring
for _ in range(2):
    with {way}() as claim:
        print("held", flush=True)
        sys.stdin.readline()
        print(claim.alone(), flush=True)
"""
# Another user from here on; the interpreter itself may lie where that user may not look.
AS_NOBODY = """
import ctypes, os
import dojo_core.measure.exclusive
os.setgid(65534)
os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: /proc tells of it, as of a process that was started so
"""
# The same, with a child in a session of its own that computes, as a worker may.
WITH_A_WORKER = """
import subprocess, sys
from dojo_core.measure.exclusive import measuring
with measuring():
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
    print("held", flush=True)
    sys.stdin.readline()
    busy.kill()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of this test's own: others may measure meanwhile."""
    place = tmp_path / "lock"
    monkeypatch.setenv("DOJO_LOCK_DIR", str(place))
    return place


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What people are told, some sooner than in earnest."""
    sentences: list[str] = []
    monkeypatch.setattr(announcer, "say", sentences.append)
    monkeypatch.setattr(exclusive, "TELL_SECONDS", 0.3)
    return sentences


class Process:
    """A process that runs one of the texts above."""

    def __init__(self, script: str) -> None:
        command = [sys.executable, "-c", script]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        self.pid = self._process.pid

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def go_on(self) -> str:
        """The process' next line."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.line()

    def stop(self) -> None:
        """As Ctrl-Z does, but for good: no handler of the process is asked."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def output(self) -> str:
        return self._process.communicate(timeout=300)[0]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def holder(script: str = HOLDING, *, way: str = "measuring") -> Iterator[Process]:
    process = Process(script.format(way=way))
    try:
        assert process.line() == "held"
        yield process
    finally:
        process.end()


def within(seconds: float) -> Callable[[], bool]:
    """Cancels a wait that takes too long."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() > until


def once_told(said: list[str], end: str = "") -> Callable[[], bool]:
    """Cancels a wait as soon as somebody was told of it, with such an end."""
    late = within(60)
    return lambda: late() or any(sentence.endswith(end) for sentence in said)


def waits(folder: Path, process: Process) -> bool:
    return any(f"-{process.pid}-" in note.name for note in folder.glob("cpu.waits.*"))


def turns_of_three(folder: Path) -> list[tuple[int, int, float, float, bool]]:
    processes = [Process(TAKING_TURNS) for _ in range(3)]
    return [(n, *span) for n, process in enumerate(processes) for span in json.loads(process.output())]


def overlapping(held: list[tuple[int, int, float, float, bool]]) -> bool:
    """Does a measurement run, and something of another process beside it?"""
    return any(
        one != other and begin < stop and start < end
        for one, measured, begin, end, _ in held
        if measured
        for other, _, start, stop, _ in held
    )


def test_measurements_of_several_processes_never_overlap(folder: Path) -> None:
    held = turns_of_three(folder)
    assert len(held) == 60
    assert not overlapping(held)
    assert all(alone for *_, alone in held)
    assert [file.name for file in folder.iterdir()] == ["cpu.lock.1"], "no note outlives its claim"


def test_compilers_that_overlap_do_not_keep_a_measurement_out() -> None:
    stop = threading.Event()

    def compile_on(first: float) -> None:
        time.sleep(first)
        while not stop.is_set():
            with compiling():
                time.sleep(0.03)

    compilers = [threading.Thread(target=compile_on, args=(0.01 * n,)) for n in range(3)]
    for each in compilers:
        each.start()
    time.sleep(0.05)
    with measuring(within(60)) as claim:
        stop.set()
        assert claim
    for each in compilers:
        each.join()


# ------------------------------------------------------------------ a holder that is stopped


@pytest.mark.parametrize("way", one_of(2, ["measuring", "compiling"]))
def test_a_stopped_holder_is_passed_over_and_asks_anew(folder: Path, said: list[str], way: str) -> None:
    with holder(way=way) as stopped:
        stopped.stop()
        with measuring(within(60)) as claim:
            assert claim
            assert claim.alone()
        assert f"(pid {stopped.pid})" in said[-1] and said[-1].startswith("Going on without")
        assert said[-1].endswith(", stopped: its time will not count as taken alone.")

        # those who pass it over exclude each other, though the old file is still locked
        held = turns_of_three(folder)
        assert not overlapping(held)
        assert all(alone for *_, alone in held)

        stopped.resume()
        assert stopped.go_on() == "False", "what it timed does not count as taken alone"
        assert stopped.line() == "held", "it takes the lock that the others take now"
        assert stopped.go_on() == "True"
    with measuring():
        assert sorted(file.name for file in folder.glob("*.lock.*")) == ["cpu.lock.2"]


def test_a_measurement_during_which_a_stopped_holder_is_continued_was_not_alone() -> None:
    with holder() as stopped:
        stopped.stop()
        with measuring(within(60)) as claim:
            assert claim.alone()
            stopped.resume()
            stopped.go_on()
            assert not claim.alone()


def test_a_stopped_holder_whose_worker_computes_is_not_passed_over(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exclusive, "TELL_SECONDS", 2)  # longer than it takes to pass somebody over
    with holder(WITH_A_WORKER) as stopped:
        stopped.stop()
        with measuring(once_told(said)) as claim:
            assert not claim
        stopped.resume()
        stopped.go_on()
    assert said[-1].endswith(", stopped, though what it started runs on.")


def test_a_stopped_process_that_waits_keeps_nobody_out(folder: Path) -> None:
    with holder() as first:
        second = Process(HOLDING.format(way="measuring"))
        while not waits(folder, second):  # with the older ticket
            time.sleep(0.02)
        second.stop()
        assert first.go_on() == "True"
        first.end()
        with measuring(within(60)) as claim:
            assert claim
        second.resume()
        assert second.line() == "held"
        second.end()


def test_what_a_killed_holder_left_is_removed(folder: Path) -> None:
    with holder() as killed:
        os.kill(killed.pid, signal.SIGKILL)
    assert len(list(folder.glob("cpu.holds.*"))) == 1
    with holder(), measuring(within(0.5)) as claim:
        assert not claim
        assert len(list(folder.glob("cpu.holds.*"))) == 1, "of the one that lives"


def test_a_measurement_that_was_disturbed_is_taken_once_more() -> None:
    taken = []

    def take() -> Measurement:
        taken.append(1)
        if len(taken) == 1:
            (exclusive.LockFolder().path / "cpu.disturbed").write_text("by another")
        return Measurement("program", "code", "ok")

    outcome = measured_alone(take)
    assert outcome is not None and outcome.conditions == Conditions(exclusive=True)
    assert len(taken) == 2


# ------------------------------------------------------------------ a holder that runs


def test_who_holds_it_is_told_once(said: list[str]) -> None:
    with holder() as running:
        with measuring(once_told(said)) as claim:
            assert not claim
        with measuring(within(1)) as claim:
            assert not claim
    assert len(said) == 1
    assert said[0].startswith("Waiting for the measuring lock: held by `python")
    assert f"(pid {running.pid}), since {time.strftime('%H:')}" in said[0]
    assert said[0].endswith(", running.")


def test_measuring_anyway_marks_its_times_and_those_that_it_disturbs(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with holder() as running:
        monkeypatch.setenv("DOJO_ANYWAY", "1")
        outcome = measured_alone(lambda: Measurement("program", "code", "ok"), within(60))
        assert outcome is not None and not outcome.conditions.exclusive
        assert outcome.conditions.busy
        assert running.go_on() == "False"
        running.end()
        outcome = measured_alone(lambda: Measurement("program", "code", "ok"), within(60))
        assert outcome is not None and outcome.conditions.exclusive, "nobody is there to be beside"
    assert said == [said[0]] and said[0].startswith("Measuring beside `python")


def test_a_page_is_told_and_can_have_it_measured_anyway(said: list[str]) -> None:
    with holder() as running:
        assert waiting() is None
        outcomes: list[Measurement | None] = []

        def measure() -> None:
            outcomes.append(measured_alone(lambda: Measurement("program", "code", "ok"), within(60)))

        thread = threading.Thread(target=measure)
        thread.start()
        deadline = within(60)
        while (wait := waiting()) is None:
            assert not deadline()
            time.sleep(0.05)
        assert f"(pid {running.pid})" in wait.sentence
        wait.measure_anyway()
        thread.join()
        assert outcomes[0] is not None and not outcomes[0].conditions.exclusive
        assert waiting() is None


# ------------------------------------------------------------------ the command line


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path / "home")))
    monkeypatch.setattr(exclusive, "TELL_SECONDS", 0.3)
    monkeypatch.setattr(announcer, "say", announcer.say)  # what a command sets is undone


def test_a_command_says_for_whom_it_waits_and_goes_on_waiting(home: None) -> None:
    with holder() as running:
        release = threading.Timer(2, running.end)
        release.start()
        result = CliRunner().invoke(app, ["time", "relu", "--shape", "8x16"])
        release.join()
    assert result.exit_code == 0, result.output
    told = " ".join(result.stderr.split())
    assert told.count("Waiting for the measuring lock: held by") == 1
    assert f"(pid {running.pid})" in told
    assert "verified" in result.stdout


def test_anyway_measures_at_once_and_says_so(home: None) -> None:
    with holder() as running:
        result = CliRunner().invoke(app, ["time", "relu", "--shape", "8x16", "--anyway"])
        assert running.go_on() == "False", "the other's time is marked too"
    assert result.exit_code == 0, result.output
    assert "Measuring beside `python" in " ".join(result.stderr.split())
    with Records() as records:
        assert [(r.status, r.exclusive) for _, r in records.measurements()] == [("ok", False)]
    assert "DOJO_ANYWAY" not in os.environ


@pytest.mark.parametrize("target", ["snitch", "hip"])
def test_what_no_clock_of_the_processor_times_does_not_wait_for_it(home: None, target: str) -> None:
    with measuring():
        result = CliRunner().invoke(app, ["time", "relu", "--shape", "8x64", "--target", target])
    assert result.exit_code == 0, result.output
    assert "Waiting" not in result.stderr


def test_every_command_that_measures_can_do_so_anyway() -> None:
    commands = "time bench export reproduce tune compare worker train try probe-encoder"
    for command in (*commands.split(), "lesson:measure", "lesson:mine", "study:time"):
        told = CliRunner().invoke(app, [*command.split(":"), "--help"]).output
        assert "--anyway" in told, command


# ------------------------------------------------------------------ a folder for all users


def test_the_folder_is_open_to_all_users_whatever_the_mask(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        with measuring():
            pass
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o777
    assert (folder / "cpu.lock.1").stat().st_mode & 0o777 == 0o666


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("first", ["root", "another"])
def test_two_users_exclude_each_other(folder: Path, tmp_path: Path, said: list[str], first: str) -> None:
    for part in (tmp_path, *tmp_path.parents):
        if part.owner() == "root" and part != Path("/") and str(part).startswith("/tmp/"):
            part.chmod(part.stat().st_mode | 0o755)
    if first == "root":
        with measuring():
            pass
    else:
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
    with holder(AS_NOBODY + HOLDING) as other:
        with measuring(once_told(said)) as claim:
            assert not claim
        assert f"(pid {other.pid} of nobody)" in said[0]
        assert other.go_on() == "True"
        assert other.line() == "held"
        other.stop()
        with measuring(within(60)) as claim:
            assert claim and claim.alone()


def test_who_waits_in_a_folder_that_is_removed_goes_on_in_a_new_one(folder: Path) -> None:
    with holder() as first:
        release = threading.Timer(0.5, folder.rename, (folder.with_name("gone"),))
        release.start()
        with measuring(within(60)) as claim:
            assert claim and claim.alone()
        release.join()
        assert first.go_on() == "False", "it cannot know who ran beside it"


def test_a_folder_that_cannot_be_used_is_a_sentence(folder: Path, tmp_path: Path) -> None:
    folder.write_text("a file")
    with pytest.raises(OSError, match=r"The folder of the measuring lock, .*DOJO_LOCK_DIR"), measuring():
        pass


def test_a_link_in_its_place_is_not_followed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    folder.mkdir()
    (folder / "cpu.lock.1").symlink_to(precious)
    with pytest.raises(OSError), measuring():
        pass
    assert precious.read_text() == "mine"
    monkeypatch.setattr("dojo_core.measure.holders.lock_directory", lambda: tmp_path / "link")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(OSError, match="cannot be used"), measuring():
        pass


def test_a_note_that_says_nonsense_does_no_harm(folder: Path, said: list[str]) -> None:
    import fcntl

    with measuring():
        pass
    lock, note = (folder / "cpu.lock.1").open(), (folder / "cpu.holds.1.alone.7").open("w")
    for file in (lock, note):
        fcntl.flock(file, fcntl.LOCK_EX)
    note.write(json.dumps({"pid": 1, "namespace": "", "since": 1e300, "command": "\x1b[2Jgone\n" * 99}))
    note.flush()
    with measuring(once_told(said)) as claim:
        assert not claim
    assert "\x1b" not in said[0] and "\n" not in said[0] and len(said[0]) < 300
    note.truncate(0)
    with measuring(once_told(said, "left no note of itself.")) as claim:
        assert not claim
    assert said[1] == "Waiting for the measuring lock: held by a process that left no note of itself."


def test_a_long_command_line_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["/usr/bin/python3", "/usr/bin/dojo", "bench", "softmax"])
    assert holders.command_line() == "dojo bench softmax"
    monkeypatch.setattr(sys, "orig_argv", ["/usr/bin/python3", "-m", "streamlit", "run", "a" * 200])
    told = holders.command_line()
    assert told.startswith("python3 -m streamlit run aaa") and told.endswith("a…") and len(told) == 120
