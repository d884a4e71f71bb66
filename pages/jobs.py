"""The runs of this process, and where their finds go: into the games that they began in."""

import logging
from collections.abc import Callable

import streamlit as st

from agents.jobs import JobRefused, Jobs, JobView
from agents.jobs.trainings import Trainings
from dojo_core.game import GameFull
from dojo_core.measure.places import data_directory
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.service import Refused
from pages.shared import the_owner, the_service

log = logging.getLogger("dojo.pages")

NOT_YOURS = "This run plays in somebody else's game."


def keep(view: JobView) -> tuple[str, int] | None:
    """Add what a run found to its game, whose owner began it, as a variation; the game and position, or None
    where that is gone."""
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


def checked(act: Callable[[str], None]) -> Callable[[str], None]:
    """What a run is told, refused where it plays in a game that is not this tab's to change."""

    def permitted(run: str) -> None:
        if not the_service().may_play_in(the_jobs().view(run).spec.saved, the_owner()):
            raise JobRefused(f"{NOT_YOURS} Take over instead: that opens a copy of your own.")
        act(run)

    return permitted


class OwnJobs:
    """The runs for a list of them: all are seen, and told what to do by the owners of their games."""

    def all(self) -> list[JobView]:
        return the_jobs().all()

    def resume(self, run: str) -> None:
        checked(the_jobs().resume)(run)

    def delete(self, run: str) -> None:
        checked(the_jobs().delete)(run)


@st.cache_resource(show_spinner=False)
def the_trainings() -> Trainings:
    """PerfLLM's training runs."""
    return Trainings(data_directory() / "trainings")
