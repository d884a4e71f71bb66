"""The bar on top of every page: the pages, the game that is open, the machine, the queue, Share.

A component of our own, so that it is 36 pixels high, stays while pages change and asks nothing of the server
until it is used. Its styles are not isolated: it is part of the page.
"""

from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent

bar = st.components.v2.component(
    "dojo_bar",
    css=(_HERE / "bar.css").read_text(encoding="utf-8"),
    js="\n".join((_HERE / name).read_text(encoding="utf-8") for name in ("projector.js", "bar.js")),
    isolate_styles=False,
)
