"""Processors that this machine is not, where their compilers and emulators are here."""

from functools import partial

import pytest

from dojo_core.targets.cpu import cross
from dojo_core.targets.cpu.processor import Processor, known

# However busy the machine is.
run_emulated = partial(cross.run, compile_seconds=300.0, run_seconds=300.0)


def with_tools(name: str) -> Processor:
    """A processor by name; without its tools a test that asks for it skips, and says what brings them."""
    processor = known(name)
    assert processor.toolchain is not None
    if processor.toolchain.missing:
        pytest.skip(processor.toolchain.missing)
    return processor
