"""Other implementations, each in a process of its own that answers in time or is ended."""

from __future__ import annotations

import json
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dojo_core import kernels
from dojo_core.extras import EXTRAS, install_line
from dojo_core.files import naming, write_text
from dojo_core.kernels.kernel import Shape
from dojo_core.measure.pool import EPSILON, STORED, Array, from_double, to_double
from dojo_core.package_data import checkout, data_path
from dojo_core.program.dtypes import extremes
from dojo_core.system import cores, end_group

SCRIPTS = data_path("dojo_core", "bench", "others")
PYTHON_VARIABLE = "DOJO_BENCH_PYTHON"
PREPARE_SECONDS = 600.0  # to start, compile, prove its answer, choose among variants
ROUND_SECONDS = 120.0  # one round's samples
STATUSES = ("ok", "missing", "unsupported", "wrong_result", "failed", "timeout")


@dataclass(frozen=True)
class Baseline:
    """Something to compare with: its name in a table, what exactly it is, its script in ``SCRIPTS``.

    ``reuse``: freed memory stays in the process, so that no run pays for fresh pages.
    ``apart``: shown, but not among those of which the best is compared. ``prepare`` seconds until it must be
    ready.
    """

    name: str
    details: str
    script: str
    reuse: bool = True
    apart: bool = False
    prepare: float = PREPARE_SECONDS
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rivals:
    """What a program is held against: ``baselines`` by name, and what ``write`` puts into the folder that
    each of them reads (``job.json`` and arrays, as ``write_job`` does). ``write`` raises ValueError with a
    sentence."""

    baselines: Mapping[str, Baseline]
    write: Callable[[Path], None]


BASELINES: dict[str, Baseline] = {
    "torch": Baseline("PyTorch eager", "PyTorch {version} eager, memory reused", "torch_eager.py"),
    "torch-default": Baseline(
        "PyTorch, default memory", "PyTorch {version} eager, results allocated in each run",
        "torch_default.py", reuse=False, apart=True,
    ),
    "torch-compile": Baseline(
        "torch.compile", "PyTorch {version}, torch.compile (Inductor)", "torch_compile.py"
    ),
    "onnxruntime": Baseline(
        "ONNX Runtime", "ONNX Runtime {version}, CPU, outputs bound", "onnx_runtime.py"
    ),
    "jax": Baseline("JAX", "JAX {version}, jit on the CPU (XLA)", "jax_cpu.py"),
    "tvm": Baseline(
        "TVM, default", "Apache TVM {version}, Relax with its default schedules", "tvm_default.py",
        prepare=120.0,
    ),
    "tvm-tuned": Baseline(
        "TVM, tuned", "Apache TVM {version}, MetaSchedule", "tvm_tuned.py", prepare=3600.0
    ),
    "onednn": Baseline("oneDNN", "oneDNN {version}, its primitives", "onednn.py"),
    "hand": Baseline(
        "C by hand", "C written by hand for these shapes, {version}", "hand.py", apart=True
    ),
}  # fmt: skip

PACKAGES = {"tvm": "apache-tvm"}  # of a module that its package is not named after


def interpreter() -> str:
    """The baselines' Python: ``$DOJO_BENCH_PYTHON``, else the checkout's ``.venv-bench``, else ours."""
    root = checkout()
    of_checkout = root and root / ".venv-bench" / "bin" / "python"
    return os.environ.get(PYTHON_VARIABLE) or (
        str(of_checkout) if of_checkout and of_checkout.exists() else sys.executable
    )


def how_to_get(module: str) -> str:
    """What brings a module that the baselines' Python lacks."""
    ours = interpreter() == sys.executable
    extra = next((name for name, modules in EXTRAS.items() if ours and module in modules), None)
    if extra is not None:
        return install_line(extra)
    package = {"tvm": "apache-tvm"}.get(module, module)
    return (
        "make bench installs it." if checkout() else f"{shlex.quote(interpreter())} -m pip install {package}"
    )


def pinned_environment(reuse: bool = True) -> dict[str, str]:
    """Threads one a core, one OpenMP team; with ``reuse``, freed memory stays in the process."""
    threads = str(len(cores()))
    reusing = {
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "MALLOC_TOP_PAD_": str(64 << 20),
    }
    return {
        **os.environ,
        "OMP_NUM_THREADS": threads,
        "OMP_PROC_BIND": "close",
        "OMP_PLACES": "cores",
        "OPENBLAS_NUM_THREADS": "1",  # NumPy's own BLAS starts no second team
        "MKL_NUM_THREADS": threads,
        "TVM_NUM_THREADS": threads,
        **(reusing if reuse else {}),
    }


def write_job(folder: Path, kernel: str, shape: Shape, seed: int = 0) -> None:
    """One set of inputs as they are stored and the reference's outputs, for every baseline alike."""
    computed = kernels.get(kernel)
    program = computed.program(shape)
    names = (*program.inputs, *program.outputs)
    dtypes = {a: program.buffer_of[a].dtype for a in names}
    shapes = {a: [d.size for d in program.buffer_of[a].dims] for a in names}
    rng = np.random.default_rng(seed)
    inputs = {a: _drawn(dtypes[a], shapes[a], rng) for a in program.inputs}
    outputs = computed.reference({a: to_double(array, dtypes[a]) for a, array in inputs.items()}, shape)
    job = {
        "inputs": list(program.inputs), "outputs": list(program.outputs), "shapes": shapes, "dtypes": dtypes,
    }  # fmt: skip
    write_text(folder / "job.json", json.dumps(job))
    for name, array in inputs.items():
        with naming(folder):
            np.save(folder / f"in.{name}.npy", array)
    for name in program.outputs:
        np.save(folder / f"out.{name}.npy", np.asarray(outputs[name], np.float32).reshape(shapes[name]))


def _drawn(dtype: str, shape: list[int], rng: np.random.Generator) -> Array:
    """Normal numbers, and integers of all that their dtype holds."""
    if dtype in EPSILON:
        return from_double(np.asarray(rng.standard_normal(shape, np.float32)), dtype)
    return np.asarray(rng.integers(*extremes(dtype), shape, STORED[dtype], endpoint=True))


class Silent(Exception):
    """No answer: the status and the sentence that the row shows."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Process:
    """A process that speaks JSON lines, with time limits. Close it."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=dict(environment),
            start_new_session=True,
            bufsize=0,
        )
        self._pending = b""

    def ask(self, count: int, seconds: float) -> dict[str, Any]:
        """Ask for that many samples. Raises Silent; the process is gone then."""
        return self.request(count, seconds)

    def request(self, what: object, seconds: float) -> dict[str, Any]:
        """Ask something, as a line of JSON. Raises Silent; the process is gone then."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # read() tells how it ended
            self._process.stdin.write(f"{json.dumps(what)}\n".encode())
        return self.read(seconds)

    def read(self, seconds: float) -> dict[str, Any]:
        """The next answer. Raises Silent; the process is gone then."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.close()
                    raise Silent("timeout", f"No answer within {seconds:g} s; it was stopped.")
                data = self._process.stdout.read(1 << 16)
                if not data:
                    raise Silent("failed", self._ending())
                self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self.close()
            raise Silent("failed", f"It said something that is no answer: {line[:80]!r}.")
        return answer

    def _ending(self) -> str:
        """How the process ended, with the last that it said."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        code = self._process.poll()
        self._log.seek(0)
        lines = [line for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        self.close()
        how = f"killed by {signal.Signals(-code).name}" if code and code < 0 else f"exit status {code}"
        # Of a stack the innermost C++ frame that has a name, of the rest the last line.
        frame = next((m[1] for m in (re.search(r"\bin (\w+::[\w:~]+)", line) for line in lines) if m), "")
        plain = [line for line in lines if not line.lstrip().startswith("File ")]
        last = f" {plain[-1].strip()[:300]}" if plain else ""
        return f"Its process ended ({how}).{last}{f' In {frame}.' if frame else ''}"

    def close(self) -> None:
        """End it and whatever it started."""
        end_group(self._process.pid)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                pipe.close()
