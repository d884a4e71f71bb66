"""Every page and its main states as pictures, from the running app: ``python -m tests.screens FOLDER``.

Each in light and dark, at 390, 1280 and 1920 pixels; what can be computed of its look (contrast, texts and
controls cut off, controls without names: audit.js) is printed beside its name. ``--looks`` takes no pictures,
and looks at all of them at more widths, at 100, 200 and 400% (looks.py; ``make looks``); ``--tab`` goes
through each page by the Tab key. ``--only WORDS`` takes those whose names hold one of the words; ``--resume``
leaves out what is in the folder; ``--home`` keeps what was measured for later. ``--docs`` takes the pictures
of the README and the documentation, and a short walk as an animation: from the first click to a fast program.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM, Server
from tests.screens.documents import document, own
from tests.screens.looks import AUDIT, THEMES, Window, findings
from tests.screens.newcomer import first_minute
from tests.screens.scenes import FIRST, SCENES, Scene, prepare
from tests.screens.tabbing import stops

SIZES = ((390, 844), (1280, 800), (1920, 1080))
TALLEST = 3200  # pixels: a page that scrolls is pictured whole
PLAIN = (
    "play-start", "play-board", "compare", "learn", "learn-step", "library-leaderboards", "watch", "train",
    "tour-1",
)  # fmt: skip


def opened(browser: Any, server: Server, scene: Scene, game: str) -> tuple[Any, list[str]]:
    """A tab in which the scene was brought about, and what was told against it."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    context.set_default_timeout(30_000)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda fault: faults.append(f"SCRIPT: {fault}"))
    own(page, server)
    query = (f"g={game}" if scene.game else "") + scene.query.replace("GAME", game)
    page.goto(scene.file(server.home).as_uri() if scene.file else f"{server.url}/{scene.page}?{query}")
    try:
        if scene.file is None:
            page.wait_for_selector(".dojo-bar", state="attached")  # a projector hides it
        if scene.game and not scene.page:
            page.wait_for_selector(".row[data-move]")
            end = page.get_by_label("To the end")  # scenes before may have stepped back
            if end.is_enabled():
                end.click()
        page.wait_for_timeout(2500)
        scene.act(page)
        page.wait_for_timeout(1200)
    except Error as error:
        faults.append(f"NOT AS ASKED: {' '.join(str(error).splitlines()[:3])}")
    return page, faults


def take(
    browser: Any, server: Server, game: str, scenes: tuple[Scene, ...], options: argparse.Namespace
) -> None:
    """The pictures; what could not be brought about is told, and pictured as it is."""
    for scene in scenes:
        files = {
            (theme, size): options.folder / f"{scene.name}-{theme}-{size[0]}.png"
            for size in SIZES if options.width in (None, size[0])
            for theme in THEMES if options.theme in (None, theme)
        }  # fmt: skip
        if not any(word in scene.name for word in options.only or [""]):
            continue
        if options.resume and all(file.exists() for file in files.values()):
            continue
        page, faults = opened(browser, server, scene, game)
        print(scene.name, *faults, sep="\n  ", flush=True)
        said: set[str] = set()
        for (theme, (width, height)), file in files.items():
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(700)
            whole = page.evaluate("document.querySelector('[data-testid=stMain]')?.scrollHeight ?? 0")
            if whole > height:
                page.set_viewport_size({"width": width, "height": min(TALLEST, whole)})
                page.wait_for_timeout(500)
            page.screenshot(path=file)
            for words in page.evaluate(AUDIT):
                if words not in said:
                    said.add(words)
                    print(f"  {theme} {width}: {words}", flush=True)
        try:
            scene.after(page)
        except Error as error:
            print(f"  AFTERWARDS: {error}")
        page.context.close()


def looks(
    browser: Any, server: Server, game: str, scenes: tuple[Scene, ...], options: argparse.Namespace
) -> None:
    """What is told against the look of the scenes, each in a file of the folder."""
    for scene in scenes:
        file = options.folder / f"{scene.name}.txt"
        if not any(word in scene.name for word in options.only or [""]):
            continue
        if options.resume and file.exists():
            continue
        page, faults = opened(browser, server, scene, game)
        try:
            found = findings(page)
        except Error as error:
            found = {f"NOT LOOKED AT: {' '.join(str(error).splitlines()[:3])}": []}
        try:
            scene.after(page)
        except Error as error:
            found[f"AFTERWARDS: {' '.join(str(error).splitlines()[:3])}"] = []
        told = [*faults, *(f"{words} [{', '.join(where)}]" for words, where in found.items())]
        file.write_text("\n".join(told))
        print(scene.name, *told, sep="\n  ", flush=True)
        page.context.close()


def tab(browser: Any, server: Server, game: str, options: argparse.Namespace) -> None:
    for scene in SCENES:
        if scene.name in PLAIN and any(word in scene.name for word in options.only or [""]):
            for window in (Window(1280, 800), Window(1280, 800, 200)):
                page, faults = opened(browser, server, scene, game)
                page.set_viewport_size(window.viewport)
                told = [stop.told for stop in stops(page)]
                print(f"{scene.name}, {window}", *faults, *told, sep="\n  ", flush=True)
                page.context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the pictures go")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="pictures whose names hold one")
    parser.add_argument("--theme", choices=THEMES, help="one of them only")
    parser.add_argument("--width", type=int, help="one of them only")
    parser.add_argument("--resume", action="store_true", help="take only what is not in the folder yet")
    parser.add_argument("--home", type=Path, help="a data directory that is kept: nothing is measured twice")
    parser.add_argument("--looks", action="store_true", help="no pictures: what is told against the look")
    parser.add_argument("--tab", action="store_true", help="each page by the Tab key: names, visible focus")
    parser.add_argument("--docs", action="store_true", help="the pictures of the documentation, and the walk")
    options = parser.parse_args()
    if not (options.docs or options.tab) and options.folder is None:
        parser.error("name a folder, or --docs, or --tab")
    if options.home:
        options.home.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # the server goes too
    home = nullcontext(str(options.home)) if options.home else tempfile.TemporaryDirectory()
    with home as kept, sync_playwright() as driver:
        server = Server(Path(kept))
        server.start("--measure")
        try:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            pictures = not (options.docs or options.tab)
            if pictures:
                options.folder.mkdir(parents=True, exist_ok=True)
            named = Path(kept) / "screens-game"
            if named.exists():
                game = named.read_text()
            elif options.docs and options.only == ["walk"]:
                game = ""  # it plays its own
            else:
                if options.looks:
                    looks(browser, server, "", FIRST, options)
                elif pictures:
                    take(browser, server, "", FIRST[:1], options)
                    print("newcomer", flush=True)
                    page = browser.new_page(viewport={"width": 1280, "height": 800})
                    first_minute(page, server.url, options.folder)
                    page.close()
                    take(browser, server, "", FIRST[1:], options)
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                own(page, server)
                game = prepare(page, server.url)
                page.close()
                named.write_text(game)
            if options.docs:
                document(browser, server, game, options.only)
            elif options.looks:
                looks(browser, server, game, SCENES, options)
            elif options.tab:
                tab(browser, server, game, options)
            else:
                take(browser, server, game, SCENES, options)
            browser.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
