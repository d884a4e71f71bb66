"""Runs one command that dies with whoever started it: ``watchdog.py CPU_SECONDS MEMORY FILE_BYTES COMMAND``.

Started in a process group of its own with a pipe as its standard input. When the pipe closes,
because the parent was killed or lost interest, the whole group is killed: a compiler and the
programs that it started. Exits with the command's status; its standard output closes then, which the command
does not have. Run by path, outside any package, so that it starts in some milliseconds.
"""

import math
import os
import resource
import select
import signal
import sys
from contextlib import suppress


def restrict(what: int, least: float, most: float | None = None) -> None:
    """Limit this process: softly to ``least``, hard to ``most`` (the same if not given; infinite: as it is).

    A limit that is lower already stays; macOS refuses some altogether.
    """
    most = least if most is None else most
    ceiling = resource.getrlimit(what)[1]
    if ceiling != resource.RLIM_INFINITY:
        least, most = min(least, ceiling), min(most, ceiling)
    hard = resource.RLIM_INFINITY if most == math.inf else int(most)
    with suppress(ValueError, OSError):
        resource.setrlimit(what, (int(least), hard))


def main(arguments: list[str]) -> int:
    cpu, memory, file_bytes = (int(a) for a in arguments[:3])
    command = arguments[3:]
    restrict(resource.RLIMIT_CPU, cpu, cpu + 1)
    restrict(resource.RLIMIT_FSIZE, file_bytes)
    restrict(resource.RLIMIT_CORE, 0)
    # A child that ends writes here, by its signal: so one wait is for both, on any system.
    ended, ends = os.pipe()
    os.set_blocking(ends, False)
    signal.set_wakeup_fd(ends)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = os.fork()
    if child == 0:
        try:
            restrict(resource.RLIMIT_AS, memory)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.execv(command[0], command)
        finally:
            os._exit(127)
    while True:
        if 0 in select.select([0, ended], [], [])[0]:
            os.killpg(0, signal.SIGKILL)
        number, status = os.waitpid(child, os.WNOHANG)
        if number:
            return os.waitstatus_to_exitcode(status)
        os.read(ended, 4096)  # another signal than the child's end


if __name__ == "__main__":
    status = main(sys.argv[1:])
    os._exit(status if status >= 0 else 128 - status)
