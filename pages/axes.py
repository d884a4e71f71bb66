"""Axes of the plots on several pages."""

from __future__ import annotations

import math
from typing import Any


def log_ticks(low: float, high: float) -> dict[str, list[Any]]:
    """Marks of a logarithmic axis: 1, 2 and 5 of each decade, over many decades the first alone; over less
    than one they are even."""
    if high < 5 * low:
        return _even_ticks(low, high)
    steps = (1, 2, 5) if high < 300 * low else (1,)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [step * 10.0**decade for decade in decades for step in steps]
    return {"tickvals": marks, "ticktext": [f"{mark:,.10g}" for mark in marks]}


def _even_ticks(low: float, high: float) -> dict[str, list[Any]]:
    """Some four or five, also where both ends are the same."""
    span = max(high - low, 0.02 * high)
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= span / 4)
    marks = [step * number for number in range(math.floor(low / step), math.ceil(high / step) + 1)]
    marks = [mark for mark in marks if mark > 0]
    return {"tickvals": marks, "ticktext": [f"{mark:,.6g}" for mark in marks]}
