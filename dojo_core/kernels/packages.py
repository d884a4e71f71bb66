"""Kernels that packages bring (docs/packages.md), each tried at its first shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dojo_core import plugins
from dojo_core.kernels.kernel import Kernel
from dojo_core.program.text import parse

GROUP = "dojo.kernels"


def brought(ours: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """All that can be used, by name."""
    added = {}
    for name, kernel in plugins.added(GROUP, Kernel, ours).items():
        try:
            program = parse(kernel.text(kernel.shapes[0]))
            if program.name != name:
                raise ValueError(f"its text is of a kernel {program.name}")
            added[name] = _guarded(kernel)
        except Exception as fault:
            plugins.failed(GROUP, name, fault)
    return added


def _guarded(kernel: Kernel) -> Kernel:
    """The kernel; what its functions raise is a ValueError with a sentence."""

    def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except Exception as fault:
                raise ValueError(plugins.failed(GROUP, kernel.name, fault)) from fault

        return asked

    return replace(
        kernel,
        text=guarded(kernel.text),
        result=guarded(kernel.result),
        flops=guarded(kernel.flops),
        fits=guarded(kernel.fits),
    )
