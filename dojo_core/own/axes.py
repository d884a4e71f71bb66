"""Names of axes, and how a string names several: ``"mn"`` by letters, ``"row col"`` by words."""

from __future__ import annotations

import re
from collections.abc import Collection

from dojo_core.primitives import BuildError
from dojo_core.program.tree import NUMBER_DTYPES

Axes = tuple[tuple[str, int], ...]  # names and sizes, in order
Number = int | float


class KernelError(BuildError):
    """A kernel of one's own that is none; the message says what to change."""


def is_axis_name(name: object) -> bool:
    """A letter, or a word of letters, digits and _; a dtype is none."""
    return (
        isinstance(name, str)
        and re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) is not None
        and name not in NUMBER_DTYPES
    )


def axes_named(form: str, known: Collection[str]) -> tuple[str, ...]:
    """The axes that a string names: words that stand apart, one that is ``known``, else letters."""
    words = form.split()
    if len(words) > 1 or (words and words[0] in known):
        return tuple(words)
    return tuple("".join(words))


def listed(axes: Axes) -> str:
    """``m=4, n=8``."""
    return ", ".join(f"{name}={size}" for name, size in axes)
