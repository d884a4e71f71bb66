"""The files that come with the Dojo: they lie in its packages, wherever these are installed."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def data_path(package: str, *names: str) -> Path:
    """A file or folder below a package, as a path: the Dojo is installed as files, never as an archive."""
    return Path(str(files(package).joinpath(*names)))


def checkout() -> Path | None:
    """The folder of the checkout that this code runs from; None where it is installed."""
    root = data_path("dojo_core").parent
    return root if (root / "native" / "CMakeLists.txt").is_file() else None


def document(name: str) -> str:
    """Where a page of the documentation is, for a sentence: ``docs/NAME`` of the checkout, else its path."""
    return f"docs/{name}" if checkout() else str(document_path(name))


def document_path(name: str) -> Path:
    """A page of the documentation as a file."""
    root = checkout()
    return root / "docs" / name if root else data_path("dojo_core", "docs", name)


def entry() -> Path:
    """The script that Streamlit runs, with its settings beside it: a checkout's, else the shipped one."""
    root = checkout()
    return root / "app.py" if root else data_path("pages", "entry", "app.py")
