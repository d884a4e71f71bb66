"""The tutor behind the page Learn, without a browser; the review of a game with times that are given."""

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
from dojo_core.school.tutoring import Tutor, TutoringSession
from dojo_core.service.service import Service
from dojo_core.service.wiring import KernelLibrary, RecordStore
from tests.stand_ins import Bench


@pytest.fixture(scope="module")
def school() -> School:
    return open_school([LESSONS_FOLDER])


@pytest.fixture
def tutor(school: School, tmp_path: Path) -> Iterator[Tutor]:
    with Records(tmp_path / "records.sqlite") as records:
        service = Service(RecordStore(records), KernelLibrary(), Bench)
        progress = Progress(tmp_path / "school.sqlite")
        yield Tutor(service, school, progress)
        progress.close()
        service.close()


def new_session(tutor: Tutor, learner: str = "somebody") -> TutoringSession:
    return TutoringSession(learner, tutor.service.player(None))


def send(tutor: Tutor, session: TutoringSession, kind: str, **fields: object) -> None:
    """As the board sends an event."""
    table = session.player.table
    assert table is not None
    number = max(session.player.acknowledged.values(), default=0) + 1
    at = {"game": table.game.id, "position": table.game.cursor}
    tutor.service.handle(session.player, "board", [{"seq": number, "kind": kind, **at, **fields}])


def test_a_goal_is_seen_as_it_is_reached_and_stays_done(tutor: Tutor) -> None:
    session = new_session(tutor)
    tutor.open(session, "02-fusion", "one-loop-for-both")
    step = panel(tutor, session)["step"]
    assert [goal["state"] for goal in step["goals"]] == ["open"] and not step["done"]
    send(tutor, session, "play", move="join_scopes t@0")
    step = panel(tutor, session)["step"]
    assert [goal["state"] for goal in step["goals"]] == ["reached"] and step["done"] and step["after"]
    send(tutor, session, "take_back")
    step = panel(tutor, session)["step"]
    assert not step["reached"] and step["done"]
    assert tutor.progress.done("somebody") == {("02-fusion", "one-loop-for-both"): False}
    assert tutor.progress.done("somebody else") == {}


def test_a_refused_try_is_told_with_its_reason_and_counts(tutor: Tutor) -> None:
    session = new_session(tutor)
    for kind in ("play", "why"):
        tutor.open(session, "02-fusion", "too-early")
        send(tutor, session, kind, move="reuse_dims t 0")
        step = panel(tutor, session)["step"]
        assert step["reached"] and step["done"]
    tutor.open(session, "02-fusion", "one-loop-for-both")
    send(tutor, session, "play", move="reuse_dims t 0")
    step = panel(tutor, session)["step"]
    assert step["refusal"]["move"] == "reuse_dims t 0" and "clobbers" in step["refusal"]["why"]


def test_an_event_that_comes_twice_counts_once(tutor: Tutor) -> None:
    session = new_session(tutor)
    opened = {"seq": 1, "kind": "open", "lesson": "02-fusion", "step": "one-loop-for-both"}
    hint = {"seq": 2, "kind": "hint"}
    for events in ([opened], [opened, hint], [hint], "nonsense", [{"kind": "hint"}]):
        tutor.hear(session, "a page", events)
    shown = panel(tutor, session)
    assert shown["acknowledged"] == {"a page": 2} and len(shown["step"]["hints"]) == 1
    tutor.hear(session, "the page after a reload", [{"seq": 1, "kind": "hint"}])
    assert len(panel(tutor, session)["step"]["hints"]) == 2


def test_help_comes_in_levels_and_the_solution_marks_the_step(tutor: Tutor) -> None:
    session = new_session(tutor)
    tutor.open(session, "02-fusion", "one-loop-for-both")
    for count in (1, 2, 2):
        tutor.handle(session, {"kind": "hint"})
        assert len(panel(tutor, session)["step"]["hints"]) == count
    tutor.handle(session, {"kind": "show_me"})
    assert panel(tutor, session)["step"]["reached"]
    assert tutor.progress.done("somebody") == {("02-fusion", "one-loop-for-both"): True}
    tutor.handle(session, {"kind": "reset"})
    assert panel(tutor, session)["step"]["moves"] == 0


def test_every_puzzle_is_solved_by_its_solution_on_the_board(tutor: Tutor, school: School) -> None:
    session = new_session(tutor)
    for lesson in school.lessons:
        for step in lesson.steps if lesson.puzzles else ():
            tutor.open(session, lesson.id, step.id)
            assert not panel(tutor, session)["step"]["reached"]
            tutor.handle(session, {"kind": "show_me"})
            shown = panel(tutor, session)["step"]
            if any(goal.measured for goal in step.goals):  # times are for the machine to say
                assert {goal["state"] for goal in shown["goals"]} <= {"reached", "unknown"}, step.title
            else:
                assert shown["reached"], step.title


def test_a_step_is_found_again_as_it_was_left_and_no_list_shows_it(tutor: Tutor) -> None:
    session = new_session(tutor)
    tutor.open(session, "02-fusion", "a-longer-chain")
    send(tutor, session, "play", move="join_scopes a@0")
    tutor.leave(session)
    assert panel(tutor, session)["list"]["resume"]["step"] == "a-longer-chain"
    again = new_session(tutor)
    tutor.open(again, "02-fusion", "a-longer-chain")
    assert panel(tutor, again)["step"]["moves"] == 1
    assert tutor.games(session) == []
    copy = tutor.handle(again, {"kind": "to_play"})
    assert [game["id"] for game in tutor.games(again)] == [copy]


def test_what_a_page_sends_may_be_anything(tutor: Tutor) -> None:
    session = new_session(tutor)
    for event in (
        None,
        1,
        {},
        {"kind": 7},
        {"kind": "open"},
        {"kind": "open", "lesson": "x"},
        {"kind": "review"},
    ):
        tutor.handle(session, event)
        assert panel(tutor, session)["view"] in ("list", "games")
    tutor.open(session, "01-scopes")
    for number in (None, "1", -1, 99, True):
        tutor.handle(session, {"kind": "answer", "number": number})
        assert panel(tutor, session)["step"]["question"]["chosen"] is None


def test_in_a_review_times_are_kept_back_until_the_move_is_told(tutor: Tutor) -> None:
    game = Game.new(parse(PROGRAM))
    game.play("split_scope y@0 8")
    session = new_session(tutor)
    tutor.handle(session, {"kind": "review", "game": tutor.service.take_in(game)})
    assert session.review is not None and not session.secret
    session.review.wait(300)
    finding = Finding(1, 0, "split_scope y@0 8", 2.0, "vectorize y@0", 1.0)
    session.review.findings = [finding]
    stages = []
    for kind in ("finding", "reveal", "reveal", "reveal"):
        tutor.handle(session, {"kind": kind, "number": 0})
        (shown,) = panel(tutor, session)["review"]["findings"]
        stages.append((shown["kind"] is not None, shown["place"], shown["better"], session.secret))
    tutor.handle(session, {"kind": "verdict", "number": 1})
    assert (
        session.finding is None and session.player.table is not None and session.player.table.game.cursor == 0
    )
    assert stages == [
        (False, None, None, True), (True, None, None, True), (True, "y@0", None, True),
        (True, "y@0", "vectorize y@0", False),
    ]  # fmt: skip


PROGRAM = "kernel k\nin x\nout y\nx f32 [64] heap\ny f32 [64] heap\n64 y[{0}] = x[{0}]*2\n"
