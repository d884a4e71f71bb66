"""Models that other packages read: the suffix of a file, and the function that makes a graph of it.

The core reads ONNX; agents bring PyTorch's programs (``agents/cli.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import cast

from dojo_core.graph.graph import Graph

# By suffix, as ``package.module:function``: from a path to its graph. It raises NotImported with all reasons.
READERS: dict[str, str] = {}


def reader(path: Path) -> Callable[[Path], Graph] | None:
    """What reads a file of this name, None where nothing does."""
    name = READERS.get(path.suffix)
    return None if name is None else cast(Callable[[Path], Graph], resolve_name(name))
