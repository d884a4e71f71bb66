"""All that needs a GPU, in one run: ``python -m benchmarks.gpu --out DIR``.

Verifies every recorded CUDA line against the kernel's float64 reference, times it by events with a warm and a
cold second-level cache, and beside it, interleaved, PyTorch eager and compiled (where PyTorch with CUDA is
installed) and a copy within the device, the yardstick of what memory allows. Results go to ``DIR/gpu.json``
after each kernel, and no kernel begins after ``--minutes``. TF32 is off in PyTorch.

Needs NVIDIA's driver, a CUDA compiler (nvcc or NVRTC), NumPy and Lark; downloads nothing. ``--emulate`` tries
all of it but the times on a machine without a GPU, at small shapes.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.program.tree import DTYPE_BYTES
from dojo_core.targets.cuda.build import cubin
from dojo_core.targets.cuda.driver import CudaError, Device
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.codegen import generate

STORED = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}
ROUNDS = 20
# Some rows or tiles of each: what one block does is the same.
SMALL = {
    "add": "2x2048", "mul": "2x64", "relu": "2x2048", "reducemean": "2x4096", "softmax": "16x512",
    "layernorm": "2x1024", "rmsnorm": "2x4096", "matmul": "128x64x128", "relu_ffn": "2x3x16x12",
    "batchnorm": "2x3x512x256", "bmm": "2x128x64x128",
}  # fmt: skip


def position(name: str, shape: str | None = None) -> Game:
    """The end of a recorded line."""
    line, kernel = recorded_lines("cuda")[name], kernels.get(name)
    sizes = shape or line.shape
    game = Game.new(kernel.program(kernel.shape(sizes)), name, sizes, line.target, line.policy)
    report = line.play(game)
    bad = [e for e in report.entries if not e.applies]
    if bad:
        raise RuntimeError(f"{name}: {bad[0].move} does not apply: {bad[0].reason}")
    return game


def inputs_of(code: GpuCode) -> dict[str, Any]:
    """Normal numbers, the same in every run."""
    rng = np.random.default_rng(1)
    return {
        p.name: rng.standard_normal(p.shape).astype(STORED[p.dtype])
        for p in code.parameters
        if p.role == "in"
    }


def verdict(name: str, shape: str, got: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
    """The largest error of any output element, in units of 1e-4 of the largest magnitude."""
    kernel = kernels.get(name)
    expected = kernel.reference(inputs, kernel.shape(shape))
    worst = 0.0
    for output, want in expected.items():
        have = got[output].reshape(want.shape).astype(np.float64)
        off = np.abs(have - want).max() / (1e-4 * max(1e-30, float(np.abs(want).max())))
        worst = max(worst, float(off) if math.isfinite(off) else math.inf)
    return {"verified": worst <= 1, "error": worst}


# ---------------------------------------------------------------------------- with a GPU


def timed(
    device: Device, runs: dict[str, Callable[[], None]], flush: Callable[[], None] | None
) -> dict[str, Any]:
    """Interleaved rounds; each sample is one run between two events. ``flush`` empties the cache before."""
    first, last = device.events(2)
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():  # clocks and caches settle, lazy compilation happens
        for _ in range(3):
            run()
    device.synchronize()
    for _ in range(ROUNDS):
        for name, run in runs.items():
            if flush is not None:
                flush()
            device.record(first)
            run()
            device.record(last)
            device.synchronize()
            samples[name].append(device.seconds(first, last))
    return {n: {"min": min(s), "median": statistics.median(s), "samples": s} for n, s in samples.items()}


def on_device(device: Device, name: str) -> dict[str, Any]:
    """One line: verified, then timed beside the others."""
    game = position(name)
    code = generate(game.current.program, game.policy)
    image = cubin(code, device.architecture)
    inputs = inputs_of(code)
    held: list[int] = []
    for p in code.parameters:
        size = math.prod(p.shape) * DTYPE_BYTES[p.dtype]
        held.append(device.allocate(size))
        if p.role == "in":
            device.upload(held[-1], inputs[p.name].ctypes.data, size)
        else:
            device.fill(held[-1], 0xFF, size)  # NaN: an element that is never written shows
    workspace = device.allocate(code.workspace_bytes)
    loaded = device.load(code, image, held, workspace)
    loaded.run()
    device.synchronize()
    got = {}
    for p, pointer in zip(code.parameters, held, strict=True):
        if p.role == "out":
            got[p.name] = np.empty(p.shape, STORED[p.dtype])
            device.download(got[p.name].ctypes.data, pointer, got[p.name].nbytes)
    found = {"kernel": name, "shape": game.shape, **verdict(name, game.shape, got, inputs)}
    if found["verified"]:
        total = sum(math.prod(p.shape) * DTYPE_BYTES[p.dtype] for p in code.parameters)
        source, target = device.allocate(total // 2), device.allocate(total // 2)
        runs: dict[str, Callable[[], None]] = {
            "dojo": loaded.run,
            "copy of as many bytes": lambda: device.copy(target, source, total // 2),
            **in_torch(name, inputs),
        }
        spare = device.allocate(2 * device.l2_bytes)
        found["warm"] = timed(device, runs, None)
        found["cold"] = timed(device, runs, lambda: device.fill(spare, 0, 2 * device.l2_bytes))
        held += [source, target, spare]
    loaded.unload()
    for pointer in (*held, workspace):
        device.free(pointer)
    return found


def in_torch(name: str, inputs: dict[str, Any]) -> dict[str, Callable[[], None]]:
    """PyTorch's own, eager and compiled, on the legacy default stream as ours; none without PyTorch."""
    try:
        import torch
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    torch.backends.cuda.matmul.allow_tf32 = False
    t = {n: torch.from_numpy(a).cuda() for n, a in inputs.items()}
    functional = torch.nn.functional
    forms: dict[str, Callable[..., Any]] = {
        "add": lambda: t["x"] + t["y"],
        "mul": lambda: t["x"] * t["y"],
        "relu": lambda: torch.relu(t["x"]),
        "relu_ffn": lambda: torch.relu(t["x"] * t["w"][:, None, None] + t["b"][:, None, None]),
        "batchnorm": lambda: functional.batch_norm(t["x"], None, None, t["g"], t["b"], True, 0.0, 1e-5),
        "reducemean": lambda: t["x"].mean(-1),
        "softmax": lambda: torch.softmax(t["x"], -1),
        "layernorm": lambda: functional.layer_norm(t["x"], t["x"].shape[-1:], t["g"], t["h"], 1e-5),
        "rmsnorm": lambda: functional.rms_norm(t["x"], t["x"].shape[-1:], t["g"], 1e-6),
        "matmul": lambda: t["a"] @ t["b"],
        "bmm": lambda: t["a"] @ t["b"],
    }
    compiled = torch.compile(forms[name])
    return {"torch eager": lambda: void(forms[name]()), "torch.compile": lambda: void(compiled())}


def void(_: object) -> None:
    """Drop a result."""


# ---------------------------------------------------------------------------- without one


def emulated(name: str) -> dict[str, Any]:
    """One line at a small shape in the emulator: all of the run but the device."""
    from tests.emulated import emulate

    game = position(name, SMALL[name])
    code = generate(game.current.program, game.policy)
    inputs = inputs_of(code)
    got, fault = emulate(code, inputs)
    found = {"kernel": name, "shape": game.shape, "emulated": True, "fault": fault}
    return {**found, **verdict(name, game.shape, got, inputs)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder for the results")
    parser.add_argument("--minutes", type=float, default=8.0, help="no kernel begins later")
    parser.add_argument("--emulate", action="store_true", help="without a GPU: everything but times")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    report: dict[str, Any] = {"device": "emulator", "kernels": [], "left_out": []}

    def each(one: Callable[[str], dict[str, Any]]) -> None:
        for name in recorded_lines("cuda"):
            if time.monotonic() - began > 60 * given.minutes:
                report["left_out"].append(name)
                continue
            try:
                found = one(name)
            except (CudaError, ValueError, RuntimeError) as error:
                found = {"kernel": name, "verified": False, "message": str(error)}
            report["kernels"].append(found)
            (given.out / "gpu.json").write_text(json.dumps(report, indent=1) + "\n")
            print(told(found), flush=True)

    if given.emulate:
        each(emulated)
    else:
        try:
            with Device() as device:
                report["device"], report["architecture"] = device.name, device.architecture
                each(lambda name: on_device(device, name))
        except CudaError as error:
            print(f"{error} Without one, --emulate tries everything but the times.")
            return 1
    return 0 if all(k["verified"] for k in report["kernels"]) else 1


def told(found: dict[str, Any]) -> str:
    """A line for people."""
    state = "verified" if found["verified"] else f"WRONG {found.get('message') or found.get('fault') or ''}"
    times = [f"{n} {1e6 * t['min']:.1f} us" for n, t in found.get("cold", {}).items()]
    return f"{found['kernel']} {found.get('shape', '')}: {state}. {', '.join(times)}"


if __name__ == "__main__":
    raise SystemExit(main())
