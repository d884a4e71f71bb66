"""Our own component: the whole page, for teachers and students, drawn from data; and its presses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pages.components import component

class_page = component(
    "dojo_class",
    "classroom/class.css",
    "board/dom.js",
    "board/mounting.js",
    "classroom/forms.js",
    "classroom/teacher.js",
    "classroom/student.js",
    "classroom/class.js",
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
