"""The CUDA driver by ctypes: a device, its memory, a program's launches on it, and their times by events.

Needs ``libcuda.so.1``, which comes with NVIDIA's driver, and nothing else. Every call is checked; a failed
one raises CudaError with the driver's own name and words for it. After a fault of a kernel (an illegal
address) every later call of the process fails: only a new process helps. One context, which is current in
the thread that made the device and in no other; the legacy default stream; no thread safety.

Shared memory of the generated kernels is static, so no kernel asks for more than 48 KiB and none needs the
attribute that opts in to more. The library's exported names keep their meaning: those that a newer header
maps to ``_v2`` names (cuCtxSynchronize, cuEventElapsedTime) are still there.

Source: CUDA driver API reference (cuInit to cuEventElapsedTime; CUdevice_attribute, CUfunction_attribute).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from dojo_core.targets.gpu.code import GpuCode, Launch

NO_DRIVER = "There is no NVIDIA driver here (libcuda.so.1): times on a GPU need one."
WARP = 32

# CU_DEVICE_ATTRIBUTE_...
_BLOCK_THREADS, _GRID_BLOCKS, _BLOCK_SHARED, _WARP = 1, 5, 8, 10
_CLOCK_KHZ, _MULTIPROCESSORS, _L2_BYTES, _MAJOR, _MINOR = 13, 16, 38, 75, 76
# CU_FUNC_ATTRIBUTE_...
_FUNCTION_THREADS, _FUNCTION_SHARED = 0, 1


class CudaError(Exception):
    """A call to the driver failed; ``str()`` is a sentence, ``status`` the driver's number (0: none)."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class LaunchLimits:
    """What a device accepts of a launch."""

    threads: int
    shared_bytes: int
    blocks: int

    def fault(self, launch: Launch, threads: int, shared_bytes: int) -> str:
        """Why it would refuse a launch, as a sentence, or "". ``threads``: what the compiled kernel's
        registers allow a block; ``shared_bytes``: what it takes."""
        if launch.blocks > self.blocks:
            return f"{launch.symbol} has {launch.blocks:,} blocks: the device takes {self.blocks:,}."
        if launch.threads > min(self.threads, threads):
            most = min(self.threads, threads)
            return (
                f"{launch.symbol} has {launch.threads} threads a block: as compiled the device takes {most}."
            )
        if shared_bytes > self.shared_bytes:
            return (
                f"{launch.symbol} takes {shared_bytes:,} bytes of shared memory a block: "
                f"the device has {self.shared_bytes:,}."
            )
        return ""


def _library() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise CudaError(NO_DRIVER) from None


def driver_fault() -> str:
    """Why there can be no GPU here, or "" where NVIDIA's driver is; asks no device."""
    try:
        _library()
    except CudaError as error:
        return str(error)
    return ""


class Device:
    """The first GPU. Use it in ``with``. Raises CudaError where there is none.

    ``name``; ``architecture`` as compilers spell it (``sm_90``); ``l2_bytes`` the second-level cache;
    ``limits`` of a launch: threads and shared bytes of a block, blocks of a grid; ``clock`` in Hz and
    ``multiprocessors``; ``memory`` in bytes; ``driver`` the CUDA version that the driver supports;
    ``bus`` its PCI address.
    """

    timed = True  # its events are a clock

    def __init__(self) -> None:
        self._cuda = _library()
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
        self.limits = LaunchLimits(*map(self._attribute, (_BLOCK_THREADS, _BLOCK_SHARED, _GRID_BLOCKS)))
        self.clock, self.multiprocessors = (
            1000 * self._attribute(_CLOCK_KHZ),
            self._attribute(_MULTIPROCESSORS),
        )
        if self._attribute(_WARP) != WARP:
            raise CudaError(f"Its warps do not have the {WARP} lanes that the generated code counts on.")
        bus = ctypes.create_string_buffer(32)
        self._call("cuDeviceGetPCIBusId", bus, 32, self._device)
        self.bus = bus.value.decode()
        size, version = ctypes.c_size_t(), ctypes.c_int()
        self._call("cuDeviceTotalMem_v2", ctypes.byref(size), self._device)
        self._call("cuDriverGetVersion", ctypes.byref(version))
        self.memory = size.value
        self.driver = f"{version.value // 1000}.{version.value % 1000 // 10}"
        self._context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self._call("cuCtxSetCurrent", self._context)
        self._held: list[int] = []
        self._events: list[ctypes.c_void_p] = []

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for event in self._events:
            self._cuda.cuEventDestroy_v2(event)
        for pointer in self._held:
            self._cuda.cuMemFree_v2(ctypes.c_uint64(pointer))
        self._cuda.cuDevicePrimaryCtxRelease_v2(self._device)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        if status:
            word, meaning = ctypes.c_char_p(), ctypes.c_char_p()
            self._cuda.cuGetErrorName(status, ctypes.byref(word))
            self._cuda.cuGetErrorString(status, ctypes.byref(meaning))
            cause = word.value.decode() if word.value else f"status {status}"
            more = f" ({meaning.value.decode()})" if meaning.value else ""
            raise CudaError(f"The CUDA driver says {cause} to {name}{more}.", status)

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
        """A program's machine code with the memory it works on: ``arrays`` in the order of its parameters.

        Raises CudaError where the device would refuse a launch.
        """
        module = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), image)
        functions: dict[str, ctypes.c_void_p] = {}
        for symbol in code.kernels:
            functions[symbol] = ctypes.c_void_p()
            self._call("cuModuleGetFunction", ctypes.byref(functions[symbol]), module, symbol.encode())
        prepared, checked = [], set()
        for launch, iterators in code.launches():
            if launch not in checked:
                function = functions[launch.symbol]
                fault = self.limits.fault(
                    launch, self._of(function, _FUNCTION_THREADS), self._of(function, _FUNCTION_SHARED)
                )
                if fault:
                    self._call("cuModuleUnload", module)
                    raise CudaError(fault)
                checked.add(launch)
            values: list[Any] = [
                ctypes.c_uint64(arrays[p.array] if p.array is not None else workspace + p.offset)
                for p in launch.pointers
            ]
            values += [ctypes.c_int(iterators[n]) for n in launch.loops]
            addresses = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
            prepared.append((functions[launch.symbol], launch.blocks, launch.threads, addresses, values))
        return Loaded(self, module, prepared)

    def _of(self, function: ctypes.c_void_p, attribute: int) -> int:
        value = ctypes.c_int()
        self._call("cuFuncGetAttribute", ctypes.byref(value), attribute, function)
        return value.value

    def events(self, count: int) -> list[ctypes.c_void_p]:
        """Events to record and to measure between."""
        made = []
        for _ in range(count):
            event = ctypes.c_void_p()
            self._call("cuEventCreate", ctypes.byref(event), 0)
            made.append(event)
        self._events += made
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
