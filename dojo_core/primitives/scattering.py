"""Writes at places that an array says, by comparison: each update goes over all places."""

from __future__ import annotations

from dojo_core.primitives.array import Array, BuildError
from dojo_core.primitives.builder import Builder, nest
from dojo_core.primitives.copies import fresh, write
from dojo_core.program.affine import Affine
from dojo_core.program.functions import IDENTITY
from dojo_core.program.tree import Access, Number, Op


def scatter(b: Builder, base: Array, places: Array, updates: Array, accumulate: str = "") -> Array:
    """A copy of ``base`` [P, R] whose rows at ``places`` [U] are those of ``updates`` [U, R], the later of
    two at one place; or accumulated with them (``+ * max min``).

    A place beyond the array writes nothing. The cost is U passes over the result.
    """
    rows, width = base.shape
    (count,) = places.shape
    if updates.shape != (count, width):
        raise BuildError(
            f"{count} places of rows of {width} take no updates of the shape {list(updates.shape)}."
        )
    result = fresh(b, base.dtype, (rows, width))
    write(b, result, "", base)
    if not count or base.empty:
        return result
    at, new = b.copy(places, whole=True), b.copy(updates, whole=True)
    u, r, w = (Affine.iterator(d) for d in range(3))
    row, line = (r if rows > 1 else Affine()), (u if count > 1 else Affine())
    sizes = [count, rows, width]

    def index(of: Array, *forms: Affine) -> Access:
        """An access to what is stored with a dimension for each axis longer than 1."""
        assert isinstance(of.operand, Access)
        used = [form for axis, form in zip(of.axes, forms, strict=True) if axis]
        return Access(of.operand.array, tuple(used))

    same = fresh(b, "bool", (count, rows))
    here = index(same, line, row)
    b.add(*nest(sizes[:2], (Op(here, "", "==", (index(at, line), row)),)))
    target, update = index(result, row, w), index(new, line, w)
    if not accumulate:
        op = Op(target, "", "select", (here, update, target))
    else:
        op = Op(target, accumulate, "select", (here, update, Number(IDENTITY[accumulate])))
    b.add(*nest(sizes, (op,)))
    return result
