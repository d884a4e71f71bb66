"""The service without a page: events, leases, what each page is told. The measurer is a stand-in."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dojo_core import kernels
from dojo_core.measure.records import Records
from dojo_core.moves import Move, legal_moves
from dojo_core.program.tree import Program
from dojo_core.service import Service
from dojo_core.service.analysis import Analyses, Analysis, Successor
from dojo_core.service.wiring import RecordStore
from tests.stand_ins import Bench, Kernels, Page, move_of


def test_start_shows_text_code_moves_and_streams_times(service: Service) -> None:
    page = Page(service)
    assert page.board["start"]["groups"][0]["kernels"][0]["name"] == "pair"
    page.start()
    board = page.board
    assert board["program"]["lines"][0]["op"] == "t[{0}] = x[{0}]*2"
    assert board["program"]["lines"][0]["slots"] == [{"path": "0", "text": "64", "mark": ""}]
    assert any("join_scopes" in m["text"] for m in board["moves"])
    page.until(lambda: all(isinstance(r, list) for r in page.feed["results"]))
    assert page.feed["now"]["seconds"] > 0
    page.until(lambda: not service.polling(page.player))


def test_an_event_counts_once_and_only_on_its_position(service: Service) -> None:
    page = Page(service)
    page.start()
    board = page.board
    join = move_of(page, "join_scopes")
    event = {"kind": "play", "game": board["game"]["id"], "position": 0, "move": join}
    # sent again unchanged, as after a lost acknowledgement; and a second click under a new number
    service.handle(page.player, "a", [{"seq": 1, **event}])
    service.handle(page.player, "a", [{"seq": 1, **event}, {"seq": 2, **event}])
    assert len(page.board["history"]["nodes"]) == 2
    assert page.feed["acknowledged"]["a"] == 2


def test_what_a_board_shows_is_acknowledged_with_it(service: Service) -> None:
    # Else a page sends it again to a server started anew: a second game, and the moves of the first dropped.
    page = Page(service)
    before = page.board
    assert before["acknowledged"] == {}
    service.handle(page.player, "a", [{"seq": 1, "kind": "start", "kernel": "pair", "shape": "64"}])
    assert page.board["view"] == "play" and page.board["acknowledged"] == {"a": 1}


def test_play_take_back_branch_and_promote(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move=move_of(page, "join_scopes"))
    assert [mark for mark, _ in page.board["program"]["diff"] if mark != " "]
    page.send("take_back")
    page.send("play", move=move_of(page, "split_scope"))
    history = page.board["history"]
    assert len(history["nodes"]) == 3 and history["branches"]
    assert [n["variation"] for n in history["nodes"] if n["id"] == page.board["position"]["id"]] == [True]
    page.send("promote")
    assert not any(n["variation"] for n in page.board["history"]["nodes"] if n["id"] == history["line"][-1])
    page.send("step", to="branch")
    assert page.board["position"]["id"] != history["line"][-1]


def test_an_illegal_move_is_a_sentence_and_changes_nothing(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move="reuse_dims t 0")
    assert page.feed["notice"]["kind"] == "error" and "reuse_dims t 0" in page.feed["notice"]["text"]
    page.send("play", move="no such move")
    assert len(page.board["history"]["nodes"]) == 1
    assert page.feed["notice"]["text"] == "There is no move 'no'."
    page.send("leave")
    page.send("start", kernel="pair", shape="64x64", policy="reassoc")
    assert page.board["start"]["errors"] == {"pair": "it has one dimension"}


def test_a_blocked_move_names_its_reason_and_its_enabler(service: Service) -> None:
    page = Page(service)
    page.start()
    page.until(lambda: page.board["blocked"] is not None)
    blocked = next(b for b in page.board["blocked"] if b["text"] == "reuse_dims t 0")
    way = {"moves": ("join_scopes t@0",), "then": "reuse_dims t 0", "told": "join_scopes t@0"}
    assert blocked["ways"] == [way] and blocked["witness"]
    opener = next(m for m in page.board["moves"] if m["text"] == "join_scopes t@0")
    assert "reuse_dims t 0" in opener["opens"]


def test_two_players_have_two_games(service: Service) -> None:
    one, two = Page(service), Page(service)
    one.start()
    two.start()
    one.send("play", move=move_of(one, "join_scopes"))
    assert one.player.id != two.player.id
    assert len(one.board["history"]["nodes"]) == 2
    assert len(two.board["history"]["nodes"]) == 1


def test_measuring_off_measures_nothing(service: Service, bench: Bench) -> None:
    page = Page(service)
    bench.gate.clear()
    page.start()
    page.send("measure", on=False)
    bench.gate.set()
    page.until(lambda: not service.polling(page.player))
    time.sleep(0.05)
    assert len(bench.measured) <= 1
    assert page.feed["queue"]["state"] == "off" and set(map(str, page.feed["results"])) <= {"2"}


def test_where_nothing_is_timed_unasked_a_game_is_once_that_is_asked_for(
    tmp_path: Path, bench: Bench
) -> None:
    store = RecordStore(Records(tmp_path / "unasked.sqlite"))
    service = Service(store, Kernels(), lambda: bench, measure=False)
    page = Page(service)
    page.start()
    page.until(lambda: not service.polling(page.player))
    assert page.feed["queue"]["state"] == "off" and not bench.measured
    page.send("measure", on=True)
    page.until(lambda: all(isinstance(result, list) for result in page.feed["results"]))
    service.close()


def test_removing_a_middle_move_reports_before_it_changes(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move="join_scopes t@0")
    page.send("play", move="reuse_dims t 0")
    page.send("step", to="back")
    page.send("ask_drop")
    report = page.board["drop"]
    assert report["move"] == "join_scopes t@0"
    assert [(e["move"], e["outcome"]) for e in report["entries"]] == [("reuse_dims t 0", "refused")]
    assert len(page.board["history"]["nodes"]) == 3
    page.send("drop", mode="cancel")
    assert page.board["drop"] is None and len(page.board["history"]["nodes"]) == 3


def test_a_notice_is_for_the_page_that_caused_it(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(service)
    page.start()
    page.send("play", move="reuse_dims t 0")
    assert page.feed["notice"]["client"] == "tab"
    monkeypatch.setattr("dojo_core.service.service.NOTICE", 0.0)
    assert page.feed["notice"] is None


def test_steps_count_wherever_the_cursor_is_and_moves_only_on_their_position(service: Service) -> None:
    page = Page(service)
    page.start()
    for move in ("split_scope t@0 2", "split_scope y@0 4", "split_scope y@1 2"):
        page.send("play", move=move)
    at = {"game": page.board["game"]["id"], "position": 3}
    quick = [{"seq": 10 + n, "kind": "step", "to": "back", **at} for n in range(2)]
    service.handle(page.player, "tab", [*quick, {"seq": 12, "kind": "take_back", **at}])
    assert page.board["position"]["id"] == 0
    service.handle(page.player, "tab", [{"seq": 13, "kind": "delete", **at}])
    assert len(page.board["history"]["nodes"]) == 4


def test_a_game_changed_elsewhere_names_the_page_that_did_it(service: Service) -> None:
    one, two = Page(service, "one"), Page(service, "two")
    one.start()
    two.send("open", game=one.board["game"]["id"])
    two.send("play", move="join_scopes t@0")
    one.send("look_again")
    assert one.board["game"]["by"] == "two" and one.board["position"]["id"] == 1


def test_a_second_tab_with_the_same_address_is_another_player_at_the_same_game(service: Service) -> None:
    page = Page(service)
    page.start()
    other = service.player(None, page.board["game"]["id"])
    assert other is not page.player and other.table is page.player.table


def test_what_is_measured_is_recorded_with_the_moves_that_led_there(service: Service, bench: Bench) -> None:
    page = Page(service)
    page.start()
    page.send("play", move="join_scopes t@0")
    page.until(lambda: not service.polling(page.player))
    assert bench.lines[page.board["position"]["hash"]] == "join_scopes t@0"
    assert "join_scopes t@0\nreuse_dims t 0" in bench.lines.values()
    start = page.player.table.game.start
    assert bench.lines[start.hash] == ""


def test_a_dead_measurer_is_a_state_that_a_restart_ends(service: Service, bench: Bench) -> None:
    page = Page(service)
    bench.broken = "no compiler"
    page.start()
    page.until(lambda: page.feed["queue"]["state"] == "down")
    assert "no compiler" in page.feed["queue"]["message"]
    page.send("play", move=move_of(page, "join_scopes"))
    assert len(page.board["history"]["nodes"]) == 2
    bench.broken = ""
    page.send("restart")
    page.until(lambda: page.feed["now"].get("seconds", 0) > 0)


def test_the_assembly_is_made_once_however_often_it_is_asked_for(tmp_path: Path, bench: Bench) -> None:
    made: list[object] = []
    records = Records(tmp_path / "records.sqlite")
    service = Service(
        RecordStore(records), Kernels(), lambda: bench, assemble=lambda a: made.append(a) or {"lines": []}
    )
    page = Page(service)
    bench.gate.clear()  # a measurement is under way: the assembly has to wait
    page.start()
    page.until(lambda: bool(bench.batches))
    page.send("show", assembly=True)
    page.send("select", path="0")
    page.send("select", path="1")
    bench.gate.set()
    page.until(lambda: page.board["assembly"] is not None)
    page.until(lambda: not service.polling(page.player))
    assert len(made) == 1
    service.close()


def test_a_position_stays_explored_while_others_look_at_many(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dojo_core.service.analysis.KEPT", 1)
    one, two = Page(service), Page(service)
    one.start()
    one.until(lambda: all(isinstance(r, list) for r in one.feed["results"]))
    two.start("128")
    one.send("select", path="0")
    assert all(isinstance(r, list) for r in one.feed["results"])
    assert one.board["moves"] != two.board["moves"]


def test_positions_with_many_moves_make_room_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dojo_core.service.analysis.KEPT_SUCCESSORS", 5)
    analyses = Analyses()
    first, second = (analyses.of(kernels.get("relu").program((8, n)), "cpu", "reassoc") for n in (16, 32))
    assert all(len(each.find_successors()) > 2 for each in (first, second))
    assert analyses.of(second.program, "cpu", "reassoc") is second
    assert analyses.of(first.program, "cpu", "reassoc") is not first


def test_positions_stepped_over_are_not_explored(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    explored: list[str] = []
    gate = threading.Event()
    find = Analysis.find_successors

    def found(analysis: Analysis, rest: Callable[[], None]) -> list[Successor]:
        explored.append(analysis.program.hash)
        gate.wait(300)
        return find(analysis, rest)

    monkeypatch.setattr(Analysis, "find_successors", found)
    page = Page(service)
    page.start()
    page.until(lambda: len(explored) == 1)
    seen = [page.board["position"]["hash"]]
    for move in ("join_scopes t@0", "reuse_dims t 0"):
        page.send("play", move=move)
        seen.append(page.board["position"]["hash"])
    gate.set()
    page.until(lambda: not page.player.pending)
    assert explored == [seen[0], seen[2]]


def test_a_game_that_everybody_left_takes_no_memory_and_comes_back(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move="join_scopes t@0")
    game = page.board["game"]["id"]
    table = weakref.ref(page.player.table)
    page.until(lambda: not page.player.pending)
    page.send("leave")
    page.until(lambda: gc.collect() >= 0 and table() is None)
    page.send("open", game=game)
    assert len(page.board["history"]["nodes"]) == 2


def test_players_who_open_a_game_at_once_sit_at_one_table(service: Service) -> None:
    page = Page(service)
    page.start()
    game = page.board["game"]["id"]
    page.send("leave")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: service.player(f"p{n}", game), range(8)))
    assert len({id(player.table) for player in found}) == 1


def test_the_player_not_seen_for_longest_is_forgotten(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dojo_core.service.service.KEPT_PLAYERS", 2)
    one, two = Page(service), Page(service)
    one.start()
    game = one.board["game"]["id"]
    two.start()
    _ = one.feed  # seen again
    service.player("third")
    assert service.player(one.player.id) is one.player
    assert not service.queue.open_tasks(two.player.id)
    assert service.board(service.player("fourth", game))["game"]["id"] == game


def test_a_position_whose_moves_fail_can_be_left(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_when_joined(program: Program, *where: str) -> tuple[Move, ...]:
        if len(program.body) == 1:
            raise IndexError("a fault of ours")
        return legal_moves(program, *where)

    monkeypatch.setattr("dojo_core.service.analysis.legal_moves", fails_when_joined)
    page = Page(service)
    page.start()
    page.send("play", move="join_scopes t@0")
    assert page.board["moves"] == []
    assert "Take back" in page.feed["notice"]["text"]
    page.send("take_back")
    assert page.board["moves"]


def test_a_text_is_looked_at_while_it_is_typed(service: Service) -> None:
    page = Page(service)

    def looked(text: str, *sizes: str) -> dict[str, Any]:
        page.send("read", text=text, sizes=list(sizes), number=3, client="a")
        told: dict[str, Any] = page.board["start"]["draft"]
        return told

    own = "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = tanhh(x[{0}])\n"
    wrong = looked(own)
    assert (wrong["line"], wrong["column"], wrong["number"], wrong["client"]) == (6, 12, 3, "a")
    assert wrong["error"].endswith("Did you mean tanh?")
    assert looked(own.replace("hh", "h"))["told"] == ["A program of the Dojo: k, 1 operation."]
    assert looked(own.replace("kernel", "Kernel"))["error"].endswith("Did you mean kernel?")
    made = looked("np.exp(x)", "m=8", "gone=3")
    assert (made["sizes"], made["error"]) == ([["m", 8], ["n", 1024]], "")
    assert "8 1024 y[{0},{1}] = exp(x[{0},{1}])" in made["program"]
    assert looked("np.exp(x)", "m=x")["error"] == "'m=x' is no size. A size reads m=512."
    assert looked("dojo game 1")["told"] and looked("")["told"] == []
    page.send("text", text="np.exp(x)", sizes=["m=8", "n=4"])
    assert page.board["program"]["lines"][0]["op"] == "y[{0},{1}] = exp(x[{0},{1}])"


def test_nonsense_from_a_page_is_no_fault(service: Service) -> None:
    page = Page(service)
    page.start()
    nonsense: Any = ["play", {}, {"seq": "one"}, {"seq": 7}, {"seq": 8, "kind": "open", "game": "../x"}]
    service.handle(page.player, "tab", nonsense)
    assert page.feed["notice"]["text"] == "There is no saved game with this id here."
    assert page.board["view"] == "play"
