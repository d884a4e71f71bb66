"""Bytecode of the tests, written before pytest's workers start: each would make all of it, at the same time.

In a fresh clone that is what a worker does first, for seven seconds of a processor. What is imported from
elsewhere costs a fifth of that: assertions are rewritten in tests alone. pytest has no door for it, so this
does as its import hook does (``AssertionRewritingHook.exec_module`` of the pinned version).
"""

import multiprocessing
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

HERE = Path(__file__).parent


def pytest_sessionstart(session: pytest.Session) -> None:
    """In the process that starts workers for the whole suite, before it does (which it does last)."""
    config = session.config
    alone = config.args_source is not pytest.Config.ArgsSource.TESTPATHS or not config.getoption("tx", None)
    if alone or hasattr(config, "workerinput") or sys.dont_write_bytecode:
        return
    files = sorted(HERE.rglob("test_*.py"), key=lambda file: file.stat().st_size)
    fork = multiprocessing.get_context("fork")
    halves = [fork.Process(target=compiled, args=(config, files[k::2])) for k in range(2)]
    for half in halves:
        half.start()
    for half in halves:
        half.join()


def compiled(config: pytest.Config, files: Sequence[Path]) -> None:
    """Write the bytecode of test files that have none, or an older one."""
    state = config.stash[rewrite.assertstate_key]
    for file in files:
        folder = rewrite.get_cache_dir(file)
        bytecode = folder / (file.stem + rewrite.PYC_TAIL)
        if rewrite.try_makedirs(folder) and rewrite._read_pyc(file, bytecode) is None:
            source, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(state, code, source, bytecode)
