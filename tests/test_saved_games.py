"""Games and texts: saved, listed, deleted, read back. The measurer is a stand-in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dojo_core.measure.records import Records
from dojo_core.service import Service
from dojo_core.service.games import Games
from dojo_core.service.wiring import RecordStore
from tests.stand_ins import TEXT, Bench, Kernels, Page, move_of


def test_a_saved_game_comes_back_in_another_process(tmp_path: Path, bench: Bench) -> None:
    path = tmp_path / "records.sqlite"
    first = Service(RecordStore(Records(path)), Kernels(), lambda: bench)
    page = Page(first)
    page.start()
    page.send("play", move=move_of(page, "join_scopes"))
    game, text = page.board["game"]["id"], page.board["program"]["lines"]
    # no close: as after kill -9
    second = Service(RecordStore(Records(path)), Kernels(), lambda: bench)
    player = second.player("other", game)
    board = second.board(player)
    assert board["game"]["id"] == game and board["program"]["lines"] == text
    assert [g["id"] for g in second.board(second.player(None))["start"]["games"]] == [game]
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("there", "gone", "told"),
    [
        ("target: cpu", "target: abacus", "There is no target 'abacus'. The targets are: cpu, "),
        ("join_scopes", "reverse_scope", "There is no move 'reverse_scope'. "),
    ],
)
def test_a_game_of_a_package_that_is_gone_says_what_is_missing(
    tmp_path: Path, bench: Bench, there: str, gone: str, told: str
) -> None:
    records = Records(tmp_path / "records.sqlite")
    service = Service(RecordStore(records), Kernels(), lambda: bench)
    page = Page(service)
    page.start()
    page.send("play", move=move_of(page, "join_scopes"))
    [kept] = records.games("", 1, nobodys=True)
    records.save_game(replace(kept, id="elsewhere", text=kept.text.replace(there, gone)))
    page.send("leave")
    page.send("open", game="elsewhere")
    assert page.board["view"] == "start"
    assert page.feed["notice"]["text"].startswith(f"This saved game cannot be read here. {told}")
    service.close()


def test_a_text_of_ones_own_with_an_error_keeps_the_start_screen(service: Service) -> None:
    page = Page(service)
    page.send("text", text=TEXT.replace("x[{0}]*2", "q[{0}]*2"), policy="reassoc")
    board = page.board
    assert board["view"] == "start" and "q" in board["start"]["errors"]["text"]
    page.send("text", text=TEXT, policy="strict")
    assert page.board["view"] == "play" and page.board["game"]["policy"] == "strict"


def test_export_and_import_give_the_same_game(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move=move_of(page, "join_scopes"))
    page.send("take_away")
    text = page.feed["taken"]["game"]["text"]
    other = Page(service)
    other.send("text", text=text, policy="reassoc")
    assert other.board["program"]["lines"] == page.board["program"]["lines"]
    assert other.board["game"]["id"] != page.board["game"]["id"]


def test_what_is_deleted_comes_back_with_undo(service: Service) -> None:
    page = Page(service)
    page.start()
    for move in ("join_scopes t@0", "reuse_dims t 0"):
        page.send("play", move=move)
    before = page.board["history"]
    page.send("goto", id=1)
    page.send("delete")
    notice = page.feed["notice"]
    assert notice["text"] == "Deleted join_scopes t@0 and 1 later move."
    assert len(page.board["history"]["nodes"]) == 1
    page.send(notice["undo"]["kind"])
    assert page.board["history"] == {**before, "branches": page.board["history"]["branches"]}
    # moves played since stand in the way: they are not overwritten
    page.send("delete")
    page.send("play", move="split_scope y@0 2")
    page.send("undelete")
    assert "cannot come back" in page.feed["notice"]["text"]
    assert [n["move"] for n in page.board["history"]["nodes"]] == [None, "split_scope y@0 2"]


def test_the_list_of_games_has_those_with_moves_and_what_is_known_of_them(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("leave")
    assert page.board["start"]["games"] == []
    page.start()
    page.send("play", move="join_scopes t@0")
    page.send("play", move="reuse_dims t 0")
    page.send("take_back")
    page.until(lambda: page.feed["best"] is not None and page.feed["start"] is not None)
    game = page.board["game"]["id"]
    service.note(page.player)  # as the library does
    (listed,) = service.board(service.player(None))["start"]["games"]
    page.send("leave")
    (card,) = page.board["start"]["games"]
    assert listed["best"] == card["best"]
    assert (card["id"], card["moves"], card["last"]) == (game, 2, "reuse_dims t 0")
    assert card["kernel"] == "pair 64" and card["best"] >= 1
    page.send("rename", game=game, title="  my   best ")
    assert page.board["start"]["games"][0]["title"] == "my best"
    page.send("forget", game=game)
    assert page.board["start"]["games"] == []
    assert page.feed["notice"]["text"] == "Deleted my best."
    page.send("remember")
    assert page.board["start"]["games"][0]["best"] == card["best"]


def test_measuring_off_is_kept_with_the_game(tmp_path: Path, bench: Bench) -> None:
    path = tmp_path / "records.sqlite"
    first = Service(RecordStore(Records(path)), Kernels(), lambda: bench)
    page = Page(first)
    page.start()
    page.send("measure", on=False)
    page.send("play", move="join_scopes t@0")
    second = Service(RecordStore(Records(path)), Kernels(), lambda: bench)
    player = second.player(page.player.id, page.board["game"]["id"])
    assert second.board(player)["measuring"] is False
    assert second.queue.open_tasks(player.id) == 0
    first.close()
    second.close()


def test_a_text_whose_output_is_not_written_is_refused_beside_the_box(service: Service) -> None:
    page = Page(service)
    page.send("text", text=TEXT.replace("64 y[{0}]", "32 y[{0}]"), policy="reassoc")
    told = page.board["start"]["errors"]["text"]
    assert page.board["view"] == "start" and "y" in told and "32 y[{0}] = t[{0}] + 1" in told


def test_a_wrong_move_in_a_pasted_game_is_told_with_its_line(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move="join_scopes t@0")
    page.send("take_away")
    text = page.feed["taken"]["game"]["text"]
    page.send("leave")
    page.send("text", text=text.replace("join_scopes", "join_scpes"), policy="reassoc")
    told = page.board["start"]["errors"]["text"]
    assert "Did you mean join_scopes?" in told and "1: join_scpes t@0" in told
    page.send("text", text=text.replace("join_scopes", "zzz"), policy="reassoc")
    assert "There is no move 'zzz'" in page.board["start"]["errors"]["text"]
    assert "vectorize" not in page.board["start"]["errors"]["text"]
    page.send("text", text="dojo game 1\n" + "x" * 600_000, policy="reassoc")
    assert "^" not in page.board["start"]["errors"]["text"]


def test_a_game_that_cannot_be_saved_is_told_and_saved_with_the_next_move(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Page(service)
    page.start()
    with monkeypatch.context() as full:
        full.setattr(Records, "save_game", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
        page.send("play", move="join_scopes t@0")
    assert "could not be saved (no space left)" in page.feed["notice"]["text"]
    assert len(page.board["history"]["nodes"]) == 2
    page.send("play", move="reuse_dims t 0")
    game = page.board["game"]["id"]
    page.send("leave")
    page.send("open", game=game)
    assert len(page.board["history"]["nodes"]) == 3


def test_a_replay_that_stops_half_way_is_saved_as_far_as_it_came(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Page(service)
    page.start()
    for move in ("split_scope t@0 2", "split_scope y@0 4", "split_scope y@1 2"):
        page.send("play", move=move)
    monkeypatch.setattr("dojo_core.game.MAX_MOVES", 4)
    page.send("goto", id=1)
    page.send("drop", mode="skip")  # replays two moves, and may play one
    assert len(page.board["history"]["nodes"]) == 5
    assert "at most" in page.feed["notice"]["text"]
    table = page.player.table
    assert table is not None
    saved = service._games._store.load_game(table.game.id)
    assert saved is not None and saved.text.startswith(table.game.to_text())


def test_a_broken_line_file_is_told_with_its_place(tmp_path: Path, bench: Bench) -> None:
    lines = tmp_path / "lines"
    lines.mkdir()
    (lines / "mine.line").write_text("kernel pair\nshape 64\nlet block =\n")
    service = Service(RecordStore(Records(tmp_path / "r.sqlite")), Kernels(), lambda: bench, lines)
    page = Page(service)
    page.send("line", file="mine.line")
    assert "let block = 32" in page.feed["notice"]["text"]
    service.close()


def test_a_line_is_shown_as_its_file_is_now(tmp_path: Path) -> None:
    games = Games(RecordStore(Records(tmp_path / "records.sqlite")), Kernels(), tmp_path)
    for moves in (0, 1, 2):
        (tmp_path / "mine.line").write_text("kernel pair\nshape 64\n" + "unroll y@0\n" * moves)
        assert [(file, len(line.moves)) for file, line in games.recorded()] == [("mine.line", moves)]
