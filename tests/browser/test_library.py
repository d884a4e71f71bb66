"""Library and Compare in a real browser: what a person does with what was played and measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.measure.exchange import to_line
from dojo_core.measure.records import Records
from dojo_core.study.study import Study, read_study
from tests.browser.playing import expect
from tests.test_comparing import SPEC, comparisons, until
from tests.test_library import record

OWN_SERVER = True  # records are put into its data
pytestmark = pytest.mark.thorough  # test_library.py, test_exchange.py, test_comparing.py

XSS = "<img src=x onerror=window.hit=1>**bold**"


@pytest.fixture
def library(tab: Any, server: Any) -> Iterator[Any]:
    """The Library page, with two records, the newer one of a player with a nasty name."""
    with Records(server.home / "records.sqlite") as records:
        records.add_all([record(8e-6, time=1.0), record(4e-6, "join_scopes m@0", player=XSS, time=2.0)])
    tab.goto(f"{server.url}/library")
    tab.wait_for_selector("[data-testid=stDataFrame]")
    yield tab
    assert tab.evaluate("window.hit === undefined")


def choose(page: Any, row: int) -> None:
    """Tick a row of the table, which is a canvas, once it is one (a rerun may show two) and rests."""
    before = table = None
    for _ in range(100):
        tables = page.locator("[data-testid=stDataFrame]").element_handles()
        table = tables[0].bounding_box() if len(tables) == 1 else None
        if table is not None and table == before:
            break
        before = table
        page.wait_for_timeout(300)
    assert table is not None, "The table of the Library page never came to rest."
    page.mouse.click(table["x"] + 18, table["y"] + 35 * row + 53)


def taken(page: Any, button: str) -> Study:
    """The study that a press of the button saves, which is a sound one."""
    with page.expect_download() as saved:
        page.get_by_role("button", name=button).click()
    return read_study(Path(saved.value.path()).read_text(encoding="utf-8"), Path("taken.md"))


def test_a_record_is_opened_on_the_board_and_deleting_is_undone(library: Any) -> None:
    page = library
    expect(page.locator(".dojo-bar a[aria-current=page]")).to_have_text("Library")
    choose(page, 0)
    page.wait_for_selector("text=1 chosen")
    page.get_by_role("button", name="Delete").click()
    page.wait_for_selector("text=Deleted 1 record.")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("text=Deleted 1 record.", state="detached")
    choose(page, 0)
    page.wait_for_selector("text=1 chosen")
    study = taken(page, "A study")
    assert [str(each.move) for each in study.chapters[0].game.line()[1:]] == ["join_scopes m@0"]
    page.get_by_role("button", name="Open on the board").click()
    page.wait_for_selector(".entry >> nth=1")
    expect(page.locator(".entry.here")).to_contain_text("join_scopes")
    assert "/library" not in page.url
    # and back: the game is still the player's
    page.click(".dojo-bar a >> text=Library")
    page.wait_for_selector(".dojo-bar .game >> text=softmax 96x32")


def test_what_is_imported_is_a_claim_and_a_broken_file_a_sentence(library: Any, tmp_path: Path) -> None:
    page = library
    game = Game.new(kernels.get("softmax").program((96, 32)), "softmax", "96x32", title=XSS)
    game.play("join_scopes m@0")
    files = {
        "a.dojo": game.to_text(),
        "b.jsonl": to_line(record(1e-6, "parallelize m@0", fingerprint="elsewhere", machine="{}")),
        "c.dojo": "dojo game 1\nnonsense",
    }
    long = ["x" * 5_000] * 400  # two megabytes
    files["d.dojo"] = "\n".join(["dojo game 1", *long])
    others = [
        record(1e-6, "parallelize m@0", time=1.7e9 + n, message=words) for n, words in enumerate(long, 1)
    ]
    files["e.jsonl"] = "\n".join(map(to_line, others))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    page.get_by_role("button", name="Import").click()
    page.locator("input[type=file]").set_input_files([tmp_path / name for name in files])
    page.wait_for_selector("text=Replayed 1 move through the legality checks.")
    for said in (
        "1 new record, 0 known already. Their times are claims",
        "unknown line",
        "d.dojo is larger than 512 KB: no game is.",
        "400 new records, 0 known already.",
    ):
        expect(page.locator("p.notice").first).to_contain_text(said)
    page.get_by_text("Games", exact=True).click()
    page.get_by_placeholder("Title, kernel or player").wait_for()


def test_a_comparison_that_is_kept_becomes_a_study(tab: Any, server: Any) -> None:
    start = kernels.get("softmax").program((96, 32)).text
    kept = comparisons(server.home / "comparisons").start(replace(SPEC, start=start))
    until(kept, lambda each: not each.open)
    tab.goto(f"{server.url}/compare")
    tab.get_by_role("combobox", name="Comparisons that were made").click()
    tab.get_by_role("option", name="softmax 96x32").click()
    study = taken(tab, "A study")
    assert study.title == "softmax 96x32, side by side"


@pytest.mark.soak  # test_comparing.py looks at what is measured and kept, test_pages.py at the page
def test_programs_are_compared_and_taken_along(tab: Any, server: Any) -> None:
    tab.goto(f"{server.url}/compare")
    tab.get_by_label("Shape (").fill("96x32")
    tab.get_by_label("Shape (").press("Enter")
    tab.get_by_role("spinbutton", name="Rounds").fill("3")
    tab.get_by_role("spinbutton", name="Rounds").press("Enter")
    tab.get_by_role("button", name="Measure").click()
    tab.wait_for_selector("text=Samples", timeout=400_000)
    kept = list((server.home / "comparisons").glob("*.json"))
    document = json.loads(kept[0].read_text())
    rows = {e["entry"]: e for e in document["reports"][0]["entries"]}
    assert rows["start"]["verified"] and rows["start"]["min"] > 0
    assert rows["torch"]["status"] in ("ok", "missing") and len(rows) > 2
    with tab.expect_download() as saved:
        tab.get_by_role("button", name="CSV", exact=True).click()
    text = Path(saved.value.path()).read_text()
    assert text.splitlines()[0].endswith("fingerprint,machine") and document["fingerprint"] in text
    tab.get_by_text("C", exact=True).click()
    tab.wait_for_selector(".difference .line:has-text('for (int')")
