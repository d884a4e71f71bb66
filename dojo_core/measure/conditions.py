"""Under which conditions a time was taken: what else the machine did meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

# The share of the cores that others may use beside a measurement. The shortest of some samples survives what
# comes and goes, as a system's own daemons do (1 to 3% of two idle cores), but not what is there a tenth of
# the time and more: a kernel on all cores waits for its slowest one. Readings are whole ticks of 10 ms, so
# that a share over 0.3 s of two cores is off by some percent itself: less than a tenth could not be told.
QUIET_SHARE = 0.1

# A time older than a month is taken again: the fingerprint names processor, compiler and flags, but systems,
# firmware and memory are changed under it.
OLD_SECONDS = 30 * 86_400.0
# A process that found the machine busy does not measure the same again at once: loads last for minutes.
AGAIN_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Conditions:
    """``load``: the share of the machine's cores (0 to 1) that other processes used while it was timed; None
    where that is not known: a record of an older Dojo, a system that does not tell, a GPU.
    ``exclusive``: the machine was held alone; not where it was measured beside another measurement.
    """

    load: float | None = None
    exclusive: bool = True

    @property
    def busy(self) -> bool:
        """Something else is known to have run: the time is longer than it need be."""
        return not self.exclusive or (self.load is not None and self.load > QUIET_SHARE)

    @property
    def quiet(self) -> bool:
        """Nothing else ran that counts, and that is known."""
        return self.exclusive and self.load is not None and self.load <= QUIET_SHARE

    def __str__(self) -> str:
        """``idle``, ``busy: other processes took 60% of the cores``, or ``load not known``."""
        reasons = []
        if self.load is not None and self.load > QUIET_SHARE:
            reasons.append(f"other processes took {self.load:.0%} of the cores")
        if not self.exclusive:
            reasons.append("another measurement ran beside it")
        if reasons:
            return f"busy: {', and '.join(reasons)}"
        return "load not known" if self.load is None else "idle"

    @property
    def words(self) -> str:
        """For a sentence: ``machine idle``, ``machine busy: …``, ``load not known``."""
        return f"machine {self}" if self.busy or self.quiet else str(self)

    @property
    def mark(self) -> str:
        """For a table: ``idle``, ``busy 60%``, ``busy`` (not alone on the machine), empty if not known."""
        if self.busy:
            return f"busy {self.load:.0%}" if self.load is not None and self.load > QUIET_SHARE else "busy"
        return "idle" if self.quiet else ""


UNKNOWN = Conditions()
# What a reader of a marked time is told.
BUSY_MEANS = "Noise only adds to a time: one taken on a busy machine is longer than it need be."


def worth(conditions: Conditions, age: float) -> int:
    """What a time is worth as the time of its program, ``age`` in seconds: 0 is the best.

    Of a program's times those of least ``worth`` count, of them the shortest. So what was taken on a busy
    machine counts only where nothing else is known, and an old time only until there is a new one.
    """
    old = age > OLD_SECONDS
    if conditions.busy:
        return 4
    return (0 if conditions.quiet else 2) + old


def stands(conditions: Conditions, age: float, gauged: bool) -> bool:
    """Whether a time need not be taken again. ``gauged``: the clock that took it tells what else ran, so that
    a time without a load is doubtful: it is of an older Dojo."""
    return worth(conditions, age) == 0 or (not gauged and worth(conditions, age) == 2)


def age_text(seconds: float) -> str:
    """How long ago, in one unit: ``just now``, ``5 minutes ago``, ``3 days ago``."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(seconds // length)
        if count >= 1:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
