"""Estimated cycles along recorded lines: ``python -m benchmarks.model [--processor NAME] [KERNEL=SHAPE …]``.

For positions of a line, by ``targets/cpu/model.py``: the cycles, instructions, and the model's name. On an
x86-64 (``--processor x86-64-v3 --core znver4``) each position is timed here too, by one thread, and the rank
correlations (Spearman) of cycles and of instructions with the times are printed: how far the model is to be
believed.
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from dojo_core import kernels
from dojo_core.codegen.code import Code
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.measure.compiling import compile_source
from dojo_core.measure.pool import STORED, draw
from dojo_core.targets.cpu.build import source_of
from dojo_core.targets.cpu.codegen import generate, preamble
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.model import estimate
from dojo_core.targets.cpu.processor import KNOWN, Processor, known

IN_CACHE = ("softmax=64x192", "matmul=24x64x128", "rmsnorm=64x512")
QEMU_X86 = ("qemu-x86_64", "-cpu", "max")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("lines", nargs="*", default=IN_CACHE, metavar="KERNEL=SHAPE")
    parser.add_argument("--processor", default="armv8.4-a", choices=KNOWN)
    parser.add_argument("--core", help="llvm-mca's name of a core, instead of the processor's own")
    parser.add_argument("--every", type=int, default=3, help="so many moves from one position to the next")
    options = parser.parse_args()
    processor = known(options.processor)
    assert processor.toolchain is not None
    if processor.is_x86:  # run here as it is, but counted under the emulator
        processor = replace(processor, toolchain=replace(processor.toolchain, emulator=QEMU_X86))
    processor = replace(processor, model=options.core or processor.model)
    for each in options.lines:
        kernel, _, shape = each.partition("=")
        _along(kernel, shape, processor, options.every)


def _along(kernel: str, shape: str, processor: Processor, every: int) -> None:
    found, line = kernels.get(kernel), recorded_lines()[kernel]
    start = found.program(found.shape(shape))
    game = Game.new(start, kernel, shape, policy=line.policy, limits=limits_of(processor))
    line.play(game)
    path = [position.program for position in game.positions.values()]
    chosen = [*path[:-1:every], path[-1]]
    rows = []
    for number, program in enumerate(chosen):
        code = generate(program, line.policy, processor)
        told = estimate(code, _inputs(code), processor)
        seconds = _seconds(code, processor) if processor.is_x86 else None
        rows.append((told.cycles, told.instructions, seconds))
        timed = "" if seconds is None else f"{1e6 * seconds:10.1f} µs here"
        print(f"{kernel} {shape} {number:3}: {told.cycles:12,.0f} cycles {told.instructions:12,}{timed}")
    print(f"{kernel} {shape} on {processor.name}: estimated by {told.model}, {len(rows)} positions")
    if processor.is_x86:
        cycles, instructions, times = (np.array(column, float) for column in zip(*rows, strict=True))
        print(f"  rank correlation with times here: cycles {_spearman(cycles, times):.2f}, ", end="")
        print(f"instructions {_spearman(instructions, times):.2f}")


def _inputs(code: Code) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {p.name: draw(p.dtype, p.shape, rng, None) for p in code.parameters if p.role == "in"}


def _seconds(code: Code, processor: Processor) -> float:
    """The least of many runs, in this process, by one thread."""
    chain = processor.toolchain
    assert chain is not None
    flags = tuple(word for word in chain.command if word != "-fopenmp")
    with tempfile.TemporaryDirectory() as folder:
        source = source_of(preamble(processor), [code.text], chain.clang)
        fault = compile_source(
            source, ["-w", "-fPIC", "-shared"], Path(folder), "k.so", 120.0, flags, ("-lm",)
        )
        assert fault is None, fault
        function = ctypes.CDLL(str(Path(folder) / "k.so"))[code.symbol]
        inputs = _inputs(code)
        arrays = [
            np.ascontiguousarray(inputs[p.name]) if p.role == "in" else np.empty(p.shape, STORED[p.dtype])
            for p in code.parameters
        ]
        space = np.empty(code.workspace_bytes + 64, np.uint8)
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        workspace = ctypes.c_void_p(space.ctypes.data + -space.ctypes.data % 64)
        best, end = float("inf"), time.perf_counter() + 0.2
        while time.perf_counter() < end:
            began = time.perf_counter()
            function(pointers, workspace)
            best = min(best, time.perf_counter() - began)
    return best


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    ranks = [np.argsort(np.argsort(each)) for each in (a, b)]
    return float(np.corrcoef(*ranks)[0, 1])


if __name__ == "__main__":
    main()
