"""Models that other packages read: the suffix of a file, and the function that makes a graph of it.

The core reads ONNX; agents bring PyTorch's programs (``agents/cli.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

from dojo_core.extras import need

if TYPE_CHECKING:
    from dojo_core.graph.graph import Graph

# By suffix: the extra that it needs, and ``package.module:function``, from a path to its graph, which raises
# NotImported with all reasons.
READERS: dict[str, tuple[str, str]] = {}


def reader(path: Path) -> Callable[[Path], Graph] | None:
    """What reads a file of this name, None where nothing does. Raises NotInstalled."""
    if path.suffix not in READERS:
        return None
    extra, name = READERS[path.suffix]
    need(extra, "dojo import")
    return cast("Callable[[Path], Graph]", resolve_name(name))
