"""Our own component: the whole page, for teachers and students, drawn from data.

Like the board, its scripts are joined to one module; the first is the board's own.
"""

from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_SCRIPTS = (
    _HERE.parent / "board" / "dom.js",
    _HERE / "forms.js",
    _HERE / "teacher.js",
    _HERE / "student.js",
    _HERE / "class.js",
)

class_page = st.components.v2.component(
    "dojo_class",
    css=(_HERE / "class.css").read_text(encoding="utf-8"),
    js="\n".join(path.read_text(encoding="utf-8") for path in _SCRIPTS),
)
