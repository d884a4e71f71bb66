"""RNN, GRU and LSTM: a loop over time in which every step reads what the one before wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import Refusal
from dojo_core.primitives.array import Array
from dojo_core.primitives.builder import nest
from dojo_core.primitives.copies import fresh, write
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Access, Node, Number, Op, Operand, substituted

# Functions with the defaults of what they take: alpha, beta.
ACTIVATIONS = {
    "relu": (), "tanh": (), "sigmoid": (), "affine": (1.0, 0.0), "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,), "scaledtanh": (1.0, 1.0), "hardsigmoid": (0.2, 0.5), "elu": (1.0,),
    "softsign": (), "softplus": (),
}  # fmt: skip
T, N, H, K = (Affine.iterator(d) for d in range(4))


def cell(array: Array, *places: Affine) -> Operand:
    """The element of an array at these places, one for each axis."""
    images = {n: place for k, place in enumerate(places) for n in array.numbers(k)}
    return substituted(array.operand, images)


@dataclass
class Step:
    """The operations of one step in time, over a batch [N] and its hidden places [H]."""

    c: Call
    batch: int
    hidden: int
    dtype: str
    nodes: list[Node] = field(default_factory=list)  # of the step
    ops: list[Node] = field(default_factory=list)  # of the nest that is open

    def op(self, function: str, *operands: Operand | float) -> Operand:
        """A function of what stands at [n, h], stored there."""
        target = fresh(self.c.b, self.dtype, (self.batch, self.hidden))
        place = cell(target, N, H)
        given = tuple(Number(o) if isinstance(o, (int, float)) else o for o in operands)
        assert isinstance(place, Access)
        self.ops.append(Op(place, "", function, given))
        return place

    def dot(self, start: Operand, row: Operand, weight: Operand) -> Operand:
        """``start`` and the sum of ``row`` at [n, k] times ``weight`` at [h, k] over k."""
        target = self.op("", start)
        assert isinstance(target, Access)
        self.ops.extend(nest([self.hidden], (Op(target, "+", "*", (row, weight)),)))
        return target

    def close(self) -> None:
        """End the nest: what follows sees all of it."""
        self.nodes.extend(nest([self.batch, self.hidden], tuple(self.ops)))
        self.ops = []

    def put(self, target: Operand, value: Operand) -> None:
        assert isinstance(target, Access)
        self.ops.append(Op(target, "", "", (value,)))

    def clipped(self, x: Operand, limit: float | None) -> Operand:
        return x if limit is None else self.op("min", self.op("max", x, -limit), limit)

    def activation(self, name: str, numbers: Sequence[float], x: Operand) -> Operand:
        op = self.op
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


@dataclass
class Layer:
    """One direction of a recurrent node, time first; ``gates`` is what x gives, [T, N, gates*H]."""

    c: Call
    steps: int
    batch: int
    hidden: int
    dtype: str
    gates: Array
    weights: Array  # [gates*H, H]
    bias: Array | None  # of the recurrence, [gates*H]
    start: Array  # [N, H]
    clip: float | None
    functions: list[tuple[str, tuple[float, ...]]]
    state: Array | None = None  # of an LSTM's cells, [N, H]
    peepholes: Array | None = None

    def gate(self, k: int) -> Affine:
        return H + k * self.hidden

    def weight(self, k: int) -> Operand:
        return cell(self.weights, self.gate(k), K)

    def history(self, first: Array) -> Array:
        """[T+1, N, H], of which the first is given."""
        whole = fresh(self.c.b, self.dtype, (self.steps + 1, self.batch, self.hidden))
        write(self.c.b, self.c.places(whole, 0, 0, 1), "", self.c.unsqueeze(first, [0]))
        return whole


def _rnn(layer: Layer, s: Step) -> list[Array]:
    hidden = layer.history(layer.start)
    total = s.dot(cell(layer.gates, T, N, layer.gate(0)), cell(hidden, T, N, K), layer.weight(0))
    s.put(cell(hidden, T + 1, N, H), s.activation(*layer.functions[0], s.clipped(total, layer.clip)))
    s.close()
    return [hidden]


def _gru(layer: Layer, s: Step) -> list[Array]:
    hidden = layer.history(layer.start)
    before, after = layer.c.flag("linear_before_reset"), cell(hidden, T + 1, N, H)
    row, here = cell(hidden, T, N, K), cell(hidden, T, N, H)
    gates = [
        s.activation(
            *layer.functions[0],
            s.clipped(s.dot(cell(layer.gates, T, N, layer.gate(k)), row, layer.weight(k)), layer.clip),
        )
        for k in range(2)
    ]
    update, reset = gates
    given = cell(layer.gates, T, N, layer.gate(2))
    if before:
        bias = cell(layer.bias, layer.gate(2)) if layer.bias is not None else Number(0)
        total = s.op("+", s.op("*", reset, s.dot(bias, row, layer.weight(2))), given)
    else:
        scaled = s.op("*", reset, here)
        s.close()
        assert isinstance(scaled, Access)
        at_k = substituted(scaled, {2: K})
        total = s.dot(given, at_k, layer.weight(2))
    new = s.activation(*layer.functions[1], s.clipped(total, layer.clip))
    s.put(after, s.op("+", s.op("*", s.op("-", 1, update), new), s.op("*", update, here)))
    s.close()
    return [hidden]


def _lstm(layer: Layer, s: Step) -> list[Array]:
    hidden = layer.history(layer.start)
    assert layer.state is not None
    cells = layer.history(layer.state)
    row, old = cell(hidden, T, N, K), cell(cells, T, N, H)

    def total(k: int, peephole: int, state: Operand) -> Operand:
        value = s.dot(cell(layer.gates, T, N, layer.gate(k)), row, layer.weight(k))
        if layer.peepholes is not None and peephole >= 0:
            value = s.op("+", value, s.op("*", cell(layer.peepholes, layer.gate(peephole)), state))
        return s.clipped(value, layer.clip)

    enter = s.activation(*layer.functions[0], total(0, 0, old))  # gates: i, o, f, c; peepholes: i, o, f
    if layer.c.flag("input_forget"):
        forget = s.op("-", 1, enter)
    else:
        forget = s.activation(*layer.functions[0], total(2, 2, old))
    new = s.activation(*layer.functions[1], total(3, -1, old))
    state = s.op("+", s.op("*", forget, old), s.op("*", enter, new))
    s.put(cell(cells, T + 1, N, H), state)
    leave = s.activation(*layer.functions[0], total(1, 1, state))
    s.put(cell(hidden, T + 1, N, H), s.op("*", leave, s.activation(*layer.functions[2], state)))
    s.close()
    return [hidden, cells]


_KINDS = {"RNN": (1, 1, _rnn), "GRU": (3, 2, _gru), "LSTM": (4, 3, _lstm)}
_DEFAULTS = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}


@operator(*_KINDS)
def recurrent(c: Call) -> list[Array | None]:
    gates, per, run = _KINDS[c.name]
    layout = c.attribute("layout", 0)
    x = c.array(0)
    if len(x.shape) != 3:
        raise Refusal(f"It takes three dimensions, not {list(x.shape)}.", "Mend the model.")
    x = c.transpose(x, (1, 0, 2)) if layout else x
    direction = c.attribute("direction", "forward")
    turned = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(direction)
    if turned is None:
        raise Refusal(f"Its direction is {direction!r}.", "Give forward, reverse or bidirectional.")
    hidden = c.shape(2)[-1]
    if c.attribute("hidden_size", hidden) != hidden or c.shape(1)[0] != len(turned):
        raise Refusal("Its hidden_size or direction does not fit its weights.", "Mend the model.")
    functions = _functions(c, per, len(turned))
    lengths = c.array(4) if c.has(4) else None
    made = [
        _direction(c, x, d, back, gates, hidden, functions[d * per : (d + 1) * per], lengths, run)
        for d, back in enumerate(turned)
    ]
    order = [1, 2, 0, 3] if layout else [1, 0, 2, 3]
    whole = c.concat([c.unsqueeze(history, [0]) for history, _ in made], 0)  # [D, T, N, H]
    results: list[Array | None] = [c.transpose(whole, [2, 1, 0, 3] if layout else order)]
    for k in range(len(made[0][1])):
        last = c.concat([c.unsqueeze(ends[k], [0]) for _, ends in made], 0)
        results.append(c.transpose(last, (1, 0, 2)) if layout else last)
    return results


def _functions(c: Call, per: int, directions: int) -> list[tuple[str, tuple[float, ...]]]:
    given = "activations" in c.attributes
    names = [n.lower() for n in (c.attribute("activations") if given else _DEFAULTS[c.name] * directions)]
    if len(names) != per * directions or not set(names) <= set(ACTIVATIONS):
        raise Refusal(
            f"Its activations are {names}.", f"Give {per * directions} of {', '.join(ACTIVATIONS)}."
        )
    alphas, betas = list(c.attribute("activation_alpha") or []), list(c.attribute("activation_beta") or [])
    functions = []
    for name in names:
        numbers = list(ACTIVATIONS[name])
        if numbers and alphas:
            numbers[0] = float(alphas.pop(0))
        if len(numbers) > 1 and betas:
            numbers[1] = float(betas.pop(0))
        functions.append((name, tuple(numbers)))
    return functions


def _direction(
    c: Call, x: Array, d: int, back: bool, gates: int, hidden: int,
    functions: list[tuple[str, tuple[float, ...]]], lengths: Array | None, run: object,
) -> tuple[Array, list[Array]]:  # fmt: skip
    """One direction: the history [T, N, H] in the order of time, and what is left at the end."""
    steps, batch = x.shape[:2]
    dtype = "f64" if x.dtype == "f64" else "f32"

    def part(k: int) -> Array:
        array = c.array(k)
        axis = 1 if c.attribute("layout", 0) and k in (5, 6) else 0
        return c.squeeze(c.places(array, axis, d, 1), [axis])

    row = c.places(x, 0, steps - 1, steps, -1) if back and lengths is None else x
    if back and lengths is not None:
        row = c.along(x, _turned(c, steps, batch, lengths), 0)
    weights, recurrence = part(1), part(2)
    given = c.contract("tni,gi->tng", row, weights, dtype=dtype)
    bias = part(3) if c.has(3) else None
    own: Array | None = None
    if bias is not None:
        width = gates * hidden
        first, own = c.places(bias, 0, 0, width), c.places(bias, 0, width, width)
        given = c.add(given, first)
        if c.name == "GRU" and c.flag("linear_before_reset"):
            kept = c.places(own, 0, 0, 2 * hidden)
            kept = c.concat([kept, c.number(0, kept.dtype, (hidden,))], 0)
            given = c.add(given, kept)
        else:
            given = c.add(given, own)
    given = _plain(c, given, (steps, batch, gates * hidden), dtype)
    nothing = c.number(0, dtype, (batch, hidden))
    limit = c.attribute("clip")
    layer = Layer(
        c, steps, batch, hidden, dtype, given, _plain(c, recurrence, recurrence.shape, recurrence.dtype),
        own and _plain(c, own, own.shape, own.dtype), part(5) if c.has(5) else nothing,
        None if limit is None else float(limit), functions,
    )  # fmt: skip
    if c.name == "LSTM":
        layer.state = part(6) if c.has(6) else nothing
        layer.peepholes = _plain(c, part(7), part(7).shape, part(7).dtype) if c.has(7) else None
    step = Step(c, batch, hidden, dtype)
    histories = run(layer, step)  # type: ignore[operator]
    c.b.add(*nest([steps], tuple(step.nodes)))
    later = [c.places(h, 0, 1, steps) for h in histories]
    if lengths is None:
        ends = [c.squeeze(c.places(h, 0, steps, 1), [0]) for h in histories]
        whole = later[0]
        return (c.places(whole, 0, steps - 1, steps, -1) if back else whole), ends
    last = c.reshape(c.sub(lengths, 1), (1, batch, 1))
    ends = [c.squeeze(c.along(h, last, 0), [0]) for h in later]
    time = c.iota((steps, batch, hidden), 0)
    inside = c.map("<", time, c.reshape(lengths, (1, batch, 1)))
    whole = c.where(inside, later[0], 0)
    return (c.along(whole, _turned(c, steps, batch, lengths), 0) if back else whole), ends


def _turned(c: Call, steps: int, batch: int, lengths: Array) -> Array:
    """For each place in time the one from the end of its own sequence, [T, N, 1]."""
    time = c.iota((steps, batch, 1), 0)
    return c.formula("select(t < n, n - 1 - t, t)", t=time, n=c.reshape(lengths, (1, batch, 1)), dtype="i64")


def _plain(c: Call, array: Array, shape: Sequence[int], dtype: str) -> Array:
    """Stored with one dimension for each axis, so that places can be named."""
    whole = fresh(c.b, dtype, tuple(shape))
    write(c.b, whole, "", array)
    return whole
