"""Tensors as the arrays that kernels take and give, without a copy where there can be none."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

Values = np.ndarray[Any, Any]

# Dtypes whose elements NumPy has under another name, or none: as which PyTorch shows their bits to it.
_BITS = {torch.bfloat16: torch.uint16, torch.bool: torch.uint8}


def stored(tensor: torch.Tensor) -> Values:
    """A tensor's elements as kernels store them (``measure.pool.STORED``), in row-major order: its own memory
    where they lie so."""
    dense = tensor.detach().resolve_neg().contiguous()
    return dense.view(_BITS.get(dense.dtype, dense.dtype)).numpy()


def from_stored(values: Values, dtype: torch.dtype) -> torch.Tensor:
    """A tensor on an array's memory."""
    return torch.from_numpy(values).view(dtype)
