"""Conditions on iterators, under which a term is part of a sum: guards of the text form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dojo_core.primitives.array import Array, BuildError
from dojo_core.primitives.builder import Builder
from dojo_core.primitives.elementwise import Value, as_array, elementwise
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Comparison, Number, substituted

# A comparison with 0 as the guards of the text form have it: the sign, and what is added to the left side.
_SIGNS = {"<": ("<", 0, 1), "<=": ("<", -1, 1), ">": ("<", 0, -1), ">=": (">=", 0, 1), "==": ("==", 0, 1)}


@dataclass(frozen=True)
class Condition:
    """All of these iterator expressions compare with 0 as their signs say."""

    forms: tuple[Array, ...]
    signs: tuple[str, ...]

    def __and__(self, other: Condition) -> Condition:
        return Condition(self.forms + other.forms, self.signs + other.signs)


def condition(b: Builder, left: Value, sign: str, right: Value) -> Condition | None:
    """A comparison (``< <= > >= ==``) of iterator expressions and whole numbers; None of anything else."""
    sides = [as_array(left, "i64"), as_array(right, "i64")]
    if sign not in _SIGNS or not all(side.is_free for side in sides):
        return None
    relation, more, factor = _SIGNS[sign]
    if any(isinstance(s.operand, Number) and not isinstance(s.operand.value, int) for s in sides):
        return None
    whole = [replace(side, dtype="i64") for side in sides]
    form = elementwise(b, "-", *(whole if factor == 1 else whole[::-1]))
    form = elementwise(b, "+", form, more) if more else form
    return Condition((form,), (relation,)) if form.is_free else None


def guard_of(
    where: Condition | None, forms: Sequence[Array], depths: Mapping[int, Affine]
) -> tuple[Comparison, ...] | None:
    """The guard of an operation whose iterators stand at these depths; None where it never holds."""
    comparisons: list[Comparison] = []
    for form, relation in zip(forms, where.signs if where else (), strict=True):
        operand = substituted(form.operand, dict(depths))
        affine = operand if isinstance(operand, Affine) else Affine((), _whole(operand))
        comparison = Comparison(Affine(affine.terms), relation, -affine.const)
        if affine.terms:
            comparisons.append(comparison)
        elif not comparison.holds(()):
            return None
    return tuple(comparisons)


def _whole(operand: object) -> int:
    if isinstance(operand, Number) and isinstance(operand.value, int):
        return operand.value
    raise BuildError("A condition compares iterators and whole numbers.")
