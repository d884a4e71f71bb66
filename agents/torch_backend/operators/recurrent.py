"""Recurrences over time: the Dojo's own operators, one for each direction of a layer."""

from __future__ import annotations

from collections.abc import Sequence

from agents.torch_backend.call import Call, aten
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array
from dojo_core.primitives.recurrences import Options
from dojo_core.primitives.views import places


def _later(c: Call, history: Array) -> Array:
    """What it is after each step, in the dtype of the result."""
    return c.converted(places(c.b, history, 0, 1, c.shape[0]))


@aten("dojo.lstm.default", kind=Kind.OTHER)
def lstm(c: Call, gates: Array, weight: Array, hidden: Array, cell: Array) -> Sequence[Array]:
    history, cells = p.recurrence(c.b, "LSTM", c.widened(gates), weight, hidden, state=cell, order="ifco")
    last = p.squeeze(c.b, places(c.b, cells, 0, c.shape[0], 1), [0])
    return _later(c, history), c.converted(last)


@aten("dojo.gru.default", kind=Kind.OTHER)
def gru(c: Call, gates: Array, weight: Array, bias: Array, hidden: Array) -> Array:
    options = Options(reset_behind=True)
    (history,) = p.recurrence(
        c.b, "GRU", c.widened(gates), weight, hidden, bias=bias, order="rzn", options=options
    )
    return _later(c, history)


@aten("dojo.rnn.default", kind=Kind.OTHER)
def rnn(c: Call, gates: Array, weight: Array, hidden: Array, function: str) -> Array:
    options = Options(((function, ()),))
    (history,) = p.recurrence(c.b, "RNN", c.widened(gates), weight, hidden, order="n", options=options)
    return _later(c, history)
