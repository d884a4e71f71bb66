"""Shortcuts of the analysis say what the long way says."""

import itertools
import random

import pytest

from dojo_core import parse
from dojo_core.moves.legality import context, is_legal, outcome
from dojo_core.moves.notation import parse_move
from dojo_core.program.must_writes import shared_depth
from dojo_core.program.reaching import accesses_of, once, orders, precedes
from dojo_core.program.tables import Indirect
from dojo_core.program.validity import _exit_read
from tests.programs import SMALL, random_program
from tests.thorough import one_of


@pytest.mark.parametrize("seed", one_of(3, range(6)))
def test_orders_are_found_just_where_one_access_may_precede_another(seed):
    rng = random.Random(seed)
    for _ in range(5):
        program = random_program(rng)
        accesses = [t for array in program.buffer_of for t in accesses_of(program, array)]
        exits = [_exit_read(array, program.buffer_of[array]) for array in program.outputs]
        for a, b in itertools.product(accesses, [*accesses, *exits]):
            for depth in range(shared_depth(a, b) + 1):
                assert precedes(a, b, depth) == any(True for _ in orders(a, b, depth)), (program.text, a, b)


def _value(index, values) -> int:
    """An index where every array that it is read from holds zeros."""
    return index.value(values, lambda array, at: 0) if isinstance(index, Indirect) else index.value(values)


@pytest.mark.parametrize("seed", one_of(3, range(6)))
def test_what_accesses_each_cell_once_does_so_by_enumeration(seed):
    rng, met = random.Random(seed), 0
    for _ in range(5):
        program = random_program(rng)
        for access in (t for array in program.buffer_of for t in accesses_of(program, array)):
            sizes = [scope.size for scope in access.leaf.scopes]
            for depth in range(len(sizes) + 1):
                if not once(access, depth):
                    continue
                met += 1
                inner = itertools.product(*map(range, sizes[depth:]))
                at = [(0,) * depth + values for values in inner]
                cells = [tuple(_value(index, values) for index in access.element.index) for values in at]
                assert len(set(cells)) == len(cells), (program.text, access)
    assert met


def test_a_copy_at_the_root_of_what_parallel_iterations_access_is_judged_unmade_as_made():
    """The region of a copy at the root is all of the program, not nothing."""
    program = parse(
        "kernel k\nin x\nout y\nx f32 [6] heap\ny f32 [3] heap\nu f32 [] stack\n"
        "3:p u[] = x[{0}]\n| 2 u[] *= x[{0}+{1}]\n| y[{0}] = u[]\n"
    )
    move = parse_move("stage_write u root n")
    here = context(program, SMALL, "reassoc")
    assert outcome(here, move).code == "race"
    assert not is_legal(here, move)
