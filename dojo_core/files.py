"""What went wrong with a file, with its name: an error of writing (a full disk) has none of its own."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def naming(file: Path | str) -> Iterator[None]:
    """Whatever OSError comes of the block names this file, where it names none."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # NumPy's, of a file that was cut short
            raise OSError(errno.EIO, str(error), str(file)) from error
        if error.filename is None:
            error.filename = str(file)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises OSError with its name."""
    with naming(path):
        path.write_text(text, encoding="utf-8")


def replace_text(path: Path, text: str) -> None:
    """Write a file that is gone on with: a process that is killed leaves the old one or the new one, whole.
    Raises OSError with its name."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        write_text(draft, text)
        with naming(path):
            os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def trouble_text(error: OSError) -> str:
    """An OSError as a sentence for a person."""
    if error.errno is None or not error.strerror:
        return str(error) or f"The system reports {type(error).__name__}."
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if error.errno in _FULL:
        from dojo_core.measure.places import cache_directory, data_directory

        places = f"{data_directory()}, {cache_directory()} or {tempfile.gettempdir()}"
        return f"{error.strerror}: free some on the disk of {places}."
    return f"{error.strerror}."
