"""Time over moves as a picture (SVG) that reads on a light page and on a dark one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 860, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 92, 18, 44

# Greys and a blue with contrast on white and on near black alike; nothing is painted behind them.
_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #768390; }
.grid { stroke: #768390; stroke-opacity: .25; }
.band { fill: #768390; fill-opacity: .10; }
.line { fill: none; stroke: #2f81f7; stroke-width: 2; stroke-linejoin: round; }
.dot { fill: #2f81f7; }
.told { fill: #2f81f7; font-weight: 600; }"""


@dataclass(frozen=True)
class Band:
    """Moves that belong together, by the numbers of the first and the last, counted from 1."""

    title: str
    first: int
    last: int


def plot(
    title: str,
    moves: Sequence[str],
    seconds: Sequence[float | None],
    bands: Sequence[Band],
    told: Callable[[float], str],
) -> str:
    """The picture's text. ``seconds``: of the start and after each of ``moves``, None where there is none;
    some are known. ``told`` puts a time into words. The vertical axis is logarithmic; bands are numbered."""
    known = [s for s in seconds if s is not None]
    low, high = math.log10(min(known)), math.log10(max(known))
    low, high = low - 0.08 * (high - low or 1), high + 0.12 * (high - low or 1)

    def x(move: float) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * move / max(1, len(moves)), 1)

    def y(time: float) -> float:
        return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (high - math.log10(time)) / (high - low), 1)

    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{escape(title)}: time after each move</title>",
        f"<style>\n{_STYLE}\n</style>",
    ]
    for number, band in enumerate(bands, 1):
        begin, end = x(band.first - 0.5), min(x(band.last + 0.5), WIDTH - _RIGHT)
        if number % 2:
            height, width = HEIGHT - _TOP - _BOTTOM, round(end - begin, 1)
            rows.append(f'<rect class="band" x="{begin}" y="{_TOP}" width="{width}" height="{height}"/>')
        middle = round((begin + end) / 2, 1)
        rows.append(
            f'<text x="{middle}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{number}'
            f"<title>{escape(band.title)}</title></text>"
        )
    for time in _ticks(low, high):
        level = y(time)
        rows.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{level}" y2="{level}"/>')
        rows.append(f'<text x="{_LEFT - 8}" y="{level + 4}" text-anchor="end">{told(time)}</text>')
    axis = "moves, in groups as numbered on the page" if bands else "moves"
    rows.append(f'<text x="{_LEFT}" y="{HEIGHT - 8}">{axis}</text>')
    points = [(x(n), y(s), n, s) for n, s in enumerate(seconds) if s is not None]
    rows.append(f'<polyline class="line" points="{" ".join(f"{a},{b}" for a, b, _, _ in points)}"/>')
    for across, down, number, time in points:
        name = f"{number}: {moves[number - 1]}" if number else "start"
        label = escape(f"{name}, {told(time)}")
        rows.append(f'<circle class="dot" cx="{across}" cy="{down}" r="2.5"><title>{label}</title></circle>')
    (left, top, _, start), (right, bottom, _, end) = points[0], points[-1]
    rows.append(f'<text class="told" x="{left + 4}" y="{top - 12}">{told(start)}</text>')
    rows.append(f'<text class="told" x="{right + 8}" y="{bottom + 4}">{told(end)}</text>')
    return "\n".join([*rows, "</svg>"]) + "\n"


def _ticks(low: float, high: float) -> list[float]:
    """Round times between two powers of ten, given as logarithms; at most eight."""
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [
            step * 10.0**power
            for power in range(math.floor(low), math.ceil(high) + 1)
            for step in steps
            if low <= math.log10(step * 10.0**power) <= high
        ]
        if len(ticks) <= 8:
            break
    return ticks
