"""A study built: one HTML file, which needs no server, no network and nothing beside it.

The board's own scripts and styles draw it. What people wrote is data, packed into the file and put into the
page as text; a content policy lets no other script run than the one that the file names by its hash, and
nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import tomllib
import zlib
from typing import Any

from dojo_core.colours import tokens
from dojo_core.package_data import data_path, entry
from dojo_core.service.view import Json
from dojo_core.study.sheets import Packer, parted

_STUDY = ("packed", "session", "words", "print", "study")
_DIFFERENCE = ("align", "keys", "view")


def study_page(data: Json) -> str:
    """The file's text, from what ``sheets.study_data`` tells."""
    about = data["study"]
    script = _script()
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src 'sha256-{_digest(script)}'",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    told = "".join(str(span[1]) for span in about["about"])
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta name="description" content="{html.escape(told)}">',
            f"<title>{html.escape(about['title'])}</title>",
            f"<style>{_colours()}\n{_text('study', 'study.css')}</style>",
            f'<template id="board-style">{html.escape(_board_style(), quote=False)}</template>',
            "</head>",
            "<body>",
            f'<main id="study"><p>{html.escape(about["title"])}</p><noscript>{html.escape(told)} This page '
            "needs JavaScript, which is in the file itself: it fetches nothing.</noscript></main>",
            *_data(data),
            f'<script type="module">{script}</script>',
            "</body>",
            "</html>",
        ]
    ) + "\n"  # fmt: skip


def _data(data: Json) -> list[str]:
    """What is drawn first, and the rest, which a page reads once that stands there."""
    packer = Packer()
    return [
        f'<script type="text/plain" id="study-{name}">{_squeezed(packer.part(part))}</script>'
        for name, part in zip(("first", "rest"), parted(data), strict=True)
    ]


def _squeezed(part: Any) -> str:
    text = json.dumps(part, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _text(folder: str, name: str) -> str:
    return data_path("pages", folder, name).read_text(encoding="utf-8")


def _parts() -> dict[str, Any]:
    parts: dict[str, Any] = json.loads(_text("board", "parts.json"))
    return parts


def _script() -> str:
    texts = [_text("difference", f"{name}.js") for name in _DIFFERENCE]
    texts += [_text("board", f"{name}.js") for name in _parts()["scripts"]]
    texts += [_text("learn", "prose.js"), *(_text("study", f"{name}.js") for name in _STUDY)]
    return "\n" + "\n".join(texts).replace("</script", "<\\/script") + "\n"


def _board_style() -> str:
    parts = _parts()
    texts = [_text("board", f"{name}.css") for name in parts["styles"]]
    texts += [_text("difference", "difference.css")]
    texts += [_text("board", f"{name}.css") for name in parts["above"]]
    return "\n".join([*texts, _text("study", "board.css")])


def _colours() -> str:
    settings = tomllib.loads((entry().parent / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    theme = settings["theme"]
    return tokens(lambda name: str(theme["light"][name]), lambda name: str(theme["dark"][name]))
