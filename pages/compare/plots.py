"""The plots of a comparison. Each entry has a colour and a sign of its own; the table has their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from agents.curves import logged
from agents.plots import COLOURS, panels_of
from dojo_core.bench.table import Line
from dojo_core.measure.places import data_directory
from pages.axes import log_ticks

# Mid tones that stand on white and on black, told apart also without colour by their signs.
TONES = ("#3b8eea", "#e0912f", "#2fa36b", "#a56be0", "#d9556a", "#1fa5a0")
SIGNS = ("circle", "square", "diamond", "cross", "triangle-up", "x")
HEIGHT = 300


def dots(rows: Sequence[Line]) -> go.Figure:
    """Every sample as a dot, a row an entry, its rounds from top to bottom; medians with their intervals."""
    timed = [line for line in rows if line.rounds]
    largest = max(ns for line in timed for each in line.rounds for ns in each)
    scale, unit = _unit(max(line.middle.value for line in timed if line.middle is not None) * 1e9)
    figure = go.Figure()
    for number, line in enumerate(timed):
        count = max(1, len(line.rounds))
        spots = [
            (ns / scale, number + 0.3 * (2 * (r + 0.5) / count - 1), r + 1)
            for r, each in enumerate(line.rounds)
            for ns in each
        ]
        figure.add_scatter(
            x=[x for x, _, _ in spots], y=[y for _, y, _ in spots], mode="markers", name=line.name,
            customdata=[r for _, _, r in spots], showlegend=False,
            marker={"color": TONES[number % 6], "symbol": SIGNS[number % 6], "size": 6, "opacity": 0.65},
            hovertemplate=f"%{{x:.4g}} {unit}, round %{{customdata}}<extra></extra>",
        )  # fmt: skip
        if line.middle is not None:
            low, high = (t * 1e9 / scale for t in (line.middle.low, line.middle.high))
            figure.add_shape(
                type="rect", x0=low, x1=high, y0=number - 0.4, y1=number + 0.4, line_width=0,
                fillcolor=TONES[number % 6], opacity=0.22,
            )  # fmt: skip
            at = line.middle.value * 1e9 / scale
            figure.add_shape(
                type="line", x0=at, x1=at, y0=number - 0.4, y1=number + 0.4,
                line={"color": TONES[number % 6], "width": 2},
            )  # fmt: skip
    figure.update_yaxes(
        tickvals=list(range(len(timed))), ticktext=[_plain(line.name) for line in timed],
        range=[len(timed) - 0.5, -0.5], showgrid=False, zeroline=False,
    )  # fmt: skip
    smallest = min(ns for line in timed for each in line.rounds for ns in each)
    figure.update_xaxes(title_text=f"time, {unit}", zeroline=False)
    if largest > 20 * smallest:
        figure.update_xaxes(type="log", **log_ticks(smallest / scale, largest / scale))
    return _laid_out(figure, max(HEIGHT, 60 + 55 * len(timed)))


def roofline(rows: Sequence[Line], report: dict[str, Any]) -> go.Figure | None:
    """Rates under the machine's limits; None where those, or the kernel's operations, are not known."""
    limits, flops = report["limits"], report["flops"]
    if not limits or not flops or not limits["gflops"]:
        return None
    bandwidth, peak = limits["gbytes_per_second"], limits["gflops"]
    intensity = flops / limits["bytes"]  # of the pattern that the limit is of: none is above the roof
    knee = peak / bandwidth
    span = [min(intensity, knee) / 8, knee, max(intensity, knee) * 8]
    figure = go.Figure()
    figure.add_scatter(
        x=span, y=[min(peak, bandwidth * x) for x in span], mode="lines", name="the machine's limit",
        line={"color": "#808891", "width": 2}, showlegend=False,
        hovertemplate="%{y:.4g} GFLOP/s<extra>the machine's limit</extra>",
    )  # fmt: skip
    timed = [line for line in rows if line.best]
    for number, line in enumerate(timed):
        rate = flops / (line.best or 1.0) / 1e9
        figure.add_scatter(
            x=[intensity], y=[rate], mode="markers", name=_plain(line.name),
            marker={"color": TONES[number % 6], "symbol": SIGNS[number % 6], "size": 11},
            hovertemplate=f"{rate:.4g} GFLOP/s<extra></extra>",
        )  # fmt: skip
    rates = [flops / (line.best or 1.0) / 1e9 for line in timed]
    lowest = min([*rates, bandwidth * span[0]])
    figure.update_xaxes(
        type="log",
        title_text="operations a byte (as the limit's pattern moves them)",
        **log_ticks(span[0], span[2]),
    )
    figure.update_yaxes(type="log", title_text="GFLOP/s", **log_ticks(lowest, peak))
    figure.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "font": {"size": 11}})
    return _laid_out(figure, HEIGHT + 60).update_layout(margin_t=36)  # room for the names above the roof


def convergence(document: dict[str, Any]) -> go.Figure | None:
    """Best so far of the agents whose runs are logged, over the programs they measured."""
    curves = logged(data_directory() / "runs", document["start_hash"], document["fingerprint"])
    shown = [panel for panel in panels_of([c for c in curves if c.points]) if panel.x == "evaluations"]
    if not shown:
        return None
    figure = go.Figure()
    for number, band in enumerate(shown[-1].bands):
        colour = COLOURS[number % len(COLOURS)]
        figure.add_scatter(
            x=[*band.x, *band.x[::-1]], y=[*band.high, *band.low[::-1]], fill="toself", fillcolor=colour,
            opacity=0.2, line_width=0, hoverinfo="skip", showlegend=False,
        )  # fmt: skip
        figure.add_scatter(
            x=band.x, y=band.median, name=_plain(band.agent), mode="lines",
            line={"color": colour, "shape": "hv", "dash": ("solid", "dash", "dot", "dashdot")[number % 4]},
        )  # fmt: skip
    figure.update_xaxes(title_text="programs measured")
    figure.update_yaxes(type="log", title_text="speed, fastest = 1")
    return _laid_out(figure, HEIGHT)


def _unit(largest: float) -> tuple[float, str]:
    """(nanoseconds, name) of the unit in which the largest time is at least 1."""
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if largest >= scale:
            return scale, unit
    return 1.0, "ns"


def _plain(name: str) -> str:
    """A name is text: Plotly takes some tags for markup."""
    short = name if len(name) <= 34 else name[:33] + "…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _laid_out(figure: go.Figure, height: float) -> go.Figure:
    figure.update_layout(height=math.ceil(height), margin={"l": 10, "r": 10, "t": 10, "b": 10})
    return figure
