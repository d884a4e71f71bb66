"""This user's records, opened for a command."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.markup import escape

from dojo_core.cli.terminal import err

if TYPE_CHECKING:
    from dojo_core.measure.records import Records


@contextmanager
def opened() -> Iterator[Records]:
    """Backed up, where the last back-up is a day old. Raises DatabaseFault where they cannot be opened."""
    from dojo_core.measure.records import Records

    # what was mended is told below: without this the log would say it a second time, on the terminal
    logging.getLogger("dojo_core.measure.database").addHandler(logging.NullHandler())
    with Records() as records:
        records.keep_backup()
        notice = ""
        try:
            notice = _tell(records, notice)
            yield records
        finally:
            _tell(records, notice)


def _tell(records: Records, notice: str) -> str:
    """Say what had to be mended since."""
    if records.notice != notice:
        err.print(
            f"{escape(records.notice)} (dojo records-restore lists the back-ups.)",
            style="yellow",
            soft_wrap=True,
        )
    return records.notice
