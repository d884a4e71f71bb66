"""In the measuring process: programs that count in numbers of their own, which their files export."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dojo_native

from dojo_core.measure import sealed


class Counted:
    """A program as a request names it: ``counters`` are ``numbers`` unsigned 64-bit integers (0: none), and
    it runs on so many ``threads`` (0: all). Raises Damaged where its file is no longer what was compiled."""

    def __init__(self, request: dict[str, Any]) -> None:
        with sealed.loadable(Path(request["library"])) as library:
            self.kernel = dojo_native.Kernel(library, request["symbol"])
            self._library = ctypes.CDLL(library)
        self.workspace: int = request["workspace"]
        self._threads: int = request["threads"]
        self.repeats: int = request["repeats"]
        count: int = request["numbers"]
        self._numbers: Any = (
            (ctypes.c_uint64 * count).in_dll(self._library, request["counters"]) if count else ()
        )

    def run(
        self, sets: list[list[dojo_native.Buffer]], space: dojo_native.Buffer | None, first: int
    ) -> tuple[float, int, list[int]]:
        """One sample: nanoseconds of a run, page faults of all, and by what the numbers grew in all."""
        before = list(self._numbers)
        own = space if self.workspace else None
        with self._on_threads():
            nanoseconds, _, faults = self.kernel.time(sets, own, 1, self.repeats, first=first)[0]
        return nanoseconds, faults, [b - a for a, b in zip(before, self._numbers, strict=True)]

    @contextmanager
    def _on_threads(self) -> Iterator[None]:
        """OpenMP's threads, where the program has any."""
        chosen = self._threads and hasattr(self._library, "omp_set_num_threads")
        usual = self._library.omp_get_max_threads() if chosen else 0
        if chosen:
            self._library.omp_set_num_threads(self._threads)
        try:
            yield
        finally:
            if chosen:
                self._library.omp_set_num_threads(usual)
