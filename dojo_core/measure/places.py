"""Where the Dojo keeps its files. ``$DOJO_HOME``, where set, holds data and caches both.

A folder that cannot be made or written to is an OSError whose text says what to do.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def _place(variable: str, fallback: str, inside_home: str) -> Path:
    home = os.environ.get("DOJO_HOME")
    if home:
        return Path(home).expanduser() / inside_home
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / fallback) / "dojo"


def _made(place: Path) -> Path:
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "you may not write there")
    except OSError as fault:
        raise OSError(
            f"The Dojo cannot keep its files in {place} ({fault.strerror}): name another folder in DOJO_HOME."
        ) from None
    return place


def data_home() -> Path:
    """Records, games, a user's own recipes and lessons: ``$DOJO_HOME``, else ``$XDG_DATA_HOME/dojo``, else
    ``~/.local/share/dojo``. For reading: it need not be there."""
    return _place("XDG_DATA_HOME", ".local/share", ".")


def data_directory() -> Path:
    """The same, made where it is not there."""
    return _made(data_home())


def cache_directory() -> Path:
    """What can be made again: ``$DOJO_HOME/cache``, else ``$XDG_CACHE_HOME/dojo``, else ``~/.cache/dojo``."""
    return _made(_place("XDG_CACHE_HOME", ".cache", "cache"))


def lock_directory() -> Path:
    """Where the measuring lock lies: ``$DOJO_LOCK_DIR``, else one folder for all users of this machine,
    whatever ``$DOJO_HOME`` and ``$TMPDIR`` say."""
    place = os.environ.get("DOJO_LOCK_DIR")
    if place:
        return Path(place).expanduser().resolve()
    shared = Path("/tmp")
    return (shared if shared.is_dir() else Path(tempfile.gettempdir())) / "dojo-measuring"
