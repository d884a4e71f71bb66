"""The roofline of one kernel on this machine: the least time that it has been seen to take.

The longer of two: streaming the kernel's own arrays in its access pattern, and its operations at the peak of
all cores (limits.py measures both). Source: Williams, Waterman and Patterson, "Roofline", CACM 2009.

Each is the best ever seen on the machine, kept in the records, so that every page and every bench says the
same. A verified run that takes less than that shows that the machine does more than was measured: its time is
the limit from then on. So no share of a limit exceeds 1.
"""

from __future__ import annotations

import json
import logging
import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dojo_core.bench.baselines import pinned_environment
from dojo_core.bench.limits import Pattern, pattern
from dojo_core.bench.processes import UNWANTED, Process, Silent
from dojo_core.files import write_text
from dojo_core.kernels.kernel import minimal_bytes
from dojo_core.launch import module_command
from dojo_core.measure.conditions import stands
from dojo_core.measure.exclusive import measuring
from dojo_core.measure.limits import sets_of_inputs
from dojo_core.measure.load import load_is_told
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Limit, Records
from dojo_core.program.dtypes import INTEGERS
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.tree import DTYPE_BYTES, Program

log = logging.getLogger(__name__)

SECONDS = 60.0  # until the measuring process is given up
SAMPLES = 5

PEAK, PEAK_OF_ONE = "10^9 operations on all cores", "10^9 operations on one core"
PEAK_OPERATIONS = 1e9
MEASURED = "measured without a kernel"


@dataclass(frozen=True)
class Roofline:
    """The limit of a kernel. ``memory_seconds``: its ``bytes`` streamed in the access ``pattern``;
    ``arithmetic_seconds``: its ``flops`` at the peak. ``reached``: what took so little, where a run of a
    program set the limit, else empty."""

    memory_seconds: float
    arithmetic_seconds: float
    bytes: int
    flops: float
    pattern: str
    peak: float  # operations a second, of all cores
    reached: str = ""

    @property
    def seconds(self) -> float:
        return max(self.memory_seconds, self.arithmetic_seconds)

    @property
    def bound(self) -> str:
        """What sets the limit: ``memory`` or ``arithmetic``."""
        return "memory" if self.memory_seconds >= self.arithmetic_seconds else "arithmetic"

    @property
    def gbytes_per_second(self) -> float:
        return self.bytes / self.memory_seconds / 1e9

    @property
    def gflops(self) -> float:
        return max(self.peak, self.flops / self.seconds) / 1e9

    def beaten(self, seconds: float | None, by: str) -> Roofline:
        """As it is once a verified run took so long: the same, unless that was less."""
        if seconds is None or seconds >= self.seconds:
            return self
        return replace(
            self,
            memory_seconds=min(self.memory_seconds, seconds),
            arithmetic_seconds=min(self.arithmetic_seconds, seconds),
            reached=by,
        )


def limits_of(roofline: Roofline) -> dict[str, Any]:
    """As a bench's JSON has it."""
    names = (
        "bound", "seconds", "memory_seconds", "arithmetic_seconds", "bytes", "pattern", "gbytes_per_second",
        "gflops", "reached",
    )  # fmt: skip
    return {name: getattr(roofline, name) for name in names}


@dataclass(frozen=True)
class Question:
    """Whose limit is asked for: ``flops`` of one run, of integers none (their peak is another)."""

    start: Program
    kernel: str | None
    shape: str
    flops: float

    @property
    def operations(self) -> float:
        return 0.0 if any(b.dtype in INTEGERS for b in self.start.buffers) else self.flops

    @property
    def pattern(self) -> Pattern:
        sizes = tuple(map(int, self.shape.split("x"))) if self.kernel else (1,)
        inputs, outputs = (list(map(self._bytes, names)) for names in (self.start.inputs, self.start.outputs))
        return pattern(self.kernel or "-", sizes, inputs, outputs, this_machine().last_level_cache)

    def _bytes(self, array: str) -> int:
        buffer = self.start.buffer_of[array]
        return DTYPE_BYTES[buffer.dtype] * math.prod(d.size for d in buffer.dims)

    @property
    def sets(self) -> int:
        machine = this_machine()
        total = minimal_bytes(self.start)
        return sets_of_inputs(total, machine.last_level_cache, machine.second_level_cache)

    @property
    def stream(self) -> str:
        """The name that the limit of its access pattern is kept by."""
        return self.pattern.name(self.sets)

    @property
    def own(self) -> str:
        """The name that a limit of this kernel alone is kept by: it computes faster than the peak that was
        measured, or than its formula counts."""
        return f"kernel: {self.start.hash}"


def known(records: Records, kernel: Question) -> Roofline | None:
    """What the records know of a limit, lowered by every verified run that they have; None if nothing."""
    fingerprint = this_machine().fingerprint
    stream, peak = records.limit(fingerprint, kernel.stream), records.limit(fingerprint, PEAK)
    if stream is None or peak is None:
        return None
    roofline = Roofline(
        memory_seconds=stream.seconds,
        arithmetic_seconds=kernel.operations / PEAK_OPERATIONS * peak.seconds,
        bytes=kernel.pattern.bytes,
        flops=kernel.operations,
        pattern=str(kernel.pattern),
        peak=PEAK_OPERATIONS / peak.seconds,
        reached="" if stream.source == MEASURED else stream.source,
    )
    lowered = records.limit(fingerprint, kernel.own)
    if lowered is not None:
        roofline = roofline.beaten(lowered.seconds, lowered.source)
    return _lowered(
        records,
        kernel,
        roofline,
        records.least_time(kernel.start.hash, DEFAULT_TARGET, fingerprint),
        "a program of the Dojo",
    )


def _lowered(
    records: Records, kernel: Question, roofline: Roofline, seconds: float | None, by: str
) -> Roofline:
    """The limit once a run took so long; where that is news, it is kept."""
    title = f"{kernel.kernel or kernel.start.name} {kernel.shape}".strip()
    beaten = roofline.beaten(seconds, f"{by} ({title})")
    if beaten is roofline or seconds is None:
        return roofline
    fingerprint, source = this_machine().fingerprint, beaten.reached
    if seconds < roofline.memory_seconds:
        records.lower_limit(fingerprint, Limit(kernel.stream, seconds, source))
    if seconds < roofline.arithmetic_seconds:
        records.lower_limit(fingerprint, Limit(kernel.own, seconds, source))
    return beaten


def doubtful(records: Records, kernel: Question) -> bool:
    """Whether a limit is to be measured (again): nothing is known, or the machine was busy."""
    fingerprint = this_machine().fingerprint
    limits = [records.limit(fingerprint, name) for name in (kernel.stream, PEAK)]
    return any(each is None or not stands(each.conditions, 0.0, load_is_told()) for each in limits)


def roofline(
    records: Records, kernel: Question, unwanted: Callable[[], bool] = lambda: False
) -> Roofline | None:
    """The limit, measured where nothing is known or the machine was busy; None where that fails (the log
    says why) or is ``unwanted``. Takes a few seconds and the whole machine."""
    if doubtful(records, kernel):
        try:
            keep(records, kernel, [_measured(kernel, unwanted)])
        except (Silent, KeyError, ValueError, OSError) as fault:
            if not (isinstance(fault, Silent) and fault.status == UNWANTED):
                log.exception("no roofline of %s %s", kernel.kernel or kernel.start.name, kernel.shape)
    return known(records, kernel)


def keep(records: Records, kernel: Question, answers: Sequence[Mapping[str, Any]]) -> None:
    """Keep what the measuring process answered (limits.py), where it is less than was ever seen."""
    fingerprint = this_machine().fingerprint
    for answer in answers:
        seen = {
            kernel.stream: min(answer["samples"]) / 1e9,
            PEAK: PEAK_OPERATIONS / max(answer["all"]) / 1e9,
            PEAK_OF_ONE: PEAK_OPERATIONS / max(answer["one"]) / 1e9,
        }
        for name, seconds in seen.items():
            records.lower_limit(fingerprint, Limit(name, seconds, MEASURED, answer.get("load")))


def beaten_by(records: Records, kernel: Question, runs: Iterable[tuple[str, float]]) -> Roofline | None:
    """The limit after verified runs: what ran, and its least seconds."""
    roofline = known(records, kernel)
    for name, seconds in runs:
        if roofline is not None:
            roofline = _lowered(records, kernel, roofline, seconds, name)
    return roofline


def _measured(kernel: Question, unwanted: Callable[[], bool]) -> dict[str, Any]:
    """The answer of the measuring process. Raises Silent and others."""
    start = kernel.start
    arrays = (*start.inputs, *start.outputs)
    job = {
        "inputs": list(start.inputs),
        "outputs": list(start.outputs),
        "shapes": {a: [d.size for d in start.buffer_of[a].dims] for a in arrays},
        "dtypes": {a: start.buffer_of[a].dtype for a in arrays},
    }
    with tempfile.TemporaryDirectory(prefix="dojo-roofline-") as folder:
        write_text(Path(folder) / "job.json", json.dumps(job))
        with measuring(unwanted) as claim:
            if not claim:
                raise Silent(UNWANTED, "Nobody waits for the limit any more.")
            process = Process(command(kernel, folder), pinned_environment(), unwanted)
            try:
                process.read(SECONDS)
                return process.ask(SAMPLES, SECONDS)
            finally:
                process.close()


def command(kernel: Question, folder: str) -> list[str]:
    """What starts the measuring process; the folder holds its job."""
    named = [kernel.kernel or "-", kernel.shape if kernel.kernel else "1", str(kernel.sets), folder]
    return module_command("dojo_core.bench.limits", *named)
