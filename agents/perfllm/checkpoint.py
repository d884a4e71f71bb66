"""Tensors and plain data in a folder, written whole or not at all: safetensors and JSON, no code."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from agents.perfllm.adam import Adam
from dojo_core.bounded_json import read_object
from dojo_core.files import naming, write_text

LARGEST_STATE = 1 << 30  # bytes of the plain data


def write(folder: Path, tensors: Mapping[str, Tensor], data: Mapping[str, Any]) -> None:
    """Put a checkpoint in place of the one before. A kill at any moment leaves one of the two."""
    new, old = folder.with_name(folder.name + ".new"), folder.with_name(folder.name + ".old")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    with naming(new):
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()}, new / "tensors.safetensors"
        )
    write_text(new / "state.json", json.dumps(data) + "\n")
    for path in (new / "tensors.safetensors", new / "state.json", new):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def read(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The checkpoint, or None where there is none. Raises ValueError where it is damaged."""
    if not folder.exists():  # killed between the two renames
        old = folder.with_name(folder.name + ".old")
        if not old.exists():
            return None
        old.rename(folder)
    try:
        data = read_object((folder / "state.json").read_bytes(), LARGEST_STATE, nonfinite=True)
        tensors = load_file(folder / "tensors.safetensors")
    except Exception as error:
        raise ValueError(
            f"The checkpoint {folder} cannot be read ({error}): remove it to begin anew."
        ) from error
    return tensors, data


def module_tensors(prefix: str, module: torch.nn.Module) -> dict[str, Tensor]:
    """A module's parameters and buffers under a prefix."""
    return {f"{prefix}.{name}": tensor for name, tensor in module.state_dict().items()}


def restore_module(prefix: str, module: torch.nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put them back."""
    start = prefix + "."
    module.load_state_dict({k[len(start) :]: v for k, v in tensors.items() if k.startswith(start)})


def optimizer_tensors(prefix: str, optimizer: Adam) -> dict[str, Tensor]:
    """Its moments under a prefix."""
    return {
        f"{prefix}.{number}.{name}": tensor
        for number, moments in optimizer.moments.items()
        for name, tensor in moments.items()
    }


def restore_optimizer(prefix: str, optimizer: Adam, tensors: Mapping[str, Tensor]) -> None:
    """Put them back; the settings stay those of the optimizer."""
    optimizer.moments = {}
    for key, value in tensors.items():
        if key.startswith(prefix + "."):
            number, name = key[len(prefix) + 1 :].split(".")
            optimizer.moments.setdefault(int(number), {})[name] = value.clone()
