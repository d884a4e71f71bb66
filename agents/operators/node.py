"""A case of the list as an ONNX model of one node, and what the importer makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agents.operators.listed import Case, Input
from dojo_core.extras import need
from dojo_core.from_onnx.importer import Imported, NotImported, import_model
from dojo_core.from_onnx.values import ELEMENTS, Refusal
from dojo_core.measure.pool import draw, references
from dojo_core.program.tree import Domain, Program

if TYPE_CHECKING:
    import onnx

OPSET = 23  # what ONNX Runtime of today has whole; what it does not hold is of the newest
IR = 11
SEED = 33
MOST_ELEMENTS = (
    64 << 20
)  # of all arrays of a text: what it means is computed in float64, each beside the others


@dataclass(frozen=True)
class Made:
    """A case as a program: the start of its game. ``model`` says the same in ONNX; ``arrays`` are the
    program's names of the model's inputs and outputs that it has."""

    case: Case
    model: bytes
    program: Program
    arrays: Mapping[str, str]
    costly: tuple[str, ...]

    def drawn(self) -> dict[str, NDArray[np.generic]]:
        """Inputs by the model's names, as they are stored."""
        rng = np.random.default_rng(SEED)
        return {each.name: draw(each.dtype, each.shape, rng, _domain(each)) for each in self.case.data}

    def expected(self, drawn: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.float64]]:
        """What the program means for these inputs, by the model's names."""
        buffers = {self.program.buffer_of[a].name: n for n, a in self.arrays.items()}
        given = {buffer: drawn[name] for buffer, name in buffers.items() if name in drawn}
        return {buffers[buffer]: values for buffer, values in references(self.program, given).items()}


def made(case: Case) -> Made:
    """The case as a program, checked by the standard's own rules first.

    Raises Refusal or NotImported with the reason where it is none, NotInstalled without the package onnx.
    """
    need("onnx", "dojo library --onnx")
    model = model_of(case)
    imported = import_model(model, name=case.operator)
    _type_outputs(model, imported)
    arrays = {
        port.name: port.arrays[0] for port in (*imported.inputs, *imported.outputs) if len(port.arrays) == 1
    }
    missing = [name for name in case.outputs if name not in arrays]
    if missing:
        raise Refusal("Its result is known when a model is imported: nothing is left to compute.", "")
    if imported.weights:
        raise Refusal(
            "It needs values of its own beside its inputs, which a library's function does not take.", ""
        )
    program = _promised(imported.program, case, arrays)
    elements = sum(math.prod(d.size for d in buffer.dims) for buffer in program.buffers)
    if elements > MOST_ELEMENTS:
        through = f" ({', '.join(imported.costly)})" if imported.costly else ""
        raise Refusal(
            f"Its text goes through {elements / 1e6:,.0f} million elements{through}, "
            f"and more than {MOST_ELEMENTS / 1e6:.0f} million are not taken.", "",
        )  # fmt: skip
    return Made(case, model.SerializeToString(), program, arrays, imported.costly)


def model_of(case: Case) -> onnx.ModelProto:
    """A model of one node. Raises Refusal where the standard does not know it or its attributes."""
    import onnx.defs
    from onnx import helper

    newest = int(onnx.defs.onnx_opset_version())
    opsets = [opset for opset in dict.fromkeys((min(OPSET, newest), newest)) if _known(case.operator, opset)]
    if not opsets:
        raise Refusal(
            f"The package onnx that is installed knows no {case.operator}.", "Upgrade it: pip install -U onnx"
        )
    names = [each.name if each is not None else "" for each in case.inputs]
    node = helper.make_node(case.operator, names, list(case.outputs), **case.attributes)
    inputs = [helper.make_tensor_value_info(i.name, _code(i.dtype), i.shape) for i in case.data]
    outputs = [onnx.ValueInfoProto(name=name) for name in case.outputs]
    known = [_constant(i) for i in case.inputs if i is not None and i.known]
    graph = helper.make_graph([node], case.operator, inputs, outputs, known)
    faults = {opset: _fault(node, opset) for opset in opsets}
    opset = next((opset for opset, fault in faults.items() if not fault), None)
    if opset is None:
        raise Refusal(f"The list contradicts the standard: {faults[opsets[-1]]}", "")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR)


def _known(operator: str, opset: int) -> bool:
    import onnx.defs

    try:
        return bool(onnx.defs.get_schema(operator, opset, ""))
    except onnx.defs.SchemaError:
        return False


def _fault(node: onnx.NodeProto, opset: int) -> str:
    """What the standard's checker says against a node, empty where nothing."""
    from onnx import checker

    context = checker.C.CheckerContext()
    context.ir_version = IR
    context.opset_imports = {"": opset}
    try:
        checker.check_node(node, context)
    except checker.ValidationError as fault:
        return " ".join(str(fault).split())[:200]
    return ""


def _constant(each: Input) -> onnx.TensorProto:
    from onnx import helper, numpy_helper

    return numpy_helper.from_array(
        np.asarray(each.values, helper.tensor_dtype_to_np_dtype(_code(each.dtype))), each.name
    )


def _code(dtype: str) -> int:
    code = next((code for code, name in ELEMENTS.items() if name == dtype), None)
    if code is None:
        raise Refusal(f"The list says {dtype}, which is no dtype of the Dojo.", "")
    return code


def _type_outputs(model: onnx.ModelProto, imported: Imported) -> None:
    """What the importer found of the outputs, for runtimes, which check it by their own inference."""
    from onnx import helper

    ports = {port.name: port for port in imported.outputs}
    for output in model.graph.output:
        port = ports[output.name]
        if port.arrays and port.shape is not None:
            output.CopyFrom(helper.make_tensor_value_info(output.name, _code(port.element), port.shape))


def _domain(each: Input) -> Domain | None:
    return None if each.domain is None else Domain(each.name, *each.domain)


def _promised(program: Program, case: Case, arrays: Mapping[str, str]) -> Program:
    """With the domains that the list has in place of the importer's."""
    ours = {arrays[i.name]: i.domain for i in case.data if i.domain is not None and i.name in arrays}
    kept = [d for d in program.domains if d.array not in ours]
    ordered = {d.array: d for d in (*kept, *(Domain(name, *bounds) for name, bounds in ours.items()))}
    return replace(program, domains=tuple(ordered[a] for a in program.inputs if a in ordered))


__all__ = ["Made", "NotImported", "Refusal", "made", "model_of"]
