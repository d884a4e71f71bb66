"""Watch: agents at play, live or from a recording.

The address says what is watched: ``r`` names one run or two, ``demo`` recordings; without either, runs are
begun and found here.
"""

from __future__ import annotations

import streamlit as st

from pages import shell
from pages.watch import begin, live, replay


def page() -> None:
    with shell.content():
        runs = [each for each in st.query_params.get("r", "").split(",") if each][:2]
        shown = [each for each in st.query_params.get("demo", "").split(",") if each][:2]
        if runs:
            live.page(runs)
        elif shown:
            replay.page(shown)
        else:
            begin.page()
