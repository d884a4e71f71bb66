"""The C compiler of this machine: which one, what it is told, and whether it brings OpenMP.

gcc where there is one, else clang, which some systems also call gcc or cc: what it is, it says itself.
Without OpenMP all that it compiles runs on one thread, and ``advice`` is the line that brings it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dojo_core.measure.places import cache_directory
from dojo_core.system import features, is_riscv, is_x86

NAMES = ("gcc", "clang", "cc")  # the first that is there
# What installs OpenMP by each system's packages: for gcc, for clang.
_OPENMP = {
    "brew": ("install gcc", "install libomp"),
    "apt-get": ("install gcc", "install libomp-dev"),
    "dnf": ("install libgomp", "install libomp-devel"),
    "apk": ("add libgomp", "add openmp-dev"),
    "pacman": ("-S gcc-libs", "-S openmp"),
}
_TRIAL_SECONDS = 60.0
_TRIAL = """\
#ifdef _OPENMP
#include <omp.h>
#endif
int main(void) {
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads += 1;
#ifdef _OPENMP
    return threads < 1 || omp_get_max_threads() < 1;
#else
    return threads < 1;
#endif
}
"""


class NoCompiler(FileNotFoundError):
    """There is no compiler that works; ``str()`` is a sentence that says what to do."""


@dataclass(frozen=True)
class Compiler:
    """``version``: the first line that it says of itself. ``flags``: of every kernel on this machine."""

    path: str
    version: str
    clang: bool
    flags: tuple[str, ...]

    @property
    def openmp(self) -> bool:
        return "-fopenmp" in self.flags

    @property
    def advice(self) -> str:
        """What brings several threads, as a sentence; empty where they are there."""
        if self.openmp:
            return ""
        manager = next(filter(shutil.which, _OPENMP), "apt-get")
        line = f"{manager} {_OPENMP[manager][self.clang]}"
        return f"{Path(self.path).name} has no OpenMP here: kernels run on one thread. This brings it: {line}"


def short_version(version: str) -> str:
    """``gcc 12.2.0`` or ``clang 14.0.6``, of what they say themselves: ``Debian clang version 14.0.6``."""
    name = "clang" if "clang" in version else version.partition(" ")[0]
    number = re.search(r"(?:version |\) )(\d[\d.]*)", version)
    return f"{name} {number[1] if number else version.rpartition(' ')[2]}"


@cache
def the_compiler() -> Compiler:
    """The compiler of this machine (asked once). Raises NoCompiler."""
    how = "macOS: xcode-select --install" if sys.platform == "darwin" else "Debian: apt-get install g++"
    faults = []
    for path in filter(None, map(shutil.which, NAMES)):
        status, version = _run(path, "--version")
        if status or not version:
            faults.append(f"{path} does not run: {version or f'it ended with status {status}'}.")
            continue
        clang = "clang" in version
        chosen = _of_clang(path) if clang else _of_gcc(path)
        return Compiler(path, version.splitlines()[0], clang, chosen)
    raise NoCompiler(" ".join([f"No C compiler: install gcc or clang ({how}).", *faults]))


def _flags(processor: tuple[str, ...], openmp: tuple[str, ...], clang: bool) -> tuple[str, ...]:
    """No ``-ffast-math``: its reassociation undoes the order of operations that the moves chose."""
    wide = ("-mprefer-vector-width=512",) if is_x86() else ()
    # Where gcc 12 gathers by AVX2 under a condition, as for Haswell or Zen 3, its mask is 1 where all bits
    # should be set, and nothing is loaded. With its costs of Zen 2 and 3 it also loads a vector again for
    # each of several multiply-adds: a batched product took 1.3 times as long, a convolution 1.5 times.
    # Where a tile fills all 16 registers, its default allocation of registers loads them again likewise, from
    # addresses that straddle lines of the cache: a convolution took 1.38 times as long, SwiGLU 1.34 times.
    narrow = not clang and "avx2" in features() and "avx512f" not in features()
    tuned = ("-mtune=generic", "-fira-algorithm=priority") if narrow else ()
    # Where gcc puts a short loop by chance across two lines of the cache, a Golden Cove takes up to twice as
    # long: one of six instructions 111, 132, 170 and 205 us, by where in a line of 64 bytes it begins.
    lines = ("-falign-loops=64",) if is_x86() and not clang else ()
    return ("-O2", *processor, *tuned, *wide, *lines, "-fno-math-errno", *openmp)


def _of_gcc(path: str) -> tuple[str, ...]:
    # Asked for a file that it has not, gcc gives back the name alone.
    has_openmp = Path(_run(path, "-print-file-name=libgomp.spec")[1]).is_absolute()
    openmp = ("-fopenmp",) if has_openmp else ()
    ways = _for_this_processor()
    # All versions that there are know the first way, but not RISC-V's.
    known = (w for w in ways if not is_riscv() or not _fault_of(path, _flags(w, openmp, clang=False)))
    return _flags(next(known, ways[-1]), openmp, clang=False)


def _of_clang(path: str) -> tuple[str, ...]:
    """What it takes is tried, by a program that is built and run: versions and systems differ."""
    fault = ""
    for processor in _for_this_processor():
        fault = _fault_of(path, _flags(processor, (), clang=True))
        if fault:
            continue
        openmp = next((o for o in _openmp_of_clang() if not _fault_of(path, _flags(processor, o, True))), ())
        return _flags(processor, openmp, clang=True)
    raise NoCompiler(f"The C compiler {path} cannot build a program for this machine: {fault[:500]}")


def _for_this_processor() -> tuple[tuple[str, ...], ...]:
    """How a compiler is told to use all that this processor has, the usual way first."""
    march, mcpu = ("-march=native",), ("-mcpu=native",)
    if is_riscv():  # whose compilers know no "native"
        lengths = (f for f in features() if re.fullmatch(r"zvl\d+b", f))
        wide = "_".join(["-march=rv64gcv", *sorted(lengths, key=lambda f: int(f[3:-1]))[-1:]])
        return ((wide,),) * ("v" in features()) + (("-march=rv64gc",), ())
    return (march, ()) if is_x86() else (mcpu, march, ())


def _openmp_of_clang() -> list[tuple[str, ...]]:
    """Ways to OpenMP: clang's own; Apple's, which hides it, with the libraries of Homebrew and MacPorts."""
    hidden = ("-Xpreprocessor", "-fopenmp")
    places = [
        (Path("/opt/homebrew/opt/libomp/include"), Path("/opt/homebrew/opt/libomp/lib")),
        (Path("/usr/local/opt/libomp/include"), Path("/usr/local/opt/libomp/lib")),
        (Path("/opt/local/include/libomp"), Path("/opt/local/lib/libomp")),
    ]
    installed = [(i, lib) for i, lib in places if (i / "omp.h").exists()]
    return [
        ("-fopenmp",),
        *((*hidden, f"-I{i}", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lomp") for i, lib in installed),
    ]


def _fault_of(path: str, flags: tuple[str, ...]) -> str:
    """Why a program does not build or run with these flags; empty where it does."""
    # Where kernels are loaded from too: a system may forbid to run what lies in its /tmp.
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="compiler-") as folder:
        source, program = Path(folder) / "trial.c", Path(folder) / "trial"
        source.write_text(_TRIAL, encoding="utf-8")
        status, output = _run(path, "-std=gnu11", *flags, "-w", str(source), "-o", str(program))
        if status == 0:
            status, output = _run(str(program))
        return "" if status == 0 else output or f"it ended with status {status}"


def _run(*command: str) -> tuple[int, str]:
    """A program's status and what it said, on either output."""
    try:
        ran = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_TRIAL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return -1, str(fault)
    return ran.returncode, ran.stdout.decode(errors="replace").strip()
