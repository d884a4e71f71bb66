"""What the docstring of each move shows is what the move does, and its inverse takes it back."""

import inspect
import re

import pytest

from dojo_core import apply, parse
from dojo_core.moves import REGISTRY, inverse
from dojo_core.moves.examples import example
from dojo_core.moves.notation import parse_move
from dojo_core.moves.reasons import conditions, met
from dojo_core.moves.reference import FAMILIES, page
from tests.goldens import ROOT

# To undo them would take several moves, or a text that is lost.
NO_INVERSE = {
    "unwrap", "drop_guard", "expand_dim", "drop_dim", "elide_copy", "forward", "use_kept", "contract",
    "drop_dead", "merge_reduction", "divide_again", "bilinear", "round_tf32",
}  # fmt: skip


@pytest.mark.parametrize("name", REGISTRY)
def test_the_docstring_is_true(name):
    shown = example(name)
    result = apply(shown.program, shown.move, shown.target, shown.policy)
    rows = result.text.splitlines()
    assert tuple(rows[-len(shown.operations) :]) == shown.operations and shown.operations
    assert set(shown.buffers) <= set(rows)
    assert parse(result.text) == result
    back = inverse(shown.program, shown.move, shown.target, shown.policy)
    assert back is not None or name in NO_INVERSE, (
        f"{name} tells no inverse: write one, or name it in NO_INVERSE"
    )
    assert back is None or name not in NO_INVERSE, f"{name} tells an inverse: take it out of NO_INVERSE"
    if back is not None:
        assert apply(result, back, shown.target, shown.policy) == shown.program


def test_conditions_are_told_of_what_a_move_names():
    assert met(parse_move("split_scope y@0 16")) == (
        "16 divides the size N of y@0, and 1 < 16 < N; y@0 is unmarked"
    )
    told = met(parse_move("expand_moment v#1@1 o"))
    assert "v#1@1 and the scopes in it hold v#1 alone" in told and "o, ot, oe and ow are new" in told


@pytest.mark.parametrize("name", REGISTRY)
def test_every_docstring_has_its_numbered_conditions(name):
    doc = inspect.cleandoc(type(REGISTRY[name]).__doc__ or "")
    assert f"``{name} " in doc
    told = met(parse_move(example(name).move))
    assert told.count("; ") + 1 >= len(conditions(name)) and not re.search(r"V\d|``|  ", told)
    numbers = [int(n) for n in re.findall(r"^  (\d)\. ", doc.split("Legal iff")[1], re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1)) and numbers


def test_the_reference_page_is_up_to_date(golden):
    assert {t.family for t in REGISTRY.values()} == set(FAMILIES)
    golden(ROOT / "docs" / "moves.md", page())
