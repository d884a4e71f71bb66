"""This user's records, opened for a command."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dojo_core.cli.terminal import Failure

if TYPE_CHECKING:
    from dojo_core.measure.records import Records


@contextmanager
def opened() -> Iterator[Records]:
    """Raises Failure where they cannot be opened."""
    from dojo_core.measure.records import Records

    try:
        records = Records()
    except (ValueError, sqlite3.DatabaseError) as error:  # a newer Dojo's; or no database at all
        raise Failure(f"The records cannot be opened: {error} (DOJO_HOME names another folder.)") from None
    with records:
        yield records
