"""The stage and the curves beside it, the same for a live run and a recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from pages.components import component
from pages.watch import charts, learned
from pages.watch.lanes import Lane, Look, looked_at, shown

stage = component("dojo_stage", "watch/stage.css", "watch/stage.js")

Action = Mapping[str, Any]
Part = TypeVar("Part")


def looks() -> dict[str, Look]:
    """What this tab looks at, by run."""
    by_run: dict[str, Look] = st.session_state.setdefault("watch_looks", {})
    return by_run


def looked(action: Action, standard: str) -> bool:
    """Take in what only changes the view; was it that?"""
    run, by_run = str(action.get("run", "")), looks()
    look = by_run.get(run, Look(standard))
    match action.get("kind"), action:
        case "follow", {"value": "best" | "newest" as value}:
            by_run[run] = Look(value)
        case "look", {"entry": int(entry)}:
            by_run[run] = Look(look.follow, entry)
        case "ply", {"ply": int(ply)}:
            by_run[run] = Look(look.follow, look.entry, max(0, ply))
        case _:
            return False
    return True


def draw(
    lanes: Sequence[Lane],
    acted: Callable[[Action], None],
    standard: str = "best",
    replay: Mapping[str, Any] | None = None,
) -> None:
    """Runs side by side. ``acted`` hears of presses that change more than the view."""

    def came() -> None:
        action = (st.session_state.get("stage") or {}).get("action")
        if not isinstance(action, dict) or action.get("n") == st.session_state.get("stage_did"):
            return  # a press can come twice where a rerun overtakes another
        st.session_state.stage_did = action.get("n")
        if not looked(action, standard):
            acted(action)

    by_run = looks()
    drawn = [_drawn(lane, by_run.get(lane.id, Look(standard))) for lane in lanes]
    st.session_state.watch_asks = any((each["learned"] or {}).get("pending") for each in drawn)
    stage(key="stage", data={"lanes": drawn, "replay": replay}, on_action_change=came)


def _drawn(lane: Lane, look: Look) -> dict[str, Any]:
    entry, ply = looked_at(lane, look)
    return shown(lane, look) | {
        "learned": learned.shown(lane, entry, ply), "chances": learned.chances(lane, entry)
    }  # fmt: skip


def in_order(stage: Part, curves: Part, lanes: int) -> tuple[Part, Part]:
    """The curves come below, in a race above: then who leads is what one looks for first."""
    return (curves, stage) if lanes > 1 else (stage, curves)


def asks() -> bool:
    """Is a policy still asked about what was drawn? Then it is worth another look."""
    return bool(st.session_state.get("watch_asks"))


def draw_curves(lanes: Sequence[Lane]) -> None:
    """The curves of runs, or all of it as a table."""
    if not any(entry.seconds is not None for lane in lanes for entry in lane.entries):
        st.caption("No program has been measured yet: the curves begin with the first.")
        return
    left, right, _ = st.columns([2, 2, 6], vertical_alignment="bottom")
    against = left.segmented_control(
        "Against", ["programs", "seconds"], default="programs", required=True, key="watch_against"
    )
    as_table = right.segmented_control(
        "Shown as", ["curves", "table"], default="curves", required=True, key="watch_shown"
    )
    if as_table == "table":
        st.dataframe(charts.table(lanes), height=320, hide_index=True, key="watch_table")
        return
    one, other = st.columns(2)
    with one:
        st.plotly_chart(
            charts.best_so_far(lanes, against or "programs"),
            key="watch_best",
            config={"displayModeBar": False},
            alt="Best time so far of each run; the same as a table: choose Shown as table.",
        )
    with other:
        figure = charts.weighed(lanes)
        if figure is not None:
            st.plotly_chart(
                figure,
                key="watch_weighed",
                config={"displayModeBar": False},
                alt="What was weighed; the same as a table: choose Shown as table.",
            )
