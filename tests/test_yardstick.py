"""The start's time that speed-ups stand on, and what a page is told of times. The measurer is a stand-in."""

from __future__ import annotations

from pathlib import Path

import pytest

from dojo_core.measure.conditions import Conditions
from dojo_core.measure.records import Records
from dojo_core.school.progress import Progress
from dojo_core.school.school import open_school
from dojo_core.school.tutoring import Tutor, TutoringSession
from dojo_core.service import Service, yardstick
from dojo_core.service.games import watched
from dojo_core.service.queue import Outcome
from dojo_core.service.wiring import RecordStore
from tests.stand_ins import Bench, Kernels, NoisyBench, Page

BUSY = Outcome("ok", 0.177, 0.2, 10, conditions=Conditions(0.6), taken=1000.0)
QUIET = Outcome("ok", 0.052, 0.053, 10, conditions=Conditions(0.01), taken=2000.0)


def start_timed(page: Page, outcome: Outcome) -> None:
    table = page.player.table
    assert table is not None
    page.service.queue.of(table.key).standings.keep((table.key, table.game.start.hash), outcome)


@pytest.fixture
def page(service: Service) -> Page:
    """A game of one move whose start was timed on a busy machine."""
    made = Page(service)
    made.start()
    made.send("measure", on=False)
    start_timed(made, BUSY)
    assert made.feed["start"] == 0.177
    made.send("play", move="join_scopes t@0")
    return made


def test_a_start_timed_again_changes_no_speed_up_until_the_player_says_so(page: Page) -> None:
    start_timed(page, QUIET)
    assert page.feed["start"] == 0.177
    shown = page.feed["yardstick"]
    assert shown["machine"] == "machine busy: other processes took 60% of the cores" and shown["busy"]
    assert shown["again"] == {"seconds": 0.052, "taken": 2000.0, "busy": False, "machine": "machine idle"}
    page.send("yardstick")
    assert page.feed["start"] == 0.052 and page.feed["yardstick"]["again"] is None
    assert page.feed["notice"]["text"] == "Speed-ups now stand on the start's 52 ms; before, on 177 ms."


def test_what_differs_by_no_more_than_noise_or_was_taken_busy_is_not_offered(page: Page) -> None:
    alike = Outcome("ok", 0.175, conditions=Conditions(0.0))
    start_timed(page, alike)
    assert page.feed["yardstick"]["again"] is None
    busy = Outcome("ok", 0.04, conditions=Conditions(0.5))
    assert yardstick.better(QUIET, busy) is None and yardstick.better(BUSY, busy) == busy
    page.send("yardstick")  # nothing is offered: nothing changes
    assert page.feed["start"] == 0.177


def test_while_nothing_has_been_played_the_newest_time_counts(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("measure", on=False)
    for outcome in (BUSY, QUIET):
        start_timed(page, outcome)
        assert page.feed["start"] == outcome.seconds


def test_the_time_that_speed_ups_stand_on_is_kept_with_the_game(tmp_path: Path, page: Page) -> None:
    assert page.player.table is not None
    path = tmp_path / "records.sqlite"
    other = Service(RecordStore(Records(path)), Kernels(), Bench)
    again = Page(other)
    again.player = other.player("other", page.player.table.game.id)
    start_timed(again, QUIET)
    assert again.feed["start"] == 0.177 and again.feed["yardstick"]["again"]["seconds"] == 0.052
    other.close()


def test_a_copy_stands_on_the_same_time_and_so_does_who_watches(tmp_path: Path, page: Page) -> None:
    """A fork, what Review goes through, and another browser's view: one game, one speed-up."""
    assert page.player.table is not None
    number, service = page.player.table.game.id, page.service
    start_timed(page, QUIET)
    watching = Page(service)
    watching.player = service.player("another", number, "another browser")
    if watching.player.table is page.player.table:  # alone on this machine every game is one's own
        watching.player.table = watched(page.player.table)
    assert watching.board["game"]["watching"]
    assert watching.feed["start"] == 0.177 and watching.feed["yardstick"]["again"] is None
    copies = [service.fork(number, "")]
    progress = Progress(tmp_path / "school.sqlite")
    tutor = Tutor(service, open_school([]), progress)
    session = TutoringSession("me", service.player(None))
    tutor.review(session, number)
    assert session.player.table is not None
    copies.append(session.player.table.game.id)
    watching.send("fork")
    assert watching.player.table is not None and not watching.board["game"]["watching"]
    copies.append(watching.player.table.game.id)
    for copy in copies:
        opened = Page(service)
        opened.player = service.player(f"of {copy}", copy)
        assert opened.feed["start"] == 0.177, copy
    progress.close()


def test_a_note_is_read_back_and_nonsense_is_none() -> None:
    for outcome in (BUSY, QUIET, Outcome("ok", 1e-7, conditions=Conditions(None, False), taken=5.0)):
        stored = yardstick.read(f"dojo game 1\n{yardstick.noted(outcome)}\n")
        assert stored is not None
        assert (stored.seconds, stored.conditions, stored.taken) == (
            outcome.seconds, outcome.conditions, outcome.taken
        )  # fmt: skip
    for note in (
        "",
        "# start timed 1e999 s, taken 5, load 0",
        "# start timed 0 s, taken 5, load 0",
        "# start timed",
    ):
        assert yardstick.read(f"dojo game 1\n{note}\n") is None


def test_a_page_is_told_speeds_with_intervals_when_times_were_taken_and_what_the_machine_does(
    tmp_path: Path,
) -> None:
    bench = NoisyBench({}, load=0.0)
    made = Service(
        RecordStore(Records(tmp_path / "r.sqlite")), Kernels(), lambda: bench, machine=lambda: Conditions(0.6)
    )
    page = Page(made)
    page.start()
    page.until(lambda: not made.polling(page.player))
    feed = page.feed
    assert feed["machine"] == {
        "busy": True, "quiet": False, "words": "busy: other processes took 60% of the cores", "share": 60,
    }  # fmt: skip
    assert made.awaits_quiet(page.player), "the machine may come to rest"
    for seconds, median, verdict, value, low, high, rounds in feed["results"]:
        assert (verdict, low <= value <= high) == ("equal", True)
        assert 0 < seconds <= median and rounds >= 2
    assert feed["now"]["taken"] > 0 and feed["now"]["machine"] == "machine idle" and feed["last"] is None
    page.send("play", move="join_scopes t@0")
    assert page.feed["last"][0] == "equal", "the last move is judged by the rounds before it was played"
    assert set(page.feed["provenance"]) == {"0", "1"}
    made.close()
