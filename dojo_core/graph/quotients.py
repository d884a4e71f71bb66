"""The quotients of a softmax behind the product that reads them: a division for each result, not each weight.

Attention weighs values by ``exp(x - m) / s``. As its nodes have it, each weight is divided::

    12 128 128 t6[{0},{1},{2}] = t4[{0},{1},{2}] / t5[{0},{1}]
    12 128 64 y1[{0},{1},{2}] = 0
    12 128 64 128 y1[{0},{1},{2}] += t6[{0},{1},{3}]*x3[{0},{3},{2}]

The sum with weights that are not, divided once, is the same in real numbers::

    12 128 64 t6[{0},{1},{2}] = 0
    12 128 64 128 t6[{0},{1},{2}] += t4[{0},{1},{3}]*x3[{0},{3},{2}]
    12 128 64 y1[{0},{1},{2}] = t6[{0},{1},{2}] / t5[{0},{1}]

Source: T. Dao et al., FlashAttention, 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dojo_core.graph.emission import canonical, parsed
from dojo_core.primitives.builder import nest
from dojo_core.primitives.elision import accessing
from dojo_core.program.affine import Affine
from dojo_core.program.tables import Index
from dojo_core.program.tree import Access, Buffer, Leaf, Node, Number, Op, Program, Scope

SUMS = "sums"  # what is divided later: canonical names follow


@dataclass(frozen=True)
class _Weighted:
    """A sum of products, ``target += quotient * value``, whose quotients one operation writes.

    ``dividend`` is what stands in the quotient's place, ``divisor`` what the sum is to be divided by, both
    by the iterators of the sum.
    """

    quotient: Op
    total: Leaf
    dividend: Access
    divisor: Access


def divided_late(program: Program) -> Program:
    """A start program that divides exponentials behind the sums which they are the weights of, wherever the
    divisor is the same for all terms of a sum."""
    weighted = next(filter(None, (_weighted(program, leaf) for leaf in program.leaves)), None)
    return program if weighted is None else divided_late(_rewritten(program, weighted))


def _weighted(program: Program, quotient: Leaf) -> _Weighted | None:
    """The sum whose weights an operation gives; None where it gives none of a softmax."""
    op, leaves = quotient.op, program.leaves
    array = op.target.array
    if op.function != "/" or op.accumulate or op.guard or len(op.sources) != 2 or array in program.interface:
        return None
    dividend, divisor = op.sources
    readers = [leaf for leaf in leaves if array in {access.array for access in leaf.op.reads}]
    writers = [leaf for leaf in leaves if leaf.op.target.array == array]
    if len(readers) != 1 or len(writers) != 1 or not _plain(op.target.index):
        return None
    if "exp" not in {leaf.op.function for leaf in leaves if leaf.op.target.array == dividend.array}:
        return None
    total = readers[0]
    target, read = total.op.target, [access for access in total.op.reads if access.array == array]
    is_sum = total.op.accumulate == "+" and total.op.function == "*" and not total.op.guard
    if not is_sum or len(read) != 1 or not _plain(read[0].index) or not _plain(target.index):
        return None
    accesses = (target, dividend, divisor, *op.elements[:1])
    if len({program.buffer_of[access.array].dtype for access in accesses}) != 1:
        return None
    if divisor.array in program.interface or program.buffer_of[target.array].dtype not in ("f32", "f64"):
        return None
    images = {form.depths[0]: its for form, its in zip(op.target.index, read[0].index, strict=True)}
    if not all(isinstance(form, Affine) for access in op.sources for form in access.index):
        return None
    moved = [
        Access(access.array, tuple(form.substitute(images) for form in access.index)) for access in op.sources
    ]
    spatial = {depth for form in target.index for depth in form.depths}
    if not {depth for form in moved[1].index for depth in form.depths} <= spatial:
        return None
    others = [leaf for leaf in leaves if leaf.op.target.array == target.array and leaf is not total]
    begun = [leaf for leaf in others if leaf.op.operands == (Number(0),) and leaf.path < total.path]
    early = [leaf for leaf in leaves if target in leaf.op.reads and leaf.path < total.path]
    if len(others) != 1 or begun != others or others[0].op.accumulate or early:
        return None
    return _Weighted(op, total, moved[0], moved[1])


def _plain(index: Sequence[Index]) -> bool:
    """Does each dimension go along a scope of its own, from its beginning?"""
    along = [form.depths[0] for form in index if form.depths and form == Affine.iterator(form.depths[0])]
    return len(along) == len(set(along)) == len(index)


def _rewritten(program: Program, weighted: _Weighted) -> Program:
    total, target = weighted.total, weighted.total.op.target
    kept = program.buffer_of[target.array]

    def changed(node: Node) -> Node | None:
        if isinstance(node, Scope):
            body = tuple(each for child in node.body if (each := changed(child)) is not None)
            return replace(node, body=body) if body else None
        if node is weighted.quotient:
            return None
        if node.target.array != target.array:
            return node
        return accessing(node, summed)

    def summed(access: Access) -> Access:
        if access.array == target.array:
            return Access(SUMS, access.index)
        return weighted.dividend if access.array == weighted.quotient.target.array else access

    depths = sorted({depth for form in target.index for depth in form.depths})
    order = {depth: Affine.iterator(number) for number, depth in enumerate(depths)}
    divided = Op(*(_at(each, order) for each in (target,)), "", "/", (
        _at(Access(SUMS, target.index), order), _at(weighted.divisor, order),
    ))  # fmt: skip
    after = nest([total.scopes[depth].size for depth in depths], (divided,))
    root = total.path[0]
    body = [each for node in program.body[: root + 1] if (each := changed(node)) is not None]
    body += after
    body += [each for node in program.body[root + 1 :] if (each := changed(node)) is not None]
    buffers = (*program.buffers, Buffer(SUMS, kept.dtype, kept.dims, "heap", (SUMS,)))
    made = Program.make(
        program.name, program.inputs, program.outputs, buffers, tuple(body), domains=program.domains
    )
    return parsed(canonical(made)[0].text)


def _at(access: Access, images: dict[int, Affine]) -> Access:
    return Access(access.array, tuple(form.substitute(images) for form in access.index))
