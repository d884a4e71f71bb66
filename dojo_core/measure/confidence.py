"""How sure a median is: an interval from the order of the samples, without assuming how they are distributed.

Between the k-th smallest and the k-th largest of n samples lies the median with probability
1 - 2 P(Binomial(n, 1/2) < k). Source: H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed., section 7.1;
T. Hoefler and R. Belli, Scientific Benchmarking of Parallel Computing Systems, SC '15, rule 6.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95


@dataclass(frozen=True)
class Median:
    """A median and its interval, in the samples' unit; ``level`` is the probability that the interval holds,
    at least 0.95 where there are six samples or more, else what the whole range gives."""

    value: float
    low: float
    high: float
    level: float


def median(samples: Sequence[float], level: float = LEVEL) -> Median:
    """The narrowest such interval of at least ``level``. Raises ValueError without samples."""
    if not samples:
        raise ValueError("There are no samples.")
    ordered, count = sorted(samples), len(samples)
    tail = [0.0]  # P(Binomial(count, 1/2) < k)
    for k in range(count):
        tail.append(tail[-1] + math.comb(count, k) / 2**count)
    reached = [k for k in range(1, count // 2 + 1) if 1 - 2 * tail[k] >= level]
    k = max(reached, default=1)
    return Median(
        statistics.median(ordered), ordered[k - 1], ordered[count - k], max(0.0, 1 - 2 * tail[k])
    )  # fmt: skip


def ratio(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> Median | None:
    """Best run over best run within each round (lists of samples by round); None without a common round."""
    ratios = [min(b) / min(a) for a, b in zip(ours, theirs, strict=False) if a and b]
    return median(ratios) if ratios else None


# Student's t at 99.68%, by degrees of freedom from 1 on: the bounds of a two-sided interval of 99.36%.
FEW_LEVEL = 0.9936
_STUDENT = (99.47, 12.44, 6.84, 5.23, 4.50, 4.09, 3.84)
FEW = len(_STUDENT) + 1


def few_ratios(ratios: Sequence[float]) -> Median:
    """The median of two to eight ratios with an interval of 99.36%, which so few leave open in their order.

    Their logarithms are taken to be normal, so that one that is far off makes the interval wide. Raises
    ValueError of fewer or more.
    """
    count = len(ratios)
    if not 2 <= count <= FEW:
        raise ValueError(f"Two to {FEW} ratios, not {count}.")
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.mean(logs)
    half = _STUDENT[count - 2] * statistics.stdev(logs) / math.sqrt(count)
    half = min(half, 50.0)  # which says as much as no interval, and is a number
    value = statistics.median(ratios)
    return Median(value, min(value, math.exp(middle - half)), max(value, math.exp(middle + half)), FEW_LEVEL)
