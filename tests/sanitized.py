"""Generated C under AddressSanitizer and UndefinedBehaviorSanitizer, in a process of its own."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dojo_core.codegen.code import Code
from dojo_core.measure.pool import STORED, from_double
from dojo_core.targets.cpu.codegen import PREAMBLE
from dojo_core.targets.cpu.excerpt import needed
from tests.compiled import FLAGS

# The inputs of all calls come through standard input. Each array is a piece of the heap of just its size, so
# that the sanitizer's red zones touch it on both sides; what is not an input begins as NaN.
_MAIN = """
extern int posix_memalign(void **, __SIZE_TYPE__, __SIZE_TYPE__);
extern void free(void *);
extern int read(int, void *, __SIZE_TYPE__);
extern void *memset(void *, int, __SIZE_TYPE__);
static void fill(char *into, long bytes) {
    while (bytes > 0) {
        int got = read(0, into, bytes);
        if (got <= 0) __builtin_trap();
        into += got, bytes -= got;
    }
}
typedef void Kernel(void *const *, void *);
static void call(Kernel *kernel, int count, const long *bytes, const int *given, long space) {
    void *arrays[64], *workspace;
    for (int k = 0; k < count; ++k) {
        if (posix_memalign(&arrays[k], 64, bytes[k])) __builtin_trap();
        if (given[k]) fill(arrays[k], bytes[k]); else memset(arrays[k], 0xff, bytes[k]);
    }
    if (posix_memalign(&workspace, 64, space)) __builtin_trap();
    memset(workspace, 0xff, space);
    kernel(arrays, workspace);
    for (int k = 0; k < count; ++k) free(arrays[k]);
    free(workspace);
}
"""
_FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-w")


@cache
def missing() -> str:
    """What keeps the sanitizers from running on this machine; empty where they run."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "empty.c"), Path(folder, "empty")
        source.write_text("int main(void) { return 0; }\n")
        built = subprocess.run(
            ["gcc", *_FLAGS, str(source), "-o", str(program)], capture_output=True, text=True
        )
        if built.returncode:
            return "gcc's sanitizers (Debian: apt-get install libasan8 libubsan1)"
        return "" if subprocess.run([str(program)]).returncode == 0 else "a system that lets sanitizers run"


def complaint(calls: Sequence[tuple[Code, Mapping[str, npt.NDArray[Any]]]], timeout: float = 120) -> str:
    """What the sanitizers say of these kernels on these inputs, or nothing. The symbols differ."""
    given = bytearray()
    lines = [_MAIN, *dict.fromkeys(code.text for code, _ in calls), "int main(void) {"]
    for number, (code, inputs) in enumerate(calls):
        sizes, reads = [], []
        for parameter in code.parameters:
            kind = np.dtype(STORED[parameter.dtype])
            sizes.append(max(1, int(np.prod(parameter.shape)) * kind.itemsize))
            reads.append(int(parameter.role == "in"))
            if parameter.role == "in":
                values = np.reshape(inputs[parameter.name], parameter.shape)
                stored = from_double(values, parameter.dtype)
                given += np.ascontiguousarray(stored).tobytes()
        lines.append(f"static const long bytes{number}[] = {{{', '.join(map(str, sizes))}}};")
        lines.append(f"static const int given{number}[] = {{{', '.join(map(str, reads))}}};")
        space = max(1, code.workspace_bytes)
        lines.append(f"call({code.symbol}, {len(sizes)}, bytes{number}, given{number}, {space});")
    lines.append("return 0; }\n")
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "kernels.c"), Path(folder, "kernels")
        text = "\n".join(lines)
        source.write_text(needed(text, PREAMBLE) + text)
        flags = [flag for flag in FLAGS if flag != "-O2"]
        command = ["gcc", *flags, "-O1", *_FLAGS, str(source), "-o", str(program), "-lm"]
        built = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        if built.returncode:
            return built.stderr
        done = subprocess.run([str(program)], input=bytes(given), capture_output=True, timeout=timeout)
        return (
            ""
            if done.returncode == 0
            else done.stderr.decode(errors="replace")[:2000] or f"ended by {done.returncode}"
        )
