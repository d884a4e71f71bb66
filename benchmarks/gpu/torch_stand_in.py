"""PyTorch's rows without a GPU, ``torch_stand_in.py KERNEL SHAPE FOLDER``: torch_cuda.py on the CPU.

Tensors stay where they are, nothing is compiled, and the clock counts its questions: all but the times of the
rows can be tried.
"""

from __future__ import annotations

import itertools
import sys
from types import SimpleNamespace
from typing import Any

import torch

from dojo_core.targets.cuda.bench import SCRIPT

sys.path.insert(0, str(SCRIPT.parent))
import torch_cuda

_asked = itertools.count()
_empty = torch.empty


class Event:
    """Each is a thousandth of a second behind the one before."""

    def __init__(self, enable_timing: bool) -> None:
        self.at = 0

    def record(self) -> None:
        self.at = next(_asked)

    def elapsed_time(self, last: Event) -> float:
        return float(last.at - self.at)


def empty(*size: Any, device: str = "", **more: Any) -> torch.Tensor:
    return _empty(*size, **more)


def main() -> None:
    replaced: dict[Any, dict[str, Any]] = {
        torch: {"empty": empty, "compile": lambda function, mode: function},
        torch.Tensor: {"cuda": lambda tensor: tensor},
        torch.cuda: {
            "is_available": lambda: True,
            "synchronize": lambda: None,
            "get_device_properties": lambda device: SimpleNamespace(L2_cache_size=1024),
            "Event": Event,
        },
    }
    for place, names in replaced.items():
        for name, value in names.items():
            setattr(place, name, value)
    torch_cuda.main()


if __name__ == "__main__":
    main()
