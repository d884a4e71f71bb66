"""Components of our own: a style, and scripts that are joined to one module, in the order of their use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

_PAGES = Path(__file__).parent


def component(name: str, style: str, *scripts: str, isolated: bool = True) -> ComponentRenderer:
    """A component by its name; ``style`` and ``scripts`` are files below ``pages``.

    Unless it is ``isolated``, its style is the whole page's.
    """
    return made(name, _text(style), "\n".join(map(_text, scripts)), isolated)


def made(name: str, style: str | None, script: str, isolated: bool = True) -> ComponentRenderer:
    """A component of a style and a script, as texts. The script's module finds its data in a list of one:
    in each value of a dictionary Streamlit looks for a table, with pandas, whose import takes the first page
    most of a second."""
    mount = st.components.v2.component(name, css=style, js=script, isolate_styles=isolated)

    def with_data(*, data: Any, **options: Any) -> Any:
        return mount(data=[data], **options)

    return with_data


def beside_the_board(name: str, style: str, *scripts: str) -> ComponentRenderer:
    """The component of a panel beside the board, a ``BesidePanel``."""
    shared = ("board/dom.js", "board/mounting.js", "board/events.js", "beside/panel.js", "learn/prose.js")
    return component(name, style, *shared, *scripts)


def _text(file: str) -> str:
    return (_PAGES / file).read_text(encoding="utf-8")
