"""Recurrent layers, ``nn.LSTM``, ``nn.GRU`` and ``nn.RNN``: products of all steps and loops over time.

PyTorch would break them down step by step, into as many nodes as a sequence is long. Here each direction of
each layer is one operator of the Dojo's own, ``dojo::lstm``, ``dojo::gru`` or ``dojo::rnn``, which PyTorch
can run too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
import torch.nn.functional as F
from torch import Tensor

# ---------------------------------------------------------------------------- one direction of one layer


@torch.library.custom_op("dojo::lstm", mutates_args=())
def lstm(gates: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The history ``[T, N, H]`` and the last cells ``[N, H]``. ``gates``, ``[T, N, 4*H]``, are what the input
    and the biases give to them in the order i, f, g, o, as ``weight``, ``[4*H, H]``, has them too.
    """
    history = []
    for given in gates:
        enter, forget, new, leave = (given + F.linear(hidden, weight)).chunk(4, 1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
        hidden = leave.sigmoid() * cell.tanh()
        history.append(hidden)
    return torch.stack(history), cell


@lstm.register_fake
def _(gates: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    return gates.new_empty(*gates.shape[:2], weight.shape[1]), cell.new_empty(cell.shape)


@torch.library.custom_op("dojo::gru", mutates_args=())
def gru(gates: Tensor, weight: Tensor, bias: Tensor, hidden: Tensor) -> Tensor:
    """The history ``[T, N, H]``. ``gates``, ``[T, N, 3*H]``, and ``weight``, ``[3*H, H]``, are in the order
    r, z, n; ``bias``, ``[H]``, is of the history's product for n, which r scales."""
    history = []
    for given in gates:
        reset, update, new = given.chunk(3, 1)
        of_reset, of_update, of_new = F.linear(hidden, weight).chunk(3, 1)
        new = (new + (reset + of_reset).sigmoid() * (of_new + bias)).tanh()
        update = (update + of_update).sigmoid()
        hidden = (1 - update) * new + update * hidden
        history.append(hidden)
    return torch.stack(history)


@gru.register_fake
def _(gates: Tensor, weight: Tensor, bias: Tensor, hidden: Tensor) -> Tensor:
    return gates.new_empty(*gates.shape[:2], weight.shape[1])


@torch.library.custom_op("dojo::rnn", mutates_args=())
def rnn(gates: Tensor, weight: Tensor, hidden: Tensor, function: str) -> Tensor:
    """The history ``[T, N, H]``. ``gates``: ``[T, N, H]``, ``weight``: ``[H, H]``; of tanh or relu."""
    history = []
    for given in gates:
        hidden = given + F.linear(hidden, weight)
        hidden = hidden.tanh() if function == "tanh" else hidden.relu()
        history.append(hidden)
    return torch.stack(history)


@rnn.register_fake
def _(gates: Tensor, weight: Tensor, hidden: Tensor, function: str) -> Tensor:
    return gates.new_empty(*gates.shape[:2], weight.shape[1])


# ---------------------------------------------------------------------------- layers in both directions

State = tuple[Tensor, ...]
Direction = Callable[[Tensor, Sequence[Tensor], State, bool], tuple[Tensor, State]]
"""Of the input ``[T, N, I]``, the weights, the first state and whether it goes backwards: the history in the
order of its steps, and the last state."""


def _gates(x: Tensor, weight: Tensor, bias: Tensor | None, backwards: bool) -> Tensor:
    """What the input gives to the gates, ``[T, N, G*H]``, in the order of the steps. The product has its rows
    in the input's order, as memory has them; a step finds its own."""
    gates = F.linear(x, weight, bias)
    return gates.flip(0) if backwards else gates


def _lstm(x: Tensor, weights: Sequence[Tensor], state: State, backwards: bool) -> tuple[Tensor, State]:
    of_input, of_history, *biases = weights
    bias = biases[0] + biases[1] if biases else None
    history, cell = torch.ops.dojo.lstm(_gates(x, of_input, bias, backwards), of_history, *state)
    return history, (history[-1], cell)


def _gru(x: Tensor, weights: Sequence[Tensor], state: State, backwards: bool) -> tuple[Tensor, State]:
    of_input, of_history, *biases = weights
    size = of_history.shape[1]
    own = biases[1] if biases else of_history.new_zeros(3 * size)
    bias = biases[0] + F.pad(own[: 2 * size], (0, size)) if biases else None
    gates = _gates(x, of_input, bias, backwards)
    history = torch.ops.dojo.gru(gates, of_history, own[2 * size :], *state)
    return history, (history[-1],)


def _rnn(function: str) -> Direction:
    def run(x: Tensor, weights: Sequence[Tensor], state: State, backwards: bool) -> tuple[Tensor, State]:
        of_input, of_history, *biases = weights
        bias = biases[0] + biases[1] if biases else None
        history = torch.ops.dojo.rnn(_gates(x, of_input, bias, backwards), of_history, *state, function)
        return history, (history[-1],)

    return run


def _whole(direction: Direction, original: Callable[..., Any]) -> Callable[..., Any]:
    """The function of PyTorch's that ``nn.LSTM`` and its like call, as directions of layers."""

    def run(x: Tensor, state: Any, weights: Any, *rest: Any) -> Any:
        if not isinstance(rest[0], bool):  # a packed sequence: its sizes stand before the state
            return original(x, state, weights, *rest)
        states: tuple[Tensor, ...] = (state,) if isinstance(state, Tensor) else tuple(state)
        has_biases, layers, dropout, training, bidirectional, batch_first = rest
        per, ways = 4 if has_biases else 2, 2 if bidirectional else 1
        if (dropout and training) or len(weights) != per * ways * layers:  # an LSTM with projections has more
            return original(x, state, weights, *rest)
        x = x.transpose(0, 1) if batch_first else x
        ends: list[State] = []
        for layer in range(layers):
            histories = []
            for way in range(ways):
                number = layer * ways + way
                first = tuple(each[number] for each in states)
                own = weights[number * per : (number + 1) * per]
                history, end = direction(x, own, first, way == 1)
                histories.append(history.flip(0) if way else history)
                ends.append(end)
            x = torch.cat(histories, 2) if bidirectional else histories[0]
        last = [torch.stack(each) if len(ends) > 1 else each[0][None] for each in zip(*ends, strict=True)]
        return x.transpose(0, 1) if batch_first else x, *last

    return run


_NAMES = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _rnn("tanh"), "rnn_relu": _rnn("relu")}
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    getattr(torch, name): _whole(direction, getattr(torch, name)) for name, direction in _NAMES.items()
}
"""For what TorchDynamo traces."""
LAYERS: dict[Any, Callable[..., Any]] = {
    getattr(torch.ops.aten, name).input: function
    for name, function in zip(_NAMES, FUNCTIONS.values(), strict=True)
}
"""For what ``torch.export`` does."""


def by_directions(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A traced graph whose recurrent layers are directions; itself where it has none."""
    if not any(node.op == "call_function" and node.target in FUNCTIONS for node in module.graph.nodes):
        return module
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    for node in graph.nodes:
        if node.op == "call_function":
            node.target = FUNCTIONS.get(node.target, node.target)
    made = torch.fx.GraphModule(module, graph)
    made.meta = module.meta
    return made
