"""The studies that somebody writes in the app: Markdown files in a folder, their times beside them.

Any editor may change a file as well. Whoever writes says which text theirs began from: where another one
stands there by then, nothing is written over it.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from dojo_core.files import naming, replace_text
from dojo_core.school.prose import slug
from dojo_core.study.study import LARGEST
from dojo_core.study.times import times_file

MOST = 200  # studies of one folder
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}\Z")


class NotKept(Exception):
    """Why a study is not there, or not written; ``str()`` is a sentence."""


class Changed(NotKept):
    """Another text stands in the file than the one that this one began from."""


@dataclass(frozen=True)
class Kept:
    """A file as it is now. ``revision`` changes with its text; ``changed``: seconds since the epoch."""

    name: str
    text: str
    revision: str
    changed: float

    @property
    def title(self) -> str:
        first = self.text.lstrip().partition("\n")[0]
        return first.removeprefix("# ").strip()[:200] or self.name


def folder_of(home: Path, owner: str, local: bool) -> Path:
    """Where an owner's studies lie: one folder for a machine's own people, else one for each owner."""
    studies = home / "studies"
    return studies if local else studies / hashlib.sha256(owner.encode()).hexdigest()[:24]


def revision_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Studies:
    """The files of one folder. Thread-safe; another process may write into it too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writing = threading.Lock()

    def file(self, name: str) -> Path:
        """Raises NotKept for what can name no study."""
        if not _NAME.match(name):
            raise NotKept("There is no such study here.")
        return self.folder / f"{name}.md"

    def names(self) -> list[str]:
        """Newest first."""
        if not self.folder.is_dir():
            return []
        files = [file for file in self.folder.glob("*.md") if _NAME.match(file.stem) and file.is_file()]
        return [file.stem for file in sorted(files, key=lambda file: -file.stat().st_mtime)][:MOST]

    def read(self, name: str) -> Kept:
        """Raises NotKept."""
        file = self.file(name)
        try:
            with file.open("rb") as opened:
                content = opened.read(4 * LARGEST + 1)
                changed = os.fstat(opened.fileno()).st_mtime
            text = content.decode()
        except FileNotFoundError:
            raise NotKept("There is no such study here.") from None
        except (OSError, UnicodeDecodeError) as fault:
            raise NotKept(f"{file.name} cannot be read: {fault}.") from None
        return Kept(name, text, revision_of(text), changed)

    def begin(self, title: str, text: str) -> Kept:
        """Keep a new study under a name made of its title. Raises NotKept."""
        if len(self.names()) >= MOST:
            raise NotKept(f"There are {MOST} studies already: delete one first.")
        stem = slug(title)[:50].strip("-") or "study"
        with self._writing:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            name, number = stem, 1
            while (self.folder / f"{name}.md").exists():
                number += 1
                name = f"{stem}-{number}"
            replace_text(self.folder / f"{name}.md", text)
        return self.read(name)

    def write(self, name: str, text: str, before: str) -> Kept:
        """Put a text in place of the one of revision ``before``. Raises Changed, NotKept, or OSError."""
        if len(text) > LARGEST:
            raise NotKept(
                f"This text is not saved: a study has at most {LARGEST // 1024} KB. Make two of it."
            )
        with self._writing:
            known = self.read(name)
            if known.text == text:
                return known
            if known.revision != before:
                raise Changed("This study was changed in another window meanwhile.")
            replace_text(self.file(name), text)
        return self.read(name)

    def delete(self, name: str) -> None:
        """Away from the list: the files stay in the folder ``deleted``. Raises NotKept."""
        file = self.file(name)
        aside = self.folder / "deleted"
        stamp = time.strftime("%Y%m%d-%H%M%S")
        with self._writing:
            aside.mkdir(mode=0o700, exist_ok=True)
            for each in (file, times_file(file)):
                if each.exists():
                    with naming(each):
                        each.replace(aside / f"{stamp}-{each.name}")
