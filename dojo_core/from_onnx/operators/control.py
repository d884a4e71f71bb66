"""Control flow, which is gone once a kernel is imported: branches are chosen, loops are unrolled."""

from __future__ import annotations

import numpy as np

from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import Asked, Refusal, Tensor, Value, known

ITERATIONS = 256  # of a loop that is unrolled


@operator("If", control=True)
def if_(c: Call) -> list[Value]:
    """The branch that a known condition takes; of one that is data both, where they give tensors alike."""
    then, other = c.attributes["then_branch"].g, c.attributes["else_branch"].g
    condition = c.tensor(0)
    if condition.values is None:
        yes, no = (c.walk.subgraph(branch, c.scope, []) for branch in (then, other))
        alike = all(
            isinstance(a, Tensor) and isinstance(b, Tensor) and (a.element, a.shape) == (b.element, b.shape)
            for a, b in zip(yes, no, strict=True)
        )
        if alike:
            return [_chosen(c, a, b) for a, b in zip(yes, no, strict=True)]
    return c.walk.subgraph(then if bool(c.known(0).reshape(-1)[0]) else other, c.scope, [])


def _chosen(c: Call, yes: Value, no: Value) -> Value:
    condition = c.walk.asked("Reshape", c.given(0), known(np.zeros(0), "i64"))
    return c.walk.asked("Where", condition, yes, no)


@operator("Loop", control=True)
def loop(c: Call) -> list[Value]:
    """A loop whose number of iterations is known: its condition is worked out at each."""
    body = c.attributes["body"].g
    count = c.integer(0) if c.has(0) else None
    going = bool(c.known(1).reshape(-1)[0]) if c.has(1) else True
    carried = [c.given(k) for k in range(2, len(c.inputs))]
    rows: list[list[Value]] = []
    k = 0
    while going and (count is None or k < count):
        if k >= ITERATIONS:
            raise Refusal(
                f"It has more than {ITERATIONS} iterations, which would be unrolled.",
                "Write it as a Scan, or take out its body.",
            )
        results = c.walk.subgraph(body, c.scope, [known(k, "i64"), known(True, "bool"), *carried])
        carried = results[1 : 1 + len(carried)]
        rows.append(results[1 + len(carried) :])
        go_on = results[0]
        if not isinstance(go_on, Tensor) or go_on.values is None:
            sources = go_on.sources if isinstance(go_on, Tensor) else frozenset()
            given = c.walk.given
            if sources and all(n in given and given[n].values is not None for n in sources):
                raise Asked(sources, "Loop: cond")
            raise Refusal("How often it runs hangs on data.", "Run the loop outside of the kernel.")
        going = bool(go_on.values.reshape(-1)[0])
        k += 1
    scanned = len(body.output) - 1 - len(carried)
    if scanned and not rows:
        raise Refusal("It runs no iteration, and stacks what they give.", "Give a trip_count of at least 1.")
    return [*carried, *(_stacked(c, [row[j] for row in rows], 0) for j in range(scanned))]


def _stacked(c: Call, values: list[Value], axis: int) -> Value:
    """What the iterations gave, along a new axis."""
    if not all(isinstance(v, Tensor) for v in values):
        raise Refusal("It stacks what are no tensors.", "Mend the model.")
    with_axis = [c.walk.asked("Unsqueeze", v, known([axis], "i64")) for v in values]
    return c.walk.asked("Concat", *with_axis, axis=axis)


@operator("Scan", control=True)
def scan(c: Call) -> list[Value]:
    """A graph for each place of its sequences, unrolled."""
    body, scanned = c.attributes["body"].g, int(c.attribute("num_scan_inputs"))
    if c.since < 9:
        return _scan_of_batches(c, scanned)
    return _scanned(c, [c.given(k) for k in range(len(c.inputs))], scanned, body)


def _scanned(c: Call, inputs: list[Value], scanned: int, body: object) -> list[Value]:
    states, rows = inputs[: len(inputs) - scanned], inputs[len(inputs) - scanned :]
    tensors = [v for v in rows if isinstance(v, Tensor)]
    if len(tensors) < scanned or not scanned:
        raise Refusal("It scans over what are no tensors.", "Mend the model.")
    axes = list(c.attribute("scan_input_axes") or [0] * scanned)
    backwards = list(c.attribute("scan_input_directions") or [0] * scanned)
    axes = [c.axis_of(a, len(t.shape)) for a, t in zip(axes, tensors, strict=True)]
    lengths = {t.shape[a] for a, t in zip(axes, tensors, strict=True)}
    if len(lengths) != 1:
        raise Refusal(f"Its sequences have the lengths {sorted(lengths)}.", "Mend the model.")
    (count,) = lengths
    if not 0 < count <= ITERATIONS:
        raise Refusal(
            f"It has {count} iterations, and 1 to {ITERATIONS} are unrolled.",
            "Compute it outside of the kernel.",
        )
    given: list[list[Value]] = []
    for k in range(count):
        taken = [
            _place(c, t, a, count - 1 - k if back else k)
            for t, a, back in zip(tensors, axes, backwards, strict=True)
        ]
        results = c.walk.subgraph(body, c.scope, [*states, *taken])  # type: ignore[arg-type]
        states = results[: len(states)]
        given.append(results[len(states) :])
    outputs = len(given[0])
    out_axes = list(c.attribute("scan_output_axes") or [0] * outputs)
    out_back = list(c.attribute("scan_output_directions") or [0] * outputs)
    stacked: list[Value] = []
    for k in range(outputs):
        column = [row[k] for row in given]
        first = column[0]
        rank = len(first.shape) + 1 if isinstance(first, Tensor) else 1
        stacked.append(_stacked(c, column[::-1] if out_back[k] else column, c.axis_of(out_axes[k], rank)))
    return [*states, *stacked]


def _place(c: Call, tensor: Tensor, axis: int, k: int) -> Value:
    return c.walk.asked("Gather", tensor, known(k, "i64"), axis=axis)


def _scan_of_batches(c: Call, scanned: int) -> list[Value]:
    """Before opset 9: an axis of batches in front, each its own scan."""
    if c.has(0):
        raise Refusal(
            "It gives the lengths of its sequences as data.", "Export the model with opset 9 or newer."
        )
    inputs = [c.given(k) for k in range(1, len(c.inputs))]
    tensors = [t for t in inputs if isinstance(t, Tensor)]
    batches: list[list[Value]] = []
    for k in range(tensors[0].shape[0]):
        each: list[Value] = [_place(c, t, 0, k) for t in tensors]
        batches.append(_scanned(c, each, scanned, c.attributes["body"].g))
    return [_stacked(c, [row[k] for row in batches], 0) for k in range(len(batches[0]))]
