"""The files of an exported library, as templates: ``@name@`` stands for what is filled in."""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = Path(__file__).parent
_FIELD = re.compile(r"@([a-z0-9_]+)@")


def filled(template: str | Path, **values: str) -> str:
    """The text of a template (one of these, or a target's by its path) with its fields filled in. Raises
    KeyError for a field without a value."""
    text = (_FOLDER / template).read_text(encoding="utf-8")
    return _FIELD.sub(lambda match: values[match[1]], text)
