"""What every baseline's process shares: the job it reads, how it proves its answer, how it is timed.

``BASELINE.py KERNEL SHAPE SETS FOLDER``. The folder holds ``job.json`` (the arrays' names in order, their
shapes and dtypes) and, as ``.npy``, one set of inputs as they are stored (bf16 as 16 bits) and the outputs
that the kernel's float64 reference gives.
Standard output carries JSON lines: first one that says whether the baseline is ready, then an answer to each
line of standard input, a number of samples. The process ends when its standard input closes.

``BASELINE.py`` alone imports its library once and does job after job, each in a fork of itself: a line of
standard input is the list of a job's arguments; after it the fork speaks as above, until the line ``null``
ends it. ``{"ended": STATUS}`` tells that it has ended, however it did (negative: by that signal).

A baseline may offer several variants, such as settings of its library; those that compute the right result
are timed briefly and the fastest one competes. Nothing here needs the rest of the Dojo.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import queue
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np

Run = Callable[[], object]
Tell = Callable[[dict[str, object]], None]
STORED: dict[str, type[np.generic]] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16,
    "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
    "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "bool": np.uint8,
}  # fmt: skip
EXACT = ("bool", "i64")  # truth and places, which no library rounds
# What an output may be off by: of the largest |reference| in its row, and of the largest of all.
ROW_TOLERANCE, TOLERANCE = 1e-4, 1e-6
ROUNDING = {"f16": 2.0**-10, "bf16": 2.0**-7}  # the same of a row, where the dtype rounds more coarsely
SHORTEST_SAMPLE_NS = 50_000.0  # shorter runs are repeated within a sample, as ours are
ROUND_SECONDS, LEAST_SAMPLES = 5.0, 3  # a slow baseline takes fewer samples a round, but so many
TRIAL_SAMPLES = 5  # of a variant, to choose among them
SLOW_NS = 500e6  # a run that takes as long is tried once
THREADS = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))

# Inputs that are constant in a network: a library may pack them beforehand.
WEIGHTS: dict[str, tuple[str, ...]] = {
    "conv": ("w",), "conv2d": ("w",), "dwconv": ("w",), "swiglu": ("w", "v"),
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """The kernel, its shape, and sets of arrays by name: ``inputs`` filled, ``outputs`` touched."""

    kernel: str
    shape: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sets: tuple[dict[str, np.ndarray], ...]
    expected: dict[str, np.ndarray]
    dtypes: dict[str, str]
    folder: Path

    def ordered(self, number: int) -> list[np.ndarray]:
        """The inputs of a set, in the kernel's order."""
        return [self.sets[number][name] for name in self.inputs]


@dataclass(frozen=True)
class Variant:
    """One way to compute it: for each set of inputs, a call that gives the output (or all of them)."""

    runs: list[Run]
    read: Callable[[object], object] = lambda result: result  # to something NumPy understands


Variants = Mapping[str, Callable[[], Variant]]


def paged(shape: tuple[int, ...], dtype: np.typing.DTypeLike = np.float32) -> np.ndarray:
    """An array in huge pages where the system grants them, touched."""
    count = math.prod(shape)
    # Private: shared memory, mmap's default, gets no huge pages on most systems.
    length, private = max(4096, count * np.dtype(dtype).itemsize), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, length, flags=private)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # advice, which a kernel without huge pages refuses
            memory.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(memory, dtype, count).reshape(shape)
    array[...] = 0
    return array


def read_job(arguments: list[str]) -> Job:
    kernel, shape, sets, folder = arguments[0], arguments[1], int(arguments[2]), Path(arguments[3])
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    drawn = {name: np.load(folder / f"in.{name}.npy") for name in job["inputs"]}
    made = []
    for number in range(max(1, sets)):
        arrays = {}
        for name, array in drawn.items():
            arrays[name] = paged(array.shape, array.dtype)
            arrays[name][...] = np.roll(array, 7 * number, axis=0) if array.ndim else array
        for name in job["outputs"]:
            arrays[name] = paged(tuple(job["shapes"][name]), STORED[job["dtypes"][name]])
        made.append(arrays)
    # Mapped, not read: the check alone needs them.
    expected = {name: np.load(folder / f"out.{name}.npy", mmap_mode="r") for name in job["outputs"]}
    sizes = tuple(int(size) for size in shape.split("x") if size)  # a text of one's own has none
    names = tuple(job["inputs"]), tuple(job["outputs"])
    return Job(kernel, sizes, *names, tuple(made), expected, job["dtypes"], folder)


def fault(result: object, expected: np.ndarray, dtype: str = "f32") -> str:
    """What is wrong with an output, as a sentence; empty where every element agrees.

    Integers may be off by one, as a library rounds otherwise, but not truth and places (``EXACT``).
    """
    array = np.asarray(result)
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    if array.size != expected.size:
        return f"Its result has the shape {array.shape}, not {expected.shape}."
    columns = expected.shape[-1] if expected.ndim >= 2 else expected.size
    rows, wanted = array.reshape(-1, columns), expected.reshape(-1, columns)
    largest = max(abs(float(end(wanted, where=np.isfinite(wanted), initial=0))) for end in (np.max, np.min))
    least = TOLERANCE * largest if dtype in ("f32", "f64", "f16", "bf16") else 1.0
    of_row = ROUNDING.get(dtype, ROW_TOLERANCE)
    if dtype in EXACT:
        least = of_row = 0.0
    for first in range(0, len(rows), 4096):  # by pieces: no second copy of a large array
        piece = slice(first, first + 4096)
        given, right = rows[piece], wanted[piece]
        size = np.abs(right).max(axis=1, keepdims=True, where=np.isfinite(right), initial=0)
        with np.errstate(invalid="ignore"):  # the same infinity, and NaN where it should be, agree
            near = np.abs(given - right) <= of_row * size + least
        same = (given == right) | (np.isnan(given) & np.isnan(right))
        wrong = ~(near | same)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            place = int((first + row) * columns + column)
            return (
                f"Its result is wrong: element {place} is {array.reshape(-1)[place]:.7g} "
                f"and should be {expected.reshape(-1)[place]:.7g}."
            )
    return ""


def largest_error(result: object, expected: np.ndarray) -> float:
    """The largest difference from what should be, of the largest of that; of finite elements."""
    array, wanted = np.asarray(result).reshape(-1), expected.reshape(-1)
    worst = largest = 0.0
    for first in range(0, len(wanted), 1 << 20):  # by pieces: no second copy of a large array
        right = wanted[first : first + (1 << 20)]
        finite = np.isfinite(right)
        off = np.abs(array[first : first + (1 << 20)] - right, where=finite, out=np.zeros(len(right)))
        worst = max(worst, float(off.max(initial=0)))
        largest = max(largest, float(np.abs(right).max(initial=0, where=finite)))
    return worst / largest if largest else 0.0


class _Timed:
    """A variant under the clock: its runs rotate among the sets."""

    def __init__(self, variant: Variant, error: float | None) -> None:
        self.runs, self.error = variant.runs, error
        self.turn = 0
        self.calls = 1
        least = min(self.sample() for _ in self.runs)
        if least < SLOW_NS:  # a slow one is warm by now, and short runs need no repeating
            least = min(self.sample() for _ in range(len(self.runs) + 3))
        self.calls = max(1, math.ceil(SHORTEST_SAMPLE_NS / least))

    def trial(self) -> list[float]:
        """A few samples; of a slow run one."""
        first = self.sample()
        return [first, *(self.sample() for _ in range(TRIAL_SAMPLES - 1 if first < SLOW_NS else 0))]

    def sample(self) -> float:
        """Nanoseconds a call."""
        count, runs = self.calls, self.runs
        chosen = [runs[(self.turn + i) % len(runs)] for i in range(count)]
        self.turn += count
        begin = time.perf_counter_ns()
        for run in chosen:
            run()
        return (time.perf_counter_ns() - begin) / count


def openmp_runtimes() -> list[str]:
    """The OpenMP libraries in this process; two would bind both teams to the same core."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    except OSError:
        return []
    names = re.findall(r"/(lib(?:gomp|iomp5|omp)[^/\s]*\.so[^/\s]*)$", maps, re.MULTILINE)
    return sorted(set(names))


def choose(job: Job, variants: Variants) -> tuple[_Timed | None, dict[str, object], str]:
    """The fastest variant that is right; what came of each; its name."""
    outcomes: dict[str, object] = {}
    best: tuple[float, _Timed, str] | None = None
    for name, make in variants.items():
        try:
            variant = make()
            result = variant.read(variant.runs[0]())
            results = result if isinstance(result, tuple) else (result,)
            faults = [
                fault(r, job.expected[o], job.dtypes[o]) for r, o in zip(results, job.outputs, strict=True)
            ]
            sentence = next((each for each in faults if each), "")
            if sentence:
                outcomes[name] = sentence
                continue
            both = [(r, o) for r, o in zip(results, job.outputs, strict=True) if job.dtypes[o] == "f32"]
            off = max((largest_error(r, job.expected[o]) for r, o in both), default=None)
            del result, results, both
            timed = _Timed(variant, off)
            seconds = min(timed.trial()) / 1e9
        except Exception as error:  # whatever a library throws is this row's failure, not the bench's
            outcomes[name] = brief(error)
            continue
        outcomes[name] = seconds
        if best is None or seconds < best[0]:
            best = (seconds, timed, name)
    return (best[1], outcomes, best[2]) if best else (None, outcomes, "")


def brief(error: BaseException) -> str:
    """An exception in one line, its name first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if len(lines) > 8 else " ".join(lines)
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


class Unsupported(LookupError):
    """The library has nothing for this kernel."""


def each_job(work: Callable[[list[str], Tell], None]) -> None:
    """Do the job that this process's arguments name; without any, those that standard input names, each in a
    fork. ``work`` takes a job's arguments and what tells an answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not disturb the answers

    def tell(answer: dict[str, object]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    if sys.argv[1:]:
        work(sys.argv[1:], tell)
        return
    # Unbuffered: what follows a job's line is for the fork.
    while line := sys.stdin.buffer.raw.readline():
        arguments = json.loads(line)
        if arguments is None:  # the end of a job that had ended already
            continue
        child = os.fork()
        if child == 0:
            _in_fork(partial(work, arguments, tell))
        tell({"ended": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])})


def _in_fork(work: Callable[[], None]) -> NoReturn:
    """Do it and end, without what the parent would do at its end."""
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def serve(prepare: Callable[[Job], tuple[Variants, str]], every_dtype: bool = False) -> None:
    """Run a baseline: ``prepare`` gives its variants and the library's version; where not ``every_dtype``,
    of kernels in f32 alone.

    An ImportError in it means that the library is not installed here, ``Unsupported`` that it has no
    counterpart.
    """
    each_job(partial(_compete, prepare, every_dtype))


def _compete(
    prepare: Callable[[Job], tuple[Variants, str]], every_dtype: bool, arguments: list[str], tell: Tell
) -> None:
    """One job: say whether the baseline is ready, then take samples until whoever asks has enough."""
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            if line.strip() == "null":
                break
            requests.put(line)
        os._exit(0)  # whoever asked is gone, or has enough

    threading.Thread(target=listen, daemon=True).start()
    try:
        job = read_job(arguments)
        other = sorted({*job.dtypes.values()} - {"f32"})
        if other and not every_dtype:
            raise Unsupported(f"This baseline computes in f32 alone; {job.kernel} has {', '.join(other)}.")
        variants, version = prepare(job)
    except ImportError as error:
        tell({"status": "missing", "message": f"Not installed: {error}."})
        return
    except Unsupported as error:
        tell({"status": "unsupported", "message": str(error)})
        return
    except Exception as error:
        tell({"status": "failed", "message": brief(error)})
        return
    timed, outcomes, name = choose(job, variants)
    if timed is None:
        wrong = next(iter(outcomes.values()), "It offered no variant.")
        status = "wrong_result" if str(wrong).startswith("Its result") else "failed"
        tell({"status": status, "message": str(wrong), "version": version, "variants": outcomes})
        return
    tell(
        {
            "status": "ok", "verified": True, "version": version, "variant": name, "variants": outcomes,
            "openmp": openmp_runtimes(), "error": timed.error,
        }
    )  # fmt: skip
    while True:
        count, began = int(requests.get()), time.monotonic()
        samples: list[float] = []
        while len(samples) < count and (
            len(samples) < LEAST_SAMPLES or time.monotonic() - began < ROUND_SECONDS
        ):
            samples.append(timed.sample())
        tell({"samples": samples})
