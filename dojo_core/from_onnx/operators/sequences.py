"""Sequences and optionals, which are gone once a kernel is imported."""

from __future__ import annotations

from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.operators.copies import joined
from dojo_core.from_onnx.values import Nothing, Refusal, Sequence_, Tensor, Value, dtype_of, known
from dojo_core.primitives.array import Array

PARTS = 256  # of what SplitToSequence makes


@operator("SequenceEmpty")
def empty(c: Call) -> Sequence_:
    return Sequence_((), dtype_of(c.attribute("dtype", 1) or 1))


@operator("SequenceConstruct")
def construct(c: Call) -> Sequence_:
    items = tuple(c.tensor(k) for k in range(len(c.inputs)))
    return Sequence_(items, items[0].element if items else "f32")


@operator("SequenceLength")
def length(c: Call) -> Tensor:
    return c.constant(len(c.sequence(0).items))


def _position(c: Call, k: int, count: int) -> int:
    at = c.integer(k)
    if not -count <= at < max(count, 1) and at != count:
        raise Refusal(f"Its position {at} is none in a sequence of {count}.", "Mend the model.")
    return at + count if at < 0 else at


@operator("SequenceAt")
def at(c: Call) -> Value:
    items = c.sequence(0).items
    place = _position(c, 1, len(items))
    if place >= len(items):
        raise Refusal(f"Its position {place} is none in a sequence of {len(items)}.", "Mend the model.")
    return items[place]


@operator("SequenceInsert")
def insert(c: Call) -> Sequence_:
    sequence = c.sequence(0)
    place = _position(c, 2, len(sequence.items)) if c.has(2) else len(sequence.items)
    return Sequence_((*sequence.items[:place], c.tensor(1), *sequence.items[place:]), c.element(1))


@operator("SequenceErase")
def erase(c: Call) -> Sequence_:
    sequence = c.sequence(0)
    place = _position(c, 1, len(sequence.items)) if c.has(1) else len(sequence.items) - 1
    return Sequence_((*sequence.items[:place], *sequence.items[place + 1 :]), sequence.element)


@operator("ConcatFromSequence")
def concat(c: Call) -> Array | Tensor:
    tensors = [t for t in c.sequence(0).items if isinstance(t, Tensor)]
    if not tensors:
        raise Refusal("Its sequence is empty.", "Give it at least one tensor.")
    stacked, rank = c.flag("new_axis"), len(tensors[0].shape)
    axis = c.axis_of(c.attribute("axis"), rank + stacked)
    if stacked:
        tensors = [with_axis(c, t, axis) for t in tensors]
    return joined(c, tensors, axis)


def with_axis(c: Call, tensor: Tensor, axis: int) -> Tensor:
    import numpy as np

    if tensor.values is not None:
        return known(np.expand_dims(tensor.values, axis), tensor.element)
    array = c.unsqueeze(c.of(tensor), [axis])
    return Tensor(tensor.element, array.shape, array=array, sources=tensor.sources)


@operator("SplitToSequence")
def split(c: Call) -> Sequence_:
    tensor, axis = c.tensor(0), c.axis(default=0)
    size = tensor.shape[axis]
    single = not c.has(1)
    if single:
        sizes = [1] * min(size, PARTS + 1)
    elif c.rank(1) == 0:
        each = c.integer(1)
        if each < 1:
            raise Refusal(f"Its split is {each}.", "Give one of at least 1.")
        sizes = [min(each, size - k) for k in range(0, size, each)[: PARTS + 1]]
    else:
        sizes = c.ints(1)
    if len(sizes) > PARTS:
        raise Refusal(f"It makes a sequence of {len(sizes)}, more than {PARTS}.", "Use Split.")
    items: list[Tensor] = []
    start = 0
    for count in sizes:
        array = c.places(c.of(tensor), axis, start, count)
        if single and not c.attribute("keepdims", 1):
            array = c.squeeze(array, [axis])
        items.append(Tensor(tensor.element, array.shape, array=array, sources=tensor.sources))
        start += count
    return Sequence_(tuple(items), tensor.element)


@operator("SequenceMap", control=True)
def sequence_map(c: Call) -> list[Sequence_]:
    """A graph for each element, gone through once for each."""
    body, sequences = c.attributes["body"].g, [c.given(k) for k in range(len(c.inputs))]
    count = len(c.sequence(0).items)
    rows: list[list[Value]] = []
    for k in range(count):
        taken = [s.items[k] if isinstance(s, Sequence_) else s for s in sequences]
        rows.append(c.walk.subgraph(body, c.scope, taken))
    return [Sequence_(tuple(row[k] for row in rows)) for k in range(len(body.output))]


# ---------------------------------------------------------------------------- optionals


@operator("Optional")
def optional(c: Call) -> Value:
    return c.given(0) if c.has(0) else Nothing()


@operator("OptionalHasElement")
def has_element(c: Call) -> Tensor:
    return known(c.has(0) and not isinstance(c.inputs[0], Nothing), "bool")


@operator("OptionalGetElement")
def get_element(c: Call) -> Value:
    value = c.given(0)
    if isinstance(value, Nothing):
        raise Refusal("Its optional has no element.", "Ask OptionalHasElement first.")
    return value
