"""What a time depends on besides the program: times of different fingerprints are never compared."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from dataclasses import asdict, dataclass
from functools import cache, cached_property

from dojo_core import system
from dojo_core.measure.compiler import short_version, the_compiler

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
    architecture: str = ""  # as the system names it
    caches: tuple[int, ...] = ()  # bytes of the first, second and last level: of a core, of a core, of all

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
        cores += next((f" with {words}" for name, words in VECTORS.items() if name in known), "")
        flags = self.flags.split()
        some = " ".join(flags[:2]) + (" …" if len(flags) > 2 else "")
        threads = "" if "-fopenmp" in flags else ", no OpenMP: one thread"
        return (
            f"{cpu}, {cores}, {self.memory / 2**30:.0f} GB, {short_version(self.compiler)}, {some}{threads}"
        )

    @property
    def details(self) -> str:
        """All of it as JSON."""
        return json.dumps(asdict(self), sort_keys=True)


def compiler() -> str:
    """The path of this machine's C compiler, for whoever compiles generated C by hand. Raises NoCompiler."""
    return the_compiler().path


def compiler_flags() -> tuple[str, ...]:
    """What it is told of every kernel. Raises NoCompiler."""
    return the_compiler().flags


@cache
def this_machine() -> Machine:
    """The machine that this process runs on (asked once). Raises NoCompiler."""
    cores = len(system.cores())
    chosen = the_compiler()
    return Machine(
        cpu=system.processor(),
        cores=cores,
        features=" ".join(sorted(system.features())),
        compiler=chosen.version,
        flags=" ".join(chosen.flags),
        governor=system.governor(),
        last_level_cache=system.cache_bytes(3) or system.cache_bytes(2),
        second_level_cache=system.cache_bytes_together(2),
        memory=system.memory_bytes(),
        architecture=platform.machine(),
        caches=(system.cache_bytes(1), system.cache_bytes(2), system.cache_bytes(3)),
    )
