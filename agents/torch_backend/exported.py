"""Programs of ``torch.export`` as graphs: ``dojo import model.pt2`` (docs/pytorch.md)."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import torch
import torch.export
import torch.fx
from torch.export.graph_signature import InputKind, OutputKind

from agents.torch_backend.decompositions import decompositions
from agents.torch_backend.nodes import Trials, operator_name, tensor_name, tensor_of
from agents.torch_backend.reading import read
from agents.torch_backend.refusal import Refusal
from agents.torch_backend.simplifying import simplify
from agents.torch_backend.splitting import refusals
from agents.torch_backend.tensors import stored
from dojo_core.from_onnx.ports import NotImported, Reason
from dojo_core.graph import Graph, GraphError, build

_WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def graph_of_file(path: Path) -> Graph:
    """The graph of what ``torch.export.save`` wrote. Raises NotImported with all reasons, OSError."""
    path.stat()  # raises OSError with the file's name, where PyTorch speaks of archives
    told = logging.getLogger("torch.export")
    told.disabled = True  # it logs the tracebacks of what it raises
    try:
        with warnings.catch_warnings(action="ignore"):
            program = torch.export.load(path)
    except Exception as fault:  # what a damaged archive makes PyTorch raise is of many kinds
        why = f"It is no exported program that this PyTorch ({torch.__version__}) reads ({fault})."
        raise NotImported([Reason(path.name, "file", why, "Save it anew with torch.export.save.")]) from fault
    finally:
        told.disabled = False
    return graph_of(program, path.stem)


def graph_of(program: torch.export.ExportedProgram, name: str) -> Graph:
    """An exported program as a graph: parameters and buffers are constants, results have the names of the
    nodes that give them. Raises NotImported with all reasons."""
    with warnings.catch_warnings(action="ignore"):  # of PyTorch about itself
        program = program.run_decompositions(decompositions())
    simplify(program.graph_module)
    graph = program.graph_module.graph
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten._assert_tensor_metadata.default):
        graph.erase_node(node)  # what it checks the exporter has seen: shapes and dtypes are fixed
    trials: Trials = {}
    reasons = _open_inputs(program) or [_reason(node, why) for node, why in refusals(graph, trials).items()]
    reasons += [
        Reason("output", spec.target or "", "It is written to when the model runs.", "Export it in eval().")
        for spec in program.graph_signature.output_specs
        if spec.kind is not OutputKind.USER_OUTPUT
    ]
    if reasons:
        raise NotImported(reasons)
    given = read(graph, trials)
    weights = _weights(program)
    try:
        return build(
            name,
            [tensor for tensor in given.inputs.values() if tensor.name not in weights],
            given.nodes,
            list(
                dict.fromkeys(tensor_name(node) for node in given.results if isinstance(node, torch.fx.Node))
            ),
            {key: stored(tensor) for key, tensor in weights.items()},
            [tensor_of(key, tensor) for key, tensor in weights.items()],
        )
    except GraphError as fault:
        raise NotImported([Reason(name, "graph", str(fault), "")]) from fault


def _weights(program: torch.export.ExportedProgram) -> dict[str, torch.Tensor]:
    """Parameters, buffers and other constants that are read, by the names that the graph has for them."""
    tensors = {**program.constants, **program.state_dict}
    used = {node.name for node in program.graph_module.graph.nodes if node.op == "placeholder" and node.users}
    return {
        spec.arg.name: tensors[spec.target]
        for spec in program.graph_signature.input_specs
        if spec.kind in _WEIGHTS and spec.arg.name in used
    }


def _open_inputs(program: torch.export.ExportedProgram) -> list[Reason]:
    """Inputs whose sizes are left open."""
    reasons: list[Reason] = []
    for node in program.graph_module.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor):
            sizes = [str(size) for size in value.shape]
            if not all(isinstance(size, int) for size in value.shape):
                why = f"Its shape is [{', '.join(sizes)}], and a kernel's sizes are fixed."
                reasons.append(Reason("input", node.name, why, "Export it without dynamic_shapes."))
    return reasons


def _reason(node: torch.fx.Node, refusal: Refusal) -> Reason:
    """With the module that the operation comes from."""
    stack = list(node.meta.get("nn_module_stack", {}).values())
    where = f"{node.name} in {stack[-1][0]}" if stack and stack[-1][0] else node.name
    return Reason(operator_name(node.target), where, _sentence(refusal.reason), _sentence(refusal.remedy))


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}." if words else ""
