"""PyTorch eager as a baseline process: ``torch_eager.py KERNEL SHAPE SETS``.

Says ``{"status": "ok", ...}`` when it is ready, then answers each line, a number of runs, with their times
in nanoseconds. Outputs are written into memory that is reused (``out=`` where PyTorch has it; the
environment keeps freed memory in the process for the rest). Inputs rotate among SETS sets, as ours do.
"""

from __future__ import annotations

import json
import mmap
import sys
import time
from collections.abc import Callable

import numpy as np

from dojo_core import kernels
from dojo_core.program.tree import DTYPE_BYTES

Run = Callable[[], object]


def paged(shape: tuple[int, ...]) -> np.ndarray:
    """A float32 array in huge pages where the system grants them, touched."""
    count = int(np.prod(shape))
    memory = mmap.mmap(-1, max(4096, count * DTYPE_BYTES["f32"]))
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(memory, np.float32, count).reshape(shape)
    array[...] = 0
    return array


def operator(name: str, t: dict, shape: tuple[int, ...]) -> Run:
    """The kernel as PyTorch computes it: ``t`` has the inputs and outputs by name."""
    import torch
    from torch.nn import functional as F

    if name == "add":
        return lambda: torch.add(t["x"], t["y"], out=t["z"])
    if name == "mul":
        return lambda: torch.mul(t["x"], t["y"], out=t["z"])
    if name == "relu":
        return lambda: torch.clamp_min(t["x"], 0, out=t["y"])
    if name == "reducemean":
        return lambda: torch.mean(t["x"], -1, out=t["y"])
    if name == "softmax":
        return lambda: torch.softmax(t["x"], -1, out=t["y"])
    if name == "matmul":
        return lambda: torch.matmul(t["a"], t["b"], out=t["c"])
    if name == "bmm":
        return lambda: torch.bmm(t["a"], t["b"], out=t["c"])
    ordered = list(t.values())
    if name == "relu_ffn":
        x, w, b = ordered[:3]
        return lambda: torch.relu(x * w[:, None, None] + b[:, None, None])
    if name == "layernorm":
        x, w, b = ordered[:3]
        return lambda: F.layer_norm(x, x.shape[-1:], w, b, 1e-5)
    if name == "rmsnorm":
        x, w = ordered[:2]
        return lambda: F.rms_norm(x, x.shape[-1:], w, 1e-6)
    if name == "batchnorm":
        x, w, b = ordered[:3]
        return lambda: F.batch_norm(x, None, None, w, b, True, 0.0, 1e-5)
    if name == "conv":
        x, w = ordered[:2]
        return lambda: F.conv2d(x, w)
    if name == "swiglu":
        x, w, v = ordered[:3]
        return lambda: F.silu(x @ w) * (x @ v)
    single = {
        "gelu": lambda x: F.gelu(x),
        "silu": lambda x: F.silu(x),
        "log_softmax": lambda x: torch.log_softmax(x, -1),
        "cross_entropy": lambda x, t: F.cross_entropy(x, t, reduction="none"),
        "groupnorm": lambda x, g, b: F.group_norm(
            x.flatten(1, 2), shape[1], g.flatten(), b.flatten(), 1e-5
        ).view(x.shape),
        "maxpool": lambda x: F.max_pool2d(x, shape[4], shape[5]),
        "sumpool": lambda x: F.avg_pool2d(x, shape[4], shape[5], divisor_override=1),
        "avgpool": lambda x: F.avg_pool2d(x, shape[4], shape[5]),
        "dwconv": lambda x, w: F.conv2d(x, w[:, None], groups=shape[1]),
        "attention": lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None])[0],
        "transpose": lambda x: x.T.contiguous(),
    }
    if name in single:
        kernel = kernels.get(name)
        inputs = [t[a] for a in kernel.program(shape).inputs]
        return lambda: single[name](*inputs)
    if name == "fill":
        return lambda: t["y"].fill_(t["v"])
    if name == "axpy":
        return lambda: torch.addcmul(t["y"], t["a"], t["x"], out=t["z"])
    if name == "dot":
        return lambda: torch.dot(t["x"], t["y"], out=t["s"])
    if name == "sum":
        return lambda: torch.sum(t["x"], 0, out=t["s"])
    if name == "gemv":
        return lambda: torch.mv(t["a"], t["x"], out=t["y"])
    raise LookupError(f"PyTorch has no baseline for {name} here.")


def prepare(name: str, shape_text: str, sets: int) -> tuple[list[Run], bool, str]:
    import torch

    kernel = kernels.get(name)
    shape = kernel.shape(shape_text)
    program = kernel.program(shape)
    buffers = {a: b for b in program.buffers for a in b.arrays}
    rng = np.random.default_rng(0)
    runs: list[Run] = []
    verified = False
    for number in range(max(1, sets)):
        arrays = {a: paged(tuple(d.size for d in buffers[a].dims)) for a in program.inputs + program.outputs}
        for a in program.inputs:
            arrays[a][...] = rng.standard_normal(arrays[a].shape, np.float32)
        run = operator(name, {a: torch.from_numpy(v) for a, v in arrays.items()}, shape)
        if number == 0:  # it must compute the same as our kernel
            found = run()
            wanted = kernel.reference({a: arrays[a].astype(np.float64) for a in program.inputs}, shape)
            result = np.asarray(found)
            reference = wanted[program.outputs[0]]
            scale = float(np.abs(reference).max()) or 1.0
            verified = bool(np.abs(result - reference).max() <= 1e-3 * scale)
        runs.append(run)
    return runs, verified, torch.__version__.split("+")[0]


def main() -> None:
    try:
        runs, verified, version = prepare(sys.argv[1], sys.argv[2], int(sys.argv[3]))
        if not verified:
            raise ValueError("PyTorch's result differs from the kernel's reference.")
    except (ImportError, LookupError, ValueError, RuntimeError) as error:
        print(json.dumps({"status": "failed", "message": str(error)}), flush=True)
        return
    for run in runs * 2:
        run()
    print(json.dumps({"status": "ok", "verified": verified, "version": version}), flush=True)
    turn = 0
    for line in sys.stdin:
        samples = []
        for _ in range(int(line)):
            run = runs[turn % len(runs)]
            turn += 1
            begin = time.perf_counter_ns()
            run()
            samples.append(time.perf_counter_ns() - begin)
        print(json.dumps({"samples": samples}), flush=True)


if __name__ == "__main__":
    main()
