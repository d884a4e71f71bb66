"""A match as a page: for each kernel a chart, the standings, and the players' lines side by side, move by
move.

The page has no script, and says so to the browser: what players said is text on it, whatever it says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from agents.match import PlayedLine
from agents.plots import COLOURS
from dojo_core.files import write_text
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.speed import DRIFT_QUIET, SIGNS, Verdict, apart
from dojo_core.wording import counted

WIDTH, HEIGHT, LEFT, BELOW = 720.0, 260.0, 56.0, 34.0
DASHES = ("", "7 3", "2 3", "9 3 2 3")
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5em auto; max-width: 100em; padding: 0 1em; }
table { border-collapse: collapse; }
th, td { padding: 3px 12px; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
svg { max-width: 720px; width: 100%; height: auto; display: block; margin: 1em 0; }
svg text { fill: currentColor; font-size: 12px; } svg .grid { stroke: #8884; }
.players { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24em), 1fr)); gap: 1.5em; }
h3 { margin: 1.2em 0 .3em; overflow-wrap: anywhere; } .mark { font-weight: 700; }
ol { padding-left: 2.4em; margin: .4em 0; } li { padding: 2px 0; border-bottom: 1px solid #8883; }
code, pre { font: 13px/1.4 ui-monospace, monospace; } code { overflow-wrap: anywhere; }
pre { overflow-x: auto; margin: .3em 0; } .time { float: right; margin-left: 1em; opacity: .85; }
.went { color: light-dark(#a3263a, #ff9aa8); } .came { color: light-dark(#12692f, #7fdc9a); }
blockquote { margin: .2em 0 .4em; padding-left: .8em; border-left: 3px solid #8886; white-space: pre-wrap;
  overflow-wrap: anywhere; } .note { opacity: .8; max-width: 60em; }
"""
NOTE = (
    "Each player's best line. Times were taken one after the other when the match was over, by nobody's "
    f"budget: two that differ by less than a tenth are told as alike ({SIGNS['equal']}). Open a move to see "
    "what it changes."
)


def write_match(path: Path, lines: Sequence[PlayedLine]) -> None:
    write_text(path, page(lines))


def page(lines: Sequence[PlayedLine]) -> str:
    """The whole page, which needs nothing else."""
    kernels = list(dict.fromkeys(line.kernel for line in lines))
    title = f"A match on {', '.join(kernels[:3])}{' and others' if len(kernels) > 3 else ''}"
    sections = "".join(_section(k, [line for line in lines if line.kernel == k]) for k in kernels)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f'<p class="note">{escape(NOTE)}</p>{sections}</body></html>\n'
    )


def _section(kernel: str, lines: Sequence[PlayedLine]) -> str:
    ranked = sorted(lines, key=lambda line: line.final or math.inf)
    players = "".join(_player(line, number) for number, line in enumerate(ranked))
    start = f"<details><summary>The start program</summary><pre>{escape(lines[0].start)}</pre></details>"
    return (
        f"<h2>{escape(kernel)}</h2>{_chart(kernel, ranked)}{_standings(ranked)}{start}"
        f'<div class="players">{players}</div>'
    )


def _standings(lines: Sequence[PlayedLine]) -> str:
    head = "<tr><th>player</th><th>time</th><th>against the start</th><th>moves</th><th>programs</th></tr>"
    rows = "".join(
        f"<tr><td>{escape(_name(line))}</td><td>{_time(line.final)}</td>"
        f"<td>{_ratio(line.seconds, line.final)}</td><td>{len(line.plies)}</td>"
        f"<td>{len(line.tried)}</td></tr>"
        for line in lines
    )
    return f"<table>{head}{rows}</table>"


def _player(line: PlayedLine, number: int) -> str:
    items, before = [], line.seconds
    for ply in line.plies:
        changes = "".join(
            f'<span class="{"came" if sign == "+" else "went"}">{sign} {escape(text)}</span>\n'
            for sign, text in ply.changes
        )
        items.append(
            f"<li><details><summary><code>{escape(ply.move)}</code> "
            f'<span class="time">{_step(before, ply.seconds)}</span></summary>'
            f"<pre>{changes}</pre></details>{_quoted(ply.words)}</li>"
        )
        before = ply.seconds or before
    mark = f'<span class="mark" style="color:{_colour(number)}">{"━" if not _dash(number) else "╍"}</span>'
    told = f"Start {_time(line.seconds)}, end {_time(line.final)}." if items else "Its best is the start."
    return (
        f"<section><h3>{mark} {escape(_name(line))}</h3><p>{told}</p><ol>{''.join(items)}</ol>"
        f"{_all_tried(line)}</section>"
    )


def _all_tried(line: PlayedLine) -> str:
    """The programs of the run in order, with all that was said."""
    rows = "".join(
        f"{_quoted(each.aside)}<li><code>{escape(each.move or 'the start')}</code> "
        f'<span class="time">{_time(each.seconds) if each.seconds else escape(each.status)}</span>'
        f"{_quoted(each.words)}</li>"
        for each in line.tried
    )
    count = counted(len(line.tried), "program")
    return f"<details><summary>The match as it was played: {count}</summary><ol>{rows}</ol></details>"


def _quoted(words: str) -> str:
    return f"<blockquote>{escape(words)}</blockquote>" if words else ""


def _name(line: PlayedLine) -> str:
    return f"{line.agent}, seed {line.seed}" if line.seed else line.agent


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else seconds_text(seconds)


def _ratio(before: float | None, after: float | None) -> str:
    return f"{before / after:.3g}×" if before and after else ""


def _step(before: float | None, after: float | None) -> str:
    """The time after a move, with what it gained."""
    if not before or not after:
        return _time(after)
    return f"{SIGNS[_verdict(before, after)]} {seconds_text(after)} ({before / after:.2f}×)"


def _verdict(before: float, after: float) -> Verdict:
    verdict = apart(before, after, DRIFT_QUIET).verdict
    return verdict if verdict in ("faster", "slower") else "equal"


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _dash(number: int) -> str:
    return DASHES[number % len(DASHES)]


def _chart(kernel: str, lines: Sequence[PlayedLine]) -> str:
    """Speed against the start after each move, on a logarithmic axis; empty where nothing was timed."""
    curves = []
    for line in lines:
        if not line.seconds:
            continue
        after = [(n, line.seconds / ply.seconds) for n, ply in enumerate(line.plies, 1) if ply.seconds]
        curves.append([(0, 1.0), *after])
    speeds = [speed for curve in curves for _, speed in curve]
    if not speeds:
        return ""
    low, high = math.floor(math.log2(min(speeds))), math.ceil(math.log2(max(speeds) * 1.01))
    most = max(1, *(at for curve in curves for at, _ in curve))
    every = -(-(high - low) // 8)

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT - 12) * at / most

    def y(speed: float) -> float:
        return 10 + (HEIGHT - BELOW - 10) * (high - math.log2(speed)) / max(1, high - low)

    body = []
    for power in range(low, high + 1, every):
        at = y(2.0**power)
        body.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>')
        body.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{2.0**power:g}×</text>')
    for number, curve in enumerate(curves):
        points = " ".join(f"{x(at):.1f},{y(speed):.1f}" for at, speed in curve)
        body.append(
            f'<polyline points="{points}" fill="none" stroke="{_colour(number)}" stroke-width="2" '
            f'stroke-dasharray="{_dash(number)}"/>'
        )
    body.append(f'<text x="{WIDTH}" y="{HEIGHT - 6}" text-anchor="end">after move {most}</text>')
    body.append(f'<text x="{LEFT}" y="{HEIGHT - 6}">start; up is faster</text>')
    label = escape(f"{kernel}: speed against the start after each move; the same as numbers below")
    return f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{label}">{"".join(body)}</svg>'
