"""The curves of a training run, each with what it says in words, and all of it as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from agents.jobs.trainings import TrainingView
from dojo_core.measure.measurement import seconds_text

COLOUR, OTHER = "#3b8eea", "#e0912f"
Points = Sequence[tuple[float, float | None]]


def first(view: TrainingView) -> float | None:
    """Seconds of the start program."""
    return next((event["seconds"] for event in view.of("start")), None)


def time_text(view: TrainingView, seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds * 1e9:,.0f} ops" if view.spec.counting else seconds_text(seconds)


def _figure(title: str, y: str, log: bool = False, x: str = "programs") -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        title={"text": title, "font": {"size": 14}, "x": 0, "xref": "paper"}, height=230,
        margin={"l": 8, "r": 8, "t": 34, "b": 8}, showlegend=False, uirevision="stays",
        xaxis_title=x, yaxis_title=y, yaxis_type="log" if log else "linear",
    )  # fmt: skip
    return figure


def _line(figure: go.Figure, points: Points, shape: str = "linear", colour: str = COLOUR) -> go.Figure:
    figure.add_scatter(
        x=[x for x, _ in points], y=[y for _, y in points], mode="lines",
        line={"shape": shape, "color": colour, "width": 2},
    )  # fmt: skip
    return figure


def figures(view: TrainingView) -> dict[str, tuple[go.Figure, str]]:
    """The figures by name, each with a sentence about it."""
    moves, learned, episodes = view.of("move"), view.of("learn"), view.of("episode")
    unit = "operations counted" if view.spec.counting else "seconds"
    scale = 1e9 if view.spec.counting else 1.0
    best = [(m["evaluation"], m["best"] * scale) for m in moves if m.get("best")]
    rewards = [(n + 1, e["best_reward"]) for n, e in enumerate(episodes)]
    loss = [(e["evaluation"], e["loss"]) for e in learned if e.get("loss")]
    pairs = [
        (came, expected)
        for e in episodes[-200:]
        for expected, came in zip(e["q"], e["measured"], strict=False)
    ]
    q = _figure("Expected (Q) against measured", "expected (Q)", x="the reward that came, discounted")
    q.add_scatter(
        x=[came for came, _ in pairs], y=[value for _, value in pairs], mode="markers", opacity=0.45,
        marker={"size": 6, "color": COLOUR, "symbol": "circle-open"},
    )  # fmt: skip
    if pairs:
        ends = [min(min(p) for p in pairs), max(max(p) for p in pairs)]
        q.add_scatter(x=ends, y=ends, mode="lines", line={"color": OTHER, "dash": "dot"})
    return {
        "reward": (
            _line(_figure("Best reward of an episode", "speed-up", x="episodes"), rewards),
            "The reward is the start's time over the position's: the speed-up.",
        ),
        "best": (_line(_figure("Best so far", unit, log=True), best, "hv"), "The fastest verified program."),
        "q": (q, "On the dotted line a move brought what was expected of it."),
        "loss": (_line(_figure("Loss", "loss", log=True), loss), "Of the last updates, their mean."),
        "epsilon": (
            _line(_figure("Exploration", "ε"), [(e["evaluation"], e["epsilon"]) for e in learned], "hv"),
            "The share of moves played at random.",
        ),
        "rate": (
            _line(
                _figure("Speed", "programs a second"),
                [(e["evaluation"], e["evaluations_per_second"]) for e in learned],
            ),
            "Compiling, verifying, timing and learning together.",
        ),
    }


def tables(view: TrainingView) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(moves, rounds of learning), newest first: what the curves show."""
    moves = [
        {
            "program": m["evaluation"], "episode": m["episode"], "move": m["move"], "speed-up": m["reward"],
            "expected (Q)": m["q"], "at random": m["explored"], "time": time_text(view, m["seconds"]),
            "best so far": time_text(view, m["best"]),
        }
        for m in view.of("move")
    ]  # fmt: skip
    learned = [
        {
            "program": e["evaluation"], "updates": e["updates"], "loss": e["loss"], "ε": e["epsilon"],
            "programs a second": e["evaluations_per_second"],
        }
        for e in view.of("learn")
    ]  # fmt: skip
    return moves[::-1], learned[::-1]


def draw(view: TrainingView) -> None:
    if not view.of("move"):
        if view.works:
            st.caption("Starting: the model is loaded and the start program measured.")
        return
    as_table = st.segmented_control(
        "Shown as", ["curves", "table"], default="curves", required=True, key="train_shown"
    )
    if as_table == "table":
        moves, learned = tables(view)
        left, right = st.columns([3, 2])
        left.dataframe(moves, height=360, hide_index=True, key="train_moves_table")
        right.dataframe(learned, height=360, hide_index=True, key="train_learn_table")
        return
    columns = st.columns(3)
    for number, (name, (figure, about)) in enumerate(figures(view).items()):
        with columns[number % 3]:
            st.plotly_chart(
                figure, key=f"train_curve_{name}", config={"displayModeBar": False},
                alt=f"{about} The same as a table: choose Shown as table.",
            )  # fmt: skip
            st.caption(about)
