"""What an import is told, what it gives, and why it refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dojo_core.from_onnx.values import Numbers
from dojo_core.program.tree import Program


@dataclass(frozen=True)
class Reason:
    """Why a node cannot be taken. ``node`` is its name or its first output.

    ``unforeseen``: an operator met what it does not know how to refuse: a damaged node, or a fault of ours.
    """

    operator: str
    node: str
    why: str
    remedy: str
    unforeseen: bool = False

    def __str__(self) -> str:
        return " ".join(part for part in (f"{self.operator} ({self.node}): {self.why}", self.remedy) if part)


@dataclass(frozen=True)
class Given:
    """What is known of a graph input beside the model: a shape, and where it is given the value.

    ``items`` describes a sequence; ``absent`` an optional without an element.
    """

    shape: tuple[int, ...] | None = None
    values: Numbers | None = None
    items: tuple[Given, ...] | None = None
    element: str | None = None
    absent: bool = False


@dataclass(frozen=True)
class Port:
    """An input or an output of the graph: its arrays of the text, by name; a sequence has several.

    ``values`` holds what is known at import, where no array carries it.
    """

    name: str
    arrays: tuple[str, ...]
    element: str = "f32"
    shape: tuple[int, ...] | None = ()
    sequence: bool = False
    absent: bool = False
    values: Numbers | None = None
    items: tuple[Port, ...] = ()


@dataclass(frozen=True)
class Imported:
    """A model as one kernel. ``program`` is what its text says.

    ``weights`` are arrays of the text that the model has values for, ``specialised`` graph inputs that were
    taken for their values and the operators that asked, ``costly`` encodings that take more than one pass.
    """

    name: str
    program: Program
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    weights: Mapping[str, Numbers] = field(default_factory=dict)
    specialised: Mapping[str, str] = field(default_factory=dict)
    costly: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.program.text


class NotImported(ValueError):
    """A model that cannot be taken: all reasons that were found."""

    def __init__(self, reasons: Sequence[Reason]) -> None:
        super().__init__("\n".join(map(str, reasons)))
        self.reasons = tuple(reasons)
