"""Kernels for another processor: compiled here by its toolchain, and run by its emulator.

One program holds kernels and a driver that needs nothing but the C library: it reads calls (a kernel's number
and its inputs) from a file and writes the outputs to another. What an emulator takes says nothing of a time.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dojo_core.codegen.code import Code, Parameter
from dojo_core.measure.compiling import compile_source, run_watched
from dojo_core.measure.exclusive import compiling
from dojo_core.measure.limits import COMPILE_SECONDS, RUN_SECONDS
from dojo_core.measure.places import cache_directory
from dojo_core.measure.pool import STORED
from dojo_core.program.tree import DTYPE_BYTES
from dojo_core.targets.cpu.build import source_of
from dojo_core.targets.cpu.processor import NotRun as NotRun
from dojo_core.targets.cpu.processor import Processor, Toolchain
from dojo_core.targets.cpu.vecmath import preamble

Array = npt.NDArray[np.generic]
Arrays = Mapping[str, Array]

_DRIVER = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct array { long bytes; int is_output; };
struct entry { void (*call)(void *const *, void *); int count; const struct array *arrays; long workspace; };

static void *space(long bytes, int byte) {
    void *p = aligned_alloc(64, (size_t)(bytes / 64 + 1) * 64);
    if (p == NULL) exit(3);
    return memset(p, byte, (size_t)(bytes / 64 + 1) * 64);
}
"""

_MAIN = """\
int main(int words, char **word) {
    FILE *in = words == 3 ? fopen(word[1], "rb") : NULL, *out = words == 3 ? fopen(word[2], "wb") : NULL;
    int number;
    if (in == NULL || out == NULL) return 2;
    while (fread(&number, sizeof number, 1, in) == 1) {
        const struct entry *kernel = &entries[number];
        void *arrays[kernel->count + 1], *workspace = space(kernel->workspace, 255); /* NaN in every float */
        for (int k = 0; k < kernel->count; ++k) {
            const struct array *a = &kernel->arrays[k];
            arrays[k] = space(a->bytes, 255);
            if (!a->is_output && fread(arrays[k], 1, (size_t)a->bytes, in) != (size_t)a->bytes) return 4;
        }
        kernel->call(arrays, workspace);
        for (int k = 0; k < kernel->count; ++k) {
            const struct array *a = &kernel->arrays[k];
            if (a->is_output && fwrite(arrays[k], 1, (size_t)a->bytes, out) != (size_t)a->bytes) return 5;
            free(arrays[k]);
        }
        free(workspace);
    }
    return fclose(out) != 0;
}
"""


_ALONE = "__attribute__((noinline)) "


@dataclass(frozen=True)
class Call:
    """One run of the kernel of a number, with its inputs by the names of ``Code.parameters``."""

    kernel: int
    inputs: Arrays


def toolchain_of(processor: Processor) -> Toolchain:
    """What compiles and runs for a processor, all of it there. Raises NotRun with what brings it."""
    chain = processor.toolchain
    if chain is None:
        raise NotRun(f"There is no compiler for {processor.name} ({processor.instruction_set}) here.")
    if chain.missing:
        raise NotRun(chain.missing)
    return chain


def program_source(codes: Sequence[Code], processor: Processor, more: str = "") -> str:
    """The C of a program with these kernels; ``more``: C that stands before them, behind the preamble."""
    chain = toolchain_of(processor)
    texts, tables, entries = [more] if more else [], [], []
    for number, code in enumerate(codes):
        texts.append(_named(code, number))
        arrays = ", ".join(f"{{{_bytes(p)}, {int(p.role == 'out')}}}" for p in code.parameters)
        tables.append(f"static const struct array arrays_{number}[] = {{{arrays}}};")
        entries.append(
            f"    {{kernel_{number}, {len(code.parameters)}, arrays_{number}, {code.workspace_bytes}}},"
        )
    kernels = source_of(preamble(processor), texts, chain.clang)
    table = "\n".join([*tables, "static const struct entry entries[] = {", *entries, "};"])
    return "\n".join([_DRIVER, kernels, table, _MAIN])


def _named(code: Code, number: int) -> str:
    """The code under a name of the program's; alone, a compiler would make it a part of the driver."""
    symbol = f"kernel_{number}"
    text = re.sub(rf"\b{re.escape(code.symbol)}\b", symbol, code.text)
    return text.replace(f"void {symbol}(", f"{_ALONE}void {symbol}(", 1)


def _bytes(parameter: Parameter) -> int:
    return int(np.prod(parameter.shape, dtype=np.int64)) * (
        1 if parameter.dtype == "bool" else DTYPE_BYTES[parameter.dtype]
    )


def run(
    codes: Sequence[Code],
    calls: Sequence[Call],
    processor: Processor,
    more: str = "",
    compile_seconds: float = COMPILE_SECONDS,
    run_seconds: float = RUN_SECONDS,
) -> list[dict[str, Array]]:
    """The outputs of each call, by the names of ``Code.parameters``, from one program and one run of it.

    Arrays are as they are stored, bf16, which numpy has not, as its bits; what is never written is all ones.
    Raises NotRun.
    """
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="cross-") as folder, compiling():
        build_program(codes, processor, Path(folder), compile_seconds, more)
        return execute(codes, calls, processor, Path(folder), run_seconds)


def build_program(
    codes: Sequence[Code], processor: Processor, folder: Path, seconds: float, more: str = ""
) -> None:
    """``folder/program``. Raises NotRun."""
    source, command = program_source(codes, processor, more), toolchain_of(processor).command
    error = compile_source(source, ["-w", "-static"], folder, "program", seconds, command, ("-lm",))
    if error is not None:
        raise NotRun(f"The generated C does not compile for {processor.name}: {error.message}")


def execute(
    codes: Sequence[Code],
    calls: Sequence[Call],
    processor: Processor,
    folder: Path,
    seconds: float,
    options: Sequence[str] = (),
) -> list[dict[str, Array]]:
    """What ``folder/program`` computes, as ``run`` has it; ``options`` are more of the emulator's."""
    chain = toolchain_of(processor)
    with (folder / "in").open("wb") as file:
        for call in calls:
            file.write(np.int32(call.kernel).tobytes())
            for parameter in codes[call.kernel].parameters:
                if parameter.role == "in":
                    file.write(_stored(parameter, call.inputs).tobytes())
    emulator = [str(shutil.which(word)) for word in chain.emulator[:1]] + list(chain.emulator[1:])
    program = [*emulator, *options, str(folder / "program"), "in", "out"]
    status, output = run_watched(program, folder, seconds)
    if status:
        raise NotRun(f"The program for {processor.name} ended with status {status}: {output}")
    data = memoryview((folder / "out").read_bytes())
    results, place = [], 0
    for call in calls:
        arrays = {}
        for parameter in codes[call.kernel].parameters:
            if parameter.role == "out":
                size = _bytes(parameter)
                stored = np.frombuffer(data[place : place + size], STORED[parameter.dtype])
                arrays[parameter.name] = stored.reshape(parameter.shape)
                place += size
        results.append(arrays)
    return results


def _stored(parameter: Parameter, inputs: Arrays) -> Array:
    given = np.reshape(inputs[parameter.name], parameter.shape)
    return np.ascontiguousarray(given, STORED[parameter.dtype])
