"""Runs that go on, or went on here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import streamlit as st

from agents.jobs import JobRefused, JobView
from agents.jobs.recording import read
from pages import shell
from pages.jobs import checked, keep, the_jobs
from pages.runs import notice_changes
from pages.watch.component import Action, asks, draw, draw_curves, in_order, looks
from pages.watch.hand import NotOpened, opened
from pages.watch.lanes import Lane, Look, from_one_start, taken_over
from pages.watch.studying import study_buttons

POLL = 1.0  # seconds between two looks while an agent plays
CURVES = 5.0  # and between two drawings of its curves, which take what the agent's clock would have
AFTER = 3.0  # seconds in which what was pressed shows


def page(runs: Sequence[str]) -> None:
    jobs = the_jobs()
    try:
        views = [jobs.view(run) for run in runs]
    except JobRefused as refusal:
        st.error(f"{refusal} It may have been deleted.")
        if st.button("To all runs"):
            _leave()
        return
    kernels = " and ".join(dict.fromkeys(view.spec.title for view in views))
    left, right = st.columns([8, 2], vertical_alignment="center")
    with left:
        shell.head("Watch", f"{kernels}. Closing this page stops nothing: runs are found again on Watch.")
    if right.button("All runs", key="watch_all", width="stretch"):
        _leave()

    polling, measured = _going_on(views) or asks(), _measured(views)

    def look_again() -> None:
        latest = [jobs.view(run) for run in runs]
        draw(_lanes(latest), acted)
        shell.tell_of_waiting("watch")
        _saying()
        if st.session_state.pop("watch_go", False):
            shell.go("play")
        demo = st.session_state.pop("watch_replay", None)
        if demo:
            shell.readdress(r=None, demo=demo)
        if (_going_on(latest) or asks()) != polling or _measured(latest) != measured:
            st.rerun()

    def curves_again() -> None:
        draw_curves(_lanes([jobs.view(run) for run in runs]))

    for part, seconds in in_order((look_again, POLL), (curves_again, CURVES), len(runs)):
        st.fragment(run_every=seconds if polling else None)(part)()
    if not polling:
        notice_changes(lambda: [jobs.state(run) for run in runs])
    for view in views:
        if view.state == "done" and view.entries:
            st.download_button(
                f"Save {view.spec.agent}'s run as a recording",
                jobs.file(view.spec.id).read_bytes(),
                file_name=f"{view.spec.kernel}-{view.spec.agent}.jsonl",
                key=f"save_{view.spec.id}",
                on_click="ignore",
            )
    study_buttons([read(jobs.file(view.spec.id)) for view in views if view.state == "done"])


def _lanes(views: Sequence[JobView]) -> list[Lane]:
    return from_one_start([Lane.live(view) for view in views])


def _going_on(views: Sequence[JobView]) -> bool:
    return any(view.works for view in views) or time.monotonic() < st.session_state.get("watch_until", 0.0)


def _measured(views: Sequence[JobView]) -> bool:
    """Do curves begin?"""
    return any(view.first is not None for view in views)


def _leave() -> None:
    shell.readdress(r=None, demo=None)


def say(words: str) -> None:
    """Tell something at the next drawing."""
    st.session_state.watch_said = words


def _saying() -> None:
    words = st.session_state.pop("watch_said", "")
    if words:
        st.toast(words)


def acted(action: Action) -> None:
    """Do what was pressed on the stage."""
    jobs, state = the_jobs(), st.session_state
    state.watch_until = time.monotonic() + AFTER
    simple: dict[str, Callable[[str], None]] = {
        "pause": checked(jobs.pause),
        "go_on": checked(jobs.go_on),
        "step": checked(jobs.step),
        "stop": checked(jobs.stop),
        "resume": checked(jobs.resume),
    }
    kind, run = str(action.get("kind", "")), str(action.get("run", ""))
    try:
        if kind == "all":
            _all(str(action.get("does", "")), simple)
        elif kind in simple:
            simple[kind](run)
        elif kind in ("take_over", "open"):
            view = jobs.view(run)
            look = looks().get(run, Look()) if kind == "take_over" else Look()
            if view.state == "running" and kind == "take_over":
                with suppress(JobRefused):  # who takes over from somebody else's run leaves it at work
                    simple["pause"](run)  # the machine is the player's now
            opened(view.spec, taken_over(Lane.live(view), look))
            state.watch_go = True
        elif kind == "keep":
            checked(_keep)(run)
        elif kind == "replay":
            state.watch_replay = run
    except (JobRefused, NotOpened) as refusal:
        say(str(refusal))


def _keep(run: str) -> None:
    where = keep(the_jobs().view(run))
    if where is None:
        say("The game this run began in is gone: take over instead, which opens a copy.")
    else:
        the_jobs().note_saved(run, *where)
        say("Kept as a variation of its game.")


def _all(kind: str, simple: Mapping[str, Callable[[str], None]]) -> None:
    """A key does the same to every run that can do it."""
    possible = {
        "pause": ("running", "starting"),
        "go_on": ("paused", "pausing"),
        "step": ("paused", "pausing"),
    }
    for run in st.query_params.get("r", "").split(","):
        if the_jobs().view(run).state in possible.get(kind, ()):
            simple[kind](run)
