"""The page Class, the whole way: a teacher makes a class, two students join and play, the teacher sees it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Server, forget
from tests.browser.playing import NAME, TELEPHONE, expect, markup, play
from tests.browser.test_learn import type_move
from tests.screens.looks import Window, findings

STEP = "One loop for both"


def make_class(page: Any, server: Server) -> str:
    """A class that was given a step; the link for its students."""
    page.goto(f"{server.url}/class")
    page.fill(".make input", f"Compilers {NAME}")
    page.click("text=Make a class")
    page.wait_for_selector(".code")
    page.click("text=Give something")
    page.get_by_label("Lesson or puzzles").select_option("02-fusion")
    page.get_by_label("Step", exact=True).select_option(label=STEP)
    page.locator(".give form button").first.click()
    page.wait_for_selector(f".given a >> text={STEP}")
    return str(page.get_by_label("Link for students").input_value())


def join(page: Any, link: str, name: str) -> None:
    page.goto(link)
    page.get_by_label("Your name").fill(name)
    page.click("button >> text=Join")
    page.wait_for_selector("h2 >> text=For you")


@pytest.mark.thorough  # test_classes.py; a shorter way through the pages: below
def test_a_teacher_sees_what_students_play_and_students_see_their_own(tab: Any, server: Server) -> None:
    link = make_class(tab, server)
    tab.get_by_label("Link for the teacher").wait_for()
    key = tab.get_by_label("Link for the teacher").input_value()
    teachers = tab.context.cookies(server.url)

    # Ada, by the link: a wrong move, one that is refused, then the right one
    forget(tab, server)
    join(tab, link, "Ada")
    tab.click(f"a.open >> text={STEP}")
    tab.wait_for_selector(".row[data-move]")
    type_move(tab, "reuse_dims t 0")
    tab.wait_for_selector(".told.refused")
    type_move(tab, "split_scope t@0 16")
    tab.wait_for_selector(".told.note")
    tab.click("text=Reset")
    tab.wait_for_selector(".entry.here[data-id='0']")
    type_move(tab, "join_scopes t@0")
    tab.wait_for_selector(".state.done")
    tab.click("nav a >> text=Class")
    tab.click(f"[data-class] >> text=Compilers {NAME[:8]}")
    tab.wait_for_selector("text=1 of 1 done ✓")
    adas = tab.context.cookies(server.url)

    # another of that name, on a telephone, by the code: nothing of the first one is told
    forget(tab, server)
    tab.set_viewport_size(TELEPHONE)
    tab.goto(f"{server.url}/class")
    tab.get_by_label("Code").fill(link.partition("code=")[2].lower())
    tab.get_by_label("Your name").fill("Ada")
    tab.click("button >> text=Join")
    tab.wait_for_selector("text=You are Ada (2) in this class.")
    tab.wait_for_selector("text=0 of 1 done")
    tab.click(f"a.open >> text={STEP}")
    tab.wait_for_selector(".row[data-move]", state="attached")

    # the teacher, in another browser, by the link with the key, which leaves the address at once
    forget(tab, server)
    tab.goto(key)
    tab.wait_for_selector("h2 >> text=2 students")
    assert "key=" not in tab.url and markup(tab) == []
    table = tab.locator("table.students")
    expect(table.locator("tr", has_text="Ada").first).to_contain_text("1 of 1")
    for tried in ("1 of 2", "reuse_dims t 0 refused", "split_scope t@0 16"):
        expect(tab.locator("table.steps")).to_contain_text(tried, use_inner_text=True)
    assert findings(tab, [Window(390, 844), Window(1280, 800)], rest=50) == {}
    with tab.expect_download() as saved:
        tab.click("text=Download as CSV")
    lines = list(csv.DictReader(Path(saved.value.path()).read_text(encoding="utf-8-sig").splitlines()))
    assert [(line["student"], bool(line["reached"])) for line in lines] == [("Ada", True), ("Ada (2)", False)]

    # a student is deleted, and then the class: who was in it is told so
    row = table.locator("tr", has_text="Ada (2)")
    row.locator("button").click()
    row.locator("button >> text=Delete Ada (2)?").click()
    tab.wait_for_selector("h2 >> text=1 student")
    watched = table.locator("a").first.get_attribute("href")
    tab.goto(str(watched))
    tab.wait_for_selector(".watched >> text=belongs to another browser")
    forget(tab, server)
    tab.context.add_cookies(teachers)
    tab.goto(link)
    tab.click("text=Delete the class")
    tab.click("text=Delete it with all its students?")
    tab.wait_for_selector(".make")
    forget(tab, server)
    tab.context.add_cookies(adas)
    tab.goto(link)
    tab.wait_for_selector("button >> text=Join")
    tab.get_by_label("Your name").fill("Ada")
    tab.click("button >> text=Join")
    tab.wait_for_selector(".said.fault >> text=letter by letter")


def test_on_a_projector_nothing_is_left_but_the_board_until_it_is_left(small_board: Any) -> None:
    page, aside = small_board, ("nav a", ".pane.code", ".history-pane", "text=New game")
    height = page.locator(".play").bounding_box()["height"]
    row = page.locator(".program .line.op").first
    before = row.bounding_box()["height"]
    page.click("button >> text=Projector")
    for each in aside:
        expect(page.locator(each).first).to_be_hidden()
    assert row.bounding_box()["height"] > 1.4 * before
    assert height <= page.locator(".play").bounding_box()["height"] <= 800  # the window's
    play(page)
    page.click("text=Leave projector mode")
    for each in aside:
        expect(page.locator(each).first).to_be_visible()
    assert abs(row.bounding_box()["height"] - before) < 1


def test_a_class_is_made_and_joined(tab: Any, server: Server) -> None:
    link = make_class(tab, server)
    forget(tab, server)
    join(tab, link, "Ada")
    tab.wait_for_selector("text=You are Ada in this class.")
    tab.wait_for_selector(f"a.open >> text={STEP}")
    assert markup(tab) == []


@pytest.mark.thorough  # test_classes_elsewhere.py; how a class is made and joined: above
def test_a_dojo_of_ones_own_tells_the_teachers(tab: Any, server: Server) -> None:
    """Here both are one server by two names; they speak over a socket all the same."""
    link = make_class(tab, server)
    elsewhere = link.replace("127.0.0.1", "localhost")
    tab.goto(f"{server.url}/class")
    tab.get_by_label("Code").fill(elsewhere)
    tab.get_by_label("Your name").fill("Ada")
    tab.click("button >> text=Join")
    tab.wait_for_selector("text=This class is at http://localhost")
    tab.click(f"a.open >> text={STEP}")
    tab.wait_for_selector(".row[data-move]")
    type_move(tab, "join_scopes t@0")
    tab.wait_for_selector(".state.done")
    tab.goto(link)  # the same browser teaches the class
    tab.wait_for_selector("table.students >> text=1 of 1")
    tab.goto(str(tab.locator("table.students a").first.get_attribute("href")))
    tab.wait_for_selector("text=Replayed 1 move through the legality checks.")
