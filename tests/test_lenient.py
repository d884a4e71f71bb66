"""The share of needless refusals: moves without their conditions of meaning, and who judges them."""

import pytest

from dojo_core import parse
from dojo_core.moves import REGISTRY, parse_move
from dojo_core.moves.core import Refusal
from dojo_core.moves.legality import context, outcome
from tests import oracle
from tests.lenient import forced, lenient_moves
from tests.walks import Rules, needless

REPEATED = """kernel k
in x
out y
x f32 [4, 6] heap
y f32 [4] heap
st f32 [4] heap
4 6 st[{0}] = 0
| 6 st[{0}] += x[{0},{1}]
| y[{0}] = st[{0}]
"""
ORDERED = """kernel k
in x
out y
x f32 [4] heap
y f32 [4] heap
t f32 [4] heap
4 t[{0}] = x[{0}]
4 y[{0}] = t[{0}]
"""


@pytest.mark.parametrize(
    ("text", "move", "code", "cautious"),
    [
        (REPEATED, "pad_scope st@1 8 free", "pad-touches", True),  # it stores the same 0 again
        (ORDERED, "reorder t@0", "order", False),
        (ORDERED, "pad_scope t@0 6 free", "pad-bounds", False),
        (ORDERED, "drop_dead t", "seen", False),
    ],
)
def test_what_a_refused_move_would_have_made_is_judged(text, move, code, cautious):
    program, rules = parse(text), Rules("reassoc")
    here = context(program, rules.target, rules.policy)
    refusal = outcome(here, parse_move(move))
    assert isinstance(refusal, Refusal) and refusal.code == code and not refusal.structural
    planned = forced(here, parse_move(move))
    assert planned is not None and planned != program
    terms = oracle.Terms()
    reference = list(oracle.run(program, rules.policy, terms).outputs.values())
    assert needless(planned, rules, terms, reference) == cautious


def test_the_moves_without_their_conditions_leave_the_moves_as_they_are():
    before = dict(REGISTRY)
    lenient, codes = lenient_moves()
    assert before == REGISTRY and lenient.keys() == REGISTRY.keys()
    assert not any(lenient[name] is REGISTRY[name] for name in REGISTRY)
    assert {"order", "pad-touches", "stale", "seen", "carried", "not-repeatable"} <= codes
    assert "policy" not in codes
