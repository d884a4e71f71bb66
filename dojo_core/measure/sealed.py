"""Files of the cache, each with the checksum of its contents behind them: none is trusted unread.

A file may be empty, cut or damaged: the disk was full, the power went, somebody edited it. A shared object
that is cut kills the process that loads it, and a reference that is off by a bit makes a right program wrong.
So a file is sealed when it is complete, and whoever reads it computes the checksum again (SHA-256, 64 MB in
0.05 s); one that does not agree is as good as none, and is made again.

The seal is behind the contents, where the loader of shared objects does not look: 8 bytes of length and 32 of
SHA-256 between two marks.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

log = logging.getLogger(__name__)

_MARK = b"dojo seal 1\n"
_SEAL_BYTES = len(_MARK) + 8 + 32


DAMAGED = "What was compiled does not stay as it was written, though it was made again: is the disk sound?"


class Damaged(Exception):
    """A file of the cache that was there a moment ago is not what was put there; ``str()`` names it."""


def _seal(contents: bytes | memoryview) -> bytes:
    return _MARK + len(contents).to_bytes(8, "little") + hashlib.sha256(contents).digest()


def seal(draft: Path) -> None:
    """Complete a file, which is not where others look for it yet."""
    try:
        with draft.open("r+b") as file:
            contents = file.read()
            file.write(_seal(contents))
    except OSError as fault:  # a disk that is full does not say for which file
        fault.filename = fault.filename or str(draft)
        raise


def read(path: Path) -> memoryview | None:
    """The contents, to keep and to write to; None where there is no file, or not the one that was sealed."""
    try:
        with path.open("rb") as file:
            data = np.fromfile(file, np.uint8).data
    except FileNotFoundError:
        return None
    except OSError as fault:
        log.warning("%s cannot be read (%s): it is made again", path, fault.strerror)
        return None
    contents = data[: max(0, len(data) - _SEAL_BYTES)]
    if data[len(contents) :] != _seal(contents):
        log.warning("%s is damaged: it is made again", path)
        return None
    return contents


def folder(path: Path) -> Path:
    """A folder of the cache, made where it is not there, in place of a file that should not be."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        remove(path)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def is_intact(path: Path) -> bool:
    return read(path) is not None


def place(draft: Path, path: Path) -> None:
    """Put a sealed draft where it belongs, in one step, whatever is there."""
    try:
        os.replace(draft, path)
    except (IsADirectoryError, NotADirectoryError, FileExistsError):
        remove(path)
        os.replace(draft, path)


def keep(path: Path, contents: bytes) -> None:
    """Make a file with its seal, in one step."""
    folder(path.parent)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix="draft-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(contents + _seal(contents))
        place(Path(draft), path)
    except BaseException as fault:
        with suppress(OSError):
            os.unlink(draft)
        if isinstance(fault, OSError):
            fault.filename = fault.filename or str(path)
        raise


def remove(path: Path) -> None:
    """A file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def loadable(path: Path) -> Iterator[str]:
    """A shared object to load: a copy of the caller's own, which nothing can damage once it is mapped. Raises
    Damaged.

    No two copies have the same name: the loader takes one of a name that it knows for what it has already.
    """
    contents = read(path)
    if contents is None:
        raise Damaged(str(path))
    copy = ""
    try:
        descriptor, copy = tempfile.mkstemp(dir=path.parent, prefix="loaded-", suffix=".so")
        with os.fdopen(descriptor, "wb") as file:
            file.write(contents)
    except OSError:  # a disk that is full: then the file itself, which has just been read
        log.exception("no copy of %s", path)
        yield str(path)
    else:
        yield copy
    finally:
        if copy:
            os.unlink(copy)
