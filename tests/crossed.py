"""Processors that this machine is not, where their compilers and emulators are here."""

import pytest

from dojo_core.targets.cpu.processor import Processor, known


def with_tools(name: str) -> Processor:
    """A processor by name; without its tools a test that asks for it skips, and says what brings them."""
    processor = known(name)
    assert processor.toolchain is not None
    if processor.toolchain.missing:
        pytest.skip(processor.toolchain.missing)
    return processor
