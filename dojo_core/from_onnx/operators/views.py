"""Views: the same elements in another shape or order. They cost no pass where they can be an index."""

from __future__ import annotations

import math

from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import Refusal, Tensor, Value, known, within
from dojo_core.primitives.array import Array


@operator("Identity")
def identity(c: Call) -> Value:
    return c.given(0)


def _values(c: Call, tensor: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    """Known values in another shape of as many elements."""
    if tensor.values is None:
        return None
    return known(tensor.values.reshape(shape), tensor.element)


def _reshaped(c: Call, shape: list[int] | tuple[int, ...]) -> Array | Tensor:
    tensor = c.tensor(0)
    if math.prod(shape) != tensor.size:
        raise Refusal(f"{list(tensor.shape)} has not as many elements as {list(shape)}.", "Mend the model.")
    return _values(c, tensor, tuple(shape)) or c.reshape(c.array(0), shape)


@operator("Reshape")
def reshape(c: Call) -> Array | Tensor:
    wanted = c.ints(1) if c.since >= 5 else list(c.attribute("shape"))
    old = c.shape(0)
    allow_zero = c.since >= 14 and c.flag("allowzero")
    if not allow_zero:
        if any(w == 0 and k >= len(old) for k, w in enumerate(wanted)):
            raise Refusal(f"Its shape {wanted} keeps a size that {list(old)} has not.", "Mend the model.")
        wanted = [old[k] if w == 0 else w for k, w in enumerate(wanted)]
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1 or (allow_zero and -1 in wanted and 0 in wanted):
        raise Refusal(f"Its shape {wanted} leaves more than one size open.", "Mend the model.")
    if -1 in wanted:
        rest = math.prod(w for w in wanted if w != -1)
        if not rest or math.prod(old) % rest:
            raise Refusal(f"{list(old)} has no shape {wanted}.", "Mend the model.")
        wanted[wanted.index(-1)] = math.prod(old) // rest
    return _reshaped(c, wanted)


@operator("Flatten")
def flatten(c: Call) -> Array | Tensor:
    shape, axis = c.shape(0), c.attribute("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        raise Refusal(f"Its axis {axis} is none of {len(shape)}.", "Mend the model.")
    axis = axis + len(shape) if axis < 0 else axis
    return _reshaped(c, [math.prod(shape[:axis]), math.prod(shape[axis:])])


@operator("Squeeze")
def squeeze(c: Call) -> Array | Tensor:
    shape = c.shape(0)
    axes = c.attribute("axes") if c.since < 13 else c.ints(1) if c.has(1) else None
    gone = (
        {c.axis_of(a, len(shape)) for a in axes}
        if axes is not None
        else {k for k, s in enumerate(shape) if s == 1}
    )
    if any(shape[a] != 1 for a in gone):
        raise Refusal(
            f"Only axes of size 1 can go, and {list(shape)} has others at {sorted(gone)}.", "Mend the model."
        )
    return _reshaped(c, [s for k, s in enumerate(shape) if k not in gone])


@operator("Unsqueeze")
def unsqueeze(c: Call) -> Array | Tensor:
    shape = c.shape(0)
    axes = c.attribute("axes") if c.since < 13 else c.ints(1)
    rank = len(shape) + len(axes)
    places = {c.axis_of(a, rank) for a in axes}
    if len(places) != len(axes):
        raise Refusal(f"Its axes {list(axes)} name one twice.", "Mend the model.")
    old = iter(shape)
    return _reshaped(c, [1 if k in places else next(old) for k in range(rank)])


@operator("Transpose")
def transpose(c: Call) -> Array | Tensor:
    order = c.attribute("perm") or list(range(c.rank(0)))[::-1]
    if sorted(order) != list(range(c.rank(0))):
        raise Refusal(f"Its perm {list(order)} is no order of {c.rank(0)} axes.", "Mend the model.")
    tensor = c.tensor(0)
    if tensor.values is not None:
        return known(tensor.values.transpose(order), tensor.element)
    return c.transpose(c.array(0), order)


@operator("Expand")
def expand(c: Call) -> Array | Tensor:
    import numpy as np

    tensor = c.tensor(0)
    try:
        shape = np.broadcast_shapes(tensor.shape, tuple(c.ints(1)))
    except ValueError:
        raise Refusal(f"{list(tensor.shape)} is not expanded to {c.ints(1)}.", "Mend the model.") from None
    if tensor.values is not None and (math.prod(shape) <= 4096 or not math.prod(shape)):
        return known(np.broadcast_to(tensor.values, shape), tensor.element)
    return c.broadcast(c.array(0), shape)


def indices(size: int, start: int, end: int, step: int) -> range:
    """The places that a slice of ONNX takes along an axis."""
    return range(*slice(start, end if step > 0 or end >= -size else None, step).indices(size))


@operator("Slice")
def slice_(c: Call) -> Array | Tensor:
    tensor = c.tensor(0)
    rank = len(tensor.shape)
    if c.since < 10:
        starts, ends = list(c.attribute("starts")), list(c.attribute("ends"))
        axes, steps = c.attribute("axes"), None
    else:
        starts, ends = c.ints(1), c.ints(2)
        axes = c.ints(3) if c.has(3) else None
        steps = c.ints(4) if c.has(4) else None
    axes = [c.axis_of(a, rank) for a in (axes if axes is not None else range(len(starts)))]
    steps = steps or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or len(set(axes)) < len(axes) or 0 in steps:
        raise Refusal("Its starts, ends, axes and steps do not fit together.", "Mend the model.")
    chosen = {
        a: indices(tensor.shape[a], s, e, d) for a, s, e, d in zip(axes, starts, ends, steps, strict=True)
    }
    if tensor.values is not None:
        values = tensor.values
        for axis, places in chosen.items():
            values = values.take(list(places), axis=axis)
        return known(values, tensor.element)
    array = c.array(0)
    for axis, places in chosen.items():
        array = c.places(array, axis, places.start if len(places) else 0, len(places), places.step)
    return array


@operator("Split")
def split(c: Call) -> list[Array | Tensor]:
    axis = c.axis(default=0)
    sizes = parts(c, axis)
    return _parts(c, axis, sizes)


def parts(c: Call, axis: int) -> list[int]:
    """The sizes of the parts of Split."""
    size = c.shape(0)[axis]
    given = c.attribute("split") if c.since < 13 else c.ints(1) if c.has(1) else None
    if given is not None:
        if sum(given) != size or min(given, default=0) < 0:
            raise Refusal(f"Its parts {list(given)} do not make an axis of {size}.", "Mend the model.")
        return list(given)
    count = within(c.attribute("num_outputs") or len(c.node.output), "Its outputs")
    each = -(-size // count)
    return [max(min(each, size - k * each), 0) for k in range(count)]


def _parts(c: Call, axis: int, sizes: list[int]) -> list[Array | Tensor]:
    tensor, start = c.tensor(0), 0
    results: list[Array | Tensor] = []
    for size in sizes:
        if tensor.values is not None:
            results.append(known(tensor.values.take(range(start, start + size), axis), tensor.element))
        else:
            results.append(c.places(c.array(0), axis, start, size))
        start += size
    return results


def _blocks(c: Call) -> tuple[int, int, int, int, int]:
    shape, block = c.shape(0), c.attribute("blocksize")
    if len(shape) != 4 or not block or block < 1:
        raise Refusal(
            f"It takes 4 dimensions and a blocksize, not {list(shape)} and {block}.", "Mend the model."
        )
    n, ch, h, w = shape
    return n, ch, h, w, block


@operator("DepthToSpace")
def depth_to_space(c: Call) -> Array:
    n, ch, h, w, s = _blocks(c)
    x = c.array(0)
    if c.attribute("mode", "DCR") == "DCR":
        x = c.transpose(c.reshape(x, (n, s, s, ch // (s * s), h, w)), (0, 3, 4, 1, 5, 2))
    else:
        x = c.transpose(c.reshape(x, (n, ch // (s * s), s, s, h, w)), (0, 1, 4, 2, 5, 3))
    return c.reshape(x, (n, ch // (s * s), h * s, w * s))


@operator("SpaceToDepth")
def space_to_depth(c: Call) -> Array:
    n, ch, h, w, s = _blocks(c)
    x = c.reshape(c.array(0), (n, ch, h // s, s, w // s, s))
    order = (0, 3, 5, 1, 2, 4) if c.attribute("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return c.reshape(c.transpose(x, order), (n, ch * s * s, h // s, w // s))


@operator("Shape")
def shape_of(c: Call) -> Tensor:
    value = c.given(0)
    assert isinstance(value, Tensor)
    rank = len(value.shape)
    start, end = c.attribute("start", 0) or 0, c.attribute("end")
    return c.constant(list(value.shape[slice(start, rank if end is None else end)]))


@operator("Size")
def size_of(c: Call) -> Tensor:
    return c.constant(c.tensor(0).size)
