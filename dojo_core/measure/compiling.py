"""Compilers at work: started without a shell in a private folder, under a watchdog (watchdog.py), within
limits of time, memory and file size."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dojo_core.codegen.built import CompileError
from dojo_core.files import write_text
from dojo_core.measure import watchdog
from dojo_core.measure.compiler import the_compiler
from dojo_core.measure.limits import COMPILE_FILE_BYTES, COMPILE_MEMORY, MESSAGE_CHARACTERS
from dojo_core.system import end_group

LOOK_SECONDS = 0.1  # between two looks whether what is compiled is still wanted


def compile_source(
    source: str,
    options: list[str],
    folder: Path,
    output: str,
    timeout: float,
    command: tuple[str, ...] | None = None,
    libraries: tuple[str, ...] = (),
    unwanted: Callable[[], bool] = lambda: False,
) -> CompileError | None:
    """Compile ``source``, C unless the options say otherwise, to ``folder/output``. What the compiler said
    where that fails; it is stopped where that is ``unwanted``.

    ``command``: another compiler than this machine's, with what it is told of every file. ``libraries``: what
    is linked behind it.
    """
    write_text(folder / "kernels.c", source)
    if command is None:
        compiler = the_compiler()
        command = (compiler.path, *compiler.flags)
    path = shutil.which(command[0]) or command[0]
    words = [path, "-std=gnu11", *command[1:], *options, "kernels.c", "-o", output, *libraries]
    status, text = run_watched(words, folder, timeout, unwanted=unwanted)
    if status == 0:
        return None
    # Killed, as by a lack of memory: the driver ends with 4 then, with 1 after an error in the source.
    settled = status == 1 and "Killed signal" not in text
    return CompileError(text, "", settled)


def run_watched(
    command: list[str],
    folder: Path,
    timeout: float,
    characters: int = MESSAGE_CHARACTERS,
    unwanted: Callable[[], bool] = lambda: False,
) -> tuple[int | None, str]:
    """Run a compiler in ``folder`` within limits: (its status, what it said). Status None: it was stopped,
    after ``timeout`` seconds or because it was ``unwanted``."""
    limits = [str(int(timeout) + 5), str(COMPILE_MEMORY), str(COMPILE_FILE_BYTES)]
    with (folder / "messages").open("w") as messages:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, *limits, *command],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=messages,
            env={**_compilers_environment(), "LC_ALL": "C", "TMPDIR": str(folder)},
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            if not _closes_within(process.stdout.fileno(), timeout, unwanted):
                late = f"The compiler took more than {timeout:g} s and was stopped."
                return None, "The compiler was stopped." if unwanted() else late
            status = process.wait()
        finally:
            if process.returncode is None:
                end_group(process.pid)
                process.wait()
            process.stdin.close()
            process.stdout.close()
    text = (folder / "messages").read_text(errors="replace")[:characters]
    return status, text or (
        "" if status == 0 else f"The compiler ended with status {status} and said nothing."
    )


def _compilers_environment() -> dict[str, str]:
    """What compilers find their own files by: those loaded as a module, or on macOS, not by PATH alone."""
    names = ("LD_LIBRARY_PATH", "DEVELOPER_DIR", "SDKROOT")
    return {"PATH": os.defpath} | {n: os.environ[n] for n in ("PATH", *names) if n in os.environ}


def _closes_within(descriptor: int, seconds: float, unwanted: Callable[[], bool]) -> bool:
    """Wait for a child to end, which closes its output, while that is not ``unwanted``.
    ``Popen.wait(timeout)`` looks every 50 ms: a third of a compilation."""
    poll, deadline = select.poll(), time.monotonic() + seconds
    poll.register(descriptor, select.POLLIN)
    while not unwanted():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        if poll.poll(1000 * min(left, LOOK_SECONDS)):
            return True
    return False
