"""Our own component: the whole page, for teachers and students, drawn from data; and its presses.

Like the board, its scripts are joined to one module; the first is the board's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Press:
    """What the page sent, which may be anything: its parts as what they should be, else empty."""

    sent: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return self.text("kind")

    @property
    def name(self) -> str:
        """Tells it from others."""
        return self.text("n")

    def text(self, name: str, longest: int = 200) -> str:
        value = self.sent.get(name, "")
        return value[:longest] if isinstance(value, str) else ""

    def number(self, name: str) -> int:
        value = self.sent.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else -1
