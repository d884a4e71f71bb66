"""Our own component beside the board: the list, a lesson's text with its goals and help, a review.

Like the board, its scripts are joined to one module; the first two are the board's own.
"""

from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_SCRIPTS = (
    _HERE.parent / "board" / "dom.js",
    _HERE.parent / "board" / "events.js",
    _HERE / "prose.js",
    _HERE / "step.js",
    _HERE / "review.js",
    _HERE / "panel.js",
)

lesson_panel = st.components.v2.component(
    "dojo_lesson",
    css=(_HERE / "learn.css").read_text(encoding="utf-8"),
    js="\n".join(path.read_text(encoding="utf-8") for path in _SCRIPTS),
)
