"""The CUDA driver by ctypes: a device, its memory, a program's launches on it, and their times by events.

Needs ``libcuda.so.1``, which comes with NVIDIA's driver, and nothing else. Every call is checked; a failed
one raises CudaError with the driver's own name for it. One context, one stream, no thread safety.

Source: CUDA driver API reference (cuInit to cuEventElapsedTime).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from dojo_core.targets.gpu.code import GpuCode

_MAJOR, _MINOR, _L2_BYTES = 75, 76, 38  # CU_DEVICE_ATTRIBUTE_...


class CudaError(Exception):
    """A call to the driver failed; ``str()`` is a sentence."""


class Device:
    """The first GPU. Use it in ``with``. Raises CudaError where there is none.

    ``name``; ``architecture`` as compilers spell it (``sm_90``); ``l2_bytes`` the second-level cache.
    """

    def __init__(self) -> None:
        try:
            self._cuda: Any = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise CudaError("There is no NVIDIA driver here (libcuda.so.1): a GPU needs one.") from None
        self._call("cuInit", 0)
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if not count.value:
            raise CudaError("There is no GPU here.")
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), 0)
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, 256, self._device)
        self.name = name.value.decode()
        self.architecture = f"sm_{self._attribute(_MAJOR)}{self._attribute(_MINOR)}"
        self.l2_bytes = self._attribute(_L2_BYTES)
        self._context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self._call("cuCtxSetCurrent", self._context)
        self._held: list[int] = []

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pointer in self._held:
            self._cuda.cuMemFree_v2(ctypes.c_uint64(pointer))
        self._cuda.cuDevicePrimaryCtxRelease_v2(self._device)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        if status:
            told = ctypes.c_char_p()
            self._cuda.cuGetErrorName(status, ctypes.byref(told))
            word = told.value.decode() if told.value else str(status)
            raise CudaError(f"The CUDA driver says {word} to {name}.")

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value

    # ------------------------------------------------------------------ memory

    def allocate(self, size: int) -> int:
        """Device memory of ``size`` bytes, 256-byte aligned; held until the device is closed."""
        pointer = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        self._held.append(pointer.value)
        return pointer.value

    def free(self, pointer: int) -> None:
        """Give memory back."""
        self._held.remove(pointer)
        self._call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def upload(self, pointer: int, host: int, size: int) -> None:
        """Copy ``size`` bytes from the address ``host``."""
        self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), ctypes.c_void_p(host), ctypes.c_size_t(size))

    def download(self, host: int, pointer: int, size: int) -> None:
        """Copy ``size`` bytes to the address ``host``."""
        self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(host), ctypes.c_uint64(pointer), ctypes.c_size_t(size))

    def fill(self, pointer: int, value: int, size: int) -> None:
        """Set ``size`` bytes, in order with launches."""
        self._call("cuMemsetD8_v2", ctypes.c_uint64(pointer), ctypes.c_ubyte(value), ctypes.c_size_t(size))

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy within the device, in order with launches."""
        self._call(
            "cuMemcpyDtoDAsync_v2",
            ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size), ctypes.c_void_p(),
        )  # fmt: skip

    def synchronize(self) -> None:
        """Wait for everything; an error of a kernel shows here."""
        self._call("cuCtxSynchronize")

    # ------------------------------------------------------------------ programs

    def load(self, code: GpuCode, image: bytes, arrays: Sequence[int], workspace: int) -> Loaded:
        """A program's machine code with the memory it works on: ``arrays`` in the order of its parameters."""
        module = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), image)
        functions: dict[str, ctypes.c_void_p] = {}
        for symbol in code.kernels:
            functions[symbol] = ctypes.c_void_p()
            self._call("cuModuleGetFunction", ctypes.byref(functions[symbol]), module, symbol.encode())
        prepared = []
        for launch, iterators in code.launches():
            values: list[Any] = [
                ctypes.c_uint64(arrays[p.array] if p.array is not None else workspace + p.offset)
                for p in launch.pointers
            ]
            values += [ctypes.c_int(iterators[n]) for n in launch.loops]
            addresses = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
            prepared.append((functions[launch.symbol], launch.blocks, launch.threads, addresses, values))
        return Loaded(self, module, prepared)

    def events(self, count: int) -> list[ctypes.c_void_p]:
        """Events to record and to measure between."""
        made = []
        for _ in range(count):
            event = ctypes.c_void_p()
            self._call("cuEventCreate", ctypes.byref(event), 0)
            made.append(event)
        return made

    def record(self, event: ctypes.c_void_p) -> None:
        """Mark this place in the order of launches."""
        self._call("cuEventRecord", event, ctypes.c_void_p())

    def seconds(self, first: ctypes.c_void_p, last: ctypes.c_void_p) -> float:
        """Between two events that have happened."""
        milliseconds = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(milliseconds), first, last)
        return milliseconds.value / 1e3


class Loaded:
    """A program on the device, ready to run."""

    def __init__(self, device: Device, module: ctypes.c_void_p, prepared: list[Any]) -> None:
        self._device, self._module, self._prepared = device, module, prepared

    def run(self) -> None:
        """All launches of one run, in order, without waiting for them."""
        for function, blocks, threads, addresses, _ in self._prepared:
            self._device._call(
                "cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, ctypes.c_void_p(), addresses, None
            )

    def unload(self) -> None:
        """Give the module back."""
        self._device._call("cuModuleUnload", self._module)
