"""Run generated CUDA or HIP in the emulator, in this process."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping

import numpy as np

from dojo_core.codegen.built import Built
from dojo_core.program.gpu import kernels as launches
from dojo_core.program.tree import Program, Scope
from dojo_core.targets.gpu.barriers import LOOPS, barriers
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.codegen import generate
from dojo_core.targets.gpu.emulator import build_emulated
from tests.compiled import STORED

ORDERS = (0, 1, 2)  # threads ascending, descending, at random


def emulate(
    code: GpuCode, inputs: Mapping[str, np.ndarray], order: int = -1, text: str | None = None
) -> tuple[dict[str, np.ndarray], str]:
    """Outputs by buffer name, poisoned where nothing was written, and the fault of the threads (or "")."""
    built = build_emulated(code, text)
    assert isinstance(built, Built), built
    library = ctypes.CDLL(built.library)
    ctypes.c_int.in_dll(library, "dojo_order").value = order
    arrays: list[np.ndarray] = []
    for p in code.parameters:
        if p.role == "in":
            arrays.append(np.ascontiguousarray(inputs[p.name], STORED[p.dtype]).reshape(p.shape).copy())
        else:
            arrays.append(np.full(p.shape, 77, STORED[p.dtype]))
    # Wide loads need the alignment that device memory has.
    held = [np.empty(a.nbytes + 256, np.uint8) for a in arrays]
    starts = [h.ctypes.data + -h.ctypes.data % 256 for h in held]
    for start, array in zip(starts, arrays, strict=True):
        ctypes.memmove(start, array.ctypes.data, array.nbytes)
    pointers = (ctypes.c_void_p * len(arrays))(*starts)
    workspace = np.full(code.workspace_bytes + 256, 0xFF, np.uint8)
    space = workspace.ctypes.data + -workspace.ctypes.data % 256
    getattr(library, built.symbol)(pointers, ctypes.c_void_p(space))
    for start, array in zip(starts, arrays, strict=True):
        ctypes.memmove(array.ctypes.data, start, array.nbytes)
    fault = (ctypes.c_char * 256).in_dll(library, "dojo_fault").value.decode()
    outputs = {p.name: a for p, a in zip(code.parameters, arrays, strict=True) if p.role == "out"}
    return outputs, fault


def barriers_met(program: Program) -> int:
    """How many barriers of its block a thread meets, in all kernels of a program."""
    found = 0
    for launch in launches(program):
        for path in barriers(program, launch).block:
            above = [program.node(path[:depth]) for depth in range(len(launch.body), len(path))]
            found += math.prod(node.size for node in above if isinstance(node, Scope) and node.mark in LOOPS)
    return found


def code_of(program: Program, policy: str = "reassoc", hip: bool = False) -> GpuCode:
    return generate(program, policy, "hip", 64) if hip else generate(program, policy)
