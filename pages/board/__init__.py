"""Our own component: the board, one screen of linked panes, and its feed of times.

The scripts beside this file, and those of the pane that shows what differs, are joined in the order below:
together they are one module. ``mount`` in board.js is called again with each change of data and keeps its
elements, so that nothing a player scrolled, typed or selected is lost.
"""

from pathlib import Path

import streamlit as st

from pages import difference

_HERE = Path(__file__).parent
_SCRIPTS = (
    "dom", "speed", "events", "door", "ahead", "address", "notice", "header", "program", "tree", "row",
    "order", "words", "hint", "attention", "moves", "drawer", "history", "dialogs", "help", "games",
    "start", "pin", "take", "kept", "separator", "roving", "dock", "panes", "board",
)  # fmt: skip
_STYLES, _ABOVE = ("base", "board"), ("pin", "panes", "narrow")  # before that pane's styles, and after them


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


board = st.components.v2.component(
    "dojo_board",
    css="".join(
        [
            *(_text(f"{name}.css") for name in _STYLES),
            difference.CSS,
            *(_text(f"{name}.css") for name in _ABOVE),
        ]
    ),
    js="\n".join([difference.SCRIPT, *(_text(f"{name}.js") for name in _SCRIPTS)]),
)

feed = st.components.v2.component("dojo_feed", js=_text("feed.js"))
