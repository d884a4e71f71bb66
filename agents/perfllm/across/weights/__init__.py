"""The policies that come with the Dojo: a folder for each target that one was trained for (README.md)."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

from dojo_core.package_data import data_path

_FOLDER = data_path("agents", "perfllm", "across", "weights")


def folder_of(target: str) -> Path | None:
    """Where a target's policy lies, None where there is none."""
    folder = _FOLDER / target
    return folder if (folder / "tensors.safetensors").is_file() else None


def targets() -> list[str]:
    """The targets that have one."""
    return sorted(file.parent.name for file in _FOLDER.glob("*/tensors.safetensors"))


@cache
def seen(target: str) -> frozenset[tuple[str, str]]:
    """The kernels with the shapes in which a target's policy has learned on them, as its section of the model
    card lists them."""
    sections = re.split(r"^## ", (_FOLDER / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    card = next((each for each in sections if each.split("\n", 1)[0].strip() == target), "")
    return frozenset(re.findall(r"^\| ([a-z]\w*) \| (\d+(?:x\d+)*) \|", card, flags=re.MULTILINE))


@cache
def digest() -> str:
    """Differs where any of them does."""
    files = sorted(_FOLDER.glob("*/*.*"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
