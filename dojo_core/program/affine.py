"""Affine forms over the iterators of enclosing scopes: ``{0}*16+{1}+3``.

An iterator is known by the depth of its scope, the root scope being 0, as in the text form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Affine:
    """``sum(coefficient * {depth}) + const`` with terms in order of depth and no zero coefficient."""

    terms: tuple[tuple[int, int], ...] = ()
    const: int = 0

    @staticmethod
    def make(terms: Iterable[tuple[int, int]], const: int = 0) -> Affine:
        """Collect like terms; ``terms`` are (depth, coefficient) in any order."""
        total: dict[int, int] = {}
        for depth, coefficient in terms:
            total[depth] = total.get(depth, 0) + coefficient
        return Affine(tuple(sorted([term for term in total.items() if term[1]])), const)

    @staticmethod
    def iterator(depth: int, coefficient: int = 1) -> Affine:
        return Affine(((depth, coefficient),)) if coefficient else Affine()

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.const + other)
        if not (self.terms and other.terms):
            return Affine(self.terms or other.terms, self.const + other.const)
        return Affine.make(self.terms + other.terms, self.const + other.const)

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.const - other)
        negated = tuple([(d, -c) for d, c in other.terms])
        if not (self.terms and negated):
            return Affine(self.terms or negated, self.const - other.const)
        return Affine.make(self.terms + negated, self.const - other.const)

    def __mul__(self, factor: int) -> Affine:
        if factor == 1:
            return self
        if factor == 0:
            return Affine()
        return Affine(tuple([(d, c * factor) for d, c in self.terms]), self.const * factor)

    def coefficient(self, depth: int) -> int:
        for d, c in self.terms:
            if d == depth:
                return c
        return 0

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def depths(self) -> tuple[int, ...]:
        return tuple([d for d, _ in self.terms])

    def uses(self, depth: int) -> bool:
        return depth in [d for d, _ in self.terms]

    def substitute(self, images: Mapping[int, Affine]) -> Affine:
        """Replace iterators by affine forms; depths that ``images`` leaves out stay as they are."""
        for depth, _ in self.terms:
            if depth in images:
                break
        else:
            return self
        if len(self.terms) == 1 and not self.const:
            return images[depth] * self.terms[0][1]
        terms: list[tuple[int, int]] = []
        const = self.const
        for depth, coefficient in self.terms:
            image = images.get(depth)
            if image is None:
                terms.append((depth, coefficient))
            else:
                terms.extend((d, c * coefficient) for d, c in image.terms)
                const += image.const * coefficient
        return Affine.make(terms, const)

    def bounds(self, sizes: Sequence[int]) -> tuple[int, int]:
        """Smallest and largest value over the box ``0 <= {d} < sizes[d]``."""
        low = high = self.const
        for depth, coefficient in self.terms:
            reach = coefficient * (sizes[depth] - 1)
            if reach > 0:
                high += reach
            else:
                low += reach
        return low, high

    def reach(self, sizes: Sequence[int]) -> int:
        """No partial sum over that box is further from 0."""
        return abs(self.const) + sum(abs(c) * (sizes[d] - 1) for d, c in self.terms)

    def value(self, iterators: Sequence[int]) -> int:
        return self.const + sum(c * iterators[d] for d, c in self.terms)

    def __str__(self) -> str:
        parts: list[str] = []
        for depth, coefficient in self.terms:
            magnitude = abs(coefficient)
            term = f"{{{depth}}}" if magnitude == 1 else f"{{{depth}}}*{magnitude}"
            sign = "-" if coefficient < 0 else "+" if parts else ""
            parts.append(sign + term)
        if self.const or not parts:
            sign = "+" if self.const > 0 and parts else ""
            parts.append(f"{sign}{self.const}")
        return "".join(parts)
