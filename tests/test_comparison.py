"""Agents side by side: curves from events, statistics that can be checked by hand, a page and a picture."""

import json
import math
from itertools import product

import pytest
from typer.testing import CliRunner

from agents.agent import Budget, Task, run
from agents.cli import app
from agents.comparison import Curve, Point, as_json, from_json, summaries, wilcoxon
from agents.players import AGENTS
from agents.plots import panels_of
from agents.timing import CountTiming
from benchmarks.plateaus import Crossing, crossing
from dojo_core import kernels
from dojo_core.game import Game
from tests.homes import with_objects

pytestmark = pytest.mark.usefixtures("kept_workers")


def curve(agent: str, seed: int, *bests: float, kernel: str = "k") -> Curve:
    points = tuple(Point(n, n * 2.0, best) for n, best in enumerate(bests, 1))
    return Curve(kernel, agent, seed, bests[0], points, bests[-1])


def test_a_curve_has_a_point_wherever_the_best_got_better():
    game = Game.new(kernels.get("softmax").program((4, 8)), "softmax", "4x8")
    events = list(run(Task(game), AGENTS["sampling-edges"], CountTiming(), Budget(30)))
    made = Curve.of("softmax", "sampling-edges", 0, events)
    assert made.start == events[0].measurement.seconds
    assert made.final == events[-1].best.seconds
    bests = [p.best for p in made.points]
    assert bests == sorted(bests, reverse=True) and made.points[-1].evaluation == 30
    assert from_json(json.loads(json.dumps(as_json([made], [], "x")))) == [made]


@pytest.mark.parametrize(
    "differences", [(1.0, 2.0, -3.0, 4.0), (1.0, 1.0, -1.0, 2.0, 2.0), (-1.0, -2.0), (0.5,)]
)
def test_wilcoxon_counts_every_choice_of_signs(differences):
    sizes = sorted(map(abs, differences))
    rank = {s: sum(n + 1 for n, o in enumerate(sizes) if o == s) / sizes.count(s) for s in sizes}
    observed = sum(rank[abs(d)] for d in differences if d > 0)
    sums = [
        sum(rank[s] for s, sign in zip(sizes, signs, strict=True) if sign)
        for signs in product((0, 1), repeat=len(sizes))
    ]
    assert wilcoxon(differences) == pytest.approx(sum(s >= observed for s in sums) / len(sums))


def test_wilcoxon_of_many_pairs_and_of_none():
    assert wilcoxon([float(n) for n in range(1, 49)]) == 2.0**-48
    assert wilcoxon([0.0, 0.0]) is None


def test_a_summary_is_paired_and_relative_to_the_reference():
    curves = [curve("a", seed, 8.0, 4.0) for seed in range(3)] + [
        curve("b", seed, 8.0, 2.0) for seed in range(3)
    ]
    curves += [curve("a", 0, 9.0, kernel="l"), curve("b", 0, 9.0, kernel="l"), curve("b", 0, 1.0, kernel="m")]
    reference, other = summaries(curves, "a")
    assert (reference.agent, reference.speedup, reference.p) == ("a", 1.0, None)
    assert other.speedup == pytest.approx(math.sqrt(2.0)) and other.kernels == 2
    assert (other.better, other.pairs, other.p) == (3, 4, 1 / 8)


def test_a_plateau_is_crossed_where_a_gain_follows_it():
    assert crossing([8.0, 8.0, 7.9, 16.0, 4.0, 4.0, 4.1]) == Crossing(flat=3, valley=2.0)
    assert crossing([8.0, 4.0, 2.0]) == Crossing(flat=0, valley=1.0)
    assert crossing([8.0, 9.0, 9.0]) == Crossing(flat=0, valley=1.0), "it led nowhere"
    assert crossing([8.0, math.inf, 4.0]).flat == 1


def test_panels_have_median_and_spread_over_seeds():
    panels = panels_of([curve("a", 0, 8.0, 4.0), curve("a", 1, 8.0, 2.0), curve("a", 2, 8.0, 1.0)])
    assert [(p.title, p.x) for p in panels] == [("k", "evaluations"), ("k", "seconds")]
    (band,) = panels[0].bands
    assert band.x == (1.0, 2.0)
    assert band.median == pytest.approx((1 / 8, 1 / 2))
    assert band.low == pytest.approx((1 / 8, 1 / 4)) and band.high == pytest.approx((1 / 8, 1.0))
    two = panels_of([curve("a", 0, 8.0, 4.0), curve("a", 0, 3.0, kernel="l")])
    assert [p.title for p in two[::2]] == ["geometric mean of all", "k", "l"]


def test_a_median_over_seconds_begins_where_all_seeds_have_begun():
    late = Curve("k", "a", 1, 8.0, (Point(1, 90.0, 8.0), Point(2, 100.0, 8.0)), 8.0)
    for panel in panels_of([curve("a", 0, 8.0, 1.0), late]):
        (band,) = panel.bands
        assert list(band.median) == sorted(band.median), "what is the best so far gets no slower"
        assert band.x[0] >= (90.0 if panel.x == "seconds" else 1.0)


@pytest.mark.thorough  # curves, statistics and panels: above; what it measures: test_agents.py
def test_compare_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path / "home")))
    monkeypatch.chdir(tmp_path)
    words = "compare relu --shape 64x64 --agents heuristic,random-edges --against random-edges"
    result = CliRunner().invoke(app, f"{words} --seeds 2 --budget 3".split())
    assert result.exit_code == 0, result.output
    assert "relu 64x64" in result.stdout and "heuristic" in result.stdout
    assert {p.name for p in (tmp_path / "compare").iterdir()} == {
        "compare.json",
        "compare.html",
        "compare.png",
    }
    curves = from_json(json.loads((tmp_path / "compare" / "compare.json").read_text()))
    game = Game.new(kernels.get("relu").program((64, 64)), "relu", "64x64")
    for curve in curves:  # the best line is there, and plays
        game.goto(0)
        for move in curve.line:
            game.play(move)
    assert any(curve.line for curve in curves)
    assert {(c.agent, c.seed) for c in curves} == {
        (a, s) for a in ("heuristic", "random-edges") for s in (0, 1)
    }
    page = (tmp_path / "compare" / "compare.html").read_text()
    for cell in ("<th>random-edges</th>", "<td>relu 64x64</td>", "<th>faster in</th>", "Wilcoxon"):
        assert cell in page
    again = CliRunner().invoke(app, ["compare", "--plot", "compare/compare.json", "--out", "twice"])
    assert again.exit_code == 0 and (tmp_path / "twice" / "compare.png").exists()


def test_a_comparison_of_nothing_is_a_sentence():
    assert "Name the kernels" in CliRunner().invoke(app, ["compare"]).stderr
    assert "There is no agent" in CliRunner().invoke(app, ["compare", "relu", "--agents", "x"]).stderr
