"""What a page has before it asks, and how it asks: sheets, the exchange, what is timed first."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dojo_core import kernels
from dojo_core.measure import trial
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.service import Service
from dojo_core.service import courtesy as courtesies
from dojo_core.service.feed import NOT_ASKED
from dojo_core.service.queue import ROUGH, Outcome
from dojo_core.targets.cpu.measurer import Measurer
from pages.door import _answer
from tests.stand_ins import Bench, Page, move_of


@dataclass
class Lesson:
    """What stands beside a board."""

    step: int = 1
    secret: bool = True
    busy: bool = False

    def told(self) -> dict[str, Any]:
        return {"step": self.step}


SHEET = ("position", "program", "code", "moves")


def test_a_move_s_sheet_is_what_the_board_shows_once_it_is_played(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("measure", on=False)
    move = move_of(page, "split_scope")
    (sheet,) = service.ahead(page.player, [move])
    assert sheet["move"] == move and len(page.board["history"]["nodes"]) == 1
    page.send("play", move=move)
    assert {part: sheet[part] for part in SHEET} == {part: page.board[part] for part in SHEET}

    # a position of the game is told by its number, from wherever the cursor is
    page.send("take_back")
    again, start = service.ahead(page.player, [1, 0])
    assert again["position"] == sheet["position"] and start["position"]["parent"] is None
    # a move that was played has the position that it led to
    assert service.ahead(page.player, [move])[0]["position"]["id"] == 1


def test_what_is_no_position_and_no_legal_move_has_no_sheet(service: Service) -> None:
    page = Page(service)
    assert service.ahead(page.player, [0]) == []
    page.start()
    nothing: list[Any] = [None, [], {}, 7, -1, "reuse_dims t 0", "no such move"]
    for wanted in (None, "join_scopes t@0", 7, nothing):
        assert service.ahead(page.player, wanted) == []
    assert len(page.board["history"]["nodes"]) == 1


def test_an_exchange_brings_the_board_where_the_page_has_another_one(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("measure", on=False)

    def every_late_part_is_there() -> bool:
        return page.board["blocked"] is not None and not service.polling(page.player)

    page.until(every_late_part_is_there)
    first = service.exchange(page.player, "tab", [], "")
    assert first["board"]["moves"] and first["poll"] is None
    version = first["board"]["version"]
    assert service.exchange(page.player, "tab", [], version)["board"] is None
    event = {"seq": 9, "kind": "play", "game": first["board"]["game"]["id"], "position": 0}
    played = service.exchange(page.player, "tab", [{**event, "move": move_of(page, "join_scopes")}], version)
    assert played["board"]["position"]["id"] == 1 == played["feed"]["position"]
    assert played["board"]["acknowledged"]["tab"] == 9
    # its moves have to be found first: they come at the next message, for which the page does not wait
    texts, poll = played["board"], played["poll"]
    assert texts["moves"] is None is texts["code"] and texts["program"]["lines"] and poll == 0
    listed = service.exchange(page.player, "tab", [], texts["version"])["board"]
    assert listed["moves"] and listed["code"]["lines"] and listed["program"] == texts["program"]
    page.until(every_late_part_is_there)
    version = page.board["version"]
    assert service.exchange(page.player, "tab", [], version)["board"] is None
    back = {**event, "seq": 10, "kind": "take_back", "position": 1}
    assert service.exchange(page.player, "tab", [back], version)["board"]["moves"]
    # of two boards the later one has the larger number, so that a page can tell a late one
    assert played["board"]["told"][1] > first["board"]["told"][1]


def test_what_is_worked_out_beside_an_answer_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courtesies, "PATIENCE", 300)
    courtesy, told = courtesies.Courtesy(), list[str]()

    def beside() -> None:
        courtesy.give_way()
        told.append("beside")

    with courtesy.answering():
        thread = threading.Thread(target=beside)
        thread.start()
        with courtesy.answering():
            told.append("an answer")
        told.append("another")
    thread.join()
    courtesy.give_way()  # for nobody
    assert told == ["an answer", "another", "beside"]


def test_the_start_screen_tells_its_errors_whatever_version_a_page_has(service: Service) -> None:
    page = Page(service)
    event = {"seq": 1, "kind": "start", "kernel": "pair", "shape": "64x64", "policy": "reassoc"}
    told = service.exchange(page.player, "tab", [event], page.board["version"])
    assert told["board"]["start"]["errors"] == {"pair": "it has one dimension"}


def test_the_door_opens_to_a_key_and_takes_messages_alone(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, other = Page(service), Page(service)
    monkeypatch.setattr("pages.shared.the_service", lambda: service)
    assert service.holder(page.player.key) is page.player and page.player.key != other.player.key
    for key in ("", "x", page.player.id, page.player.key + "x", "é"):
        assert _answer(key, b"{}")[0] == 410
    for body in (b"", b"[]", b"7", b"\xff", b"{" * 9):
        assert _answer(page.player.key, body)[0] == 400
    for body in (b"{}", b'{"events": 7, "client": [], "version": {}}', b'{"ahead": "x"}'):
        assert _answer(page.player.key, body)[0] == 200


def test_a_lesson_beside_the_board_comes_by_the_same_door_and_keeps_times_back(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pages.shared.the_service", lambda: service)
    page = Page(service)
    page.start()
    assert page.board["moves"]
    page.until(lambda: any(isinstance(each, list) for each in page.feed["results"]))

    def ask(known: str = "") -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(
            _answer(page.player.key, json.dumps({"beside": known}).encode())[1]
        )
        return answer

    assert ask()["beside"] is None
    page.player.companion = lesson = Lesson()
    first = ask()
    assert first["beside"]["told"]["step"] == 1 and set(first["feed"]["results"]) == {NOT_ASKED}
    assert ask(first["beside"]["digest"])["beside"] is None
    lesson.step, lesson.secret = 2, False
    second = ask(first["beside"]["digest"])
    assert second["beside"]["told"]["step"] == 2 and set(map(str, second["feed"]["results"])) != {"2"}
    assert second["beside"]["told"]["told"] >= first["beside"]["told"]["told"]


def test_rows_on_the_screen_are_timed_before_others_and_paused_kinds_are_not(
    service: Service, bench: Bench
) -> None:
    page = Page(service)
    page.start()
    page.send("measure", on=False)
    page.until(lambda: page.player.explored and not service.polling(page.player))
    board, analysis = page.board, page.player.analysis
    assert analysis is not None
    by_move = {str(s.move): s.program.hash for s in analysis.find_successors()}
    seen = [m["text"] for m in board["moves"] if m["name"] == "split_scope"][-2:]
    paused = [m["text"] for m in board["moves"] if m["name"] == "unroll"]
    known = set(bench.measured)
    page.send("sight", moves=seen)
    page.send("pause", name="unroll", on=True)
    page.send("pause", name="no such kind", on=True)
    assert page.board["paused"] == ["unroll"]
    page.send("measure", on=True)
    page.until(lambda: not service.queue.open_tasks(page.player.id))
    order = [h for h in bench.measured if h not in known and h in by_move.values()]
    assert order[: len(seen)] == [by_move[move] for move in seen]
    assert paused and not {by_move[move] for move in paused} & set(order)

    page.send("pause", name="unroll", on=False)
    page.until(lambda: {by_move[move] for move in paused} <= set(bench.measured))


def test_a_rough_time_is_told_as_such_until_the_verified_one_is_there(service: Service, bench: Bench) -> None:
    measure = bench.measure

    def first_roughly(workload: Any, programs: Any, careful: bool, on_result: Any, *others: Any) -> None:
        for program in programs:
            on_result(program.hash, Outcome(ROUGH, 0.5))
        measure(workload, programs, careful, on_result, *others)

    bench.measure = first_roughly  # type: ignore[method-assign, assignment]
    bench.gate.clear()
    page = Page(service)
    page.start()
    page.until(lambda: "rough" in page.feed["now"])
    assert page.feed["now"]["rough"] == 0.5 and "seconds" not in page.feed["now"]
    assert page.feed["times"] == {} and page.feed["start"] is None
    bench.gate.set()
    page.until(lambda: page.feed["now"]["state"] == "ok")
    assert "rough" not in page.feed["now"]


@pytest.mark.usefixtures("kept_workers")
def test_large_arrays_have_a_rough_time_before_they_are_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    monkeypatch.setattr(trial, "SLOWLY_DRAWN", 1)  # bytes: every array is large
    start = kernels.get("softmax").program((16, 32))
    told: list[tuple[str, float]] = []
    with Measurer() as measurer:
        for _ in range(2):  # the second time the references are there
            (measured,) = measurer.measure(
                Workload(start, "softmax"), [start], Effort.QUICK, fresh=True,
                on_result=lambda m: told.append((m.status, m.seconds or 0.0)),
                on_rough=lambda program, seconds: told.append((f"rough {program == start.hash}", seconds)),
            )  # fmt: skip
    assert [status for status, _ in told] == ["rough True", "ok", "ok"]
    assert all(seconds > 0 for _, seconds in told) and measured.verified
