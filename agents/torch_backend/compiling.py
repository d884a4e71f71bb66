"""What TorchDynamo traced, by AOTAutograd to ATen operators without side effects, and on to parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.fx
from torch._functorch._aot_autograd.schemas import OutputType, ViewAndMutationMeta
from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func
from torch._guards import TracingContext, tracing

from agents.torch_backend.decompositions import decompositions
from agents.torch_backend.part import Part, Port
from agents.torch_backend.recurrent import by_directions
from agents.torch_backend.settings import Settings
from agents.torch_backend.splitting import split

_OWN = (OutputType.non_alias, OutputType.unsafe_view_alias)  # memory that no argument has


def compiled(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    settings: Settings,
    fixed: Mapping[int, torch.Tensor],
) -> tuple[Callable[..., Any], Part | None]:
    """For these shapes, ``fixed`` being inputs that are constants: as a function, and as the part that is all
    of it, where a call does nothing else. Raises NothingTaken."""
    whole: Part | None = None

    def forward(graph: torch.fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        # The placeholders are the traced module's, but those that are written to are no constants.
        nonlocal whole
        about = TracingContext.get().fw_metadata
        written = set(about.mutated_inp_runtime_indices) if about else set()
        alike = len(examples) == len(inputs)
        made = split(graph, settings, {k: t for k, t in fixed.items() if alike and k not in written})
        if isinstance(made, Part) and alike and about and _is_pure(about, made, module):
            whole = made
        return make_boxed_func(made)

    with _context():
        function = aot_module_simplified(
            by_directions(module), inputs, fw_compiler=forward, decompositions=decompositions()
        )
    return function, whole


def _context() -> AbstractContextManager[Any]:
    """Where AOTAutograd says what it found: TorchDynamo's own, while that traces."""
    return nullcontext() if TracingContext.try_get() else tracing(TracingContext(None))


def _is_pure(about: ViewAndMutationMeta, part: Part, module: torch.fx.GraphModule) -> bool:
    """Is a call the model's run and nothing else: nothing is written to, each result a new tensor?"""
    (output,) = [node for node in module.graph.nodes if node.op == "output"]
    results = part.interface.results
    return (
        not about.mutated_inp_runtime_indices
        and not about.tokens
        and about.grad_enabled_mutation is None
        and not about.num_intermediate_bases
        and all(each.output_type in _OWN and not each.requires_grad for each in about.output_info)
        and len(output.args[0]) == len(about.output_info) == len(results)
        and all(isinstance(port, Port) for port in results)
    )
