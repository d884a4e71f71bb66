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
from collections import Counter
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


def _output_of(*command: str) -> str:
    """What a program of the system prints; empty where there is none, or where it fails."""
    path = shutil.which(command[0], path=os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin:/sbin")
    if path is None:
        return ""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        ran = subprocess.run(
            [path, *command[1:]], capture_output=True, env=environment, timeout=_ASKING_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode(errors="replace").strip() if ran.returncode == 0 else ""


@cache
def _sysctl(name: str) -> str:
    return _output_of("sysctl", "-n", name) if sys.platform == "darwin" else ""


def _number(text: str, base: int = 10) -> int:
    try:
        return int(text, base)
    except ValueError:
        return 0


# ---------------------------------------------------------------------- the processor


def _cores() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


# Asked once, when this process starts (launch.py): where threads are bound to cores (OMP_PROC_BIND), OpenMP
# binds the one that loads it, and the system tells of threads only.
_OWN_CORES = _cores()


def cores() -> frozenset[int]:
    """The numbers of the cores that this process may run on: all of them, where the system binds none."""
    return _OWN_CORES


def is_x86() -> bool:
    """Is it an x86-64?"""
    return platform.machine() in ("x86_64", "AMD64")


def is_riscv() -> bool:
    """Is it a 64-bit RISC-V?"""
    return platform.machine() == "riscv64"


@cache
def _cpuinfo() -> dict[str, str]:
    """Of the first core that states it, by name."""
    fields: dict[str, str] = {}
    for block in _blocks():
        fields = block | fields
    return fields


@cache
def _blocks() -> tuple[dict[str, str], ...]:
    """What /proc/cpuinfo states, by name: a block a core, on some systems one of the board behind them."""
    blocks = re.split(r"\n\s*\n", _text(PROC / "cpuinfo"))
    pairs = ([line.partition(":") for line in block.splitlines() if ":" in line] for block in blocks)
    return tuple({name.strip(): value.strip() for name, _, value in each} for each in pairs)


def _own_blocks() -> tuple[dict[str, str], ...]:
    """Those of the cores that this process may run on."""
    numbers = {str(number) for number in cores()}
    return tuple(block for block in _blocks() if block.get("processor") in numbers)


def processor() -> str:
    """The processor's name; where nobody tells it, that of its architecture.

    Arm's and RISC-V's have none: there it is the board and its cores, with all that tells them from others.
    """
    if kinds := _core_kinds():
        return ", ".join(filter(None, [_board(), kinds]))
    named = _cpuinfo().get("model name") or _sysctl("machdep.cpu.brand_string") or platform.processor()
    return named or platform.machine()


# Of cores by implementer and part, as the Main ID Register has them; of others, the numbers stand.
_ARM_CORES = {
    "0x41": {
        "0xd03": "Cortex-A53", "0xd04": "Cortex-A35", "0xd05": "Cortex-A55", "0xd07": "Cortex-A57",
        "0xd08": "Cortex-A72", "0xd09": "Cortex-A73", "0xd0a": "Cortex-A75", "0xd0b": "Cortex-A76",
        "0xd0c": "Neoverse-N1", "0xd0d": "Cortex-A77", "0xd40": "Neoverse-V1", "0xd41": "Cortex-A78",
        "0xd44": "Cortex-X1", "0xd46": "Cortex-A510", "0xd47": "Cortex-A710", "0xd48": "Cortex-X2",
        "0xd49": "Neoverse-N2", "0xd4d": "Cortex-A715", "0xd4e": "Cortex-X3", "0xd4f": "Neoverse-V2",
        "0xd80": "Cortex-A520", "0xd81": "Cortex-A720", "0xd82": "Cortex-X4", "0xd83": "Neoverse-V3",
    },
    "0x61": {
        "0x022": "Apple M1 Icestorm", "0x023": "Apple M1 Firestorm",
        "0x032": "Apple M2 Blizzard", "0x033": "Apple M2 Avalanche",
    },
}  # fmt: skip


def _core_kinds() -> str:
    """Arm's or RISC-V's cores of this process: how many of which kind; empty for others."""
    kinds = Counter(kind for kind in map(_kind_of_core, _own_blocks()) if kind)
    return " + ".join(f"{count} × {kind}" for kind, count in kinds.items())


def _kind_of_core(block: dict[str, str]) -> str:
    maker, part = block.get("CPU implementer"), block.get("CPU part")
    if maker and part:
        name = _ARM_CORES.get(maker, {}).get(part, f"implementer {maker} part {part}")
        return f"{name} r{_number(block.get('CPU variant', ''), 16)}p{block.get('CPU revision', '?')}"
    if "isa" not in block:
        return ""
    numbers = [block[name] for name in ("mvendorid", "marchid", "mimpid") if name in block]
    return " ".join([block.get("uarch") or "RISC-V", *([f"({', '.join(numbers)})"] if numbers else [])])


def _board() -> str:
    """The board's or the computer's name; empty where nobody tells it."""
    for place in (PROC / "device-tree/model", SYS / "firmware/devicetree/base/model"):
        if named := _text(place).strip("\0 "):
            return named
    maker, product = (_text(SYS / "class/dmi/id" / name) for name in ("sys_vendor", "product_name"))
    known = _cpuinfo().get("Model") or _text(SYS / "devices/soc0/machine")
    return known or f"{maker} {product}".strip() or _cpuinfo().get("Hardware", "")


@cache
def features() -> frozenset[str]:
    """What the processor has, by Linux' names; empty where the system states nothing, as on Apple's own.

    Of RISC-V: the extensions that all cores have.
    """
    info = _cpuinfo()
    words = info.get("flags") or info.get("Features") or ""
    for name in ("machdep.cpu.features", "machdep.cpu.leaf7_features"):  # Intel's, in capital letters
        words += " " + _sysctl(name).lower()
    isas = [block["isa"] for block in _own_blocks() if "isa" in block]
    extensions = frozenset.intersection(*map(riscv_extensions, isas)) if isas else frozenset()
    return frozenset(words.split()) | extensions


def riscv_extensions(isa: str) -> frozenset[str]:
    """``rv64imafdcv_zicbom``: single letters, and words behind underscores (RISC-V ISA manual, naming)."""
    letters, *words = re.sub(r"^rv\d+", "", isa.lower()).split("_")
    word = re.search(r"[zx].*|s[a-z]{2,}$", letters)  # one that no underscore parts from the letters
    if word is not None:
        letters, words = letters[: word.start()], [word[0], *words]
    return frozenset([*letters.replace("g", "imafd"), *filter(None, words)])


@cache
def apple_features() -> frozenset[str]:
    """Of Apple's own processors, by Linux' names, what programs ask of: macOS tells it by others."""
    named = {"FEAT_DotProd": "asimddp", "FEAT_I8MM": "i8mm", "FEAT_FP16": "asimdhp"}
    return frozenset(n for apple, n in named.items() if _sysctl(f"hw.optional.arm.{apple}") == "1")


def governor() -> str:
    """How the system chooses the frequency; empty where it does not tell."""
    return _text(SYS / "devices/system/cpu/cpu0/cpufreq/scaling_governor")


def cache_bytes(level: int) -> int:
    """The size of a data cache, of the core that has the least among those of this process; 0 where the
    system does not state it."""
    smallest = min(_caches(level).values(), default=0)
    name = {1: "l1dcachesize", 2: "l2cachesize", 3: "l3cachesize"}[level]
    return smallest or _number(_sysctl(f"hw.perflevel0.{name}")) or _number(_sysctl(f"hw.{name}"))


def cache_bytes_together(level: int) -> int:
    """Of all the data caches of a level that this process' cores have."""
    return sum(_caches(level).values()) or len(cores()) * cache_bytes(level)


@cache
def _caches(level: int) -> dict[str, int]:
    """Bytes of a level's data caches, by the cores that share each."""
    sizes: dict[str, int] = {}
    for core in sorted(cores()):
        for index in range(8):
            folder = SYS / f"devices/system/cpu/cpu{core}/cache/index{index}"
            texts = [_text(folder / name) for name in ("level", "type", "size")]
            if texts[0] == str(level) and texts[1] in ("Data", "Unified"):
                scale = {"K": 2**10, "M": 2**20, "G": 2**30}.get(texts[2][-1:], 1)
                shared = _text(folder / "shared_cpu_list") or str(core)
                if size := _number(texts[2].rstrip("KMG")) * scale:
                    sizes[shared] = size
                break
    return sizes


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
    line = re.search(r"^MemAvailable:\s+(\d+) kB", _text(PROC / "meminfo"), re.MULTILINE)
    return 1024 * int(line[1]) if line else _pages("SC_AVPHYS_PAGES") or memory_bytes() // 2


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
    myself = str(os.getpid())
    if not _has_proc():
        return [each for each in _listed("-ax") if each.parent == pid]
    pids: list[int] = []
    try:
        for task in os.listdir(PROC / str(pid) / "task"):
            pids += map(int, (PROC / str(pid) / "task" / task / "children").read_text().split())
    except OSError:
        if (PROC / myself / "task" / myself / "children").exists():
            return []  # it has just ended
        pids = [int(entry) for entry in os.listdir(PROC) if entry.isdecimal()]
        return [each for each in map(process, pids) if each is not None and each.parent == pid]
    return [each for each in map(process, pids) if each is not None]


def _has_proc() -> bool:
    return (PROC / str(os.getpid()) / "stat").exists()


_ROW = re.compile(r"\s*(\d+)\s+(\d+)\s+(\S)\S*\s+(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.(\d\d))?\s+(.*)")


def _listed(*which: str) -> list[Process]:
    """Processes as ps(1) lists them, in hundredths of a second."""
    listing = _output_of("ps", *which, "-o", "pid=,ppid=,state=,time=,lstart=")
    processes = []
    for pid, parent, state, *time, started in (
        row.groups() for row in map(_ROW.match, listing.splitlines()) if row
    ):
        days, hours, minutes, seconds, hundredths = (int(each or 0) for each in time)
        ticks = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 100 + hundredths
        processes.append(Process(int(pid), state, int(parent), ticks, " ".join(started.split())))
    return processes


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
