"""The measuring process: loads, runs, verifies and times generated code; whatever that does ends only this.

JSON lines on standard input and output, one answer a request. The main thread only reads: when its
input closes, because the parent is gone, it ends the process whatever runs. A second thread with a large
stack does the work, always the same one, since gcc's OpenMP keeps a team of threads per calling thread.
A fault is the last line: ``{"fault": "SIGSEGV", "buffer": ...}`` (see native/src/faults.hpp).
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import queue
import resource
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import dojo_native
import numpy as np

from dojo_core.codegen.code import Parameter
from dojo_core.measure import sealed
from dojo_core.measure.counted import Counted
from dojo_core.measure.counters import Counters
from dojo_core.measure.input_sets import InputSet
from dojo_core.measure.judgement import Judgement, instead, judgements
from dojo_core.measure.limits import (
    STACK_BYTES,
    WORKER_FILE_BYTES,
    sets_of_inputs,
)
from dojo_core.measure.load import Gauge
from dojo_core.measure.pool import STORED, Array, Undefined, columns, plain_input
from dojo_core.measure.watchdog import restrict
from dojo_core.program.text import parse
from dojo_core.program.tree import DTYPE_BYTES

SHORTEST_SAMPLE_NS = 50_000.0  # a shorter run is repeated within a sample, so that the clock is exact enough
SECOND_BELOW_NS = 2e8  # the first run of a longer one is told, when its time is a rough one anyhow
WARM_BELOW_NS = 2e6  # so quick a kernel is run once more before it is timed
# Adversarial rows do not change the time of a kernel that works on a hundred times more.
NEGLIGIBLE_ROWS = 0.01
CALIBRATED_SECONDS = 1.0  # how long a calibration, of 3 ms, stands: the clock does not change from run to run
LOADED = 32  # kernels that stay loaded: more than take turns in a round

Answer = dict[str, Any]


def _bytes(parameter: Parameter) -> int:
    return math.prod(parameter.shape) * DTYPE_BYTES[parameter.dtype]


def _parameters(request: Answer) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(p["name"], p["dtype"], tuple(p["shape"]), p["role"]) for p in request["parameters"]
    )


class NoRoom(Exception):
    """A candidate asks for more memory than there is beside the inputs; ``str()`` says how much."""


class Prepared:
    """Buffers, references and tolerances of the workload at hand; the first judgement's inputs are timed."""

    def __init__(
        self,
        parameters: tuple[Parameter, ...],
        judgements: Sequence[Judgement],
        last_level: int,
        second_level: int,
    ) -> None:
        self.parameters = parameters
        self.judgements = judgements
        self._loaded = judgements[0]
        self.pool = pool = judgements[0].pool
        self.outputs = [p for p in parameters if p.role == "out"]
        self.workspace: dojo_native.Buffer | None = None
        self.turn = 0  # which set the next run of a round begins with
        self._stagger = 0

        self.judged = self._set(self._drawn)
        set_bytes = sum(_bytes(p) for p in parameters)
        rows = sum(math.prod(p.shape[:-1]) for p in parameters if p.role == "in") or 1
        few = sum(map(len, pool.adversarial.values())) <= NEGLIGIBLE_ROWS * rows
        count = sets_of_inputs(set_bytes, last_level, second_level)
        self.sets = [self.judged] if few else []
        while len(self.sets) < count:
            self.sets.append(self._set(partial(self._ordinary, len(self.sets))))

    def _drawn(self, name: str, stored: Array) -> None:
        """Fill an input with what the pool has."""
        stored[...] = self.pool.inputs[name]

    def _ordinary(self, number: int, name: str, stored: Array) -> None:
        """Fill an input of a set with random numbers only: adversarial rows overwritten by other rows, all
        shifted by some rows."""
        array = self.pool.inputs[name]
        if not array.ndim:
            stored[...] = array
            return
        shift = 7 * number % len(array)
        stored[shift:] = array[: len(array) - shift]
        if shift:
            stored[:shift] = array[-shift:]
        planted = self.pool.adversarial.get(name, [])
        if planted:
            rows, shifted = (each.reshape(-1, array.shape[-1]) for each in (array, stored))
            ordinary = np.setdiff1d(np.arange(len(rows)), planted)[: len(planted)]
            moved = (np.array(planted) + shift * (len(rows) // len(array))) % len(rows)
            shifted[moved] = rows[ordinary]

    def _set(self, fill: Callable[[str, Array], None]) -> list[dojo_native.Buffer]:
        buffers = []
        for p in self.parameters:
            self._stagger = (self._stagger + 5) % 32
            buffer = dojo_native.Buffer(p.name, _bytes(p), self._stagger)
            if p.role == "in":
                fill(p.name, np.frombuffer(memoryview(buffer), STORED[p.dtype]).reshape(p.shape))
                buffer.protect(True)
            buffers.append(buffer)
        return buffers

    def space(self, size: int) -> dojo_native.Buffer | None:
        """A workspace of this size, poisoned: a kernel may not count on what it holds. Raises NoRoom."""
        if size == 0:
            return None
        if self.workspace is None or self.workspace.bytes != size:
            self.workspace = None  # the old one goes before the new one comes
            try:
                self.workspace = dojo_native.Buffer("workspace", size)
            except MemoryError:
                message = (
                    f"Its temporaries take {size / 2**30:.3g} GiB, more than there is beside the inputs."
                )
                raise NoRoom(message) from None
        self.workspace.poison("f32")
        return self.workspace

    def room(self, size: int) -> dojo_native.Buffer | None:
        """A workspace of at least this size, as the last run left it: several programs may share it. Raises
        NoRoom."""
        if size and (self.workspace is None or self.workspace.bytes < size):
            return self.space(size)
        return self.workspace if size else None

    def _load(self, judgement: Judgement) -> None:
        if judgement is self._loaded:
            return
        for p, buffer in zip(self.parameters, self.judged, strict=True):
            if p.role == "in":
                buffer.protect(False)
                given = np.ascontiguousarray(judgement.pool.inputs[p.name])
                np.frombuffer(memoryview(buffer), np.uint8)[:] = given.reshape(-1).view(np.uint8)
                buffer.protect(True)
        self._loaded = judgement

    def load_timed(self) -> None:
        """Have the inputs in place that programs are timed on, whatever was judged last."""
        self._load(self.judgements[0])

    def run(
        self, kernel: dojo_native.Kernel, workspace_bytes: int, judgement: Judgement
    ) -> tuple[float, int, int]:
        """One run on a judgement's inputs, its outputs to be compared with ``fault``."""
        self._load(judgement)
        for p, buffer in zip(self.parameters, self.judged, strict=True):
            if p.role == "out":
                buffer.poison(p.dtype)
        return kernel.time([self.judged], self.space(workspace_bytes), 1)[0]

    def verdict(
        self, kernel: dojo_native.Kernel, workspace_bytes: int, bound: float
    ) -> tuple[Answer | None, float, tuple[float, int, int]]:
        """What is wrong with a kernel on any of the inputs, if anything; the largest error; the run of the
        first judgement, which is left loaded where nothing is wrong."""
        largest = 0.0
        for judgement in reversed(self.judgements):
            sample = self.run(kernel, workspace_bytes, judgement)
            fault, error = self.fault(bound)
            largest = max(largest, error)
            if fault is not None:
                return judgement.with_inputs(fault), largest, sample
        return None, largest, sample

    def fault(self, bound: float) -> tuple[Answer | None, float]:
        """What is wrong with the outputs of the last ``run``, if anything, and the largest error."""
        damaged = self.damage()
        if damaged is not None:
            return damaged, 0.0
        largest = 0.0
        for p, buffer in zip(self.parameters, self.judged, strict=True):
            if p.role != "out":
                continue
            base, scale = self._loaded.tolerance[p.name]
            allowed = base if bound == 0.0 else base + bound * scale
            diff = dojo_native.compare(
                buffer, p.dtype, self._loaded.pool.references[p.name], allowed, columns(p.shape)
            )
            largest = max(largest, diff["error"])
            status = "unwritten" if diff["unwritten"] else "wrong_result" if diff["wrong"] else None
            if status is not None:
                place = ",".join(map(str, np.unravel_index(int(diff["first"]), p.shape or (1,))))
                total = math.prod(p.shape)
                if status == "unwritten":
                    message = f"{diff['unwritten']} of {total} elements of {p.name} are never written"
                    message += f", among them {p.name}[{place}]."
                else:
                    message = f"{diff['wrong']} of {total} elements of {p.name} are wrong: {p.name}[{place}] "
                    message += instead(p.dtype, diff["got"], diff["wanted"])
                return {"status": status, "message": message}, largest
        return None, largest

    def damage(self) -> Answer | None:
        """A write outside the buffers that no guard caught."""
        space = [self.workspace] if self.workspace is not None else []
        for buffer in [*self.judged, *(b for s in self.sets for b in s), *space]:
            offset = buffer.damage()
            if offset:
                side = "after the end" if offset > 0 else "before the start"
                self.workspace = None
                message = f"It writes {abs(offset)} bytes {side} of {buffer.name}."
                return {"status": "out_of_bounds", "message": message, "spoilt": True}
        return None


class Worker:
    def __init__(self) -> None:
        self.workload: Prepared | None = None
        self.gauge = Gauge()
        self._loaded: OrderedDict[tuple[str, str], dojo_native.Kernel] = OrderedDict()  # used last at the end
        self._calibrated = (-math.inf, 0.0)  # when, by the monotonic clock, and what it took (ms)

    def calibration(self) -> float:
        """Milliseconds of a fixed chain of operations, within the last second: how fast the clock goes."""
        now = time.monotonic()
        if now - self._calibrated[0] > CALIBRATED_SECONDS:
            self._calibrated = (now, dojo_native.calibrate())
        return self._calibrated[1]

    def kernel(self, request: Answer) -> dojo_native.Kernel:
        """The code that a request names; what takes turns stays loaded, so that no run is its first. Raises
        Damaged where its file is no longer what was compiled."""
        key = (request["library"], request["symbol"])
        if key not in self._loaded:
            with sealed.loadable(Path(request["library"])) as library:
                self._loaded[key] = dojo_native.Kernel(library, request["symbol"])
        self._loaded.move_to_end(key)
        while len(self._loaded) > LOADED:
            self._loaded.popitem(last=False)
        return self._loaded[key]

    def prepare(self, request: Answer) -> Answer:
        """Inputs, references and buffers of a workload."""
        self.workload = None  # free its memory first
        self._loaded.clear()
        parameters = _parameters(request)
        assert all(p.dtype in STORED for p in parameters)
        sets = [InputSet.read(each) for each in request["sets"]]
        drawn = judgements(request["start"], parameters, request["seed"], sets, Path(request["cache"]))
        self.workload = Prepared(parameters, drawn, request["last_level"], request["second_level"])
        return {"status": "ok", "sets": len(self.workload.sets)}

    def rough(self, request: Answer) -> Answer:
        """The time of a candidate on inputs drawn for it alone: the shorter one of two runs, the second only
        if it is short."""
        self.workload = None  # free its memory first
        self._loaded.clear()
        start = parse(request["start"])
        buffers = []
        for p in _parameters(request):
            buffer = dojo_native.Buffer(p.name, _bytes(p))
            if p.role == "in":
                buffer_of_it = np.frombuffer(memoryview(buffer), np.uint8)
                buffer_of_it[:] = plain_input(start, p).reshape(-1).view(np.uint8)
            buffers.append(buffer)
        workspace = dojo_native.Buffer("workspace", request["workspace"]) if request["workspace"] else None
        kernel = self.kernel(request)
        nanoseconds = kernel.time([buffers], workspace, 1)[0][0]
        if nanoseconds < SECOND_BELOW_NS:
            nanoseconds = min(nanoseconds, kernel.time([buffers], workspace, 1)[0][0])
        return {"status": "ok", "seconds": 1e-9 * nanoseconds}

    def judge(self, request: Answer) -> Answer:
        """Run the start program: what it is off by sets the tolerances."""
        workload = self._ready()
        kernel = self.kernel(request)
        for judgement in reversed(workload.judgements):
            workload.run(kernel, request["workspace"], judgement)
            for p, buffer in zip(workload.parameters, workload.judged, strict=True):
                if p.role == "out":
                    reference = judgement.pool.references[p.name]
                    own_error, scale = dojo_native.row_errors(buffer, p.dtype, reference, columns(p.shape))
                    try:
                        judgement.allow(p, own_error, scale, request["policy"])
                    except ValueError as error:
                        return {"status": "wrong_result", "message": f"It is wrong itself: {error}."}
            fault, _ = workload.fault(request["bound"])
            if fault is not None:
                return fault
        return {"status": "ok"}

    def measure(self, request: Answer) -> Answer:
        """Verify one candidate, then time it."""
        workload = self._ready()
        self.gauge.begin()
        calibration = self.calibration()
        kernel = self.kernel(request)
        fault, error, first = workload.verdict(kernel, request["workspace"], request["bound"])
        if fault is not None:
            return fault
        space = workload.workspace if request["workspace"] else None
        estimate = first[0]
        if estimate < WARM_BELOW_NS:
            estimate = min(s[0] for s in kernel.time(workload.sets, space, 2))
        samples: list[tuple[float, int, int]] = []
        if estimate >= WARM_BELOW_NS and workload.sets[0] is workload.judged:
            samples.append(first)
        cutoff, most = request["cutoff_ns"], request["samples"] - len(samples)
        if not (cutoff and samples and first[0] > request["hopeless"] * cutoff):
            samples += kernel.time(
                workload.sets,
                space,
                most,
                max(1, math.ceil(SHORTEST_SAMPLE_NS / max(estimate, 1.0))),
                cutoff,
                request["patience"],
                request["budget_ns"],
                1,
            )
        if request["again"]:  # a race may have gone well once
            fault, _, _ = workload.verdict(kernel, request["workspace"], request["bound"])
        fault = fault or workload.damage()
        if fault is not None:
            return fault
        load = self.gauge.share()
        return {"status": "ok", "samples": samples, "error": error, "calibration": calibration, "load": load}

    def round(self, request: Answer) -> Answer:
        """One sample of each program of a round, in the order given; all have been verified."""
        workload = self._ready()
        workload.load_timed()
        self.gauge.begin()
        programs = request["programs"]
        space = workload.room(max(program["workspace"] for program in programs))
        samples = []
        for program in programs:
            repeats = program["repeats"]
            space_of_it = space if program["workspace"] else None
            first, workload.turn = workload.turn, workload.turn + repeats
            samples += self.kernel(program).time(
                workload.sets, space_of_it, 1, repeats, first=first % len(workload.sets)
            )
        return workload.damage() or {"status": "ok", "samples": samples}

    def count(self, request: Answer) -> Answer:
        """Rounds of programs that count in numbers of their own, in turns: samples as ``Counted.run`` has
        them, of each program one a round."""
        workload = self._ready()
        workload.load_timed()
        programs = [Counted(each) for each in request["programs"]]
        space = workload.room(max(program.workspace for program in programs))
        rounds = []
        for _ in range(request["rounds"]):
            samples = []
            for program in programs:
                # Each goes on where the one before left off: none finds in a cache what that one brought.
                first, workload.turn = workload.turn, workload.turn + program.repeats
                samples.append(program.run(workload.sets, space, first % len(workload.sets)))
            rounds.append(samples)
        return workload.damage() or {"status": "ok", "rounds": rounds}

    def watch(self, request: Answer) -> Answer:
        """What the processor and the system count in one sample of a program, on one thread."""
        workload = self._ready()
        workload.load_timed()
        program = Counted(request["program"])
        space = workload.room(program.workspace)
        program.run(workload.sets, space, 0)  # the first run is not like others
        counters = Counters()
        try:
            before = counters.read()
            program.run(workload.sets, space, 0)
            after = counters.read()
        finally:
            counters.close()
        counted = {name: after[name] - before[name] for name in after}
        return workload.damage() or {"status": "ok", "counted": counted}

    def load(self, request: Answer) -> Answer:
        """What others took of the machine during the last rounds."""
        return {"status": "ok", "load": self.gauge.share()}

    def verify(self, request: Answer) -> Answer:
        """Run one candidate and compare, without a time: what the emulator runs has none."""
        workload = self._ready()
        with sealed.loadable(Path(request["library"])) as library:
            kernel = dojo_native.Kernel(library, request["symbol"])
            loaded = ctypes.CDLL(library)
        fault, error, _ = workload.verdict(kernel, request["workspace"], request["bound"])
        threads = (ctypes.c_char * 256).in_dll(loaded, "dojo_fault").value.decode()
        if threads:
            return {"status": "wrong_result", "message": threads}
        return fault or workload.damage() or {"status": "ok", "error": error}

    def _ready(self) -> Prepared:
        if self.workload is None:
            raise RuntimeError("no workload prepared")
        return self.workload

    def answer(self, request: Answer) -> Answer:
        actions = {
            "prepare": self.prepare,
            "rough": self.rough,
            "judge": self.judge,
            "measure": self.measure,
            "round": self.round,
            "count": self.count,
            "watch": self.watch,
            "load": self.load,
            "verify": self.verify,
        }
        try:
            if request["do"] == "hello":
                return {"status": "ok"}
            _allow(request["cpu_seconds"])
            return actions[request["do"]](request)
        except (NoRoom, Undefined) as fault:
            return {"status": "refused", "message": str(fault)}
        except sealed.Damaged as fault:
            return {"status": "damaged", "message": str(fault)}
        except Exception:
            return {"status": "fault", "message": traceback.format_exc()}


def _allow(seconds: float) -> None:
    """Processor time for the next request; the system ends the process that uses more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = math.ceil(used.ru_utime + used.ru_stime + seconds)
    restrict(resource.RLIMIT_CPU, limit, math.inf)


def _limit(memory: int) -> None:
    restrict(resource.RLIMIT_AS, memory)
    restrict(resource.RLIMIT_CORE, 0)
    restrict(resource.RLIMIT_FSIZE, WORKER_FILE_BYTES)


def main() -> None:
    _limit(int(sys.argv[1]))
    requests: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    # Answers go to a private copy of standard output; a stray print cannot disturb them.
    answers = os.dup(1)
    os.dup2(2, 1)

    def work() -> None:
        dojo_native.report_faults(answers)
        worker = Worker()
        while True:
            line = json.dumps(worker.answer(requests.get())) + "\n"
            data = line.encode()
            while data:
                data = data[os.write(answers, data) :]

    threading.stack_size(STACK_BYTES)
    threading.Thread(target=work, daemon=True).start()
    for line in sys.stdin:
        requests.put(json.loads(line))
    os._exit(0)


if __name__ == "__main__":
    main()
