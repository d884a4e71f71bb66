"""Other implementations: what they are, the Python that runs them, and the job that each of them reads."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dojo_core import kernels
from dojo_core.bench.processes import Dialogue, Process, Silent
from dojo_core.extras import EXTRAS, install_line
from dojo_core.files import naming, write_text
from dojo_core.kernels.kernel import Shape
from dojo_core.measure.pool import EPSILON, STORED, Array, from_double, to_double
from dojo_core.package_data import checkout, data_path
from dojo_core.program.dtypes import INTEGERS, extremes
from dojo_core.system import cores

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

# What starts a script with its arguments, in an environment; raises Silent.
Start = Callable[[str, Sequence[str], Mapping[str, str]], Dialogue]


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


def alone(script: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Process:
    """A script of ``SCRIPTS`` in a process of its own. Raises Silent where the Python does not start."""
    try:
        return Process([interpreter(), str(SCRIPTS / script), *arguments], environment)
    except OSError as fault:
        raise Silent(
            "missing",
            f"{interpreter()} does not start ({fault.strerror}): {PYTHON_VARIABLE} names its Python.",
        ) from None


@dataclass(frozen=True)
class Rivals:
    """What a program is held against: ``baselines`` by name, and what ``write`` puts into the folder that
    each of them reads (``job.json`` and arrays, as ``save_job`` does). ``write`` raises ValueError with a
    sentence. ``start`` starts a baseline's script as ``alone`` does."""

    baselines: Mapping[str, Baseline]
    write: Callable[[Path], None]
    start: Start = alone


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
    save_job(folder, inputs, {a: outputs[a] for a in program.outputs}, shapes, dtypes)


def save_job(
    folder: Path,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    shapes: Mapping[str, Sequence[int]],
    dtypes: Mapping[str, str],
    **more: object,
) -> None:
    """The folder of a job: inputs as they are stored, outputs as they should be, ``more`` in ``job.json``."""
    names = {"inputs": list(inputs), "outputs": list(outputs)}
    job = {**names, "shapes": dict(shapes), "dtypes": dict(dtypes), **more}
    write_text(folder / "job.json", json.dumps(job))
    with naming(folder):
        for name, array in inputs.items():
            np.save(folder / f"in.{name}.npy", array)
        for name, values in outputs.items():
            kept = np.asarray(values, None if dtypes[name] in INTEGERS else np.float32)
            np.save(folder / f"out.{name}.npy", kept.reshape(shapes[name]))


def _drawn(dtype: str, shape: list[int], rng: np.random.Generator) -> Array:
    """Normal numbers, and integers of all that their dtype holds."""
    if dtype in EPSILON:
        return from_double(np.asarray(rng.standard_normal(shape, np.float32)), dtype)
    return np.asarray(rng.integers(*extremes(dtype), shape, STORED[dtype], endpoint=True))
