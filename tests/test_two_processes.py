"""Two app processes on one data directory, each with a service of its own: no move of either is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dojo_core.game import Game
from dojo_core.measure.records import Records, SavedGame
from dojo_core.program.text import parse
from dojo_core.service import Service
from dojo_core.service.merging import lines, merge
from dojo_core.service.refused import Refused
from dojo_core.service.wiring import RecordStore
from tests.stand_ins import TEXT, Bench, Kernels, Page

JOIN, SPLIT, OTHER = "join_scopes t@0", "split_scope t@0 2", "split_scope y@0 4"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Page, Page]]:
    """A page in each of two processes, at the same game."""
    made = [
        Service(RecordStore(Records(tmp_path / "records.sqlite")), Kernels(), lambda: Bench())
        for _ in range(2)
    ]
    one, other = (Page(service, name) for service, name in zip(made, ("one", "other"), strict=True))
    one.start()
    other.send("open", game=one.board["game"]["id"])
    yield one, other
    for service in made:
        service.close()


def played(page: Page) -> set[str]:
    return {node["move"] for node in page.board["history"]["nodes"]} - {None}


def test_what_both_played_is_kept_and_both_are_told(two: tuple[Page, Page]) -> None:
    one, other = two
    one.send("play", move=JOIN)
    other.send("play", move=SPLIT)  # saved over a state that it did not know
    assert played(other) == {JOIN, SPLIT} and "another window" in other.feed["notice"]["text"]
    assert other.board["history"]["line"] and other.board["position"]["parent"] == 0
    one.send("play", move="reuse_dims t 0")
    assert played(one) == {JOIN, SPLIT, "reuse_dims t 0"}
    other.send("play", move=OTHER)
    assert played(other) == {JOIN, SPLIT, "reuse_dims t 0", OTHER}
    # and a third process reads all of it
    text = one.service.game_text(one.board["game"]["id"])
    assert len(Game.from_text(text).positions) == 5


def test_the_cursor_of_the_other_does_not_move_mine(two: tuple[Page, Page]) -> None:
    one, other = two
    one.send("play", move=JOIN)
    other.send("open", game=other.board["game"]["id"])  # takes in what is new
    other.send("goto", id=1)
    other.send("step", to="first")
    one.send("play", move="reuse_dims t 0")
    assert one.board["position"]["id"] == 2
    other.send("play", move=SPLIT)
    assert played(other) == {JOIN, SPLIT, "reuse_dims t 0"}
    assert one.board["position"]["id"] == 2


def test_what_one_deleted_goes_unless_the_other_went_on_from_it(two: tuple[Page, Page]) -> None:
    one, other = two
    for move in (JOIN, "reuse_dims t 0"):
        one.send("play", move=move)
    one.send("step", to="first")
    one.send("play", move=SPLIT)
    other.send("open", game=other.board["game"]["id"])
    other.send("goto", id=2)
    one.send("delete")  # SPLIT
    one.send("goto", id=2)
    one.send("delete")  # reuse_dims, from which the other goes on
    other.send("play", move="split_scope t@0 2")
    assert played(other) == {JOIN, "reuse_dims t 0", "split_scope t@0 2"}


def test_a_game_that_the_other_deleted_comes_back_with_the_next_move(two: tuple[Page, Page]) -> None:
    one, other = two
    one.send("play", move=JOIN)
    game = one.board["game"]["id"]
    other.send("leave")
    other.send("forget", game=game)
    one.send("play", move="reuse_dims t 0")
    assert len(Game.from_text(one.service.game_text(game)).positions) == 3


def test_the_title_that_one_gave_is_kept(two: tuple[Page, Page]) -> None:
    one, other = two
    one.send("play", move=JOIN)
    one.send("rename", game=one.board["game"]["id"], title="Mine")
    other.send("play", move=SPLIT)
    assert other.board["game"]["title"] == "Mine"


def game(*moves: str) -> Game:
    made = Game.new(parse(TEXT))
    for move in moves:
        made.play(move)
    return made


def test_merging_numbers_no_two_positions_alike_and_keeps_provenance_apart() -> None:
    base, mine, theirs = game(JOIN), game(JOIN, "reuse_dims t 0"), game(JOIN, "split_scope t@0 2")
    merge(mine, base, theirs)
    assert set(lines(mine)) == set(lines(theirs)) | {(JOIN, "reuse_dims t 0")}
    assert len({p.id for p in mine.positions.values()}) == 4
    assert mine.cursor == 2
    # what came in can be played on, and the whole reads back
    mine.goto(max(mine.positions))
    mine.play("split_scope t@0 4")
    again = Game.from_text(mine.to_text())
    assert {p.program.text for p in again.positions.values()} == {
        p.program.text for p in mine.positions.values()
    }


def test_a_game_that_would_grow_too_long_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dojo_core.service.merging.MAX_MOVES", 3)
    base, mine, theirs = game(), game(JOIN, "reuse_dims t 0"), game(SPLIT, "split_scope t@0 2")
    with pytest.raises(Refused, match="more than 3 moves"):
        merge(mine, base, theirs)
    assert len(mine.positions) == 3


def test_games_without_a_move_go_after_some_time(tmp_path: Path) -> None:
    with Records(tmp_path / "records.sqlite") as records:
        for name, text in (("none", game().to_text()), ("some", game(JOIN).to_text())):
            records.save_game(SavedGame(name, "ann", "", "", text + "# measuring is off\n"))
        assert records.prune_games(time.time() - 60) == 0
        assert records.count_games("ann") == (1, 1) and records.count_games("ben") == (0, 0)
        assert records.prune_games(time.time() + 1) == 1
        assert [kept.id for kept in records.games()] == ["some"]


def test_a_player_keeps_so_many_games_and_is_told_what_to_do(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dojo_core.service.games.KEPT_GAMES", 2)
    monkeypatch.setattr("dojo_core.service.games.KEPT_OWN", 1)
    page = Page(service)
    page.send("text", text=TEXT, policy="strict")
    page.send("play", move=JOIN)
    page.send("leave")
    page.send("text", text=TEXT, policy="strict")
    assert "kernels of your own" in page.feed["notice"]["text"] and page.board["view"] == "start"
    page.start()
    page.send("play", move=JOIN)
    page.send("leave")
    page.start()
    assert "delete some first" in page.feed["notice"]["text"] and page.board["view"] == "start"
    # another player has an allowance of their own
    other = Page(service, owner="another")
    other.start()
    assert other.board["view"] == "play"


def test_of_very_many_moves_the_likeliest_are_measured(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dojo_core.service.attention.MOST_OPEN", 4)
    page = Page(service)
    page.start()
    page.until(lambda: page.feed["explored"] and not service.polling(page.player))
    results = page.feed["results"]
    assert (
        sum(isinstance(result, list) for result in results) == 2
    )  # beside the position itself and the start
    assert results.count(2) == len(results) - 2  # not asked
    last = page.board["moves"][-1]["text"]
    page.send("look", move=last)
    page.until(lambda: isinstance(page.feed["results"][-1], list))
