"""The tests in several processes: forks of one that has imported and collected them.

Processes that start anew import and collect all of it each; forks share it, and its memory. Each is told a
test and the one after it, whose fixtures it keeps, and answers with one message when the first has ended. A
file is one process's, as what its tests share is made once, and so are tests marked with the same
``xdist_group``. One that has nothing left takes half of what another has not begun of its file. What one
process must do alone ends last, so that the others let it go first where they want the same processor.

``--numprocesses`` (``-n``) says how many; 0: none. The option is pytest-xdist's, which runs the tests in its
own way where Linux is not, as a fork of what has threads may hang there, and with another ``--dist`` than
``worksteal``. It need not be installed.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import Any
from warnings import WarningMessage

import pytest

PROCESSES = pytest.StashKey[int]()
PATIENCE = 30  # seconds for fixtures to end in a process that is interrupted
BESIDE = 5  # by how much the priority is lower of a process that does not begin with what it must do alone


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Those of pytest-xdist, where it is not."""
    if not pluginmanager.has_plugin("xdist"):
        parser.addoption("--numprocesses", type=int, default=0, help="processes that run the tests; 0: none")
        parser.addoption("--dist", default="no", help="worksteal: how processes share the tests")


def pytest_cmdline_main(config: pytest.Config) -> None:
    """After pytest-xdist's, which then has nothing to distribute."""
    options = config.option
    if options.dist == "worksteal" and sys.platform == "linux" and not options.usepdb:
        config.stash[PROCESSES] = options.numprocesses
        options.dist, options.tx = "no", []


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """None: pytest's own loop does it, or says why not."""
    count = min(session.config.stash.get(PROCESSES, 0), len(session.items))
    if not count or session.testsfailed or session.config.option.collectonly:
        return None
    Forks(session).run(count)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


class Plan:
    """Which test comes next in which process; tests by their places among all."""

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        groups: dict[str | Path, list[int]] = {}
        self.undivided = set[int]()
        for index, item in enumerate(items):
            mark = item.get_closest_marker("xdist_group")
            groups.setdefault(mark.args[0] if mark else item.path, []).append(index)
            if mark:
                self.undivided.add(index)
        # What one process does alone begins first.
        first = sorted(groups.values(), key=lambda group: group[0] not in self.undivided)
        self._waiting = deque(map(deque, first))
        self._begun: dict[int, deque[int]] = {}

    def following(self, process: int) -> int | None:
        mine = self._begun.setdefault(process, deque())
        if not mine:
            mine.extend(self._waiting.popleft() if self._waiting else self._taken())
        return mine.popleft() if mine else None

    def _taken(self) -> Iterator[int]:
        """The latter half of what is left of a file of another process."""
        others = (tests for tests in self._begun.values() if tests and tests[-1] not in self.undivided)
        longest = max(others, key=len, default=deque[int]())
        half = [longest.pop() for _ in range((len(longest) + 1) // 2)]
        return reversed(half)

    def put_back(self, process: int, tests: Sequence[int]) -> bool:
        """What a process that died leaves; whether that is anything."""
        left = deque([*tests, *self._begun.pop(process)])
        if left:
            self._waiting.appendleft(left)
        return bool(left)


@dataclass
class Ended:
    """What a process tells of a test that ended."""

    reports: list[Any] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Stopped:
    """What a process tells that Ctrl-C, or a test, told to stop."""

    why: str


@dataclass(frozen=True)
class Worker:
    number: int
    process: BaseProcess
    connection: Connection
    told: deque[int]  # the test that it runs, and the next one


class Forks:
    """The processes, as the one sees them that collected, and that says what comes of the tests."""

    def __init__(self, session: pytest.Session) -> None:
        self.session = session
        self.plan = Plan(session.items)
        self.begun = 0
        self.workers: dict[Connection, Worker] = {}
        self.folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.showfspath = False  # a line for each change of file would be one for each test

    def run(self, count: int) -> None:
        try:
            for _ in range(count):
                self._start()
            while self.workers:
                for connection in wait(list(self.workers), timeout=1):
                    self._hear(self.workers[connection])  # type: ignore[index]
                for worker in list(self.workers.values()):
                    # Its end of the pipe may be open still, in a process of its own.
                    if not worker.process.is_alive() and not worker.connection.poll():
                        self._gone(worker)
        finally:
            self._end()

    def _start(self) -> None:
        here, there = get_context("fork").Pipe()
        number, self.begun = self.begun, self.begun + 1
        others = [*self.workers, here]  # which end with this process, and not with its fork
        process = get_context("fork").Process(
            target=work, args=(self.session, there, others, number, self.folder / f"gw{number}")
        )
        process.start()
        there.close()
        self.workers[here] = worker = Worker(number, process, here, deque())
        self._tell(worker)
        self._tell(worker)

    def _tell(self, worker: Worker) -> None:
        stop = self.session.shouldfail or self.session.shouldstop
        test = None if stop else self.plan.following(worker.number)
        if test is not None:
            worker.told.append(test)
        with suppress(ConnectionError):  # it died, which is heard
            worker.connection.send(test)

    def _hear(self, worker: Worker) -> None:
        try:
            told = worker.connection.recv()
        except (EOFError, ConnectionError):
            return self._gone(worker)
        if isinstance(told, Stopped):
            self.session.shouldstop = told.why
            return
        self._report(self.session.items[worker.told.popleft()], told)
        if worker.told:
            self._tell(worker)

    def _report(self, item: pytest.Item, told: Ended) -> None:
        config = self.session.config
        config.hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for warning in told.warnings:
            config.hook.pytest_warning_recorded.call_historic(kwargs=warning)
        for data in told.reports:
            report = config.hook.pytest_report_from_serializable(config=config, data=data)
            config.hook.pytest_runtest_logreport(report=report)
        config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _gone(self, worker: Worker) -> None:
        """It came to its end; or it died, which is a failure of the test that it ran, and another goes on."""
        del self.workers[worker.connection]
        worker.connection.close()
        worker.process.join()
        if not worker.told or self.session.shouldfail or self.session.shouldstop:
            return
        code = worker.process.exitcode or 0
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        ran, *rest = worker.told
        item = self.session.items[ran]
        died = pytest.TestReport(
            item.nodeid, item.location, {}, "failed", f"The process that ran it died: {how}.", "call"
        )
        data = self.session.config.hook.pytest_report_to_serializable(config=self.session.config, report=died)
        self._report(item, Ended([data]))
        if self.plan.put_back(worker.number, rest):
            self._start()

    def _end(self) -> None:
        """Those that are left, of a run that was interrupted, end with their fixtures."""
        for worker in self.workers.values():
            worker.connection.close()
            if worker.process.is_alive() and worker.process.pid is not None:
                os.kill(worker.process.pid, signal.SIGINT)
        for worker in self.workers.values():
            worker.process.join(PATIENCE)
            worker.process.kill()


class Heard:
    """A plugin that hears what pytest says of a test."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.ended = Ended()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.ended.reports.append(data)

    def pytest_warning_recorded(
        self,
        warning_message: WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        said = warning_message
        known = said.category if said.category.__module__ == "builtins" else Warning  # which can be sent
        plain = WarningMessage(str(said.message), known, said.filename, said.lineno)
        told = {"warning_message": plain, "when": when, "nodeid": nodeid, "location": location}
        self.ended.warnings.append(told)


def print_apart(config: pytest.Config) -> None:
    """What tests print goes into files of this process, and no longer into those of the one that was forked.
    Those streams stay what they are, as what was imported may have kept them."""
    if config.getoption("capture", "no") != "fd":
        return
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    capture.resume_global_capture()
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        with TemporaryFile(buffering=0) as fresh:
            os.dup2(fresh.fileno(), stream.fileno())
            os.dup2(fresh.fileno(), number)
    capture.suspend_global_capture()


class Silent:
    """In the place of the plugin that prints results: a test that takes too long prints its stacks by it, and
    one that is run again looks in it for what its first try had said."""

    def __init__(self, config: pytest.Config) -> None:
        self._tw = config.get_terminal_writer()
        self.stats: dict[str, list[Any]] = {}


def interrupted(*_: object) -> None:
    """The first Ctrl-C. The keyboard's comes to all processes, and once more from the one that asks them: the
    second one must not meet fixtures that end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def work(
    session: pytest.Session, connection: Connection, others: Sequence[Connection], number: int, folder: Path
) -> None:
    """In a fork: runs the tests that it is told; ``folder`` is for what they write."""
    for other in others:
        other.close()
    config = session.config
    config.workerinput = {"workerid": f"gw{number}"}  # type: ignore[attr-defined]  # as plugins look for it
    os.environ["PYTEST_XDIST_WORKER"] = f"gw{number}"
    config.option.basetemp = str(folder)
    config._tmp_path_factory = pytest.TempPathFactory.from_config(config, _ispytest=True)  # type: ignore[attr-defined]
    sys.modules["__main__"] = ModuleType("__main__")  # processes of multiprocessing run no pytest
    atexit._clear()
    silent = Silent(config)
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(silent, "terminalreporter")
    heard = Heard(config)
    config.pluginmanager.register(heard)
    heard.ended = Ended()  # without the warnings of before, which pytest tells each that comes
    print_apart(config)
    signal.signal(signal.SIGINT, interrupted)
    try:
        running = connection.recv()
        if running is not None and not session.items[running].get_closest_marker("xdist_group"):
            os.nice(BESIDE)
        while running is not None and not session.shouldfail and not session.shouldstop:
            following = connection.recv()
            after = None if following is None else session.items[following]
            config.hook.pytest_runtest_protocol(item=session.items[running], nextitem=after)
            told, heard.ended = heard.ended, Ended()
            connection.send(told)
            running = following
    except (EOFError, ConnectionError):
        pass  # the one that asks is gone
    except (KeyboardInterrupt, pytest.exit.Exception) as fault:
        with suppress(ConnectionError):
            connection.send(Stopped(str(fault) or type(fault).__name__))
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # fixtures end, however often it is told
        config.hook.pytest_sessionfinish(session=session, exitstatus=session.exitstatus)
        atexit._run_exitfuncs()
