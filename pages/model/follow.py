"""A model that is open: its picture, its kernels, and what can be done with them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from agents.jobs import JobView
from dojo_core.measure.measurement import seconds_text
from dojo_core.service import Refused
from dojo_core.service.model_view import ModelView, advice
from dojo_core.service.takeaway import file_name
from dojo_core.wording import counted
from pages import shell
from pages.model import tuning
from pages.model.component import Action, draw
from pages.shared import the_models, the_owner, the_player, the_service
from pages.watch.lanes import ratio

POLL = 1.0  # seconds, while something is measured


def page(view: ModelView) -> None:
    calls, kernels = len(view.graph.calls), len(view.kernels)
    left, right = st.columns([1, 1], vertical_alignment="center")
    with left:
        shell.head(
            view.title,
            f"{counted(kernels, 'kernel')} in {counted(calls, 'call')}. What "
            "a game or an agent finds is in the model as soon as it is measured.",
        )
    found = tuning.runs(view)
    with right:
        _actions(view, found)
    working = view.measuring or any(run.works for run in found)

    def look_again() -> None:
        models = the_models()
        try:
            going_on = models.go_on(view.id, the_owner())
            latest, runs = models.view(view.id, the_owner()), tuning.runs(view)
        except Refused:  # deleted in another tab: the page says so
            st.rerun()
        next_thing = advice(latest)
        shell.notice(next_thing.sentence)
        if latest.down:
            shell.notice(f"The measurer has stopped: {latest.down} Measure tries again.", "error")
        if working:
            shell.tell_of_waiting("model")
        shell.facts(_facts(latest))
        tuning.show(latest, runs, working=True)
        draw(latest, _opened(view.id), next_thing.kernel, lambda action: _acted(view.id, action))
        tuning.show(latest, runs, working=False)
        _said()
        if st.session_state.pop("model_go", False):
            shell.go("play")
        if (going_on or any(run.works for run in runs)) != working:
            st.rerun()

    st.fragment(run_every=POLL if working else None)(look_again)()


def _facts(view: ModelView) -> str:
    if not view.timed:
        return ""
    facts = [f"All calls, each measured alone: {seconds_text(view.seconds)}"]
    whole = len(view.timed) == len(view.kernels)
    if whole and view.start is not None and view.start > view.seconds:
        facts.append(f"the start programs: {seconds_text(view.start)} ({ratio(view.start / view.seconds)})")
    if whole and view.rival is not None:
        beside = ratio(view.rival / view.seconds)
        facts.append(f"{view.rival_by}: {seconds_text(view.rival)} (this is {beside} as fast)")
    if any(each.busy for each in view.timed):
        facts.append("▲ taken on a busy machine: longer than it need be")
    return " · ".join(facts)


def _actions(view: ModelView, found: Sequence[JobView]) -> None:
    models, owner = the_models(), the_owner()
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="right", key="model-actions"
    ):
        if view.measuring:
            if st.button("Stop", key="model_stop"):
                models.stop(view.id, owner)
                st.rerun()
        elif st.button(
            "Measure", type="primary", key="model_measure",
            help="The heuristic pass plays each kernel; its program and the start are verified and timed.",
        ):  # fmt: skip
            models.measure(view.id, owner)
            st.rerun()
        tuning.offer(view, found)
        st.download_button(
            "C library", lambda: _archive(view.id, owner), f"{file_name(view.title)}.zip", "application/zip",
            key="model_export", on_click="ignore",
            help="The whole model: C files, a function that runs it, its weights, CMake, a Python package.",
        )  # fmt: skip
        if st.button("All models", key="model_all"):
            st.session_state.model = ""
            shell.readdress(m=None)


def _archive(model: str, owner: str) -> bytes | str:
    """The library, or in its place the sentence why there is none. Made outside of the tab's session."""
    try:
        return the_models().archive(model, owner)
    except Refused as refusal:
        return f"Not exported. {refusal}\n"


def _opened(model: str) -> set[int]:
    """The blocks that show all their calls in this tab."""
    blocks: dict[str, set[int]] = st.session_state.setdefault("model_blocks", {})
    return blocks.setdefault(model, set())


def _acted(model: str, action: Action) -> None:
    """Do what was pressed in the picture."""
    match action.get("kind"), action:
        case "block", {"first": int(first)}:
            _opened(model).symmetric_difference_update({first})
        case "open", {"kernel": str(kernel)}:
            service, player = the_service(), the_player()
            try:
                service.sit_down(player, the_models().game(model, kernel, the_owner()))
                service.say(
                    player, "What is measured here is in the model at once: Model in the bar leads back."
                )
                st.session_state.model_go = True
            except Refused as refusal:
                st.session_state.model_toast = str(refusal)


def _said() -> None:
    words = st.session_state.pop("model_toast", "")
    if words:
        st.toast(words)
