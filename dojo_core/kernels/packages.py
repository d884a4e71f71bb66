"""Kernels that packages bring (docs/packages.md), each tried at its first shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dojo_core import plugins
from dojo_core.kernels.kernel import Kernel
from dojo_core.program.text import parse

GROUP = "dojo.kernels"


def brought(own: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """All that can be used, by name."""
    found = {}
    for name, kernel in plugins.added(GROUP, Kernel, own).items():
        try:
            program = parse(kernel.text(kernel.shapes[0]))
            if program.name != name:
                raise ValueError(f"its text is of a kernel {program.name}")
            found[name] = _guarded(kernel)
        except Exception as fault:
            plugins.failed(GROUP, name, fault)
    return found


def _guarded(own: Kernel) -> Kernel:
    """The kernel; what its functions raise is a ValueError with a sentence."""

    def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except Exception as fault:
                raise ValueError(plugins.failed(GROUP, own.name, fault)) from fault

        return asked

    return replace(
        own,
        text=guarded(own.text),
        result=guarded(own.result),
        flops=guarded(own.flops),
        fits=guarded(own.fits),
    )
