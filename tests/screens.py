"""Every page and its main states as pictures, from the running app: ``python -m tests.screens FOLDER``.

Each in light and dark, at 1280 and 1920 pixels. ``--only WORDS`` takes those whose names hold one of the
words. ``--docs`` takes the pictures of the README and the documentation instead, and the short walk: a game
of softmax from the first click to the fast program, as an animation.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Error, sync_playwright

from pages.shell import existing
from tests.browser.conftest import ARGUMENTS, CHROMIUM, Server

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZES = ((1280, 800), (1920, 1080))
THEMES = ("light", "dark")
SHAPE = "1024x256"
LINE = ("fuse m@0 4", "join_scopes d@1", "parallelize m@0")  # softmax, some moves in
SECONDS = 240_000  # until all moves of a position are measured, milliseconds


@dataclass(frozen=True)
class Scene:
    """A state of a page: where it is, and what is clicked there. ``act`` gets the page after it was drawn."""

    name: str
    page: str  # as in the address: "" is Play
    act: Callable[[Any], object] = lambda page: None
    query: str = ""
    game: bool = True  # is the prepared game on the board?


def measured(page: Any) -> None:
    """Wait until all moves of the position on the board have their times."""
    board = page.locator(".queue-text")
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]
        .some((e) => e.shadowRoot?.querySelector('.queue-text')?.textContent.startsWith('Measured'))""",
        timeout=SECONDS,
    )
    board.wait_for()
    page.wait_for_timeout(1000)


def type_move(page: Any, call: str) -> None:
    before = page.locator(".entry").count()
    page.fill("input[type=search]", call)
    page.locator("input[type=search]").press("Enter")
    page.wait_for_function(
        """count => [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]
        .some((e) => (e.shadowRoot?.querySelectorAll('.entry').length ?? 0) > count)""",
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


def selected(page: Any) -> None:
    page.select_option("select[aria-label='Order of the moves']", "gain")
    page.click(".line.op .instruction >> nth=1")
    page.click(".row[data-move] >> nth=1")


def wrong_text(page: Any) -> None:
    page.fill("textarea", "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = z[{0}]*2\n")
    page.click("text=Play this")
    page.wait_for_selector(".own .text-error")
    page.locator(".own .text-error").scroll_into_view_if_needed()


def wrong_move(page: Any) -> None:
    page.fill("input[type=search]", "tile m#1@1 3")
    page.locator("input[type=search]").press("Enter")
    page.wait_for_selector(".notice.error")


SCENES = (
    Scene("play-start", "", game=False),
    Scene("play-text-error", "", wrong_text, game=False),
    Scene("play-board", ""),
    Scene("play-selected", "", selected),
    Scene("play-assembly", "", clicks("[data-tab=asm]")),
    Scene("play-changes", "", clicks("[data-tab=changes]")),
    Scene("play-tree", "", clicks("[data-tab=tree]")),
    Scene("play-blocked", "", clicks("[data-tab=blocked]", ".row.blocked")),
    Scene("play-enablers", "", clicks("[data-tab=enablers]")),
    Scene("play-hint", "", keys("h")),
    Scene("play-remove", "", keys("ArrowLeft", "text=Remove this move")),
    Scene("play-wrong-move", "", wrong_move),
    Scene("play-help", "", keys("?")),
    Scene("play-help-moves", "", keys("?", "dialog [data-tab=moves]")),
    Scene("share", "", clicks("text=Share")),
    Scene("library-leaderboards", "library"),
    Scene("library-records", "library", clicks("button >> text=Records")),
    Scene("library-games", "library", clicks("button >> text=Games")),
    Scene("compare", "compare"),
    Scene("learn", "learn"),
    Scene("watch", "watch"),
    Scene("train", "train"),
)  # fmt: skip


def prepare(page: Any, url: str) -> str:
    """A game of softmax with a line and a variation, all measured; what names it in an address."""
    page.goto(url)
    page.wait_for_selector(".card.kernel")
    page.fill("[data-kernel=softmax] input", SHAPE)
    page.click("[data-kernel=softmax] button")
    page.wait_for_selector(".row[data-move]")
    for call in LINE:
        type_move(page, call)
        page.wait_for_timeout(1500)
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(800)
    type_move(page, "split_scope m@0 8")
    page.wait_for_timeout(3000)
    page.keyboard.press("Escape")  # out of the field: the arrows step through the line
    for key in ("ArrowLeft", "ArrowRight"):  # to the end of the main line
        page.keyboard.press(key)
        page.wait_for_timeout(800)
    measured(page)
    return str(urllib.parse.parse_qs(urllib.parse.urlparse(page.url).query)["g"][0])


def take(browser: Any, server: Server, game: str, folder: Path, options: argparse.Namespace) -> None:
    """The pictures; what could not be brought about is told, and pictured as it is."""
    names = {"" if entry.name == "play" else entry.name for entry in existing()}
    only = options.only or [""]
    scenes = [s for s in SCENES if s.page in names and any(word in s.name for word in only)]
    for width, height in SIZES:
        if options.width not in (None, width):
            continue
        for theme in [options.theme] if options.theme else THEMES:
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
            context.set_default_timeout(30_000)
            for number, scene in enumerate(scenes):
                page = context.new_page()
                faults: list[str] = []
                page.on("pageerror", lambda fault, faults=faults: faults.append(str(fault)))
                # a player of its own for each picture, so that none finds what the one before left
                query = f"p=s{width}{theme}{number}" + (f"&g={game}" if scene.game else "")
                page.goto(f"{server.url}/{scene.page}?{query}{scene.query}")
                told = f"{scene.name}, {theme}, {width}"
                try:
                    page.wait_for_selector(".dojo-bar")
                    if scene.game and not scene.page:
                        page.wait_for_selector(".row[data-move]")
                    page.wait_for_timeout(2500)
                    scene.act(page)
                    page.wait_for_timeout(1200)
                except Error as error:
                    told += f" NOT AS ASKED: {str(error).splitlines()[0]}"
                page.screenshot(path=folder / f"{scene.name}-{theme}-{width}.png")
                print(told, *faults, flush=True)
                page.close()
            context.close()


# ---------------------------------------------------------------------- for the documentation

WALK = (1120, 700)  # pixels of a frame
CAPTION = 44
COLOURS = 96  # of a picture: text and flat colours need no more


def small(picture: bytes) -> Image.Image:
    """A screenshot with few colours: a third of its bytes."""
    return Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)


def captioned(picture: bytes, words: str) -> Image.Image:
    shot = Image.open(io.BytesIO(picture)).convert("RGB")
    frame = Image.new("RGB", (shot.width, shot.height + CAPTION), "#16181c")
    frame.paste(shot, (0, 0))
    drawing = ImageDraw.Draw(frame)
    drawing.text((18, shot.height + 10), words, fill="#e4e6ea", font=ImageFont.load_default(20))
    return frame


def walk(browser: Any, server: Server, file: Path) -> None:
    """A newcomer's first minutes: a kernel, its moves as they are measured, the best ones played."""
    page = browser.new_page(viewport={"width": WALK[0], "height": WALK[1]}, color_scheme="light")
    page.set_default_timeout(60_000)
    frames: list[tuple[Image.Image, int]] = []

    def shot(words: str, milliseconds: int = 2200) -> None:
        frames.append((captioned(page.screenshot(), words), milliseconds))

    page.goto(server.url)
    page.wait_for_selector(".card.kernel")
    page.wait_for_timeout(800)
    shot("Choose a kernel")
    page.fill("[data-kernel=softmax] input", SHAPE)
    page.click("[data-kernel=softmax] button")
    page.wait_for_selector(".row[data-move]")
    page.wait_for_timeout(2000)
    shot("The program, its C, and every legal move, measured while you look", 1500)
    for _ in range(2):
        page.wait_for_timeout(2500)
        shot("The program, its C, and every legal move, measured while you look", 1000)
    measured(page)
    page.select_option("select[aria-label='Order of the moves']", "gain")
    page.click(".line.op .instruction >> nth=1")
    page.wait_for_timeout(600)
    shot("Select a line: its C is marked")
    page.keyboard.press("Escape")
    for call in LINE:
        type_move(page, call)
        page.wait_for_timeout(3500)
        shot(f"Play moves: {call}", 1700)
    page.keyboard.press("Escape")
    measured(page)
    shot("The history, the time after each move, and the limit of the machine", 3000)
    page.click("[data-tab=blocked]")
    page.locator(".row.blocked").first.click()
    page.wait_for_timeout(700)
    shot("A move that is not legal says why, and what would unblock it", 3200)
    page.close()
    images = [frame.quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB") for frame, _ in frames]
    images[0].save(
        file, save_all=True, append_images=images[1:], duration=[took for _, took in frames], loop=0,
        lossless=False, quality=62, method=6,
    )  # fmt: skip


def document(browser: Any, server: Server, game: str) -> None:
    names = {entry.name for entry in existing()}
    shots: list[tuple[str, str, str, Callable[[Any], object]]] = [
        ("play", "", "light", selected),
        ("play-dark", "", "dark", clicks("[data-tab=blocked]", ".row.blocked")),
    ]
    others = [name for name in ("compare", "library", "learn", "watch") if name in names]
    shots += [(name, name, "light", lambda page: None) for name in others]
    for name, where, theme, act in shots:
        page = browser.new_page(viewport={"width": 1440, "height": 880}, color_scheme=theme)
        page.goto(f"{server.url}/{where}?p=docs-{name}&g={game}")
        page.wait_for_selector(".dojo-bar")
        page.wait_for_timeout(3500)
        act(page)
        page.wait_for_timeout(1500)
        small(page.screenshot()).save(IMAGES / f"{name}.png", optimize=True)
        page.close()
    walk(browser, server, IMAGES / "walk.webp")
    sizes = {file.name: file.stat().st_size for file in sorted(IMAGES.iterdir())}
    print(json.dumps(sizes, indent=1), f"\n{sum(sizes.values()) / 1e6:.2f} MB in all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the pictures go")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="pictures whose names hold one")
    parser.add_argument("--theme", choices=THEMES, help="one of the two only")
    parser.add_argument("--width", type=int, help="one of the two only")
    parser.add_argument("--docs", action="store_true", help="the pictures of the documentation, and the walk")
    options = parser.parse_args()
    if not options.docs and options.folder is None:
        parser.error("name a folder, or --docs")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as driver:
        server = Server(Path(home))
        server.start()
        try:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            game = prepare(page, server.url)
            page.close()
            if options.docs:
                document(browser, server, game)
            else:
                options.folder.mkdir(parents=True, exist_ok=True)
                take(browser, server, game, options.folder, options)
            browser.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
