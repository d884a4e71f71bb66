"""Runs one command that dies with whoever started it: ``watchdog.py CPU_SECONDS MEMORY FILE_BYTES COMMAND``.

Started in a process group of its own with a pipe as its standard input. When the pipe closes,
because the parent was killed or lost interest, the whole group is killed: a compiler and the
programs that it started. Exits with the command's status; its standard output closes then, which the command
does not have. Run by path, outside any package, so that it starts in some milliseconds.
"""

import os
import resource
import select
import sys

KILL = 9  # signal.SIGKILL, whose module takes as long to import as all the rest


def restrict(what: int, least: float, most: float | None = None) -> None:
    """Limit this process: softly to ``least``, hard to ``most`` (the same if not given; infinite: as it is).

    A limit that is lower already stays; macOS refuses some altogether.
    """
    most = least if most is None else most
    ceiling = resource.getrlimit(what)[1]
    if ceiling != resource.RLIM_INFINITY:
        least, most = min(least, ceiling), min(most, ceiling)
    hard = resource.RLIM_INFINITY if most == float("inf") else int(most)
    try:  # noqa: SIM105 (of contextlib, which takes milliseconds to import)
        resource.setrlimit(what, (int(least), hard))
    except (ValueError, OSError):
        pass


def main(arguments: list[str]) -> int:
    cpu, memory, file_bytes = (int(a) for a in arguments[:3])
    command = arguments[3:]
    restrict(resource.RLIMIT_CPU, cpu, cpu + 1)
    restrict(resource.RLIMIT_FSIZE, file_bytes)
    restrict(resource.RLIMIT_CORE, 0)
    # A process of its own waits for the command and writes how that ended: so one wait is for both, on any
    # system, and whatever the command leaves running does not keep the pipe open.
    ended, end = os.pipe()
    if os.fork() == 0:
        status = 127
        try:
            restrict(resource.RLIMIT_AS, memory)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            status = os.spawnv(os.P_WAIT, command[0], command)
        finally:
            os.write(end, str(status).encode())
            os._exit(0)
    os.close(end)
    if 0 in select.select([0, ended], [], [])[0]:
        os.killpg(0, KILL)
    status = int(os.read(ended, 16) or KILL)  # nothing: the process that waits was killed
    os.wait()  # so that what the command used counts as this process' children's
    return status


if __name__ == "__main__":
    status = main(sys.argv[1:])
    os._exit(status if status >= 0 else 128 - status)
