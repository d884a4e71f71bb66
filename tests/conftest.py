"""What the tests share: a target that does not depend on the machine, a service without a measurer."""

import gc
import logging
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from streamlit.components.v2 import manifest_scanner

import agents
import dojo_core
from dojo_core.garbage import look_seldom
from dojo_core.measure.records import Records
from dojo_core.moves.examples import WIDE
from dojo_core.program.target import Target
from dojo_core.service import Service, wiring
from dojo_core.service.wiring import RecordStore
from tests import forked, goldens
from tests.distribution import installed
from tests.forked import pytest_cmdline_main, pytest_runtestloop
from tests.goldens import golden, pytest_configure, pytest_terminal_summary
from tests.stand_ins import Bench, Kernels
from tests.workers import idle_workers, kept_workers

# Hooks and fixtures, which pytest looks for in this file.
__all__ = [
    "golden",
    "idle_workers",
    "installed",
    "kept_workers",
    "pytest_cmdline_main",
    "pytest_configure",
    "pytest_runtestloop",
    "pytest_terminal_summary",
]

ROOT = Path(__file__).parent.parent
# An environment shared by two checkouts has one of them installed: its code is not what is tested here.
for package in (dojo_core, agents):
    imported = Path(str(package.__file__)).resolve()
    if not imported.is_relative_to(ROOT.resolve()):
        raise pytest.UsageError(
            f"These tests would try {imported}, not the code beside them in {ROOT}: "
            "run make test here, which has an environment of its own."
        )

look_seldom()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    goldens.pytest_addoption(parser)
    forked.pytest_addoption(parser, pluginmanager)


def pytest_collection_finish() -> None:
    """What is imported and collected stays: nothing that looks for garbage goes through it from here on, nor
    does what pytest looks for at the end, twice.

    Loggers that keep what they hear to themselves, as Streamlit's sixty do, pytest joins one by one, three
    times a test: a fifth of what a short test takes. Here they pass it on as others do."""
    gc.freeze()
    for logger in logging.Logger.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.propagate = True


@pytest.fixture(scope="session", autouse=True)
def lock_of_this_worker(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A measuring lock for each of pytest's workers. The machine is busy with tests in any case, so that no
    test may look at how long a kernel takes: none need wait for what another measures or compiles."""
    os.environ["DOJO_LOCK_DIR"] = str(tmp_path_factory.mktemp("lock"))


@pytest.fixture(scope="session", autouse=True)
def data_of_this_worker(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Records, games and machines of its own: no test reads or writes those of whoever runs it."""
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session", autouse=True)
def as_important_as_others() -> Iterator[None]:
    """What the app does beside its clocks lowers the priority of its own thread, for good: here that is
    pytest's, which all later tests run in, and which would wait for all other workers from then on."""
    with patch.object(wiring, "yield_to_others"):
        yield


@pytest.fixture(scope="session", autouse=True)
def components_of_packages() -> Iterator[None]:
    """Streamlit's AppTest reads what every installed package says of itself, in search of components, anew
    for each app: half a second. What is installed stays the same."""
    found = cache(manifest_scanner.scan_component_manifests)
    with patch.object(manifest_scanner, "scan_component_manifests", found):
        yield


@pytest.fixture(autouse=True)
def the_main_module() -> Iterator[None]:
    """Streamlit's AppTest leaves its script as ``__main__``, which multiprocessing's processes would run."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture
def wide() -> Target:
    return WIDE


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def service(tmp_path: Path, bench: Bench) -> Iterator[Service]:
    made = Service(RecordStore(Records(tmp_path / "records.sqlite")), Kernels(), lambda: bench)
    yield made
    bench.gate.set()
    made.close()
