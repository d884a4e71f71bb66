"""Best-so-far of agents, against evaluations and against seconds: a page (plotly) and a picture (matplotlib).

A line is the median over seeds, the band reaches from the best seed to the worst. The first panels are the
geometric mean over all kernels, as in figure 13 of PerfDojo, SC '25.
"""

from __future__ import annotations

import html
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.comparison import Curve
from dojo_core.files import naming, write_text

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f")
POINTS = 60  # of a line against seconds


@dataclass(frozen=True)
class Band:
    """An agent's line in a panel: at each x the median, the least and the largest over seeds."""

    agent: str
    x: tuple[float, ...]
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str
    bands: tuple[Band, ...]


@dataclass(frozen=True)
class Table:
    """A table under the panels: the first column names, the others are numbers; and what they mean."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


STYLE = """
body { font: 15px system-ui, sans-serif; color: #222; background: #fff; margin: 1.5em; }
table { border-collapse: collapse; margin-top: 2em; }
th, td { padding: 3px 12px; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
p { color: #555; max-width: 60em; }
"""


def panels_of(curves: Sequence[Curve]) -> list[Panel]:
    """All kernels together (where there are several), then each by itself; two panels each."""
    kernels = list(dict.fromkeys(curve.kernel for curve in curves))
    result = []
    if len(kernels) > 1:
        result += _pair("geometric mean of all", curves)
    for kernel in kernels:
        result += _pair(kernel, [curve for curve in curves if curve.kernel == kernel])
    return result


def _pair(title: str, curves: Sequence[Curve]) -> list[Panel]:
    points = [point for curve in curves for point in curve.points]
    if not points:
        return []
    evaluations = [float(n) for n in range(1, max(p.evaluation for p in points) + 1)]
    longest = max(p.elapsed for p in points)
    seconds = [longest * (n + 1) / POINTS for n in range(POINTS)]
    agents = list(dict.fromkeys(curve.agent for curve in curves))
    scale = {k: min(p.best for c in curves if c.kernel == k for p in c.points) for k in _kernels(curves)}

    def bands(xs: Sequence[float], at: Callable[[Curve, float], float | None]) -> tuple[Band, ...]:
        made = (_band(agent, [c for c in curves if c.agent == agent], xs, at, scale) for agent in agents)
        return tuple(band for band in made if band.x)

    def by_evaluation(curve: Curve, x: float) -> float | None:
        return next((p.best for p in reversed(curve.points) if p.evaluation <= x), None)

    def by_seconds(curve: Curve, x: float) -> float | None:
        return next((p.best for p in reversed(curve.points) if p.elapsed <= x), None)

    return [
        Panel(title, "evaluations", bands(evaluations, by_evaluation)),
        Panel(title, "seconds", bands(seconds, by_seconds)),
    ]


def _kernels(curves: Sequence[Curve]) -> list[str]:
    return list(dict.fromkeys(curve.kernel for curve in curves if curve.points))


def _band(
    agent: str,
    curves: Sequence[Curve],
    xs: Sequence[float],
    at: Callable[[Curve, float], float | None],
    scale: dict[str, float],
) -> Band:
    """For each x, speed against the fastest of all (1), by seed; over kernels the geometric mean. It begins
    where all seeds have begun, since the median of the first ones would fall when another joins."""
    comparable = [curve for curve in curves if curve.kernel in scale]
    without = {curve.seed for curve in comparable if not curve.points}
    seeds = list(dict.fromkeys(curve.seed for curve in comparable if curve.seed not in without))
    points: list[tuple[float, float, float, float]] = []
    for x in xs:
        values = []
        for seed in seeds:
            speeds = [(scale[c.kernel], at(c, x)) for c in comparable if c.seed == seed]
            if all(seconds is not None for _, seconds in speeds):
                values.append(
                    statistics.geometric_mean(best / seconds for best, seconds in speeds if seconds)
                )
        if values and len(values) == len(seeds):
            points.append((x, statistics.median(values), min(values), max(values)))
    columns = list(zip(*points, strict=True)) or [(), (), (), ()]
    return Band(agent, *columns)


def write_page(path: Path, curves: Sequence[Curve], title: str, tables: Sequence[Table]) -> None:
    """A page of its own, that needs no network: the panels, and the tables below them."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    panels = panels_of(curves)
    rows = max(1, len(panels) // 2)
    figure = make_subplots(rows=rows, cols=2, subplot_titles=[panel.title for panel in panels])
    colours = _colours(panels)
    for number, panel in enumerate(panels):
        place = {"row": number // 2 + 1, "col": number % 2 + 1}
        for band in panel.bands:
            colour = colours[band.agent]
            edge = [*band.high, *band.low[::-1]]
            figure.add_trace(
                go.Scatter(
                    x=[*band.x, *band.x[::-1]], y=edge, fill="toself", fillcolor=colour, opacity=0.15,
                    line_width=0, hoverinfo="skip", showlegend=False, legendgroup=band.agent,
                ),
                **place,
            )  # fmt: skip
            figure.add_trace(
                go.Scatter(
                    x=band.x, y=band.median, name=band.agent, line={"color": colour, "shape": "hv"},
                    legendgroup=band.agent, showlegend=number == 0,
                ),
                **place,
            )  # fmt: skip
        figure.update_xaxes(title_text=panel.x, **place)
        figure.update_yaxes(type="log", title_text="speed, fastest = 1", **place)
    figure.update_layout(title=title, height=120 + 320 * rows, template="plotly_white")
    drawn = figure.to_html(full_html=False, include_plotlyjs=True)
    shown = "".join(map(_table, tables))
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{STYLE}</style></head><body>{drawn}{shown}</body></html>\n"
    )
    write_text(path, page)


def _table(table: Table) -> str:
    def row(cells: Sequence[str], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(c)}</{kind}>" for c in cells) + "</tr>"

    head, rows = row(table.columns, "th"), "".join(row(cells, "td") for cells in table.rows)
    return f"<table>{head}{rows}</table><p>{html.escape(table.note)}</p>"


def write_picture(path: Path, curves: Sequence[Curve], title: str) -> None:
    """A picture; PNG, or what the file's name ends in."""
    from matplotlib.figure import Figure

    panels = panels_of(curves)
    rows = max(1, len(panels) // 2)
    figure = Figure(figsize=(11, 0.8 + 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False)
    colours = _colours(panels)
    for number, panel in enumerate(panels):
        axis = axes[number // 2][number % 2]
        for band in panel.bands:
            axis.fill_between(band.x, band.low, band.high, color=colours[band.agent], alpha=0.15, step="post")
            axis.plot(
                band.x, band.median, color=colours[band.agent], label=band.agent, drawstyle="steps-post"
            )
        axis.set(title=panel.title, xlabel=panel.x, ylabel="speed, fastest = 1", yscale="log")
        axis.grid(alpha=0.3)
    if panels:
        axes[0][0].legend(fontsize="small")
    figure.suptitle(title)
    with naming(path):
        figure.savefig(path, dpi=110)


def _colours(panels: Sequence[Panel]) -> dict[str, str]:
    agents = list(dict.fromkeys(band.agent for panel in panels for band in panel.bands))
    return {agent: COLOURS[n % len(COLOURS)] for n, agent in enumerate(agents)}
