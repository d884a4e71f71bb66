"""Where an exported library goes: a folder, whose other files are never touched, or a zip archive."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path, PurePosixPath

from dojo_core.bounded_json import read_object
from dojo_core.export.choice import NotExported
from dojo_core.export.library import Library
from dojo_core.files import write_text

MANIFEST = ".dojo-export.json"
_SHOWN = 3  # names of files in a sentence


def write(library: Library, folder: Path) -> None:
    """Write a library's files to a folder, which is made where it is not there.

    A folder that an export wrote before gets the new files in place of the old ones. Raises NotExported,
    with nothing changed, where a file stands in the way that no export wrote or that was edited since.
    """
    if folder.exists() and not folder.is_dir():
        raise NotExported(f"{folder} is a file: name a folder.")
    before = _manifest(folder)
    if before is None and folder.is_dir() and any(folder.iterdir()):
        raise NotExported(
            f"{folder} holds files that no export wrote: name an empty folder, or one that is not there yet."
        )
    before = before or {}
    digests = _digests(library)
    foreign = [path for path in digests if path not in before and (folder / path).exists()]
    edited = [path for path, digest in before.items() if _changed(folder / path, digest)]
    if foreign or edited:
        what = "were edited since they were exported" if edited else "are no export's"
        raise NotExported(
            f"In {folder} these files {what}: {_some(edited or foreign)}. "
            "Move them away, or export to another folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    # The list first: whatever a failure leaves is then known as an export's.
    old_and_new = {path: [*before.get(path, []), digests.get(path, "")] for path in {**before, **digests}}
    _save(folder, old_and_new)
    for path, text in library.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_text(folder / path, text)
    for path, data in library.data.items():
        with (folder / path).open("wb") as file:
            file.writelines(data.chunks())
    for path in before.keys() - digests.keys():
        (folder / path).unlink(missing_ok=True)
        parent = (folder / path).parent
        if parent != folder and not any(parent.iterdir()):
            parent.rmdir()
    _save(folder, {path: [digest] for path, digest in digests.items()})


def zipped(library: Library) -> bytes:
    """A zip archive of one folder with the library's name. The same library gives the same bytes."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in sorted(library.files.items()):
            archive.writestr(_entry(f"{library.name}/{path}"), text.encode())
        for path, data in sorted(library.data.items()):
            with archive.open(_entry(f"{library.name}/{path}"), "w", force_zip64=True) as file:
                file.writelines(data.chunks())
    return memory.getvalue()


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path)  # of 1980, whenever it is made
    entry.external_attr = 0o644 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _digests(library: Library) -> dict[str, str]:
    digests = {path: _digest(text.encode()) for path, text in library.files.items()}
    for path, data in library.data.items():
        digest = hashlib.sha256()
        for chunk in data.chunks():
            digest.update(chunk)
        digests[path] = digest.hexdigest()
    return digests


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _changed(file: Path, known: list[str]) -> bool:
    if not file.is_file():
        return file.exists()
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() not in known


def _some(paths: list[str]) -> str:
    rest = len(paths) - _SHOWN
    return ", ".join(sorted(paths)[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _save(folder: Path, files: dict[str, list[str]]) -> None:
    text = json.dumps({"written by": "dojo export", "files": dict(sorted(files.items()))}, indent=1)
    write_text(folder / MANIFEST, text + "\n")


def _manifest(folder: Path) -> dict[str, list[str]] | None:
    """What an export wrote there, path to digests; None where none did. A damaged list counts as none."""
    try:
        files = read_object((folder / MANIFEST).read_bytes())["files"]
        digests = {str(path): [str(digest) for digest in known] for path, known in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    inside = all(".." not in PurePosixPath(p).parts and not PurePosixPath(p).is_absolute() for p in digests)
    return digests if inside else None
