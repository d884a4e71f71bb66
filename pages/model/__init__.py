"""Model: a model of one's own as kernels, measured, played and put together again.

The address names the model, ``m``; without it one is begun or found here.
"""

from __future__ import annotations

import streamlit as st

from dojo_core.service import Refused
from pages import shell
from pages.model import begin, follow
from pages.shared import the_models, the_player


def page() -> None:
    with shell.content():
        state = st.session_state
        model = st.query_params.get("m", "")
        if not model and state.get("model"):  # back from another page
            shell.readdress(m=state.model)
        if not model:
            begin.page()
            return
        state.model = model
        try:
            view = the_models().view(model, the_player().owner)
        except Refused as refusal:
            shell.head("Model", "A model of one's own as kernels.")
            shell.notice(str(refusal), "error")
            state.model = ""
            if st.button("To all models"):
                shell.readdress(m=None)
            return
        follow.page(view)
