"""What a machine can tell of a page's look (audit.js), in windows of many sizes, light and dark.

A page at 200% is laid out as in a window half as wide and half as high, which is how it is looked at here.
The narrowest is the telephone's at 200%, 195 pixels; one of 1280 at 400% has 320 (WCAG 2.2, 1.4.10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
THEMES = ("light", "dark")


@dataclass(frozen=True)
class Window:
    """``width`` and ``height`` in the screen's pixels; ``zoom`` in per cent."""

    width: int
    height: int
    zoom: int = 100

    @property
    def viewport(self) -> dict[str, int]:
        return {"width": 100 * self.width // self.zoom, "height": 100 * self.height // self.zoom}

    def __str__(self) -> str:
        return f"{self.width}" + f" at {self.zoom}%" * (self.zoom != 100)


_SCREENS = ((768, 1024), (1280, 800), (1440, 900), (1920, 1080))
WINDOWS = (
    Window(390, 844),
    *(Window(width, height) for width, height in _SCREENS),
    *(Window(width, height, 200) for width, height in _SCREENS),
    Window(1280, 1024, 400),
    Window(390, 844, 200),
)


def findings(
    page: Any, windows: Sequence[Window] = WINDOWS, themes: Sequence[str] = THEMES, rest: int = 350
) -> dict[str, list[str]]:
    """By what is told against the page's look: in which windows and themes. ``rest``: milliseconds until a
    page is laid out anew. The page has the last window and theme afterwards."""
    found: dict[str, list[str]] = {}
    for theme in themes:
        page.emulate_media(color_scheme=theme)
        page.wait_for_timeout(3 * rest)  # plots are drawn anew
        for window in windows:
            page.set_viewport_size(window.viewport)
            page.wait_for_timeout(rest)
            for words in page.evaluate(AUDIT):
                found.setdefault(words, []).append(f"{window} {theme}")
    return found
