"""Interleaved rounds on a GPU: ours, PyTorch's and a copy within the device, timed by events, cold or warm.

Ours run in the measurer's worker, PyTorch's in a process of its own, one at a time.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dojo_core import kernels
from dojo_core.bench.baselines import interpreter, write_job
from dojo_core.bench.contest import BenchFailed, Contest
from dojo_core.bench.ours import Entry
from dojo_core.bench.processes import Process, Silent
from dojo_core.bench.roofline import MEASURED, Roofline, limits_of
from dojo_core.bench.rounds import SAMPLES, Row, flops_of, records_or_own, remark_on_disturbed
from dojo_core.game import Game
from dojo_core.measure.exclusive import measuring
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.records import Limit, Records
from dojo_core.package_data import data_path
from dojo_core.targets.cuda.measurer import GpuMeasurer, gpu_fault, gpu_measurer

SCRIPT = data_path("dojo_core", "targets", "cuda", "others", "torch_cuda.py")

# By name: what a table calls it, and whether it is shown without being compared with.
ROWS = {
    "torch": ("PyTorch eager, TF32 off", False),
    "torch-compile": ("torch.compile, TF32 off", False),
    "torch-compile-graphs": ("torch.compile, CUDA graphs, TF32 off", False),
    "library": ("cuBLAS, out=, TF32 off", False),
    "torch-tf32": ("PyTorch eager, TF32 on", True),
    "library-tf32": ("cuBLAS, out=, TF32 on", True),
}
PRODUCTS = {
    "library": ("matmul", "bmm"), "library-tf32": ("matmul", "bmm"),
    "torch-tf32": ("matmul", "bmm", "conv", "swiglu"),
}  # fmt: skip
IN_TF32 = ("torch-tf32", "library-tf32")  # what programs of the policy tf32 are compared with
DEFAULTS = "PyTorch's own settings: TF32 off for matrix products, on for convolutions (cuDNN)."
START_SECONDS, ROW_SECONDS = 120.0, 120.0  # to load PyTorch; to compile a row, or for its samples


class _Torch:
    """PyTorch's process, started again without a row that took it down."""

    def __init__(self, game: Game, folder: Path, command: Sequence[str], clock: str) -> None:
        self._clock = clock
        self._command = [*(command or (interpreter(), str(SCRIPT)))]
        self._command += [game.kernel or "", game.shape, str(folder)]
        self._process: Process | None = None
        self.disturbed = False  # did something else run on the device meanwhile?
        self.version = ""

    def samples(self, row: Row, count: int, cold: bool, seconds: float = ROW_SECONDS) -> list[float]:
        """Of a row, within so many seconds; where there are none the row says why."""
        try:
            with measuring(clock=self._clock) as claim:
                if self._process is None:
                    self._begin(row)
                if row.status != "ok":
                    return []
                assert self._process is not None
                request = {"row": row.entry, "samples": count, "cold": cold}
                answer = self._process.request(request, seconds)
                self.disturbed |= not claim.alone()
        except Silent as silent:
            self._process = None
            row.fail(silent.status, str(silent))
            return []
        if answer.get("status") != "ok":
            row.fail(str(answer.get("status", "failed")), str(answer.get("message", "It said nothing.")))
            return []
        row.verified = not row.entry.endswith("tf32")
        row.details = "; ".join(filter(None, [f"PyTorch {self.version}", answer.get("note", "")]))
        return [float(ns) for ns in answer["samples"]]

    def _begin(self, row: Row) -> None:
        process = Process(self._command, os.environ)
        ready = process.read(START_SECONDS)
        if ready.get("status") != "ok":
            process.close()
            row.fail(str(ready.get("status", "failed")), str(ready.get("message", "It said nothing.")))
            return
        self.version, self._process = str(ready.get("version", "")), process

    def close(self) -> None:
        if self._process is not None:
            self._process.close()


def run_gpu_bench(
    gpu: GpuMeasurer,
    game: Game,
    ours: Sequence[Entry],
    against: Sequence[str] = tuple(ROWS),
    rounds: int = 5,
    cold: bool = True,
    on_round: Callable[[int, int], None] = lambda done, of: None,
    torch: Sequence[str] = (),
    until: float = math.inf,
    records: Records | None = None,
) -> dict[str, Any]:
    """One kernel's report, as that of the CPU (``rounds.run_bench``) with ``target`` and ``cache`` besides.

    Raises BenchFailed where the last of ours cannot be measured. ``torch``: the command of its process.
    The device's limits are kept in ``records``, and are the best that these know.
    After ``until`` (of ``time.monotonic``) no round but the first begins, and of PyTorch's rows none.
    """
    workload = Workload(game.start, game.kernel, game.policy, "cuda")
    rows = [Row(e.name, f"ours: {e.name}", True, e.details) for e in ours]
    verified = gpu.measure(workload, [e.program for e in ours], Effort.FINAL, fresh=True, cold=cold)
    for first, row in zip(verified, rows, strict=True):
        row.verified = first.verified
        if first.status != "ok":
            row.fail("wrong_result" if first.status == "wrong_result" else "failed", first.message)
    if rows and all(row.status != "ok" for row in rows):
        raise BenchFailed(f"Our {rows[-1].entry} of {game.title} is not measurable: {rows[-1].message}")
    named = [n for n in against if game.kernel in PRODUCTS.get(n, (game.kernel,))]
    tf32 = game.policy == "tf32"  # then those with TF32 on are what is compared with
    others = [Row(n, ROWS[n][0], False, apart=ROWS[n][1] != tf32) for n in named]
    copies: list[list[float]] = []
    disturbed: set[int] = set()
    shape = kernels.get(game.kernel or "").shape(game.shape)
    size = kernels.get(game.kernel or "").bytes(shape)
    with tempfile.TemporaryDirectory(prefix="dojo-bench-") as place:
        write_job(Path(place), game.kernel or "", shape)
        beside = _Torch(game, Path(place), torch, gpu.device.clock_name)
        try:
            for number in range(rounds):
                if number and time.monotonic() > until:
                    break
                for entry, row in zip(ours, rows, strict=True):
                    if row.status == "ok":
                        again = gpu.measure(workload, [entry.program], Effort.ROUND, fresh=True, cold=cold)[0]
                        if again.status == "ok":
                            row.add(number, list(again.samples))
                            beside.disturbed |= not again.conditions.exclusive
                        else:
                            row.fail("failed", again.message)
                for row in others:
                    left = until - time.monotonic()
                    if row.status == "ok" and left > 0:
                        row.add(number, beside.samples(row, SAMPLES, cold, min(ROW_SECONDS, left)))
                copies.append(gpu.copied(size, SAMPLES, cold))
                if beside.disturbed:
                    disturbed.add(number)
                    beside.disturbed = False
                on_round(number + 1, rounds)
        finally:
            beside.close()
    right = [row for row in rows if row.status == "ok"]
    reference = next((row for row in reversed(right) if row.entry != "record"), None)
    flops = flops_of(game)
    device = gpu.device
    defaults = DEFAULTS if game.kernel in PRODUCTS["torch-tf32"] else ""
    # What beats the limit becomes it; but those apart compute in fewer bits than the peak is of.
    with records_or_own(records) as known:
        name = f"copy: {size} bytes, {'cold' if cold else 'warm'}"
        copied = known.lower_limit(device.fingerprint, Limit(name, min(map(min, copies)) / 1e9, MEASURED))
        lowered = None if tf32 else known.limit(device.fingerprint, f"kernel: {game.start.hash}")
    roofline = Roofline(
        memory_seconds=copied.seconds,
        arithmetic_seconds=0.0 if tf32 else flops / device.flops,  # whose peak is not that of tensor cores
        bytes=size,
        flops=flops,
        pattern="a copy of as many bytes within the device",
        peak=device.flops,
    )
    if lowered is not None:
        roofline = roofline.beaten(lowered.seconds, lowered.source)
    for row in rows + others:
        if not row.apart:
            roofline = roofline.beaten(row.least, f"{row.name} ({game.title})")
    if roofline.reached and not tf32:
        with records_or_own(records) as known:
            limit = Limit(f"kernel: {game.start.hash}", roofline.seconds, roofline.reached)
            known.lower_limit(device.fingerprint, limit)
    return {
        "kernel": game.kernel,
        "shape": game.shape,
        "policy": game.policy,
        "target": "cuda",
        "cache": "cold" if cold else "warm",
        "line": [str(p.move) for p in game.line()[1:]],
        "program": game.current.program.text,
        "rounds": len(copies),
        "samples": SAMPLES,
        "flops": flops,
        "bytes": size,
        "machine": json.dumps(asdict(device)),
        "machine_summary": device.summary,
        "reference": reference.entry if reference else None,
        "limits": {
            **limits_of(roofline),
            "way": "cuMemcpyDtoDAsync",
            "threads": device.multiprocessors,
            "gflops_one_thread": device.flops / device.multiprocessors / 1e9,
            "samples_ns": copies,
        },
        "remarks": [*filter(None, (defaults, remark_on_disturbed(disturbed, len(copies))))],
        "entries": [row.as_json(reference, roofline.seconds) for row in rows + others],
    }


def _run(
    game: Game,
    entries: Sequence[Entry],
    against: Sequence[str],
    rounds: int,
    on_round: Callable[[int, int], None],
    on_step: Callable[[str], None],
    cold: bool,
    ready_within: float | None,
    records: Records | None,
) -> dict[str, Any]:
    return run_gpu_bench(gpu_measurer(), game, entries, against, rounds, cold, on_round, records=records)


def _limits(report: Mapping[str, Any]) -> str:
    limits = report["limits"]
    return (
        f"Limits: {limits['gbytes_per_second']:.0f} GB/s in a copy within the device; "
        f"{limits['gflops']:.0f} GFLOP/s in f32 by its clock. Times by events, {report['cache']} "
        "second-level cache."
    )


CONTEST = Contest(
    baselines=ROWS,
    limit="The limit is the fastest copy of as many bytes within the device, or the kernel's operations at "
    "the device's peak rate without tensor cores, whichever takes longer. What beats it becomes it.",
    panels="Speed relative to PyTorch eager without TF32 (dashed), best runs; longer is faster. "
    "With TF32 it computes in fewer bits, and is shown apart.",
    limits=_limits,
    run=_run,
    fault=gpu_fault,
    needs_kernel=True,
    starts=False,
    apart_counts=False,
)
