"""The states of the pages: where each is, and what is clicked to bring it about."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.screens import classes, studies
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


def own(
    text: str, until: str = ".own-told p", act: Callable[[Any], object] = lambda page: None
) -> Callable[[Any], None]:
    """Code of one's own, as it is typed."""

    def typed(page: Any) -> None:
        page.fill("textarea", text)
        page.wait_for_selector(until)
        act(page)
        page.locator(".own .own-foot").scroll_into_view_if_needed()

    return typed


def somebody_elses(page: Any) -> None:
    """The game's address in another browser."""
    page.context.clear_cookies()
    page.reload()
    page.wait_for_selector(".watched")


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


def hinted_by_a_policy(page: Any) -> None:
    """On a target that something was learned for."""
    begun("axpy", "64", "snitch", ".row[data-move]")(page)
    page.keyboard.press("h")
    page.wait_for_selector(".learned-moves", timeout=60_000)


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


def shown_how(page: Any) -> None:
    """All hints, and the solution played."""
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


def puzzle_shown(page: Any) -> None:
    """The next puzzle of one move, with its solution."""
    page.locator("[data-lesson='snitch-lines'] .dot").nth(1).click()
    page.wait_for_selector(".row[data-move]")
    shown_how(page)
    page.wait_for_selector(".onward")


def all_words(page: Any) -> None:
    page.click("button >> text=Glossary")
    page.wait_for_selector("dialog.glossary .entry")


def replayed(step: int) -> Callable[[Any], None]:
    """A recording, some way in."""

    def act(page: Any) -> None:
        pause = page.locator(".replay >> text=Pause")
        if pause.count():  # a short one may be over by now
            pause.click()
        page.locator(".replay input").fill(str(step))
        page.locator(".replay input").dispatch_event("change")
        page.wait_for_selector(f".replay >> text=/^{step} of/")

    return act


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


def comparing(page: Any) -> None:
    """A long comparison, under way."""
    rounds = page.get_by_role("spinbutton", name="Rounds")
    rounds.fill("100")
    rounds.press("Enter")
    page.wait_for_timeout(1500)
    page.get_by_role("button", name="Measure", exact=True).click()
    page.wait_for_selector("text=/round [1-9][0-9]* of 100/", timeout=120_000)


def stop(page: Any) -> None:
    """What may have come to its end by now, on an idle machine."""
    button = page.get_by_role("button", name="Stop")
    if button.count():
        button.first.click()
        page.wait_for_timeout(3000)


def delete_row(page: Any) -> None:
    """The first game of the list, which can be brought back."""
    page.locator("button >> text=Games").first.click()
    choose_row(page)
    page.get_by_role("button", name="Delete").first.click()
    page.wait_for_selector("text=Undo")


def undo(page: Any) -> None:
    page.get_by_role("button", name="Undo").click()
    page.wait_for_timeout(1500)


def choose_row(page: Any) -> None:
    """Tick the first row of a table, which is a canvas."""
    page.wait_for_timeout(2500)
    table = page.locator("[data-testid=stDataFrame]").bounding_box()
    page.mouse.click(table["x"] + 18, table["y"] + 53)
    page.wait_for_selector("text=1 chosen")


def no_model(page: Any) -> None:
    """A file that is none."""
    file = {"name": "model.onnx", "mimeType": "application/octet-stream", "buffer": b"not a model"}
    page.set_input_files("[data-testid=stFileUploader] input", files=[file])
    page.wait_for_selector("p.notice.error")


def tuning(page: Any) -> None:
    """The example of before, and what agents are asked."""
    page.get_by_role("button", name="Open", exact=True).last.click()
    page.wait_for_selector(".model .kernel")
    page.get_by_role("button", name="Tune the worst").click()
    page.wait_for_selector("text=It begins with")


def model_deleted(page: Any) -> None:
    page.get_by_role("button", name="Delete").last.click()
    page.wait_for_selector("text=its games stay")


def example(page: Any) -> None:
    """The transformer among the examples, measured."""
    page.locator(".st-key-model_example_transformer").get_by_role("button").first.click()
    page.wait_for_selector(".model .kernel")
    page.get_by_role("button", name="Measure", exact=True).first.click()
    page.wait_for_selector("p.notice >> text=of the machine's limit", timeout=SECONDS)
    page.wait_for_timeout(1500)


def leave_projector(page: Any) -> None:
    page.click("text=Leave projector mode")


# Of a Dojo that has just been installed: nothing was played, measured or trained.
FIRST = (
    Scene("first-play", "", game=False),
    Scene("first-compare", "compare", game=False),
    Scene("first-library", "library", game=False),
    Scene("first-games", "library", clicks("button >> text=Games"), game=False),
    Scene("first-train", "train", game=False),
    Scene("first-watch", "watch", game=False),
    Scene("first-study", "study", awaits(".begin"), game=False),
    Scene("first-model", "model", game=False),
)

SCENES = (
    Scene("play-start", "", game=False),
    Scene("play-text-error", "", wrong_text, game=False),
    Scene("play-own", "", own("mk,kn->mn", act=clicks(".own details:not([hidden]) summary")), game=False),
    Scene("play-own-wrong", "", own("y = np.tanhh(x)", ".own .text-error"), game=False),
    Scene("nowhere", "nowhere", game=False),
    Scene("play-board", ""),
    Scene("play-watched", "", somebody_elses),
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
    Scene("play-learned", "", hinted_by_a_policy, game=False),
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
    Scene("compare-running", "compare", comparing, after=stop),
    Scene("compare-results", "compare", compared),
    Scene("compare-code", "compare", earlier),
    Scene("model", "model", game=False),
    Scene("model-refused", "model", no_model, game=False),
    Scene("model-open", "model", example, game=False),
    Scene("model-tuning", "model", tuning, game=False),
    Scene("model-deleted", "model", model_deleted, game=False, after=undo),
    Scene("library-leaderboards", "library"),
    Scene("library-records", "library", clicks("button >> text=Records")),
    Scene("library-chosen", "library", choose_row),
    Scene("library-games", "library", clicks("button >> text=Games")),
    Scene("library-deleted", "library", delete_row, after=undo),
    Scene("library-import", "library", clicks("button >> text=Import")),
    Scene("study", "study", awaits(".begin button")),
    Scene("study-open", "study", studies.begun),
    Scene("study-told", "study", studies.told),
    Scene("study-question", "study", studies.questioned),
    Scene("study-refusal", "study", studies.refusal_asked),
    Scene("study-whole", "study", studies.whole),
    Scene("study-timing", "study", studies.timing),
    Scene("study-built", "study", studies.built),
    Scene("study-text", "study", studies.as_text),
    Scene("study-wrong", "study", studies.wrong),
    Scene("study-unreadable", "study", studies.unreadable),
    Scene("study-clash", "study", studies.written_twice),
    Scene("learn", "learn"),
    Scene("learn-question", "learn", step("one-line-one-loop")),
    Scene("learn-step", "learn", step("one-loop-for-both")),
    Scene("learn-refused", "learn", step("one-loop-for-both", refused_then_helped)),
    Scene("learn-done", "learn", step("one-loop-for-both", shown_how)),
    Scene("learn-word", "learn", step("one-line-one-loop", clicks("button.term"))),
    Scene("learn-puzzle", "learn", puzzle),
    Scene("learn-one-move", "learn", one_move),
    Scene("learn-one-move-done", "learn", puzzle_shown),
    Scene("learn-rated", "learn"),
    Scene("learn-words", "learn", all_words),
    Scene("learn-games", "learn", query="&review=nothing"),
    Scene("learn-review", "learn", query="&review=GAME"),
    Scene("class", "class", game=False),
    Scene("class-wrong-code", "class", classes.mistaken, game=False),
    Scene("class-taught", "class", classes.made, game=False),
    Scene("class-attended", "class", classes.attended, game=False),
    Scene("class-student", "class", classes.joined, game=False),
    Scene("class-delete", "class", classes.asked_to_delete, game=False),
    Scene("play-projector", "", query="&projector=1", after=leave_projector),
    Scene("learn-projector", "learn", step("one-loop-for-both"), query="&projector=1", after=leave_projector),
    Scene("watch-recording", "watch", replayed(30), query="&demo=softmax-agent"),
    Scene("watch-learned", "watch", replayed(4), query="&demo=axpy-line"),
    Scene("watch-race", "watch", replayed(46), query="&demo=axpy-learned,axpy-unguided"),
    Scene("watch-two", "watch", agents, game=False, after=stop_agents),
    Scene("watch", "watch"),
    Scene("train-run", "train", trained, game=False),
    Scene("train", "train"),
    Scene("study-page", "", awaits(".words h1"), game=False, file=a_study),
    Scene("study-page-question", "", studies.asked, game=False, file=a_study),
    Scene("study-page-played", "", studies.played_on, game=False, file=a_study),
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
