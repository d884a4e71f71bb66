"""The states of a class: as its teacher and as a student have it, each in a browser of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STEP = "One loop for both"


def made(page: Any) -> None:
    """Given a step and a page elsewhere, without students yet."""
    page.fill(".make input", "Compilers, Monday")
    page.click("text=Make a class")
    page.wait_for_selector(".code")
    page.click("text=Give something")
    page.get_by_label("Lesson or puzzles").select_option("02-fusion")
    page.get_by_label("Step", exact=True).select_option(label=STEP)
    page.locator(".give form button").first.click()
    page.wait_for_selector(f".given a >> text={STEP}")
    page.fill(".give [type=url]", "https://example.org/a-study-of-softmax.html")
    page.fill(".give label:has-text('What it is called') input", "Softmax, told")
    page.locator(".give form button").last.click()
    page.wait_for_selector(".given a >> text=Softmax, told")


def attended(page: Any) -> None:
    """Two students: one with wrong moves, the step done and a game to look at, one who has just begun."""
    made(page)
    link = page.get_by_label("Link for students").input_value()
    with _another_browser(page) as ada:
        _play_a_move(ada, link)
        _join(ada, link, "Ada Lovelace")
        _work(ada)
        ada.click("nav a >> text=Class")
        ada.click("[data-class]")
        ada.click("text=Show it")
        ada.wait_for_selector("text=Take back")
    with _another_browser(page) as bo:
        _join(bo, link, "Bo")
        bo.click(f"a.open >> text={STEP}")
        bo.wait_for_selector(".row[data-move]")
    page.wait_for_selector("h2 >> text=2 students")
    page.wait_for_selector("table.steps >> text=1 of 2")
    page.locator("table.students summary").first.click()


def joined(page: Any) -> None:
    """As a student, with the step done; a game can be shown."""
    with _another_browser(page) as teacher:
        teacher.goto(page.url)
        made(teacher)
        link = teacher.get_by_label("Link for students").input_value()
    _join(page, link, "Ada Lovelace")
    _work(page)
    page.click("nav a >> text=Class")
    page.locator("[data-class]").last.click()
    page.wait_for_selector("text=1 of 1 done ✓")
    page.click("text=Show it")
    page.wait_for_selector("text=Take back")


def mistaken(page: Any) -> None:
    """A code that no class has, in the address."""
    page.fill(".code-field", "BCDF-GHJK")
    page.get_by_label("Your name").fill("Ada Lovelace")
    page.click("button >> text=Join")
    page.wait_for_selector(".said.fault")


def asked_to_delete(page: Any) -> None:
    made(page)
    page.click("text=Delete the class")
    page.wait_for_selector("text=Delete it with all its students?")


@contextmanager
def _another_browser(page: Any) -> Iterator[Any]:
    context = page.context.browser.new_context(viewport=page.viewport_size)
    yield context.new_page()
    context.close()


def _join(page: Any, link: str, name: str) -> None:
    page.goto(link)
    page.get_by_label("Your name").fill(name)
    page.click("button >> text=Join")
    page.wait_for_selector("h2 >> text=For you")


def _work(page: Any) -> None:
    """The step: a move that is refused, one that is not it, then the one that is."""
    page.click(f"a.open >> text={STEP}")
    page.wait_for_selector(".row[data-move]")
    for call, seen in (("reuse_dims t 0", ".told.refused"), ("split_scope t@0 16", ".told.note")):
        _type(page, call)
        page.wait_for_selector(seen)
    page.click("text=Reset")
    page.wait_for_selector(".entry.here[data-id='0']")
    _type(page, "join_scopes t@0")
    page.wait_for_selector(".state.done")


def _play_a_move(page: Any, link: str) -> None:
    """A game of one move, on Play."""
    page.goto(link.partition("/class")[0])
    page.fill("[data-kernel=relu] input", "8x64")
    page.click("[data-kernel=relu] button")
    page.locator(".row[data-move] .apply").first.click()
    page.wait_for_selector(".entry >> nth=1")


def _type(page: Any, call: str) -> None:
    page.fill("input[type=search]", call)
    page.locator("input[type=search]").press("Enter")
