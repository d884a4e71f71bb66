"""Where the time of a program goes, and what bounds each part of it: what a target tells of a position."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from dojo_core.measure.measurement import seconds_text
from dojo_core.program.tree import Path

Source = Literal["timer", "model"]
# What a part may be bound by, in the order in which they are told; what each means is in docs/profile.md.
KINDS = ("instructions", "latency", "ports", "L1", "L2", "L3", "memory", "stores", "branch", "fault")
NOT_EXPLAINED = "not explained"
TOLD_GAIN = 1.05  # what is less is not worth a word


def told_share(explained: float) -> str:
    """A limit's share of a time in words: a model may say more than there is."""
    return "all" if explained >= 1.0 else f"{100 * explained:.0f}%"


@dataclass(frozen=True)
class Limit:
    """The least seconds that a part takes by one of ``KINDS``. ``source``: what says so, as words."""

    kind: str
    seconds: float
    source: str


@dataclass(frozen=True)
class Part:
    """A scope or an operation. ``seconds`` of one run of the program, and the ``share`` of its whole.

    ``source``: whether a timer says so, or a model parts what a timer around it measured. ``bound``: the kind
    of the limit that explains the time, or ``NOT_EXPLAINED``; empty where it has no code of its own.
    ``explained``: that limit over the seconds (0 where there is none). ``limits``: all, the largest first;
    ``together``: the seconds that a model gives the part, the pipeline's and all waits added up.
    """

    path: Path
    text: str
    seconds: float
    share: float
    source: Source
    bound: str
    explained: float
    limits: tuple[Limit, ...]
    together: float

    @property
    def gain(self) -> float:
        """How many times as fast the whole would be with this part at its nearest limit: 1 and more."""
        return 1.0 / (1.0 - min(self.share, 1.0) * max(0.0, 1.0 - self.explained)) if self.explained else 1.0

    @property
    def sentence(self) -> str:
        """Its share, who says so, what bounds it, and what the whole would gain at that limit."""
        gain = (
            f" At that limit the program would be {self.gain:.2f}× as fast." if self.gain >= TOLD_GAIN else ""
        )
        return f"{self._share_and_bound}{gain}"

    @property
    def _share_and_bound(self) -> str:
        told = f"{100 * self.share:.1f}% of the time ({self.source})"
        if not self.bound:
            return f"{told}."
        if self.bound == NOT_EXPLAINED:
            nearest = (
                f": {self.limits[0].kind} takes {100 * self.explained:.0f}% of it" if self.limits else ""
            )
            return f"{told}, {NOT_EXPLAINED} by any limit{nearest}."
        source = next(limit.source for limit in self.limits if limit.kind == self.bound)
        return (
            f"{told}, bound by {self.bound}: that alone takes {told_share(self.explained)} of it ({source})."
        )


@dataclass(frozen=True)
class Hot:
    """Lines of the assembly from ``first`` to ``last`` (0 the first), their share, how often they were run,
    and whether they are a loop."""

    first: int
    last: int
    share: float
    runs: int
    loop: bool


@dataclass(frozen=True)
class Profile:
    """``seconds``: one run of the program without timers. ``parts_seconds``: what the timers of its parts add
    up to, their own cost taken off. ``threads``: on how many it ran.

    ``parts`` come in the order of the text. ``hot`` is of the assembly, by share. ``counters``: what the
    system counted, by name, of one run; ``remarks``: sentences on what could not be had.
    """

    seconds: float
    parts_seconds: float
    threads: int
    parts: tuple[Part, ...]
    hot: tuple[Hot, ...]
    counters: dict[str, float]
    remarks: tuple[str, ...]

    @property
    def agreement(self) -> float:
        """What the parts' timers add up to, over the whole: 1 where they agree."""
        return self.parts_seconds / self.seconds

    @property
    def sentence(self) -> str:
        """How long it took, on how many threads, and how much of that its timers tell."""
        threads = f"{self.threads} threads" if self.threads > 1 else "one thread"
        counted = (f"{name.capitalize()} a run: {count:g}." for name, count in self.counters.items() if count)
        return " ".join([
            f"{seconds_text(self.seconds)} on {threads}.",
            f"The timers add up to {100 * self.agreement:.0f}% of it.",
            *counted,
            *self.remarks,
        ])  # fmt: skip

    @property
    def data(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        return {**asdict(self), "agreement": self.agreement}
