"""The times of a line's positions: taken once, then kept in a file beside the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from dojo_core.bounded_json import read_object
from dojo_core.measure.machine import this_machine
from dojo_core.program.expressions import TextError
from dojo_core.story.steps import Story
from dojo_core.targets.cpu.measurer import Effort, Measurement, Measurer, Workload

RUN_SECONDS = 120.0  # a naive program may take many


class NotTimed(Exception):
    """A position that is not right on this machine; ``str()`` is a sentence."""


@dataclass(frozen=True)
class Times:
    """``seconds`` of the start and after each move, the least of all runs; None where it has no C."""

    machine: str
    date: str
    rounds: int
    seconds: tuple[float | None, ...]

    def text(self) -> str:
        """As it is kept."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"


def read_times(text: str) -> Times:
    """Times as they were kept. Raises TextError."""
    try:
        known = read_object(text)
        seconds = tuple(None if s is None else float(s) for s in known["seconds"])
        return Times(str(known["machine"]), str(known["date"]), int(known["rounds"]), seconds)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TextError(
            f"these are no times of a line ({error})", "Take them again, without --again."
        ) from error


def take_times(story: Story, rounds: int, on_result: Callable[[], None] = lambda: None) -> Times:
    """Verify and time every position, all of them in each round. Raises NotTimed.

    ``on_result`` is called ``rounds`` times for each different program.
    """
    workload = Workload(story.start, story.kernel, story.policy)
    programs = list(dict.fromkeys(story.programs))
    best: dict[str, float | None] = {}
    with Measurer(run_seconds=RUN_SECONDS) as measurer:

        def heard(measurement: Measurement) -> None:
            on_result()

        for _ in range(rounds):
            for measurement in measurer.measure(workload, programs, Effort.NORMAL, heard, fresh=True):
                if measurement.status == "refused":
                    best[measurement.program_hash] = None
                    continue
                if measurement.status != "ok" or measurement.seconds is None:
                    number = next(
                        n for n, p in enumerate(story.programs) if p.hash == measurement.program_hash
                    )
                    raise NotTimed(
                        f"The position after move {number} of {story.name} is not right on this machine: "
                        f"{measurement.status.replace('_', ' ')}: {measurement.message}"
                    )
                before = best.get(measurement.program_hash)
                best[measurement.program_hash] = (
                    measurement.seconds if before is None else min(before, measurement.seconds)
                )
    return Times(
        this_machine().summary,
        datetime.now(UTC).strftime("%Y-%m-%d"),
        rounds,
        tuple(best[p.hash] for p in story.programs),
    )
