"""Contractions: sums of products over named axes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from dojo_core.primitives.array import Array, BuildError, Factors, filled
from dojo_core.primitives.builder import Builder, nest
from dojo_core.primitives.conditions import Condition, guard_of
from dojo_core.primitives.elementwise import convert, elementwise, joint_dtype
from dojo_core.primitives.reductions import reduce
from dojo_core.primitives.views import broadcast, plain, same_factors, unsqueeze
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import HALVES
from dojo_core.program.tree import Access, Number, Op, substituted

Names = tuple[str, ...]


def parsed_form(form: str, words: Collection[str] = ()) -> tuple[tuple[Names, ...], Names]:
    """The names of operands' axes and of the result's, from ``mk,kn->mn`` or ``row k, k col -> row col``.

    Names are letters, unless some stand apart, or one of ``words`` stands alone.

    Raises BuildError for another form.
    """
    part = r"\s*\w*(?:\s+\w+)*\s*"
    if not re.fullmatch(rf"{part}(?:,{part})*->{part}", form, re.ASCII):
        raise BuildError(f"{form!r} is no contraction: write one such as 'mk,kn->mn'.")
    left, right = form.split("->")
    parts = [*left.split(","), right]
    spaced = any(len(part.split()) > 1 or part.strip() in words for part in parts)
    names = [tuple(part.split()) if spaced else tuple(part.strip()) for part in parts]
    return tuple(names[:-1]), names[-1]


def contract(
    b: Builder,
    form: str,
    *arrays: Array,
    dtype: str | None = None,
    start: Array | None = None,
    where: Condition | None = None,
) -> Array:
    """A contraction of arrays: ``contract(b, "mk,kn->mn", x, w)`` sums ``x*w`` over k.

    Axes of size 1 are broadcast. More than two arrays are contracted one after the other. The result has the
    operands' dtype or the one that is asked for; one of f16 or bf16 is accumulated in f32 and rounded once.
    ``start`` (broadcast to the result) is what the sum begins with, such as a bias. ``where`` restricts it to
    places where a condition holds; its axes are the result's, then those that are summed, by first mention.
    """
    return contract_named(b, *parsed_form(form), arrays, dtype, start, where)


def contract_named(
    b: Builder,
    names: Sequence[Names],
    wanted: Names,
    arrays: Sequence[Array],
    dtype: str | None = None,
    start: Array | None = None,
    where: Condition | None = None,
) -> Array:
    """``contract`` with the form in parts: the names of each array's axes, and those of the result's."""
    form = f"{','.join(map(_spaced, names))}->{_spaced(wanted)}"
    if len(names) != len(arrays) or not arrays:
        raise BuildError(f"{form!r} names {len(names)} arrays and is given {len(arrays)}.")
    sizes: dict[str, int] = {}
    for each, array in zip(names, arrays, strict=True):
        if len(each) != len(array.axes):
            raise BuildError(f"{form!r}: {''.join(each)!r} names {len(each)} axes of {len(array.axes)}.")
        for name, size in zip(each, array.shape, strict=True):
            if sizes.get(name, 1) not in (1, size) and size != 1:
                raise BuildError(f"{form!r}: axis {name} is {sizes[name]} long, and {size} in another array.")
            sizes[name] = max(size, sizes.get(name, 1)) if size else 0
    if len(set(wanted)) < len(wanted) or not set(wanted) <= set(sizes):
        raise BuildError(f"{form!r}: the result's axes are some of the arrays', each once.")
    if len(arrays) > 2:
        later = {name for each in names[2:] for name in each} | set(wanted)
        left = tuple(name for name in dict.fromkeys((*names[0], *names[1])) if name in later)
        first = contract_named(b, names[:2], left, arrays[:2], dtype)
        return contract_named(b, (left, *names[2:]), wanted, (first, *arrays[2:]), dtype, start, where)
    target = dtype or joint_dtype(arrays)
    over = tuple(name for name in sizes if name not in wanted)
    shape = tuple(sizes[name] for name in wanted)
    if 0 in sizes.values():
        return broadcast(b, filled(0, target, ()) if start is None else start, shape)
    whole = (*shape, *(sizes[name] for name in over))
    views = [_ordered(b, array, each, (*wanted, *over)) for each, array in zip(names, arrays, strict=True)]
    if start is not None:
        views.append(unsqueeze(b, broadcast(b, start, shape), range(len(shape), len(whole))))
    views += where.forms if where is not None else ()
    views = same_factors(b, [broadcast(b, view, whole) for view in views])
    operands, rest = views[: len(arrays)], views[len(arrays) :]
    begin = rest.pop(0) if start is not None else None
    summed = any(operands[0].numbers(k) for k in range(len(shape), len(whole)))
    if not summed and where is None:
        kept = [_first(view, len(shape)) for view in operands]
        return _product(b, kept, target, _first(begin, len(shape)) if begin is not None else None)
    if len(operands) == 1 and begin is None:
        return reduce(b, "+", operands[0], range(len(shape), len(whole)), dtype=target, where=where)
    return _summed(b, operands, len(shape), target, begin, where, rest)


def _first(array: Array, rank: int) -> Array:
    """Without the axes behind, which have the size 1."""
    return Array(array.dtype, array.operand, array.axes[:rank])


def _product(b: Builder, operands: Sequence[Array], target: str, begin: Array | None) -> Array:
    """What nothing is summed in."""
    product = elementwise(b, "*", *operands, dtype=target) if len(operands) == 2 else operands[0]
    if begin is not None:
        product = elementwise(b, "+", product, begin, dtype=target)
    return convert(b, product, target)


def _summed(
    b: Builder,
    operands: Sequence[Array],
    rank: int,
    target: str,
    begin: Array | None,
    where: Condition | None,
    forms: Sequence[Array],
) -> Array:
    """The sum of products in two nests: what it begins with, and the terms."""
    axes = operands[0].axes[:rank]
    factors = operands[0].factors
    kept = sum(map(len, axes))
    relevant = {n for v in (*operands, *forms, *([begin] if begin else [])) for n in v.used}
    used = [n for n in range(kept) if n in relevant]
    wide = "f32" if target in HALVES else target
    depths = {n: Affine.iterator(d) for d, n in enumerate((*used, *range(kept, len(factors))))}
    sizes = [factors[n] for n in used]
    place = Access(b.temporary(wide, sizes), tuple(depths[n] for n in used))
    first = substituted(begin.operand, depths) if begin else Number(0)
    b.add(*nest(sizes, (Op(place, "", "", (first,)),)))
    terms = tuple(substituted(v.operand, depths) for v in operands)
    guard = guard_of(where, forms, depths)
    if guard is not None:
        term = Op(place, "+", "*" if len(terms) == 2 else "", terms, guard)
        b.add(*nest([*sizes, *factors[kept:]], (term,)))
    result = Array(wide, Access(place.array, tuple(map(Affine.iterator, used))), axes)
    return convert(b, result, target)


def _ordered(b: Builder, array: Array, names: Names, order: Names) -> Array:
    """The axes in this order, of size 1 where the array has none of the name; a name that stands twice is a
    diagonal."""
    for k, name in enumerate(names):
        if names.count(name) > 1:
            array = plain(b, array, k)
    axes: list[Factors] = []
    images: dict[int, Affine] = {}
    for name in order:
        first = sum(map(len, axes))
        axes.append(())
        for k in (k for k, each in enumerate(names) if each == name and array.axes[k]):
            axes[-1] = array.axes[k]
            images |= {n: Affine.iterator(first + j) for j, n in enumerate(array.numbers(k))}
    return array.with_axes(axes, images)


def _spaced(names: Names) -> str:
    return " ".join(names)
