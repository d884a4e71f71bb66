"""Two texts as what differs, in line or side by side: on Compare a component, on the board a part of it.

``SCRIPT`` and ``CSS`` are what the board joins with its own, of which the component needs ``base.css`` and
``dom.js``.
"""

from pathlib import Path

from pages.components import made

_HERE = Path(__file__).parent
_BOARD = _HERE.parent / "board"


def _joined(*files: Path) -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


SCRIPT = _joined(*(_HERE / f"{name}.js" for name in ("align", "keys", "view")))
CSS = _joined(_HERE / "difference.css")

difference = made(
    "dojo_difference",
    _joined(_BOARD / "base.css") + CSS + _joined(_HERE / "component.css"),
    "\n".join([_joined(_BOARD / "dom.js"), SCRIPT, _joined(_HERE / "component.js")]),
)
