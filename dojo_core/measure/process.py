"""The worker as its parent sees it: asked with a time limit, blamed when it ends, killed with its group."""

from __future__ import annotations

import json
import logging
import math
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from dojo_core.launch import module_command
from dojo_core.measure.limits import OPENMP_STACK, START_SECONDS, WORKER_MEMORY_SHARE
from dojo_core.measure.machine import Machine
from dojo_core.measure.sealed import Damaged
from dojo_core.system import end_group

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1  # between two looks whether an answer is still wanted
# An answer that is no longer wanted is waited for so long: a new worker takes about as long to start.
GRACE_SECONDS = 1.0


class WorkerStopped(Exception):
    """Nobody wanted the answer any more, so the worker was ended."""


class WorkerDied(Exception):
    """The worker ended during a request; ``status`` and ``str()`` say how it is blamed.

    ``outside``: it was killed, by hand or for want of memory, which need not be the candidate's fault.
    """

    def __init__(self, status: str, message: str, outside: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.outside = outside


class WorkerFault(Exception):
    """The worker could not do what it was asked, and lives. ``str()`` is its exception; more in the log."""


class WorkerProcess:
    """One worker and the pipes to it; starts it, and waits until it answers.

    ``command``: another program that answers in the same way; ``greeting`` is its first answer.
    """

    def __init__(self, machine: Machine, command: Sequence[str] = ()) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(machine.cores),
            "OMP_PROC_BIND": "close",
            "OMP_PLACES": "cores",
            "OMP_DYNAMIC": "false",
            "OMP_STACKSIZE": OPENMP_STACK,
            "OPENBLAS_NUM_THREADS": "1",  # NumPy's BLAS keeps no second team of threads beside OpenMP's
            "MALLOC_ARENA_MAX": "2",
        }
        memory = int(machine.memory * WORKER_MEMORY_SHARE)
        self._process = subprocess.Popen(
            [*command] or module_command("dojo_core.measure.worker", str(memory)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        self.pid = self._process.pid
        self.drawn: tuple[object, ...] | None = None  # whose inputs and references it holds
        self.prepared: tuple[object, ...] | None = None  # which workload it holds
        self.greeting = self.ask({"do": "hello"}, START_SECONDS)

    def ask(
        self, request: dict[str, Any], seconds: float, unwanted: Callable[[], bool] = lambda: False
    ) -> dict[str, Any]:
        """Send a request and wait for the answer, while it is not ``unwanted``.

        Raises WorkerDied, and the process is gone then, as after WorkerStopped; WorkerFault; Damaged, where a
        file that the request names is no longer what was put there.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            self.kill()
            raise WorkerDied("crash", "The measuring process was killed.", outside=True) from None
        deadline = time.monotonic() + seconds
        received = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            given_up = math.inf  # when an unwanted answer is waited for no longer
            while not received.endswith(b"\n"):
                now = time.monotonic()
                if now >= deadline:
                    self.kill()
                    raise WorkerDied("timeout", f"It ran for more than {seconds:g} s and was stopped.")
                if unwanted():
                    given_up = min(given_up, now + GRACE_SECONDS)
                if now >= given_up:
                    self.kill()
                    raise WorkerStopped
                if not selector.select(min(deadline - now, LOOK_SECONDS)):
                    continue
                piece = os.read(self._process.stdout.fileno(), 1 << 16)
                if not piece:
                    raise self._ended(received)
                received += piece
        try:
            answer: dict[str, Any] = json.loads(received)
        except ValueError:
            self.kill()
            raise WorkerDied("crash", "It wrote where the measuring process answers.") from None
        if "fault" in answer:
            raise self._faulted(answer)
        if answer["status"] == "fault":
            log.error("the measuring process failed\n%s", answer["message"])
            raise WorkerFault(answer["message"].strip().splitlines()[-1])
        if answer["status"] == "damaged":
            raise Damaged(answer["message"])
        return answer

    def _ended(self, received: bytes) -> WorkerDied:
        status, last_words = self._wait()
        if status == -signal.SIGXCPU:
            return WorkerDied("timeout", "It used more processor time than allowed and was stopped.")
        if status == -signal.SIGKILL:
            return WorkerDied(
                "crash", "The measuring process was killed: by hand, or out of memory.", outside=True
            )
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        return WorkerDied("crash", f"The measuring process ended with {name}. {last_words}".strip())

    def _faulted(self, answer: dict[str, Any]) -> WorkerDied:
        self._wait()
        name, place, offset = answer["buffer"], answer["place"], answer["offset"]
        if name is None:
            return WorkerDied("crash", f"It crashed with {answer['fault']}.")
        if place == "inside":
            return WorkerDied(
                "out_of_bounds", f"It writes into the input {name}, {offset} bytes from its start."
            )
        side = "after the end" if place == "after" else "before the start"
        return WorkerDied("out_of_bounds", f"It reads or writes {offset} bytes {side} of {name}.")

    def _wait(self) -> tuple[int, str]:
        """How it ended, and the last that it said."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        status = self._process.returncode
        self._log.seek(0)
        last_words = self._log.read()[-500:].decode(errors="replace").strip()
        self.kill()
        return status if status is not None else -signal.SIGKILL, last_words

    def kill(self) -> None:
        """End the process and everything in its group."""
        end_group(self.pid)
        self._process.wait()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()
