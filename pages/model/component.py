"""The picture of a model and the list of its kernels: a component of our own, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import streamlit as st

from dojo_core.measure.measurement import seconds_text
from dojo_core.service.model_view import UNDER_WAY, KernelView, ModelView
from dojo_core.wording import counted
from pages.components import component
from pages.model.picture import Row, rows, width
from pages.watch.lanes import ratio

model = component("dojo_model", "model/model.css", "model/model.js")

Action = Mapping[str, Any]
STATES = {"waiting": "waits to be measured", "measuring": "being measured", "failed": "could not be measured"}


def draw(view: ModelView, opened: Collection[int], worst: str, acted: Callable[[Action], None]) -> None:
    """``worst`` is the kernel that is marked, ``acted`` hears of presses."""

    def came() -> None:
        action = (st.session_state.get("model_picture") or {}).get("action")
        if not isinstance(action, dict) or action.get("n") == st.session_state.get("model_did"):
            return  # a press can come twice where a rerun overtakes another
        st.session_state.model_did = action.get("n")
        acted(action)

    model(key="model_picture", data=shown(view, opened, worst), on_action_change=came)


def shown(view: ModelView, opened: Collection[int], worst: str = "") -> dict[str, Any]:
    """What the component draws, in words and in shares of 1."""
    drawn = rows(view.graph, opened)
    untimed = [each for each in view.kernels.values() if each.seconds is None]
    return {
        "id": view.id,
        "worst": worst,
        "lanes": width(drawn),
        "rows": [_row(view, row, opened) for row in drawn],
        "kernels": [_kernel(view, each) for each in (*view.timed, *untimed)],
    }


def _row(view: ModelView, row: Row, opened: Collection[int]) -> dict[str, Any]:
    lanes = {"lane": row.lane, "past": row.past, "read": row.read, "given": row.given}
    if row.tensor:
        tensor = view.graph.tensors[row.tensor]
        name = view.graph.label(row.tensor)
        return {"tensor": name, "about": tensor.kind, "searched": name.lower(), **lanes}
    calls = [view.graph.calls[number] for number in row.calls]
    kernel = view.kernels[calls[0].kernel]
    taken = None if kernel.seconds is None else len(calls) * kernel.seconds
    block = row.block and {
        "first": row.block.first, "times": row.block.times, "calls": row.block.length,
        "open": row.block.first in opened,
    }  # fmt: skip
    return {
        "kernel": kernel.name,
        "nodes": ", ".join(calls[0].nodes),
        "searched": " ".join([kernel.name, *(node for call in calls for node in call.nodes)]).lower(),
        "times": len(calls),
        "block": block,
        "within": row.within,
        **lanes,
        "share": None if taken is None or not view.seconds else taken / view.seconds,
        "limit": kernel.of_limit,
        "time": "" if taken is None else seconds_text(taken),
    }


def _kernel(view: ModelView, kernel: KernelView) -> dict[str, Any]:
    found = ""
    if kernel.start is not None and kernel.seconds is not None and kernel.moves != 0:
        moves = "" if kernel.moves is None else f" by {counted(kernel.moves, 'move')}"
        found = f"{ratio(kernel.start / kernel.seconds)} as fast as its start{moves}"
    elif kernel.start is not None and kernel.seconds is None:
        found = f"its start takes {seconds_text(kernel.start)}"
    beside = kernel.beside_rival
    return {
        "name": kernel.name,
        "about": " · ".join(
            [f"{kernel.calls} calls" if kernel.calls > 1 else "1 call", f"gives {kernel.shape}"]
        ),
        "nodes": ", ".join(kernel.nodes),
        "time": "" if kernel.seconds is None else seconds_text(kernel.seconds) + " ▲" * kernel.busy,
        "total": "" if kernel.total is None or kernel.calls < 2 else f"{seconds_text(kernel.total)} in all",
        "share": view.share(kernel.name),
        "limit": kernel.of_limit,
        "bound": "" if kernel.limit is None else kernel.limit.bound,
        "found": found,
        "rival": "" if beside is None else f"{ratio(beside)} as fast as {kernel.rival_by}",
        "state": ("its start: " if kernel.state in UNDER_WAY and kernel.seconds else "")
        + STATES.get(kernel.state, ""),
        "working": kernel.state == "measuring",
        "message": kernel.message[:300] if kernel.state == "failed" else "",
    }
