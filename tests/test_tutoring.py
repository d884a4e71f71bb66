"""The desk behind the page Learn, without a browser; the review of a game with times that are given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dojo_core import parse
from dojo_core.game import Game
from dojo_core.measure.records import Records
from dojo_core.school.panel import panel
from dojo_core.school.progress import Progress
from dojo_core.school.review import Finding
from dojo_core.school.school import LESSONS_FOLDER, School, open_school
from dojo_core.school.tutoring import Desk, Seat
from dojo_core.service.service import Service
from dojo_core.service.wiring import KernelLibrary, RecordStore
from tests.stand_ins import Bench


@pytest.fixture(scope="module")
def school() -> School:
    return open_school([LESSONS_FOLDER])


@pytest.fixture
def desk(school: School, tmp_path: Path) -> Iterator[Desk]:
    with Records(tmp_path / "records.sqlite") as records:
        service = Service(RecordStore(records), KernelLibrary(), Bench)
        progress = Progress(tmp_path / "school.sqlite")
        yield Desk(service, school, progress)
        progress.close()
        service.close()


def seat(desk: Desk, learner: str = "somebody") -> Seat:
    return Seat(learner, desk.service.player(None))


def send(desk: Desk, here: Seat, kind: str, **fields: object) -> None:
    """As the board sends an event."""
    table = here.player.table
    assert table is not None
    number = max(here.player.acknowledged.values(), default=0) + 1
    at = {"game": table.game.id, "position": table.game.cursor}
    desk.service.handle(here.player, "board", [{"seq": number, "kind": kind, **at, **fields}])


def test_a_goal_is_seen_as_it_is_reached_and_stays_done(desk: Desk) -> None:
    here = seat(desk)
    desk.open(here, "02-fusion", "one-loop-for-both")
    step = panel(desk, here)["step"]
    assert [goal["state"] for goal in step["goals"]] == ["open"] and not step["done"]
    send(desk, here, "play", move="join_scopes t@0")
    step = panel(desk, here)["step"]
    assert [goal["state"] for goal in step["goals"]] == ["reached"] and step["done"] and step["after"]
    send(desk, here, "take_back")
    step = panel(desk, here)["step"]
    assert not step["reached"] and step["done"]
    assert desk.progress.done("somebody") == {("02-fusion", "one-loop-for-both"): False}
    assert desk.progress.done("somebody else") == {}


def test_a_refused_try_is_told_with_its_reason_and_counts(desk: Desk) -> None:
    here = seat(desk)
    for kind in ("play", "why"):
        desk.open(here, "02-fusion", "too-early")
        send(desk, here, kind, move="reuse_dims t 0")
        step = panel(desk, here)["step"]
        assert step["reached"] and step["done"]
    desk.open(here, "02-fusion", "one-loop-for-both")
    send(desk, here, "play", move="reuse_dims t 0")
    step = panel(desk, here)["step"]
    assert step["refusal"]["move"] == "reuse_dims t 0" and "clobbers" in step["refusal"]["why"]


def test_an_event_that_comes_twice_counts_once(desk: Desk) -> None:
    here = seat(desk)
    opened = {"seq": 1, "kind": "open", "lesson": "02-fusion", "step": "one-loop-for-both"}
    hint = {"seq": 2, "kind": "hint"}
    for events in ([opened], [opened, hint], [hint], "nonsense", [{"kind": "hint"}]):
        desk.hear(here, "a page", events)
    told = panel(desk, here)
    assert told["acknowledged"] == {"a page": 2} and len(told["step"]["hints"]) == 1
    desk.hear(here, "the page after a reload", [{"seq": 1, "kind": "hint"}])
    assert len(panel(desk, here)["step"]["hints"]) == 2


def test_help_comes_in_levels_and_the_solution_marks_the_step(desk: Desk) -> None:
    here = seat(desk)
    desk.open(here, "02-fusion", "one-loop-for-both")
    for count in (1, 2, 2):
        desk.handle(here, {"kind": "hint"})
        assert len(panel(desk, here)["step"]["hints"]) == count
    desk.handle(here, {"kind": "show_me"})
    assert panel(desk, here)["step"]["reached"]
    assert desk.progress.done("somebody") == {("02-fusion", "one-loop-for-both"): True}
    desk.handle(here, {"kind": "reset"})
    assert panel(desk, here)["step"]["moves"] == 0


def test_every_puzzle_is_solved_by_its_solution_on_the_board(desk: Desk, school: School) -> None:
    here = seat(desk)
    for lesson in school.lessons:
        for step in lesson.steps if lesson.puzzles else ():
            desk.open(here, lesson.id, step.id)
            assert not panel(desk, here)["step"]["reached"]
            desk.handle(here, {"kind": "show_me"})
            told = panel(desk, here)["step"]
            if any(goal.measured for goal in step.goals):  # times are for the machine to say
                assert {goal["state"] for goal in told["goals"]} <= {"reached", "unknown"}, step.title
            else:
                assert told["reached"], step.title


def test_a_step_is_found_again_as_it_was_left_and_no_list_shows_it(desk: Desk) -> None:
    here = seat(desk)
    desk.open(here, "02-fusion", "a-longer-chain")
    send(desk, here, "play", move="join_scopes a@0")
    desk.leave(here)
    assert panel(desk, here)["list"]["resume"]["step"] == "a-longer-chain"
    again = seat(desk)
    desk.open(again, "02-fusion", "a-longer-chain")
    assert panel(desk, again)["step"]["moves"] == 1
    assert desk.games(here) == []
    copy = desk.handle(again, {"kind": "to_play"})
    assert [game["id"] for game in desk.games(again)] == [copy]


def test_what_a_page_sends_may_be_anything(desk: Desk) -> None:
    here = seat(desk)
    for event in (
        None,
        1,
        {},
        {"kind": 7},
        {"kind": "open"},
        {"kind": "open", "lesson": "x"},
        {"kind": "review"},
    ):
        desk.handle(here, event)
        assert panel(desk, here)["view"] in ("list", "games")
    desk.open(here, "01-scopes")
    for number in (None, "1", -1, 99, True):
        desk.handle(here, {"kind": "answer", "number": number})
        assert panel(desk, here)["step"]["question"]["chosen"] is None


def test_in_a_review_times_are_kept_back_until_the_move_is_told(desk: Desk) -> None:
    game = Game.new(parse(PROGRAM))
    game.play("split_scope y@0 8")
    here = seat(desk)
    desk.handle(here, {"kind": "review", "game": desk.service.take_in(game)})
    assert here.review is not None and not here.secret
    here.review.wait(300)
    found = Finding(1, 0, "split_scope y@0 8", 2.0, "vectorize y@0", 1.0)
    here.review.findings = [found]
    told = []
    for kind in ("finding", "reveal", "reveal", "reveal"):
        desk.handle(here, {"kind": kind, "number": 0})
        (shown,) = panel(desk, here)["review"]["findings"]
        told.append((shown["kind"] is not None, shown["place"], shown["better"], here.secret))
    desk.handle(here, {"kind": "verdict", "number": 1})
    assert here.finding is None and here.player.table is not None and here.player.table.game.cursor == 0
    assert told == [
        (False, None, None, True), (True, None, None, True), (True, "y@0", None, True),
        (True, "y@0", "vectorize y@0", False),
    ]  # fmt: skip


PROGRAM = "kernel k\nin x\nout y\nx f32 [64] heap\ny f32 [64] heap\n64 y[{0}] = x[{0}]*2\n"
