"""The page Learn: every lesson's solution is played through it, on the real board; progress; a review."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dojo_core.school.lesson import TRY, Lesson, Step
from dojo_core.school.school import LESSONS_FOLDER, open_school
from tests.browser.playing import Way, apply, expect, open_means, play, until_it_rests, wait_for_entries

# That each can be solved is test_school.py's matter. Of what the page does with a step these have all: a
# question, a move that is refused, a goal that is measured, a lesson's end. make soak plays the others.
PLAYED = [
    pytest.param("02-fusion", slice(0, 2), id="a question and a refusal"),
    pytest.param("05-tiling", slice(2, 3), id="a measured goal", marks=pytest.mark.thorough),
    pytest.param("05-tiling", slice(6, 7), id="the end", marks=pytest.mark.thorough),
    *(
        pytest.param(file.stem, slice(0, None), id=file.stem, marks=pytest.mark.soak)
        for file in sorted(LESSONS_FOLDER.glob("[0-9]*.md"))
    ),
]
# The page's clock runs fifty times as fast.
HURRY = "() => { const { now } = Date, begun = now(); Date.now = () => now() + 49 * (now() - begun); }"


@pytest.fixture(scope="module")
def lessons() -> dict[str, Lesson]:
    return {lesson.id: lesson for lesson in open_school([LESSONS_FOLDER]).lessons}


@pytest.fixture
def learn(tab: Any, server: Any) -> Iterator[Any]:
    tab.goto(f"{server.url}/learn")
    tab.wait_for_selector("[data-lesson]")
    yield tab


def at(page: Any, step: Step) -> None:
    """Wait until a step and its position are there."""
    page.locator(".text h1", has_text=re.compile(f"^{re.escape(step.title)}$")).wait_for()
    page.wait_for_selector(f"h1:text-is('{step.title}') >> nth=-1")
    page.wait_for_selector(".entry.here[data-id='0']")
    page.wait_for_selector(".row[data-move]")


def open_step(tab: Any, server: Any, step: str) -> None:
    tab.goto(f"{server.url}/learn")
    tab.locator(f"[data-step='{step}']").click()
    tab.wait_for_selector(".row[data-move]")


def type_move(page: Any, move: str) -> None:
    page.fill("input[type=search]", move)
    page.locator("input[type=search]").press("Enter")


def solve(page: Any, step: Step) -> None:
    """Play a step's solution as a person would who types the moves."""
    if step.question is not None:
        right = next(n for n, answer in enumerate(step.question.answers) if answer.right)
        page.locator(".answer").nth(right).click()
    for number, move in enumerate(step.solution):
        if move.startswith(TRY):
            words = move.removeprefix(TRY)
            type_move(page, words)
            page.locator(".told.refused code", has_text=words).first.wait_for()
        else:
            type_move(page, move)
            played = sum(not each.startswith(TRY) for each in step.solution[: number + 1])
            page.wait_for_function(
                "n => document.querySelectorAll('[data-testid=stBidiComponentIsolated]').values()"
                ".some(e => e.shadowRoot.querySelectorAll('.entry').length > n)",
                arg=played,
            )


@pytest.mark.parametrize(("lesson", "part"), PLAYED)
def test_a_lesson_is_played_from_step_to_step(
    learn: Any, lessons: dict[str, Lesson], lesson: str, part: slice
) -> None:
    steps = lessons[lesson].steps[part]
    learn.locator(f"[data-step='{steps[0].id}']").click()
    for step in steps:
        at(learn, step)
        expect(learn.locator(".state")).not_to_contain_text("Done")
        solve(learn, step)
        if any(goal.measured for goal in step.goals):  # what times say is not for a test
            learn.wait_for_selector(".goals li.reached")
        else:
            learn.wait_for_selector(".state.done")
        learn.click("button.next")
    learn.locator(".text h1").filter(has_not_text=steps[-1].title).wait_for()
    learn.click("text=All lessons")
    done = sum(not any(goal.measured for goal in step.goals) for step in steps)
    learn.locator(
        f"[data-lesson='{lesson}'] .card-title", has_text=re.compile(f"{done}|{done + 1}")
    ).wait_for()


@pytest.mark.thorough  # test_tutoring.py; a question and a refusal: above
def test_a_wrong_try_is_told_hints_come_in_levels_and_the_solution_can_be_shown(learn: Any) -> None:
    learn.locator("[data-step='one-loop-for-both']").click()
    learn.wait_for_selector(".row[data-move]")
    apply(learn, "split_scope t@0 16")
    learn.wait_for_selector(".told.note >> text=Splitting one loop")
    learn.click("text=Reset")
    learn.wait_for_selector(".entry.here[data-id='0']")
    # The panel is drawn again between press and release: the button is still the one that was pressed. A
    # press holds that up for some seconds, which pass sooner here.
    learn.locator(".foot >> text=Hint").hover()
    learn.evaluate(HURRY)
    learn.mouse.down()
    type_move(learn, "reuse_dims t 0")
    learn.wait_for_selector(".told.refused >> text=clobbers")
    learn.mouse.up()
    learn.wait_for_selector(".told.hint >> nth=0")
    learn.click(".foot >> text=Another hint")
    learn.wait_for_selector(".told.hint >> nth=1")
    learn.click(".foot >> text=Show me")
    learn.click("text=Play it on the board")
    learn.wait_for_selector(".goals.all")
    # The address leads back to the step, and what was done is still done.
    learn.reload()
    learn.wait_for_selector(".state.done")
    learn.click("text=Open on Play")
    learn.wait_for_selector("nav a[aria-current=page] >> text=Play")
    learn.wait_for_selector(".entry >> text=join_scopes t@0")
    # Back leads to the lesson again, and the game stays on the board of Play.
    learn.go_back()
    learn.wait_for_selector("nav a[aria-current=page] >> text=Learn")
    learn.wait_for_selector(".state.done")
    learn.go_forward()
    learn.wait_for_selector("nav a[aria-current=page] >> text=Play")
    learn.wait_for_selector(".entry >> text=join_scopes t@0")
    learn.click(".dojo-bar a >> text=Learn")
    learn.click("text=All lessons")
    learn.locator("[data-step='one-loop-for-both'] >> text=with the solution").wait_for()


@pytest.mark.thorough  # where the server is slow; a press at its own page: test_play.py
def test_what_is_pressed_while_another_page_is_on_its_way_does_not_call_this_one_back(
    tab: Any, way: Way, server: Any
) -> None:
    open_step(tab, server, "one-loop-for-both")
    with way.slow():
        tab.click("text=Open on Play")
        way.until_held(tab)  # the server has left for Play; the page does not know
        said = len(way.held)
        tab.click(".foot >> text=Hint")
        way.until_held(tab, said)
    tab.wait_for_selector("nav a[aria-current=page] >> text=Play")
    tab.wait_for_selector(".row[data-move]")
    until_it_rests(tab)  # and it stays
    expect(tab.locator("nav a[aria-current=page]")).to_have_text("Play")
    wait_for_entries(tab, 1)
    expect(tab.locator(".learn")).to_have_count(0)


@pytest.mark.thorough  # as above
def test_a_button_pressed_when_the_next_step_comes_is_pressed(tab: Any, way: Way, server: Any) -> None:
    open_step(tab, server, "one-line-one-loop")
    with way.slow():
        tab.click("button.next")
        way.until_held(tab)
        tab.hover("text=All lessons")
        tab.mouse.down()
    tab.wait_for_url(lambda url: "one-line-one-loop" not in url)  # the next step has come
    tab.wait_for_selector("[data-test-script-state=notRunning]")
    tab.mouse.up()
    tab.wait_for_selector("[data-lesson] .card-title")


@pytest.mark.thorough  # test_school.py
def test_a_word_is_explained_where_it_stands(learn: Any) -> None:
    learn.locator("[data-step='one-line-one-loop']").click()
    learn.click("button.term >> text=scope")
    learn.wait_for_selector("dialog[open] .entry h2 >> text=Scope")
    learn.click("dialog >> text=All words")
    learn.fill("dialog input", "cache")
    expect(learn.locator("dialog .entry h2")).to_have_text(["Cache", "Cache line"])


@pytest.mark.thorough  # test_tutoring.py and test_verdicts.py
def test_a_game_is_reviewed_in_one_click(page: Any, server: Any) -> None:
    open_means(page)
    play(page)
    game = page.url.partition("g=")[2]
    page.goto(f"{server.url}/learn?review={game}")
    page.wait_for_selector("h1 >> text=Review: reducemean")
    page.wait_for_selector("text=/be compared/")  # with or without times, as far as they have come
    page.goto(f"{server.url}/learn?review=nothing")
    page.wait_for_selector("text=no saved game")
