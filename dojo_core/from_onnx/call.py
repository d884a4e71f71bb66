"""One node as its operator sees it, and the table of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dojo_core.from_onnx.arrays import Make, wide
from dojo_core.from_onnx.values import (
    CODES,
    Asked,
    Nothing,
    Numbers,
    Refusal,
    Sequence_,
    Tensor,
    Value,
    known,
)
from dojo_core.primitives.array import Array

if TYPE_CHECKING:
    import onnx

    from dojo_core.from_onnx.walk import Walk
    from dojo_core.primitives.builder import Builder

Result = Array | Value | Sequence["Array | Value | None"]


@dataclass(frozen=True)
class Operator:
    """What an operator gives for a call. ``control``: it goes through graphs in its attributes, and leaves
    what there is to compute to the operators that these are made of."""

    run: Callable[[Call], list[Value]]
    control: bool = False


OPERATORS: dict[tuple[str, str], Operator] = {}  # by domain and name


def operator(
    *names: str, domain: str = "", control: bool = False
) -> Callable[[Callable[[Call], Result]], Callable[[Call], Result]]:
    """Register a function from a call to its results: arrays (of the element type that the standard says),
    tensors, sequences; None where an output is not given."""

    def register(function: Callable[[Call], Result]) -> Callable[[Call], Result]:
        def run(call: Call) -> list[Value]:
            return call.results(function(call))

        for name in names:
            OPERATORS[domain, name] = Operator(run, control)
        return function

    return register


class Call(Make):
    """A node, its inputs and its attributes."""

    def __init__(
        self,
        walk: Walk,
        b: Builder,
        node: onnx.NodeProto,
        schema: Any,
        inputs: Sequence[Value | None],
        scope: Mapping[str, Value],
    ) -> None:
        super().__init__(b, walk.costly)
        self.walk = walk
        self.node, self.schema, self.inputs, self.scope = node, schema, inputs, scope
        self.name = node.op_type
        self.since = schema.since_version
        self.attributes = {a.name: a for a in node.attribute}

    # ---------------------------------------------------------------- attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value, the schema's default, or ``default``."""
        from onnx.helper import get_attribute_value

        attribute = self.attributes.get(name)
        if attribute is None and name in self.schema.attributes:
            filled = self.schema.attributes[name].default_value
            attribute = filled if filled.type else None
        if attribute is None:
            return default
        value = get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value]
        return value

    def flag(self, name: str) -> bool:
        return bool(self.attribute(name, 0))

    def choice(self, name: str, values: Sequence[str]) -> str:
        value = self.attribute(name)
        if value not in values:
            raise Refusal(f"Its {name} is {value!r}, not one of {', '.join(values)}.", "Mend the model.")
        return str(value)

    # ---------------------------------------------------------------- inputs

    def has(self, k: int) -> bool:
        return k < len(self.inputs) and self.inputs[k] is not None

    def given(self, k: int) -> Value:
        value = self.inputs[k] if k < len(self.inputs) else None
        if value is None:
            raise Refusal(f"Its input {self._input_name(k)} is left out.", "Mend the model.")
        return value

    def tensor(self, k: int) -> Tensor:
        value = self.given(k)
        if isinstance(value, Nothing):
            raise Refusal(
                f"Its input {self._input_name(k)} is an optional without an element.", "Give it one."
            )
        if not isinstance(value, Tensor):
            raise Refusal(f"Its input {self._input_name(k)} is a sequence, not a tensor.", "Mend the model.")
        return value

    def sequence(self, k: int) -> Sequence_:
        value = self.given(k)
        if not isinstance(value, Sequence_):
            raise Refusal(f"Its input {self._input_name(k)} is no sequence.", "Mend the model.")
        return value

    def array(self, k: int) -> Array:
        """An input as an array, as it is stored."""
        return self.of(self.tensor(k))

    def computed(self, k: int) -> Array:
        """An input in the dtype that it is computed in: integers of few bits and narrow floats are converted;
        f16 and bf16 are read as they are."""
        array = self.array(k)
        return self.wide(array) if array.dtype not in ("f16", "bf16") else array

    def arrays(self, first: int = 0) -> list[Array]:
        return [self.array(k) for k in range(first, len(self.inputs)) if self.has(k)]

    def shape(self, k: int) -> tuple[int, ...]:
        return self.tensor(k).shape

    def element(self, k: int) -> str:
        return self.tensor(k).element

    def rank(self, k: int) -> int:
        return len(self.shape(k))

    def known(self, k: int) -> Numbers:
        """The value of an input that says a shape or a way of computing, never of data.

        Raises Asked where a graph input says it whose value was given, Refusal where nobody said it.
        """
        tensor = self.tensor(k)
        if tensor.values is not None:
            return tensor.values
        given = self.walk.given
        if tensor.sources and all(n in given and given[n].values is not None for n in tensor.sources):
            raise Asked(tensor.sources, f"{self.name}: {self._input_name(k)}")
        sources = ", ".join(sorted(tensor.sources - set(self.walk.specialised))) or "what is computed"
        raise Refusal(
            f"Its {self._input_name(k)} says a shape, or how to compute, and is not known: "
            f"it comes from {sources}.",
            "Give its value (--value NAME=1,2,3), or make it an initializer.",
        )

    def ints(self, k: int) -> list[int]:
        """``known`` as whole numbers."""
        return [int(v) for v in self.known(k).reshape(-1)]

    def integer(self, k: int) -> int:
        values = self.ints(k)
        if len(values) != 1:
            raise Refusal(f"Its {self._input_name(k)} has {len(values)} values, not one.", "Mend the model.")
        return values[0]

    def axis(self, name: str = "axis", rank: int | None = None, default: int | None = None) -> int:
        axis = self.attribute(name, default)
        return self.axis_of(axis, self.rank(0) if rank is None else rank)

    def axis_of(self, axis: int, rank: int) -> int:
        if not -rank <= axis < rank and not (rank == 0 and axis in (0, -1)):
            raise Refusal(
                f"Its axis {axis} is none of a tensor of {rank} dimensions.",
                f"Axes are {-rank} to {rank - 1}.",
            )
        return int(axis % rank) if rank else 0

    def _input_name(self, k: int) -> str:
        formal = self.schema.inputs
        return str(formal[min(k, len(formal) - 1)].name) if formal else f"input {k}"

    # ---------------------------------------------------------------- results

    def wants(self, k: int) -> bool:
        """Is an output given a name?"""
        return k < len(self.node.output) and bool(self.node.output[k])

    def results(self, made: Result) -> list[Value]:
        several = made if isinstance(made, (list, tuple)) else [made]
        values: list[Value] = []
        for k, each in enumerate(several):
            if each is None:
                values.append(Nothing())
            elif isinstance(each, Array):
                values.append(self.typed(each, self._output_element(k, each)))
            else:
                values.append(each)
        return values

    def typed(self, array: Array, element: str) -> Tensor:
        """An array as a tensor of an element type; f16 and bf16 may be held in f32."""
        if array.empty:
            import numpy as np

            return known(np.zeros(array.shape), element)
        if array.dtype != element and not (
            array.dtype == "f32" and wide(element) == "f32" and element in ("f16", "bf16")
        ):
            array = self.convert(array, element)
        return Tensor(element, array.shape, array=array, sources=self.sources)

    @property
    def sources(self) -> frozenset[str]:
        found: set[str] = set()
        for value in self.inputs:
            found |= _sources(value)
        return frozenset(found)

    def _output_element(self, k: int, array: Array) -> str:
        """The element type of an output by the schema: that of the inputs with the same type variable."""
        formal = self.schema.outputs
        if not formal:
            return array.dtype
        variable = formal[min(k, len(formal) - 1)].type_str
        if variable.startswith("tensor("):
            return _NAMED.get(variable[7:-1], array.dtype)
        for place, value in enumerate(self.inputs):
            name = self.schema.inputs[min(place, len(self.schema.inputs) - 1)].type_str
            if name == variable and isinstance(value, Tensor):
                return value.element
        return array.dtype

    def constant(self, values: Any, element: str = "i64") -> Tensor:
        return known(values, element)


_NAMED = {
    "float": "f32", "double": "f64", "int64": "i64", "int32": "i32", "int8": "i8", "int16": "i16",
    "uint8": "u8", "bool": "bool", "float16": "f16", "bfloat16": "bf16", "uint16": "u16",
    "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def _sources(value: Value | None) -> frozenset[str]:
    if isinstance(value, Tensor):
        return value.sources
    if isinstance(value, Sequence_):
        return frozenset().union(*map(_sources, value.items))
    return frozenset()


__all__ = ["CODES", "OPERATORS", "Call", "operator"]
