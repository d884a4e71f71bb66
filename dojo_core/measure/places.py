"""Where the Dojo keeps its files. ``$DOJO_HOME``, where set, holds data and caches both.

A folder that cannot be made or written to is an OSError whose text says what to do.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def _directory(variable: str, fallback: str, inside_home: str) -> Path:
    home = os.environ.get("DOJO_HOME")
    if home:
        place = Path(home).expanduser() / inside_home
    else:
        base = os.environ.get(variable)
        place = (Path(base) if base else Path.home() / fallback) / "dojo"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "you may not write there")
    except OSError as fault:
        raise OSError(
            f"The Dojo cannot keep its files in {place} ({fault.strerror}): name another folder in DOJO_HOME."
        ) from None
    return place


def data_directory() -> Path:
    """Records and games: ``$DOJO_HOME``, else ``$XDG_DATA_HOME/dojo``, else ``~/.local/share/dojo``."""
    return _directory("XDG_DATA_HOME", ".local/share", ".")


def cache_directory() -> Path:
    """What can be made again: ``$DOJO_HOME/cache``, else ``$XDG_CACHE_HOME/dojo``, else ``~/.cache/dojo``."""
    return _directory("XDG_CACHE_HOME", ".cache", "cache")


def lock_directory() -> Path:
    """Where the measuring lock lies: ``$DOJO_LOCK_DIR``, else one folder for all users of this machine,
    whatever ``$DOJO_HOME`` and ``$TMPDIR`` say."""
    place = os.environ.get("DOJO_LOCK_DIR")
    if place:
        return Path(place).expanduser().resolve()
    shared = Path("/tmp")
    return (shared if shared.is_dir() else Path(tempfile.gettempdir())) / "dojo-measuring"
