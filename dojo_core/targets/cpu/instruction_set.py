"""What a C library has for an instruction set beside x86: levels of processors, and how it is built."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dojo_core.program.instructions import available
from dojo_core.targets.cpu.processor import Processor


@dataclass(frozen=True)
class Level:
    """Processors of an instruction set that have as much as ``processor``. ``flags`` make a compiler use it;
    where it does, the C preprocessor's ``condition`` holds. ``bit``: where Linux tells of it, a word of the
    auxiliary vector and the number of a bit there, for a ``best_level`` that asks."""

    name: str
    processor: Processor
    flags: tuple[str, ...] = ()
    condition: str = ""
    bit: tuple[str, int] | None = None

    @property
    def instructions(self) -> frozenset[tuple[str, int]]:
        """Those that a program can ask for, with their lanes."""
        return available(self.processor.features)


@dataclass(frozen=True)
class InstructionSet:
    """An instruction set that a library can have kernels for.

    ``word``: the target's name, given to --for; ``macro``: the compilers'. ``levels``: what a processor may
    have, least first. ``triple`` names compilers, and so CMake's toolchain file; ``processor`` is CMake's
    word, ``compiler`` the lines of that file that choose one, ``packages`` what brings it. ``native``: flags
    for the machine at hand. ``about``: what README says of levels and compilers.

    ``best_level``: a template of the C function that tells the processor's level as it runs; ``@tests@`` in
    it stands for the tests of levels that have a bit. ``compiler_check``: a template of CMake for an
    instruction set that not all of its compilers know: where one does not take ``@vector_flags@``, it defines
    ``@guard@_SCALAR``, and the first level is built alone.
    """

    word: str
    title: str
    macro: str
    levels: tuple[Level, ...]
    triple: str
    processor: str
    native: str
    compiler: str
    packages: str
    about: str
    best_level: Path
    compiler_check: Path | None = None
