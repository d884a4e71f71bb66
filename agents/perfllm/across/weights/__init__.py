"""The policies that come with the Dojo: a folder for each target that one was trained for (README.md)."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from dojo_core.package_data import data_path


def folder_of(target: str) -> Path | None:
    """Where a target's policy lies, None where there is none."""
    folder = data_path("agents", "perfllm", "across", "weights", target)
    return folder if (folder / "tensors.safetensors").is_file() else None


@cache
def digest() -> str:
    """Differs where any of them does."""
    files = sorted(data_path("agents", "perfllm", "across", "weights").glob("*/*.*"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
