"""Which version this is: ``pyproject.toml`` says it, the metadata repeat it where the Dojo is installed."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from importlib.resources import files
from pathlib import Path


@cache
def version() -> str:
    """The version of this code, as ``0.2.0``. A checkout's own file goes before the metadata, which are those
    of when it was installed, or of another checkout."""
    project = Path(str(files("dojo_core"))).parent / "pyproject.toml"
    try:
        project_table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        if project_table["name"] == "dojo":
            return str(project_table["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        pass  # not a checkout
    try:
        return installed_version("dojo")
    except PackageNotFoundError:
        return "unknown"
