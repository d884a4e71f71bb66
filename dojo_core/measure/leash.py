"""Runs one command that dies with whoever started it: ``leash.py CPU_SECONDS MEMORY FILE_BYTES COMMAND...``.

Started in a process group of its own with a pipe as its standard input. When the pipe closes,
because the parent was killed or lost interest, the whole group is killed: a compiler and the
programs that it started. Exits with the command's status. Run by path, outside any package, so that
it starts in some milliseconds.
"""

import os
import resource
import select
import signal
import sys


def main(arguments: list[str]) -> int:
    cpu, memory, file_bytes = (int(a) for a in arguments[:3])
    command = arguments[3:]
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.execv(command[0], command)
        finally:
            os._exit(127)
    poll = select.poll()
    poll.register(os.pidfd_open(child), select.POLLIN)
    poll.register(0, select.POLLIN | select.POLLHUP)
    if any(descriptor == 0 for descriptor, _ in poll.poll()):
        os.killpg(0, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    status = main(sys.argv[1:])
    os._exit(status if status >= 0 else 128 - status)
