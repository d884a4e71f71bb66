"""Processors that this computer is not, as targets: C for them, compiled here and verified by an emulator."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dojo_core.codegen.assembly import Assembly
from dojo_core.codegen.code import Code, NotGeneratable
from dojo_core.measure.clock import Clock, TargetMeasurer
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.emulated import EmulatedMeasurer
from dojo_core.measure.measurement import Effort, Measurement, Origin, Workload
from dojo_core.measure.modelled import ModelledMeasurer
from dojo_core.measure.records import Sample
from dojo_core.package_data import data_path
from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.targets.backend import Backend, Report
from dojo_core.targets.cpu import model
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.processor import Processor, known

if TYPE_CHECKING:
    from dojo_core.game import Game
    from dojo_core.measure.records import Records

NO_TIME = "No time: seconds need the processor itself."


class OtherProcessor(Backend):
    """C for a processor of the known ones, ``processor``, by its name."""

    processor: str

    @cached_property
    def _its_processor(self) -> Processor:
        return known(self.processor)

    @cached_property
    def limits(self) -> Target:
        return replace(limits_of(self._its_processor), name=self.name, title=self.words.title)

    def generate(self, program: Program, policy: str) -> Code:
        from dojo_core.targets.cpu.codegen import generate

        return generate(program, policy, self._its_processor)

    def assembly(self, program: Program, policy: str) -> Assembly:
        from dojo_core.targets.cpu.build import assembly

        return assembly(self.generate(program, policy), processor=self._its_processor)

    def clock(self) -> Clock:
        chain = self._its_processor.toolchain
        if chain is None or chain.missing:
            return Clock("missing", missing=chain.missing if chain else NO_TIME)
        absent = model.missing(self._its_processor)
        if absent:
            return Clock("emulated", missing=f"{NO_TIME} {absent}")
        named = model.named(self._its_processor)
        details = {"name": f"{self.words.title}: {named}", "unit": "estimated cycles, one a nanosecond"}
        description = json.dumps(details, sort_keys=True)
        fingerprint = hashlib.sha256(f"{self.processor} {description}".encode()).hexdigest()[:16]
        label = f"cycles estimated by {named}, of one core"
        origin = Origin(self.name, fingerprint, description)
        return Clock("modelled", origin, unit="cycles", label=label, steady=1.0)

    def measurer(self, records: Records | None = None) -> TargetMeasurer:
        clock = self.clock()
        if clock.origin is None:
            return EmulatedMeasurer(self._verified, NO_TIME)
        return ModelledMeasurer(clock.origin, self._estimated, records)

    def _verified(self, workload: Workload, program: Program) -> Measurement:
        from dojo_core.targets.cpu.verdict import judge

        try:
            status, message = judge(program, workload.start, workload.policy, self._its_processor)
        except NotGeneratable as reason:
            status, message = "refused", str(reason)
        if status != "ok":
            return Measurement(program.hash, "", status, message)
        sentence = f"Verified under {self._emulator}. {NO_TIME}"
        return Measurement(program.hash, "", "verified", sentence, verified=True)

    def _estimated(self, workload: Workload, program: Program, effort: Effort) -> Measurement:
        from dojo_core.targets.cpu.cross import NotRun
        from dojo_core.targets.cpu.verdict import estimated

        verified = self._verified(workload, program)
        if verified.status != "verified":
            return verified
        try:
            estimate = estimated(program, workload.start, workload.policy, self._its_processor)
        except NotRun as fault:
            return Measurement(program.hash, "", "refused", str(fault))
        code = self.generate(program, workload.policy)
        key = hashlib.sha256(f"{self.processor}\n{code.text}".encode()).hexdigest()
        return Measurement.timed(
            (Sample(estimate.cycles, 0, 0),),
            program_hash=program.hash,
            code_hash=key,
            message=f"estimated by {estimate.model}; {estimate.instructions:,} instructions",
            conditions=Conditions(0.0),  # whatever else this machine does, a model says the same
        )

    @property
    def lines(self) -> Path:
        """Those of all processors: a line's parameters follow the width of vectors."""
        return data_path("dojo_core", "lines")

    def report(self, game: Game, all_moves: bool) -> Report | None:
        clock = self.clock()
        if clock.timed:
            return None
        if clock.kind == "missing":
            raise ValueError(f"Nothing here runs programs for {game.target}. {clock.missing}")
        if all_moves:
            raise ValueError(f"There are no times to compare moves by on {game.target}: leave --moves out.")
        measurement = self._verified(
            Workload(game.start, game.kernel, game.policy, game.target), game.current.program
        )
        return Report(
            columns=(),
            rows=(),
            data={
                "target": game.target,
                "processor": self.processor,
                "status": measurement.status,
                "verified": measurement.verified,
                "message": measurement.message,
                "seconds": None,
            },
            fault=""
            if measurement.verified
            else f"{measurement.status.replace('_', ' ')}: {measurement.message}",
            verified=f"Verified under {self._emulator}: every output element agrees.",
            remarks=(clock.missing,),
        )

    @property
    def _emulator(self) -> str:
        chain = self._its_processor.toolchain
        return chain.emulator[0] if chain is not None and chain.emulator else "an emulator"
