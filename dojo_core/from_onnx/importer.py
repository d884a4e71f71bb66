"""From a model to one kernel's text: all its nodes in one builder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dojo_core.from_onnx.arrays import array_of, stored
from dojo_core.from_onnx.call import Call, Operator
from dojo_core.from_onnx.ports import Given, Imported, NotImported, Port, Reason
from dojo_core.from_onnx.values import KNOWN_ELEMENTS, Numbers, Tensor, Value, checked, dtype_of
from dojo_core.from_onnx.walk import Walk, completed, unlike
from dojo_core.from_onnx.weights import values_of
from dojo_core.primitives.array import BuildError
from dojo_core.primitives.builder import Builder
from dojo_core.program.expressions import TextError

if TYPE_CHECKING:
    import onnx


def import_model(
    model: onnx.ModelProto,
    given: Mapping[str, Given] | None = None,
    name: str = "",
    folder: Path | None = None,
) -> Imported:
    """A checked model as one kernel's text. Raises NotImported with all reasons.

    ``folder`` is where weights lie that are not in the model itself; without it these have no values.
    """
    return completed(lambda asked: _OneKernel(model, given or {}, asked, name, folder).imported())


class _OneKernel(Walk):
    """A walk whose arrays are all of one text."""

    def __init__(
        self,
        model: onnx.ModelProto,
        given: Mapping[str, Given],
        specialised: Mapping[str, str],
        name: str,
        folder: Path | None,
    ) -> None:
        super().__init__(model, given, specialised, name, folder)
        self.name = unlike(self.name, set())
        self.b = Builder(self.name)
        self.weights: dict[str, Numbers] = {}
        self.taken: set[str] = set()  # names of arrays

    def imported(self) -> Imported:
        inputs, outputs = self.through()
        try:
            program = self.b.program()
        except (BuildError, TextError) as fault:
            raise NotImported([Reason("graph", self.name, str(fault), "")]) from None
        used = set(program.inputs)
        kept = [p if set(p.arrays) <= used else _without(p, used) for p in inputs]
        weights = {n: v for n, v in {**self.weights, **self.b.constants}.items() if n in used}
        asked = dict(self.specialised)
        return Imported(self.name, program, tuple(kept), tuple(outputs), weights, asked, tuple(self.costly))

    def data(self, name: str, element: str, shape: tuple[int, ...]) -> tuple[Tensor, str]:
        array_name = unlike(name, self.taken)
        array = self.b.input(array_name, element, shape)
        return Tensor(element, shape, array=array, sources=frozenset([name])), array_name

    def constant(self, tensor: onnx.TensorProto, name: str = "") -> Tensor:
        """A large one, or one without values here, is an input of the text."""
        element, shape = dtype_of(tensor.data_type), tuple(tensor.dims)
        values = values_of(tensor, self.folder)
        if values is not None and values.size <= KNOWN_ELEMENTS:
            return Tensor(element, values.shape, values=values, name=name)
        checked(element)
        array_name = unlike(name or "weight", self.taken)
        array = self.b.input(array_name, element, shape)
        if values is not None:
            self.weights[array_name] = values
        return Tensor(element, shape, array=array, sources=frozenset([name]))

    def call(
        self,
        operator: Operator,
        node: onnx.NodeProto,
        schema: Any,
        inputs: Sequence[Value | None],
        scope: Mapping[str, Value],
    ) -> list[Value]:
        return operator.run(Call(self, self.b, node, schema, inputs, scope))

    def deliver(self, name: str, tensor: Tensor) -> str:
        array_name = unlike(name, self.taken)
        self.b.output(array_name, stored(self.b, array_of(self.b, tensor), tensor.element))
        return array_name


def _without(port: Port, used: set[str]) -> Port:
    """An input that the text does not read."""
    if port.sequence:
        return Port(
            port.name,
            tuple(a for a in port.arrays if a in used),
            port.element,
            None,
            True,
            items=tuple(_without(i, used) for i in port.items),
        )
    return Port(port.name, tuple(a for a in port.arrays if a in used), port.element, port.shape)


__all__ = ["Given", "Imported", "NotImported", "Port", "Reason", "import_model"]
