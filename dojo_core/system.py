"""What operating systems tell and offer differently, each with what is done where it is not there.

Linux tells of processors and processes in ``/proc`` and ``/sys``; macOS by sysctl(8) and ps(1). Where nothing
is told the answer says so (None, 0, an empty text), and who asked goes on without.
"""

from __future__ import annotations

import mmap
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

PROC, SYS = Path("/proc"), Path("/sys")
_ASKING_SECONDS = 10.0  # for sysctl or ps, which take milliseconds


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _said(*command: str) -> str:
    """What a program of the system prints; empty where there is none, or where it fails."""
    path = shutil.which(command[0], path=os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin:/sbin")
    if path is None:
        return ""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        told = subprocess.run(
            [path, *command[1:]], capture_output=True, env=environment, timeout=_ASKING_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told.stdout.decode(errors="replace").strip() if told.returncode == 0 else ""


@cache
def _sysctl(name: str) -> str:
    return _said("sysctl", "-n", name) if sys.platform == "darwin" else ""


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


# ---------------------------------------------------------------------- the processor


def cores() -> frozenset[int]:
    """The numbers of the cores that this process may run on: all of them, where the system binds none."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def is_x86() -> bool:
    """Is it an x86-64?"""
    return platform.machine() in ("x86_64", "AMD64")


@cache
def _cpuinfo() -> dict[str, str]:
    """Of the first core that states it, by name."""
    told: dict[str, str] = {}
    for line in _text(PROC / "cpuinfo").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            told.setdefault(name.strip(), value.strip())
    return told


def processor() -> str:
    """The processor's name; where nobody tells it, that of its architecture."""
    info = _cpuinfo()
    named = info.get("model name") or _sysctl("machdep.cpu.brand_string") or platform.processor()
    if named:
        return named
    maker, part = info.get("CPU implementer"), info.get("CPU part")
    return f"{platform.machine()} ({maker}, {part})" if maker and part else platform.machine()


@cache
def features() -> frozenset[str]:
    """What the processor has, by Linux' names; empty where the system states nothing, as on Apple's own."""
    info = _cpuinfo()
    told = info.get("flags") or info.get("Features") or ""
    for name in ("machdep.cpu.features", "machdep.cpu.leaf7_features"):  # Intel's, in capital letters
        told += " " + _sysctl(name).lower()
    return frozenset(told.split())


@cache
def apple_features() -> frozenset[str]:
    """Of Apple's own processors, by Linux' names, what programs ask of: macOS tells it by others."""
    named = {"FEAT_DotProd": "asimddp", "FEAT_I8MM": "i8mm", "FEAT_FP16": "asimdhp"}
    return frozenset(n for apple, n in named.items() if _sysctl(f"hw.optional.arm.{apple}") == "1")


def governor() -> str:
    """How the system chooses the frequency; empty where it does not tell."""
    return _text(SYS / "devices/system/cpu/cpu0/cpufreq/scaling_governor")


def cache_bytes(level: int) -> int:
    """The size of a data cache of the first core; 0 where the system does not state it."""
    for index in range(8):
        folder = SYS / f"devices/system/cpu/cpu0/cache/index{index}"
        found = [_text(folder / name) for name in ("level", "type", "size")]
        if found[0] == str(level) and found[1] in ("Data", "Unified"):
            scale = {"K": 2**10, "M": 2**20, "G": 2**30}.get(found[2][-1:], 1)
            return _number(found[2].rstrip("KMG")) * scale
    name = {1: "l1dcachesize", 2: "l2cachesize", 3: "l3cachesize"}[level]
    return _number(_sysctl(f"hw.perflevel0.{name}")) or _number(_sysctl(f"hw.{name}"))


# ---------------------------------------------------------------------- memory


def _pages(name: str) -> int:
    try:
        return max(0, os.sysconf("SC_PAGE_SIZE") * os.sysconf(name))
    except (ValueError, OSError):
        return 0


def memory_bytes() -> int:
    """The machine's memory."""
    return _pages("SC_PHYS_PAGES") or _number(_sysctl("hw.memsize"))


def available_bytes() -> int:
    """What processes may take: free, or the cache of files; half of all where the system does not tell."""
    told = re.search(r"^MemAvailable:\s+(\d+) kB", _text(PROC / "meminfo"), re.MULTILINE)
    return 1024 * int(told[1]) if told else _pages("SC_AVPHYS_PAGES") or memory_bytes() // 2


def in_huge_pages(memory: mmap.mmap) -> None:
    """Ask for huge pages: advice, which a system without them does not know or refuses."""
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)


# ---------------------------------------------------------------------- processes


class Process(NamedTuple):
    """``state``: its first letter as ps(1) has it, ``T`` or ``t`` stopped, ``Z`` ended. ``ticks``: processor
    time, in units of the system's. ``started``: with ``pid`` it names one process for good."""

    pid: int
    state: str
    parent: int
    ticks: int
    started: int | str


def process(pid: int) -> Process | None:
    """What is known of a process; None where there is none, or where nothing is told."""
    text = _text(PROC / str(pid) / "stat")
    if text:
        # proc_pid_stat(5): "pid (name) state ppid …", and the name may hold anything
        fields = text[text.rindex(")") + 2 :].split()
        return Process(pid, fields[0], int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[19]))
    return None if _has_proc() else next(iter(_listed("-p", str(pid))), None)


def children(pid: int) -> list[Process]:
    """The processes that a process started; where Linux keeps no lists of them, all are looked at."""
    own = str(os.getpid())
    if not _has_proc():
        return [each for each in _listed("-ax") if each.parent == pid]
    found: list[int] = []
    try:
        for task in os.listdir(PROC / str(pid) / "task"):
            found += map(int, (PROC / str(pid) / "task" / task / "children").read_text().split())
    except OSError:
        if (PROC / own / "task" / own / "children").exists():
            return []  # it has just ended
        found = [int(entry) for entry in os.listdir(PROC) if entry.isdecimal()]
        return [each for each in map(process, found) if each is not None and each.parent == pid]
    return [each for each in map(process, found) if each is not None]


def _has_proc() -> bool:
    return (PROC / str(os.getpid()) / "stat").exists()


_ROW = re.compile(r"\s*(\d+)\s+(\d+)\s+(\S)\S*\s+(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.(\d\d))?\s+(.*)")


def _listed(*which: str) -> list[Process]:
    """Processes as ps(1) lists them, in hundredths of a second."""
    told = _said("ps", *which, "-o", "pid=,ppid=,state=,time=,lstart=")
    found = []
    for pid, parent, state, *time, started in (
        row.groups() for row in map(_ROW.match, told.splitlines()) if row
    ):
        days, hours, minutes, seconds, hundredths = (int(each or 0) for each in time)
        ticks = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 100 + hundredths
        found.append(Process(int(pid), state, int(parent), ticks, " ".join(started.split())))
    return found


def process_namespace() -> str:
    """Of process ids; those of another container mean nothing here. Empty where there is but one."""
    try:
        return os.readlink(PROC / "self/ns/pid")
    except OSError:
        return ""


def end_group(pid: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to a process that we started and to its group; who has ended already is left alone."""
    # macOS refuses where all of a group have ended but are not waited for yet.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, by)


def yield_to_others(niceness: int) -> None:
    """This thread and what it starts take little from others; nothing where a niceness is a process's."""
    thread = threading.get_native_id()
    if sys.platform == "linux":
        with suppress(OSError):  # a sandbox may refuse
            if os.getpriority(os.PRIO_PROCESS, thread) < niceness:
                os.setpriority(os.PRIO_PROCESS, thread, niceness)
