"""What a page says while another process holds the measuring lock, and the way to go on beside it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import Server
from tests.browser.playing import expect, open_kernel

HOLDING = """
import sys
from dojo_core.measure.exclusive import measuring
with measuring():
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(server: Server) -> Iterator[subprocess.Popen[str]]:
    pipe, environment = subprocess.PIPE, {**os.environ, "DOJO_LOCK_DIR": str(server.locks)}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING], stdin=pipe, stdout=pipe, text=True, env=environment
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


@pytest.mark.thorough  # test_exclusive.py tells a page
def test_a_running_holder_is_named_and_measured_beside(holder: Any, start_screen: Any) -> None:
    page = start_screen
    open_kernel(page, "relu", "32x48")
    page.keyboard.press("m")
    page.wait_for_selector(".banner.calm")
    by = rf"^Waiting for the measuring lock: held by `python.*\(pid {holder.pid}\), since .*, running\.$"
    expect(page.locator(".banner span")).to_have_text(re.compile(by))
    expect(page.locator(".queue-text")).to_have_text("Waiting for the measuring lock")
    page.click(".banner >> text=Measure anyway")
    page.wait_for_selector(".row[data-state=known]")
    page.wait_for_selector(".banner", state="hidden")


@pytest.mark.thorough  # as above
def test_a_stopped_holder_is_passed_over(holder: Any, start_screen: Any) -> None:
    os.kill(holder.pid, signal.SIGSTOP)
    open_kernel(start_screen, "relu", "32x56", measured=True)
    start_screen.wait_for_selector(".row[data-state=known]")
