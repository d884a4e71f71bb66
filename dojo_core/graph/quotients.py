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
from dojo_core.program.tables import Index, affine
from dojo_core.program.tree import Access, Leaf, Node, Number, Op, Program, Scope

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
    """The sum whose weights an operation gives; None where it gives none of a softmax, or where others read
    them too."""
    op = quotient.op
    if op.function != "/" or op.accumulate or op.guard or op.indirect or len(op.sources) != 2:
        return None
    dividend, divisor = op.sources
    readers = _readers(program, op.target.array)
    exponentials = "exp" in {leaf.op.function for leaf in _writers(program, dividend.array)}
    if len(readers) != 1 or len(_writers(program, op.target.array)) != 1 or not exponentials:
        return None
    total = readers[0]
    weights = [access for access in total.op.sources if access.array == op.target.array]
    indices = [access.index for access in (op.target, total.op.target, *weights)]
    if len(weights) != 1 or not all(map(_plain, indices)) or not _summed_from_zero(program, total):
        return None
    arrays = {op.target.array, dividend.array, divisor.array}
    dtypes = {program.buffer_of[array].dtype for array in (*arrays, total.op.target.array)}
    made = [leaf for each in op.sources for leaf in _writers(program, each.array)]
    settled = not arrays & set(program.interface) and all(leaf.path < quotient.path for leaf in made)
    if not settled or dtypes not in ({"f32"}, {"f64"}):
        return None
    images = {
        form.depths[0]: affine(its) for form, its in zip(op.target.index, weights[0].index, strict=True)
    }
    moved = divisor.substitute(images)
    same = _depths(moved) <= _depths(total.op.target)
    return _Weighted(op, total, dividend.substitute(images), moved) if same else None


def _writers(program: Program, array: str) -> list[Leaf]:
    return [leaf for leaf in program.leaves if leaf.op.target.array == array]


def _readers(program: Program, array: str) -> list[Leaf]:
    return [leaf for leaf in program.leaves if array in {access.array for access in leaf.op.reads}]


def _plain(index: Sequence[Index]) -> bool:
    """Does each dimension go along a scope of its own, from its beginning?"""
    along = [form.depths[0] for form in index if form.depths and form == Affine.iterator(form.depths[0])]
    return len(along) == len(set(along)) == len(index)


def _summed_from_zero(program: Program, total: Leaf) -> bool:
    """Is an operation a sum of products that begins with zeros, and that nobody reads before it ends?"""
    op = total.op
    others = [leaf.op for leaf in _writers(program, op.target.array) if leaf is not total]
    begun = len(others) == 1 and others[0].operands == (Number(0),) and not others[0].accumulate
    early = [leaf for leaf in _readers(program, op.target.array) if leaf.path < total.path]
    return op.accumulate == "+" and op.function == "*" and not op.guard and begun and not early


def _rewritten(program: Program, weighted: _Weighted) -> Program:
    total = weighted.total
    target = total.op.target
    kept = program.buffer_of[target.array]

    def summed(access: Access) -> Access:
        if access.array == target.array:
            return replace(access, array=SUMS)
        return weighted.dividend if access.array == weighted.quotient.target.array else access

    def changed(nodes: Sequence[Node]) -> tuple[Node, ...]:
        result = list[Node]()
        for node in nodes:
            if isinstance(node, Scope):
                if body := changed(node.body):
                    result.append(replace(node, body=body))
            elif node is not weighted.quotient:
                result.append(accessing(node, summed) if node.target.array == target.array else node)
        return tuple(result)

    spatial = sorted(_depths(target))
    own = {depth: Affine.iterator(number) for number, depth in enumerate(spatial)}
    operands = replace(target, array=SUMS), weighted.divisor
    divided = Op(target.substitute(own), "", "/", tuple(each.substitute(own) for each in operands))
    after = total.path[0] + 1
    made = Program.make(
        program.name,
        program.inputs,
        program.outputs,
        (*program.buffers, replace(kept, name=SUMS, location="heap", arrays=(SUMS,))),
        (
            *changed(program.body[:after]),
            *nest([total.scopes[depth].size for depth in spatial], (divided,)),
            *changed(program.body[after:]),
        ),
        domains=program.domains,
    )
    return parsed(canonical(made)[0].text)


def _depths(access: Access) -> set[int]:
    return {depth for form in access.index for depth in form.depths}
