"""C by hand (hand.c): what a performance engineer writes for the 16 kernels of the paper's table 3.

Variants: stores that pass the caches by or not, prefetches, several rows in flight; constant weights also
packed beforehand. Only these shapes, only where there is AVX-512.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

from protocol import WEIGHTS, Job, Run, Unsupported, Variant, Variants, paged, serve

SOURCE = Path(__file__).with_suffix(".c")
COMPILE_SECONDS = 240
COMPILER = "gcc"
FLAGS = (
    "-O2", "-march=native", "-mprefer-vector-width=512", "-falign-loops=64", "-fno-math-errno", "-fopenmp",
    "-std=gnu11", "-fPIC", "-shared",
)  # fmt: skip

STREAMED = {
    "plain": "",
    "streaming stores": "_stream",
    "streaming stores, prefetch near": "_stream_near",
    "streaming stores, prefetch far": "_stream_far",
}
# Also with several rows in flight, so that reductions hide behind other rows' work.
IN_FLIGHT = STREAMED | {f"rows in flight, {name}": f"_flight{end}" for name, end in STREAMED.items()}
CHANNELS = {
    **STREAMED,
    **{f"shared channels, {name}": f"_shared{end}" for name, end in STREAMED.items()},
    "channels in flight": "_flight",
    "channels in flight, prefetch": "_flight_near",
    "shared channels in flight": "_flight_shared",
    "shared channels in flight, prefetch": "_flight_shared_near",
}
# By kernel and shape: variants by name, each the end of its function's name.
FUNCTIONS: dict[tuple[str, str], tuple[str, dict[str, str]]] = {
    ("add", "3072x4096"): ("hand_add", STREAMED),
    ("mul", "6x14336"): ("hand_mul", {"plain": "", "prefetch": "_fetch"}),
    ("relu", "4096x4096"): ("hand_relu", STREAMED),
    ("relu_ffn", "8x64x112x112"): ("hand_relu_ffn", STREAMED),
    ("reducemean", "4096x4096"): (
        "hand_reducemean",
        {
            "plain": "", "prefetch near": "_near", "prefetch far": "_far", "two rows": "_two",
            "four rows": "_rows",
        },
    ),
    ("softmax", "24576x512"): ("hand_softmax", IN_FLIGHT),
    ("layernorm", "16384x1024"): ("hand_layernorm_1024", IN_FLIGHT),
    ("layernorm", "4096x4096"): ("hand_layernorm_4096", IN_FLIGHT),
    ("rmsnorm", "3072x4096"): ("hand_rmsnorm", IN_FLIGHT),
    ("batchnorm", "8x3x2048x2048"): ("hand_batchnorm_large", STREAMED),
    ("batchnorm", "8x64x300x300"): ("hand_batchnorm_small", CHANNELS),
    ("matmul", "768x1024x1024"): ("hand_matmul", {"plain": "", "streaming stores": "_stream"}),
    ("bmm", "192x256x128x256"): ("hand_bmm", {"plain": "", "streaming stores": "_stream"}),
    ("conv", "8x10x3x512x512x5"): (
        "hand_conv_5",
        {
            "plain": "", "streaming stores": "_stream",
        },
    ),
    ("conv", "8x64x64x56x56x3"): (
        "hand_conv_3",
        {
            "plain": "", "weights packed": "_packed",
        },
    ),
    ("swiglu", "1x256x4096x448"): ("hand_swiglu", {"plain": "", "weights packed": "_packed"}),
}  # fmt: skip


def build(base: str) -> ctypes.CDLL:
    """The functions whose names begin so."""
    # What is loaded needs its file no more.
    with tempfile.TemporaryDirectory(prefix="dojo-hand-") as folder:
        library = f"{folder}/hand.so"
        subprocess.run(
            [COMPILER, *FLAGS, f"-D{base.upper()}", str(SOURCE), "-o", library, "-lm"],
            check=True, timeout=COMPILE_SECONDS,
        )  # fmt: skip
        return ctypes.CDLL(library)


def version() -> str:
    ran = subprocess.run([COMPILER, "-dumpfullversion"], capture_output=True, text=True, check=True)
    return f"gcc {ran.stdout.strip()}"


def prepared(job: Job, library: ctypes.CDLL, base: str, end: str) -> Variant:
    """A call for each set. A variant with packed weights gets them in an array of their own, packed here."""
    function = getattr(library, base + end)
    runs: list[Run] = []
    for arrays in job.sets:
        names = (*job.inputs, *job.outputs)
        given = (ctypes.c_void_p * len(names))(*(arrays[name].ctypes.data for name in names))
        out = arrays[job.outputs[0]]
        packed, place = None, ctypes.c_void_p()
        if end.endswith("_packed"):
            packed = paged((sum(arrays[name].size for name in WEIGHTS[job.kernel]),))
            place = ctypes.c_void_p(packed.ctypes.data)
            getattr(library, base + end.removesuffix("ed"))(given, place)

        def run(given=given, out=out, packed=packed, place=place):
            function(given, place)
            return out

        runs.append(run)
    return Variant(runs)


def _cpuinfo() -> str:
    """What Linux tells of the processor; other systems tell nothing so."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def prepare(job: Job) -> tuple[Variants, str]:
    shape = "x".join(map(str, job.shape))
    if (job.kernel, shape) not in FUNCTIONS:
        raise Unsupported(f"There is no C by hand for {job.kernel} {shape}.")
    if "avx512f" not in _cpuinfo().split():
        raise Unsupported("The C by hand needs AVX-512, which this machine has not.")
    if shutil.which(COMPILER) is None:
        raise Unsupported("The C by hand needs gcc, which is not here.")
    base, ends = FUNCTIONS[job.kernel, shape]
    library = build(base)
    return {name: lambda end=end: prepared(job, library, base, end) for name, end in ends.items()}, version()


if __name__ == "__main__":
    serve(prepare)
