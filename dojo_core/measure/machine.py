"""What a time depends on besides the program: times of different fingerprints are never compared."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path

from dojo_core.targets.cpu.limits import cache_bytes, features


def compiler() -> str:
    """The path of the C compiler. Raises FileNotFoundError with what to do."""
    path = shutil.which("gcc")
    if path is None:
        raise FileNotFoundError("No C compiler: install gcc (Debian: apt-get install gcc).")
    return path


def compiler_flags() -> tuple[str, ...]:
    """No ``-ffast-math``: its reassociation undoes the order of operations that the moves chose."""
    wide = ("-mprefer-vector-width=512",) if platform.machine() in ("x86_64", "AMD64") else ()
    # Where gcc 12 gathers by AVX2 under a condition, as for Haswell or Zen 3, its mask is 1 where all bits
    # should be set, and nothing is loaded. With its costs of Zen 2 and 3 it also loads a vector again for
    # each of several multiply-adds: a batched product took 1.3 times as long, a convolution 1.5 times.
    # Where a tile fills all 16 registers, its default allocation of registers loads them again likewise, from
    # addresses that straddle lines of the cache: a convolution took 1.38 times as long, SwiGLU 1.34 times.
    narrow = "avx2" in features() and "avx512f" not in features()
    tuned = ("-mtune=generic", "-fira-algorithm=priority") if narrow else ()
    return ("-O2", "-march=native", *tuned, *wide, "-fno-math-errno", "-fopenmp")


# Of a core, widest first; the others have those that every core of their kind has.
VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}


@dataclass(frozen=True)
class Machine:
    """A machine as records describe it. ``governor`` is empty where the system does not tell."""

    cpu: str
    cores: int
    features: str
    compiler: str
    flags: str
    governor: str
    last_level_cache: int  # bytes
    second_level_cache: int  # bytes, of all cores together
    memory: int  # bytes

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits over what must agree for two times to be comparable."""
        key = json.dumps([self.cpu, self.cores, self.features, self.compiler, self.flags])
        return hashlib.sha256(key.encode()).hexdigest()[:16]

    @property
    def summary(self) -> str:
        """One line: ``AMD EPYC, 2 cores with AVX2, 24 GB, gcc 12.2.0, -O2 -march=native …``."""
        cpu = re.sub(r"\((?:R|TM)\)", "", self.cpu)
        cores = f"{self.cores} core{'s' if self.cores > 1 else ''}"
        known = self.features.split()
        cores += next((f" with {told}" for name, told in VECTORS.items() if name in known), "")
        flags = self.flags.split()
        some = " ".join(flags[:2]) + (" …" if len(flags) > 2 else "")
        # "gcc (Debian 12.2.0-14) 12.2.0": the name and the last word
        words = self.compiler.split()
        return f"{cpu}, {cores}, {self.memory / 2**30:.0f} GB, {words[0]} {words[-1]}, {some}"

    @property
    def details(self) -> str:
        """All of it as JSON."""
        return json.dumps(asdict(self), sort_keys=True)


def _cpuinfo() -> dict[str, str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    entries = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in entries}


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


@cache
def this_machine() -> Machine:
    """The machine that this process runs on (asked once)."""
    info = _cpuinfo()
    cores = len(os.sched_getaffinity(0))
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    second = cache_bytes(2)
    return Machine(
        cpu=info.get("model name", "") or platform.processor() or platform.machine(),
        cores=cores,
        features=" ".join(sorted((info.get("flags") or info.get("Features") or "").split())),
        compiler=version.splitlines()[0],
        flags=" ".join(compiler_flags()),
        governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        last_level_cache=cache_bytes(3) or second,
        second_level_cache=second * cores,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )
