"""Axes of the plots on several pages."""

from __future__ import annotations

import math
from typing import Any


def log_ticks(low: float, high: float) -> dict[str, list[Any]]:
    """Marks of a logarithmic axis: 1, 2 and 5 of each decade, over many decades the first alone."""
    steps = (1, 2, 5) if high < 300 * low else (1,)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [step * 10.0**decade for decade in decades for step in steps]
    return {"tickvals": marks, "ticktext": [f"{mark:,.10g}" for mark in marks]}
