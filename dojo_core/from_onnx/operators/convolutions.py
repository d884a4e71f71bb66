"""Convolutions of any number of dimensions, and what they are made of: windows over a padded copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dojo_core import primitives as p
from dojo_core.from_onnx.arrays import joint
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import Refusal
from dojo_core.primitives.array import Array
from dojo_core.primitives.copies import fresh, write

Pads = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Windows:
    """How windows lie over the spatial axes: sizes, strides, dilations, paddings, and how many there are."""

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: Pads
    places: tuple[int, ...]


def windows_of(c: Call, size: Sequence[int], kernel: Sequence[int], ceil: bool = False) -> Windows:
    """The windows that a node's attributes describe. Raises Refusal where they contradict."""
    rank = len(size)
    strides = tuple(c.attribute("strides") or [1] * rank)
    dilations = tuple(c.attribute("dilations") or [1] * rank)
    given = c.attribute("pads")
    auto = c.attribute("auto_pad", "NOTSET") or "NOTSET"
    for name, value, count in (
        ("strides", strides, rank), ("dilations", dilations, rank),
        ("kernel_shape", kernel, rank), ("pads", given, 2 * rank),
    ):  # fmt: skip
        if value is not None and len(value) != count:
            raise Refusal(
                f"Its {name} has {len(value)} numbers for {rank} spatial dimensions.", f"Give {count}."
            )
    if min((*strides, *dilations, *kernel), default=1) < 1 or min(given or [0]) < 0:
        raise Refusal(
            "Its strides, dilations or kernel_shape are below 1, or its pads below 0.", "Mend the model."
        )
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise Refusal(f"Its auto_pad is {auto!r}.", "Give NOTSET, VALID, SAME_UPPER or SAME_LOWER.")
    if auto != "NOTSET" and given and any(given):
        raise Refusal(f"Its auto_pad is {auto} and it gives pads: one of them holds.", "Leave one out.")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        whole = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(size, strides, reach, strict=True)]
        pads = tuple((w // 2, w - w // 2) if auto == "SAME_UPPER" else (w - w // 2, w // 2) for w in whole)
    else:
        flat = given or [0] * (2 * rank)
        pads = tuple((flat[k], flat[k + rank]) for k in range(rank))
    places = []
    for n, r, s, (before, after) in zip(size, reach, strides, pads, strict=True):
        room = n + before + after - r
        count = (-(-room // s) if ceil else room // s) + 1
        if ceil and (count - 1) * s >= n + before:  # a window that begins behind the end is none
            count -= 1
        if count < 1 or (room < 0 and not ceil):
            raise Refusal(
                f"A window that reaches over {r} does not fit {n} with the padding {before} and {after}.",
                "Mend the model.",
            )
        places.append(count)
    return Windows(tuple(size), tuple(kernel), strides, dilations, pads, tuple(places))


def kernel_shape(c: Call, weight: Array) -> tuple[int, ...]:
    shape = weight.shape[2:]
    given = c.attribute("kernel_shape")
    if given and tuple(given) != shape:
        raise Refusal(
            f"Its kernel_shape {list(given)} is not that of its weights {list(shape)}.", "Mend the model."
        )
    return shape


@operator("Conv")
def conv(c: Call) -> Array:
    x, weight = c.computed(0), c.computed(1)
    if len(x.shape) < 3 or len(weight.shape) != len(x.shape):
        raise Refusal(
            f"{list(x.shape)} and {list(weight.shape)} are no image and filters.", "Mend the model."
        )
    windows = windows_of(c, x.shape[2:], kernel_shape(c, weight))
    return convolve(c, x, weight, windows, c.computed(2) if c.has(2) else None)


def convolve(c: Call, x: Array, weight: Array, w: Windows, bias: Array | None = None) -> Array:
    groups, dtype = c.attribute("group", 1), joint([x.dtype, weight.dtype])
    return p.convolve(c.b, x, weight, bias, w.strides, w.dilations, groups, w.pads, dtype=dtype)


def zeroed(c: Call, k: int, zero: int, axis: int | None = None, rank: int = 0) -> Array:
    """An integer input less its zero point, in i32; ``axis``: a zero point for each place along it."""
    x = c.convert(c.array(k), "i32")
    if not c.has(zero):
        return x
    tensor = c.tensor(zero)
    point = c.convert(c.of(tensor), "i32")
    if tensor.size == 1:
        point = c.reshape(point, ())
    elif axis is not None:
        point = c.reshape(point, tuple(tensor.size if a == axis else 1 for a in range(rank)))
    return c.sub(x, point)


@operator("ConvInteger")
def conv_integer(c: Call) -> Array:
    x = zeroed(c, 0, 2)
    weight = zeroed(c, 1, 3, 0, c.rank(1))
    windows = windows_of(c, x.shape[2:], kernel_shape(c, weight))
    return convolve(c, x, weight, windows)


@operator("ConvTranspose")
def conv_transpose(c: Call) -> Array:
    x, weight = c.computed(0), c.computed(1)
    rank, groups = len(x.shape) - 2, c.attribute("group", 1)
    kernel = kernel_shape(c, weight)
    strides = tuple(c.attribute("strides") or [1] * rank)
    dilations = tuple(c.attribute("dilations") or [1] * rank)
    extra = tuple(c.attribute("output_padding") or [0] * rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    size = x.shape[2:]
    full = [(n - 1) * s + e + r for n, s, e, r in zip(size, strides, extra, reach, strict=True)]
    given, auto = c.attribute("pads"), c.attribute("auto_pad", "NOTSET")
    wanted = c.attribute("output_shape")
    if wanted or auto in ("SAME_UPPER", "SAME_LOWER"):
        goal = list(wanted)[-rank:] if wanted else [n * s for n, s in zip(size, strides, strict=True)]
        total = [f - g for f, g in zip(full, goal, strict=True)]
        pads = [(t // 2, t - t // 2) if auto == "SAME_UPPER" else (t - t // 2, t // 2) for t in total]
    else:
        flat = given or [0] * (2 * rank)
        pads = [(flat[k], flat[k + rank]) for k in range(rank)]
    bias = c.computed(2) if c.has(2) else None
    return p.convolve_transposed(
        c.b, x, weight, bias, strides, dilations, groups, pads, extra, joint([x.dtype])
    )


@operator("Col2Im")
def col2im(c: Call) -> Array:
    """Blocks laid over each other and added up: a convolution's transpose without filters."""
    x = c.computed(0)
    image, block = c.ints(1), c.ints(2)
    rank = len(image)
    strides = list(c.attribute("strides") or [1] * rank)
    dilations = list(c.attribute("dilations") or [1] * rank)
    flat = list(c.attribute("pads") or [0] * (2 * rank))
    n, rows, _ = x.shape
    channels = rows // math.prod(block)
    places = [
        (image[k] + flat[k] + flat[k + rank] - (block[k] - 1) * dilations[k] - 1) // strides[k] + 1
        for k in range(rank)
    ]
    if math.prod(places) != x.shape[2] or channels * math.prod(block) != rows:
        raise Refusal(f"Its image {image} and blocks {block} do not fit {list(x.shape)}.", "Mend the model.")
    x = c.reshape(x, (n, channels, *block, *places))
    dtype = joint([x.dtype])
    whole = fresh(c.b, dtype, [n, channels, *(image[k] + flat[k] + flat[k + rank] for k in range(rank))])
    write(c.b, whole, "", c.number(0, dtype))
    target = whole
    for axis in range(rank):
        target = c.window(target, 2 + axis, block[axis], strides[axis], dilations[axis])
    order = [0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank)]  # taps before places
    write(c.b, c.transpose(target, order), "", x, accumulate="+")
    for axis in range(rank):
        whole = c.places(whole, 2 + axis, flat[axis], image[axis])
    return whole


@operator("DeformConv")
def deform_conv(c: Call) -> Array:
    """Each tap at its own place, between four pixels: gathered, weighed, contracted."""
    from dojo_core.from_onnx.operators.images import sampled

    x, weight, offset = c.computed(0), c.computed(1), c.computed(2)
    if len(x.shape) != 4:
        raise Refusal("It is taken in two dimensions.", "Compute it outside of the kernel.")
    kernel = kernel_shape(c, weight)
    w = windows_of(c, x.shape[2:], kernel)
    groups, offset_groups = c.attribute("group", 1), c.attribute("offset_group", 1)
    n, channels = x.shape[:2]
    taps = math.prod(kernel)
    offset = c.reshape(offset, (n, offset_groups, kernel[0], kernel[1], 2, *w.places))
    whole = (n, offset_groups, *kernel, *w.places)
    coordinates = []
    for axis in range(2):
        steps = [0] * 6
        steps[2 + axis], steps[4 + axis] = w.dilations[axis], w.strides[axis]
        at = c.affine(whole, steps, -w.pads[axis][0], "f32")
        moved = c.squeeze(c.places(offset, 4, axis, 1), [4])
        coordinates.append(c.add(at, moved))
    per = channels // offset_groups
    image = c.reshape(x, (n * offset_groups, per, *x.shape[2:]))
    flat = [c.reshape(at, (n * offset_groups, taps * math.prod(w.places))) for at in coordinates]
    value = sampled(c, image, flat, "linear", "zeros", False)  # [N*G, C/G, points]
    value = c.reshape(value, (n, offset_groups, per, taps, math.prod(w.places)))
    if c.has(4):
        mask = c.reshape(c.computed(4), (n, offset_groups, 1, taps, math.prod(w.places)))
        value = c.mul(value, mask)
    m = weight.shape[0]
    value = c.reshape(value, (n, groups, channels // groups, taps, math.prod(w.places)))
    filters = c.reshape(weight, (groups, m // groups, channels // groups, taps))
    result = c.reshape(c.contract("ngctp,gmct->ngmp", value, filters), (n, m, *w.places))
    return c.add(result, c.reshape(c.computed(3), (1, m, 1, 1))) if c.has(3) else result
