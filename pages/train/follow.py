"""One training run: its state, its curves, its checkpoint at play."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import streamlit as st

from agents.jobs import JobRefused
from agents.jobs.trainings import Event, TrainingView
from dojo_core import kernels
from dojo_core.game import Game, GameFull
from dojo_core.moves import IllegalMove, MoveSyntax
from pages import shell
from pages.jobs import the_trainings
from pages.runs import STATES, choose_kernel, notice_changes
from pages.shared import the_player, the_service
from pages.train import curves
from pages.watch.hand import sit
from pages.watch.lanes import ratio

POLL = 1.5
AFTER = 4.0  # seconds in which what was pressed shows
CONTROLS = {
    "running": (("Pause", "pause"), ("Stop", "stop")),
    "starting": (("Stop", "stop"),),
    "pausing": (("Go on", "go on"), ("Stop", "stop")),
    "paused": (("Go on", "go on"), ("Stop", "stop")),
}


def page(run: str) -> None:
    trainings = the_trainings()
    try:
        view = trainings.view(run)
    except JobRefused as refusal:
        st.error(str(refusal))
        if st.button("To all runs"):
            _leave()
        return
    left, right = st.columns([8, 2], vertical_alignment="center")
    with left:
        shell.head("Train", f"{view.spec.title}, seed {view.spec.seed}, encoder {view.spec.encoder}.")
    if right.button("All runs", key="train_all", width="stretch"):
        _leave()
    polling = _going_on(view)

    def look_again() -> None:
        latest = trainings.view(run)
        _head(latest)
        shell.tell_of_waiting("train")
        if _going_on(latest) != polling or _drawn_from(latest) != _drawn_from(view):
            st.rerun()

    st.fragment(run_every=POLL if polling else None)(look_again)()
    curves.draw(view)  # not with each look: six charts, drawn anew only where there is more to show
    _tried(view)
    if st.session_state.pop("train_go", False):
        shell.go("play")
    if not polling:
        notice_changes(lambda: trainings.state(run))
    _play(view)


def _drawn_from(view: TrainingView) -> tuple[int, int, bool]:
    """What the curves and the checkpoint's play are drawn from; what was told before never changes."""
    return len(view.events), len(view.tried), view.trying


def _going_on(view: TrainingView) -> bool:
    return view.works or time.monotonic() < st.session_state.get("train_until", 0.0)


def _leave() -> None:
    shell.readdress(r=None)


def _head(view: TrainingView) -> None:
    words, _ = STATES.get(view.state, (view.state, ""))
    columns = st.columns([2, 2, 2, 2, 2, 3], vertical_alignment="center")
    moves, learned = view.of("move"), view.of("learn")
    last = learned[-1] if learned else {}
    columns[0].metric("State", words)
    columns[1].metric("Programs", f"{last.get('evaluation', 0)} of {view.spec.budget}")
    start, best = curves.first(view), moves[-1].get("best") if moves else None
    columns[2].metric("Best", curves.time_text(view, best), ratio(start / best) if start and best else None,
                      delta_color="off")  # fmt: skip
    columns[3].metric("ε", f"{last['epsilon']:.2f}" if "epsilon" in last else "–")
    columns[4].metric("Programs a second", f"{last.get('evaluations_per_second', 0):.2g}" if last else "–")
    with columns[5]:
        buttons = st.columns(2)
        for number, (label, order) in enumerate(CONTROLS.get(view.state, ())):
            if buttons[number].button(label, key=f"train_{order}", width="stretch"):
                _do(partial(the_trainings().say, view.spec.id, order))
        if view.resumable and buttons[0].button(
            "Resume", key="train_resume", type="primary", width="stretch"
        ):
            _do(partial(the_trainings().resume, view.spec.id))
    if view.message:
        st.caption(view.message)


def _do(what: Callable[[], None]) -> None:
    try:
        what()
    except JobRefused as refusal:
        st.toast(str(refusal))
    st.session_state.train_until = time.monotonic() + AFTER
    st.rerun()


def _play(view: TrainingView) -> None:
    """The last checkpoint plays greedily, on this kernel or another one."""
    st.subheader("Play this checkpoint")
    if view.learns:
        st.caption("Once the run has ended or been stopped, what it learned plays here, on any kernel.")
        return
    st.caption("It plays without learning or exploring; each position on the way is measured.")
    name, shape = choose_kernel("train_try", view.spec.kernel, view.spec.shape)
    if st.button("Play this checkpoint", key="train_try", disabled=view.trying):
        try:
            sizes = kernels.get(name).shape(shape)
            the_trainings().play(view.spec.id, name, "x".join(map(str, sizes)))
        except (JobRefused, ValueError, TypeError) as refusal:
            st.error(str(refusal))
        else:
            st.session_state.train_until = time.monotonic() + AFTER
            st.rerun()


def _tried(view: TrainingView) -> None:
    if view.trying:
        st.info("The checkpoint plays…")
    for number, attempt in enumerate(reversed(view.tried[-3:])):
        if attempt.get("event") == "failed":
            st.error(f"The checkpoint could not play: {attempt.get('message')}")
            continue
        start, best = attempt.get("start"), attempt.get("best")
        gain = f", {ratio(start / best)}" if start and best else ""
        st.markdown(f"**The checkpoint on {attempt['kernel']}**: {curves.time_text(view, best)}{gain}")
        rows = [
            {"move": move, "expected (Q)": value, "measured": curves.time_text(view, seconds)}
            for move, value, seconds in zip(
                ["start", *attempt["line"]], [None, *attempt["expected"]][: len(attempt["line"]) + 1],
                attempt["seconds"], strict=False,
            )
        ]  # fmt: skip
        st.dataframe(rows, hide_index=True, key=f"train_tried_{number}")
        if st.button("Open in Play", key=f"train_open_tried_{number}"):
            _open(attempt)


def _open(attempt: Event) -> None:
    try:
        definition = kernels.get(str(attempt["name"]))
        program = definition.program(definition.shape(str(attempt["shape"])))
        game = Game.new(program, definition.name, str(attempt["shape"]), policy=str(attempt["policy"]))
        for move in attempt["line"]:
            game.play(move)
        sit(the_service().take_in(game, the_player().owner, once=True))
        st.session_state.train_go = True
        st.rerun()
    except (IllegalMove, MoveSyntax, GameFull, ValueError, KeyError) as fault:
        st.error(f"This line cannot be opened: {fault}")
