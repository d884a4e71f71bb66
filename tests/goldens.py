"""Goldens: texts in files that a test compares with what is made now, and one switch that writes them anew.

A test asks for the fixture ``golden`` and calls ``golden(file, text)``. Where they differ it fails with the
difference and the command that rewrites the file: the same test with ``--update-goldens``. Each file belongs
to one test, so that tests may run in parallel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from difflib import unified_diff
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"
ROOT = Path(__file__).parent.parent
SHOWN = 60  # lines of a difference
REWRITTEN = "rewritten golden"

Golden = Callable[[Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="write golden files anew where they differ, and list them (then look at git diff)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("update_goldens") and os.environ.get("CI"):
        raise pytest.UsageError(
            "--update-goldens would make every golden right, and CI is set: there they are compared only."
        )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a file with a text; writes it under ``--update-goldens``."""

    def compare(file: Path, text: str) -> None:
        kept = file.read_text(encoding="utf-8") if file.exists() else None
        if kept == text:
            return
        if request.config.getoption("update_goldens"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            request.node.user_properties.append((REWRITTEN, _short(file)))
            return
        rewrite = f"python -m pytest '{request.node.nodeid}' --update-goldens"
        pytest.fail(f"{difference(file, kept, text)}\nIf that is meant: {rewrite}", pytrace=False)

    return compare


def difference(file: Path, kept: str | None, text: str) -> str:
    """What a golden file has (None: there is none), and what is made now, line by line."""
    if kept is None:
        return f"There is no {_short(file)}."
    lines = list(
        unified_diff(kept.splitlines(), text.splitlines(), _short(file), "made now", lineterm="", n=2)
    ) or ["(only the ends of lines differ)"]
    more = [f"… and {len(lines) - SHOWN} lines more"] if len(lines) > SHOWN else []
    return "\n".join([*lines[:SHOWN], *more])


def _short(file: Path) -> str:
    return str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else str(file)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports: Iterable[object] = terminalreporter.stats.get("passed", ())
    files = [
        value
        for report in reports
        if isinstance(report, pytest.TestReport)
        for name, value in report.user_properties
        if name == REWRITTEN
    ]
    if files:
        terminalreporter.section("goldens written anew: look at git diff")
        for file in sorted(set(map(str, files))):
            terminalreporter.line(file)
