"""Train: PerfLLM's settings, its runs, their curves, and its checkpoints at play."""

from __future__ import annotations

import streamlit as st

from agents.jobs.trainings import missing
from pages import shell
from pages.train import begin, follow


def page() -> None:
    with shell.content():
        run = st.query_params.get("r", "")
        if run:
            follow.page(run)
            return
        shell.head(
            "Train",
            "PerfLLM learns to play: a language model reads the program, and a network says how fast each "
            "move can make it in the end.",
        )
        absent = missing()
        if absent:
            st.warning(
                f"Training needs {' and '.join(absent)}, which {'is' if len(absent) == 1 else 'are'} not "
                "installed here. Beside the app: `make setup` installs all that the Dojo uses, or "
                f"`.venv/bin/pip install {' '.join(absent)}` these alone. Then start the app again."
            )
        begin.page(ready=not absent)
