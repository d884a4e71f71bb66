"""A measurement with the machine held, whose conditions say whether that held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dojo_core.measure.exclusive import CPU, measuring
from dojo_core.measure.measurement import Measurement


def measured_alone(
    take: Callable[[], Measurement], cancelled: Callable[[], bool] | None = None, clock: str = CPU
) -> Measurement | None:
    """A measurement under the lock, whose conditions say whether that held; None where ``cancelled`` said so.

    Taken once more where it was passed over or disturbed meanwhile.
    """
    for _ in range(2):
        with measuring(cancelled, clock) as claim:
            if not claim:
                return None
            outcome = take()
            alone = claim.alone()
        if alone or claim.beside:
            break
    return replace(outcome, conditions=replace(outcome.conditions, exclusive=alone))
