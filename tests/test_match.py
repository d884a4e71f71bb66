"""Players of all kinds side by side: saved games, matches move by move, leaderboards and their checker."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents import leaderboard, match
from agents.agent import Budget, PlayerFailed, Task, run
from agents.cli import app
from agents.comparison import Curve
from agents.leaderboard import Entry, NoLeaderboard, check, entries_of, merged, read
from agents.match import Tried, match_of
from agents.match_page import page
from agents.passes import play_pass
from agents.players import NoAgent, agent_named
from agents.timing import CountTiming
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.records import Records, SavedGame
from dojo_core.targets.registry import backend
from tests.language_models import standing

DAY = date(2026, 11, 27)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def game(kernel: str = "softmax", shape: tuple[int, ...] = (8, 32), target: str = "cpu") -> Game:
    program = kernels.get(kernel).program(shape)
    return Game.new(backend(target).limits.start(program), kernel, "x".join(map(str, shape)), target)


def counted(begun, programs, moves):
    return CountTiming().measure(Workload(begun.start), programs, {}, Effort.NORMAL, lambda: False)


# ---------------------------------------------------------------------------- a saved game plays


def by_hand() -> Game:
    played = game()
    for move in ("join_scopes m@0", "join_scopes d@0", "reuse_dims d 0"):
        played.play(move)
    played.play("split_scope y@0 2", at=1)  # a variation, which is no part of its line
    played.goto(0)
    return played


def test_a_saved_game_counts_as_its_positions(tmp_path):
    saved = by_hand()
    (tmp_path / "mine.dojo").write_text(saved.to_text())
    with Records() as records:
        records.save_game(SavedGame("abc123", "me", "softmax", "mine", saved.to_text()))
    for name in ("game:mine.dojo", "game:abc123"):
        events = list(run(Task(game()), agent_named(name), CountTiming(), Budget(20)))
        moves = [str(event.move) for event in events if not event.final]
        assert moves == ["None", "join_scopes m@0", "join_scopes d@0", "reuse_dims d 0"]
    fewer = list(run(Task(game()), agent_named("game:abc123"), CountTiming(), Budget(2)))
    assert fewer[-1].evaluation == 2


def test_a_game_of_another_start_or_policy_is_told_so(tmp_path):
    (tmp_path / "mine.dojo").write_text(by_hand().to_text())
    player = agent_named("game:mine.dojo")
    assert player.unfit(game()) == ""
    assert player.unfit(game("relu")) == (
        "The game mine.dojo is one of softmax 8x32 and begins at another program than relu 8x32."
    )
    split = game("reducemean")
    split.play("split_reduction s#1@1 ps")
    (tmp_path / "split.dojo").write_text(split.to_text())
    strict = replace(game("reducemean"), policy="strict")
    with pytest.raises(PlayerFailed, match=r"Move 1 of .*split_reduction.*not legal .* under policy strict"):
        list(run(Task(strict), agent_named("game:split.dojo"), CountTiming(), Budget(5)))


@pytest.mark.parametrize("name", ["game:", "game:nowhere.dojo", "game:../../etc", "game:broken.dojo"])
def test_what_is_no_game_is_told_so(tmp_path, name):
    (tmp_path / "broken.dojo").write_text("dojo game 1\nno game at all\n")
    with pytest.raises(
        NoAgent, match=r"Saved games are written|There is no game|is no game that can be played again"
    ):
        agent_named(name)


# ---------------------------------------------------------------------------- a match


def matched(*names: str) -> list[match.PlayedLine]:
    curves, runs = [], {}
    for name in names:
        events = list(run(Task(game()), agent_named(name), CountTiming(), Budget(8)))
        label = name.partition("@")[0]
        curves.append(Curve.of("softmax 8x32", label, 0, events))
        runs["softmax 8x32", label, 0] = Tried.of(events)
    return match_of(curves, {"softmax 8x32": game()}, runs, counted)


def test_a_match_tells_every_move_of_the_best_lines_and_what_was_said():
    said = iter(("What?", "For <script>alert(1)</script>\nMOVE: join_scopes m@0", "MOVE: stop"))
    with standing(lambda number, messages: next(said)) as server:
        heuristic, model = matched("heuristic", server.player)
    assert [ply.move for ply in heuristic.plies][:2] == ["join_scopes m@0"] * 2
    assert heuristic.final == heuristic.plies[-1].seconds < heuristic.seconds
    assert [each.move for each in model.tried] == ["", "join_scopes m@0"]
    assert model.tried[1].words.startswith("For <script>") and model.tried[1].aside.startswith(
        "not taken: What?"
    )
    first = heuristic.plies[0]
    assert ("+", "| 32 d[{0},{1}] = x[{0},{1}] - m[{0}]") in first.changes
    assert match.from_json(json.loads(json.dumps(match.as_json([heuristic, model])))) == [heuristic, model]


def test_the_page_of_a_match_runs_nothing_that_is_said():
    said = iter(("For <script>alert(1)</script>\nMOVE: reuse_dims s", "MOVE: join_scopes m@0", "MOVE: stop"))
    with standing(lambda number, messages: next(said)) as server:
        shown = page(matched("greedy", server.player))
    assert "<script" not in shown and "&lt;script&gt;alert(1)" in shown
    assert "default-src 'none'" in shown and "onload" not in shown
    assert shown.index("<h3><span") < shown.index("join_scopes m@0") and "<polyline" in shown
    assert "The match as it was played: 2 programs" in shown


# ---------------------------------------------------------------------------- leaderboards


def entry(**changed: object) -> Entry:
    """A pass on a Snitch core, whose model gives the same cycles everywhere."""
    begun = game("relu", (4, 64), "snitch")
    play_pass(begun, "heuristic")
    moves = tuple(str(position.move) for position in begun.line()[1:])
    made = Entry(
        "heuristic", "relu", "4x64", "snitch", "reassoc", begun.start.text, moves, begun.current.program.hash,
        1e-6, 1.5e-6, 1, 0, "fingerprint", "a model", DAY.isoformat(),
    )  # fmt: skip
    return replace(made, **changed)


def test_the_checker_plays_verifies_and_times_an_entry():
    with backend("snitch").measurer(None) as measurer:
        held = check(entry(), measurer)
        assert held.holds and held.why == "" and held.speed.value > 5
        boast = check(entry(start_seconds=1.0), measurer)
        assert not boast.holds and boast.why.startswith(
            "It claims to be 1e+06 times as fast as the start, and is "
        )
        for changed, why in (
            ({"moves": ("tile y@0 4",)}, "Move 1 does not apply. "),
            ({"moves": (*entry().moves, "join_scopes m@0")}, "does not apply"),
            ({"moves": ()}, "Its moves lead to another program than the one that it names."),
            (
                {"start": entry().start.replace("relu", "other", 1).replace("max(x", "min(x")},
                "begins at another program",
            ),
            ({"kernel": "rilu"}, "There is no kernel 'rilu'"),
            ({"target": "abacus"}, "abacus"),
            ({"policy": "wild"}, "wild"),
            ({"start": "no program"}, "line 1, column 4"),
            (
                {"kernel": "", "shape": "", "start": entry().start.replace("in x", "in q")},
                "no buffer holds q",
            ),
        ):
            refused = check(entry(**changed), measurer)
            assert not refused.holds and refused.seconds is None and why in refused.why, (
                changed,
                refused.why,
            )


def test_a_leaderboard_keeps_the_best_of_each_player_on_each_board(tmp_path):
    slow, fast, other = entry(seconds=2e-6), entry(seconds=1e-6), entry(player="me", seconds=1.5e-6)
    elsewhere = entry(machine="another", seconds=9e-6)
    kept = merged([slow, elsewhere], [other, fast])
    assert [e.seconds for e in kept if e.machine == "fingerprint"] == [1e-6, 1.5e-6]
    leaderboard.write(tmp_path / "board.json", kept)
    assert read(tmp_path / "board.json") == kept and elsewhere in kept


def test_entries_are_the_best_runs_with_their_moves():
    curves = [
        Curve("softmax 8x32", "a", seed, 8.0, (), final, ("join_scopes m@0",), 500, 0.25)
        for seed, final in ((0, 4.0), (1, 2.0), (2, None))
    ]
    [made] = entries_of(curves, {"softmax 8x32": game()}, "machine", "processor", DAY)
    assert (made.player, made.seed, made.seconds, made.claimed, made.tokens, made.cost) == (
        "a",
        1,
        2.0,
        4.0,
        500,
        0.25,
    )
    played = game()
    assert made.program == played.play("join_scopes m@0").program.hash


def test_the_docs_show_a_leaderboard_that_is_read(tmp_path):
    text = (Path(__file__).parent.parent / "docs" / "leaderboard.md").read_text()
    (tmp_path / "board.json").write_text(text.split("```json\n")[1].split("```")[0])
    [shown] = read(tmp_path / "board.json")
    assert shown.start == entry().start and shown.claimed > 6
    for name in (each.name for each in fields(Entry)):
        assert f"`{name}`" in text


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: d.pop("dojo leaderboard"), "is no leaderboard: it has no"),
        (lambda d: d["entries"][0].pop("moves"), "Entry 1 of .* is none: moves is missing"),
        (lambda d: d["entries"][0].update(seconds=-1), "seconds is nothing that can be measured"),
        (lambda d: d["entries"][0].update(moves=[3]), "moves is no list of at most 500 texts"),
        (lambda d: d["entries"][0].update(player="x" * 501), "player is no text of at most 500 characters"),
        (lambda d: d["entries"][0].update(player="\x1b[2J"), "player has signs that do not print"),
        (lambda d: d["entries"][0].update(programs=True), "programs is no whole number"),
        (lambda d: d["entries"][0].update(run="rm -rf"), "'run' means nothing"),
        (lambda d: d["entries"][0].update(day="today"), "day is no date"),
        (lambda d: d["entries"][0].update(day="2026-99-99"), "day is no date"),
        (lambda d: d["entries"].append("x"), "Entry 2 of .* it is no object"),
    ],
)
def test_a_file_that_is_no_leaderboard_is_told_where_it_is_wrong(tmp_path, change, why):
    leaderboard.write(tmp_path / "board.json", [entry()])
    document = json.loads((tmp_path / "board.json").read_text())
    change(document)
    (tmp_path / "board.json").write_text(json.dumps(document))
    with pytest.raises(NoLeaderboard, match=why):
        read(tmp_path / "board.json")


# ---------------------------------------------------------------------------- the command


def dojo(*words: str, code: int = 0):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def test_compare_writes_a_match_and_a_leaderboard_that_it_reads_and_checks(tmp_path, monkeypatch):
    for drawn in ("write_page", "write_picture"):  # test_comparison.py draws them
        monkeypatch.setattr(f"agents.comparing.{drawn}", lambda *_: None)
    begun = game("relu", (4, 64), "snitch")
    begun.play("split_scope y@0 2")
    (tmp_path / "mine.dojo").write_text(begun.to_text())
    words = "compare relu:4x64 add:4x64 --target snitch --seeds 1 --budget 3 --agents naive,game:mine.dojo"
    told = dojo(*words.split(), "--against", "naive", "--match", "--leaderboard", "board.json")
    assert "begins at another program than add 4x64" in told.stderr.replace("\n", " ")
    assert "game:mine.dojo" in told.stdout and "programs" in told.stdout
    shown = (tmp_path / "compare" / "match.html").read_text()
    assert shown.count("<h2>") == 2 and "split_scope y@0 2" in shown
    dojo("compare", "--plot", "compare/compare.json", "--out", "again")
    assert (tmp_path / "again" / "match.html").read_text() == shown
    ranked = dojo("compare", "--from", "board.json")
    assert len([line for line in ranked.stdout.splitlines() if "snitch" in line]) == 3
    assert "3 of 3 hold here." in dojo("compare", "--from", "board.json", "--check").stdout
    leaderboard.write(
        tmp_path / "board.json", [replace(each, start_seconds=1.0) for each in read(tmp_path / "board.json")]
    )
    failed = dojo("compare", "--from", "board.json", "--check", code=1)
    assert "0 of 3 hold here." in failed.stdout and "It claims to be" in failed.stderr
    assert "--from ranks results" in dojo("compare", "relu", "--from", "board.json", code=1).stderr
    only = ("compare", "relu", "--agents", "game:mine.dojo", "--against", "game:mine.dojo")
    assert "begins at another program" in dojo(*only, code=1).stderr.replace("\n", " ")
