"""oneDNN's own primitives (onednn.cpp), without a framework around them.

The library and its headers come from PyPI: onednn-cpu-gomp and onednn-devel-cpu-gomp, built for gcc's OpenMP.
Variants: weights in their plain layout, and in the one that the library prefers, reordered beforehand; of
convolutions also Winograd's algorithm, where the library has it for this processor.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

from protocol import WEIGHTS, Job, Unsupported, Variant, Variants, serve

SOURCE = Path(__file__).with_suffix(".cpp")
COMPILE_SECONDS = 240


def build() -> ctypes.CDLL:
    """Compile against the environment's oneDNN; each call loads a copy of its own. Raises ImportError where
    that is not installed."""
    prefix = Path(sys.prefix)
    headers, libraries = prefix / "include", sorted((prefix / "lib").glob("libdnnl.so.*"))
    if not libraries or not (headers / "oneapi" / "dnnl" / "dnnl.hpp").exists():
        raise ImportError("No oneDNN: it comes with onednn-cpu-gomp and onednn-devel-cpu-gomp")
    flags = ["-O1", "-std=c++17", "-shared", "-fPIC", f"-I{headers}", f"-Wl,-rpath,{prefix / 'lib'}"]
    # What is loaded needs its file no more.
    with tempfile.TemporaryDirectory(prefix="dojo-onednn-") as folder:
        library = f"{folder}/onednn.so"
        subprocess.run(
            ["g++", *flags, str(SOURCE), str(libraries[0]), "-o", library],
            check=True, timeout=COMPILE_SECONDS,
        )  # fmt: skip
        loaded = ctypes.CDLL(library)
    loaded.last_error.restype = ctypes.c_char_p
    return loaded


def prepared(job: Job, library: ctypes.CDLL, packed: bool, winograd: bool = False) -> Variant:
    """Each set's primitives. Each variant has a compiled copy of its own."""
    sizes = (ctypes.c_int64 * len(job.shape))(*job.shape)
    library.open_kernel(job.kernel.encode(), sizes, len(job.shape), int(packed), int(winograd))
    runs = []
    for number, arrays in enumerate(job.sets):
        names = (*job.inputs, *job.outputs)
        given = (ctypes.c_void_p * len(names))(*(arrays[name].ctypes.data for name in names))
        came = library.add_set(given)
        if came == 1:
            raise Unsupported(f"oneDNN has no primitive for {job.kernel} here.")
        if came:
            raise RuntimeError(f"oneDNN: {library.last_error().decode()}")
        out = arrays[job.outputs[0]]

        def run(number=number, out=out):
            library.run_set(number)
            return out

        runs.append(run)
    return Variant(runs)


def prepare(job: Job) -> tuple[Variants, str]:
    first = build()
    parts = (ctypes.c_int * 3)()
    first.library_version(parts)
    plain = prepared(job, first, False)
    variants = {"plain weights" if job.kernel in WEIGHTS else "primitives": lambda: plain}
    if job.kernel in WEIGHTS or job.kernel == "relu_ffn":
        variants["weights packed" if job.kernel in WEIGHTS else "binary with post-operations"] = lambda: (
            prepared(job, build(), True)
        )
    if job.kernel in ("conv", "conv2d"):
        variants["Winograd, weights packed"] = lambda: prepared(job, build(), True, True)
    return variants, ".".join(map(str, parts))


if __name__ == "__main__":
    serve(prepare)
