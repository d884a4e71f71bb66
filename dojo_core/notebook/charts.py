"""Charts as inline SVG, whose colours are the box's: speed over moves, and bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT = 640.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 84.0, 14.0, 30.0


def speed_chart(points: Sequence[tuple[int, str, float | None]], moves: int) -> str:
    """The speed-up after moves of a line, of which there are so many: of each that was measured its number,
    0 for the start, its name and its speed-up; None of a program that came to no time."""
    known = [speed for _, _, speed in points if speed is not None] or [1.0]
    low, high = min(math.log10(min(known)), -0.1), max(math.log10(max(known)), 0.1)

    def x(number: int) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * number / moves, 1)

    def y(speed: float) -> float:
        return round(_TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - math.log10(speed)) / (high - low), 1)

    rows = []
    for tick in _ticks(low, high):
        kind, level = "even" if tick == 1 else "grid", y(tick)
        rows.append(f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{level}" y2="{level}"/>')
        rows.append(f'<text x="{_LEFT - 8}" y="{level + 4:.1f}" text-anchor="end">{tick:g}×</text>')
    timed = " ".join(f"{x(number)},{y(speed)}" for number, _, speed in points if speed is not None)
    rows.append(f'<polyline class="line" points="{timed}"/>')
    for number, name, speed in points:
        told = "no time" if speed is None else f"{speed:.3g}×"
        title = f"<title>{escape(f'{number}: {name}, {told}')}</title>"
        height = _HEIGHT - _BOTTOM if speed is None else y(speed)
        kind = "failed" if speed is None else "dot"
        rows.append(f'<circle class="{kind}" cx="{x(number)}" cy="{height}" r="4">{title}</circle>')
    number, _, speed = points[-1]
    if speed is not None:
        rows.append(f'<text class="told" x="{x(number) + 9}" y="{y(speed) + 4:.1f}">{speed:.3g}×</text>')
    rows.append(f'<text x="{_LEFT}" y="{_HEIGHT - 8}">start</text>')
    end = f"{moves} move{'s' * (moves > 1)}"
    rows.append(f'<text x="{x(moves)}" y="{_HEIGHT - 8}" text-anchor="end">{end}</text>')
    return _svg(_HEIGHT, rows, "Speed-up after each move")


def bars(rows: Sequence[tuple[str, float, str, bool]]) -> str:
    """A bar for each (name, length, words behind it, is it ours?)."""
    longest, tall = max(length for _, length, _, _ in rows), 26.0
    left, wide = 190.0, 290.0
    drawn = []
    for number, (name, length, words, ours) in enumerate(rows):
        top, width = tall * number + 4, max(2.0, wide * length / longest)
        shown = name if len(name) <= 26 else f"{name[:25]}…"
        drawn.append(f'<text x="{left - 8}" y="{top + 13}" text-anchor="end">{escape(shown)}</text>')
        kind = "ours" if ours else "theirs"
        title = f"<title>{escape(f'{name}: {words}')}</title>"
        drawn.append(
            f'<rect class="{kind}" x="{left}" y="{top}" width="{width:.1f}" height="17" rx="2">{title}</rect>'
        )
        drawn.append(f'<text class="told" x="{left + width + 8:.1f}" y="{top + 13}">{escape(words)}</text>')
    return _svg(tall * len(rows) + 6, drawn, "Times")


def _svg(height: float, rows: Sequence[str], label: str) -> str:
    size = f'viewBox="0 0 {_WIDTH:.0f} {height:.0f}" width="{_WIDTH:.0f}"'
    return f'<svg {size} role="img" aria-label="{label}">{"".join(rows)}</svg>'


def _ticks(low: float, high: float) -> list[float]:
    """Round speeds between two powers of ten, given as logarithms; at most seven."""
    for steps in ((1, 1.2, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [
            step * 10.0**power
            for power in range(math.floor(low), math.ceil(high) + 1)
            for step in steps
            if low <= math.log10(step * 10.0**power) <= high
        ]
        if len(ticks) <= 7:
            break
    return ticks
