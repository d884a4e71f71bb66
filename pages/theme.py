"""The colours of the pages, as Streamlit's settings have them (dojo_core/colours.py)."""

from __future__ import annotations

import streamlit as st

from dojo_core import colours


def tokens() -> str:
    """``:root`` with a variable ``--dojo-NAME`` for each colour."""
    return colours.tokens(
        lambda name: str(st.get_option(f"theme.light.{name}")),
        lambda name: str(st.get_option(f"theme.dark.{name}")),
    )
