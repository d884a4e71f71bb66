"""A target as everybody else sees it: what it raises and should not becomes a sentence here, once for all.

The log has the traceback. What its interface lets it raise goes through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dojo_core.codegen.assembly import Assembly
from dojo_core.codegen.code import Generated, NotGeneratable
from dojo_core.measure.clock import Clock, TargetMeasurer
from dojo_core.measure.database import DatabaseFault
from dojo_core.measure.job import Job
from dojo_core.measure.measurement import Workload
from dojo_core.measure.profile import Profile
from dojo_core.plugins import failed
from dojo_core.program.target import Target
from dojo_core.program.text import LOCATIONS, MARKS
from dojo_core.program.tree import Program
from dojo_core.targets.backend import Backend, Report, Words
from dojo_core.targets.cpu.instruction_set import InstructionSet

if TYPE_CHECKING:
    from dojo_core.game import Game
    from dojo_core.measure.records import Records

GROUP = "dojo.targets"
TROUBLE = (OSError, DatabaseFault)  # a disk's, the records': not the target's fault
_SENTENCES = (ValueError, *TROUBLE)


class TargetFailed(ValueError):
    """Something of a target raised what it never should; ``str()`` is a sentence that names its package."""


@contextmanager
def guarded(target: str, *expected: type[Exception]) -> Iterator[None]:
    """Whatever something of a target raises but for what is expected becomes a TargetFailed."""
    try:
        yield
    except expected:
        raise
    except Exception as fault:
        raise TargetFailed(failed(GROUP, target, fault)) from fault


def _known(limits: Target) -> None:
    """Raises TypeError for limits that would fail, or come to nothing, only in the middle of a game."""
    try:
        hash(limits)
    except TypeError as fault:
        wanted = "its class needs a method __hash__, as a dataclass takes away what Target has"
        raise TypeError(f"its limits have no hash, {fault}: {wanted}") from fault
    for kind, named, there_are in (
        ("location", limits.locations, LOCATIONS),
        ("mark", limits.marks, tuple(filter(None, MARKS))),
    ):
        strange = sorted(set(named).difference(there_are))
        if strange:
            raise TypeError(f"its limits name the {kind} {strange[0]!r}: there are {', '.join(there_are)}")


class Guarded(Backend):
    """A target by another, whose name, words and limits are looked at now. Raises whatever they do."""

    def __init__(self, target: Backend) -> None:
        self._own = target
        self.name, self.words, self.native, self.rivals = (
            target.name,
            target.words,
            target.native,
            target.rivals,
        )
        if not isinstance(target.words, Words):
            raise TypeError("its words are no Words")
        limits = target.limits
        if not isinstance(limits, Target) or limits.name != target.name:
            raise TypeError(f"its limits are no Target named {target.name}")
        _known(limits)
        self.exported = target.exported
        if self.exported is not None and (
            not isinstance(self.exported, InstructionSet) or self.exported.word != target.name
        ):
            raise TypeError(f"what it has for exports is no InstructionSet named {target.name}")
        self.__doc__ = target.__doc__

    def __getattr__(self, name: str) -> Any:
        """What a target has beside the interface, for its own folder."""
        if name.startswith("_"):  # of a copy that has nothing yet
            raise AttributeError(name)
        return getattr(self._own, name)

    def _guard(self, *expected: type[Exception]) -> AbstractContextManager[None]:
        return guarded(self.name, *expected)

    @property
    def limits(self) -> Target:
        with self._guard():
            return self._own.limits

    def generate(self, program: Program, policy: str) -> Generated:
        try:
            generated = self._own.generate(program, policy)
            if len(generated.text.splitlines()) != len(generated.nodes):
                raise TypeError("its code has not one node, or None, for each line")
            return generated
        except NotGeneratable:
            raise
        except Exception as fault:
            raise NotGeneratable(failed(GROUP, self.name, fault)) from fault

    def clock(self) -> Clock:
        try:
            clock = self._own.clock()
            if not isinstance(clock, Clock):
                raise TypeError(f"its clock is of the type {type(clock).__name__}")
            return clock
        except Exception as fault:
            return Clock("missing", missing=failed(GROUP, self.name, fault))

    def measurer(self, records: Records | None = None) -> TargetMeasurer:
        with self._guard(*_SENTENCES):
            return _Measurer(self._own.measurer(records), self._guard)

    def assembly(self, program: Program, policy: str) -> Assembly:
        with self._guard(NotGeneratable, *_SENTENCES):
            return self._own.assembly(program, policy)

    @property
    def told(self) -> str:  # type: ignore[override]
        with self._guard():
            return self._own.told

    def on(self, machine: str) -> Backend:
        with self._guard(ValueError):
            other = self._own.on(machine)
        return self if other is self._own else Guarded(other)

    def bring(self, machine: str, told: str) -> None:
        with self._guard(ValueError):
            self._own.bring(machine, told)

    def machines(self) -> tuple[str, ...]:
        """None, where they cannot be told: lists have the target itself all the same."""
        try:
            return tuple(self._own.machines())
        except Exception as fault:
            failed(GROUP, self.name, fault)
            return ()

    def learn(self, records: Records) -> Mapping[str, str]:
        try:
            return self._own.learn(records)
        except TROUBLE:
            raise
        except Exception as fault:  # the app starts all the same
            failed(GROUP, self.name, fault)
            return {}

    @property
    def lines(self) -> Path | None:
        with self._guard():
            return self._own.lines

    def report(self, game: Game, all_moves: bool) -> Report | None:
        with self._guard(NotGeneratable, *_SENTENCES):
            return self._own.report(game, all_moves)

    def machine(self, details: str) -> str:
        try:
            return self._own.machine(details)
        except Exception as fault:  # the details may be of another target
            raise ValueError(f"These are no details of {self.name}: {fault}") from fault

    @property
    def passes(self) -> Mapping[str, Any]:
        with self._guard():
            return self._own.passes


class _Measurer(TargetMeasurer):
    """A target's measurer, guarded alike."""

    def __init__(self, measurer: TargetMeasurer, guard: Callable[..., AbstractContextManager[None]]) -> None:
        self._own, self._guard = measurer, guard

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._own, name)

    def warm(self) -> None:
        with self._guard(*TROUBLE):
            self._own.warm()

    def carry_out(self, job: Job) -> None:
        with self._guard(*TROUBLE):
            measurements = self._own.measure(
                job.workload, job.programs, job.effort, job.tell, job.cancelled,
                player=job.player, lines=job.lines, fresh=job.fresh, against=job.against,
                on_rough=job.on_rough,
            )  # fmt: skip
            for measurement in measurements:
                if measurement.program_hash not in job.results:  # it told nobody as it came
                    job.tell(measurement)

    def profile(
        self, workload: Workload, program: Program, cancelled: Callable[[], bool] | None = None
    ) -> Profile:
        with self._guard(NotGeneratable, *_SENTENCES):
            return self._own.profile(workload, program, cancelled)

    @property
    def input_sets(self) -> int:
        with self._guard():
            return self._own.input_sets

    def close(self) -> None:
        self._own.close()
