"""Programs on a device: a workload's arrays in its memory, results compared, runs timed by events.

The device may be any object with the driver's methods (``driver.Device``), such as one that is an emulator.
Programs are judged as on the CPU: the same inputs with their adversarial rows, references in float64, and
tolerances from what the start program, run on the host, is off by (``measure/pool.py``); under ``algebraic``
on the inputs on which its moves are worst too.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dojo_core.codegen.code import Parameter
from dojo_core.measure import sealed
from dojo_core.measure.input_sets import InputSet
from dojo_core.measure.judgement import Judgement, judgements, row_errors
from dojo_core.measure.pool import STORED, Array, columns, to_double
from dojo_core.program.text import parse
from dojo_core.program.tree import DTYPE_BYTES
from dojo_core.targets.cuda.driver import CudaError
from dojo_core.targets.gpu.codegen import generate

Answer = dict[str, Any]

SHORTEST_SAMPLE_SECONDS = 50e-6  # a shorter run is repeated within a warm sample: an event is exact to 0.5 µs
MOST_REPEATS = 1000
MOST_FILLS = 100
WARM_RUNS = 3  # clocks and caches settle
LEAD_SECONDS = 400e-6  # of fills before a cold run, in which the host hands over all that is timed
MEASURE_SECONDS = 1.0  # a slow candidate gets fewer samples, but three
LEAST_SAMPLES = 3
GUARD, GUARDED = 256, 0xA5  # bytes on both sides of an array, and what they hold: a write there is noticed


class Session:
    """A device and the workload that it holds. ``answer`` takes requests as the worker process gets them."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._first, self._last = device.events(2)
        self._parameters: tuple[Parameter, ...] = ()
        self._pointers: dict[str, int] = {}
        self._judgements: list[Judgement] = []
        self._loaded: Judgement | None = None  # whose inputs are on the device
        self._right: dict[
            tuple[str, str, str], float
        ] = {}  # programs that were judged right, and their error
        self._workspace, self._held = 0, 0
        self._spare: dict[str, tuple[int, int]] = {}

    def answer(self, request: Answer) -> Answer:
        """What came of a request; ``spoilt``: the device answers nothing more in this process."""
        actions = {"hello": self.hello, "prepare": self.prepare, "measure": self.measure, "copy": self.copy}
        try:
            answer: Answer = actions[request["do"]](request)
            return answer
        except CudaError as error:
            return {"status": "crash", "message": str(error), "spoilt": True}
        except sealed.Damaged as fault:
            return {"status": "damaged", "message": str(fault)}

    def hello(self, request: Answer) -> Answer:
        """What device it is."""
        d = self._device
        device = {
            "name": d.name, "architecture": d.architecture, "l2_bytes": d.l2_bytes, "memory": d.memory,
            "clock": d.clock, "multiprocessors": d.multiprocessors, "driver": d.driver, "timed": d.timed,
            "bus": d.bus,
        }  # fmt: skip
        return {"status": "ok", "device": device}

    # ------------------------------------------------------------------ the workload

    def prepare(self, request: Answer) -> Answer:
        """Inputs on the device, references and tolerances. ``library``: the start program as C, compiled."""
        self._drop()
        parameters = tuple(
            Parameter(p["name"], p["dtype"], tuple(p["shape"]), p["role"]) for p in request["parameters"]
        )
        sets = [InputSet.read(each) for each in request["sets"]]
        cache = Path(request["cache"])
        self._judgements = judgements(request["start"], parameters, request["seed"], sets, cache)
        for judgement in self._judgements:
            host: dict[str, Array] = {}
            for p in parameters:
                given = (
                    judgement.pool.inputs[p.name] if p.role == "in" else np.zeros(p.shape, STORED[p.dtype])
                )
                host[p.name] = np.ascontiguousarray(given, STORED[p.dtype]).reshape(p.shape)
            _run_on_host(request["library"], request["symbol"], parameters, host, request["workspace"])
            for p in (p for p in parameters if p.role == "out"):
                reference = judgement.pool.references[p.name]
                own_error, scale = row_errors(to_double(host[p.name], p.dtype), reference, columns(p.shape))
                try:
                    judgement.allow(p, own_error, scale, request["policy"])
                except ValueError as error:
                    return {"status": "wrong_result", "message": f"It is wrong itself: {error}."}
        for p in parameters:
            self._pointers[p.name] = self._allocate(_bytes(p))
        self._parameters = parameters
        self._load(self._judgements[0])
        return {"status": "ok"}

    def _load(self, judgement: Judgement) -> None:
        """Have a judgement's inputs on the device."""
        if judgement is self._loaded:
            return
        for name, given in self._given(judgement):
            self._device.upload(self._pointers[name], given.ctypes.data, given.nbytes)
        self._device.synchronize()
        self._loaded = judgement

    def _given(self, judgement: Judgement) -> Iterator[tuple[str, Array]]:
        """A judgement's inputs as they are uploaded."""
        for p in self._parameters:
            if p.role == "in":
                yield p.name, np.ascontiguousarray(judgement.pool.inputs[p.name], STORED[p.dtype])

    def _drop(self) -> None:
        for pointer in (*self._pointers.values(), *([self._workspace] if self._workspace else [])):
            self._device.free(pointer - GUARD)
        self._pointers, self._judgements, self._loaded = {}, [], None
        self._right = {}
        self._workspace, self._held, self._parameters = 0, 0, ()

    def _allocate(self, size: int) -> int:
        """Memory with a guard on each side; its address without them."""
        start = int(self._device.allocate(size + 2 * GUARD)) + GUARD
        for guard in (start - GUARD, start + size):
            self._device.fill(guard, GUARDED, GUARD)
        return start

    def close(self) -> None:
        """Give all memory back."""
        self._drop()
        for pointer, _ in self._spare.values():
            self._device.free(pointer)
        self._spare = {}

    # ------------------------------------------------------------------ a candidate

    def measure(self, request: Answer) -> Answer:
        """Verify a program, then time it: ``samples`` runs with a ``cold`` second-level cache or a warm one.

        ``image``: its machine code, a file; ``samples`` 0: verified only. ``trusted``: one that was found
        right before on these inputs is not verified again.
        """
        code = generate(parse(request["program"]), request["policy"])
        if code.workspace_bytes > self._held:
            if self._workspace:
                self._device.free(self._workspace - GUARD)
                self._workspace, self._held = 0, 0
            self._workspace = self._allocate(code.workspace_bytes)
            self._held = code.workspace_bytes
        image = _contents(request["image"]) if request["image"] else b""
        pointers = [self._pointers[p.name] for p in code.parameters]
        loaded = self._device.load(code, image, pointers, self._workspace)
        if self._held:
            self._device.fill(self._workspace, 0xFF, self._held)  # nothing may count on what it holds
        key = (request["program"], request["policy"], request["image"])
        fault, error, samples = None, self._right.get(key, 0.0), []
        if key not in self._right or not request.get("trusted"):
            fault, error = self._judged(loaded, code.error_bound)
        if fault is None and request["samples"]:
            samples = self._timed(loaded.run, request["samples"], request["cold"], request.get("slow"))
            if request.get("again"):  # a race may have gone well once
                fault, error = self._judged(loaded, code.error_bound)
        loaded.unload()
        if fault is not None or request.get("again"):
            fault = self._spoilt_input() or fault
        if fault is None:
            self._right[key] = error
        return fault or {"status": "ok", "error": error, "samples": samples}

    def _judged(self, loaded: Any, bound: float) -> tuple[Answer | None, float]:
        """Run once on each of the inputs, and compare every element; the usual ones are left loaded."""
        largest = 0.0
        for judgement in reversed(self._judgements):
            self._load(judgement)
            fault, error = self._run_judged(loaded, bound, judgement)
            largest = max(largest, error)
            if fault is not None:
                return judgement.with_inputs(fault), largest
        return None, largest

    def _run_judged(self, loaded: Any, bound: float, judgement: Judgement) -> tuple[Answer | None, float]:
        """Run once, and compare every element. What is never written shows: outputs are all ones before."""
        outputs = [p for p in self._parameters if p.role == "out"]
        for p in outputs:
            self._device.fill(self._pointers[p.name], 0xFF, _bytes(p))
        loaded.run()
        self._device.synchronize()
        fault = getattr(loaded, "fault", lambda: "")()
        if fault:
            return {"status": "wrong_result", "message": fault}, 0.0
        stray = self._stray()
        if stray is not None:
            return stray, 0.0
        largest = 0.0
        for p in outputs:
            stored = np.empty(p.shape, STORED[p.dtype])
            self._device.download(stored.ctypes.data, self._pointers[p.name], stored.nbytes)
            answer, error = judgement.compared(p, stored, bound)
            largest = max(largest, error)
            if answer is not None:
                return answer, largest
        return None, largest

    def _stray(self) -> Answer | None:
        """A write beside an array, if there was one: what lies there may be spoilt too."""
        rooms = [(p.name, self._pointers[p.name], _bytes(p)) for p in self._parameters]
        rooms += [("the workspace", self._workspace, self._held)] if self._workspace else []
        stored = np.empty(GUARD, np.uint8)
        for name, start, size in rooms:
            for guard, side in ((start - GUARD, "before the start"), (start + size, "behind the end")):
                self._device.download(stored.ctypes.data, guard, GUARD)
                if (stored != GUARDED).any():
                    return _out_of_bounds(f"It writes {side} of {name}.")
        return None

    def _spoilt_input(self) -> Answer | None:
        """A write into an input, if there was one: all that came after it is wrong."""
        for name, given in self._given(self._loaded) if self._loaded is not None else ():
            stored = np.empty_like(given)
            self._device.download(stored.ctypes.data, self._pointers[name], given.nbytes)
            if stored.tobytes() != given.tobytes():
                return _out_of_bounds(f"It writes into the input {name}.")
        return None

    # ------------------------------------------------------------------ time

    def copy(self, request: Answer) -> Answer:
        """Samples of a copy that reads and writes ``bytes`` together on the device: what memory allows."""
        half = max(16, request["bytes"] // 2)
        source, target = self._spared("source", half), self._spared("target", half)
        run = lambda: self._device.copy(target, source, half)  # noqa: E731
        return {"status": "ok", "samples": self._timed(run, request["samples"], request["cold"], None)}

    def _spared(self, name: str, size: int) -> int:
        pointer, held = self._spare.get(name, (0, 0))
        if held >= size:
            return pointer
        if held:
            del self._spare[name]
            self._device.free(pointer)
        pointer = int(self._device.allocate(size))
        self._device.fill(pointer, 0, size)
        self._spare[name] = pointer, size
        return pointer

    def _timed(self, run: Any, count: int, cold: bool, slow: float | None) -> list[float]:
        """Nanoseconds a run. Cold: each sample is one run behind fills of twice the second-level cache, in
        whose shadow the launches are handed over; warm: a sample repeats a short run.

        No sample but three after a second of them, nor where the runs are ``slow`` (seconds) all.
        """
        flush = 2 * self._device.l2_bytes
        spare = self._spared("flush", flush)
        for _ in range(WARM_RUNS):
            run()
        estimate = self._between(run, 1)
        repeats = 1 if cold else min(MOST_REPEATS, math.ceil(SHORTEST_SAMPLE_SECONDS / max(estimate, 1e-7)))
        fill = partial(self._device.fill, spare, 0, flush)
        shortest = LEAD_SECONDS / MOST_FILLS
        fills = math.ceil(LEAD_SECONDS / max(self._between(fill, WARM_RUNS), shortest)) if cold else 0
        samples: list[float] = []
        spent = 0.0
        while len(samples) < count:
            hopeless = slow is not None and samples and min(samples) > 1e9 * slow
            if len(samples) >= LEAST_SAMPLES and (spent > MEASURE_SECONDS or hopeless):
                break
            for _ in range(fills):
                fill()
            took = self._between(run, repeats)
            spent += took * repeats
            samples.append(1e9 * took)
        return samples

    def _between(self, run: Any, repeats: int) -> float:
        self._device.record(self._first)
        for _ in range(repeats):
            run()
        self._device.record(self._last)
        self._device.synchronize()
        return float(self._device.seconds(self._first, self._last)) / repeats


def _out_of_bounds(message: str) -> Answer:
    return {"status": "out_of_bounds", "message": message, "spoilt": True}


def _bytes(p: Parameter) -> int:
    return math.prod(p.shape) * DTYPE_BYTES[p.dtype]


def _contents(image: str) -> bytes:
    """Machine code from its file. Raises Damaged."""
    contents = sealed.read(Path(image))
    if contents is None:
        raise sealed.Damaged(image)
    return bytes(contents)


def _run_on_host(
    library: str, symbol: str, parameters: tuple[Parameter, ...], host: dict[str, Array], workspace: int
) -> None:
    """Call compiled C, ``void SYMBOL(void *const *arrays, void *workspace)``, on arrays of the host.

    Vector code wants 64-byte alignment, which NumPy does not promise.
    """
    rooms = [np.empty(host[p.name].nbytes + 64, np.uint8) for p in parameters]
    starts = [room.ctypes.data + -room.ctypes.data % 64 for room in rooms]
    for p, start in zip(parameters, starts, strict=True):
        ctypes.memmove(start, host[p.name].ctypes.data, host[p.name].nbytes)
    space = np.full(workspace + 64, 0xFF, np.uint8)
    with sealed.loadable(Path(library)) as copy:
        call = ctypes.CDLL(copy)[symbol]
    call.restype = None
    call(
        (ctypes.c_void_p * len(starts))(*starts), ctypes.c_void_p(space.ctypes.data + -space.ctypes.data % 64)
    )
    for p, start in zip(parameters, starts, strict=True):
        if p.role == "out":
            ctypes.memmove(host[p.name].ctypes.data, start, host[p.name].nbytes)
