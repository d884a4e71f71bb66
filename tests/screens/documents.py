"""The pictures of the README and the documentation, and a short walk as an animation."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from tests.browser.conftest import Server
from tests.screens.scenes import (
    KERNEL,
    LINE,
    SHAPE,
    Scene,
    awaits,
    clicks,
    compared,
    example,
    measured,
    pick_line,
    refused_then_helped,
    replayed,
    selected,
    step,
    type_move,
)  # fmt: skip

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
WALK = (1120, 700)  # pixels of a frame
CAPTION = 44
COLOURS = 208  # of a picture: text and flat colours need no more


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
    page.fill(f"[data-kernel={KERNEL}] input", SHAPE)
    page.click(f"[data-kernel={KERNEL}] button")
    page.wait_for_selector(".row[data-move]")
    page.wait_for_timeout(2000)
    shot("The program, its C, and every legal move, measured while you look", 1500)
    for _ in range(2):
        page.wait_for_timeout(2500)
        shot("The program, its C, and every legal move, measured while you look", 1000)
    measured(page)
    page.select_option("select[aria-label='Order of the moves']", "gain")
    pick_line(page)
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


SHOTS = (
    Scene("play", "", selected),
    Scene("play-dark", "", clicks("[data-tab=blocked]", ".row.blocked[data-move^=parallelize]")),
    Scene("compare", "compare", compared),
    Scene("library", "library", awaits("[data-testid=stDataFrame] canvas")),
    Scene("learn", "learn", step("one-loop-for-both", refused_then_helped)),
    Scene("model", "model", example),
    Scene("watch", "watch", replayed(30), query="&demo=softmax-agent"),
)
DARK = ("play-dark", "watch")


def own(page: Any, server: Server) -> None:
    """Each picture is taken in a browser of its own; the game on it is theirs all the same."""
    page.context.add_cookies([{"name": "dojo_browser", "value": "5c" * 16, "url": server.url}])


def document(browser: Any, server: Server, game: str, only: list[str]) -> None:
    """``only`` words in the names of those that are taken; none: all, and ``walk``."""

    def wanted(name: str) -> bool:
        return not only or any(word in name for word in only)

    for scene in SHOTS:
        if not wanted(scene.name):
            continue
        page = browser.new_page(
            viewport={"width": 1440, "height": 880}, color_scheme="dark" if scene.name in DARK else "light"
        )
        own(page, server)
        page.goto(f"{server.url}/{scene.page}?g={game}{scene.query}")
        page.wait_for_selector(".dojo-bar")
        page.wait_for_timeout(3500)
        scene.act(page)
        page.mouse.move(0, 0)
        page.wait_for_timeout(1500)
        small(page.screenshot()).save(IMAGES / f"{scene.name}.png", optimize=True)
        page.close()
        print(scene.name, flush=True)
    if wanted("walk"):
        walk(browser, server, IMAGES / "walk.webp")
    sizes = {file.name: file.stat().st_size for file in sorted(IMAGES.iterdir())}
    print(json.dumps(sizes, indent=1), f"\n{sum(sizes.values()) / 1e6:.2f} MB in all")
