"""What the tests share: a target that does not depend on the machine, a service without a measurer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dojo_core.measure.records import Records
from dojo_core.moves.examples import WIDE
from dojo_core.service import Service
from dojo_core.service.wiring import RecordStore
from dojo_core.targets.target import Target
from tests.stand_ins import Bench, Kernels


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
