"""A study's page, opened from a file: no server, no network; arrows, questions, the fork, words of others."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from dojo_core.study.page import study_page
from dojo_core.study.sheets import study_data
from dojo_core.study.study import read_study
from dojo_core.study.times import Times
from tests.browser.playing import expect
from tests.test_studies import STUDY

A4 = {"width": 688, "height": 1001}  # CSS pixels of a page within its margins
HOSTILE = "<img src=x onerror=\"document.title='taken'\"> </script><script>document.title='taken'</script>"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = read_study(
        STUDY.replace("Two loops, **one**", f"{HOSTILE} [a page](https://example.org/) Two loops, **one**"),
        Path("two.md"),
    )
    (game,) = study.games
    hashes = [position.program.hash for position in game.positions.values()]
    fast = Times(
        "a" * 16, "Fast machine", "2026-11-27", {h: [8e-6 / (n + 1), 9e-6] for n, h in enumerate(hashes)}
    )
    slow = Times("b" * 16, "Slow machine", "2026-11-26", {hashes[0]: [4e-5, 4e-5]})
    made = tmp_path_factory.mktemp("study") / "two.html"
    made.write_text(study_page(study_data(study, [fast, slow])), encoding="utf-8")
    return made


@pytest.fixture
def study(chromium: Any, file: Path) -> Any:
    page, faults, asked = chromium.new_page(), list[str](), list[str]()
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector(".words h1")
    yield page
    asked = [url for url in asked if not url.startswith(("blob:", "data:"))]
    page.close()
    assert not faults, faults
    assert asked == [file.as_uri()], "nothing is fetched but the file"


def expect_time(page: Any, time: str) -> None:
    expect(page.locator(".metric-time .metric-value")).to_have_text(time)


def test_a_study_opens_from_a_file_and_its_question_holds_up_until_it_is_answered(study: Any) -> None:
    expect_time(study, "8.00 µs")
    expect(study.locator(".body h2")).to_have_text("One loop")
    expect(study.locator(".body")).to_contain_text(HOSTILE)
    expect(study).to_have_title("Two loops")

    study.keyboard.press("ArrowRight")
    study.wait_for_selector("text=A question stands here")
    expect_time(study, "8.00 µs")
    expect(study.locator("text=Next ›")).to_be_disabled()

    study.click(".answer:has-text('vectorize')")
    study.wait_for_selector(".why:has-text('Later.')")
    expect(study.locator("text=Next ›")).to_be_disabled()
    study.click(".answer:has-text('join_scopes')")
    study.keyboard.press("ArrowRight")
    study.wait_for_selector("h3:has-text('Fusion')")
    expect_time(study, "4.00 µs")
    expect(study.locator(".metric-gain")).to_contain_text("2.00×")

    study.click("text=Give up: show the answer")
    study.wait_for_selector("text=The Dojo says: A vectorised scope wraps exactly one operation")
    study.click("text=Next ›")
    study.wait_for_selector("p:has-text('Another way.')")
    expect(study.locator(".body")).to_contain_text("a variation")
    study.select_option("[aria-label=Chapter]", label="2. On")
    study.wait_for_selector("p:has-text('It goes on after the variation.')")


def test_times_are_those_of_the_machine_that_is_chosen_and_a_fork_leads_to_ones_own(study: Any) -> None:
    study.select_option("[aria-label=Machine]", label="Slow machine, 2026-11-26")
    study.wait_for_selector(".metric-time .metric-value:has-text('40.0 µs')")
    expect(study.locator(".body tbody td")).to_have_text(
        ["Fast machine, 2026-11-27", "8.00 µs", "1.00×", "Slow machine, 2026-11-26", "40.0 µs", "1.00×"]
    )
    study.click("button:text-is('Fork')")
    link = study.locator("a:has-text('Open it there')")
    expect(link).to_have_attribute("href", re.compile(r"^http://127\.0\.0\.1:8501/\?g="))
    study.fill("[aria-label='Address of your Dojo']", "javascript:alert(1)")
    expect(link).not_to_have_attribute("href", re.compile(""))
    with study.expect_download() as saved:
        study.click("text=Save the game as a file")
    assert Path(saved.value.path()).read_text(encoding="utf-8").startswith("dojo game 1\n")


@pytest.mark.thorough  # a fork leads to a game of one's own: above
def test_a_fork_is_played_on_with_the_authors_times_beside_ones_own(
    study: Any, tab: Any, server: Any
) -> None:
    study.click(".answer:has-text('join_scopes')")
    study.click("text=Next ›")
    study.wait_for_selector("h3:has-text('Fusion')")
    study.click("button:text-is('Fork')")
    study.fill("[aria-label='Address of your Dojo']", server.url)
    tab.goto(str(study.locator("a:has-text('Open it there')").get_attribute("href")))
    tab.wait_for_selector("text=The author's time here: 4.00 µs, 2.00× (Fast machine, 2026-11-27)")
    tab.wait_for_selector(".entry.here >> text=join_scopes t@0")
    tab.reload()
    tab.wait_for_selector("text=The author's time here: 4.00 µs")


def test_it_stands_in_a_frame_of_a_page_of_another_origin(chromium: Any, file: Path) -> None:
    page = chromium.new_page()
    frame = "<!doctype html><iframe src='https://studies.example/two.html' width=1000 height=700></iframe>"
    built = file.read_text(encoding="utf-8")
    page.route("https://paper.example/", lambda route: route.fulfill(body=frame, content_type="text/html"))
    page.route("https://studies.example/*", lambda route: route.fulfill(body=built, content_type="text/html"))
    page.goto("https://paper.example/")
    study = page.frame_locator("iframe")
    study.locator(".answer:has-text('join_scopes')").click()
    study.locator("text=Next ›").click()
    study.locator("h3:has-text('Fusion')").wait_for()
    page.close()


def test_on_a_phone_words_and_board_take_turns_and_print_has_every_position(study: Any) -> None:
    study.set_viewport_size({"width": 390, "height": 844})
    expect(study.locator("section.words")).to_be_visible()
    study.click(".dock [data-pane=program]")
    study.wait_for_selector("#pane-program .line:has-text('t[{0}]')")
    expect(study.locator("section.words")).to_be_hidden()
    assert study.evaluate("document.documentElement.scrollWidth") <= 390

    study.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(study.locator(".print .stop")).to_have_count(5)
    expect(study.locator(".print")).to_contain_text(
        "Move 1: join_scopes t@0; 4.00 µs, 2.00× (Fast machine, 2026-11-27)"
    )


def pages_of(pdf: bytes) -> list[int]:
    """How many pieces of text each page of a PDF of Chromium's shows."""
    parts = {
        int(number): body for number, body in re.findall(rb"\n(\d+) 0 obj\n(.*?)\nendobj", pdf, re.DOTALL)
    }
    shown = []
    for body in parts.values():
        if b"/Type /Page\n" in body and (drawn := re.search(rb"/Contents (\d+) 0 R", body)):
            packed = parts[int(drawn[1])].partition(b"stream\n")[2]
            shown.append(len(re.findall(rb"T[jJ]\b", zlib.decompressobj().decompress(packed))))
    return shown


def test_on_paper_nothing_is_cut_no_page_is_empty_and_links_can_be_read(chromium: Any, file: Path) -> None:
    page = chromium.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("#study[data-whole]")
    shown = pages_of(page.pdf(format="A4", prefer_css_page_size=True))
    assert 1 < len(shown) < 5 and min(shown) > 10, shown
    page.set_viewport_size(A4)
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    cut = """() => [...document.querySelectorAll('.print *')]
      .filter((part) => part.scrollWidth > Math.max(part.clientWidth, part.offsetWidth) + 1).length"""
    assert page.evaluate(cut) == 0
    told = "(link) => getComputedStyle(link, '::after').content"
    assert page.locator(".print a >> text=a page").evaluate(told) not in ("none", "normal")
    page.close()
