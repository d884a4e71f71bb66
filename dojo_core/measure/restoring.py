"""A back-up put in a database's place."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from dojo_core.measure.backups import Backup
from dojo_core.measure.database import exclusively, set_aside


def restore(database: Path, backup: Backup) -> Path:
    """Put a back-up in a database's place; gives the name under which what was there is kept.

    Processes that have it open go on with the back-up. Raises OSError, and ValueError where the back-up is
    damaged.
    """
    with tempfile.TemporaryDirectory(prefix="restore-", dir=database.parent) as folder:
        copy = Path(folder) / "copy.sqlite"
        shutil.copyfile(backup.path, copy)
        try:
            with closing(sqlite3.connect(copy)) as connection:
                verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            verdict = str(error)
        if verdict != "ok":
            raise ValueError(f"The back-up {backup.path.name} is damaged ({verdict}): take another.")
        with exclusively(database):
            return set_aside(database, "before-restore", copy)
