"""Recurrences: RNN, GRU and LSTM, a loop over time in which every step reads what the one before wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dojo_core.primitives.array import Array, BuildError
from dojo_core.primitives.builder import Builder, nest
from dojo_core.primitives.copies import fresh, write
from dojo_core.primitives.views import places, unsqueeze
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Access, Node, Number, Op, Operand, substituted

# Functions with the defaults of what they take: alpha, beta.
ACTIVATIONS: Mapping[str, tuple[float, ...]] = {
    "relu": (), "tanh": (), "sigmoid": (), "affine": (1.0, 0.0), "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,), "scaledtanh": (1.0, 1.0), "hardsigmoid": (0.2, 0.5), "elu": (1.0,),
    "softsign": (), "softplus": (),
}  # fmt: skip
T, N, H, K = (Affine.iterator(d) for d in range(4))

Activation = tuple[str, tuple[float, ...]]  # its name and its numbers
SIGMOID: Activation = ("sigmoid", ())
TANH: Activation = ("tanh", ())


@dataclass(frozen=True)
class Options:
    """What a recurrence may do besides.

    ``activations``: of the gates, of what is new, and of an LSTM's state as it leaves; an RNN has the first
    alone. ``clip``: what goes into them is brought between it and its negative. ``reset_behind``: a GRU's
    reset gate scales the product of the history, not the history. ``coupled``: an LSTM forgets what does not
    enter.
    """

    activations: tuple[Activation, ...] = (SIGMOID, TANH, TANH)
    clip: float | None = None
    reset_behind: bool = False
    coupled: bool = False


def recurrence(
    b: Builder,
    kind: Literal["RNN", "GRU", "LSTM"],
    gates: Array,
    weights: Array,
    start: Array,
    *,
    state: Array | None = None,
    bias: Array | None = None,
    peepholes: Array | None = None,
    order: str = "",
    options: Options = Options(),
) -> list[Array]:
    """What a recurrence is before each step and after the last, ``[T+1, N, H]``; of an LSTM its cells too.

    ``gates`` is what the input gives, ``[T, N, G*H]``, ``weights`` those of the history, ``[G*H, H]``, each
    with its gates in the ``order`` of their letters: of an LSTM i (enters), f (forgets), o (leaves) and c
    (new), of a GRU z (update) and r (reset) in either order, then n (new). ``start`` and ``state`` are the
    first of the history and of the cells, ``[N, H]``. ``bias``, ``[H]``, is what a GRU with ``reset_behind``
    adds to the product for what is new; ``peepholes`` are an LSTM's, ``[3*H]``, in the order i, o, f.

    Raises BuildError where the letters are others, or the shapes do not fit.
    """
    letters, run = _KINDS[kind]
    if sorted(order) != sorted(letters) or (kind == "GRU" and order[-1] != "n"):
        raise BuildError(f"The gates of {kind} are {', '.join(letters)}, not {order!r}.")
    steps, batch, width = gates.shape
    hidden = width // len(order)
    if weights.shape != (width, hidden) or any(
        first is not None and first.shape != (batch, hidden) for first in (start, state)
    ):
        raise BuildError(
            f"Gates of the shape {list(gates.shape)}, weights of {list(weights.shape)} and a start of "
            f"{list(start.shape)} do not go together: they are [T, N, {len(order)}*H], "
            f"[{len(order)}*H, H] and [N, H]."
        )
    layer = _Layer(
        b, steps, batch, hidden, gates.dtype, order, _plain(b, gates), _plain(b, weights), start, options,
        state, bias and _plain(b, bias), peepholes and _plain(b, peepholes),
    )  # fmt: skip
    histories = run(layer)
    b.add(*nest([steps], tuple(layer.nodes)))
    return histories


def _plain(b: Builder, array: Array) -> Array:
    """With one iterator for each axis at most, so that places can be named: copied where it has more."""
    if all(len(axis) <= 1 for axis in array.axes):
        return array
    whole = fresh(b, array.dtype, array.shape)
    write(b, whole, "", array)
    return whole


def _cell(array: Array, *at: Affine) -> Operand:
    """The element of an array at these places, one for each axis."""
    images = {n: place for k, place in enumerate(at) for n in array.numbers(k)}
    return substituted(array.operand, images)


@dataclass
class _Layer:
    """A recurrence and its step in time, over a batch [N] and its hidden places [H]."""

    b: Builder
    steps: int
    batch: int
    hidden: int
    dtype: str
    order: str
    gates: Array
    weights: Array
    start: Array
    options: Options
    state: Array | None
    bias: Array | None
    peepholes: Array | None
    nodes: list[Node] = field(default_factory=list)  # of the step
    ops: list[Node] = field(default_factory=list)  # of the nest over [N, H] that is open

    def op(self, function: str, *operands: Operand | float) -> Operand:
        """A function of what stands at [n, h], stored there."""
        target = fresh(self.b, self.dtype, (self.batch, self.hidden))
        given = tuple(Number(o) if isinstance(o, (int, float)) else o for o in operands)
        return self.put(_cell(target, N, H), function, *given)

    def put(self, target: Operand, function: str, *operands: Operand) -> Operand:
        assert isinstance(target, Access)
        self.ops.append(Op(target, "", function, operands))
        return target

    def close(self) -> None:
        """End the nest: what follows sees all of it."""
        self.nodes.extend(nest([self.batch, self.hidden], tuple(self.ops)))
        self.ops = []

    def history(self, first: Array) -> Array:
        """[T+1, N, H], of which the first is given."""
        whole = fresh(self.b, self.dtype, (self.steps + 1, self.batch, self.hidden))
        write(self.b, places(self.b, whole, 0, 0, 1), "", unsqueeze(self.b, first, [0]))
        return whole

    def at(self, letter: str) -> Affine:
        """Where a gate's place h stands among all of them."""
        return H + self.order.index(letter) * self.hidden

    def given(self, letter: str) -> Operand:
        """What the input gives to a gate."""
        return _cell(self.gates, T, N, self.at(letter))

    def product(self, rows: Operand, first: str, count: int, last: Operand | None = None) -> Array:
        """Rows at [n, k] times the weights at [g, k] over k, as one matrix for ``count`` gates from ``first``
        on, which begin with what the input gives, and one more that begins with ``last``: [N, …*H]."""
        skipped, width = self.order.index(first) * self.hidden, count * self.hidden
        whole = width if last is None else width + self.hidden
        total = fresh(self.b, self.dtype, (self.batch, whole))
        target = _cell(total, N, H)
        assert isinstance(target, Access)
        begin = Op(target, "", "", (_cell(self.gates, T, N, H + skipped),))
        self.nodes.extend(nest([self.batch, width], (begin,)))
        if last is not None:
            self.put(_cell(total, N, H + width), "", last)
            self.close()
        term = Op(target, "+", "*", (rows, _cell(self.weights, H + skipped, K)))
        self.nodes.extend(nest([self.batch, whole, self.hidden], (term,)))
        return total

    def clipped(self, x: Operand) -> Operand:
        limit = self.options.clip
        return x if limit is None else self.op("min", self.op("max", x, -limit), limit)

    def activated(self, number: int, x: Operand) -> Operand:
        name, numbers = self.options.activations[number]
        op, x = self.op, self.clipped(x) if number < 2 else x
        match name:
            case "relu":
                return op("max", x, 0)
            case "tanh" | "sigmoid":
                return op(name, x)
            case "affine":
                return op("+", op("*", x, numbers[0]), numbers[1])
            case "leakyrelu":
                return op("select", op("max", x, 0), x, op("*", x, numbers[0]))
            case "thresholdedrelu":
                return op("select", op("max", op("-", x, numbers[0]), 0), x, 0)
            case "scaledtanh":
                return op("*", op("tanh", op("*", x, numbers[1])), numbers[0])
            case "hardsigmoid":
                return op("max", op("min", op("+", op("*", x, numbers[0]), numbers[1]), 1), 0)
            case "elu":
                below = op("*", op("-", op("exp", op("min", x, 0)), 1), numbers[0])
                return op("+", op("max", x, 0), below)
            case "softsign":
                return op("/", x, op("+", op("abs", x), 1))
            case _:  # softplus
                return op("log", op("+", op("exp", x), 1))


def _rnn(layer: _Layer) -> list[Array]:
    hidden = layer.history(layer.start)
    total = layer.product(_cell(hidden, T, N, K), "n", 1)
    layer.put(_cell(hidden, T + 1, N, H), "", layer.activated(0, _cell(total, N, H)))
    layer.close()
    return [hidden]


def _gru(layer: _Layer) -> list[Array]:
    hidden, width = layer.history(layer.start), layer.hidden
    row, here = _cell(hidden, T, N, K), _cell(hidden, T, N, H)
    bias: Operand | None = None
    if layer.options.reset_behind:
        bias = _cell(layer.bias, H) if layer.bias is not None else Number(0)
    total = layer.product(row, layer.order[0], 2, bias)
    gates = {letter: layer.activated(0, _cell(total, N, layer.at(letter))) for letter in "zr"}
    if bias is not None:
        scaled = layer.op("*", gates["r"], _cell(total, N, H + 2 * width))
        value = layer.op("+", scaled, layer.given("n"))
    else:
        scaled = layer.op("*", gates["r"], here)
        layer.close()
        inner = layer.product(substituted(scaled, {2: K}), "n", 1)
        value = _cell(inner, N, H)
    new, update = layer.activated(1, value), gates["z"]
    kept = layer.op("*", update, here)
    layer.put(_cell(hidden, T + 1, N, H), "+", layer.op("*", layer.op("-", 1, update), new), kept)
    layer.close()
    return [hidden]


def _lstm(layer: _Layer) -> list[Array]:
    assert layer.state is not None
    hidden, cells = layer.history(layer.start), layer.history(layer.state)
    old = _cell(cells, T, N, H)
    total = layer.product(_cell(hidden, T, N, K), layer.order[0], 4)

    def gate(letter: str, state: Operand) -> Operand:
        value = _cell(total, N, layer.at(letter))
        if layer.peepholes is not None:
            hole = _cell(layer.peepholes, H + "iof".index(letter) * layer.hidden)
            value = layer.op("+", value, layer.op("*", hole, state))
        return layer.activated(0, value)

    enter = gate("i", old)
    forget = layer.op("-", 1, enter) if layer.options.coupled else gate("f", old)
    new = layer.activated(1, _cell(total, N, layer.at("c")))
    state = layer.op("+", layer.op("*", forget, old), layer.op("*", enter, new))
    layer.put(_cell(cells, T + 1, N, H), "", state)
    leave = gate("o", state)
    layer.put(_cell(hidden, T + 1, N, H), "*", leave, layer.activated(2, state))
    layer.close()
    return [hidden, cells]


_KINDS = {"RNN": ("n", _rnn), "GRU": ("zrn", _gru), "LSTM": ("ifoc", _lstm)}
