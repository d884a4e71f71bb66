"""What outlives a server that is killed: the games, what was learned, the tabs that are left open. No process
does, and what crashed before is not run again after.

It is killed once for all that is tried here, since a start takes seconds.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dojo_core import apply as applied
from dojo_core import kernels
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Record, Records
from dojo_core.targets.cpu.build import code_hash
from dojo_core.targets.cpu.codegen import generate
from tests.browser.playing import BOARD, MOVE, expect, open_means, play, wait_for_entries
from tests.browser.wire import Wire
from tests.test_packages import laid_out, package

OWN_SERVER = True  # it is killed
# What is kept whoever is killed: test_records.py, test_service.py; what ends with it: test_measure.py.
pytestmark = pytest.mark.thorough


@dataclass
class Left:
    """Two tabs that were open when the server was killed, the first one's address, and what did not end."""

    play: Any
    learn: Any
    game: str
    processes: list[str]


def processes_at(home: Path) -> list[str]:
    """The commands of the processes that work on a data directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"DOJO_HOME={home}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
    return found


def record_crashes(home: Path) -> None:
    """Two of what a move of the means of 8x64 leads to."""
    start = kernels.get("reducemean").program((8, 64))
    program = applied(start, MOVE)
    with Records(home / "records.sqlite") as records:
        for when in (1.0, 2.0):
            records.add(
                Record(
                    program.hash, program.text, start.hash, "reducemean", "8x64", "f32", "reassoc", MOVE,
                    "cpu", this_machine().fingerprint, "", code_hash(generate(program)), "crash", False, None,
                    message="It crashed with SIGSEGV.", time=when,
                )
            )  # fmt: skip


@pytest.fixture(scope="module")
def left(chromium: Any, server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    """A game with a move in one tab, a step of a lesson that is done in another; killed, started again with
    a package more, and one that is no good."""
    board, learn = chromium.new_page(), chromium.new_page()
    faults: list[str] = []
    for each in (board, learn):
        each.on("pageerror", lambda fault: faults.append(str(fault)))
    board.goto(server.url)
    board.wait_for_selector(".card")
    open_means(board, measured=True)
    play(board)

    learn.goto(f"{server.url}/learn")
    learn.locator("[data-step='one-line-one-loop']").click()
    learn.locator(".answer").nth(0).click()
    learn.wait_for_selector(".answer.wrong")
    learn.locator(".answer").nth(1).click()
    learn.wait_for_selector(".state.done")

    server.stop(signal.SIGKILL)
    end = time.monotonic() + 300
    while (processes := processes_at(server.home)) and time.monotonic() < end:
        time.sleep(0.2)
    record_crashes(server.home)
    board.wait_for_selector(".silent >> text=does not answer")
    expect(board.locator("[data-testid=stDialog]")).to_be_hidden()
    server.packages = tmp_path_factory.mktemp("packages")
    laid_out(server.packages)
    package(server.packages, "raises", "1/0", {"dojo.moves": "knot = raises:x"})
    server.start()
    yield Left(board, learn, board.url, processes)
    board.close()
    learn.close()
    assert not faults, faults


def test_kill_9_loses_no_saved_game(left: Left) -> None:
    page = left.play.context.new_page()
    page.goto(left.game)
    page.wait_for_selector(".entry.here[data-id='1']")
    wait_for_entries(page, 2)
    page.close()


def test_a_tab_left_open_goes_on(left: Left) -> None:
    page = left.play
    page.wait_for_selector(".silent", state="hidden")  # the tab connects again by itself
    play(page, "split_scope s@0 2")
    expect(page.locator("[data-testid=stSidebar]")).to_have_count(0)
    page.reload()
    page.wait_for_selector(".entry.here[data-id='2']")


def test_progress_survives_the_server(left: Left, server: Any) -> None:
    page = left.learn
    page.goto(f"{server.url}/learn")
    page.wait_for_selector("[data-step='one-line-one-loop'] .mark.done")
    page.click("text=Go on: Reading a program")
    page.wait_for_selector(".state.done")


def test_a_server_that_is_killed_leaves_no_process_behind(left: Left) -> None:
    assert not left.processes


@pytest.mark.usefixtures("left")
def test_a_program_that_crashed_twice_is_not_run_again_after_a_restart(server: Any) -> None:
    with Wire(server.port) as wire:
        wire.event("start", kernel="reducemean", shape="8x64", policy="reassoc")
        wire.event("measure", on=True)
        row = [shown["text"] for shown in wire.board["moves"]].index(MOVE)
        end = time.monotonic() + 300
        while not isinstance(result := wire.feed["results"][row], list) and time.monotonic() < end:
            time.sleep(0.3)
            wire.look()
        assert result[0] == "refused" and result[1].startswith("Not run again: it failed 2 times here.")
        assert "SIGSEGV" in result[1]


@pytest.mark.usefixtures("left")
def test_packages_that_came_meanwhile_play_or_are_told(tab: Any, server: Any) -> None:
    tab.goto(server.url)
    tab.wait_for_selector(".packages >> text=The move knot of the package raises cannot be loaded")
    tab.select_option("select[aria-label=Target]", "abacus")
    tab.fill("[data-kernel=midpoint] input", "4x8")
    tab.click("[data-kernel=midpoint] button")
    tab.wait_for_selector(".code >> text=abacus midpoint")
    tab.keyboard.press("m")
    tab.wait_for_function(
        f"() => {BOARD}.querySelector('.metric-time .metric-value')?.textContent === '496 cycles'"
    )
    play(tab, "reverse_scope z@1")
    tab.wait_for_selector(".code >> text=down 8")
