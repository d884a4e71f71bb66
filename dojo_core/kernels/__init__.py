"""The kernels: those of PerfDojo's table 3 first, then more layers of networks and small kernels.

Each has a start program for any shape, a float64 reference, and counts of operations and bytes.

Adding one takes a ``Kernel`` in a group's file; a new group takes one line here. Those of packages come last.
"""

from __future__ import annotations

from difflib import get_close_matches

from dojo_core.kernels import (
    contractions,
    convolutions,
    elementwise,
    layers,
    micro,
    narrow,
    normalisation,
    packages,
    reductions,
    sparse,
)
from dojo_core.kernels.kernel import Kernel, Shape
from dojo_core.kernels.networks import Layer, layers_of, networks
from dojo_core.kernels.networks import layers as named_layers
from dojo_core.plugins import Extended

__all__ = [
    "Kernel", "Layer", "Shape", "get", "kernel_and_shape", "layers_of", "named_layers", "names", "networks",
    "unknown",
]  # fmt: skip

_GROUPS = (elementwise, reductions, normalisation, contractions, convolutions, sparse, layers, micro, narrow)
_KERNELS: Extended[Kernel] = Extended(
    {kernel.name: kernel for group in _GROUPS for kernel in group.KERNELS}, more=packages.brought
)


def names() -> tuple[str, ...]:
    """All kernels' names, in the order in which they are shown."""
    return tuple(_KERNELS)


def get(name: str) -> Kernel:
    """The kernel of that name. Raises ValueError with a sentence that lists the known ones."""
    if name not in _KERNELS:
        raise ValueError(unknown(name))
    return _KERNELS[name]


def kernel_and_shape(wanted: str, shape: str = "") -> tuple[str, str]:
    """Kernel and shape, where the name is a layer's, or has a shape behind it: ``softmax:1024x256``. Raises
    ValueError where there is another shape beside it."""
    layer = named_layers().get(wanted)
    if layer is not None:
        kernel, named = layer.kernel, layer.shape
    else:
        kernel, _, named = wanted.partition(":")
        if not named or kernel not in names():
            return wanted, shape
    if shape:
        raise ValueError(f"{wanted} has its shape in its name: leave the shape out, or name {kernel}.")
    return kernel, named


def unknown(name: str) -> str:
    """Two sentences about a name that no kernel has: which one is like it, else which there are."""
    near = get_close_matches(name.lower(), _KERNELS, 1)
    hint = f"Did you mean {near[0]}?" if near else f"The kernels are: {', '.join(_KERNELS)}."
    return f"There is no kernel {name!r}. {hint}"
