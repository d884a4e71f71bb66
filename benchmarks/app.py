"""What it is like to sit at the board, in a real Chromium: ``python -m benchmarks.app [--soak 5000]``.

Starts the app with a data directory of its own and measures, each figure against what it should hold:

- the first board: from the first request to the moves of a position, after the server's start and again;
- a move out of the blue, with nothing being measured: typed, or clicked where the pointer was not before.
  Told are, in the page, the time from the click to the position on the screen and to its moves beside it, and
  the whole click, as a driver of the browser sees it; then of many moves, each a click of a script;
- a move that the pointer was on for a moment, and an arrow key, back and forward along the line;
- a kernel's first times, with measuring on and nothing known of it: from the click on its card to the first
  time, rough or not, to the first move that is shown with a speed above 1, and to the first that is surely
  faster;
- an idle tab: the server's and the browser's share of one core;
- fifty double clicks: each plays one move;
- eight tabs at once: the same as above, all playing.

``--soak N`` makes N moves on several small kernels while the machine measures, and follows the memory and the
open files of the server and the measuring process: growth per thousand moves after a warm-up. A move of the
soak is a change of the position on the board, asked for by click or key and seen drawn: of twenty about
twelve play a random legal move, five step back and three step forward; after 24 moves played a new game
begins. Nothing else should run on the machine.

``--json FILE`` keeps the figures, those of a soak as it goes on: one that was stopped has told what
it saw.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Error as DriverError
from playwright.sync_api import Page, sync_playwright

from dojo_core.measure.machine import this_machine
from tests.browser.conftest import ARGUMENTS, CHROMIUM, Server

MOVES, BLUE, DOUBLE_CLICKS, TABS, ROUNDS, IDLE_SECONDS = 60, 20, 50, 8, 6, 20
SOAKED = (("softmax", "8x16"), ("rmsnorm", "8x16"), ("matmul", "8x8x8"), ("layernorm", "8x16"))
OPENED = ("softmax", "layernorm", "rmsnorm", "matmul")
LINE = 24  # moves played in a game of the soak
BACK, FORWARD = 0.25, 0.15  # of its moves
MOST_HUNG = 20
SAMPLE = 25  # moves between two looks at memory
WARM_UP = 0.3  # of a soak: caches fill up
TICKS = os.sysconf("SC_CLK_TCK")

# The board, and what resolves, once another position is on the screen, with the milliseconds that this took
# since ``begun()`` and those until its moves are there too; with null where it does not come.
BOARD = """
  const board = [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]
    .map((e) => e.shadowRoot).find((r) => r && r.querySelector('.board'));
  const here = () => board.querySelector('.entry.here')?.dataset.id;
  const before = here();
  const drawn = (begun) => new Promise((done) => {
    const since = performance.now();
    let shown = null;
    const look = () => {
      const took = performance.now() - (begun() ?? performance.now());
      if (shown === null && here() !== before) shown = took;
      const listed = shown !== null && board.querySelector('.row[data-move]');
      if (listed) requestAnimationFrame(() => done([shown, took]));
      else if (performance.now() - since > 30000) done(null);
      else requestAnimationFrame(look);
    };
    look();
  });
"""
# Clicks Apply in a row, or presses a key.
PLAY = f"""async ([row, twice, key]) => {{{BOARD}
  const rows = [...board.querySelectorAll('.row[data-move] .apply')];
  if (!rows.length && !key) return null;
  const button = rows[row % rows.length], begun = performance.now();
  if (key) document.dispatchEvent(new KeyboardEvent('keydown', {{ key, bubbles: true }}));
  else button.click();
  if (twice) button.click();
  return await drawn(() => begun);
}}"""
# Opens a kernel's card. Resolves with the seconds to its first time, to the first move that is shown with a
# speed above that of the position, and to the first one that is surely faster; null where none comes.
FIRST_TIMES = f"""async kernel => {{{BOARD}
  board.querySelector(`[data-kernel=${{kernel}}] button`).click();
  const begun = performance.now(), since = () => (performance.now() - begun) / 1000;
  const all = (selector) => [...board.querySelectorAll(selector)];
  const shows = (selector) => all(selector).some((node) => /\\d/.test(node.textContent));
  const above = () => all('.row .value')
    .some((node) => Number((/([\\d.]+)×/.exec(node.textContent) ?? [])[1]) > 1);
  let timed = null, faster = null;
  return await new Promise((done) => {{
    const look = () => {{
      if (timed === null && shows('.play .metric-time .metric-value')) timed = since();
      if (faster === null && above()) faster = since();
      if (shows('.row .value.faster')) done([timed, faster, since()]);
      else if (since() > 45) done([timed, faster, null]);
      else setTimeout(look, 20);
    }};
    look();
  }});
}}"""
# Waits for the driver's click or key.
AWAIT = f"""() => {{{BOARD}
  let begun = null;
  const heard = () => {{ begun ??= performance.now(); }};
  for (const kind of ['pointerup', 'keydown'])
    window.addEventListener(kind, heard, {{ capture: true, once: true }});
  window.drawn = drawn(() => begun);
}}"""


@dataclass(frozen=True)
class Figure:
    """One line of the table. ``bound`` is what ``value`` should stay below; None where there is none."""

    name: str
    value: float
    unit: str
    bound: float | None = None

    @property
    def holds(self) -> bool:
        return self.bound is None or self.value < self.bound

    def __str__(self) -> str:
        bound = "" if self.bound is None else f"< {self.bound:g} {self.unit}"
        verdict = "" if self.bound is None else "holds" if self.holds else "DOES NOT HOLD"
        return f"{self.name:70}{self.value:10.4g} {self.unit:14}{bound:18}{verdict}"


# ---------------------------------------------------------------------- a page


def begin(page: Page, url: str, kernel: str, shape: str) -> None:
    """A new game on the board."""
    if page.locator(".card.kernel").count() == 0 or not page.locator(".card.kernel").first.is_visible():
        page.goto(url)
        page.wait_for_selector(".card.kernel")
    page.fill(f"[data-kernel={kernel}] input", shape)
    page.click(f"[data-kernel={kernel}] button")
    page.wait_for_selector(".row[data-move]")


def measuring(page: Page, on: bool) -> None:
    if ("off" in page.locator(".queue-text").inner_text().lower()) is on:
        page.keyboard.press("m")
    page.wait_for_timeout(700)


def entries(page: Page) -> int:
    return page.locator(".entry").count()


def play(page: Page, row: int, twice: bool = False, key: str = "") -> tuple[float, float] | None:
    """Milliseconds from the click (or key) to the next position, and to its moves beside it; None: no move
    there, or no answer."""
    took = page.evaluate(PLAY, [row, twice, key])
    return None if took is None else (float(took[0]), float(took[1]))


# ---------------------------------------------------------------------- processes


def family(root: int) -> list[int]:
    """A process and all below it."""
    found = [root]
    for pid in found:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:
                continue  # gone meanwhile
    return found


def processor_seconds(pids: list[int]) -> float:
    total = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def named(root: int, words: bytes) -> list[int]:
    """The processes below one whose command has these words."""
    found = []
    for pid in family(root)[1:]:
        with suppress(OSError):  # gone meanwhile
            if words in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def worker_of(server: int) -> int | None:
    """The measuring process of an app."""
    return next(iter(named(server, b"dojo_core.measure.worker")), None)


# ---------------------------------------------------------------------- what is measured


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def first_boards(browser: Any, url: str) -> list[Figure]:
    figures = []
    for words in ("cold, the server just started", "warm"):
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        begun = time.perf_counter()
        page.goto(url)
        page.wait_for_selector(".card.kernel")
        cards = time.perf_counter() - begun
        begin(page, url, "softmax", "96x32")
        figures.append(Figure(f"first screen ({words})", cards, "s"))
        figures.append(Figure(f"first board ({words})", time.perf_counter() - begun, "s"))
        context.close()
    return figures


def moves(page: Page, url: str, count: int) -> list[Figure]:
    chance = random.Random(1)
    begin(page, url, "softmax", "96x32")
    measuring(page, False)
    times: list[tuple[float, float]] = []
    while len(times) < count:
        took = play(page, chance.randrange(1000)) if entries(page) < 30 else None
        if took is None:
            page.goto(url)
            begin(page, url, "softmax", "96x32")
            measuring(page, False)
            continue
        times.append(took)
        page.wait_for_timeout(250)
    shown, listed = ([each[part] for each in times] for part in (0, 1))
    what = f"of {count} moves in lines of up to 30"
    return [
        *out_of_the_blue(page, url, min(count, BLUE)),
        Figure(f"{what}, the position, median", statistics.median(shown), "ms", 200),
        Figure(f"{what}, the position, 95 %", percentile(shown, 0.95), "ms", 400),
        Figure(f"{what}, its moves, median", statistics.median(listed), "ms"),
        Figure(f"{what}, its moves, 95 %", percentile(listed, 0.95), "ms"),
        *foreseen(page, url, count // 3),
    ]


def out_of_the_blue(page: Page, url: str, count: int) -> list[Figure]:
    """Moves as the driver plays them: every other one is typed, the rest are clicked."""
    chance = random.Random(3)
    begin(page, url, "softmax", "96x32")
    measuring(page, False)
    shown, listed, whole = [], [], []
    for number in range(count):
        if number % 10 == 0:
            page.goto(url)
            begin(page, url, "softmax", "96x32")
            measuring(page, False)
        page.mouse.move(5, 5)
        rows = page.locator(".row[data-move]")
        row = rows.nth(chance.randrange(rows.count()))
        typed = number % 2 == 0
        if typed:
            page.fill(".tools input", str(row.get_attribute("data-move")))
        else:
            row.scroll_into_view_if_needed()
        page.wait_for_timeout(700)  # what a person takes to look
        page.evaluate(AWAIT)
        begun = time.perf_counter()
        if typed:
            page.press(".tools input", "Enter")
        else:
            row.locator(".apply").click()
        took = page.evaluate("() => window.drawn")
        whole.append(1000 * (time.perf_counter() - begun))
        if took is not None:
            shown.append(float(took[0]))
            listed.append(float(took[1]))
    what = f"a move out of the blue, median of {len(shown)}"
    return [
        Figure(f"{what}: the position, in the page", statistics.median(shown), "ms", 200),
        Figure(f"{what}: its moves too, in the page", statistics.median(listed), "ms", 200),
        Figure(f"{what}: the whole click", statistics.median(whole), "ms"),
        Figure("a move out of the blue, 95 %: the position, in the page", percentile(shown, 0.95), "ms", 400),
        Figure(
            "a move out of the blue, 95 %: its moves too, in the page", percentile(listed, 0.95), "ms", 500
        ),
    ]


def foreseen(page: Page, url: str, count: int) -> list[Figure]:
    """Moves that the pointer rested on for a moment, and arrows along the line that they make."""
    begin(page, url, "softmax", "96x32")
    measuring(page, False)
    played: list[float] = []
    for number in range(count):
        row = 7 * number % page.locator(".row[data-move]").count()
        page.locator(".row[data-move]").nth(row).hover()
        page.wait_for_timeout(500)
        took = play(page, row)
        played += [] if took is None else [took[0]]
        page.wait_for_timeout(700)
    keys = ["ArrowLeft"] * len(played) + ["ArrowRight"] * len(played)
    stepped: list[float] = []
    for key in keys:
        took = play(page, 0, key=key)
        stepped += [] if took is None else [took[0]]
        page.wait_for_timeout(250)
    return [
        Figure("a move that the pointer was on, median", statistics.median(played), "ms", 200),
        Figure("an arrow, median", statistics.median(stepped), "ms", 100),
    ]


def first_times(browser: Any) -> list[Figure]:
    """Of each kernel at the shape of its card, in an app that has been running for some seconds."""
    figures = []
    with tempfile.TemporaryDirectory(prefix="dojo-app-") as home:
        server = Server(Path(home))
        server.start(measure=True)
        try:
            for kernel in OPENED:
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.goto(server.url)
                page.wait_for_selector(".card.kernel")
                page.wait_for_timeout(3000)
                seen = page.evaluate(FIRST_TIMES, kernel)
                page.close()
                for what, seconds, bound in zip(
                    ("time", "faster move", "move surely faster"), seen, (3, 6, None), strict=True
                ):
                    value = float("inf") if seconds is None else float(seconds)
                    figures.append(Figure(f"{kernel}, from its card to its first {what}", value, "s", bound))
        finally:
            server.stop()
    return figures


def idle(page: Page, url: str, server: Server, seconds: float) -> list[Figure]:
    assert server.process is not None
    begin(page, url, "softmax", "96x32")
    measuring(page, False)
    page.wait_for_timeout(3000)  # what is not measured is still explored
    processes = (family(server.process.pid), named(os.getpid(), b"chrom"))
    before = [processor_seconds(pids) for pids in processes]
    page.wait_for_timeout(1000 * seconds)
    after = [processor_seconds(pids) for pids in processes]
    names = ("an idle tab, the server", "an idle tab, the browser")
    shares = [100 * (b - a) / seconds for a, b in zip(before, after, strict=True)]
    return [Figure(name, share, "% of a core", 3) for name, share in zip(names, shares, strict=True)]


def double_clicks(page: Page, url: str, count: int) -> Figure:
    """How many double clicks did not play one move. One that was played before is gone to: no new entry."""
    begin(page, url, "softmax", "96x32")
    measuring(page, False)
    wrong = 0
    for number in range(count):
        before = entries(page)
        took = play(page, 3 * number, twice=True)
        page.wait_for_timeout(500)
        wrong += took is None or entries(page) > before + 1
        page.keyboard.press("u")
        page.wait_for_selector(".entry.here[data-id='0']")
    return Figure(f"of {count} double clicks, not exactly one move", wrong, "", 1)


def tabs(browser: Any, url: str, count: int, rounds: int) -> list[Figure]:
    """All tabs click at once, round by round; each has its own game and counts its own moves."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    pages = [context.new_page() for _ in range(count)]
    faults: list[str] = []
    for page in pages:
        page.on("pageerror", lambda fault: faults.append(str(fault)))
        page.goto(url)
        page.wait_for_selector(".card.kernel")
        begin(page, url, "softmax", "96x32")
        measuring(page, False)
    times: list[float] = []
    for number in range(rounds):
        for page in pages:  # the clicks leave within some milliseconds; the answers are awaited after that
            page.evaluate(f"arguments => {{ window.played = ({PLAY})(arguments); }}", [number, False, ""])
        for page in pages:
            took = page.evaluate("() => window.played")
            times.append(float("inf") if took is None else float(took[0]))
    lost = sum(entries(page) != rounds + 1 for page in pages)
    context.close()
    return [
        Figure(f"{count} tabs clicking at once, a move, median", statistics.median(times), "ms"),
        Figure(f"{count} tabs clicking at once, a move, 95 %", percentile(times, 0.95), "ms"),
        Figure(f"of {count} tabs, with moves lost or faults", lost + len(faults), "", 1),
    ]


# ---------------------------------------------------------------------- the soak


@dataclass(frozen=True)
class Look:
    """What the processes hold after so many moves: bytes, open files, threads."""

    moves: int
    seconds: float
    server: int
    worker: int
    browser: int
    server_files: int
    worker_files: int
    server_threads: int
    hung: int  # how often the page was loaded anew


def look(page: Page, server: int, moves: int, seconds: float, hung: int) -> Look:
    worker = worker_of(server)
    heap = page.evaluate("() => performance.memory ? performance.memory.usedJSHeapSize : 0")
    return Look(
        moves, seconds, resident_bytes(server), resident_bytes(worker) if worker else 0, int(heap),
        open_files(server), open_files(worker) if worker else 0, threads(server), hung,
    )  # fmt: skip


def slope(looks: list[Look], name: str) -> float:
    """Least squares: how much a field grows per thousand moves."""
    xs, ys = [look.moves / 1000 for look in looks], [float(getattr(look, name)) for look in looks]
    x, y = statistics.fmean(xs), statistics.fmean(ys)
    spread = sum((a - x) ** 2 for a in xs)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / spread if spread else 0.0


class Player:
    """Plays as a person does: mostly on, at times back and forward, and a new game when a line is long."""

    def __init__(self, page: Page, url: str, measured: bool) -> None:
        self.page, self.url, self.measured = page, url, measured
        self.chance = random.Random(7)
        self.games = self.depth = self.ahead = self.played = self.silent = 0

    def begin(self) -> None:
        if (
            self.games and not self.page.locator(".card.kernel").first.is_visible()
        ):  # it is, after a page hung
            self.page.click("text=New game")
            self.page.wait_for_selector(".card.kernel")
        begin(self.page, self.url, *SOAKED[self.games % len(SOAKED)])
        measuring(self.page, self.measured)
        self.games += 1
        self.depth = self.ahead = self.played = self.silent = 0

    def move(self) -> bool:
        """One move of the soak; False where the board did not answer, or had nothing to play."""
        if self.games == 0 or self.played >= LINE or self.silent > 2:
            self.begin()
        at = self.chance.random()
        key = "ArrowLeft" if at < BACK and self.depth else ""
        key = "ArrowRight" if BACK <= at < BACK + FORWARD and self.ahead else key
        if play(self.page, self.chance.randrange(1000), key=key) is None:
            self.silent += 1
            return False
        self.silent = 0
        by = -1 if key == "ArrowLeft" else 1
        self.depth += by
        self.ahead = max(0, self.ahead - by) if key else 0
        self.played += not key
        return True

    def again(self) -> None:
        """After a page that hung: its address, loaded anew, and another game."""
        self.page.goto(self.url, timeout=120_000)
        self.page.wait_for_selector(".card.kernel", timeout=120_000)
        self.silent = 3


def soak(
    player: Player, server: Server, count: int, looks: list[Look], keep: Callable[[list[Figure]], None]
) -> None:
    """Make ``count`` moves, and look at the processes now and then; ``keep`` gets the figures so far."""
    assert server.process is not None
    pid, hung, played = server.process.pid, 0, 0
    begun = time.perf_counter()
    while played < count:
        try:
            if not player.move():
                continue
        except DriverError as fault:
            hung += 1
            print(
                f"  the page hung after {played} moves and is loaded anew: {str(fault).splitlines()[0]}",
                flush=True,
            )
            if hung > MOST_HUNG:
                raise SystemExit("The page hangs again and again: see the server's log.") from fault
            player.again()
            continue
        played += 1
        if played % SAMPLE == 0:
            looks.append(look(player.page, pid, played, time.perf_counter() - begun, hung))
        if played % (8 * SAMPLE) == 0:
            keep(soaked(looks))
            last = looks[-1]
            print(
                f"  {played} moves, {player.games} games, {last.seconds:.0f} s: "
                f"server {last.server / 2**20:.1f} MiB, worker {last.worker / 2**20:.1f} MiB, "
                f"page {last.browser / 2**20:.1f} MiB, files {last.server_files} and {last.worker_files}, "
                f"{last.server_threads} threads",
                flush=True,
            )


def soaked(looks: list[Look]) -> list[Figure]:
    """What the looks of a soak say, those of its warm-up left out."""
    if len(looks) < 3:
        return []
    count = looks[-1].moves
    late = [look for look in looks if look.moves >= WARM_UP * count]
    what, each = f"soak of {count} moves:", "per 1,000 moves"
    return [
        Figure(f"{what} server, MB {each}", slope(late, "server") / 1e6, "MB", 1),
        Figure(f"{what} worker, MB {each}", slope(late, "worker") / 1e6, "MB", 1),
        Figure(f"{what} page's heap, MB {each}", slope(late, "browser") / 1e6, "MB"),
        Figure(f"{what} server's files {each}", slope(late, "server_files"), "files", 1),
        Figure(f"{what} worker's files {each}", slope(late, "worker_files"), "files", 1),
        Figure(f"{what} server's threads {each}", slope(late, "server_threads"), "threads", 1),
        Figure(f"{what} server at its end", looks[-1].server / 1e6, "MB"),
        Figure(f"{what} page loaded anew, times", looks[-1].hung, "", 1),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--soak", type=int, default=0, metavar="N", help="play N moves and follow the memory")
    parser.add_argument("--only-soak", action="store_true", help="nothing but the soak")
    parser.add_argument("--unmeasured", action="store_true", help="no measuring during the soak")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything: does the command work?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # the app that was started ends too
    if CHROMIUM is None:
        raise SystemExit("This needs Chromium (Debian: apt-get install chromium).")
    share = 0.1 if options.quick else 1.0
    figures: list[Figure] = []
    looks: list[Look] = []

    def keep(found: list[Figure]) -> None:
        """The figures so far and these, in place of what was kept before."""
        if options.json is None:
            return
        told = {
            "machine": this_machine().summary,
            "figures": [{**asdict(figure), "holds": figure.holds} for figure in (*figures, *found)],
            "looks": [asdict(look) for look in looks],
        }
        unfinished = options.json.with_suffix(".part")
        unfinished.write_text(json.dumps(told, indent=1))
        unfinished.replace(options.json)

    with tempfile.TemporaryDirectory(prefix="dojo-app-") as home, sync_playwright() as driver:
        server = Server(Path(home))
        begun = time.perf_counter()
        server.start()
        figures.append(Figure("the server's start", time.perf_counter() - begun, "s"))
        try:
            browser = driver.chromium.launch(
                executable_path=CHROMIUM, args=[*ARGUMENTS, "--enable-precise-memory-info"]
            )
            if not options.only_soak:
                figures += first_boards(browser, server.url)
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.goto(server.url)
                figures += moves(page, server.url, max(5, int(share * MOVES)))
                figures += first_times(browser)
                page.goto(server.url)
                figures += idle(page, server.url, server, max(5, share * IDLE_SECONDS))
                page.goto(server.url)
                figures.append(double_clicks(page, server.url, max(3, int(share * DOUBLE_CLICKS))))
                page.close()
                figures += tabs(browser, server.url, TABS, max(2, int(share * ROUNDS)))
            if options.soak:
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.goto(server.url)
                page.wait_for_selector(".card.kernel")
                player = Player(page, server.url, not options.unmeasured)
                soak(player, server, options.soak, looks, keep)
            browser.close()
        finally:  # also where somebody stops it
            server.stop()
            figures += soaked(looks)
            for figure in figures:
                print(figure)
            keep([])
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


if __name__ == "__main__":
    main()
