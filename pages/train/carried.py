"""What carries over: teachers by round, and policies on kernels that they never saw. It is drawn from files:
the evidence that comes with the Dojo, and the folders of ``dojo train --library``. Nothing is measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from agents.jobs.processes import locked
from agents.perfllm.across import held_out
from agents.perfllm.across.folders import LIBRARY, Teacher, Told, libraries, told
from dojo_core.package_data import document_path
from dojo_core.targets.registry import backend
from dojo_core.wording import counted

COLOURS = ("#3b8eea", "#e0912f", "#46a758", "#a56be0", "#d9556a", "#1fa5a0")
DASHES = ("solid", "dash", "dashdot", "longdash", "dot", "longdashdot")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x", "star")
QUIET = "#8a8f98"
RESAMPLED = 500  # for an interval: enough for a picture
POLL = 4.0  # seconds between two looks at a loop that goes on
HEIGHT = 330
NAMES = 72  # pixels above a plot: three rows of names, as on a phone
FRACTION = "fraction of the expert's speed"


def section() -> None:
    """Below where runs are begun; it needs no torch."""
    st.subheader("What carries over")
    st.caption(
        "`dojo train --library` learns on many kernels what makes others fast: teachers search, a policy "
        "learns from their lines and guides the next round's. The expert is the target's heuristic pass, "
        "which neither hears of."
    )
    as_table = st.segmented_control(
        "Shown as", ["curves", "table"], default="curves", required=True, key="carried_shown"
    ) == "table"  # fmt: skip
    left, right = st.columns(2, gap="large")
    with left:
        _held_out(as_table)
    with right:
        _teachers(as_table)


# ---------------------------------------------------------------------------- kernels held out


@st.cache_data(show_spinner=False)
def _curves(file: Path, changed: float) -> dict[str, tuple[list[held_out.Curve], list[str]]]:
    """By what was left out: a curve of each player, and the kernels. ``changed``: when the file was."""
    budgets, runs = held_out.read(file)
    told_of = {}
    for scheme in held_out.schemes(runs):
        own = held_out.of_scheme(runs, scheme)
        told_of[scheme] = held_out.curves(budgets, own, RESAMPLED), sorted({run["kernel"] for run in own})
    return told_of


def _held_out(as_table: bool) -> None:
    st.markdown("**Kernels held out**")
    file = document_path("perfllm/carryover.json")
    schemes = _curves(file, file.stat().st_mtime) if file.exists() else {}
    if not schemes:
        st.caption("There is no evidence here: python -m benchmarks.carryover run makes it.")
    players = list(
        dict.fromkeys(curve.player for curves, _ in schemes.values() for curve in _best_first(curves))
    )
    for scheme, (curves, kernels) in schemes.items():
        st.caption(
            f"With {held_out.WORDS[scheme]} left out of what was learned on: {', '.join(kernels)}. Geometric "
            "mean over kernels with its 95% interval."
        )
        if as_table:
            rows = [
                {"player": c.player, "runs": c.runs}
                | {f"at {n}": f"{m:.2f} ({low:.2f} to {high:.2f})"
                   for n, m, low, high in zip(c.budgets, c.mean, c.low, c.high, strict=True)}
                for c in curves
            ]  # fmt: skip
            st.dataframe(rows, hide_index=True, key=f"carried_{scheme}_table")
        else:
            st.plotly_chart(
                of_held_out(curves, players), key=f"carried_{scheme}", config={"displayModeBar": False},
                alt="Fractions of the expert's speed by programs measured; the same as a table: choose "
                "Shown as table.",
            )  # fmt: skip


def _best_first(curves: list[held_out.Curve]) -> list[held_out.Curve]:
    return sorted(curves, key=lambda curve: -curve.mean[-1])


def of_held_out(curves: list[held_out.Curve], players: Sequence[str]) -> go.Figure:
    """A line with intervals for each player, the best at the last budget first. A player's place among all
    ``players`` says how it is drawn, so that it looks the same in every chart."""
    figure = _figure("programs measured", FRACTION)
    for curve in _best_first(curves):
        number = players.index(curve.player)
        colour = COLOURS[number % len(COLOURS)]
        figure.add_scatter(
            x=curve.budgets, y=curve.mean, mode="lines+markers", name=curve.player,
            line={"color": colour, "dash": DASHES[number % len(DASHES)], "width": 2},
            marker={"symbol": SYMBOLS[number % len(SYMBOLS)], "size": 8},
            error_y={
                "array": [h - m for h, m in zip(curve.high, curve.mean, strict=True)],
                "arrayminus": [m - low for low, m in zip(curve.low, curve.mean, strict=True)],
                "thickness": 1, "width": 3,
            },
        )  # fmt: skip
    marks = list(curves[0].budgets)
    figure.update_xaxes(type="log", tickvals=marks, ticktext=[str(n) for n in marks])
    return figure


# ---------------------------------------------------------------------------- teachers


def _loops() -> dict[str, Path]:
    """Folders of loops by what a person calls them: one's own, newest first, then those of the evidence."""
    own = sorted(libraries().glob(f"{LIBRARY}*/run.json"), key=lambda file: -file.stat().st_mtime)
    ours = sorted(document_path("perfllm/carryover").glob("*/run.json"))
    return {file.parent.name: file.parent for file in own} | {
        f"{file.parent.name}, which comes with the Dojo": file.parent for file in ours
    }


def _teachers(as_table: bool) -> None:
    st.markdown("**Teachers by round**")
    loops = _loops()
    if not loops:
        st.caption("None yet: dojo train --library begins one.")
        return
    name = st.selectbox("Loop", list(loops), key="carried_loop")
    folder = loops[name]
    going_on = locked(folder / "lock")

    def look_again() -> None:
        try:
            loop = told(folder)
        except ValueError as fault:
            st.error(str(fault))
            return
        state = "goes on" if locked(folder / "lock") else "rests"
        st.caption(
            f"{counted(len(loop.problems), 'problem')} on {loop.target}, {counted(loop.rounds, 'round')} "
            f"ended (blind in round 0), {loop.evaluations:,} programs measured; it {state}."
        )
        if not loop.teachers:
            st.caption("The first teacher has not ended yet.")
        elif as_table:
            st.dataframe(rows_of(loop), hide_index=True, height=HEIGHT, key="carried_teachers_table")
        else:
            st.plotly_chart(
                of_teachers(loop), key="carried_teachers", config={"displayModeBar": False},
                alt="Each teacher's best after each round; the same as a table: choose Shown as table.",
            )  # fmt: skip
        if locked(folder / "lock") != going_on:
            st.rerun()

    st.fragment(run_every=POLL if going_on else None)(look_again)()


def _worth(teacher: Teacher) -> list[float]:
    """Fractions of the expert's speed; where that was not taken, speed-ups over the start."""
    return teacher.fractions or [teacher.start / best for best in teacher.best]


def of_teachers(loop: Told) -> go.Figure:
    """A thin line for each problem, a thick one for their geometric mean."""
    with_expert = any(teacher.expert for teacher in loop.teachers)
    figure = _figure("round", FRACTION if with_expert else "times as fast as the start", at_one=with_expert)
    for teacher in loop.teachers:
        worth = _worth(teacher)
        name = f"{teacher.kernel} {teacher.shape}"
        figure.add_scatter(
            x=list(range(len(worth))), y=worth, mode="lines+markers", name=name, showlegend=False,
            line={"color": QUIET, "width": 1}, marker={"size": 5}, hovertemplate=f"{name}: %{{y:.2f}}",
        )  # fmt: skip
    means = [mean for mean in map(loop.mean, range(loop.rounds)) if mean is not None]
    if means:
        figure.add_scatter(
            x=list(range(len(means))), y=means, mode="lines+markers+text", name="geometric mean",
            line={"color": COLOURS[0], "width": 3}, marker={"size": 9}, textposition="top center",
            text=[f"{mean:.2f}" for mean in means],
        )  # fmt: skip
    figure.update_xaxes(dtick=1, range=[-0.5, max(loop.rounds, 1) - 0.5])
    return figure


def rows_of(loop: Told) -> list[dict[str, Any]]:
    """Each problem's start, expert and best, and what its teacher came to after each round."""
    text = backend(loop.target).clock().text
    return [
        {
            "kernel": teacher.kernel, "shape": teacher.shape, "start": text(teacher.start),
            "expert": text(teacher.expert) if teacher.expert else "–", "best": text(teacher.best[-1]),
        }
        | {f"round {n}": f"{worth:.2f}" for n, worth in enumerate(_worth(teacher))}
        for teacher in loop.teachers
    ]  # fmt: skip


def _figure(x: str, y: str, at_one: bool = True) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        height=HEIGHT, margin={"l": 8, "r": 8, "t": NAMES, "b": 8}, uirevision="stays",
        # Bound to the container: bound to the plot it stays where it was when a width makes its rows fewer.
        legend={"orientation": "h", "yref": "container", "y": 1, "yanchor": "top"},
        xaxis_title=x, yaxis_title=y,
    )  # fmt: skip
    figure.update_yaxes(rangemode="tozero")
    if at_one:
        figure.add_hline(1.0, line={"color": QUIET, "dash": "dot", "width": 1})
    return figure
