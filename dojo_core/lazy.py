"""Names of a package that are imported when they are asked for: whoever needs a few of them starts sooner."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attributes(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package, by the names that each module has. None of them may be that of a
    module of the package, which stands in its place once it is imported."""

    def attribute(name: str) -> Any:
        for module, names in modules.items():
            if name in names:
                value = getattr(import_module(module), name)
                setattr(sys.modules[package], name, value)
                return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return attribute
