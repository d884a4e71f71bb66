"""Agents at work on a model's kernels: begun here, found here again, whatever page is open meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from agents.jobs import JobRefused, JobSpec, JobView
from agents.jobs.spec import MOST_EVALUATIONS
from agents.players import AGENTS
from dojo_core.game import Game
from dojo_core.program.expressions import TextError
from dojo_core.service import Refused
from dojo_core.service.model_view import KernelView, ModelView
from pages import shell
from pages.jobs import checked, the_jobs
from pages.runs import STATES, plain
from pages.shared import the_models, the_owner, the_service
from pages.watch.lanes import Lane, ratio

USUAL = "annealing-lines"
LISTED = 6  # runs shown at once
MOST = 4  # kernels at once: more runs only wait for each other's measurements


def runs(view: ModelView) -> list[JobView]:
    """The runs on this model's kernels, newest first."""
    games = the_models().games(view.id, the_owner())
    return [each for each in the_jobs().all() if each.spec.saved in games]


def candidates(view: ModelView, found: Sequence[JobView]) -> list[KernelView]:
    """Kernels that an agent may improve, the worst first, without those that one of the runs is at."""
    kernels = the_models().games(view.id, the_owner())
    taken = {kernels.get(run.spec.saved) for run in found if run.works}
    return [each for each in (view.worst or view.timed) if each.name not in taken]


def offer(view: ModelView, found: Sequence[JobView]) -> None:
    """The button, and what it asks."""
    worst = candidates(view, found)
    with st.popover("Tune the worst", disabled=not worst, width="content"):
        st.caption(
            "An agent plays each from the fastest program that is known. It goes on when this page is "
            "closed; what it finds is in the model, and a variation of the kernel's game."
        )
        count = st.number_input("Kernels", 1, MOST, min(2, len(worst) or 1), key="model_tune_count")
        names = list(AGENTS)
        agent = st.selectbox("Agent", names, index=names.index(USUAL), key="model_tune_agent")
        programs = st.number_input(
            "Programs of each", 1, MOST_EVALUATIONS, 100, key="model_tune_programs", help="At most so many."
        )
        minutes = st.number_input(
            "Minutes", 1, 24 * 60, 10, key="model_tune_minutes", help="At most so long."
        )
        chosen = worst[: int(count)]
        st.caption("It begins with " + ", ".join(each.name for each in chosen) + ".")
        if st.button("Start", type="primary", key="model_tune_start"):
            _start(view, chosen, agent, int(programs), 60.0 * minutes)
            st.rerun()


def _start(view: ModelView, chosen: Sequence[KernelView], agent: str, programs: int, seconds: float) -> None:
    try:
        for kernel in chosen:
            saved = the_models().game(view.id, kernel.name, the_owner())
            position = Game.from_text(the_service().game_text(saved))
            spec = JobSpec.of(position, agent, 0, programs, seconds, saved=saved)
            the_jobs().start(spec)
    except (JobRefused, Refused, TextError) as refusal:
        st.session_state.model_toast = str(refusal)


def show(view: ModelView, found: Sequence[JobView], working: bool) -> None:
    """The runs that go on, or those that are over, each in a line."""
    kernels = the_models().games(view.id, the_owner())
    listed = [each for each in found if each.works == working][:LISTED]
    if listed and not working:
        shell.heading("Agents that played its kernels")
    for each in listed:
        _row(each, kernels[each.spec.saved])


def _row(run: JobView, kernel: str) -> None:
    lane = Lane.live(run)
    done = run.entries[-1].evaluation if run.entries else 0
    words = [STATES.get(run.state, (run.state, ""))[0], f"{done} of {run.spec.evaluations} programs"]
    best, first = lane.best, lane.reference
    if best is not None and best.seconds and first:
        gain = f"{ratio(first / best.seconds)} as fast as where it began"
        words.append(f"best {lane.time(best.seconds)}, {gain}")
    text, button = st.columns([6, 1.3], vertical_alignment="center")
    text.markdown(f"**{plain(kernel)}** · {plain(run.spec.agent)}  \n{plain(' · '.join(words))}")
    try:
        if run.works:
            if button.button("Stop", key=f"model_stop_{run.spec.id}", width="stretch"):
                checked(the_jobs().stop)(run.spec.id)
        elif run.resumable and button.button("Resume", key=f"model_resume_{run.spec.id}", width="stretch"):
            checked(the_jobs().resume)(run.spec.id)
            st.rerun()
    except JobRefused as refusal:
        st.session_state.model_toast = str(refusal)
