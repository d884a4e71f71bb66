"""Programs on the device: memory for a kernel's arrays, results, times by events."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from benchmarks.gpu.positions import STORED, inputs_of, verdict
from dojo_core import kernels
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.program.tree import DTYPE_BYTES, Program
from dojo_core.targets.cuda.build import cubin
from dojo_core.targets.cuda.driver import CudaError, Device, Loaded
from dojo_core.targets.gpu.codegen import generate

ROUNDS = 20


class Arrays:
    """A kernel's inputs and outputs in device memory, and what the outputs must be. Use it in ``with``."""

    def __init__(self, device: Device, name: str, shape: str) -> None:
        self._device, self._name, self._shape = device, name, shape
        kernel = kernels.get(name)
        self.start = kernel.program(kernel.shape(shape))
        self.inputs = inputs_of(self.start)
        self.expected = kernel.reference(self.inputs, kernel.shape(shape))
        self._pointers: dict[str, int] = {}
        self._workspace, self._held = 0, 0
        for array in (*self.start.inputs, *self.start.outputs):
            self._pointers[array] = device.allocate(self.size(array))
        for array, values in self.inputs.items():
            device.upload(self._pointers[array], values.ctypes.data, self.size(array))

    def __enter__(self) -> Arrays:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pointer in (*self._pointers.values(), *([self._workspace] if self._workspace else [])):
            self._device.free(pointer)

    def size(self, array: str) -> int:
        """Bytes."""
        buffer = self.start.buffer_of[array]
        return math.prod(d.size for d in buffer.dims) * DTYPE_BYTES[buffer.dtype]

    @property
    def bytes(self) -> int:
        """Of all inputs and outputs."""
        return sum(map(self.size, self._pointers))

    def load(self, program: Program, policy: str) -> Loaded:
        """Compile and load a program on these arrays. Raises ValueError where it does not compile."""
        code = generate(program, policy)
        if code.workspace_bytes > self._held:
            if self._workspace:
                self._device.free(self._workspace)
            self._workspace = self._device.allocate(code.workspace_bytes)
            self._held = code.workspace_bytes
        pointers = [self._pointers[p.name] for p in code.parameters]
        return self._device.load(code, cubin(code, self._device.architecture), pointers, self._workspace)

    def verified(self, loaded: Loaded) -> dict[str, Any]:
        """Run once, and compare. An element that is never written shows as NaN."""
        for array in self.start.outputs:
            self._device.fill(self._pointers[array], 0xFF, self.size(array))
        loaded.run()
        self._device.synchronize()
        got = {}
        for array in self.start.outputs:
            buffer = self.start.buffer_of[array]
            got[array] = np.empty([d.size for d in buffer.dims], STORED[buffer.dtype])
            self._device.download(got[array].ctypes.data, self._pointers[array], got[array].nbytes)
        return verdict(self._name, self._shape, got, self.inputs, self.expected)


def timed(
    device: Device,
    runs: Mapping[str, Callable[[], None]],
    flush: Callable[[], None] | None,
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """Interleaved rounds; each sample is one run between two events. ``flush`` empties the cache before."""
    first, last = device.events(2)
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():  # clocks and caches settle, lazy compilation happens
        for _ in range(3):
            run()
    device.synchronize()
    for _ in range(rounds):
        for name, run in runs.items():
            if flush is not None:
                flush()
            device.record(first)
            run()
            device.record(last)
            device.synchronize()
            samples[name].append(device.seconds(first, last))
    return {n: {"min": min(s), "median": statistics.median(s), "samples": s} for n, s in samples.items()}


class DeviceTiming:
    """Times of a GPU for agents (``agents.timing.Timing``): compiled, verified, timed with a warm cache."""

    def __init__(self, device: Device, arrays: Arrays) -> None:
        self._device, self._arrays = device, arrays

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        """As ``Timing.measure``; nothing is recorded."""
        return [self._one(p, workload.policy, effort, cancelled) for p in programs]

    def _one(
        self, program: Program, policy: str, effort: Effort, cancelled: Callable[[], bool]
    ) -> Measurement:
        if cancelled():
            return Measurement(program.hash, "", "cancelled", "Not measured: the request was cancelled.")
        try:
            loaded = self._arrays.load(program, policy)
        except ValueError as error:
            return Measurement(program.hash, "", "compile_error", str(error))
        try:
            seen = self._arrays.verified(loaded)
            if not seen["verified"]:
                return Measurement(
                    program.hash, "", "wrong_result", f"Off by {seen['error']:.3g} tolerances."
                )
            rounds = ROUNDS if effort is Effort.FINAL else 5
            found = timed(self._device, {"": loaded.run}, None, rounds)[""]
        except CudaError as error:
            return Measurement(program.hash, "", "crash", str(error))
        finally:
            loaded.unload()
        return Measurement(
            program.hash,
            program.hash,
            "ok",
            samples=tuple(1e9 * s for s in found["samples"]),
            seconds=found["min"],
            median=found["median"],
            verified=True,
        )
