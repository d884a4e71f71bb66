"""What the tests of the doors for programs share: seats at a service whose clock is a stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.doors.seats import USUAL, Allowance, Seats
from dojo_core.measure.records import Records
from dojo_core.service import Service
from dojo_core.service.wiring import KernelLibrary, RecordStore
from tests.stand_ins import Bench


@contextmanager
def seated(folder: Path, by: str, bench: Bench, allowance: Allowance = USUAL) -> Iterator[Seats]:
    service = Service(RecordStore(Records(folder / "records.sqlite")), KernelLibrary(), lambda: bench)
    seats = Seats(service, by, allowance)
    yield seats
    bench.gate.set()
    seats.close()
    service.close()
