"""The emulator: generated CUDA or HIP, byte for byte, behind a header whose threads are coroutines.

What comes out is a shared object with the CPU kernels' interface, ``void SYMBOL(void *const *arrays, void
*workspace)``, so that it is verified as they are. Its ``dojo_fault`` says what went wrong with the threads.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path

from dojo_core.codegen.built import Built, CompileError
from dojo_core.measure import sealed
from dojo_core.measure.compiling import compile_source
from dojo_core.measure.limits import COMPILE_SECONDS
from dojo_core.measure.places import cache_directory
from dojo_core.targets.gpu.code import GpuCode, HostLoop, Step


@cache
def header() -> str:
    """The words of CUDA and HIP that generated text uses, on the CPU."""
    return Path(__file__).with_name("emulator.hpp").read_text(encoding="utf-8")


def source(code: GpuCode, text: str | None = None) -> str:
    """What the compiler is given: the header, the generated text, the host's launches. ``text`` stands in
    for the generated one."""
    kernels = code.text if text is None else text
    return f"{header()}{kernels}\n{_host(code, kernels)}"


def _host(code: GpuCode, kernels: str) -> str:
    lines = [
        f'extern "C" __attribute__((visibility("default"))) void {code.symbol}'
        "(void *const *arrays, void *workspace) {",
        "    dojo_fault[0] = 0;",
        "    ++dojo::turn;",
    ]

    def below(steps: tuple[Step, ...], depth: int) -> None:
        for step in steps:
            pad = "    " * (1 + depth)
            if isinstance(step, HostLoop):
                lines.append(f"{pad}for (int i{depth} = 0; i{depth} < {step.size}; ++i{depth}) {{")
                below(step.body, depth + 1)
                lines.append(f"{pad}}}")
                continue
            pointers = [
                f"arrays[{p.array}]" if p.array is not None else f"(char *)workspace + {p.offset}"
                for p in step.pointers
            ]
            given = [f"i{n}" for n in step.loops]
            casts = [
                f"({kind})({p})" for kind, p in zip(_kinds(kernels, step.symbol), pointers, strict=False)
            ]
            call = f"{step.symbol}({', '.join([*casts, *given])});"
            waits = "true" if step.threads > 1 and _waits(kernels, step.symbol) else "false"
            lines.append(f"{pad}{{")
            lines.append(f"{pad}    auto run = [&] {{ {call} }};")
            lines.append(
                f"{pad}    dojo::launch({step.blocks}u, {step.threads}, {code.warp}, {waits}, "
                "[](void *f) { (*(decltype(run) *)f)(); }, &run);"
            )
            lines.append(f"{pad}}}")

    below(code.steps, 0)
    return "\n".join([*lines, "}", ""])


def _kernel(kernels: str, symbol: str) -> str:
    """The text of one kernel, from its name on."""
    begin = kernels.index(f"\n{symbol}(") + 1
    return kernels[begin : kernels.index("\n}\n", begin)]


def _kinds(kernels: str, symbol: str) -> list[str]:
    """The pointer types of a kernel's parameters."""
    text = _kernel(kernels, symbol)
    parameters = text[text.index("(") + 1 : text.index(") {")].split(", ")
    return [p.replace("__restrict__", "").rsplit("*", 1)[0] + "*" for p in parameters if "*" in p]


def _waits(kernels: str, symbol: str) -> bool:
    text = _kernel(kernels, symbol)
    return "__sync" in text or "SHUFFLE" in text or "mma_tf32(" in text


def build_emulated(
    code: GpuCode, text: str | None = None, timeout: float = COMPILE_SECONDS
) -> Built | CompileError:
    """Compile for the emulator, cached by content; no clock is waited for, as nothing is timed."""
    whole = source(code, text)
    options = ["-x", "c++", "-std=gnu++17", "-O1", "-fPIC", "-shared", "-w", "-fno-strict-aliasing"]
    if code.strict:
        options.append("-ffp-contract=off")
    key = hashlib.sha256(f"{whole}\0{options}".encode()).hexdigest()[:24]
    objects = sealed.folder(cache_directory() / "objects")
    library = objects / f"{key}.so"
    if sealed.is_intact(library):
        os.utime(library)
        return Built(str(library), code.symbol, key)
    with tempfile.TemporaryDirectory(dir=objects, prefix="build-") as folder:
        error = compile_source(whole, options, Path(folder), "emulated.so", timeout)
        if error is not None:
            return CompileError(error.message, key, error.settled)
        sealed.seal(Path(folder) / "emulated.so")
        sealed.place(Path(folder) / "emulated.so", library)
    return Built(str(library), code.symbol, key)
