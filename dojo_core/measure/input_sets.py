"""A set of inputs on which programs of a workload are verified: what it is drawn by.

Which sets those are says ``measure/worst.py`` (``input_sets``), for every judge there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class InputSet:
    """Without ``patterns`` the usual inputs, normal numbers with some adversarial rows.

    With ``patterns`` (names in ``patterns.py``) inputs on which algebraic moves are worst. Each of the
    ``leads``, an input with the dimensions that its slabs keep, is filled with them slab by slab, from the
    first one on; other inputs in every second slab but the first, so that they do not drown the leads.
    ``tame``: usual inputs without NaN, infinities and numbers of extreme size. ``normwise``: a result may be
    off by what moving each element by roundings of its input's largest one does, not by its own. ``tf32``:
    and by what rounding the factors of sums of products does.
    """

    patterns: tuple[str, ...] = ()
    leads: tuple[tuple[str, tuple[int, ...]], ...] = ()
    tame: bool = False
    normwise: bool = False
    tf32: bool = False

    @property
    def worst(self) -> bool:
        """Is it one on which algebraic moves are worst, for verifying alone?"""
        return bool(self.patterns)

    @staticmethod
    def read(content: Mapping[str, Any]) -> InputSet:
        """From its fields as JSON has them."""
        leads = tuple((name, tuple(dims)) for name, dims in content["leads"])
        return InputSet(
            tuple(content["patterns"]), leads, content["tame"], content["normwise"], content["tf32"]
        )
