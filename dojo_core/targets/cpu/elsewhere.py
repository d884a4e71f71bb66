"""The processor of another machine as a target: played here, timed there.

Moves, passes, code and assembly are that processor's. Its times are those that its workers sent
(docs/scale.md), which are in the records under its fingerprint. A processor known by name belongs to no
machine and has none.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path

from dojo_core.codegen.assembly import Assembly
from dojo_core.codegen.code import Code
from dojo_core.measure.clock import Clock
from dojo_core.measure.machine import VECTORS, this_machine
from dojo_core.measure.measurement import Origin
from dojo_core.package_data import document
from dojo_core.program.target import DEFAULT_TARGET, Target
from dojo_core.program.tree import Program
from dojo_core.targets.backend import Backend, Words
from dojo_core.targets.cpu import machines
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.processor import KNOWN, NotAProcessor, Processor, host, known
from dojo_core.targets.registry import backend
from dojo_core.wording import counted


class CpuElsewhere(Backend):
    """C for a processor that this computer need not have."""

    def __init__(self, machine: str, processor: Processor, local: Backend) -> None:
        self._here = local
        self.name = f"{DEFAULT_TARGET}@{machine}"
        self.machine_name, self.processor = machine, processor
        self.measured = machine not in KNOWN  # by its workers
        self.told = processor.json if self.measured else ""
        times = "times come from its workers" if self.measured else "nothing is timed"
        self.words = Words(
            in_words(processor),
            f"Moves, code and assembly are for {machine}; {times}.",
            play=self.clock().missing,
        )

    @cached_property
    def limits(self) -> Target:
        return replace(limits_of(self.processor), name=self.name, title=self.words.title)

    def generate(self, program: Program, policy: str) -> Code:
        from dojo_core.targets.cpu.codegen import generate

        return generate(program, policy, self.processor)

    def assembly(self, program: Program, policy: str) -> Assembly:
        from dojo_core.targets.cpu.build import assembly

        return assembly(self.generate(program, policy), processor=self.processor)

    def clock(self) -> Clock:
        if not self.measured:
            message = f"{self.processor.name} is a kind of processor, and no machine that times programs."
            return Clock("elsewhere", missing=message)
        origin = Origin(DEFAULT_TARGET, self.machine_name, "")
        message = (
            f"Times come from its worker: dojo tune KERNEL --scheduler ADDRESS --machine {self.machine_name} "
            f"({document('scale.md')})."
        )
        return Clock("elsewhere", origin, missing=message)

    def machine(self, details: str) -> str:
        return self._here.machine(details)

    @property
    def lines(self) -> Path | None:
        return self._here.lines


def processor_of(target: str) -> Processor:
    """For which C is generated for a target that is this machine's processor, or another machine's."""
    processor = getattr(backend(target), "processor", None)
    return processor if isinstance(processor, Processor) else host()


def in_words(processor: Processor) -> str:
    """In a list of machines: ``AMD EPYC, 8 threads, AVX-512``."""
    vectors = next((words for name, words in VECTORS.items() if name in processor.features), "")
    threads = counted(processor.threads, "thread")
    return ", ".join(filter(None, (processor.name.replace("(R)", "").replace("(TM)", ""), threads, vectors)))


@lru_cache(maxsize=64)
def _target(machine: str, processor: Processor, local: Backend) -> CpuElsewhere:
    return CpuElsewhere(machine, processor, local)


def elsewhere(machine: str, local: Backend) -> Backend:
    """The target of a machine: by its fingerprint or its beginning, or by a part of its processor's name that
    no other's has; or of a processor by its name (``KNOWN``). Of this machine, ``local``.

    Raises ValueError with a sentence.
    """
    if machine in KNOWN:
        return _target(machine, known(machine), local)
    this_one = this_machine().fingerprint
    if machine == this_one:
        return local
    processor = machines.find(machine)
    if processor is not None:
        return _target(machine, processor, local)
    names = {this_one: host().name, **{f: p.name for f, p in machines.all_remembered().items()}}
    meant = [f for f in names if f.startswith(machine)]
    meant = meant or [f for f, name in names.items() if is_part(machine, name)]
    if len(meant) == 1:
        return elsewhere(meant[0], local)
    if meant:
        raise ValueError(f"{machine!r:.60} may be {', '.join(meant[:8])}: give one of these.")
    raise ValueError(
        f"Nothing is known here of a machine {machine!r:.60}: dojo machines lists those that are, and asks "
        f"a scheduler's workers. Processors known by name: {', '.join(KNOWN)}."
    )


def is_part(word: str, name: str) -> bool:
    """Does a word name a processor? Shorter ones are the beginnings of fingerprints."""
    return len(word) > 2 and word.casefold() in name.casefold()


def bring(machine: str, told: str) -> None:
    """A game's word for what a machine is. Raises ValueError with a sentence."""
    if machine not in KNOWN:
        try:
            machines.bring(machine, told)
        except NotAProcessor as fault:
            raise ValueError(f"What the game tells of its machine cannot be read. {fault}") from None
