"""The roofline of one kernel on this machine: the time that no program of it can beat.

The longer of two: streaming the kernel's own arrays in its access pattern, and its operations at the peak of
all cores (limits.py measures both). Source: Williams, Waterman and Patterson, "Roofline", CACM 2009.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from dojo_core.bench.baselines import Process, Silent, pinned_environment
from dojo_core.files import write_text
from dojo_core.kernels.kernel import minimal_bytes
from dojo_core.measure.exclusive import measuring
from dojo_core.measure.limits import sets_of_inputs
from dojo_core.measure.machine import this_machine
from dojo_core.measure.places import cache_directory
from dojo_core.program.dtypes import INTEGERS
from dojo_core.program.tree import Program

log = logging.getLogger(__name__)

KEPT = "rooflines-2"  # of what is kept: a change in how limits are measured gets another folder
SECONDS = 60.0  # until the measuring process is given up
SAMPLES = 5


@dataclass(frozen=True)
class Roofline:
    """``seconds`` is the limit; ``bound`` names what sets it, ``memory`` or ``arithmetic``."""

    seconds: float
    memory_seconds: float
    arithmetic_seconds: float
    bytes: int
    pattern: str
    gbytes_per_second: float
    gflops: float

    @property
    def bound(self) -> str:
        return "memory" if self.memory_seconds >= self.arithmetic_seconds else "arithmetic"


def roofline(start: Program, kernel: str | None, shape: str, flops: float) -> Roofline | None:
    """Measured once for a start program and a machine, then kept; None where that fails (the log says why).

    ``flops`` of one run (of integers none count: their peak is another). Takes a few seconds and the whole
    machine.
    """
    place = cache_directory() / KEPT / f"{this_machine().fingerprint}-{start.hash}.json"
    try:
        return Roofline(**json.loads(place.read_text()))
    except (OSError, ValueError, TypeError):
        pass  # not measured yet
    counted = 0.0 if any(b.dtype in INTEGERS for b in start.buffers) else flops
    try:
        found = _measured(start, kernel, shape, counted)
    except (Silent, KeyError, ValueError, OSError):
        log.exception("no roofline of %s %s", kernel or start.name, shape)
        return None
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(".part")
    write_text(part, json.dumps(asdict(found)))
    part.replace(place)
    return found


def _measured(start: Program, kernel: str | None, shape: str, flops: float) -> Roofline:
    arrays = (*start.inputs, *start.outputs)
    machine = this_machine()
    sets = sets_of_inputs(minimal_bytes(start), machine.last_level_cache, machine.second_level_cache)
    job = {
        "inputs": list(start.inputs),
        "outputs": list(start.outputs),
        "shapes": {a: [d.size for d in start.buffer_of[a].dims] for a in arrays},
        "dtypes": {a: start.buffer_of[a].dtype for a in arrays},
    }
    with tempfile.TemporaryDirectory(prefix="dojo-roofline-") as folder:
        write_text(Path(folder) / "job.json", json.dumps(job))
        named = [kernel or "-", shape if kernel else "1", str(sets), folder]
        command = [sys.executable, "-m", "dojo_core.bench.limits", *named]
        with measuring():
            process = Process(command, pinned_environment())
            try:
                pattern = process.read(SECONDS)
                answer = process.ask(SAMPLES, SECONDS)
            finally:
                process.close()
    memory, peak = min(answer["samples"]) / 1e9, max(answer["all"]) * 1e9
    return Roofline(
        seconds=max(memory, flops / peak),
        memory_seconds=memory,
        arithmetic_seconds=flops / peak,
        bytes=pattern["bytes"],
        pattern=pattern["pattern"],
        gbytes_per_second=pattern["bytes"] / memory / 1e9,
        gflops=peak / 1e9,
    )
