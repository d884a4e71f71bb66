"""The runs of this process, and where their finds go: into the games that they began in."""

import logging

import streamlit as st

from agents.jobs import Jobs, JobView
from agents.jobs.trainings import Trainings
from dojo_core.game import GameFull
from dojo_core.measure.places import data_directory
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.service import Refused
from pages.shared import the_service

log = logging.getLogger("dojo.pages")


def keep(view: JobView) -> tuple[str, int] | None:
    """Add what a run found to its game as a variation; the game and position, or None where that is gone."""
    best = view.best
    if best is None or not view.spec.saved:
        return None
    try:
        service = the_service()
        return view.spec.saved, service.branch(view.spec.saved, view.spec.at, best.moves, owner=None)
    except (Refused, IllegalMove, MoveSyntax, GameFull) as refusal:
        log.warning("what run %s found is not kept: %s", view.spec.id, refusal)
        return None


@st.cache_resource(show_spinner=False)
def the_jobs() -> Jobs:
    """Made at the first visit; runs of an earlier app are found in the folder."""
    return Jobs(data_directory() / "jobs", keep)


@st.cache_resource(show_spinner=False)
def the_trainings() -> Trainings:
    """PerfLLM's training runs."""
    return Trainings(data_directory() / "trainings")
