"""Which version this is: ``pyproject.toml`` says it, the metadata repeat it where the Dojo is installed."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

from dojo_core.checkout import OURS, checkout


@cache
def version() -> str:
    """The version of this code, as ``0.2.0``. A checkout's own file goes before the metadata, which are those
    of when it was installed, or of another checkout."""
    own = checkout()
    if own is not None:
        return own.version
    try:
        return installed_version(OURS)
    except PackageNotFoundError:
        return "unknown"
