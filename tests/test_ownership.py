"""A game belongs to a browser or a login: others watch it, and play on in copies. Without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import pages.jobs
from agents.jobs import JobRefused, JobSpec, JobView
from dojo_core.game import Game
from dojo_core.measure.catalogue import Catalogue
from dojo_core.measure.records import Records, SavedGame
from dojo_core.ownership import may_claim, of_browser, of_login, of_visitor
from dojo_core.program.text import parse
from dojo_core.service import Refused, Service
from dojo_core.service.comparing import Comparisons
from dojo_core.service.library import Library
from dojo_core.service.wiring import RecordStore
from tests.stand_ins import TEXT, Bench, Kernels, Page

JOIN, REUSE, SPLIT = "join_scopes t@0", "reuse_dims t 0", "split_scope y@0 4"
ANN, BEN = of_browser("a" * 32), of_browser("b" * 32)


def games_of(page: Page) -> list[str]:
    return [card["id"] for card in page.service.board(page.player)["start"]["games"]]


def played(page: Page) -> list[str | None]:
    return [node["move"] for node in page.board["history"]["nodes"]]


@pytest.fixture
def ann(service: Service) -> Page:
    """At a game of two moves, the cursor on the second."""
    page = Page(service, "ann", ANN)
    page.start()
    for move in (JOIN, REUSE):
        page.send("play", move=move)
    return page


@pytest.fixture
def ben(service: Service, ann: Page) -> Page:
    """At the same game, by its address."""
    page = Page(service, "ben", BEN)
    page.player = service.player(None, ann.board["game"]["id"], BEN)
    return page


FORGED = [
    ("play", {"move": SPLIT}),
    ("take_back", {}),
    ("delete", {}),
    ("undelete", {}),
    ("promote", {}),
    ("ask_drop", {}),
    ("drop", {"mode": "skip"}),
    ("drop", {"mode": "prefix"}),
    ("rename", {"title": "Ben's"}),
    ("forget", {}),
    ("no such kind", {}),
]


@pytest.mark.parametrize(("kind", "fields"), FORGED)
def test_who_watches_changes_nothing_whatever_is_sent(
    ann: Page, ben: Page, kind: str, fields: dict[str, str]
) -> None:
    game = ann.board["game"]["id"]
    before = ann.service.game_text(game)
    assert ben.board["game"]["id"] == game and ben.board["game"]["watching"]
    ben.send(kind, game=game, **fields)
    assert "belongs to another browser" in ben.feed["notice"]["text"]
    assert ann.service.game_text(game) == before and played(ben) == played(ann) == [None, JOIN, REUSE]
    assert not ann.board["game"]["watching"]


def test_who_watches_sees_what_is_played_and_looks_around_alone(ann: Page, ben: Page) -> None:
    assert ben.board["position"]["id"] == 2
    version = ben.service.board_version(ben.player)
    ann.send("play", move="split_scope y@0 2")
    assert ben.service.board_version(ben.player) != version and ben.board["position"]["id"] == 3
    ben.send("goto", id=1)
    assert (ben.board["position"]["id"], ann.board["position"]["id"]) == (1, 3)
    ann.send("take_back")
    ann.send("rename", game=ann.board["game"]["id"], title="Ann's")
    assert ben.board["position"]["id"] == 1 and ben.board["game"]["title"] == "Ann's"
    ben.send("goto", id=2)  # where Ann is: along with her again
    ann.send("goto", id=3)
    assert ben.board["position"]["id"] == 3
    ann.send("delete")
    assert ben.board["position"]["id"] == 2 and played(ben) == [None, JOIN, REUSE]
    # another position under the number of one that is gone
    ann.send("goto", id=2)
    ann.send("play", move="split_scope y@0 2")
    assert ben.board["position"]["id"] == 3
    moves = [move["text"] for move in ben.board["moves"]]
    ann.send("delete")
    ann.send("play", move=SPLIT)
    assert ben.board["position"]["id"] == 3 and [move["text"] for move in ben.board["moves"]] != moves
    assert [move["text"] for move in ben.board["moves"]] == [move["text"] for move in ann.board["moves"]]
    ann.send("delete")
    ben.send("measure", on=False)
    assert (ben.board["measuring"], ann.board["measuring"]) == (False, True)


def test_a_fork_is_a_game_of_ones_own_from_where_one_looks(ann: Page, ben: Page) -> None:
    original = ann.board["game"]["id"]
    before = ann.service.game_text(original)
    ben.send("goto", id=1)
    ben.send("fork")
    assert not ben.board["game"]["watching"] and ben.board["position"]["id"] == 1
    assert ben.board["game"]["title"].endswith("(fork)") and ben.board["game"]["id"] != original
    ben.send("play", move=SPLIT)
    assert played(ben) == [None, JOIN, REUSE, SPLIT] and ann.service.game_text(original) == before
    for page in (ann, ben):
        page.send("leave")
    assert games_of(ann) == [original] and len(games_of(ben)) == 1


def test_two_tabs_of_one_browser_and_a_visit_after_a_restart_own_the_game(tmp_path: Path, ann: Page) -> None:
    game = ann.board["game"]["id"]
    tab = Page(ann.service, "tab", ANN)
    tab.send("open", game=game)
    tab.send("play", move=SPLIT)
    assert ann.board["game"]["by"] == "tab" and SPLIT in played(ann)
    again = Service(RecordStore(Records(tmp_path / "records.sqlite")), Kernels(), Bench)
    for owner, watching in ((ANN, False), (BEN, True)):
        assert bool(again.board(again.player(None, game, owner))["game"]["watching"]) == watching
    again.close()


def test_the_calls_behind_other_pages_refuse_too(tmp_path: Path, ann: Page) -> None:
    service, game = ann.service, ann.board["game"]["id"]
    before = service.game_text(game)
    with pytest.raises(Refused, match="another browser"):
        service.branch(game, 0, [SPLIT], BEN, go=True)
    library = Library(Catalogue(tmp_path / "records.sqlite"), service, Comparisons(tmp_path / "comparisons"))
    with pytest.raises(Refused, match="Nothing was deleted"):
        library.delete_games([game], BEN)
    assert library.games(owner=BEN) == [] and [card.id for card in library.games(owner=ANN)] == [game]
    assert service.game_text(game) == before
    assert service.may_play_in(game, ANN) and not service.may_play_in(game, BEN)
    assert service.may_play_in("gone", BEN)
    assert service.branch(game, 0, [SPLIT], ANN) == 3  # its owner's
    assert service.branch(game, 0, ["split_scope t@0 2"], owner=None) == 4  # a run's that began there
    saved = library.catalogue.game(game)
    assert saved is not None and saved.player == ANN


# ---------------------------------------------------------------------- games that come in


def linked() -> Game:
    game = Game.new(parse(TEXT), "pair", "64")
    game.play(JOIN)
    return game


def test_what_is_opened_again_is_the_same_game_until_it_is_changed(service: Service) -> None:
    ann, ben = Page(service, "ann", ANN), Page(service, "ben", BEN)
    first = service.take_in(linked(), ANN, once=True)
    assert [service.take_in(linked(), ANN, once=True) for _ in range(3)] == [first] * 3
    assert games_of(ann) == [first] and games_of(ben) == []
    theirs = service.take_in(linked(), BEN, once=True)
    assert theirs != first and games_of(ann) == [first] and games_of(ben) == [theirs]
    ann.send("open", game=first)
    ann.send("step", to="first")  # a look around is no change
    assert service.take_in(linked(), ANN, once=True) == first and ann.board["position"]["id"] == 1
    ann.send("play", move=REUSE)
    second = service.take_in(linked(), ANN, once=True)
    assert second != first and service.take_in(linked(), ANN, once=True) == second
    ann.send("open", game=first)
    assert played(ann) == [None, JOIN, REUSE]


# ---------------------------------------------------------------------- games from before


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """A database with a game of a Dojo that knew a tab by its number, and one of an account."""
    path = tmp_path / "old.sqlite"
    with Records(path) as records:
        for name, player in (("tabs", "0a1b2c3d4e"), ("adas", "ada@example.org")):
            records.save_game(SavedGame(name, player, "pair", name, linked().to_text()))
    yield path


def test_on_ones_own_machine_an_old_game_is_the_first_browsers_that_opens_it(old: Path) -> None:
    service = Service(RecordStore(Records(old)), Kernels(), Bench, local=True)
    ann, ben = Page(service, "ann", ANN), Page(service, "ben", BEN)
    assert sorted(games_of(ann)) == sorted(games_of(ben)) == ["adas", "tabs"]
    nobody = Page(service, "visitor", of_visitor("1"))
    nobody.send("open", game="tabs")
    assert nobody.board["game"]["watching"]
    ann.send("open", game="tabs")
    ann.send("play", move=REUSE)
    assert not ann.board["game"]["watching"] and played(ann) == [None, JOIN, REUSE]
    ben.send("open", game="tabs")
    assert ben.board["game"]["watching"]
    ben.send("leave")
    assert games_of(ben) == ["adas"]
    service.close()


def test_on_a_server_an_old_game_is_left_to_all_but_its_account(old: Path) -> None:
    service = Service(RecordStore(Records(old)), Kernels(), Bench)
    ada, ben = (Page(service, name, of_login(f"{name}@example.org")) for name in ("ada", "ben"))
    for game, page, watching in (
        ("tabs", ada, True), ("tabs", ben, True), ("adas", ben, True), ("adas", ada, False)
    ):  # fmt: skip
        page.send("open", game=game)
        assert bool(page.board["game"]["watching"]) == watching
        page.send("leave")
    yours = {card["id"]: card["yours"] for card in ada.board["start"]["games"]}
    assert yours == {"adas": True, "tabs": False}
    assert games_of(ben) == ["tabs"]
    service.close()


def test_nobody_claims_what_somebody_has() -> None:
    for before in (ANN, of_login("ada"), of_visitor("1")):
        assert not may_claim(BEN, before, local=True)
    assert not may_claim(of_visitor("1"), "0a1b", local=True) and not may_claim(BEN, "0a1b", local=False)
    assert "a" * 32 not in ANN


def test_a_run_is_told_what_to_do_by_the_owner_of_its_game(
    ann: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = Game.from_text(ann.service.game_text(ann.board["game"]["id"]))
    spec = JobSpec.of(game, "greedy", saved=ann.board["game"]["id"])
    told: list[str] = []
    monkeypatch.setattr(pages.jobs, "the_service", lambda: ann.service)
    monkeypatch.setattr(
        pages.jobs,
        "the_jobs",
        lambda: SimpleNamespace(view=lambda run: JobView(spec, "paused", "", (), None, None)),
    )
    for owner in (BEN, ANN):
        monkeypatch.setattr(pages.jobs, "the_owner", lambda owner=owner: owner)
        if owner == BEN:
            with pytest.raises(JobRefused, match="Take over instead"):
                pages.jobs.checked(told.append)("run")
        else:
            pages.jobs.checked(told.append)("run")
    assert told == ["run"]
