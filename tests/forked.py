"""pytest's workers as forks of one process that has imported the tests and what they test.

Four that start anew import all of it four times: forks share it, and its memory. In a fresh clone the
bytecode of the tests, whose assertions are rewritten, is made once as well. xdist has no door for it: its
workers are gateways of execnet, and these get the pipes of a fork instead of those of a new interpreter.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest
from execnet import gateway_io
from execnet.gateway_base import Popen2IO
from execnet.gateway_io import popen_bootstrapline

HERE = Path(__file__).parent


class Fork(Popen2IO):
    """A worker, waiting for what execnet says first, and the pipes to it."""

    def __init__(self, others: Sequence[Fork]) -> None:
        """``others``: those made before, whose pipes end with this process and not with its fork."""
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            for pipe in (pipe for other in others for pipe in other._pipes):
                pipe.close()
            os.close(to_write)
            os.close(from_read)
            work(to_read, from_write)
        os.close(to_read)
        os.close(from_write)
        self._pipes = os.fdopen(to_write, "wb"), os.fdopen(from_read, "rb")

    def as_gateway(self, execmodel: Any) -> Fork:
        super().__init__(*self._pipes, execmodel=execmodel)
        return self

    def wait(self) -> int | None:
        try:
            return os.waitpid(self.pid, 0)[1]
        except ChildProcessError:
            return None

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def work(given: int, told: int) -> NoReturn:
    """What ``python -c`` does with execnet's line, in a fork; ends the process."""
    try:
        os.dup2(given, 0)
        os.dup2(told, 1)
        os.close(given)
        os.close(told)
        sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
        sys.modules["__main__"] = main = ModuleType("__main__")  # processes of multiprocessing run no pytest
        exec(popen_bootstrapline, vars(main))
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def pytest_sessionstart(session: pytest.Session) -> None:
    """In the process that starts workers for the whole suite, before it does (which it does last)."""
    config = session.config
    specs = config.getoption("tx", None)
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not whole or not specs or hasattr(config, "workerinput"):
        return
    # What is imported may keep the streams that it finds: those of this process are for what pytest says.
    nowhere = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    with redirect_stdout(nowhere), redirect_stderr(nowhere):
        for file in sorted(HERE.rglob("test_*.py")):
            importlib.import_module(".".join(file.relative_to(HERE.parent).with_suffix("").parts))
    gc.freeze()
    forks: list[Fork] = []
    for _ in specs:
        forks.append(Fork(forks))
    anew = gateway_io.create_io

    def create_io(spec: Any, execmodel: Any) -> Any:
        """A worker that takes the place of one that died is started anew."""
        return forks.pop().as_gateway(execmodel) if forks else anew(spec, execmodel)

    gateway_io.create_io = create_io
