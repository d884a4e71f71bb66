"""A device that is the emulator: ``python -m benchmarks.gpu.stand_in`` answers as the GPU's worker does.

Memory of the host, launches at once, and no clock: its events count what was emulated, so that all that
goes by times can be tried, and nothing takes them for seconds (``timed`` is False).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dojo_core.codegen.built import CompileError
from dojo_core.targets.cuda.driver import CudaError
from dojo_core.targets.cuda.worker import serve
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.emulator import build_emulated


@dataclass(frozen=True)
class Emulated:
    """A program, loaded; ``fault`` is what its threads did wrong in the last run."""

    run: Callable[[], None]
    fault: Callable[[], str]

    def unload(self) -> None:
        pass


class StandIn:
    """The methods of ``driver.Device``; memory that was given back is no longer there to be read."""

    name, architecture, driver, timed = "the emulator", "sm_90", "none", False
    bus = "none"
    l2_bytes, memory, clock, multiprocessors = 1 << 10, 1 << 30, 10**9, 1

    def __init__(self) -> None:
        self.held: dict[int, np.ndarray] = {}
        self.time = 0.0

    def allocate(self, size: int) -> int:
        room = np.zeros(size + 256, np.uint8)
        pointer = int(room.ctypes.data + -room.ctypes.data % 256)
        self.held[pointer] = room
        return pointer

    def free(self, pointer: int) -> None:
        del self.held[pointer]

    def upload(self, pointer: int, host: int, size: int) -> None:
        ctypes.memmove(pointer, host, size)

    def download(self, host: int, pointer: int, size: int) -> None:
        ctypes.memmove(host, pointer, size)

    def copy(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)
        self.time += 1e-12 * size

    def fill(self, pointer: int, value: int, size: int) -> None:
        ctypes.memset(pointer, value, size)

    def synchronize(self) -> None:
        pass

    def events(self, count: int) -> list[list[float]]:
        return [[0.0] for _ in range(count)]

    def record(self, event: list[float]) -> None:
        event[0] = self.time

    def seconds(self, first: list[float], last: list[float]) -> float:
        return last[0] - first[0]

    def load(self, code: GpuCode, image: bytes, arrays: Sequence[int], workspace: int) -> Emulated:
        built = build_emulated(code)
        if isinstance(built, CompileError):
            raise CudaError(built.message)
        library = ctypes.CDLL(built.library)
        pointers = (ctypes.c_void_p * len(arrays))(*arrays)

        def run() -> None:
            library[built.symbol](pointers, ctypes.c_void_p(workspace))
            self.time += 1e-4 + 1e-9 * len(code.text)

        return Emulated(run, lambda: (ctypes.c_char * 256).in_dll(library, "dojo_fault").value.decode())


if __name__ == "__main__":
    serve(StandIn)
