"""How a target's programs come to a number here, and what that number is worth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from dojo_core.measure.job import Job
from dojo_core.measure.measurement import Effort, Measurement, Origin, Workload, seconds_text
from dojo_core.measure.profile import Profile
from dojo_core.program.tree import Program


@dataclass(frozen=True)
class Clock:
    """What gives programs of a target a number.

    ``kind``: ``"measured"`` (seconds on a device), ``"modelled"`` (a model's count, told as ``unit``),
    ``"emulated"`` (programs are run and verified, nothing has a number), ``"elsewhere"`` (another machine's
    seconds, as far as they are recorded here) or ``"missing"`` (nothing runs them). ``origin``: whose number
    it is; None where there is none. ``missing``: where nothing new gets one here, why, and how it is got.
    ``label``: what its numbers are, where they are not measured seconds. ``steady``: the factor by which two
    numbers of one program differ at most whatever this computer does meanwhile; None: other processes share
    it. ``lock``: the name of the measuring lock that is held while it counts, None where it needs none.
    """

    kind: Literal["measured", "modelled", "emulated", "elsewhere", "missing"]
    origin: Origin | None = None
    unit: Literal["seconds", "cycles"] = "seconds"
    label: str = ""
    steady: float | None = None
    lock: str | None = None
    missing: str = ""

    @property
    def timed(self) -> bool:
        """Do programs have a number here?"""
        return self.origin is not None

    @property
    def counts(self) -> bool:
        """Does what has no number yet get one here?"""
        return self.timed and self.kind != "elsewhere"

    @property
    def gauged(self) -> bool:
        """Does its number come with what else the machine did?"""
        return self.origin is not None and self.origin.gauged

    @property
    def exact(self) -> bool:
        """Is it always the same for a program, so that no second look tells more?"""
        return self.kind != "measured"

    def text(self, seconds: float) -> str:
        """A number as a person reads it: ``1.83 ms``, or ``12,345 cycles``."""
        return seconds_text(seconds) if self.unit == "seconds" else f"{1e9 * seconds:,.0f} {self.unit}"


class TargetMeasurer(ABC):
    """Verifies a target's programs, and gives them a number where its clock has one. Close it, or use it in
    ``with``.

    What is found is kept in the records that it was made with, and found there. One for a target defines
    ``carry_out``, and ``warm`` and ``close`` where it starts something.
    """

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        effort: Effort = Effort.NORMAL,
        on_result: Callable[[Measurement], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        *,
        player: str = "",
        lines: Mapping[str, str] | None = None,
        fresh: bool = False,
        against: Program | None = None,
        on_rough: Callable[[str, float], None] | None = None,
    ) -> list[Measurement]:
        """One measurement for each program, in order; ``on_result`` is told each as it comes; blocks.

        A program that is right and has no number is ``verified``; one that was not looked at with this
        effort ``untimed``. ``fresh``: what is known is measured again. After ``cancelled`` says so, the rest
        is ``cancelled``. ``player`` and ``lines`` (by program hash, the moves from the start) go to the
        records. ``against``: a program that each is timed in turns with, where the clock is not steady.
        ``on_rough``: is told a program's hash and seconds of one run of it, on inputs of no meaning and not
        verified, where what it is verified on takes long to work out.
        """
        job = Job(
            workload, programs, effort, on_result, cancelled, player, lines or {}, fresh, against, on_rough
        )
        self.carry_out(job)
        return job.finish()

    @abstractmethod
    def carry_out(self, job: Job) -> None:
        """Tell the job of each of its programs, until it is cancelled."""

    def profile(
        self, workload: Workload, program: Program, cancelled: Callable[[], bool] | None = None
    ) -> Profile:
        """Where the time of a program goes; blocks. Raises NotGeneratable, and ValueError with a sentence: of
        a program that is wrong, or where nothing here can tell."""
        raise ValueError(f"Nothing here tells where the time of a program for {workload.target} goes.")

    @property
    def input_sets(self) -> int:
        """Among how many sets of inputs the runs of the last workload rotate."""
        return 1

    def warm(self) -> None:  # noqa: B027 (most start nothing)
        """Get ready before there is something to measure."""

    def close(self) -> None:  # noqa: B027
        """End what it started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
