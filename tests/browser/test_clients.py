"""A program plays by calls, in a process of its own; a person sees it on the board, and takes it over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dojo_core.calls import CallFault, Desk
from dojo_core.measure.records import Records
from dojo_core.service import Service
from dojo_core.service.wiring import KernelLibrary, RecordStore
from tests.browser.conftest import Server
from tests.browser.playing import MOVE, NAME, expect, expect_here, markup, wait_for_entries
from tests.stand_ins import Bench

NEXT = "split_scope s@0 2"


@pytest.fixture
def desk(common_server: Server) -> Iterator[Desk]:
    """Of a program whose name would be markup, on the app's own records."""
    records = Records(common_server.home / "records.sqlite")
    service = Service(RecordStore(records), KernelLibrary(), Bench, measure=False)
    yield Desk(service, NAME)
    service.close()


@pytest.mark.thorough  # test_api.py, test_service.py
def test_what_a_program_plays_is_watched_live_and_taken_over(start_screen: Any, desk: Desk) -> None:
    page = start_screen
    game = desk.call("open", {"kernel": "reducemean", "shape": "8x16"}).data["game"]
    desk.call("play", {"game": game, "moves": [MOVE]})
    page.click(f"button.card >> text=played by {desk.client}")
    page.wait_for_selector(f".watched >> text=is played by {desk.client}")
    assert markup(page) == []

    desk.call("play", {"game": game, "moves": [NEXT]})
    wait_for_entries(page, 3)  # of itself: nothing was pressed
    expect_here(page, 2)
    expect(page.get_by_role("button", name="Take back")).to_be_disabled()
    desk.call("take_back", {"game": game})
    page.wait_for_selector(".entry.here[data-id='1']")

    page.click("text=Take over")
    page.wait_for_selector(".watched", state="hidden")
    page.click("text=Take back")
    page.wait_for_selector(".entry.here[data-id='0']")
    with pytest.raises(CallFault, match="A person took this game over"):
        desk.call("play", {"game": game, "moves": [NEXT]})
    assert not desk.call("show", {"game": game}).data["yours"]
