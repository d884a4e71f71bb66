"""Copies that need not be: what fills a part of another array is written there at once.

A concatenation copies its parts, a convolution its input into the middle of a padded one. Where a part is a
temporary, the nests that write it can write the whole in its place::

    8 t1[{0}] = exp(x[{0}])
    8 y[{0}+4] = t1[{0}]          ->        8 y[{0}+4] = exp(x[{0}])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dojo_core.program.affine import Affine
from dojo_core.program.tables import Index, composed
from dojo_core.program.tree import Access, Node, Number, Op, Operand, Scope, leaves

# Dimensions and dtype of each temporary by name.
Temporaries = Mapping[str, tuple[str, Sequence[int]]]

Box = tuple[tuple[int, int], ...]  # the least and the greatest index along each dimension


@dataclass(frozen=True)
class _Copy:
    """``target[index]`` is the place of the element ``source[{0},{1},...]``; all of the source is copied."""

    source: str
    target: str
    index: tuple[Affine, ...]
    box: Box


def without_copies(body: Sequence[Node], temporaries: Temporaries, kept: frozenset[str]) -> list[Node]:
    """A body in which what copied a whole temporary, none of those ``kept``, is gone wherever that may be."""
    nodes = list(body)
    number = 0
    while number < len(nodes):
        copy = _copy(nodes[number], temporaries, kept)
        shorter = _elided(nodes, number, copy) if copy else None
        if shorter is None:
            number += 1
        else:
            nodes = shorter  # the next one stands in its place
    return nodes


def _copy(node: Node, temporaries: Temporaries, kept: frozenset[str]) -> _Copy | None:
    """What a nest copies, if it copies a whole temporary and does nothing else."""
    sizes: list[int] = []
    while isinstance(node, Scope):
        if len(node.body) != 1:
            return None
        sizes.append(node.size)
        node = node.body[0]
    if node.accumulate or node.function or node.guard or not isinstance(node.operands[0], Access):
        return None
    source, target = node.operands[0], node.target
    if source.array not in temporaries or source.array in kept or source.array == target.array:
        return None
    if target.indirect:
        return None
    dtype, dims = temporaries[source.array]
    if target.array not in temporaries or temporaries[target.array][0] != dtype:
        return None
    images: dict[int, Affine] = {}  # the loop over each dimension of the source
    for dim, form in enumerate(source.index):
        along = goes_along(form)
        if along is None or along in images or sizes[along] != dims[dim]:
            return None
        images[along] = inverse(form, dim)
    if len(images) != len(sizes):
        return None
    index = tuple(form.substitute(images) for form in target.index if isinstance(form, Affine))
    if any(form.terms and min(abs(c) for _, c in form.terms) > 1 for form in index):
        return None  # what is computed in steps of one is better than what is written apart
    return _Copy(source.array, target.array, index, _box(index, dims))


def goes_along(form: Index) -> int | None:
    """The iterator that an index follows step by step, forwards or backwards; None where it is another."""
    if isinstance(form, Affine) and len(form.terms) == 1 and abs(form.terms[0][1]) == 1:
        return form.terms[0][0]
    return None


def inverse(form: Index, number: int) -> Affine:
    """That iterator's value where the index is ``{number}``."""
    assert isinstance(form, Affine)
    sign = form.terms[0][1]
    return (Affine.iterator(number) - form.const) * sign


def _elided(nodes: list[Node], at: int, copy: _Copy) -> list[Node] | None:
    """The nodes without the copy, None where its target holds something else meanwhile, or afterwards.

    What fills the target with a number comes before all else that accesses it, and may come earlier.
    """
    first = next((k for k, node in enumerate(nodes) if _writes(node, copy.source)), at)
    if first == at:
        return None
    hoisted: list[int] = []  # nests that fill the target with a number, after the source has been begun
    for number, node in enumerate(nodes):
        if number == at:
            continue
        for leaf in leaves((node,)):
            sizes = [scope.size for scope in leaf.scopes]
            touched = [leaf.op.target] if leaf.op.target.array == copy.target else []
            if touched and leaf.op.accumulate == "" and _is_fill(node) and number < at:
                hoisted += [number] if number > first else []
                continue
            touched += [a for a in leaf.op.reads if a.array == copy.target and number < at]
            if any(_overlap(_box(a.index, sizes), copy.box) for a in touched):
                return None
    order = [k for k in range(first) if k not in hoisted] + hoisted
    order += [k for k in range(first, len(nodes)) if k != at and k not in hoisted]
    return [_moved(nodes[k], copy) for k in order]


def _box(index: Sequence[Index], sizes: Sequence[int]) -> Box:
    return tuple(form.bounds(sizes) for form in index)


def _overlap(a: Box, b: Box) -> bool:
    return all(low <= top and bottom <= high for (low, high), (bottom, top) in zip(a, b, strict=True))


def _writes(node: Node, array: str) -> bool:
    return any(leaf.op.target.array == array for leaf in leaves((node,)))


def _is_fill(node: Node) -> bool:
    operations = leaves((node,))
    return len(operations) == 1 and all(isinstance(o, Number) for o in operations[0].op.operands)


def _moved(node: Node, copy: _Copy) -> Node:
    """With the target's cells in place of the source's."""
    if isinstance(node, Scope):
        return replace(node, body=tuple(_moved(child, copy) for child in node.body))

    def access(old: Access) -> Access:
        if old.array != copy.source:
            return old
        return Access(copy.target, tuple(composed(form, dict(enumerate(old.index))) for form in copy.index))

    return accessing(node, access)


def accessing(op: Op, change: Callable[[Access], Access]) -> Op:
    """An operation with other accesses: its target, its operands, what indices of these are read from."""

    def changed(operand: Operand) -> Operand:
        return change(operand.reindexed(change)) if isinstance(operand, Access) else operand

    target = change(op.target.reindexed(change))
    return replace(op, target=target, operands=tuple(map(changed, op.operands)))
