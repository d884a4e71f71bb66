"""A run as the beginnings of a study: its best program's moves, to put words between."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from agents.jobs.recording import Recording
from agents.puzzles.sources import of_recording
from dojo_core.service.takeaway import file_name
from dojo_core.study.writing import of_game


def study_buttons(recordings: Sequence[Recording]) -> None:
    """A button for each run that has a timed program."""
    with st.container(horizontal=True):
        for each in recordings:
            if any(entry.status == "ok" and entry.seconds for entry in each.entries):
                st.download_button(
                    f"A study of {each.spec.agent}'s run", partial(_text, each),
                    f"{file_name(each.spec.title)}.md", "text/markdown", key=f"study_{each.spec.id}",
                    on_click="ignore",
                    help="The moves to its best, as a text to put your words into: dojo study builds it.",
                )  # fmt: skip


def _text(told: Recording) -> str:
    source = of_recording(told)
    assert source is not None  # it has a timed program
    return of_game(source.game, f"{source.game.title}: {source.words}")
