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
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--renderer-process-limit=1",  # one that stays and has the scripts compiled
]
PARTS = ".learn, .board, .stage"  # our components: their text is not in the body's, but in shadow roots


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

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def locks(self) -> Path:
        """Where its measuring lock lies: tests that measure meanwhile have another one."""
        return self.home / "lock"

    def start(self, *options: str) -> None:
        """``options`` are those of ``dojo app``."""
        command = [sys.executable, "-m", "dojo_core.cli", "app", "--no-browser", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, *options],
            cwd=ROOT,
            env={**os.environ, "DOJO_HOME": str(self.home), "DOJO_LOCK_DIR": str(self.locks)},
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


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """What a test that fails saw: the page's text, its address and what the server said last."""
    outcome: Any = yield
    report = outcome.get_result()
    given = getattr(item, "funcargs", {})
    if not report.failed or "tab" not in given:
        return
    page, server = given["tab"], given["server"]
    try:
        page.set_default_timeout(5_000)
        report.sections.append((f"page {page.url}", page.locator("body").inner_text()))
        for part in page.locator(PARTS).all():
            report.sections.append((f"its {part.get_attribute('class')}", part.inner_text()[:2_000]))
    except Exception as fault:  # Playwright's, whatever it is: the test's own failure is what counts
        report.sections.append(("page", f"It cannot be read: {fault}"))
    said = (server.home / "server.log").read_text(errors="replace")
    report.sections.append(("server", said[-4_000:]))


@pytest.fixture(scope="package")
def common_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("home"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not getattr(request.module, "OWN_SERVER", False):
        yield request.getfixturevalue("common_server")
        return
    made = Server(tmp_path_factory.mktemp("home"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="package")
def driver() -> Iterator[Any]:
    """Playwright."""
    if CHROMIUM is None:
        pytest.skip("No Chromium here (Debian: apt-get install chromium): browser tests skipped.")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
    with playwright.sync_playwright() as made:
        yield made


@pytest.fixture(scope="package")
def chromium(driver: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A profile of Chromium that all tests share: it keeps scripts compiled, half of the time of a page."""
    profile = driver.chromium.launch_persistent_context(
        tmp_path_factory.mktemp("chromium"),
        executable_path=CHROMIUM,
        args=ARGUMENTS,
        viewport={"width": 1280, "height": 800},
    )
    profile.set_default_timeout(200_000)  # the machine may be busy: only a page that hangs takes so long
    yield profile
    profile.close()


@pytest.fixture(scope="package")
def another_browser(driver: Any) -> Iterator[Any]:
    browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture
def stranger(another_browser: Any) -> Iterator[Any]:
    """A tab of another browser, with a profile of its own."""
    profile = another_browser.new_context(viewport={"width": 1280, "height": 800})
    profile.set_default_timeout(200_000)
    yield profile.new_page()
    profile.close()


@pytest.fixture
def tab(chromium: Any, server: Server) -> Iterator[Any]:
    """A fresh tab of a visitor whom the app never saw; an error in the page's script fails the test."""
    if chromium.pages[0].url == "about:blank":  # a page of the site's keeps its process
        chromium.pages[0].goto(f"{server.url}/_stcore/health")
    opened = chromium.new_page()
    chromium.clear_cookies()
    visitor = chromium.new_cdp_session(opened)
    visitor.send("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "all"})
    faults: list[str] = []
    opened.on("pageerror", lambda fault: faults.append(str(fault)))
    yield opened
    for each in chromium.pages[1:]:  # the first one keeps the browser open, and the process that draws
        each.close()
    assert not faults, faults


@pytest.fixture
def page(tab: Any, server: Server) -> Any:
    """A fresh tab at the start screen."""
    tab.goto(server.url)
    tab.wait_for_selector(".card")
    return tab
