"""How sure geometric means over kernels are."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

RESAMPLED = 10_000


def interval(groups: Sequence[Sequence[float]], resampled: int = RESAMPLED) -> tuple[float, float, float]:
    """The geometric mean of ratios given as logarithms, by kernel, and its 95% interval: kernels are drawn
    with replacement, then seeds of each."""
    rng = random.Random(0)

    def mean(drawn: Sequence[Sequence[float]]) -> float:
        flat = [ratio for group in drawn for ratio in group]
        return math.exp(sum(flat) / len(flat))

    drawn = sorted(
        mean([rng.choices(group, k=len(group)) for group in rng.choices(groups, k=len(groups))])
        for _ in range(resampled)
    )
    return mean(groups), drawn[int(0.025 * resampled)], drawn[int(0.975 * resampled)]
