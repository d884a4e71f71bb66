import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer as SupportsBuffer

class Buffer(SupportsBuffer):
    def __init__(self, name: str, bytes: int, stagger: int = 0) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    def protect(self, read_only: bool) -> None: ...
    def poison(self, dtype: str) -> None: ...
    def damage(self) -> int: ...

class Kernel:
    def __init__(self, path: str, symbol: str) -> None: ...
    def time(
        self,
        sets: list[list[Buffer]],
        workspace: Buffer | None,
        samples: int,
        repeats: int = 1,
        cutoff_ns: float = 0.0,
        patience: int = 1,
        budget_ns: float = 0.0,
        first: int = 0,
    ) -> list[tuple[float, int, int]]: ...

def compare(
    buffer: Buffer,
    dtype: str,
    reference: NDArray[np.float64],
    tolerance: NDArray[np.float64],
    columns: int,
) -> dict[str, int | float]: ...
def row_errors(
    buffer: Buffer, dtype: str, reference: NDArray[np.float64], columns: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def report_faults(descriptor: int) -> None: ...
def calibrate() -> float: ...
