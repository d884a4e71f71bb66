"""How tensors lie in memory. Kernels have row-major arrays; a tensor whose axes lie in another order is one
whose axes are told in that order, so that nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dojo_core.graph import Kind, Node, Tensor
from dojo_core.primitives import Array, Builder, transpose

Order = tuple[int, ...]


def order_of(value: Any) -> Order:
    """The axes of a (fake) tensor from the farthest apart to the nearest; as they are, where its elements do
    not lie densely in that order."""
    plain = tuple(range(value.dim()))
    if value.is_contiguous():
        return plain
    order = tuple(sorted(plain, key=lambda axis: -value.stride(axis)))
    return order if value.permute(order).is_contiguous() else plain


def inverse(order: Order) -> Order:
    """The order that undoes one."""
    return tuple(order.index(axis) for axis in range(len(order)))


def ordered(tensor: Tensor, name: str, order: Order) -> Tensor:
    """A tensor with its axes in another order, under another name."""
    return Tensor(name, tensor.dtype, tuple(tensor.shape[axis] for axis in order), tensor.domain)


def reordering(source: Tensor, target: Tensor, order: Order) -> Node:
    """The node that gives ``target``, which is ``source`` with its axes in an order."""

    def emit(b: Builder, arrays: Sequence[Array]) -> Sequence[Array]:
        return [transpose(b, arrays[0], order)]

    made = Tensor(target.name, target.dtype, target.shape)
    return Node(f"{target.name}.order", "permute", Kind.VIEW, (source.name,), (made,), emit)
