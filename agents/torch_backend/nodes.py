"""From an operation of an ATen graph to a node of the Dojo's, or why it is none."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from agents.torch_backend import operators as _families  # noqa: F401  (fills the table)
from agents.torch_backend.call import OPERATORS, Call, Operator, wide
from agents.torch_backend.dtypes import word_of
from agents.torch_backend.refusal import Refusal
from dojo_core.graph import Kind, Node, Tensor
from dojo_core.primitives import Array, Builder, BuildError

log = logging.getLogger(__name__)

# Arguments that say where and how a result is stored.
_STORAGE = {"device", "layout", "pin_memory", "non_blocking", "memory_format", "generator"}


@dataclass(frozen=True)
class Translated:
    """A node, and which values its inputs have where they say places: the least and the largest."""

    node: Node
    promises: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class _Place:
    """An argument that is a tensor: the number of the node's input."""

    number: int


def operator_name(target: Any) -> str:
    """``add.Tensor``; of what is no ATen operator, whatever it is called."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target).removeprefix("aten.")
    return getattr(target, "__name__", str(target))


def is_item(node: torch.fx.Node) -> bool:
    """Is it one of the results of another node?"""
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem"


def tensor_name(node: torch.fx.Node) -> str:
    """The name of the tensor that a node of the graph stands for."""
    if is_item(node):
        maker, number = node.args
        assert isinstance(maker, torch.fx.Node)
        return f"{maker.name}.{number}"
    return node.name


def tensor_of(name: str, value: Any) -> Tensor:
    """What is known of a (fake) tensor. Raises Refusal where the Dojo has no such."""
    if not isinstance(value, torch.Tensor):
        raise Refusal(f"it takes or gives a {type(value).__name__}, not a tensor")
    if value.device.type not in ("cpu", "meta"):
        raise Refusal(f"its tensors are on {value.device.type}", "move the model to the CPU")
    if value.layout != torch.strided or value.is_quantized:
        raise Refusal(f"its tensors are {str(value.layout).removeprefix('torch.')}", "make them dense")
    return Tensor(name, word_of(value.dtype), static(value.shape))


def static(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes that are known. Raises Refusal where one is a symbol."""
    if any(not isinstance(size, int) for size in sizes):
        raise Refusal(f"its shape {list(sizes)} is not known before it runs")
    return tuple(sizes)


Promises = Mapping[int, tuple[int, int]]  # by the number of an input: its least and its largest value
Trials = dict[str, Promises | Refusal]
"""What came of nodes that were tried out, by all that it hangs on: layers that repeat are tried once."""


def translated(node: torch.fx.Node, trials: Trials) -> Translated:
    """A ``call_function`` node of ATen as the Dojo's. Raises Refusal with the reason where there is none.

    It is tried out: what cannot be written for these shapes and dtypes is refused here.
    """
    operator = OPERATORS.get(operator_name(node.target))
    if operator is None:
        raise Refusal("the Dojo has no such operator")
    inputs: dict[torch.fx.Node, int] = {}
    args = [_argument(each, inputs) for each in node.args]
    kwargs = {key: _argument(each, inputs) for key, each in node.kwargs.items() if key not in _STORAGE}
    given = [tensor_of(tensor_name(each), each.meta["val"]) for each in inputs]
    results = _results(node)
    wanted = _wanted(node, results)
    common = _common(node, operator, results)
    row_major = all(_fills_its_memory(each.meta["val"]) for each in inputs)
    emission = _Emission(operator, tuple(args), kwargs, tuple(results), frozenset(wanted), common, row_major)
    kinds = [tensor.kind for tensor in (*results, *given)]
    key = repr((operator_name(node.target), args, kwargs, wanted, common, row_major, kinds))
    if key not in trials:
        trials[key] = _tried(emission, given)
    promises = trials[key]
    if isinstance(promises, Refusal):
        raise promises
    names = [tensor.name for tensor in given]
    return Translated(
        Node(
            node.name,
            operator_name(node.target).split(".")[-2],
            operator.kind,
            tuple(names),
            tuple(results[k] for k in wanted),
            emission,
        ),
        {names[number]: promise for number, promise in promises.items()},
    )


def _argument(value: Any, inputs: dict[torch.fx.Node, int]) -> Any:
    """An argument without PyTorch's types. Raises Refusal for what no translation takes."""
    if isinstance(value, torch.fx.Node):
        if not isinstance(value.meta.get("val"), torch.Tensor):
            raise Refusal("a size or a number of it is not known before it runs")
        return _Place(inputs.setdefault(value, len(inputs)))
    if isinstance(value, (list, tuple)):
        return [_argument(each, inputs) for each in value]
    if isinstance(value, torch.dtype):
        return word_of(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, complex):
        raise Refusal("texts have no complex numbers")
    if value is None or isinstance(value, (int, float, str)):
        return value
    raise Refusal(f"it takes {value!r}")


def _results(node: torch.fx.Node) -> list[Tensor]:
    value = node.meta.get("val")
    if isinstance(value, (list, tuple)):
        several = [tensor_of(f"{node.name}.{k}", each) for k, each in enumerate(value) if each is not None]
        if len(several) < len(value):
            raise Refusal("some of its results are nothing")
        return several
    return [tensor_of(node.name, value)]


def _wanted(node: torch.fx.Node, results: Sequence[Tensor]) -> list[int]:
    """Which results anything reads. Raises Refusal for one without elements."""
    if isinstance(node.meta["val"], (list, tuple)):
        wanted = sorted({int(user.args[1]) for user in node.users if is_item(user)})
    else:
        wanted = [0]
    for k in wanted:
        if not results[k].size:
            raise Refusal("its result has no elements")
    return wanted


def _common(node: torch.fx.Node, operator: Operator, results: Sequence[Tensor]) -> str:
    """The dtype that the operands are promoted to."""
    if operator.kind is not Kind.POINTWISE or results[0].dtype != "bool":
        return wide(results[0].dtype)
    values = [each.meta["val"] if isinstance(each, torch.fx.Node) else each for each in node.args]
    operands = [each for each in values if isinstance(each, (torch.Tensor, int, float))]
    computed, _ = elementwise_dtypes(
        *operands, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.ALWAYS_BOOL
    )
    return wide(word_of(computed))


def _fills_its_memory(value: torch.Tensor) -> bool:
    return value.is_contiguous() and value.untyped_storage().nbytes() == value.numel() * value.element_size()


@dataclass(frozen=True)
class _Emission:
    """Writes a node in primitives: what ``Node.emit`` is."""

    operator: Operator
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: tuple[Tensor, ...]
    wanted: frozenset[int]
    common: str
    row_major: bool

    def __call__(self, b: Builder, arrays: Sequence[Array]) -> Sequence[Array]:
        return self.written(b, arrays)[0]

    def written(
        self, b: Builder, arrays: Sequence[Array]
    ) -> tuple[list[Array], Mapping[str, tuple[int, int]]]:
        """The results that are wanted, and what was promised of inputs."""
        call = Call(
            b,
            tuple(tensor.shape for tensor in self.results),
            tuple(tensor.dtype for tensor in self.results),
            self.wanted,
            self.common,
            self.row_major,
        )
        args = [_filled(each, arrays) for each in self.args]
        kwargs = {key: _filled(each, arrays) for key, each in self.kwargs.items()}
        made = self.operator.translate(call, *args, **kwargs)
        several = [made] if isinstance(made, Array) else made
        chosen: list[Array] = []
        for k in sorted(self.wanted):
            array, tensor = several[k], self.results[k]
            if array is None or (array.dtype, array.shape) != (tensor.dtype, tensor.shape):
                raise BuildError(f"The translation gives {array} for {tensor.kind}.")
            chosen.append(array)
        return chosen, call.promises


def _filled(value: Any, arrays: Sequence[Array]) -> Any:
    """An argument with arrays in the places of tensors."""
    if isinstance(value, _Place):
        return arrays[value.number]
    return [_filled(each, arrays) for each in value] if isinstance(value, list) else value


def _tried(emission: _Emission, given: Sequence[Tensor]) -> Promises | Refusal:
    """Write it once; gives what is promised of the inputs."""
    b = Builder("trial")
    numbers = {f"x{k}": k for k in range(len(given))}
    arrays = [b.input(f"x{k}", each.dtype, each.shape) for k, each in enumerate(given)]
    try:
        _, promises = emission.written(b, arrays)
    except Refusal as refusal:
        return refusal
    except BuildError as error:
        return Refusal(str(error).rstrip("."))
    except Exception as fault:  # a translation's own: it leaves one operation to PyTorch, not the model
        log.debug("a translation failed", exc_info=True)
        return Refusal(f"the Dojo fails on it ({type(fault).__name__}: {fault})", "report it")
    return {numbers[name]: promise for name, promise in promises.items() if name in numbers}
