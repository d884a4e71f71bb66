"""The curves of runs, and the same as tables: nothing is told by a chart alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import plotly.graph_objects as go

from agents.jobs import Entry
from dojo_core.targets.registry import backend
from pages.axes import log_ticks
from pages.watch.lanes import Lane, heat_name, share, target_of, thoughts

COLOURS = ("#3b8eea", "#e0912f")
DASHES = ("solid", "dash")
SYMBOLS = ("circle-open", "diamond-open")
MARGINS = {"l": 8, "r": 8, "t": 34, "b": 8}
HEIGHT = 270
PASSED = (0.5, 0.9, 1.0)  # fractions of the expert's speed that are marked where a run comes to them
MOST_POINTS = 400  # of a run in a figure, which a browser draws anew each second while the run goes on

Point = TypeVar("Point")


def thinned(points: Sequence[Point]) -> list[Point]:
    """At most ``MOST_POINTS`` of them, evenly and with the newest one: more lie on one another."""
    every = -(-len(points) // MOST_POINTS) or 1
    return list(points[::-1][::every][::-1])


def improving(entries: Sequence[Entry]) -> list[Entry]:
    """Those at which the best so far changes, and the newest one: the same step line as all of them make."""
    best = [entry for entry in entries if entry.best is not None]
    ends = (0, len(best) - 1)
    return [each for n, each in enumerate(best) if n in ends or each.best != best[n - 1].best]


def _layout(figure: go.Figure, title: str, x: str, y: str, **axes: Any) -> go.Figure:
    figure.update_layout(
        title={"text": title, "font": {"size": 14}, "x": 0, "xref": "paper"},
        height=HEIGHT,
        margin=MARGINS,
        legend={"orientation": "h", "y": 1.14, "x": 1, "xanchor": "right"},
        xaxis_title=x,
        yaxis_title=y,
        uirevision="stays",
        **axes,
    )
    figure.update_xaxes(rangemode="tozero")
    return figure


def _unit(lanes: Sequence[Lane]) -> tuple[float, str]:
    """The unit in which times read well: (factor, name)."""
    if lanes and lanes[0].spec.timing == "count":
        return 1e9, "operations counted"
    if lanes and backend(target_of(lanes[0].spec.game)).clock().unit == "cycles":
        return 1e9, "cycles of the program"
    times = [e.seconds for lane in lanes for e in lane.entries if e.seconds]
    least = min(times, default=1.0)
    scale, unit = next(
        (s, u)
        for s, u in ((1.0, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"))
        if least * s >= 0.1 or u == "ns"
    )
    return scale, f"time of the program, {unit}"


def best_so_far(lanes: Sequence[Lane], against: str) -> go.Figure:
    """The best so far as a step line, programs as points; ``against`` evaluations or seconds."""
    figure = go.Figure()
    scale, unit = _unit(lanes)

    def x(entry: Entry) -> float:
        return float(entry.evaluation if against == "programs" else entry.elapsed)

    for number, lane in enumerate(lanes):
        colour = COLOURS[number % 2]
        timed = thinned([e for e in lane.entries if e.seconds is not None])
        improvements = improving(lane.entries)
        figure.add_scatter(
            x=[x(e) for e in timed], y=[e.seconds * scale for e in timed if e.seconds], mode="markers",
            opacity=0.55,
            marker={"size": 6, "color": colour, "symbol": SYMBOLS[number % 2]}, showlegend=False,
            name=f"{lane.title}: measured",
        )  # fmt: skip
        figure.add_scatter(
            x=[x(e) for e in improvements], y=[(e.best or 0) * scale for e in improvements],
            mode="lines", name=lane.title,
            line={"shape": "hv", "color": colour, "dash": DASHES[number % 2], "width": 2.5},
        )  # fmt: skip
        _mark_passed(figure, lane, x, scale, number)
    experts = sorted({lane.expert * scale for lane in lanes if lane.expert})
    last = max((x(lane.entries[-1]) for lane in lanes if lane.entries), default=0.0)
    for expert in experts:
        figure.add_scatter(
            x=[0, last], y=[expert, expert], mode="lines", line={"color": "#8a8f98", "dash": "dot"},
            name="the expert",
        )  # fmt: skip
    _layout(figure, "Best so far", _counted(lanes, against), unit, yaxis_type="log")
    shown = [e.seconds * scale for lane in lanes for e in lane.entries if e.seconds]
    if shown:
        figure.update_yaxes(log_ticks(min([*shown, *experts]), max([*shown, *experts])))
    return figure


def _counted(lanes: Sequence[Lane], against: str) -> str:
    """What the axis counts: moves where all are lines, told move by move."""
    return "moves" if all(lane.told_by_move for lane in lanes) else against


def _mark_passed(
    figure: go.Figure, lane: Lane, x: Callable[[Entry], float], scale: float, number: int
) -> None:
    """A star where a run comes to each of ``PASSED``, with the percentage."""
    passed: dict[int, list[float]] = {}
    for fraction in PASSED:
        if (entry := lane.passed(fraction)) is not None:
            passed.setdefault(entry.number, []).append(fraction)
    entries = [entry for entry in lane.entries if entry.number in passed]
    if not entries:
        return
    figure.add_scatter(
        x=[x(e) for e in entries], y=[(e.best or 0) * scale for e in entries], mode="markers+text",
        text=[", ".join(f"{100 * fraction:.0f}" for fraction in passed[e.number]) + "%" for e in entries],
        textposition="top right", showlegend=False,
        marker={"size": 11, "color": COLOURS[number % 2], "symbol": "star"},
        name=f"{lane.title}: of the expert's speed",
    )  # fmt: skip


def weighed(lanes: Sequence[Lane]) -> go.Figure | None:
    """What was expected against what came out, where agents expect something; else their chances."""
    by_lane = {lane.id: thoughts(lane) for lane in lanes}
    if any(t.value is not None for each in by_lane.values() for t, _, _ in each):
        return _expected(lanes, by_lane)
    if not any(t.probability is not None for each in by_lane.values() for t, _, _ in each):
        return None
    figure = go.Figure()
    hot = False
    for number, lane in enumerate(lanes):
        colour = COLOURS[number % 2]
        chances = thinned(
            [
                (e.evaluation, t.probability)
                for t, e, _ in by_lane[lane.id]
                if e is not None and t.probability is not None
            ]
        )
        heats = sorted(
            (e.evaluation, t.heat) for t, e, _ in by_lane[lane.id] if e is not None and t.heat is not None
        )  # in the order of the programs: the line never runs back
        heats = thinned(heats)
        hot = hot or bool(heats)
        figure.add_scatter(
            x=[at for at, _ in chances], y=[chance for _, chance in chances], mode="markers", opacity=0.6,
            marker={"size": 6, "color": colour, "symbol": SYMBOLS[number % 2]}, name=f"{lane.title}: chance",
        )  # fmt: skip
        if heats:
            figure.add_scatter(
                x=[at for at, _ in heats], y=[heat for _, heat in heats], mode="lines", yaxis="y2",
                line={"color": colour, "dash": "dot"}, name=heat_name(lane),
            )  # fmt: skip
    axes: dict[str, Any] = {"yaxis_range": [-0.05, 1.05]}
    if hot:
        axes["yaxis2"] = {
            "overlaying": "y",
            "side": "right",
            "title": "temperature",
            "showgrid": False,
            "rangemode": "tozero",
        }
    return _layout(figure, "Chance of being taken", _counted(lanes, "programs"), "chance", **axes)


def _expected(lanes: Sequence[Lane], by_lane: Any) -> go.Figure:
    figure = go.Figure()
    ends: list[float] = []
    for number, lane in enumerate(lanes):
        first = lane.reference
        pairs = thinned(
            [
                (first / e.seconds, t.value)
                for t, e, _ in by_lane[lane.id]
                if first and e is not None and e.seconds and t.value is not None
            ]
        )
        ends += [value for pair in pairs for value in pair]
        figure.add_scatter(
            x=[measured for measured, _ in pairs], y=[value for _, value in pairs], mode="markers",
            opacity=0.6,
            marker={"size": 6, "color": COLOURS[number % 2], "symbol": SYMBOLS[number % 2]}, name=lane.title,
        )  # fmt: skip
    if ends:
        figure.add_scatter(
            x=[min(ends), max(ends)], y=[min(ends), max(ends)], mode="lines", name="as expected",
            line={"color": "#8a8f98", "dash": "dot"},
        )  # fmt: skip
    return _layout(figure, "Expected against measured speed-up", "measured speed-up", "expected (Q)")


def table(lanes: Sequence[Lane]) -> list[dict[str, Any]]:
    """All programs of all runs, newest first: what the curves show."""
    rows = []
    for lane in lanes:
        by_hash = {t.program: t for t, _, _ in thoughts(lane) if t.program != t.parent}
        for entry in lane.entries:
            of_expert = lane.expert / entry.best if lane.expert and entry.best else None
            thought = by_hash.get(entry.hash)
            rows.append(
                {
                    "run": lane.title,
                    "program": entry.evaluation,
                    "final": entry.final,
                    "seconds": round(entry.elapsed, 1),
                    "last move": entry.moves[-1] if entry.moves else "",
                    "moves": len(entry.moves),
                    "outcome": entry.status.replace("_", " "),
                    "time": lane.time(entry.seconds),
                    "best so far": lane.time(entry.best),
                    "of the expert's speed": "" if of_expert is None else share(of_expert),
                    "decision": "" if thought is None else thought.decision,
                    "chance": None if thought is None else thought.probability,
                    heat_name(lane): None if thought is None else thought.heat,
                    "expected": None if thought is None else thought.value,
                    "words": "" if thought is None else thought.words,
                }
            )
    return rows[::-1]
