"""Watch in a real browser: two agents side by side, taken over from, found again, replayed; and the tour."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.playing import Way, expect, until_it_rests
from tests.browser.test_library import taken


def start(page: Any, url: str, agents: int) -> None:
    """Searches on a small kernel without a clock: each has a core until it is paused."""
    page.goto(f"{url}/watch")
    page.get_by_label("Shape").fill("8x32")
    page.get_by_label("Shape").press("Enter")
    page.get_by_text("operations counted").click()
    count = page.get_by_role("spinbutton", name="Programs")
    count.fill("20000")
    count.press("Enter")
    if agents > 1:
        page.get_by_role("combobox", name="Beside it").click()
        page.get_by_role("option", name="sampling-edges").click()
    page.wait_for_timeout(700)  # the last choice has reached the server
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector(f".lane >> nth={agents - 1} >> .log [data-entry]")


@pytest.mark.thorough  # test_watching.py has the page, test_jobs.py runs that are paused, stopped and found
@pytest.mark.parametrize("agents", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_agents_are_paused_stopped_found_and_taken_over(tab: Any, way: Way, server: Any, agents: int) -> None:
    last = agents - 1
    start(tab, server.url, agents)
    if agents > 1:
        tab.locator(".lane").nth(last).locator("[data-do=pause]").click()
        tab.wait_for_selector(f".lane >> nth={last} >> text=paused")
    tab.locator("h1").first.click()
    tab.keyboard.press(" ")  # all that run; the other stays as it is
    for each in range(agents):
        tab.wait_for_selector(f".lane >> nth={each} >> text=paused")
    watched = tab.url
    tab.get_by_role("button", name="All runs").click()  # the page is left, the runs are not
    tab.wait_for_selector("text=annealing-lines, seed 0")
    tab.goto(watched)
    lane = tab.locator(".lane").nth(last)
    value = lane.locator(".metric .value").first
    before = value.inner_text()
    lane.locator("[data-do=step]").click()
    expect(value).not_to_have_text(before)
    for each in range(agents):
        tab.locator(".lane").nth(each).locator("[data-do=stop]").click()
        tab.wait_for_selector(f".lane >> nth={each} >> text=stopped")
    lane.locator(".line [data-ply='1']").click()
    tab.wait_for_selector(f".lane >> nth={last} >> text=after 1 of")
    with way.slow():  # a timer that fires while Play is on its way takes nothing from it
        lane.locator("[data-do=take_over]").click()
        way.until_held(tab)
        way.until_asked(tab, way.asked)  # Watch looks again each second: its page does not know yet
    tab.wait_for_selector(".entry.here")
    tab.wait_for_selector(".row[data-move]")
    until_it_rests(tab)
    expect(tab.locator(".entry.here")).to_have_count(1)
    expect(tab.locator(".lane")).to_have_count(0)
    expect(tab.locator(".entry").nth(1)).to_be_visible()
    expect(tab).to_have_url(re.compile("g="))


@pytest.mark.thorough  # test_recorded_policy.py, test_learned_hints.py; replayed by keys: below
def test_a_policy_is_watched_on_a_kernel_it_never_saw_and_asked_for_hints(tab: Any, server: Any) -> None:
    tab.goto(f"{server.url}/watch?demo=axpy-line")
    place = tab.get_by_label("Place in the recording")
    place.fill("6")
    place.dispatch_event("change")
    expect(tab.locator(".metrics")).to_contain_text("99.6% reached")
    tab.locator(".line [data-ply='1']").click()
    row = tab.locator("table.learned tr.played")
    expect(row).to_contain_text("set_location ap register")
    expect(row.locator(".number")).to_have_text("99%")
    expect(row.locator(".changes .added")).to_contain_text("ap f64 [] register")
    tab.locator("[data-do=take_over]").click()
    tab.wait_for_selector(".row[data-move]")
    tab.get_by_role("button", name="Hint").first.click()
    likeliest = tab.locator("[data-learned]").first
    expect(likeliest).to_be_visible()  # a policy is loaded, once
    expect(tab.locator(".drawer .learned")).to_contain_text(re.compile(r"It has .* this kernel"))
    move = likeliest.get_attribute("data-learned")
    likeliest.click()
    expect(tab.locator(".entry.here")).to_contain_text(move)


@pytest.mark.thorough  # a line by keys: test_play.py
def test_a_recording_is_stepped_by_keys(tab: Any, server: Any) -> None:
    tab.goto(f"{server.url}/watch?demo=softmax-by-hand")
    tab.wait_for_selector(".replay >> text=of 11")
    tab.click(".replay >> text=Pause")
    tab.wait_for_selector(".replay >> text=Play")  # it rests; until then the place goes on
    tab.locator("h1").first.click()
    at = int(tab.inner_text(".replay .where").split()[0])
    tab.keyboard.press("ArrowRight")
    tab.wait_for_selector(f".replay >> text={at + 1} of 11")
    tab.keyboard.press("ArrowLeft")
    tab.wait_for_selector(f".replay >> text={at} of 11")
    expect(tab.locator(".program .op").nth(3)).to_be_attached()


@pytest.mark.thorough  # test_studies.py has studies of runs
def test_a_recording_is_taken_along_as_a_study(tab: Any, server: Any) -> None:
    tab.goto(f"{server.url}/watch?demo=softmax-by-hand")
    tab.wait_for_selector(".replay >> text=of 11")
    study = taken(tab, "A study of")
    assert len(study.chapters[0].game.line()) > 5


def test_the_tour_leads_through(tab: Any, server: Any) -> None:
    """Each of its stations: test_tour.py."""
    tab.goto(f"{server.url}/tour")
    tab.wait_for_selector("text=Five loops go over the whole matrix")
    tab.get_by_role("button", name="Next").click()
    tab.wait_for_selector("text=Ten moves that a player made")
    tab.get_by_role("button", name="5. In a model").click()
    tab.wait_for_selector("text=dojo export")
    expect(tab.get_by_role("button", name="Next")).to_be_disabled()


@pytest.mark.thorough  # its stations: test_tour.py; lines that are opened on Play: test_learn.py
def test_what_the_tour_shows_is_measured_here(tab: Any, server: Any) -> None:
    tab.goto(f"{server.url}/tour?station=4")
    tab.get_by_role("button", name="Measure it on this machine").click()
    tab.wait_for_selector("text=/the board, move [1-9]/")  # the agent's program is the first that is offered
