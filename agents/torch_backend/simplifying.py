"""What is taken out of a graph of ATen operators before it is translated."""

from __future__ import annotations

import torch
import torch.fx


def simplify(module: torch.fx.GraphModule) -> None:
    """Leave out of concatenations what has no elements, such as a cache that begins empty, and then what
    nothing reads: kernels write no array without elements."""
    changed = False
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.cat.default):
        operands, *others = node.args
        left = [each for each in operands if each.meta["val"].numel()]
        dtypes = {each.meta["val"].dtype for each in (node, *left)}  # the empty ones too say the result's
        if left and len(left) < len(operands) and len(dtypes) == 1:
            node.args = (left, *others)
            changed = True
    if changed:
        module.graph.eliminate_dead_code()
        module.recompile()
