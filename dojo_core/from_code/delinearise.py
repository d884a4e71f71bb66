"""The dimensions that subscripts show: ``x[i*n + j]`` with j below n is ``x[i, j]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from dojo_core.primitives.elision import accessing
from dojo_core.program.affine import Affine
from dojo_core.program.dependence import may_leave
from dojo_core.program.tree import Access, Comparison, Node, Op, Scope

Sizes = Mapping[str, tuple[int | None, ...]]


@dataclass(frozen=True)
class _Place:
    """An index as it stands in an operation."""

    forms: tuple[Affine, ...]
    sizes: tuple[int, ...]
    guard: tuple[Comparison, ...]

    def most(self, form: Affine) -> int:
        """The largest value of a form; under a guard, that of the iterations that it lets through."""
        low, high = form.bounds(self.sizes)
        if not self.guard:
            return high
        below, enough = max(low, 0), max(high, 0) + 1
        while below < enough:  # the least size that it does not leave
            middle = (below + enough) // 2
            if may_leave(form + max(0, -low), middle + max(0, -low), self.sizes, self.guard):
                below = middle + 1
            else:
                enough = middle
        return below - 1


def with_dimensions(
    body: tuple[Node, ...], open_sizes: Sizes, below: Callable[[str], NoReturn]
) -> tuple[tuple[Node, ...], dict[str, tuple[int, ...]]]:
    """The body with all sizes known, and those of each array.

    A pointer, ``(None,)``, may become several dimensions; of others what is None is as large as the
    subscripts say. ``below`` is called for an array whose subscripts are negative somewhere.
    """
    places: dict[str, list[_Place]] = {name: [] for name in open_sizes}
    for op, sizes in _operations(body, ()):
        for access in (op.target, *op.reads):
            if access.array in places:
                forms = tuple(form for form in access.index if isinstance(form, Affine))
                places[access.array].append(_Place(forms, sizes, op.guard))
    strides = {
        name: _strides(each) if open_sizes[name] == (None,) and each else () for name, each in places.items()
    }
    known: dict[str, tuple[int, ...]] = {}
    for name, sizes_there in open_sizes.items():
        used = [_Place(_split(p.forms, strides[name], p.sizes), p.sizes, p.guard) for p in places[name]]
        inner = [a // b for a, b in zip(strides[name], (*strides[name][1:], 1), strict=False)]
        wanted: list[int | None] = [None, *inner] if strides[name] else list(sizes_there)
        for k, size in enumerate(wanted):
            if any(place.forms[k].bounds(place.sizes)[0] < 0 and not place.guard for place in used):
                below(name)
            if size is None:
                wanted[k] = 1 + max((place.most(place.forms[k]) for place in used), default=0)
        known[name] = tuple(size for size in wanted if size is not None)

    def replaced(node: Node, sizes: tuple[int, ...]) -> Node:
        if isinstance(node, Scope):
            return Scope(node.size, tuple(replaced(child, (*sizes, node.size)) for child in node.body))

        def access(old: Access) -> Access:
            forms = tuple(form for form in old.index if isinstance(form, Affine))
            given = strides.get(old.array)
            return Access(old.array, _split(forms, given, sizes)) if given else old

        return accessing(node, access)

    return tuple(replaced(node, ()) for node in body), known


def _operations(body: Sequence[Node], sizes: tuple[int, ...]) -> Iterator[tuple[Op, tuple[int, ...]]]:
    for node in body:
        if isinstance(node, Op):
            yield node, sizes
        else:
            yield from _operations(node.body, (*sizes, node.size))


def _strides(places: Sequence[_Place]) -> tuple[int, ...]:
    """The strides of the outer dimensions, the largest first: those by which all indices can be split."""
    found: tuple[int, ...] = ()
    candidates = sorted({abs(c) for p in places for _, c in p.forms[0].terms if abs(c) > 1}, reverse=True)
    for stride in candidates:
        if found and found[-1] % stride:
            continue
        parts = [_split(p.forms, (*found, stride), p.sizes)[-1] for p in places]
        if all(part.is_constant for part in parts):  # steps along one dimension
            continue
        if all(_splits(p, (*found, stride)) for p in places):
            found = (*found, stride)
    return found


def _splits(place: _Place, strides: tuple[int, ...]) -> bool:
    """Does each inner part stay within its stride?"""
    parts = _split(place.forms, strides, place.sizes)
    ends = (*strides, 1)
    for k, part in enumerate(parts[1:], 1):
        low, high = part.bounds(place.sizes)
        if low < 0 or high >= ends[k - 1] // ends[k]:
            return False
    return True


def _split(forms: tuple[Affine, ...], strides: tuple[int, ...], sizes: Sequence[int]) -> tuple[Affine, ...]:
    """One form over strides as a form for each dimension: ``i*(n+1)`` is i times n, and i."""
    if not strides:
        return forms
    (rest,) = forms
    parts: list[Affine] = []
    for stride in strides:
        outer = Affine.make([(d, round(c / stride)) for d, c in rest.terms if 2 * abs(c) > stride])
        inner = rest - outer * stride
        low, _ = inner.bounds(sizes)
        parts.append(outer + low // stride)
        rest = inner - low // stride * stride
    return (*parts, rest)
