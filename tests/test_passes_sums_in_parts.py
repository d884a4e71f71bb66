"""Sums of many terms, part by part (agents/passes/sums_in_parts.py)."""

import pytest

from agents.passes import PASSES, sketch_of
from dojo_core.primitives import Builder, contract
from dojo_core.program.tree import Program
from tests.test_passes import agrees


def product(terms: int) -> Program:
    b = Builder("k")
    b.output("y", contract(b, "mk,kn->mn", b.input("x", "f32", (4, terms)), b.input("w", "f32", (terms, 16))))
    return b.program()


def played(start: Program, policy: str = "reassoc") -> Program:
    sketch = sketch_of(start, policy)
    PASSES["heuristic"].run(sketch)
    agrees(start, sketch)
    return sketch.program


@pytest.mark.parametrize(("terms", "parts"), [(1024, 2), (1500, 3), (768, None), (1031, None)])
def test_a_sum_of_many_terms_is_one_of_parts_of_512_at_most(terms: int, parts: int | None):
    """768 terms are few, and nothing divides 1,031."""
    program = played(product(terms))
    part = [leaf for leaf in program.leaves if leaf.op.target.array == "part" and leaf.op.accumulate]
    sizes = [[scope.size for scope in leaf.scopes if not scope.mark] for leaf in part]
    assert sizes == ([] if parts is None else [[1, parts, terms // parts]]), program.text


def test_a_strict_sum_keeps_its_order():
    assert "part" not in played(product(1024), "strict").text
