"""This computer's processor as a target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dojo_core.bounded_json import read_object
from dojo_core.codegen.assembly import Assembly
from dojo_core.codegen.code import Code
from dojo_core.measure.clock import Clock
from dojo_core.measure.exclusive import CPU
from dojo_core.measure.load import load_is_told
from dojo_core.measure.machine import Machine, this_machine
from dojo_core.measure.measurement import Origin
from dojo_core.package_data import data_path
from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.targets.backend import Backend, Words
from dojo_core.targets.cpu.limits import cpu
from dojo_core.targets.cpu.processor import Processor, host

if TYPE_CHECKING:
    from dojo_core.measure.records import Records
    from dojo_core.targets.cpu.measurer import Measurer


class Cpu(Backend):
    """C that gcc or clang compiles, verified and timed in a process of its own."""

    name = "cpu"
    words = Words("this computer's CPU", "Every move is verified and timed on this computer.")
    native = True
    rivals = "dojo_core.targets.cpu.bench:CONTEST"

    @property
    def processor(self) -> Processor:
        return host()

    @property
    def limits(self) -> Target:
        return cpu()

    def generate(self, program: Program, policy: str) -> Code:
        from dojo_core.targets.cpu.codegen import generate

        return generate(program, policy)

    def assembly(self, program: Program, policy: str) -> Assembly:
        from dojo_core.targets.cpu.build import assembly

        return assembly(self.generate(program, policy))

    def clock(self) -> Clock:
        machine = this_machine()
        origin = Origin(self.name, machine.fingerprint, machine.details, load_is_told())
        return Clock("measured", origin, lock=CPU)

    def measurer(self, records: Records | None = None) -> Measurer:
        from dojo_core.targets.cpu.measurer import Measurer

        return Measurer(records)

    def machine(self, details: str) -> str:
        return Machine(**read_object(details)).summary

    def on(self, machine: str) -> Backend:
        from dojo_core.targets.cpu.elsewhere import elsewhere

        return elsewhere(machine, self)

    def bring(self, machine: str, told: str) -> None:
        from dojo_core.targets.cpu.elsewhere import bring

        bring(machine, told)

    def machines(self) -> tuple[str, ...]:
        from dojo_core.targets.cpu.machines import all_remembered

        this_one = this_machine().fingerprint
        return tuple(fingerprint for fingerprint in all_remembered() if fingerprint != this_one)

    def learn(self, records: Records) -> Mapping[str, str]:
        from dojo_core.targets.cpu.machines import learn

        return learn(records)

    @property
    def lines(self) -> Path:
        return data_path("dojo_core", "lines")
