"""Values that draw themselves in a notebook, wherever they come from."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Drawn:
    """Base of what a notebook shows as more than text. How is known to ``dojo_core.notebook.drawing``, which
    is imported when something is shown: it looks at these classes, and none of them at it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The drawing alone, for frontends that ask for no other form."""
        return str(import_module("dojo_core.notebook.drawing").html(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """As text and as HTML, by media type; the frontend takes what it can show."""
        words = str(import_module("dojo_core.notebook.drawing").words(self))
        return {"text/plain": words, "text/html": self._repr_html_()}
