"""What a Snitch core lets a program do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.program.validity import Fault

LABEL = "cycles on a calibrated model"  # what its numbers are
MEMORY_BYTES = 128 * 1024  # the tightly coupled memory of a cluster, all of it for one core
MODEL_BYTES = 64 * 1024 * 1024  # what the model holds: beyond a cluster's memory it moves no data


@dataclass(frozen=True)
class SnitchTarget(Target):
    """The core. ``body`` counts the instructions that the sequencer holds, ``repeats`` the iterations of a
    hardware loop, ``repeat`` the uses of one element of a read stream."""

    streams: int = 3
    dims: int = 4
    body: int = 16
    repeats: int = 1 << 16
    repeat: int = 16

    def __hash__(self) -> int:
        return hash(self.name)

    judges_plain = False  # its conditions are of marks and of locations beside the heap

    def fault(self, program: Program, policy: str) -> Fault | None:
        from dojo_core.targets.snitch.conditions import snitch_fault

        return snitch_fault(program, self)


@cache
def target() -> SnitchTarget:
    """The Snitch target."""
    return SnitchTarget(
        name="snitch",
        title="Snitch (RISC-V with streams)",
        vector_widths={},
        marks=frozenset("usf"),
        locations=("heap", "stack", "register"),
        stack_bytes=MEMORY_BYTES // 2,
        register_cells=24,  # of 32, three are streams; constants and intermediate results need some
        unrolled_ops=256,
        threads=1,
        memory_bytes=MEMORY_BYTES,
        indirection=False,
        kernel_float="f64",
        passes={"heuristic": "agents.passes.snitch:heuristic_on_snitch"},
        without=frozenset(  # it has no cache
            {"prefetch", "clear_prefetch", "stream_store", "clear_stream", "stream_load", "clear_stream_load"}
        ),
    )
