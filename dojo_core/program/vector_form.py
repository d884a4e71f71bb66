"""Which operations can be one vector instruction, and in how many lanes."""

from __future__ import annotations

from collections.abc import Mapping

from dojo_core.program.dtypes import COMPARISONS, DIVISIONS, FLOATS, LOGICAL, STORAGE, compute_dtype
from dojo_core.program.functions import FUNCTIONS
from dojo_core.program.target import Target, lanes_of
from dojo_core.program.tree import Access, Op

_OF_BOOLS = ("", "bool", "select", *COMPARISONS, *LOGICAL)


def form_fault(op: Op, dtypes: Mapping[str, str]) -> str | None:
    """Why an operation has no vector form, in a sentence, or None; ``dtypes`` has that of each array."""
    function, target = op.function, dtypes[op.target.array]
    if function and not FUNCTIONS[function].vector:
        return f"{function} has no vector form."
    if function in DIVISIONS and target not in FLOATS:
        return f"{function} has no vector form for {target}: no processor divides so."
    if function == "select" and (not isinstance(op.operands[0], Access) or target in STORAGE):
        return f"select has no vector form in {target}, nor where it chooses by what is no array's element."
    if "bool" in (target, _computed(op, dtypes)) and (op.accumulate or function not in _OF_BOOLS):
        return f"{op.accumulate or function} has no vector form for bool."
    return None


def lanes_for(op: Op, dtypes: Mapping[str, str], target: Target) -> tuple[int, ...]:
    """How many lanes vectors of an operation may have, widest first: as many as of what it compares, too."""
    wide = {_computed(op, dtypes)} if op.function in COMPARISONS else set[str]()
    return lanes_of({dtypes[a.array] for a in (op.target, *op.sources)} | wide, target)


def _computed(op: Op, dtypes: Mapping[str, str]) -> str:
    try:
        return compute_dtype(op, dtypes)
    except ValueError:  # of no one dtype, as the generator says
        return dtypes[op.target.array]
