"""A digest of source files: what is kept on disk is theirs alone who would make it again."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def source_digest(*packages: str) -> str:
    """Of all files of Python in packages or modules, by their full names; none is imported but what they lie
    in."""
    digest = hashlib.sha256()
    for package in packages:
        spec = find_spec(package)
        folders = (spec.submodule_search_locations or ()) if spec else ()
        paths = [path for folder in folders for path in sorted(Path(folder).glob("**/*.py"))]
        for path in paths or ([Path(spec.origin)] if spec and spec.origin else []):
            digest.update(path.read_bytes())
    return digest.hexdigest()
