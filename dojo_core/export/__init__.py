"""Kernels to take away: C files, a header, a CMake file, a Python package and PyTorch operators.

    with Records() as records:
        made = library([best("softmax", "24576x512", records)])
    write(made, Path("softmax_lib"))   # or zipped(made)

What is exported needs nothing of the Dojo: gcc or clang, and for its Python package NumPy.
"""

from __future__ import annotations

from dojo_core.export.choice import (
    Choice,
    NotExported,
    best,
    of_game,
    of_heuristic,
    of_line,
    of_record,
    start_game,
    verified,
    with_record,
)
from dojo_core.export.elsewhere import sets_for
from dojo_core.export.folder import write, zipped
from dojo_core.export.kernel import single_file
from dojo_core.export.library import DEFAULT_NAME, Library, library, torch_example

__all__ = [
    "DEFAULT_NAME",
    "Choice",
    "Library",
    "NotExported",
    "best",
    "library",
    "of_game",
    "of_heuristic",
    "of_line",
    "of_record",
    "sets_for",
    "single_file",
    "start_game",
    "torch_example",
    "verified",
    "with_record",
    "write",
    "zipped",
]
