"""What no view can be: concatenations, paddings, tiles."""

from __future__ import annotations

import numpy as np

from dojo_core import primitives as p
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import FLOATS, Refusal, Tensor, known
from dojo_core.primitives.array import Array

MODES = ("constant", "reflect", "edge", "wrap")


@operator("Concat")
def concat(c: Call) -> Array | Tensor:
    tensors = [c.tensor(k) for k in range(len(c.inputs))]
    axis = c.axis(default=1)
    return joined(c, tensors, axis)


def joined(c: Call, tensors: list[Tensor], axis: int) -> Array | Tensor:
    if (
        len({len(t.shape) for t in tensors}) > 1
        or len({t.shape[:axis] + t.shape[axis + 1 :] for t in tensors}) > 1
    ):
        raise Refusal(
            f"The shapes {', '.join(str(list(t.shape)) for t in tensors)} do not go together.",
            "Mend the model.",
        )
    if all(t.values is not None for t in tensors):
        return known(
            np.concatenate([t.values for t in tensors if t.values is not None], axis), tensors[0].element
        )
    arrays = [c.of(t) for t in tensors if t.size]
    if len({a.dtype for a in arrays}) > 1:  # f16 and bf16, some of them held in f32
        arrays = [c.wide(a) for a in arrays]
    return c.concat(arrays, axis)


@operator("Tile")
def tile(c: Call) -> Array | Tensor:
    repeats = c.ints(1)
    if len(repeats) != c.rank(0) or min(repeats, default=0) < 0:
        raise Refusal(f"Its repeats {repeats} do not fit {list(c.shape(0))}.", "Mend the model.")
    return p.tile(c.b, c.array(0), repeats)


@operator("Pad")
def pad(c: Call) -> Array | Tensor:
    rank = c.rank(0)
    value: float | int | Array = 0
    if c.since < 11:
        ends = list(c.attribute("pads"))
        value = float(c.attribute("value", 0.0))
    else:
        ends = c.ints(1)
        if c.has(2):
            tensor = c.tensor(2)
            if tensor.values is not None and np.isfinite(float(tensor.values.reshape(-1)[0])):
                number = tensor.values.reshape(-1)[0]
                value = float(number) if tensor.element in FLOATS else int(number)
            else:
                value = c.reshape(c.array(2), ())
    axes = [c.axis_of(a, rank) for a in c.ints(3)] if c.since >= 18 and c.has(3) else list(range(rank))
    if len(ends) != 2 * len(axes):
        raise Refusal(f"Its pads have {len(ends)} numbers for {len(axes)} axes.", "Give two for each axis.")
    pads = [(0, 0)] * rank
    for k, axis in enumerate(axes):
        pads[axis] = ends[k], ends[k + len(axes)]
    return c.pad(c.array(0), pads, c.choice("mode", MODES), value)


@operator("ReverseSequence")
def reverse_sequence(c: Call) -> Array:
    """Along time the first ``sequence_lens`` places backwards, each of a batch its own: a gather."""
    x, shape = c.array(0), c.shape(0)
    time, batch = c.axis("time_axis"), c.axis("batch_axis")
    if {time, batch} != {0, 1}:
        raise Refusal("Its time_axis and batch_axis are not 0 and 1.", "Mend the model.")
    lengths = c.array(1)
    lengths = c.unsqueeze(lengths, [time])
    whole = shape[:2]
    place = c.iota(whole, time)
    source = c.formula("select(t < n, n - 1 - t, t)", t=place, n=lengths, dtype="i64")
    return c.along(x, c.reshape(c.broadcast(source, whole), (*whole, *[1] * (len(shape) - 2))), time)
