"""A GPU program looked at without a GPU: verified in the emulator, and what the compiler says of it.

There is never a time here: seconds need the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dojo_core.codegen.built import CompileError
from dojo_core.codegen.code import Code, NotGeneratable
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Measurement, Workload
from dojo_core.measure.sealed import DAMAGED, Damaged
from dojo_core.measure.trial import Compiled, Trials
from dojo_core.program.tree import Program
from dojo_core.targets.cpu import codegen as cpu
from dojo_core.targets.cpu.build import build
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.emulator import build_emulated
from dojo_core.targets.gpu.feedback import Feedback, NoFeedback

if TYPE_CHECKING:
    from dojo_core.targets.gpu.backend import GpuBackend


@dataclass(frozen=True)
class Checked:
    """What is known of a GPU program without a GPU. ``verdict`` has no time; ``feedback`` may be why there
    is none."""

    verdict: Measurement
    feedback: Feedback | NoFeedback


class Checker:
    """Verifies and compiles, one program after the other. Close it, or use it in ``with``."""

    def __init__(self, target: GpuBackend) -> None:
        self._target = target
        self._trials = Trials(this_machine(), 60.0)

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker."""
        self._trials.close()

    def check(self, workload: Workload, program: Program) -> Checked:
        """The program run on the kernel's inputs in the emulator, and compiled."""
        try:
            code = self._target.generate(program, workload.policy)
        except NotGeneratable as reason:
            message = str(reason)
            return Checked(Measurement(program.hash, "", "refused", message), NoFeedback(message, False))
        return Checked(self._verdict(workload, program, code), self._target.feedback(code))

    def _verdict(self, workload: Workload, program: Program, code: GpuCode) -> Measurement:
        try:
            return self._verified(workload, program, code)
        except Damaged:  # since it was compiled: it is made again
            pass
        try:
            return self._verified(workload, program, code)
        except Damaged:
            return Measurement(program.hash, "", "refused", DAMAGED)

    def _verified(self, workload: Workload, program: Program, code: GpuCode) -> Measurement:
        """Raises Damaged."""
        built = build_emulated(code)
        if isinstance(built, CompileError):
            return Measurement(program.hash, built.code_hash, "compile_error", built.message)
        try:
            start = self._start(workload)
        except NotGeneratable as reason:
            return Measurement(program.hash, built.code_hash, "refused", str(reason))
        return self._trials.verify(Compiled(program, _interface(code), built, workload.policy), start)

    def _start(self, workload: Workload) -> Compiled:
        """The start program, which sets what error is allowed: as C; where it is mapped, emulated."""
        try:
            code = cpu.generate(workload.start, workload.policy)
            built = build([code], beside=True)[0]
        except NotGeneratable:
            mapped = self._target.generate(workload.start, workload.policy)
            code, built = _interface(mapped), build_emulated(mapped)
        if isinstance(built, CompileError):
            raise NotGeneratable(f"The start program does not compile: {built.message}")
        return Compiled(workload.start, code, built, workload.policy)


def _interface(code: GpuCode) -> Code:
    """What the worker needs to know of emulated code."""
    return Code(code.text, code.symbol, code.nodes, code.parameters, code.workspace_bytes, code.error_bound)
