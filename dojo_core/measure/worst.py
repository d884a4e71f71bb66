"""The sets of inputs on which programs of a workload are verified, by every judge.

A program's text does not tell the line that led to it. So under the policy ``algebraic`` every program is
verified on the worst inputs of all moves that a line from its start may have (``measure/worst_pool.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from dojo_core.measure.input_sets import InputSet
from dojo_core.measure.patterns import PATTERNS
from dojo_core.measure.slabs import Kept, behind, kept_dimensions, sources, summed, takes_patterns
from dojo_core.moves.bilinear import is_product_sum
from dojo_core.moves.core import REGISTRY
from dojo_core.program.dtypes import FLOATS
from dojo_core.program.tree import Program

SMALL = 2**18  # operations of all sets together that are drawn so that each pattern is met


def worst_inputs(program: Program, policy: str) -> tuple[str, ...]:
    """The patterns on which some move that a line from this start may have is worst, as they are drawn."""
    if policy != "algebraic":
        return ()
    if normwise(program, policy):
        return tuple(name for name in PATTERNS if name in REGISTRY["bilinear"].worst_inputs)
    floating = (
        leaf.op.function for leaf in program.leaves if program.buffer_of[leaf.op.target.array].dtype in FLOATS
    )
    functions = {"*" if function == "fma" else function for function in floating}  # ``expand`` parts it
    declared = {n for move in REGISTRY.values() if move.rewrites in functions for n in move.worst_inputs}
    return tuple(name for name in PATTERNS if name in declared)


@lru_cache(maxsize=64)
def normwise(program: Program, policy: str) -> bool:
    """May a line from this start compute sums of products by bilinear algorithms, and rewrite nothing else?

    Their results are as exact as the largest elements of their operands, and judged so. Where another
    algebraic move has something to rewrite, all is judged as closely as that move promises.
    """
    sums = any(is_product_sum(program, leaf) for leaf in program.leaves)
    return policy == "algebraic" and sums and not _rewritten(program)


@lru_cache(maxsize=64)
def input_sets(program: Program, policy: str, tame: bool = False) -> tuple[InputSet, ...]:
    """The usual inputs, which programs are timed on; then, under ``algebraic``, those for verifying alone.

    The largest input behind an operation that may be rewritten leads the first of these; those that meet no
    pattern beside it lead another, and so does one whose sums bring its elements together in another way. A
    small program has so many that each of these inputs meets each pattern. ``tame``: the usual inputs are to
    be so.
    """
    coarse = normwise(program, policy)
    usual = InputSet(tame=tame or coarse, normwise=coarse, tf32=policy == "tf32")
    patterns = worst_inputs(program, policy)
    rewritten = _rewritten(program)
    leads = _leads(program, rewritten) if patterns else []
    if not leads:
        return (usual,)
    first, *others = leads
    names = [lead.name for lead in leads]
    alone = [lead for k, lead in enumerate(others, 1) if not lead.beside and lead.name not in names[:k]]
    again = [lead for k, lead in enumerate(others, 1) if lead.name in names[:k]]
    groups = [[first], *([alone] if alone else []), *([lead] for lead in again)]
    affordable = 0
    if rewritten:
        groups += [group for group in groups if min(lead.slabs for lead in group) == 1]  # one is too few
        affordable = SMALL // sum(math.prod(scope.size for scope in leaf.scopes) for leaf in program.leaves)
    met = dict.fromkeys(leads, 0)  # patterns
    drawn: list[InputSet] = []
    while groups or (len(drawn) < affordable and min(met.values()) < len(patterns)):
        group = groups.pop(0) if groups else [min(leads, key=lambda lead: met[lead])]
        begin = min(met[lead] for lead in group)
        order = (*patterns[begin:], *patterns[:begin])
        drawn.append(InputSet(order, tuple((lead.name, lead.kept) for lead in group), normwise=coarse))
        for lead in group:
            met[lead] += lead.slabs
    return (usual, *drawn)


@dataclass(frozen=True)
class _Lead:
    """An input with the dimensions that its slabs keep, and their number. ``beside``: it meets patterns where
    another one leads, too."""

    name: str
    kept: Kept
    slabs: int
    beside: bool


def _rewritten(program: Program) -> frozenset[str]:
    """The inputs behind an operation that may be rewritten."""
    flows, sums = sources(program), summed(program)
    return frozenset[str]().union(*(behind(leaf.op, flows, sums) for leaf in program.leaves))


def _leads(program: Program, rewritten: frozenset[str]) -> list[_Lead]:
    """These inputs, the largest first; where there is none, the largest of floating point."""
    buffers = program.buffer_of
    wanted = rewritten or {name for name in program.inputs if buffers[name].dtype in FLOATS}
    names = sorted((name for name in program.inputs if name in wanted), key=lambda name: -buffers[name].cells)
    dimensions = kept_dimensions(program)
    leads = []
    for name in names if rewritten else names[:1]:
        for dims in dimensions[name]:
            slabs = math.prod(buffers[name].dims[d].size for d in dims)
            leads.append(_Lead(name, dims, slabs, slabs > 1 and takes_patterns(program, name)))
    return leads
