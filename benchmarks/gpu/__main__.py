"""All that needs a GPU, in one run: ``python -m benchmarks.gpu --out DIR``.

For the 16 kernel shapes of the paper's table 3: the recorded line and what the heuristic pass makes are
verified against the float64 reference and timed by events, with a warm and a cold second-level cache,
interleaved with PyTorch eager, compiled and compiled with CUDA graphs (where it is installed; TF32 off, and
on beside it for products) and with a copy within the device, the yardstick of what memory allows. Then a
sample of random legal walks is verified, and a search of ``--search`` evaluations from the heuristic's
position of some kernels. Results go to ``DIR/gpu.json`` as they come; nothing begins after ``--minutes``.

Needs NVIDIA's driver, a CUDA compiler (nvcc or NVRTC), NumPy and Lark; downloads nothing. ``--emulate`` tries
all of it but the times on a machine without a GPU, at small shapes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.agent import Budget, Task, run
from agents.players import AGENTS
from agents.timing import CountTiming, Timing
from benchmarks.gpu.on_device import Arrays, DeviceTiming, timed
from benchmarks.gpu.positions import SMALL, TABLE, WAYS, inputs_of, position, shapes, verdict, walked
from benchmarks.gpu.torch_forms import in_torch
from dojo_core.game import Game
from dojo_core.targets.cuda.driver import CudaError, Device
from dojo_core.targets.gpu.codegen import generate

WALKS = 2  # of each kernel
SEARCHED = ("softmax", "rmsnorm", "relu_ffn", "conv", "matmul")
AGENT = "sampling-edges"

# ---------------------------------------------------------------------------- with a GPU


def compared(device: Device, name: str, shape: str) -> dict[str, Any]:
    """One kernel: each way verified, then all timed beside the others."""
    found: dict[str, Any] = {"kernel": name, "shape": shape, "ways": {}}
    with Arrays(device, name, shape) as arrays:
        runs: dict[str, Callable[[], None]] = {}
        loads = []
        for way in WAYS:
            game = position(name, shape, way)
            if game is None:
                continue
            loads.append(arrays.load(game.current.program, game.policy))
            found["ways"][way] = arrays.verified(loads[-1])
            if found["ways"][way]["verified"]:
                runs[f"dojo {way}"] = loads[-1].run
        half = arrays.bytes // 2
        source, target, spare = (device.allocate(n) for n in (half, half, 2 * device.l2_bytes))
        runs["copy of as many bytes"] = lambda: device.copy(target, source, half)
        runs.update(in_torch(name, arrays.inputs))
        found["warm"] = timed(device, runs, None)
        found["cold"] = timed(device, runs, lambda: device.fill(spare, 0, 2 * device.l2_bytes))
        for pointer in (source, target, spare):
            device.free(pointer)
        for loaded in loads:
            loaded.unload()
    return settled(found)


def walk_on(device: Device, name: str, seed: int) -> dict[str, Any]:
    """A random walk's end at a small shape, verified."""
    game = walked(name, seed)
    with Arrays(device, name, SMALL[name]) as arrays:
        loaded = arrays.load(game.current.program, game.policy)
        seen = arrays.verified(loaded)
        loaded.unload()
    return {"walk": seed, "kernel": name, "shape": SMALL[name], "line": moves_of(game), **seen}


def search_on(device: Device, name: str, evaluations: int) -> dict[str, Any]:
    """A search from what the heuristic pass makes, timed on the device."""
    shape = shapes(name)[0]
    game = position(name, shape, "heuristic")
    assert game is not None
    with Arrays(device, name, shape) as arrays:
        return searched(game, DeviceTiming(device, arrays), evaluations)


# ---------------------------------------------------------------------------- with one or without


def searched(game: Game, timing: Timing, evaluations: int) -> dict[str, Any]:
    """An agent's best from a position on."""
    first = best = None
    tried = 0
    for event in run(Task(game), AGENTS[AGENT], timing, Budget(evaluations), seed=1):
        tried = event.evaluation
        best = event.best or best
        if first is None and event.measurement.seconds is not None:
            first = event.measurement.seconds
    found: dict[str, Any] = {
        "search": AGENT,
        "kernel": game.kernel,
        "shape": game.shape,
        "evaluations": tried,
    }
    found.update(verified=best is not None, start=first)
    if best is not None:
        found.update(best=best.seconds, line=[str(move) for move in best.line])
    return found


def moves_of(game: Game) -> list[str]:
    """The line of a game as text."""
    return [str(p.move) for p in game.line() if p.move is not None]


def settled(found: dict[str, Any]) -> dict[str, Any]:
    """With ``verified``: are all ways right, and is there one?"""
    found["verified"] = bool(found["ways"]) and all(way["verified"] for way in found["ways"].values())
    return found


# ---------------------------------------------------------------------------- without one


def emulated(name: str, shape: str) -> dict[str, Any]:
    """One kernel in the emulator: all of the run but the device."""
    found: dict[str, Any] = {"kernel": name, "shape": shape, "emulated": True, "ways": {}}
    for way in WAYS:
        game = position(name, shape, way)
        if game is not None:
            found["ways"][way] = in_emulator(game, name, shape)
    return settled(found)


def in_emulator(game: Game, name: str, shape: str) -> dict[str, Any]:
    """A position's emulated text against the reference."""
    from tests.emulated import emulate

    inputs = inputs_of(game.start)
    got, fault = emulate(generate(game.current.program, game.policy), inputs)
    seen = verdict(name, shape, got, inputs)
    return {**seen, "fault": fault, "verified": seen["verified"] and not fault}


def walk_in_emulator(name: str, seed: int) -> dict[str, Any]:
    """A random walk's end in the emulator."""
    game = walked(name, seed)
    seen = in_emulator(game, name, SMALL[name])
    return {"walk": seed, "kernel": name, "shape": SMALL[name], "line": moves_of(game), **seen}


def count_search(name: str, evaluations: int) -> dict[str, Any]:
    """A search on counted operations in place of seconds."""
    game = position(name, SMALL[name], "heuristic")
    assert game is not None
    return searched(game, CountTiming(), evaluations)


# ---------------------------------------------------------------------------- the run


class Report:
    """The file of results, written anew with each; ``False`` from ``add`` once the time is over."""

    def __init__(self, folder: Path, minutes: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "gpu.json"
        self._end = time.monotonic() + 60 * minutes
        self.data: dict[str, Any] = {"device": "emulator", "results": [], "left_out": []}

    def add(self, title: str, one: Callable[[], dict[str, Any]]) -> None:
        """Do one thing, unless it is too late; what it raises is its result."""
        if time.monotonic() > self._end:
            self.data["left_out"].append(title)
            return
        try:
            found = one()
        except (CudaError, ValueError, RuntimeError) as error:
            found = {"kernel": title, "verified": False, "message": str(error)}
        self.data["results"].append(found)
        self._file.write_text(json.dumps(self.data, indent=1) + "\n")
        print(told(found), flush=True)

    @property
    def right(self) -> bool:
        """Was everything verified?"""
        return all(found["verified"] for found in self.data["results"])


def told(found: dict[str, Any]) -> str:
    """A line for people."""
    kind = "walk" if "walk" in found else "search" if "search" in found else ""
    wrong = [f"{way}: {seen}" for way, seen in found.get("ways", {}).items() if not seen["verified"]]
    fault = found.get("message") or found.get("fault") or " ".join(wrong)
    state = "verified" if found["verified"] else f"WRONG {fault}"
    times = [f"{n} {1e6 * t['min']:.1f} us" for n, t in found.get("cold", {}).items()]
    if found.get("best") and found.get("start"):
        times.append(f"{found['start'] / found['best']:.2f}x after {found['evaluations']} evaluations")
    return " ".join(f"{kind} {found['kernel']} {found.get('shape', '')}: {state}. {', '.join(times)}".split())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder for the results")
    parser.add_argument("--minutes", type=float, default=8.0, help="nothing new begins later")
    parser.add_argument("--search", type=int, default=60, help="evaluations of each search")
    parser.add_argument("--only", nargs="*", choices=TABLE, default=TABLE, help="these kernels")
    parser.add_argument("--emulate", action="store_true", help="without a GPU: everything but times")
    given = parser.parse_args()
    report = Report(given.out, given.minutes)
    if given.emulate:
        for name in given.only:
            report.add(name, lambda name=name: emulated(name, SMALL[name]))
            for seed in range(WALKS):
                report.add(f"walk {name}", lambda name=name, seed=seed: walk_in_emulator(name, seed))
        for name in set(SEARCHED) & set(given.only):
            report.add(f"search {name}", lambda name=name: count_search(name, given.search))
        return 0 if report.right else 1
    try:
        with Device() as device:
            report.data.update(device=device.name, architecture=device.architecture)
            for name in given.only:
                for shape in shapes(name):
                    report.add(name, lambda name=name, shape=shape: compared(device, name, shape))
            for name in given.only:
                for seed in range(WALKS):
                    report.add(f"walk {name}", lambda name=name, seed=seed: walk_on(device, name, seed))
            for name in (n for n in SEARCHED if n in given.only):
                report.add(f"search {name}", lambda name=name: search_on(device, name, given.search))
    except CudaError as error:
        print(f"{error} Without one, --emulate tries everything but the times.")
        return 1
    return 0 if report.right else 1


if __name__ == "__main__":
    raise SystemExit(main())
