"""Which axes the inputs of a text have, where it does not say: found by trying it on tiny arrays.

Ranks are tried until the text goes through with all sizes alike; axes that have to be as long as others are
then found by making them longer. So the rules of broadcasting and of each function are asked, not written
down a second time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product

from dojo_core.from_code.source import SAY_SHAPES, Declared, Misfit
from dojo_core.program.expressions import TextError

SIZES = ((4, 6), (8, 12), (64, 96))  # a size that is tried for all axes, and a longer one
MOST_TRIES = 200
LETTERS = "mnkhdbpqrstuvw"

# The first size of each axis, by the axes of the array that has most: arrays are a megabyte or a few.
_FIRST = {1: 65536, 2: 1024, 3: 64}
_LEAST = 16

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Came:
    """How far a text went with certain shapes: steps, inf where it went through; else why it stopped."""

    reach: float
    fault: Misfit | None = None


Attempt = Callable[[Shapes], Came]  # raises TextError for what no shapes mend

# What names of arrays make likely: their ranks, the likeliest first.
_FEW = {"b", "bias", "beta", "gamma", "g", "scale", "shift", "mu", "sigma", "weight_norm", "v0"}
_NUMBERS = {"alpha", "eps", "epsilon", "lr", "temperature", "t", "c", "p", "lam"}


def _likely(name: str) -> tuple[int, ...]:
    stem = name.rstrip("0123456789_") or name  # b1, as b
    if name in _FEW or stem in _FEW:
        return (1, 2, 0, 3, 4)
    return (0, 2, 1, 3, 4) if name in _NUMBERS or stem in _NUMBERS else (2, 1, 3, 4, 0)


def axes_of_inputs(
    inputs: Sequence[str], declared: Mapping[str, Declared], attempt: Attempt, most: int = MOST_TRIES
) -> dict[str, tuple[str, ...]]:
    """The axes of each input by name: those that are declared, and for the others letters.

    Axes of one name are as long as one another. ``most`` combinations of ranks are tried.

    Raises TextError, that of the likeliest ranks where none go.
    """
    if all(name in declared for name in inputs):
        return {name: declared[name].axes for name in inputs}
    size, longer, ranks = _ranks(inputs, declared, attempt, most)
    axes = {
        name: declared[name].axes if name in declared else tuple(f"{name}.{k}" for k in range(ranks[name]))
        for name in inputs
    }
    slots = list(dict.fromkeys(axis for each in axes.values() for axis in each if not axis.isdigit()))
    letters = iter(each for each in (*LETTERS, *(f"n{k}" for k in range(99))) if each not in slots)
    names: dict[str, str] = {}

    def reach(grown: set[str]) -> float:
        """How far the text goes with these axes longer."""
        shapes = {
            name: tuple(int(a) if a.isdigit() else longer if a in grown else size for a in each)
            for name, each in axes.items()
        }
        return attempt(shapes).reach

    for slot in slots:
        if slot not in names:
            together = _together(slot, slots, reach)
            if not together:  # no other length goes: the text says it
                names[slot] = str(size)
                continue
            said = [axis for axis in slots if axis in together and "." not in axis]
            known = [names[axis] for axis in slots if axis in together and axis in names]
            name = next(iter((*said, *known)), None) or next(letters)
            names |= {axis: name for axis in together if axis not in names}
    return {name: tuple(names.get(axis, axis) for axis in each) for name, each in axes.items()}


def _together(slot: str, slots: Sequence[str], reach: Callable[[set[str]], float]) -> set[str]:
    """The axes that have to be longer where one is: those are added with which the text goes further. None
    where it cannot be longer."""
    together, far = {slot}, reach({slot})
    while not math.isinf(far):
        others = [{axis} for axis in slots if axis not in together]
        pairs = [{a, b} for (a,), (b,) in combinations(others, 2)]
        for more in (*others, *pairs):
            further = reach(together | more)
            if further > far:
                together, far = together | more, further
                break
        else:
            return set(slots) if math.isinf(reach(set(slots))) else set()
    for axis in slots:
        if axis != slot and math.isinf(reach(together - {axis})):
            together.discard(axis)
    return together


def _ranks(
    inputs: Sequence[str], declared: Mapping[str, Declared], attempt: Attempt, most: int
) -> tuple[int, int, dict[str, int]]:
    """A size, a longer one, and the rank of each input with which the text goes through."""
    open_names = [name for name in inputs if name not in declared]
    choices = [_likely(name) for name in open_names]
    order: Iterable[tuple[int, ...]] = product(*(range(len(each)) for each in choices))
    if len(open_names) < 6:
        order = sorted(order, key=lambda places: (sum(places), max(places)))
    tried = list(islice(order, most))
    first: Misfit | None = None
    for size, longer in SIZES:
        for places in tried:
            ranks = {n: each[k] for n, each, k in zip(open_names, choices, places, strict=True)}
            shapes = {
                name: tuple(int(axis) if axis.isdigit() else size for axis in declared[name].axes)
                if name in declared
                else (size,) * ranks[name]
                for name in inputs
            }
            came = attempt(shapes)
            if came.fault is None:
                return size, longer, ranks
            first = first or came.fault
    assert first is not None
    raise TextError(first.message, SAY_SHAPES, first.line, first.column, first.source)


def first_sizes(
    axes: Mapping[str, Sequence[str]], goes: Callable[[Mapping[str, int]], bool]
) -> dict[str, int]:
    """Sizes for the axes of inputs of which the text says none: of several the first with which it goes."""
    names = dict.fromkeys(axis for each in axes.values() for axis in each if not axis.isdigit())
    size = _FIRST.get(max(map(len, axes.values()), default=1), _LEAST)
    # More axes than an array has: something is summed, which takes as often as long.
    first = dict.fromkeys(names, min(size, 256) if len(names) > 2 else size)
    for sizes in (first, *(dict.fromkeys(names, smaller) for smaller in (1024, 64, 16))):
        if goes(sizes):
            return sizes
    return first
