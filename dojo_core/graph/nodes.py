"""What frontends give: tensors and nodes, each node with a function that writes it in primitives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from dojo_core.primitives.array import Array
from dojo_core.primitives.builder import Builder
from dojo_core.program.tree import DTYPE_BYTES


class GraphError(ValueError):
    """What is wrong with a graph; the message is a sentence for a person."""


@dataclass(frozen=True)
class Tensor:
    """A named array of static sizes; ``dtype`` is one of the Dojo's (``f32``).

    ``domain`` is the promise that all elements lie between the two: of an input that says places, such as
    token numbers, so that nothing need be clamped. It is checked whenever the graph runs. What a node gives
    has none.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    domain: tuple[float, float] | None = None

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * DTYPE_BYTES[self.dtype]

    @property
    def kind(self) -> str:
        """``f32 [64, 512]``."""
        return f"{self.dtype} [{', '.join(map(str, self.shape))}]"

    def __str__(self) -> str:
        return f"{self.name} {self.kind}"


class Kind(Enum):
    """What a node is to the partition into kernels."""

    CONTRACTION = "contraction"  # a matrix product, a convolution: what a kernel is made around
    REDUCTION = "reduction"  # along axes, also of windows
    POINTWISE = "pointwise"  # element by element, and broadcasts of it
    VIEW = "view"  # an index and no pass: a transpose, a reshape, a slice, an expansion
    COPY = "copy"  # a rearrangement that takes a pass: concatenation, padding, gather
    OTHER = "other"  # always a kernel of its own: scans, recurrences, sorting


@dataclass(frozen=True)
class Node:
    """One operation of a model. ``name`` is unique in it, ``operator`` is a word for people (``Conv``).

    ``inputs`` are names of tensors. ``emit`` writes the node in primitives: from the inputs' arrays to the
    outputs', which have the dtypes and shapes of ``outputs``; those of f16 and bf16 may be f32, and are
    rounded where they leave the kernel. It is pure, and called again for each partition that is tried; it
    raises BuildError for what no text can be.
    """

    name: str
    operator: str
    kind: Kind
    inputs: tuple[str, ...]
    outputs: tuple[Tensor, ...]
    emit: Callable[[Builder, Sequence[Array]], Sequence[Array]]
