"""What the tests share: a target that does not depend on the machine, a service without a measurer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dojo_core.measure.records import Records
from dojo_core.service import Service
from dojo_core.service.wiring import RecordStore
from dojo_core.targets.cpu.limits import vector_widths
from dojo_core.targets.target import Target
from tests.stand_ins import Bench, Kernels

# Wide vectors and two threads, whatever this machine has: legality tests must not change with it.
WIDE = Target(
    name="wide",
    title="a CPU with 512-bit vectors",
    vector_widths=vector_widths(frozenset({"avx512f", "avx512bw", "avx512vl", "avx512dq"})),
    marks=frozenset("upv"),
    locations=("heap", "stack", "register"),
    stack_bytes=1 << 20,
    register_cells=1024,
    unrolled_ops=2048,
    threads=2,
    instructions=frozenset({("vpdpbusd", 16), ("vpdpbusd", 8)}),
)


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
