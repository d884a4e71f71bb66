"""Drawings of lessons: SVG files, of which only plain shapes and words are taken, as data that a page draws.

Colours come from the page, by class, so that a drawing looks right in light and dark: ``ink``, ``quiet``,
``edge``, ``fill``, ``accent``, ``accent-fill``, ``good``, ``good-fill``, ``bad``, ``bad-fill``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from dojo_core.program.expressions import TextError

LARGEST = 32 * 1024  # bytes of a file
CLASSES = (
    "ink", "quiet", "edge", "fill", "accent", "accent-fill", "good", "good-fill", "bad", "bad-fill", "mono",
    "small", "middle", "end", "dashed", "thick",
)  # fmt: skip
_ELEMENTS = ("svg", "g", "rect", "line", "path", "circle", "ellipse", "polyline", "polygon", "text", "tspan")
_ATTRIBUTES = (
    "viewBox", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "cx", "cy", "r", "rx", "ry", "width", "height",
    "d", "points", "transform", "class",
)  # fmt: skip
_VALUE = re.compile(r"[\w\s.,()+-]*\Z", re.ASCII)
_NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(blocks: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Blocks of a text, the pictures that they name drawn in: files of its folder, or below. Raises
    TextError."""
    for block in blocks:
        if block["kind"] == "picture":
            place = (folder / block["file"]).resolve()
            if not place.is_relative_to(folder.resolve()) or place.suffix != ".svg":
                fault = "a picture is an SVG file beside the lesson, or below it"
                raise TextError(fault, "Move it there.", block["line"])
            block["drawing"] = read_picture(place, block["line"])
    return blocks


def read_picture(path: Path, number: int = 1) -> list[Any]:
    """A drawing as ``[element, attributes, words, children]``. Raises TextError with what it may not have."""

    def fault(message: str, remedy: str) -> TextError:
        return TextError(f"{path.name}: {message}", remedy, number)

    try:
        source = path.read_bytes()
    except OSError:
        raise fault("there is no such picture", "A picture lies beside the lesson or below it.") from None
    if len(source) > LARGEST or b"<!" in source.replace(b"<!--", b""):
        raise fault("it is too large, or declares entities", f"At most {LARGEST // 1024} KB of plain SVG.")
    try:
        root = ElementTree.fromstring(source)
    except ElementTree.ParseError as error:
        raise fault(f"it is no SVG ({error})", "Save it as plain SVG.") from None

    def taken(node: ElementTree.Element) -> list[Any]:
        name = node.tag.removeprefix(_NAMESPACE) if isinstance(node.tag, str) else "?"
        if name not in _ELEMENTS:
            raise fault(f"it has an element {name!r}", f"These may stand in it: {', '.join(_ELEMENTS)}.")
        for key, value in node.attrib.items():
            if key not in _ATTRIBUTES or not _VALUE.match(value):
                message = f"<{name}> has an attribute {key}={value[:40]!r}"
                raise fault(
                    message, f"These may stand in it, in numbers and words: {', '.join(_ATTRIBUTES)}."
                )
        unknown = [c for c in node.get("class", "").split() if c not in CLASSES]
        if unknown:
            raise fault(f"it has a class {unknown[0]!r}", f"The classes: {', '.join(CLASSES)}.")
        words = " ".join((node.text or "").split())
        return [name, dict(node.attrib), words, [taken(child) for child in node]]

    drawing = taken(root)
    if drawing[0] != "svg" or "viewBox" not in drawing[1]:
        raise fault("its first element is no <svg> with a viewBox", 'Begin with <svg viewBox="0 0 320 120">.')
    return drawing
