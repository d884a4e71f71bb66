"""Our own component beside the board: the studies, or the words of one, to be written.

Like the board, its scripts are joined to one module; the first are the board's and the lessons' own.
"""

from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_SCRIPTS = (
    _HERE.parent / "board" / "dom.js",
    _HERE.parent / "board" / "events.js",
    _HERE.parent / "learn" / "prose.js",
    _HERE / "here.js",
    _HERE / "asking.js",
    _HERE / "source.js",
    _HERE / "whole.js",
    _HERE / "editor.js",
)

study_editor = st.components.v2.component(
    "dojo_study",
    css=(_HERE / "editor.css").read_text(encoding="utf-8"),
    js="\n".join(path.read_text(encoding="utf-8") for path in _SCRIPTS),
)
