"""The shared objects of the cache, one name for each kernel: where they lie, and which of them are sound."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from dojo_core.codegen.built import Built
from dojo_core.measure import sealed
from dojo_core.measure.places import cache_directory


@dataclass
class Objects:
    """The folder of this moment. Those of a batch are one file under many names, which is read once."""

    folder: Path = field(default_factory=lambda: sealed.folder(cache_directory() / "objects"))
    _intact: dict[int, bool] = field(default_factory=dict)

    def built(self, key: str) -> Built | None:
        """The kernel of a key, if it is there as it was made."""
        library = self.folder / f"{key}.so"
        try:
            file = library.stat().st_ino
            os.utime(library)  # the oldest by use leave first
        except OSError:
            return None
        if file not in self._intact:
            self._intact[file] = sealed.is_intact(library)
        if not self._intact[file]:
            return None
        return Built(str(library), symbol_of(key), key)


def symbol_of(key: str) -> str:
    """The name of a kernel's function in its object."""
    return f"kernel_{key}"
