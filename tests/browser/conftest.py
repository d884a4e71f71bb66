"""The app on a free port with a data directory of the tests; Debian's Chromium.

Starting either takes seconds, and so does the first page of each server, whose scripts the browser compiles
anew: all modules share them. One that kills its server, or needs its data alone, says
OWN_SERVER = True.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.browser.playing import Way, open_means, open_softmax
from tests.homes import with_objects

ROOT = Path(__file__).resolve().parents[2]
# What Debian builds without windows draws the same pages with two thirds of the processor's time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--single-threaded",  # scripts run a few times each: nothing beside them pays
    "--renderer-process-limit=1",  # one that stays and has the scripts compiled
]
# Milliseconds for a page to come, and for what it shows to change: the machine may be busy.
PATIENCE, CHANGES_WITHIN = 200_000, 60_000
VIEWPORT = {"width": 1280, "height": 800}
# Our components: their text is in shadow roots, not in the body.
PARTS = ".learn, .writing, .board, .stage, .model"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """The app as a user starts it."""

    def __init__(self, home: Path, port: int | None = None) -> None:
        self.home = home
        self.port = port or free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.packages: Path | None = None  # a folder of some that are installed beside it

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def other_url(self) -> str:
        """The same app under another name, where a browser has other cookies."""
        return f"http://localhost:{self.port}"

    @property
    def locks(self) -> Path:
        """Where its measuring lock lies: tests that measure meanwhile have another one."""
        return self.home / "lock"

    def start(self, *options: str, measure: bool = False) -> None:
        """``options`` are those of ``dojo app``. Nothing is timed or compiled before a test asks for it,
        unless games are to be measured from their beginning."""
        beside = {} if self.packages is None else {"PYTHONPATH": f"{ROOT}{os.pathsep}{self.packages}"}
        command = [sys.executable, "-m", "dojo_core.cli", "app", "--no-browser"]
        command += [] if measure else ["--no-measure"]
        command += ["--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, *options],
            cwd=ROOT,
            env={**os.environ, **beside, "DOJO_HOME": str(self.home), "DOJO_LOCK_DIR": str(self.locks)},
            stdout=(self.home / "server.log").open("ab"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        end = time.monotonic() + 300
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2):
                    return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError((self.home / "server.log").read_text())

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


def pytest_itemcollected(item: pytest.Item) -> None:
    """One process runs them: another would start a server and a browser. One that fails is run once more, as
    browser, server and their clocks can be late together; what it saw at first is told at the end."""
    item.add_marker(pytest.mark.xdist_group("browser"))
    item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """What a test that fails saw: the page's text, its address and what the server said last."""
    outcome: Any = yield
    report = outcome.get_result()
    given = getattr(item, "funcargs", {})
    server = given.get("server") or given.get("common_server")
    if (
        not report.failed or "standing" not in given or server is None
    ):  # which says itself why it did not start
        return
    standing = given["standing"]
    page = given.get("tab") or standing.page
    try:
        page.set_default_timeout(5_000)
        report.sections.append((f"page {page.url}", page.locator("body").inner_text()))
        for part in page.locator(PARTS).all():
            report.sections.append((f"its {part.get_attribute('class')}", part.inner_text()[:2_000]))
    except Exception as fault:  # Playwright's, whatever it is: the test's own failure is what counts
        report.sections.append(("page", f"It cannot be read: {fault}"))
    said = (server.home / "server.log").read_text(errors="replace")
    report.sections.append(("server", said[-4_000:]))
    for page in (standing.page, standing.visitor):  # whatever state they are in, the next test gets others
        if page is not None:
            with suppress(Exception):  # the last one's fixtures end with the browser itself
                page.close()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Why a test failed that passed when it was run again: it waits for less than it looks at, or the product
    does at times what it should not."""
    failed = {report.nodeid for report in terminalreporter.stats.get("failed", [])}
    for report in terminalreporter.stats.get("rerun", []):
        if report.nodeid not in failed:
            terminalreporter.section(f"failed at first: {report.nodeid}", yellow=True)
            terminalreporter.line(report.longreprtext)


@pytest.fixture(scope="package")
def common_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(with_objects(tmp_path_factory.mktemp("home")))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not getattr(request.module, "OWN_SERVER", False):
        yield request.getfixturevalue("common_server")
        return
    made = Server(with_objects(tmp_path_factory.mktemp("home")))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="package")
def driver() -> Iterator[Any]:
    """Playwright."""
    if CHROMIUM is None:
        pytest.skip(
            f"No Chromium here (Debian: apt-get install {BROWSERS[0]}, or chromium): browser tests skipped."
        )
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
    playwright.expect.set_options(timeout=CHANGES_WITHIN)
    with playwright.sync_playwright() as made:
        yield made


@pytest.fixture(scope="package")
def chromium(driver: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A profile of Chromium that all tests share: it keeps scripts compiled, half of the time of a page."""
    profile = driver.chromium.launch_persistent_context(
        tmp_path_factory.mktemp("chromium"),
        executable_path=CHROMIUM,
        args=ARGUMENTS,
        viewport=VIEWPORT,
        reduced_motion="reduce",  # what moves is drawn sixty times a second
    )
    profile.set_default_timeout(PATIENCE)
    yield profile
    profile.close()


def forget(page: Any, server: Server) -> None:
    """What the app kept in the browser: the next page that it loads is that of another browser."""
    page.context.clear_cookies(domain="127.0.0.1")
    kept = page.context.new_cdp_session(page)
    kept.send("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "all"})
    kept.detach()


@dataclass
class Standing:
    """Two tabs that stay open, one at the start screen and one that each visitor in turn has, and the errors
    in the first one's scripts. Another tab takes twice the processor's time of another page in a tab."""

    page: Any = None
    visitor: Any = None
    faults: list[str] = field(default_factory=list)

    def close_others(self, chromium: Any) -> None:
        for each in chromium.pages[1:]:  # the first one keeps the browser open, and the process that draws
            if each not in (self.page, self.visitor):
                each.close()


@pytest.fixture(scope="package")
def standing() -> Standing:
    return Standing()


@pytest.fixture
def tab(chromium: Any, standing: Standing, server: Server) -> Iterator[Any]:
    """The empty tab of a visitor whom the app never saw; an error in the page's script fails the test."""
    if chromium.pages[0].url == "about:blank":  # a page of the site's keeps its process
        chromium.pages[0].goto(f"{server.url}/_stcore/health")
    if standing.visitor is None or standing.visitor.is_closed():
        standing.visitor = chromium.new_page()
    visitor, faults = standing.visitor, list[str]()
    forget(visitor, server)

    def note(fault: Exception) -> None:
        faults.append(str(fault))

    visitor.on("pageerror", note)
    yield visitor
    if not visitor.is_closed():
        visitor.goto("about:blank")  # the page ends, as that of a tab that is closed
        visitor.remove_listener("pageerror", note)
        visitor.set_viewport_size(VIEWPORT)
    standing.close_others(chromium)
    assert not faults, faults


@pytest.fixture
def way(tab: Any) -> Iterator[Way]:
    """Between the tab and the server, from the first page on. It cannot be taken out: the tab is closed."""
    yield Way(tab)
    tab.close()


@pytest.fixture
def start_screen(chromium: Any, standing: Standing, common_server: Server) -> Iterator[Any]:
    """Where games begin, in a tab that stays: no page is loaded for it. Its visitor is one whom the app
    knows, by its other name, under which it has other cookies than ``tab``."""
    if standing.page is None or standing.page.is_closed():
        standing.page = chromium.new_page()
        standing.page.on("pageerror", lambda fault: standing.faults.append(str(fault)))
        standing.page.goto(common_server.other_url)
        standing.page.wait_for_selector(".card")
    elif not standing.page.locator(".card.kernel").first.is_visible():
        standing.page.click("text=New game")
        standing.page.wait_for_selector(".card.kernel")
    pasted = standing.page.get_by_label("Program text or a saved game")
    if pasted.input_value():  # another test's
        pasted.fill("")
    yield standing.page
    standing.close_others(chromium)
    faults, standing.faults = standing.faults, []
    assert not faults, faults


@pytest.fixture
def board(start_screen: Any) -> Any:
    """A new softmax, unmeasured."""
    open_softmax(start_screen)
    return start_screen


@pytest.fixture
def small_board(start_screen: Any) -> Any:
    """New means of rows, unmeasured."""
    open_means(start_screen)
    return start_screen


@pytest.fixture
def page(tab: Any, server: Server) -> Any:
    """A visitor's tab at the start screen."""
    tab.goto(server.url)
    tab.wait_for_selector(".card")
    return tab
