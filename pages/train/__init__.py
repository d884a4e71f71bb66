"""Train: PerfLLM's settings, its runs, their curves, and its checkpoints at play."""

from __future__ import annotations

import streamlit as st

from dojo_core.extras import absent, sentence
from pages import shell
from pages.train import begin, carried, follow


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
        names = absent("learn")
        if names:
            st.warning(f"{sentence('learn', 'Training', names)}. Then start the app again.")
        begin.page(ready=not names)
        carried.section()
