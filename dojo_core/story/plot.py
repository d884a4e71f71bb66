"""Time over moves as a picture (SVG) that reads on a light page and on a dark one."""

from __future__ import annotations

import math
from html import escape

from dojo_core.measure.measurement import seconds_text
from dojo_core.story.steps import Story
from dojo_core.story.times import Times

WIDTH, HEIGHT = 860, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 76, 18, 44

# Greys and a blue with contrast on white and on near black alike; nothing is painted behind them.
_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #768390; }
.grid { stroke: #768390; stroke-opacity: .25; }
.band { fill: #768390; fill-opacity: .10; }
.line { fill: none; stroke: #2f81f7; stroke-width: 2; stroke-linejoin: round; }
.dot { fill: #2f81f7; }
.told { fill: #2f81f7; font-weight: 600; }"""


def plot(story: Story, times: Times) -> str:
    """The picture's text. The vertical axis is logarithmic; bands are the groups of moves, numbered."""
    known = [s for s in times.seconds if s is not None]
    low, high = math.log10(min(known)), math.log10(max(known))
    low, high = low - 0.08 * (high - low or 1), high + 0.12 * (high - low or 1)
    moves = max(1, len(times.seconds) - 1)

    def x(move: float) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * move / moves, 1)

    def y(seconds: float) -> float:
        return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (high - math.log10(seconds)) / (high - low), 1)

    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{escape(story.title)}: time after each move</title>",
        f"<style>\n{_STYLE}\n</style>",
    ]
    for number, group in enumerate(story.groups, 1):
        begin, end = x(group.steps[0].number - 0.5), x(group.steps[-1].number + 0.5)
        if number % 2:
            height = HEIGHT - _TOP - _BOTTOM
            width = round(min(end, WIDTH - _RIGHT) - begin, 1)
            rows.append(f'<rect class="band" x="{begin}" y="{_TOP}" width="{width}" height="{height}"/>')
        middle = round((begin + min(end, WIDTH - _RIGHT)) / 2, 1)
        rows.append(
            f'<text x="{middle}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{number}'
            f"<title>{escape(group.title)}</title></text>"
        )
    for seconds in _ticks(low, high):
        level = y(seconds)
        rows.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{level}" y2="{level}"/>')
        rows.append(f'<text x="{_LEFT - 8}" y="{level + 4}" text-anchor="end">{seconds_text(seconds)}</text>')
    rows.append(f'<text x="{_LEFT}" y="{HEIGHT - 8}">groups of moves, as numbered on the page</text>')
    points = [(x(n), y(s), n, s) for n, s in enumerate(times.seconds) if s is not None]
    rows.append(f'<polyline class="line" points="{" ".join(f"{a},{b}" for a, b, _, _ in points)}"/>')
    names = {step.number: step.move for group in story.groups for step in group.steps}
    for across, down, number, seconds in points:
        name = f"{number}: {names[number]}" if number else "start"
        label = escape(f"{name}, {seconds_text(seconds)}")
        rows.append(f'<circle class="dot" cx="{across}" cy="{down}" r="2.5"><title>{label}</title></circle>')
    (left, top, _, start), (right, bottom, _, end) = points[0], points[-1]
    rows.append(f'<text class="told" x="{left + 4}" y="{top - 12}">{seconds_text(start)}</text>')
    rows.append(f'<text class="told" x="{right + 10}" y="{bottom + 4}">{seconds_text(end)}</text>')
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
