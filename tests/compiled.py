"""Generated C, compiled and run in this process: for tests of programs that are known to be sound."""

import ctypes
import hashlib
import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dojo_core.codegen.code import Code
from dojo_core.measure import sealed
from dojo_core.measure.compiler import the_compiler
from dojo_core.measure.places import cache_directory
from dojo_core.measure.pool import STORED, from_double, to_double
from dojo_core.program.arithmetic import rounded
from dojo_core.program.dtypes import FLOATS, INTEGERS, STORAGE, STORAGE_FLOATS, STORAGE_INTEGERS, extremes
from dojo_core.program.tree import Program
from dojo_core.system import features
from dojo_core.targets.cpu.codegen import PREAMBLE, generate
from dojo_core.targets.cpu.excerpt import needed

FLAGS = ["-std=gnu11", *the_compiler().flags]
QUIET = ["-Wall", "-Wno-unused", "-Wno-maybe-uninitialized", "-Wno-uninitialized"]


def load(text: str) -> ctypes.CDLL:
    """A C file behind what it needs of the preamble, as the Dojo compiles it."""
    return shared(needed(text, PREAMBLE) + text, [the_compiler().path, *FLAGS, *QUIET])


def shared(source: str, command: Sequence[str]) -> ctypes.CDLL:
    """C that a ``command`` of this machine's compiler takes without a complaint; the library is kept where
    the Dojo keeps its own, for later runs of the tests: most of what they generate stays the same."""
    whole = [*command, "-fPIC", "-shared", "-o", "kernel.so", "kernel.c", "-lm"]

    def make(folder: Path) -> Path:
        (folder / "kernel.c").write_text(source)
        done = subprocess.run(whole, cwd=folder, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return folder / "kernel.so"

    return ctypes.CDLL(str(kept([source, *whole, the_compiler().version, *sorted(features())], make)))


def kept(made_of: Sequence[str], make: Callable[[Path], Path]) -> Path:
    """What a compiler makes in a folder; or, where it was ever ``made_of`` the same, what it made then."""
    objects = sealed.folder(cache_directory() / "objects")
    place = objects / hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:24]
    if sealed.is_intact(place):
        os.utime(place)  # the oldest by use leave first
        return place
    with tempfile.TemporaryDirectory(dir=objects, prefix="build-") as folder:
        made = make(Path(folder))
        sealed.seal(made)
        sealed.place(made, place)
    return place


def aligned(shape: tuple[int, ...], dtype: type) -> npt.NDArray:
    """Zeros on a 64-byte boundary."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + size].view(dtype).reshape(shape)


def run(
    code: Code, inputs: Mapping[str, npt.NDArray], library: ctypes.CDLL | None = None
) -> dict[str, npt.NDArray]:
    """The outputs of one call by buffer name; outputs start as garbage. ``library`` has the code compiled.

    bf16 and what is only stored, which numpy has not, goes in and comes out as numbers.
    """
    arrays = []
    for parameter in code.parameters:
        array = aligned(parameter.shape, STORED[parameter.dtype])
        array[...] = 77
        if parameter.role == "in":
            given = np.reshape(inputs[parameter.name], parameter.shape)
            array[...] = from_double(np.asarray(given), parameter.dtype)
        arrays.append(array)
    workspace = aligned((code.workspace_bytes + 1,), np.uint8)
    workspace[...] = 255  # NaN in every float
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    (library or load(code.text))[code.symbol](pointers, ctypes.c_void_p(workspace.ctypes.data))
    return {
        p.name: to_double(a, p.dtype) if p.dtype in ("bf16", *STORAGE) else a
        for p, a in zip(code.parameters, arrays, strict=True)
        if p.role == "out"
    }


def run_program(
    program: Program, inputs: Mapping[str, npt.NDArray], policy: str = "reassoc"
) -> dict[str, npt.NDArray]:
    """Generate, compile, run."""
    return run(generate(program, policy), inputs)


def random_inputs(program: Program, seed: int = 0, full: bool = False) -> dict[str, npt.NDArray]:
    """Normal numbers that their dtype holds; for integers those of a domain, small ones, or of the ``full``
    range."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for name in program.inputs:
        buffer = program.buffer_of[name]
        shape = tuple(d.size for d in buffer.dims)
        kind = STORED[buffer.dtype]
        if buffer.dtype in ("bf16", *STORAGE_FLOATS):
            inputs[name] = rounded(rng.standard_normal(shape), buffer.dtype)
        elif buffer.dtype in FLOATS:
            inputs[name] = rng.standard_normal(shape).astype(kind)
        elif buffer.dtype in STORAGE_INTEGERS or (
            full and buffer.dtype in INTEGERS and program.domain_of(name) is None
        ):
            least, most = extremes(buffer.dtype)
            inputs[name] = rng.integers(least, most, shape, kind, endpoint=True)
        else:
            domain = program.domain_of(name)
            low, high = (0, 2) if buffer.dtype == "bool" else (0, 9) if buffer.dtype[0] == "u" else (-9, 9)
            if domain is not None:
                low, high = math.ceil(domain.low), math.floor(domain.high) + 1
            if domain is not None and domain.distinct:
                chosen = rng.permutation(high - low)[: math.prod(shape)] + low
                inputs[name] = chosen.reshape(shape).astype(kind)
                continue
            inputs[name] = rng.integers(low, high, shape).astype(kind)
    return inputs
