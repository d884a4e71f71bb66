"""Our own component: the board, one screen of linked panes, and its feed of times.

The scripts beside this file, and those of the pane that shows what differs, are joined in the order of
parts.json: together they are one module. ``mount`` in board.js is called again with each change of data and
keeps its elements, so that nothing a player scrolled, typed or selected is lost.
"""

import json
from pathlib import Path

from pages import difference
from pages.components import made

_HERE = Path(__file__).parent
_PARTS = json.loads((_HERE / "parts.json").read_text(encoding="utf-8"))


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


board = made(
    "dojo_board",
    "".join(
        [
            *(_text(f"{name}.css") for name in _PARTS["styles"]),
            difference.CSS,
            *(_text(f"{name}.css") for name in _PARTS["above"]),  # what goes before that pane's
        ]
    ),
    "\n".join([difference.SCRIPT, *(_text(f"{name}.js") for name in _PARTS["scripts"])]),
)

feed = made("dojo_feed", None, _text("feed.js"))
