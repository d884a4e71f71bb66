"""RNN, GRU and LSTM: a loop over time in which every step reads what the one before wrote."""

from __future__ import annotations

from typing import Literal

from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import Refusal
from dojo_core.primitives.array import Array
from dojo_core.primitives.recurrences import ACTIVATIONS, Activation, Options, recurrence

Kind = Literal["RNN", "GRU", "LSTM"]

_GATES: dict[str, tuple[Kind, str]] = {"RNN": ("RNN", "n"), "GRU": ("GRU", "zrn"), "LSTM": ("LSTM", "iofc")}
_DEFAULTS = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}


@operator(*_DEFAULTS)
def recurrent(c: Call) -> list[Array | None]:
    per = len(_DEFAULTS[c.name])
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
        _direction(c, x, d, back, hidden, functions[d * per : (d + 1) * per], lengths)
        for d, back in enumerate(turned)
    ]
    order = [1, 2, 0, 3] if layout else [1, 0, 2, 3]
    whole = c.concat([c.unsqueeze(history, [0]) for history, _ in made], 0)  # [D, T, N, H]
    results: list[Array | None] = [c.transpose(whole, [2, 1, 0, 3] if layout else order)]
    for k in range(len(made[0][1])):
        last = c.concat([c.unsqueeze(ends[k], [0]) for _, ends in made], 0)
        results.append(c.transpose(last, (1, 0, 2)) if layout else last)
    return results


def _functions(c: Call, per: int, directions: int) -> list[Activation]:
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
    c: Call, x: Array, d: int, back: bool, hidden: int, functions: list[Activation], lengths: Array | None
) -> tuple[Array, list[Array]]:
    """One direction: the history [T, N, H] in the order of time, and what is left at the end."""
    steps, batch = x.shape[:2]
    dtype = "f64" if x.dtype == "f64" else "f32"
    kind, order = _GATES[c.name]

    def part(k: int) -> Array:
        array = c.array(k)
        axis = 1 if c.attribute("layout", 0) and k in (5, 6) else 0
        return c.squeeze(c.places(array, axis, d, 1), [axis])

    row = c.places(x, 0, steps - 1, steps, -1) if back and lengths is None else x
    if back and lengths is not None:
        row = c.along(x, _turned(c, steps, batch, lengths), 0)
    gates = c.contract("tni,gi->tng", row, part(1), dtype=dtype)
    behind = kind == "GRU" and c.flag("linear_before_reset")
    bias: Array | None = None
    if c.has(3):
        width = len(order) * hidden
        first, own = c.places(part(3), 0, 0, width), c.places(part(3), 0, width, width)
        gates = c.add(gates, first)
        if behind:
            bias = c.places(own, 0, 2 * hidden, hidden)
            own = c.concat([c.places(own, 0, 0, 2 * hidden), c.number(0, own.dtype, (hidden,))], 0)
        gates = c.add(gates, own)
    nothing = c.number(0, dtype, (batch, hidden))
    limit = c.attribute("clip")
    histories = recurrence(
        c.b,
        kind,
        gates,
        part(2),
        part(5) if c.has(5) else nothing,
        state=part(6) if c.has(6) else nothing,
        bias=bias,
        peepholes=part(7) if c.has(7) else None,
        order=order,
        options=Options(
            tuple(functions), None if limit is None else float(limit), behind, c.flag("input_forget")
        ),
    )
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
