"""Where the Dojo keeps its files. ``$DOJO_HOME``, where set, holds data and caches both."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def _directory(variable: str, fallback: str, inside_home: str) -> Path:
    home = os.environ.get("DOJO_HOME")
    if home:
        place = Path(home).expanduser() / inside_home
    else:
        base = os.environ.get(variable)
        place = (Path(base) if base else Path.home() / fallback) / "dojo"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


def data_directory() -> Path:
    """Records and games: ``$DOJO_HOME``, else ``$XDG_DATA_HOME/dojo``, else ``~/.local/share/dojo``."""
    return _directory("XDG_DATA_HOME", ".local/share", ".")


def cache_directory() -> Path:
    """What can be made again: ``$DOJO_HOME/cache``, else ``$XDG_CACHE_HOME/dojo``, else ``~/.cache/dojo``."""
    return _directory("XDG_CACHE_HOME", ".cache", "cache")


def machine_directory() -> Path:
    """The same for all of this user's processes, whatever ``$DOJO_HOME`` says: the measuring lock lies here.

    Raises PermissionError where somebody else owns the place.
    """
    place = Path(tempfile.gettempdir()) / f"dojo-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(f"{place} belongs to another user: remove it, or set TMPDIR to another folder.")
    return place
