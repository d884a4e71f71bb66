"""Processors that this machine is not, where their compilers and emulators are here."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from dojo_core.codegen.code import Code
from dojo_core.measure.exclusive import compiling
from dojo_core.measure.places import cache_directory
from dojo_core.targets.cpu import cross
from dojo_core.targets.cpu.processor import Processor, known
from tests.compiled import kept

SECONDS = 300.0  # for a compiler and for an emulator, however busy the machine is


def run_emulated(
    codes: Sequence[Code], calls: Sequence[cross.Call], processor: Processor, more: str = ""
) -> list[dict[str, cross.Array]]:
    """As ``cross.run``; the program is kept for later runs of the tests."""

    def make(folder: Path) -> Path:
        with compiling():
            cross.build_program(codes, processor, folder, SECONDS, more)
        return folder / "program"

    source, command = cross.program_source(codes, processor, more), cross.toolchain_of(processor).command
    program = kept([source, *command, version(command[0])], make)
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="cross-") as folder:
        shutil.copy(program, Path(folder, "program"))
        return cross.execute(codes, calls, processor, Path(folder), SECONDS)


@cache
def version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout


def with_tools(name: str) -> Processor:
    """A processor by name; without its tools a test that asks for it skips, and says what brings them."""
    processor = known(name)
    assert processor.toolchain is not None
    if processor.toolchain.missing:
        pytest.skip(processor.toolchain.missing)
    return processor
