"""A checkout that is not installed, as a distribution: ``pyproject.toml`` says what metadata would repeat."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

OURS = "dojo"


class Checkout(Distribution):
    """The project whose table stands in a ``pyproject.toml``: its name, version and entry points."""

    def __init__(self, folder: Path, table: dict[str, Any]) -> None:
        self._folder, self._table = folder, table

    def read_text(self, filename: str) -> str | None:
        """Of the files that metadata have, those that entry points need."""
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: {self._table['name']}\nVersion: {self._table['version']}\n"
        if filename == "entry_points.txt":
            groups = self._table.get("entry-points", {})
            lines = (
                f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
                for group, entries in groups.items()
            )
            return "".join(lines)
        return None

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """A file of the project."""
        return self._folder / path


@cache
def checkout() -> Checkout | None:
    """The checkout that this code lies in; None where it is installed without one."""
    folder = Path(str(files("dojo_core"))).parent
    try:
        table = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return Checkout(folder, table) if table["name"] == OURS and "version" in table else None
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return None


def entries(*groups: str) -> list[EntryPoint]:
    """The entry points of these groups: of installed packages, and the checkout's own where it is not one of
    them, so that a copy of it plays where nothing can be installed."""
    installed = entry_points()  # once: each question reads every package's metadata
    every = [entry for group in groups for entry in installed.select(group=group)]
    if not any(entry.dist is not None and entry.dist.name == OURS for entry in every):
        own = checkout()
        every += [entry for entry in own.entry_points if entry.group in groups] if own is not None else []
    return every
