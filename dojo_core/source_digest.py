"""A digest of source files: what is kept on disk is theirs alone who would make it again."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def source_digest(*packages: str) -> str:
    """Of all files of Python in packages, by their full names; none is imported but what they lie in."""
    digest = hashlib.sha256()
    for package in packages:
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(folder).glob("**/*.py")):
                digest.update(path.read_bytes())
    return digest.hexdigest()
