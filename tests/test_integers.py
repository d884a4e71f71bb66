"""The integer solver agrees with brute force."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dojo_core.program.affine import Affine
from dojo_core.program.integers import Constraint, solve

variables = st.integers(2, 4)


@st.composite
def systems(draw):
    count = draw(variables)
    box = [(low := draw(st.integers(-3, 2)), low + draw(st.integers(0, 4))) for _ in range(count)]
    rows = draw(st.integers(1, 4))
    constraints = [
        Constraint(
            Affine.make(((d, draw(st.integers(-7, 7))) for d in range(count)), draw(st.integers(-12, 12))),
            draw(st.booleans()),
        )
        for _ in range(rows)
    ]
    return box, constraints


def holds(constraint, point):
    value = constraint.form.value(point)
    return value == 0 if constraint.equality else value >= 0


def agree(system):
    """The solver and a look at every point of the box."""
    box, constraints = system
    answer = solve(box, constraints)
    points = product(*(range(low, high + 1) for low, high in box))
    exists = any(all(holds(c, p) for c in constraints) for p in points)
    assert answer.possible or not exists
    if answer.point is not None:
        assert all(low <= v <= high for v, (low, high) in zip(answer.point, box, strict=True))
        assert all(holds(c, answer.point) for c in constraints)
    if answer.possible and answer.point is not None:
        assert exists


@settings(max_examples=200, deadline=None)
@given(systems())
def test_impossible_means_that_no_point_exists_and_a_point_is_one(system):
    agree(system)


@pytest.mark.thorough
@settings(max_examples=600, deadline=None)
@given(systems())
def test_so_it_does_for_more_systems(system):
    agree(system)


def test_tiles_are_told_apart_exactly():
    # 32*a + 16*b + c == 32*d + 16*e + f with a < d, over their tile sizes: never.
    box = [(0, 767), (0, 1), (0, 15)] * 2
    tile = Affine.make([(0, 32), (1, 16), (2, 1)]) - Affine.make([(3, 32), (4, 16), (5, 1)])
    order = Affine.make([(3, 1), (0, -1)]) - 1
    assert not solve(box, [Constraint(tile, True), Constraint(order)]).possible
    # With a tile one larger than its stride they overlap, and a point shows it.
    box[2] = (0, 16)
    box[1] = (0, 2)
    found = solve(box, [Constraint(tile, True), Constraint(order)])
    assert found.possible and found.point is not None


def test_a_gap_that_only_divisibility_shows():
    assert not solve([(0, 10**9), (0, 10**9)], [Constraint(Affine.make([(0, 6), (1, -4)], 3), True)]).possible


def test_a_system_without_unknowns_has_a_point():
    """Two instances of accesses without an index always meet; the witness shows where."""
    assert solve([(2, 5)], []).point == (2,)
    assert solve([(2, 5)], [Constraint.at_least(Affine(const=1))]).point == (2,)
    assert not solve([(2, 5)], [Constraint.at_least(Affine(const=-1))]).possible
