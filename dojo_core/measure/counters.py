"""What the processor and the system count while the calling thread runs, by Linux' perf_event_open: as far as
the system lets it be read, which most virtual machines do not for what the processor counts."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

HARDWARE = ("cycles", "instructions", "branch misses", "cache misses")
# By name: the type (0 the processor's, 1 the system's) and the number of an event.
_EVENTS = {
    "cycles": (0, 0),
    "instructions": (0, 1),
    "branch misses": (0, 5),
    "cache misses": (0, 3),
    "page faults": (1, 2),
}
_CALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241}
_SIZE = 64  # bytes of the first version of perf_event_attr
_USERS_ALONE = 1 << 5 | 1 << 6  # not what the kernel and the hypervisor do


class Counters:
    """Of the thread that makes them; close them."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        call = _CALLS.get(platform.machine()) if sys.platform == "linux" else None
        if call is None:
            return
        system_call = ctypes.CDLL(None, use_errno=True).syscall
        for name, (kind, event) in _EVENTS.items():
            attributes = struct.pack("=IIQQQQQII", kind, _SIZE, event, 0, 0, 0, _USERS_ALONE, 0, 0)
            attributes += bytes(_SIZE - len(attributes))
            descriptor = system_call(ctypes.c_long(call), attributes, 0, -1, -1, ctypes.c_ulong(0))
            if descriptor >= 0:
                self._open[name] = descriptor

    def read(self) -> dict[str, int]:
        """What was counted until now, by name; nothing that may not be read."""
        return {name: int.from_bytes(os.read(each, 8), sys.byteorder) for name, each in self._open.items()}

    def close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
