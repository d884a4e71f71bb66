"""Integer feasibility of small systems of affine constraints over a box: the one judge of dependences.

Equalities are removed exactly, by unimodular changes of variable (Euclid on the coefficients);
inequalities by Fourier-Motzkin elimination with the real and the dark shadow of the Omega test
(W. Pugh, Supercomputing '91). A system that neither shadow decides counts as possible, so that a
legality check built on "impossible" never accepts on a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import gcd

from dojo_core.program.affine import Affine
from dojo_core.program.tree import Comparison

Row = tuple[int, ...]  # coefficients of the variables, then the constant
Box = tuple[tuple[int, int], ...]

_MAX_ROWS = 240  # beyond this many inequalities the elimination gives up: undecided


@dataclass(frozen=True, slots=True)
class Constraint:
    """``form == 0`` or ``form >= 0`` over variables numbered as the depths of the form."""

    form: Affine
    equality: bool = False

    @staticmethod
    def equal(a: Affine, b: Affine) -> Constraint:
        return Constraint(a - b, True)

    @staticmethod
    def at_least(form: Affine) -> Constraint:
        """``form >= 0``."""
        return Constraint(form)

    @staticmethod
    def of(comparison: Comparison) -> Constraint:
        form = comparison.form - comparison.bound
        if comparison.relation == "<":
            return Constraint(-form - 1)
        return Constraint(form, comparison.relation == "==")

    @staticmethod
    def against(comparison: Comparison) -> list[Constraint]:
        """The ways in which it does not hold."""
        form = comparison.form - comparison.bound
        below, above = Constraint(-form - 1), Constraint(form - 1)
        if comparison.relation == "<":
            return [Constraint(form)]
        return [below] if comparison.relation == ">=" else [below, above]


@dataclass(frozen=True, slots=True)
class Solution:
    """``possible`` is False only where no integer point exists; ``point`` is one where it is known."""

    possible: bool
    point: tuple[int, ...] | None = None


_IMPOSSIBLE = Solution(False)
_UNDECIDED = Solution(True)


def solve(box: Sequence[tuple[int, int]], constraints: Sequence[Constraint]) -> Solution:
    """Is there an integer point of the box (bounds inclusive) that satisfies all constraints?"""
    if any(low > high for low, high in box):
        return _IMPOSSIBLE
    for c in constraints:  # the interval test settles most systems
        low, high = _interval(c.form, box)
        if high < 0 or (c.equality and low > 0):
            return _IMPOSSIBLE
    # Variables that an equality says are the same share a column, and one that nothing else concerns has
    # none: it takes its least value. What is left is small, and the same for many systems.
    ranges, stands, rest = _merged(box, constraints)
    if any(low > high for low, high in ranges):
        return _IMPOSSIBLE
    columns = sorted({stands[d] for c in rest for d, _ in c.form.terms})
    number = {d: n for n, d in enumerate(columns)}
    width = len(columns)

    def row(form: Affine) -> Row:
        result = [0] * (width + 1)
        for d, coefficient in form.terms:
            result[number[stands[d]]] += coefficient
        result[width] = form.const
        return tuple(result)

    core = _solve(
        tuple([ranges[d] for d in columns]),
        tuple([row(c.form) for c in rest if c.equality]),
        tuple([row(c.form) for c in rest if not c.equality]),
    )
    if core.point is None:
        return core
    return Solution(True, tuple([core.point[number[d]] if d in number else ranges[d][0] for d in stands]))


def _merged(
    box: Sequence[tuple[int, int]], constraints: Sequence[Constraint]
) -> tuple[list[tuple[int, int]], list[int], list[Constraint]]:
    """For each variable its range and the first of those that it is the same as, whose range is that of all;
    and the constraints that say more than that."""
    first = list(range(len(box)))  # towards the variable that stands for it

    def of(d: int) -> int:
        while first[d] != d:
            d = first[d]
        return d

    ranges, rest = [*box], []
    for c in constraints:
        terms = c.form.terms
        if c.equality and c.form.const == 0 and len(terms) == 2 and terms[0][1] == -terms[1][1]:
            a, b = sorted((of(terms[0][0]), of(terms[1][0])))
            first[b] = a
            ranges[a] = max(ranges[a][0], ranges[b][0]), min(ranges[a][1], ranges[b][1])
        else:
            rest.append(c)
    return ranges, [of(d) for d in first], rest


@lru_cache(maxsize=1_000)
def divided(
    form: Affine, factor: int, sizes: tuple[int, ...], guard: tuple[Comparison, ...]
) -> tuple[Affine, Affine] | None:
    """(u, v) with form = factor*u + v and 0 <= v < factor wherever the guard holds; None: there are none.

    Over two or more iterations a coefficient of v lies between -factor and factor, so each term has two
    ways to be divided and the constant one; a scope of one iteration leaves its term whole.
    """
    ways: list[tuple[tuple[int, int], ...]] = []
    for depth, coefficient in form.terms:
        quotient, rest = divmod(coefficient, factor)
        if not rest:
            ways.append(((quotient, 0),))
        elif sizes[depth] == 1:
            ways.append(((0, coefficient),))
        else:
            ways.append(((quotient, rest), (quotient + 1, rest - factor)))
    for chosen in product(*ways):
        u = Affine.make(
            ((d, q) for (d, _), (q, _) in zip(form.terms, chosen, strict=True)), form.const // factor
        )
        v = Affine.make(
            ((d, r) for (d, _), (_, r) in zip(form.terms, chosen, strict=True)), form.const % factor
        )
        low, high = v.bounds(sizes)
        if low >= 0 and high < factor:
            return u, v
        if guard:
            box = [(0, size - 1) for size in sizes]
            held = [Constraint.of(c) for c in guard]
            outside = (Constraint.at_least(-v - 1), Constraint.at_least(v - factor))
            if not any(solve(box, [*held, side]).possible for side in outside):
                return u, v
    return None


@lru_cache(maxsize=8_000)  # a position of a large kernel asks for some thousand
def _solve(box: Box, equal: tuple[Row, ...], rows: tuple[Row, ...]) -> Solution:
    """Of ``row == 0`` for those in ``equal`` and ``row >= 0`` for the others."""
    width = len(box)
    equalities = [*map(list, equal)]
    for k, (low, high) in enumerate(box):
        above, below = [0] * width, [0] * width
        above[k], below[k] = 1, -1
        rows += ((*above, -low), (*below, high))

    # Each elimination step records how to get the old variables back from the new ones.
    undo: list[tuple[int, list[int]]] = []
    while equalities:
        equality = equalities.pop()
        divisor = gcd(*equality[:-1])
        if divisor == 0:
            if equality[-1] != 0:
                return _IMPOSSIBLE
            continue
        if equality[-1] % divisor:
            return _IMPOSSIBLE
        if divisor > 1:
            equality = [c // divisor for c in equality]
        k = min((abs(c), n) for n, c in enumerate(equality[:-1]) if c)[1]
        pivot = equality[k]
        if abs(pivot) == 1:
            # x_k is an affine form of the others: substitute it everywhere.
            image = [-c * pivot for c in equality]
            image[k] = 0
        else:
            # x_k = t - sum(q_i x_i): the coefficients of the others shrink below the pivot's. The
            # variable t takes the place of x_k.
            image = [-(c // pivot) for c in equality]
            image[k], image[width] = 1, 0
        undo.append((k, image))
        equalities = [_replace(e, k, image) for e in equalities]
        if abs(pivot) != 1:
            equalities.append(_replace(equality, k, image))
        rows = tuple([tuple(_replace(r, k, image)) if r[k] else r for r in rows])

    outcome = _eliminate(rows, width)
    if outcome is None:
        return _IMPOSSIBLE
    if not outcome and width:
        return _UNDECIDED
    values = outcome
    for k, image in reversed(undo):
        values[k] = sum(c * v for c, v in zip(image, values, strict=False)) + image[width]
    return Solution(True, tuple(values))


def _interval(form: Affine, box: Sequence[tuple[int, int]]) -> tuple[int, int]:
    low = high = form.const
    for d, c in form.terms:
        a, b = box[d]
        if c > 0:
            low += c * a
            high += c * b
        else:
            low += c * b
            high += c * a
    return low, high


def _replace(row: Sequence[int], k: int, image: Sequence[int]) -> list[int]:
    factor = row[k]
    if factor == 0:
        return list(row)
    result = [r + factor * i for r, i in zip(row, image, strict=True)]
    result[k] = factor * image[k]
    return result


def _tight(rows: Sequence[Row]) -> list[Row] | None:
    """Divide by the gcd rounding the constant down, keep the tightest of parallel rows; None: empty."""
    best: dict[Row, int] = {}
    for row in rows:
        key, const = row[:-1], row[-1]
        divisor = gcd(*key)
        if divisor == 0:
            if const < 0:
                return None
            continue
        if divisor > 1:
            key = tuple([c // divisor for c in key])
            const //= divisor
        if key not in best or const < best[key]:
            best[key] = const
    for key, const in best.items():
        opposite = best.get(tuple([-c for c in key]))
        if opposite is not None and const + opposite < 0:
            return None
    return [(*key, const) for key, const in best.items()]


def _eliminate(rows: Sequence[Row], width: int) -> list[int] | None:
    """A point of ``rows >= 0``, None if there is none, ``[]`` if undecided."""
    tight = _tight(rows)
    if tight is None:
        return None
    if len(tight) > _MAX_ROWS:
        return []
    # A variable that only its own bounds hold takes its least value: ``_tight`` has seen that there is one.
    linked = [r for r in tight if r[:-1].count(0) < width - 1]
    tied = list(map(any, zip(*linked, strict=True))) or [False] * width
    alone: dict[int, int] = {}
    held = []
    for row in tight:
        k = next(k for k, c in enumerate(row) if c)
        if tied[k]:
            held.append(row)
        elif row[k] > 0 or k not in alone:
            alone[k] = -row[-1] * row[k]
    if not held:
        return [alone.get(k, 0) for k in range(width)]
    # The cheapest variable first; eliminations that are exact over the integers before others.
    choice: tuple[bool, int, int] | None = None
    for k in range(width):
        lower = [r[k] for r in held if r[k] > 0]
        upper = [r[k] for r in held if r[k] < 0]
        if not lower and not upper:
            continue
        inexact = not (all(c == 1 for c in lower) or all(c == -1 for c in upper))
        candidate = (inexact, len(lower) * len(upper), k)
        if choice is None or candidate < choice:
            choice = candidate
    assert choice is not None
    inexact, _, k = choice
    lower_rows = [r for r in held if r[k] > 0]
    upper_rows = [r for r in held if r[k] < 0]
    rest = [r for r in held if r[k] == 0]
    for slack in (0, 1) if inexact else (0,):
        shadow = list(rest)
        for a in lower_rows:
            for b in upper_rows:
                p, q = a[k], -b[k]
                combined = [q * x + p * y for x, y in zip(a, b, strict=True)]
                if slack:  # the dark shadow: wide enough to hold an integer for certain
                    combined[-1] -= (p - 1) * (q - 1)
                shadow.append(tuple(combined))
        values = _eliminate(shadow, width)
        if values is None:
            # An empty real shadow settles it; an empty dark one leaves the real one's doubt.
            return [] if slack else None
        if not values:
            return []
        low = max((-(_rest(r, k, values) // r[k]) for r in lower_rows), default=None)
        high = min((_rest(r, k, values) // -r[k] for r in upper_rows), default=None)
        if low is None:
            low = high if high is not None else 0
        if high is None or low <= high:
            values[k] = low
            return [alone.get(n, value) for n, value in enumerate(values)]
    return []


def _rest(row: Row, k: int, values: Sequence[int]) -> int:
    return sum(c * v for n, (c, v) in enumerate(zip(row, values, strict=False)) if n != k) + row[-1]
