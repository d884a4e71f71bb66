"""A machine in one line for people; complete in the records."""

import json
from dataclasses import replace

from dojo_core.measure.machine import Machine

MACHINE = Machine(
    cpu="Intel(R) Xeon(R) Processor",
    cores=2,
    features="avx2 avx512f fma",
    compiler="gcc (Debian 12.2.0-14+deb12u1) 12.2.0",
    flags="-O2 -march=native -mprefer-vector-width=512 -fno-math-errno -fopenmp",
    governor="",
    last_level_cache=33 * 2**20,
    second_level_cache=2 * 2**20,
    memory=25276502016,
)


def test_a_machine_in_one_line() -> None:
    assert (
        MACHINE.summary
        == "Intel Xeon Processor, 2 cores with AVX-512, 24 GB, gcc 12.2.0, -O2 -march=native …"
    )
    alone = replace(MACHINE, cores=1, features="fma", flags="-O2 -march=native -fopenmp")
    assert alone.summary == "Intel Xeon Processor, 1 core, 24 GB, gcc 12.2.0, -O2 -march=native …"
    clang = replace(MACHINE, compiler="Debian clang version 14.0.6", flags="-O2 -mcpu=native")
    assert clang.summary.endswith(", clang 14.0.6, -O2 -mcpu=native, no OpenMP: one thread")


def test_the_details_are_complete() -> None:
    assert json.loads(MACHINE.details)["features"] == "avx2 avx512f fma"
    assert replace(MACHINE, features="avx2").fingerprint != MACHINE.fingerprint
    assert replace(MACHINE, memory=1).fingerprint == MACHINE.fingerprint
