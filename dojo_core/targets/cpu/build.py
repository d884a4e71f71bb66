"""From generated C to shared objects: in batches, in parallel, cached by content; and to assembly.

Compilers are started without a shell in a private folder, under a watchdog (``measure/watchdog.py``), within
time, memory and file limits.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path

from dojo_core.codegen.assembly import Assembly, linked
from dojo_core.codegen.built import Built, CompileError
from dojo_core.codegen.code import Code
from dojo_core.measure import sealed
from dojo_core.measure.compiler import the_compiler
from dojo_core.measure.compiling import compile_source
from dojo_core.measure.exclusive import compiling
from dojo_core.measure.limits import (
    BATCH_KERNELS,
    CACHE_OBJECT_BYTES,
    CODE_BYTES,
    COMPILE_SECONDS,
)
from dojo_core.measure.machine import this_machine
from dojo_core.measure.places import cache_directory
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.targets.cpu.excerpt import needed
from dojo_core.targets.cpu.objects import Objects, symbol_of
from dojo_core.targets.cpu.processor import ARM, Processor, host
from dojo_core.targets.cpu.vecmath import preamble as preamble_of


@cache
def _preamble() -> str:
    from dojo_core.targets.cpu.codegen import PREAMBLE

    return PREAMBLE


@cache
def _toolchain(preamble: str) -> bytes:
    machine = this_machine()
    return "\0".join((preamble, machine.cpu, machine.features, machine.compiler, machine.flags)).encode()


def code_hash(code: Code, preamble: str | None = None) -> str:
    """The key of everything known about generated code: its text (whatever it is called, and without its
    comments, which quote the program), compiler, flags."""
    lines = map(str.strip, _renamed(code, "KERNEL").splitlines())
    text = "\n".join(line for line in lines if not line.startswith("//"))
    interface = repr((code.parameters, code.workspace_bytes, code.error_bound))
    toolchain = _toolchain(_preamble() if preamble is None else preamble)
    return hashlib.sha256(b"\0".join((toolchain, text.encode(), interface.encode()))).hexdigest()[:24]


def _renamed(code: Code, symbol: str) -> str:
    return re.sub(rf"\b{re.escape(code.symbol)}\b", symbol, code.text)


def build(
    codes: Sequence[Code],
    jobs: int = 2,
    *,
    preamble: str | None = None,
    timeout: float = COMPILE_SECONDS,
    cancelled: Callable[[], bool] | None = None,
    beside: bool = False,
) -> list[Built | CompileError]:
    """Compile what is not in the cache, ``jobs`` files at a time; results in the order of ``codes``.

    ``timeout`` (seconds) is for one run of the compiler. One kernel that does not compile costs the
    others of its batch nothing but time. Blocks while the machine measures, unless ``beside``: for what is
    not timed by the CPU's clock. Where ``cancelled`` turns true, what is not built yet comes back as a
    CompileError that says so. ``preamble`` stands in for the
    generator's own.
    """
    prelude = _preamble() if preamble is None else preamble
    hashes = [code_hash(code, prelude) for code in codes]
    objects = Objects()
    results: dict[str, Built | CompileError] = {}
    missing: dict[str, Code] = {}
    for key, code in zip(hashes, codes, strict=True):
        if key in results or key in missing:
            continue
        if len(code.text) > CODE_BYTES:
            results[key] = CompileError(
                f"The generated code is {len(code.text)} bytes long, above the limit of {CODE_BYTES}: "
                "unroll less.",
                key,
            )
        elif (built := objects.built(key)) is not None:
            results[key] = built
        else:
            missing[key] = code
    if missing:
        batches = _batches(missing, jobs)
        unwanted = cancelled or (lambda: False)
        claimed: AbstractContextManager[object] = nullcontext(True) if beside else compiling(cancelled)
        with ThreadPoolExecutor(jobs) as pool, claimed as held:
            if held:
                parts = pool.map(
                    lambda b: _compile(b, missing, prelude, objects.folder, timeout, unwanted), batches
                )
                for part in parts:
                    results.update(part)
            else:
                results.update({key: CompileError(_CANCELLED, key, False) for key in missing})
        if time.monotonic() > _Pruned.at + PRUNE_SECONDS:  # it looks at tens of thousands of files
            _prune(objects.folder)
            _Pruned.at = time.monotonic()
    return [results[key] for key in hashes]


PRUNE_SECONDS = 300


class _Pruned:
    """When this process pruned the objects last."""

    at = -math.inf


_CANCELLED = "Not compiled: the request was cancelled."


def _batches(codes: dict[str, Code], jobs: int) -> list[list[str]]:
    """The keys in files of about the same length, so that no compiler is waited for while others idle."""
    files: list[list[str]] = [[] for _ in range(max(min(jobs, len(codes)), -(-len(codes) // BATCH_KERNELS)))]
    lengths = [0] * len(files)
    for key in sorted(codes, key=lambda key: -len(codes[key].text)):
        open_files = [n for n, file in enumerate(files) if len(file) < BATCH_KERNELS]
        shortest = min(open_files, key=lengths.__getitem__)
        files[shortest].append(key)
        lengths[shortest] += len(codes[key].text)
    return files


def _compile(
    keys: list[str],
    codes: dict[str, Code],
    preamble: str,
    objects: Path,
    timeout: float,
    unwanted: Callable[[], bool],
) -> dict[str, Built | CompileError]:
    """Compile one file; where it fails, its halves, down to the kernels that are at fault."""
    if unwanted():
        return {key: CompileError(_CANCELLED, key, False) for key in keys}
    with tempfile.TemporaryDirectory(dir=objects, prefix="build-") as folder:
        kernels = [_renamed(codes[key], symbol_of(key)) for key in keys]
        source = source_of(preamble, kernels, the_compiler().clang)
        options = ["-fPIC", "-shared", "-w"]
        error = compile_source(source, options, Path(folder), "batch.so", timeout, unwanted=unwanted)
        if error is None:
            # One file, one name per kernel: a hard link takes no space, and the names age one by one.
            sealed.seal(Path(folder) / "batch.so")
            for key in keys:
                link = Path(folder) / f"{key}.so"
                os.link(Path(folder) / "batch.so", link)
                sealed.place(link, objects / link.name)
            return {key: Built(str(objects / f"{key}.so"), symbol_of(key), key) for key in keys}
    if len(keys) == 1:
        message = error.message.replace(symbol_of(keys[0]), codes[keys[0]].symbol)
        return {keys[0]: CompileError(message, keys[0], error.settled)}
    half = len(keys) // 2
    first = _compile(keys[:half], codes, preamble, objects, timeout, unwanted)
    return first | _compile(keys[half:], codes, preamble, objects, timeout, unwanted)


# gcc fuses a product and a sum by itself, and not in a function with an attribute; clang where these stand.
_FUSED, _UNFUSED = "#pragma clang fp contract(fast)\n", "#pragma clang fp contract(off)\n"


def source_of(preamble: str, kernels: Sequence[str], clang: bool) -> str:
    """Kernels as a file of C for gcc or ``clang``, behind what they need of the preamble."""
    from dojo_core.targets.cpu.codegen import STRICT

    preamble = needed("\n".join(kernels), preamble)
    if clang:
        named = [(i.builtin[n], i.clang[n]) for i in INSTRUCTIONS.values() for n in i.builtin]
        preamble = "".join(f"#define {gcc} {clang}\n" for gcc, clang in named) + _FUSED + preamble
        kernels = [f"{_UNFUSED}{k}\n{_FUSED}" if k.startswith(STRICT) else k for k in kernels]
    return "\n".join([preamble, *kernels, ""])


def _prune(objects: Path) -> None:
    """Remove the longest unused until the rest is within the limit; what a crash left goes too."""
    entries: list[tuple[float, float, str]] = []
    for entry in os.scandir(objects):
        try:
            status = entry.stat()
        except FileNotFoundError:
            continue  # another process prunes too
        if entry.is_dir():
            if status.st_mtime < _hour_ago():
                shutil.rmtree(entry.path, ignore_errors=True)
        else:
            entries.append((status.st_mtime, status.st_size / max(status.st_nlink, 1), entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= CACHE_OBJECT_BYTES:
        return
    for _, size, path in sorted(entries):
        if total <= CACHE_OBJECT_BYTES:
            break
        Path(path).unlink(missing_ok=True)
        total -= size


def _hour_ago() -> float:
    return time.time() - 3600


def assembly(
    code: Code,
    *,
    processor: Processor | None = None,
    preamble: str | None = None,
    timeout: float = COMPILE_SECONDS,
) -> Assembly:
    """The assembly of one kernel (Intel syntax on x86), linked line by line with its C and its program.

    ``processor``: which the code was generated for, by default this machine's. An instruction that comes from
    an inline function of the preamble counts for the line that called it. Raises ValueError with a sentence
    that holds the compiler's message, or says what is missing.
    """
    compiled_for = processor or host()
    syntax = ["-masm=intel"] if compiled_for.is_x86 else []
    if processor is None:  # as what is run here is compiled
        syntax.append("-fPIC")
    listing, before = listing_of(code, syntax, processor=processor, preamble=preamble, timeout=timeout)
    apple = compiled_for.toolchain is None and sys.platform == "darwin"
    comment = (
        "//"
        if compiled_for.instruction_set == ARM and not apple
        else ";"
        if apple and not compiled_for.is_x86
        else "#"
    )
    return linked(listing, code.nodes, before, comment)


def listing_of(
    code: Code,
    syntax: list[str],
    *,
    processor: Processor | None = None,
    preamble: str | None = None,
    timeout: float = COMPILE_SECONDS,
) -> tuple[str, int]:
    """What the compiler writes of one kernel, in this ``syntax`` (options), and how many lines of what it was
    given stand before the kernel's own. Raises ValueError as ``assembly`` does."""
    compiled_for = processor or host()
    chain = compiled_for.toolchain
    if chain is None and compiled_for is not host():
        raise ValueError(
            f"There is no compiler for {compiled_for.name} ({compiled_for.instruction_set}) here."
        )
    if chain is not None and chain.missing:
        raise ValueError(chain.missing)
    if preamble is None:
        preamble = _preamble() if processor is None else preamble_of(processor)
    source = source_of(preamble, [code.text], the_compiler().clang if chain is None else chain.clang)
    first = source[: source.index(code.text)].count("\n")
    options = ["-S", "-g1", *syntax, "-fno-asynchronous-unwind-tables", "-w"]
    command = None if chain is None else chain.command
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="assembly-") as folder, compiling():
        error = compile_source(source, options, Path(folder), "out.s", timeout, command)
        if error is not None:
            raise ValueError(f"The generated C does not compile: {error.message}")
        return (Path(folder) / "out.s").read_text(encoding="utf-8"), first
