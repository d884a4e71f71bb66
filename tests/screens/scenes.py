"""The states of the pages: where each is, and what is clicked to bring it about."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.screens.files import a_notebook, a_study

KERNEL, SHAPE = "matmul", "256x256x256"
# Many times as fast as at its start, in few moves: along the rows, in vectors, by threads.
LINE = ("interchange c#1@1", "split_scope c#1@2 16", "vectorize c#1@3", "parallelize c#1@0")
VARIATION = "split_scope c#1@0 8"  # in place of the last move
SECONDS = 240_000  # until all moves of a position are measured, milliseconds
BOARDS = "[...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]"


@dataclass(frozen=True)
class Scene:
    """A state of a page: where it is, and what is clicked there. ``act`` gets the page after it was drawn."""

    name: str
    page: str  # as in the address: "" is Play
    act: Callable[[Any], object] = lambda page: None
    query: str = ""
    game: bool = True  # is the prepared game on the board?
    after: Callable[[Any], object] = lambda page: None  # once the pictures are taken
    file: Callable[[Path], Path] | None = None  # makes it in a folder, where it is no page of the server's


def measured(page: Any) -> None:
    """Wait until all moves of the position on the board have their times."""
    page.wait_for_function(
        f"() => {BOARDS}.some((e) =>"
        " e.shadowRoot?.querySelector('.queue-text')?.textContent.startsWith('Measured'))",
        timeout=SECONDS,
    )
    page.wait_for_timeout(1000)


def type_move(page: Any, call: str) -> None:
    before = page.locator(".entry").count()
    page.fill("input[type=search]", call)
    page.locator("input[type=search]").press("Enter")
    page.wait_for_function(
        f"count => {BOARDS}.some((e) => (e.shadowRoot?.querySelectorAll('.entry').length ?? 0) > count)",
        arg=before,
    )


def clicks(*selectors: str) -> Callable[[Any], None]:
    def act(page: Any) -> None:
        for selector in selectors:
            page.locator(selector).first.click()
            page.wait_for_timeout(500)

    return act


def keys(key: str, *selectors: str) -> Callable[[Any], None]:
    """A key, then clicks."""

    def act(page: Any) -> None:
        page.keyboard.press(key)
        page.wait_for_timeout(1000)
        clicks(*selectors)(page)

    return act


def awaits(selector: str, *selectors: str) -> Callable[[Any], None]:
    """Wait for something, then click."""

    def act(page: Any) -> None:
        page.wait_for_selector(selector)
        clicks(*selectors)(page)

    return act


# ---------------------------------------------------------------------- Play


def by_gain(page: Any) -> None:
    page.select_option("select[aria-label='Order of the moves']", "gain")


def enlarged(page: Any) -> None:
    """Letters of twice their size."""
    while page.get_by_label("Larger letters").is_enabled():
        page.keyboard.press("+")
        page.wait_for_timeout(100)


def pick_line(page: Any) -> None:
    """Select an operation by its strip of colour: a click farther right would scroll the pane."""
    page.locator(".line.op").nth(1).click(position={"x": 2, "y": 8})
    page.wait_for_timeout(500)


def selected(page: Any) -> None:
    by_gain(page)
    pick_line(page)
    page.click(".row[data-move] >> nth=1")


def begun(kernel: str, shape: str, target: str, until: str) -> Callable[[Any], None]:
    """A new game, just begun."""

    def act(page: Any) -> None:
        page.select_option("select[aria-label=Target]", target)
        page.fill(f"[data-kernel={kernel}] input", shape)
        page.click(f"[data-kernel={kernel}] button")
        page.wait_for_selector(until, timeout=60_000)
        page.wait_for_timeout(3000)

    return act


def pinned(layout: str, tab: str) -> Callable[[Any], None]:
    """The end of the line is pinned, and compared with the position before."""

    def act(page: Any) -> None:
        page.keyboard.press("p")
        page.wait_for_selector(".pinned:visible")
        page.keyboard.press("ArrowLeft")
        page.click(f"[data-layout={layout}]")
        page.click(f"[data-tab={tab}]")
        page.wait_for_selector(".code .difference .side:is(.added, .removed)")

    return act


def taken(page: Any) -> None:
    page.click("text=Take away")
    page.wait_for_selector(".take-part")


def wrong_text(page: Any) -> None:
    page.fill("textarea", "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = z[{0}]*2\n")
    page.click("text=Play this")
    page.wait_for_selector(".own .text-error")
    page.locator(".own .text-error").scroll_into_view_if_needed()


def wrong_move(page: Any) -> None:
    page.fill("input[type=search]", "tile c#1@1 3")
    page.locator("input[type=search]").press("Enter")
    page.wait_for_selector(".typed-words .failure")


def hinted(page: Any) -> None:
    """All three levels."""
    for number in (1, 2, 3):
        page.keyboard.press("h")
        page.wait_for_selector(f".drawer >> text=Hint {number} of 3")
        page.wait_for_timeout(600)


def failing(page: Any) -> None:
    """A failure as the feed would bring it: a correct generator makes none."""
    page.keyboard.press("m")
    page.wait_for_selector(".queue-text >> text=Off")
    page.wait_for_timeout(1500)
    page.select_option("select[aria-label='Order of the moves']", "listed")
    page.click("#move-1 .name")
    page.wait_for_timeout(1500)
    page.evaluate(
        "() => { const feed = structuredClone(window.dojoFeed);"
        "feed.results[1] = ['compile_error', 'kernel.c:31:14: error: the compiler ran out of registers'];"
        "feed.results[3] = ['timeout', 'It ran longer than 10 s.'];"
        "feed.queue.state = 'down'; feed.queue.message = 'The measurer has stopped.';"
        "window.dojoFeed = feed; window.dispatchEvent(new Event('dojo:feed')); }"
    )


# ---------------------------------------------------------------------- the other pages


def step(name: str, act: Callable[[Any], object] = lambda page: None) -> Callable[[Any], None]:
    """A lesson's step, opened from the list."""

    def go(page: Any) -> None:
        page.locator(f"[data-step='{name}']").click()
        page.wait_for_selector(".row[data-move]")
        page.wait_for_timeout(1500)
        act(page)

    return go


def refused_then_helped(page: Any) -> None:
    page.fill("input[type=search]", "reuse_dims t 0")
    page.locator("input[type=search]").press("Enter")
    page.wait_for_selector(".told.refused")
    page.click(".foot >> text=Hint")
    page.wait_for_selector(".told.hint")


def solved(page: Any) -> None:
    page.click(".foot >> text=Hint")
    page.wait_for_selector(".told.hint")
    while page.locator(".foot >> text=Another hint").count():
        page.click(".foot >> text=Another hint")
        page.wait_for_timeout(600)
    page.click(".foot >> text=Show me")
    page.click("text=Play it on the board")
    page.wait_for_selector(".goals.all")


def puzzle(page: Any) -> None:
    page.locator("[data-lesson^='puzzles'] .card-title").first.click()
    page.wait_for_selector(".row[data-move]")


def one_move(page: Any) -> None:
    """A puzzle of one move, after a wrong answer."""
    page.locator("[data-lesson='snitch-lines'] .dot").first.click()
    page.wait_for_selector(".row[data-move]")
    page.locator(".row[data-move^='interchange'] >> text=Apply").first.click()
    page.wait_for_selector(".told.note")


def halfway(page: Any) -> None:
    """A recording, some way in."""
    page.click(".replay >> text=Pause")
    page.locator(".replay input").fill("30")
    page.locator(".replay input").dispatch_event("change")
    page.wait_for_selector(".replay >> text=/^30 of/")


def agents(page: Any) -> None:
    """Two searches without a clock, paused."""
    page.get_by_label("Shape").fill("8x32")
    page.get_by_label("Shape").press("Enter")
    page.get_by_text("operations counted").click()
    count = page.get_by_role("spinbutton", name="Programs")
    count.fill("20000")
    count.press("Enter")
    page.get_by_role("combobox", name="Beside it").click()
    page.get_by_role("option", name="sampling-edges").click()
    page.wait_for_timeout(1500)
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector(".lane >> nth=1 >> .log [data-entry]", timeout=60_000)
    page.wait_for_timeout(4000)
    page.keyboard.press(" ")
    page.wait_for_selector(".lane >> nth=1 >> text=paused")


def stop_agents(page: Any) -> None:
    for each in (0, 1):
        page.locator(".lane").nth(each).locator("[data-do=stop]").click()
        page.wait_for_timeout(500)


def trained(page: Any) -> None:
    page.get_by_label("Shape").first.fill("8x32")
    page.get_by_label("Shape").first.press("Enter")
    page.get_by_text("operations counted").click()
    count = page.get_by_role("spinbutton", name="Programs")
    count.fill("60")
    count.press("Enter")
    page.wait_for_timeout(1500)
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector("text=Play this checkpoint", timeout=150_000)


def compared(page: Any) -> None:
    """The board, the start and PyTorch, in a few rounds."""
    rounds = page.get_by_role("spinbutton", name="Rounds")
    rounds.fill("6")
    rounds.press("Enter")
    page.wait_for_timeout(1500)
    page.get_by_role("button", name="Measure", exact=True).click()
    page.wait_for_selector(".js-plotly-plot >> nth=0", timeout=200_000)


def earlier(page: Any) -> None:
    """The comparison that was made, opened again; its C."""
    page.get_by_role("combobox", name="Comparisons that were made").click()
    page.get_by_role("option").first.click()
    page.wait_for_selector(".js-plotly-plot >> nth=0")
    page.locator("[data-testid=stButtonGroup] button", has_text="C").first.click()
    page.wait_for_timeout(1500)


def choose_row(page: Any) -> None:
    """Tick the first row of a table, which is a canvas."""
    page.wait_for_timeout(2500)
    table = page.locator("[data-testid=stDataFrame]").bounding_box()
    page.mouse.click(table["x"] + 18, table["y"] + 53)
    page.wait_for_selector("text=1 chosen")


def example(page: Any) -> None:
    """The transformer among the examples, measured."""
    page.locator(".st-key-model_example_transformer").get_by_role("button").first.click()
    page.wait_for_selector(".model .kernel")
    page.get_by_role("button", name="Measure", exact=True).first.click()
    page.wait_for_selector("p.notice >> text=of the machine's limit", timeout=SECONDS)
    page.wait_for_timeout(1500)


def asked(page: Any) -> None:
    """A study's question, answered wrongly."""
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("text=A question stands here")
    page.click(".answer:has-text('vectorize')")
    page.wait_for_selector(".why:has-text('Later.')")


def played_on(page: Any) -> None:
    """A study at its end."""
    page.keyboard.press("ArrowRight")
    page.click(".answer:has-text('join_scopes')")
    page.keyboard.press("End")
    page.wait_for_timeout(500)


def class_made(page: Any) -> None:
    """A class that was given a lesson, without students yet."""
    page.fill(".make input", "Compilers, Monday")
    page.click("text=Make a class")
    page.wait_for_selector(".code")
    page.click("text=Give something")
    page.locator(".give form button").first.click()
    page.wait_for_selector(".given a")
    page.wait_for_timeout(500)


def leave_projector(page: Any) -> None:
    page.click("text=Leave projector mode")


# Of a Dojo that has just been installed: nothing was played, measured or trained.
FIRST = (
    Scene("first-play", "", game=False),
    Scene("first-compare", "compare", game=False),
    Scene("first-library", "library", game=False),
    Scene("first-games", "library", clicks("button >> text=Games"), game=False),
    Scene("first-train", "train", game=False),
)

SCENES = (
    Scene("play-start", "", game=False),
    Scene("play-text-error", "", wrong_text, game=False),
    Scene("play-board", ""),
    Scene("play-selected", "", selected),
    Scene("play-letters", "", enlarged),
    Scene("play-assembly", "", clicks("[data-tab=asm]")),
    Scene("play-changes", "", clicks("[data-tab=changes]")),
    Scene("play-pinned", "", pinned("line", "c")),
    Scene("play-pinned-side", "", pinned("side", "asm")),
    Scene("play-take", "", taken),
    Scene("play-tree", "", clicks("[data-tab=tree]")),
    Scene("play-blocked", "", clicks("[data-tab=blocked]", ".row.blocked")),
    Scene("play-enablers", "", clicks("[data-tab=enablers]")),
    Scene("play-hint", "", hinted),
    Scene("play-remove", "", keys("ArrowLeft", "text=Remove this move")),
    Scene("play-wrong-move", "", wrong_move),
    Scene("play-help", "", keys("?")),
    Scene("play-help-notation", "", keys("?", "dialog [data-tab=notation]")),
    Scene("play-help-moves", "", keys("?", "dialog [data-tab=moves]")),
    Scene("play-games", "", clicks("text=/^More/"), game=False),
    Scene("play-failure", "", failing, after=lambda page: page.keyboard.press("m")),
    Scene("play-gpu", "", begun("relu", "8x64", "cuda", ".code >> text=__global__"), game=False),
    Scene("play-snitch", "", begun("relu", "4x64", "snitch", ".code >> text=kernel_relu:"), game=False),
    Scene("play-measuring", "", begun("layernorm", "512x256", "cpu", ".row[data-move]"), game=False),
    Scene("share", "", clicks("text=Share")),
    Scene("compare", "compare"),
    Scene("compare-results", "compare", compared),
    Scene("compare-code", "compare", earlier),
    Scene("model", "model", game=False),
    Scene("model-open", "model", example, game=False),
    Scene("library-leaderboards", "library"),
    Scene("library-records", "library", clicks("button >> text=Records")),
    Scene("library-chosen", "library", choose_row),
    Scene("library-games", "library", clicks("button >> text=Games")),
    Scene("library-import", "library", clicks("button >> text=Import")),
    Scene("study", "study"),
    Scene("study-open", "study", awaits(".begin button", ".begin button", ".stops .stop")),
    Scene("study-text", "study", awaits(".begin button", ".begin button", "[data-tab=source]")),
    Scene("learn", "learn"),
    Scene("learn-question", "learn", step("one-line-one-loop")),
    Scene("learn-step", "learn", step("one-loop-for-both")),
    Scene("learn-refused", "learn", step("one-loop-for-both", refused_then_helped)),
    Scene("learn-done", "learn", step("one-loop-for-both", solved)),
    Scene("learn-word", "learn", step("one-line-one-loop", clicks("button.term"))),
    Scene("learn-puzzle", "learn", puzzle),
    Scene("learn-one-move", "learn", one_move),
    Scene("learn-games", "learn", query="&review=nothing"),
    Scene("learn-review", "learn", query="&review=GAME"),
    Scene("class", "class", game=False),
    Scene("class-taught", "class", class_made, game=False),
    Scene("play-projector", "", query="&projector=1", after=leave_projector),
    Scene("learn-projector", "learn", step("one-loop-for-both"), query="&projector=1", after=leave_projector),
    Scene("watch-recording", "watch", halfway, query="&demo=softmax-agent"),
    Scene("watch-two", "watch", agents, game=False, after=stop_agents),
    Scene("watch", "watch"),
    Scene("train-run", "train", trained, game=False),
    Scene("train", "train"),
    Scene("study-page", "", awaits(".words h1"), game=False, file=a_study),
    Scene("study-page-question", "", asked, game=False, file=a_study),
    Scene("study-page-played", "", played_on, game=False, file=a_study),
    Scene("notebook", "", awaits(".cell"), game=False, file=a_notebook),
    *(Scene(f"tour-{n}", "tour", query=f"&station={n}") for n in (1, 2, 3, 4, 5)),
)  # fmt: skip


def prepare(page: Any, url: str) -> str:
    """A game of matmul with a line and a variation, all measured; what names it in an address."""
    page.goto(url)
    page.wait_for_selector(".card.kernel")
    page.fill(f"[data-kernel={KERNEL}] input", SHAPE)
    page.click(f"[data-kernel={KERNEL}] button")
    page.wait_for_selector(".row[data-move]")
    for call in LINE:
        type_move(page, call)
        page.wait_for_timeout(1500)
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(800)
    type_move(page, VARIATION)
    page.wait_for_timeout(3000)
    page.keyboard.press("Escape")  # out of the field: the arrows step through the line
    for key in ("ArrowLeft", "ArrowRight"):  # to the end of the main line
        page.keyboard.press(key)
        page.wait_for_timeout(800)
    measured(page)
    return str(urllib.parse.parse_qs(urllib.parse.urlparse(page.url).query)["g"][0])
