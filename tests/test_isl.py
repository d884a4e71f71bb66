"""A second judge of dependences: the same questions as integer sets, answered by isl.

Where ``meeting`` finds nothing, the set must be empty, or a move could be accepted that changes a result;
where it finds a point, the point must lie in the set. Both are exact here, so they agree, but for what goes
through a table: isl knows its values, ``meeting`` their range.
"""

import random

import islpy as isl
import pytest

from dojo_core import kernels
from dojo_core.program.dependence import Order, accesses, common_depth, meeting
from dojo_core.program.tables import Indirect, Table
from tests.programs import random_program
from tests.thorough import covering, group, one_of
from tests.tiny import TINY


def form_text(form, names):
    return " + ".join([*(f"{c}*{names[d]}" for d, c in form.terms), str(form.const)])


def index_text(index, names, values, conditions):
    """An index for isl; a table's value is a variable of ``values``, equal to what stands at its place."""
    if not isinstance(index, Indirect):
        return form_text(index, names)
    parts = [form_text(index.rest, names)]
    for lookup, coefficient in index.lookups:
        value, source = f"v{len(values)}", lookup.source
        values.append(value)
        if isinstance(source, Table):
            place = form_text(source.flat(lookup.at), names)
            cells = (f"({place} = {n} and {value} = {v})" for n, v in enumerate(source.values))
            conditions.append(f"({' or '.join(cells)})")
        else:
            conditions.append(f"{source.least} <= {value} <= {source.most}")
        parts.append(f"{coefficient}*{value}")
    return " + ".join(parts)


def conflict_set(a, b, equal, orders):
    """Pairs of instances of two accesses in a relative order that access one cell, as isl reads it."""
    first = [f"i{d}" for d in range(len(a.leaf.scopes))]
    second = [f"i{d}" if d < equal else f"j{d}" for d in range(len(b.leaf.scopes))]
    conditions = []
    values = []
    for names, access in ((first, a), (second, b)):
        conditions += [f"0 <= {n} < {s.size}" for n, s in zip(names, access.leaf.scopes, strict=True)]
        for c in access.leaf.op.guard:
            sign = "=" if c.relation == "==" else c.relation
            conditions.append(f"{form_text(c.form, names)} {sign} {c.bound}")
    for x, y in zip(a.element.index, b.element.index, strict=True):
        sides = [index_text(i, names, values, conditions) for i, names in ((x, first), (y, second))]
        conditions.append(" = ".join(sides))
    for order in orders:
        conditions.append(f"{first[order.depth]} {order.relation} {second[order.depth]}")
    variables = list(dict.fromkeys(first + second))
    held = " and ".join(conditions) or "true"
    if values:
        held = f"exists {', '.join(values)} : {held}"
    return isl.Set(f"{{ [{', '.join(variables)}] : {held} }}"), variables


def questions(program, rng, most):
    """Pairs of accesses to one array with the relative orders that legality asks about."""
    found = [t for leaf in program.leaves for t in accesses(leaf)]
    pairs = [(a, b) for a in found for b in found if a.element.array == b.element.array]
    rng.shuffle(pairs)
    for a, b in pairs[:most]:
        shared = common_depth(a.leaf, b.leaf)
        for depth in range(shared):
            for relation in ("<", ">"):
                yield a, b, depth, [Order(depth, relation)]
            if depth + 1 < shared:
                yield a, b, depth, [Order(depth, "<"), Order(depth + 1, ">")]
        yield a, b, shared, []


def compare(program, rng, most):
    asked = 0
    for a, b, equal, orders in questions(program, rng, most):
        mine = meeting(a, b, equal, orders)
        theirs, variables = conflict_set(a, b, equal, orders)
        if a.element.indirect or b.element.indirect:  # any value between the extremes: sound, not exact
            distinct = any(domain.distinct for domain in program.domains)  # of which isl is not told
            assert mine is not None or theirs.is_empty() or distinct, (
                program.text,
                str(a.element),
                str(b.element),
                orders,
            )
            continue
        assert (mine is None) == theirs.is_empty(), (
            program.text,
            str(a.element),
            str(b.element),
            equal,
            orders,
        )
        if mine is not None and mine.instances[0][1] and min(mine.instances[0][1]) >= 0:
            values = {}
            for prefix, (_, point) in zip("ij", mine.instances, strict=True):
                for depth, value in enumerate(point):
                    values.setdefault(f"i{depth}" if prefix == "i" or depth < equal else f"j{depth}", value)
            held = " and ".join(f"{name} = {values[name]}" for name in variables)
            assert not theirs.intersect(isl.Set(f"{{ [{', '.join(variables)}] : {held} }}")).is_empty()
        asked += 1
    return asked


# make soak goes on with the seeds whose programs take isl longest.
LONG = (0, 1, 2, 5, 7, 10)


@pytest.mark.parametrize(
    "seed", one_of(3, (pytest.param(s, marks=pytest.mark.soak if s in LONG else ()) for s in range(12)))
)
def test_both_judges_agree_on_random_programs(seed):
    rng = random.Random(f"isl {seed}")
    assert sum(compare(random_program(rng), rng, 60) for _ in range(4)) > 30


@pytest.mark.parametrize("most", [20, pytest.param(80, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", covering(kernels.names(), group))
def test_both_judges_agree_on_the_kernels(name, most):
    kernel = kernels.get(name)
    program = kernel.program(kernel.shapes[0])
    if program.tables:  # every value of a table is a case for isl
        program = kernel.program(TINY[name])
    assert compare(program, random.Random(name), most)
