"""The files that come with the Dojo: they lie in its packages, wherever these are installed."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def data_path(package: str, *names: str) -> Path:
    """A file or folder below a package, as a path: the Dojo is installed as files, never as an archive."""
    return Path(str(files(package).joinpath(*names)))
