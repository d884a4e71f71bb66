"""Which rows ``make test`` plays: each value of each facet once, and nothing that nobody plays."""

import re
from pathlib import Path

import pytest

from dojo_core import kernels
from tests.thorough import covering, group, one_of

ROOT = Path(__file__).resolve().parent.parent


def stay(rows):
    """The values of those that ``make test`` plays."""
    return [row.values for row in rows if not row.marks]


def test_each_value_of_a_facet_stays_once():
    rows = [(name, dtype) for name in ("a", "b", "c") for dtype in ("f32", "f64")]
    assert stay(covering(rows)) == [("a", "f32"), ("a", "f64"), ("b", "f32"), ("c", "f32")]
    assert stay(covering(rows, lambda row: row[1])) == [("a", "f32"), ("a", "f64")]
    assert stay(covering("abc", str.isalpha)) == [("a",)]
    groups = {kernels.get(name).group for name in kernels.names()}
    assert {group(name) for (name,) in stay(covering(kernels.names(), group))} == groups


def test_the_rest_keeps_its_place_its_name_and_its_marks():
    rows = covering([1, pytest.param(1, id="again", marks=pytest.mark.flaky(reruns=1)), 2])
    assert [row.values for row in rows] == [(1,), (1,), (2,)]
    assert rows[1].id == "again" and [mark.name for mark in rows[1].marks] == ["flaky", "thorough"]


def test_rows_of_make_soak_stay_there_and_cover_nothing():
    soak = pytest.param("a", marks=pytest.mark.soak)
    assert [[mark.name for mark in row.marks] for row in covering([soak, "a"])] == [["soak"], []]
    assert [[mark.name for mark in row.marks] for row in one_of(2, [soak, "a", "b"])] == [
        ["soak"],
        [],
        ["thorough"],
    ]


def test_of_so_many_rows_the_first_stays():
    assert stay(one_of(3, range(7))) == [(0,), (3,), (6,)]


def test_what_make_test_leaves_out_make_thorough_plays_and_ci_runs_both():
    """Together with make soak each test is played by one of the three."""
    played = re.findall(r"-m pytest -m '?([a-z ]+)'?", (ROOT / "Makefile").read_text())
    assert played == ["not soak and not thorough", "thorough and not soak", "soak"]
    assert (ROOT / ".ci" / "run").read_text().endswith("\nmake test\nmake thorough\n")
