"""What is measured, with how much effort, and what came out: plain data."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from dojo_core.drawn import Drawn
from dojo_core.measure.conditions import UNKNOWN, Conditions, age_text, stands
from dojo_core.measure.records import Record, Sample
from dojo_core.measure.speed import Speed, apart, drift, in_turns
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.tree import Program

STATUSES = (
    "ok", "compile_error", "wrong_result", "unwritten", "out_of_bounds", "crash", "timeout", "refused",
    "cancelled",
)  # fmt: skip
# Verdicts on the code itself: measuring again would say the same.
SETTLED = ("compile_error", "wrong_result", "unwritten", "out_of_bounds")
# Those of them that later processes believe: what a result may be off by has changed before.
KEPT = tuple(status for status in SETTLED if status != "wrong_result")
BROKE = ("crash", "timeout", "out_of_bounds")  # the worker ended, or may be spoilt


class Effort(Enum):
    """How much time a measurement may take.

    ``samples`` at most; none begins after ``budget`` seconds of timing; a candidate whose best of
    ``patience`` samples is ``cutoff`` times slower than the best known gets no more (0: always all).
    """

    QUICK = (1, 5, 0.1, 1.5, 2)
    NORMAL = (2, 10, 0.5, 2.0, 3)
    ROUND = (2, 10, 0.0, 0.0, 10)
    FINAL = (3, 20, 0.0, 0.0, 20)

    def __init__(self, rank: int, samples: int, budget: float, cutoff: float, patience: int) -> None:
        self.rank = rank
        self.samples = samples
        self.budget = budget
        self.cutoff = cutoff
        self.patience = patience

    @property
    def label(self) -> str:
        """As records spell it."""
        return self.name.lower()

    @staticmethod
    def rank_of(label: str) -> int:
        """The rank of an effort as records spell it; 0, less than any, for a label that is none."""
        return next((effort.rank for effort in Effort if effort.label == label), 0)


@dataclass(frozen=True)
class Workload:
    """What a program is measured on: its start program (the reference's meaning, and the tolerance)."""

    start: Program
    kernel: str | None = None
    policy: str = "reassoc"
    target: str = DEFAULT_TARGET


@dataclass(frozen=True, slots=True)
class Measurement(Drawn):
    """The outcome for one program. ``message`` is a sentence wherever ``status`` is not ``"ok"``;
    where it is, what the target tells beside the time, if anything.

    ``samples``: nanoseconds a run, the undisturbed ones (all, where none was undisturbed), in order;
    ``raw`` all of them with what disturbed them. ``seconds`` is the least, ``median`` the middle one.
    ``verified``: every output element agreed; ``error`` the largest error in units of what is allowed.
    ``known``: taken from records or from identical code, not measured now. ``conditions``: what else the
    machine did. ``taken``: when a record was made (seconds since the epoch), None where it was measured now.
    ``ratios``: of the time of the program that it took turns with over its own, within each round (speed.py).
    """

    program_hash: str
    code_hash: str
    status: str
    message: str = ""
    samples: tuple[float, ...] = ()
    seconds: float | None = None
    median: float | None = None
    verified: bool = False
    error: float = 0.0
    raw: tuple[Sample, ...] = ()
    calibration: float = 0.0
    known: bool = False
    conditions: Conditions = UNKNOWN
    taken: float | None = None
    ratios: tuple[float, ...] = ()

    def with_turns(
        self, samples: Sequence[Sample], ratios: Sequence[float], conditions: Conditions
    ) -> Measurement:
        """With the runs that it had in turns with another program under these conditions, and that one's time
        over its own in each round."""
        raw = (*self.raw, *samples)
        timed = Measurement.timed(raw, program_hash=self.program_hash, code_hash=self.code_hash)
        both = (self.conditions, conditions) if self.raw else (conditions,)
        worst = max(both, key=lambda each: (each.busy, each.load or 0))
        return replace(
            self, samples=timed.samples, seconds=timed.seconds, median=timed.median, raw=raw, known=False,
            taken=None, ratios=tuple(ratios), conditions=worst,
        )  # fmt: skip

    def speed(self, other: Measurement, steady: float | None = None) -> Speed | None:
        """How many times as fast as another program: from the rounds in turns with it, else from both times,
        of which two may differ by a factor ``steady`` at most (None: by what the machine does). None where
        one has no time."""
        if self.seconds is None or other.seconds is None:
            return None
        if len(self.ratios) > 1:
            return in_turns(self.ratios)
        return apart(other.seconds, self.seconds, steady or drift(other.conditions, self.conditions))

    @staticmethod
    def timed(raw: tuple[Sample, ...], **others: Any) -> Measurement:
        """A successful measurement from its samples."""
        clean = tuple(s.nanoseconds for s in raw if s.clean) or tuple(s.nanoseconds for s in raw)
        return Measurement(
            status="ok",
            raw=raw,
            samples=clean,
            seconds=min(clean) / 1e9,
            median=statistics.median(clean) / 1e9,
            verified=True,
            **others,
        )

    @staticmethod
    def recorded(record: Record) -> Measurement:
        """As a record tells it."""
        program, code = record.program_hash, record.code_hash
        if record.status != "ok" or not record.samples:
            return Measurement(program, code, record.status, record.message, known=True, taken=record.time)
        return Measurement.timed(
            record.samples,
            program_hash=program,
            code_hash=code,
            error=record.error,
            calibration=record.calibration,
            message=record.message,
            known=True,
            conditions=record.conditions,
            taken=record.time,
        )

    def provenance(self, now: float | None = None) -> str:
        """Where the time comes from: ``measured now, machine idle`` or ``from the records, 3 days ago,
        machine busy: other processes took 60% of the cores``. ``now``: seconds since the epoch."""
        if self.taken is None:
            loaded = self.conditions.quiet or self.conditions.busy
            return f"measured now, {self.conditions.words}" if loaded else "measured now"
        age = age_text((time.time() if now is None else now) - self.taken)
        return f"from the records, {age}, {self.conditions.words}"


@dataclass(frozen=True)
class Origin:
    """What timed a program: the target, and the machine by its fingerprint and its details (JSON).

    ``gauged``: it tells what else the machine did meanwhile.
    """

    target: str
    fingerprint: str
    details: str
    gauged: bool = False

    def believes(self, record: Record) -> bool:
        """Whether a record says what measuring now would say: not where it is old, marked or doubtful."""
        if record.status in SETTLED:
            return True
        return record.status == "ok" and stands(record.conditions, time.time() - record.time, self.gauged)

    def record(
        self,
        measurement: Measurement,
        program: Program,
        workload: Workload,
        effort: Effort,
        line: str,
        player: str,
    ) -> Record:
        """A measurement of a program as it is kept."""
        output = workload.start.buffer_of[workload.start.outputs[0]]
        return Record(
            program_hash=program.hash,
            program_text=program.text,
            start_hash=workload.start.hash,
            kernel=workload.kernel or program.name,
            shape="x".join(str(d.size) for d in output.dims if d.materialised),
            dtype=output.dtype,
            policy=workload.policy,
            line=line,
            target=self.target,
            fingerprint=self.fingerprint,
            machine=self.details,
            code_hash=measurement.code_hash,
            status=measurement.status,
            verified=measurement.verified,
            seconds=measurement.seconds,
            samples=measurement.raw,
            error=measurement.error,
            calibration=measurement.calibration,
            message=measurement.message,
            effort=effort.label,
            player=player,
            time=time.time(),
            load=measurement.conditions.load,
            exclusive=measurement.conditions.exclusive,
        )


def seconds_text(seconds: float) -> str:
    """A time in three digits: ``1.83 ms``."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
