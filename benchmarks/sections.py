"""Sections of a documentation page that a benchmark writes, between two comments."""

from __future__ import annotations

from pathlib import Path


def fill(page: Path, begin: str, end: str, text: str) -> None:
    """Put a text between the comments ``begin`` and ``end`` of a page, in place of what is there. Ends with a
    sentence where the page has them not."""
    told = page.read_text(encoding="utf-8")
    before, first, rest = told.partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise SystemExit(f"{page} has no such section: it lies between {begin} and {end}.")
    page.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")
