"""What ``make test`` plays of a test that goes over many kernels, targets, dtypes or seeds, and what
``make thorough`` adds.

``make test`` is to answer within five minutes. It keeps every promise with a test that fails when it is
broken, but not in each combination; ``.ci/run`` plays the rest right behind it. The rule:

- of rows of parameters stay those that are the first with a value of some facet, as a kernel's group, a
  target or a dtype is one (:func:`covering`): each value once, not each beside each;
- of rows that differ in no facet, as seeds do, one of so many (:func:`one_of`);
- of tests that see the same through more and more of the machinery (another process, another machine's
  compiler, the whole app), those that cost least. The others have ``pytest.mark.thorough``, and say why.

What only a browser shows is there for each page once, and the keyboard. Letters of any size, pictures of
the chart and what a browser keeps of a login are ``make thorough``'s alone.

A file of tests that is run by its name plays all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from dojo_core import kernels


def group(kernel: str) -> str:
    """What kind of kernel the one of that name is: ``reduction``, ``contraction``."""
    return kernels.get(kernel).group


def covering(rows: Iterable[Any], *facets: Callable[[Any], object]) -> list[ParameterSet]:
    """Rows of parameters for ``pytest.mark.parametrize``, in their order. A facet is asked for a row as a
    test gets it, a tuple where it has several values; without facets each of its values is one."""
    seen: set[tuple[int, object]] = set()
    found = []
    for row in map(_param, rows):
        bare = row.values if len(row.values) > 1 else row.values[0]
        new = set(enumerate(facet(bare) for facet in facets) if facets else enumerate(row.values)) - seen
        if not _in_soak(row):
            seen |= new
        found.append(row if new or _in_soak(row) else _thorough(row))
    return found


def one_of(count: int, rows: Iterable[Any]) -> list[ParameterSet]:
    """The first of ``count`` rows, the first of the next ones, and so on."""
    params = [_param(row) for row in rows]
    first = [row for row in params if not _in_soak(row)][::count]
    return [row if row in first or _in_soak(row) else _thorough(row) for row in params]


def _param(row: Any) -> ParameterSet:
    if isinstance(row, ParameterSet):
        return row
    return pytest.param(*row) if isinstance(row, tuple) else pytest.param(row)


def _in_soak(row: ParameterSet) -> bool:
    return any(mark.name == "soak" for mark in row.marks)


def _thorough(row: ParameterSet) -> ParameterSet:
    return pytest.param(*row.values, marks=(*row.marks, pytest.mark.thorough), id=row.id)
