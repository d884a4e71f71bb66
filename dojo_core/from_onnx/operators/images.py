"""Images at other places: resizing by known scales, sampling where data says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dojo_core import primitives as p
from dojo_core.from_onnx.arrays import Operand, joint
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import Refusal, within
from dojo_core.primitives.array import Array

Numbers = np.ndarray[Any, Any]


# ---------------------------------------------------------------------------- resizing: all places are known


@operator("Resize", "Upsample")
def resize(c: Call) -> Array:
    x, shape = c.computed(0), c.shape(0)
    rank = len(shape)
    axes = [c.axis_of(a, rank) for a in c.attribute("axes") or range(rank)]
    scales, sizes = _scales(c, [shape[a] for a in axes])
    mode = c.attribute("mode", "nearest")
    roi = _roi(c, len(axes))
    if mode not in ("nearest", "linear", "cubic"):
        raise Refusal(f"Its mode is {mode!r}.", "Give nearest, linear or cubic.")
    for k, axis in enumerate(axes):
        if (
            scales[k] == 1
            and sizes[k] == shape[axis]
            and c.attribute("coordinate_transformation_mode") != "tf_crop_and_resize"
        ):
            continue
        taps, weights, outside = _taps(c, shape[axis], sizes[k], scales[k], roi[k], mode)
        x = _interpolated(c, x, axis, taps, weights, outside)
    return x


def _scales(c: Call, given: list[int]) -> tuple[list[float], list[int]]:
    """The scale and the new size of each axis."""
    if c.name == "Upsample":
        scales = [float(s) for s in (c.known(1).reshape(-1) if c.since >= 9 else c.attribute("scales"))]
    elif c.since < 11:
        scales = [float(s) for s in c.known(1).reshape(-1)]
    elif c.has(3) and c.tensor(3).size:
        return _by_sizes(c, c.ints(3), given)
    elif c.has(2) and c.tensor(2).size:
        scales = [float(s) for s in c.known(2).reshape(-1)]
    else:
        raise Refusal("It has neither scales nor sizes.", "Give one of them.")
    if len(scales) != len(given) or min(scales, default=1) <= 0:
        raise Refusal(f"Its scales {scales} do not fit {len(given)} axes.", "Mend the model.")
    return scales, [math.floor(n * s) for n, s in zip(given, scales, strict=True)]


def _by_sizes(c: Call, sizes: list[int], given: list[int]) -> tuple[list[float], list[int]]:
    if len(sizes) != len(given) or min(sizes, default=1) < 1:
        raise Refusal(f"Its sizes {sizes} do not fit {len(given)} axes.", "Mend the model.")
    scales = [s / n for s, n in zip(sizes, given, strict=True)]
    policy = c.attribute("keep_aspect_ratio_policy", "stretch")
    if policy in ("not_larger", "not_smaller"):
        scale = min(scales) if policy == "not_larger" else max(scales)
        return [scale] * len(given), [math.floor(scale * n + 0.5) for n in given]
    return scales, sizes


def _roi(c: Call, axes: int) -> list[tuple[float, float]]:
    if c.since >= 11 and c.attribute("coordinate_transformation_mode") == "tf_crop_and_resize":
        flat = [float(v) for v in c.known(1).reshape(-1)]
        if len(flat) != 2 * axes:
            raise Refusal(f"Its roi has {len(flat)} numbers for {axes} axes.", "Give two for each.")
        return [(flat[k], flat[k + axes]) for k in range(axes)]
    return [(0.0, 1.0)] * axes


def _origin(mode: str, x: int, n: int, count: int, scale: float, roi: tuple[float, float]) -> float:
    """Where a place of the result lies among those that there are."""
    match mode:
        case "half_pixel":
            return (x + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            adjustment = count / (scale * n)
            return n / 2 * (1 - adjustment) + (x + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (x + 0.5) / scale - 0.5 if count > 1 else 0.0
        case "align_corners":
            return x * (n - 1) / (scale * n - 1) if scale * n != 1 else 0.0
        case "asymmetric":
            return x / scale
        case "tf_half_pixel_for_nn":
            return (x + 0.5) / scale
        case "tf_crop_and_resize":
            start, end = roi
            if count > 1:
                return start * (n - 1) + x * (end - start) * (n - 1) / (scale * n - 1)
            return 0.5 * (start + end) * (n - 1)
    raise Refusal(f"Its coordinate_transformation_mode is {mode!r}.", "Give one that ONNX has.")


def _kernel(mode: str, a: float, distance: float) -> float:
    d = abs(distance)
    if mode == "linear":
        return max(1 - d, 0.0)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


def _rounded(x: float, mode: str) -> int:
    match mode:
        case "round_prefer_floor":
            return math.ceil(x - 0.5)
        case "round_prefer_ceil":
            return math.floor(x + 0.5)
        case "floor":
            return math.floor(x)
        case "ceil":
            return math.ceil(x)
    raise Refusal(f"Its nearest_mode is {mode!r}.", "Give one that ONNX has.")


def _taps(
    c: Call, n: int, count: int, scale: float, roi: tuple[float, float], mode: str
) -> tuple[Numbers, Numbers | None, Numbers]:
    """For each place of the result the places it is made of and their weights (None: one place), and which
    places lie outside."""
    old = c.since < 11
    transform = "asymmetric" if old else c.attribute("coordinate_transformation_mode", "half_pixel")
    within(count, "The places of its result along an axis")
    origins = [_origin(transform, x, n, count, scale, roi) for x in range(count)]
    cropping = transform == "tf_crop_and_resize"
    outside = np.array([cropping and not 0 <= o <= n - 1 for o in origins])
    if mode == "nearest":
        nearest = "floor" if old else c.attribute("nearest_mode", "round_prefer_floor")
        return np.array([min(max(_rounded(o, nearest), 0), n - 1) for o in origins]), None, outside
    shrink = min(scale, 1.0) if not old and c.attribute("antialias", 0) else 1.0
    a = -0.75 if old else float(c.attribute("cubic_coeff_a", -0.75))
    reach = 1 if mode == "linear" else 2
    first = math.floor(-reach / shrink) + 1
    width = 2 * (1 - first) if shrink < 1 else 2 * reach
    within(count * width, "The weights of its result along an axis")
    taps, weights = np.zeros((count, width), int), np.zeros((count, width))
    for x, origin in enumerate(origins):
        base = math.floor(origin)
        ratio = origin - base or 1.0  # of two places as near the left one is preferred
        left = base if ratio < 1 else base - 1
        for k in range(width):
            at = left + first + k
            weights[x, k] = _kernel(mode, a, (first + k - ratio) * shrink)
            if c.attribute("exclude_outside", 0) and not 0 <= at < n:
                weights[x, k] = 0
            taps[x, k] = min(max(at, 0), n - 1)
        weights[x] /= weights[x].sum()
    return taps, weights, outside


def _interpolated(
    c: Call, x: Array, axis: int, taps: Numbers, weights: Numbers | None, outside: Numbers
) -> Array:
    dtype = joint([x.dtype])
    rows = p.gather(c.b, x, taps, axis)
    if weights is not None:
        rank = len(x.shape)
        names = [f"a{k}" for k in range(rank)]
        tapped = (*names[: axis + 1], "tap", *names[axis + 1 :])
        form = f"{' '.join(tapped)}, {names[axis]} tap -> {' '.join(names)}"
        rows = c.contract(form, c.b.copy(rows, whole=True), p.constant(c.b, weights, dtype), dtype=dtype)
    if outside.any():
        shape = [len(outside) if k == axis else 1 for k in range(len(x.shape))]
        mask = c.reshape(p.constant(c.b, outside.astype(np.int64), "bool"), shape)
        rows = c.where(mask, float(c.attribute("extrapolation_value", 0.0)), rows)
    return rows


# ---------------------------------------------------------------------------- sampling: places are data


def sampled(
    c: Call,
    image: Array,
    places: Sequence[Array],
    mode: str,
    padding: str,
    align: bool,
    batch: Array | None = None,
    maximum: bool = False,
) -> Array:
    """An image [B, C, size…] at places [R, P], one array of coordinates for each spatial axis: [R, C, P].

    ``padding``: what lies beyond: ``zeros``, ``border``, ``reflection`` (about the pixels' centres where
    ``align``).
    ``batch`` [R] says which image; without it R is B. With ``maximum`` the largest of the weighed neighbours
    counts, not their sum.
    """
    count, channels, *size = image.shape
    rows, points = places[0].shape
    taps = {"nearest": 1, "linear": 2, "cubic": 4}[mode]
    rank = len(size)
    flat: Array | None = None
    weights: list[Array] = []
    for axis, (n, at) in enumerate(zip(size, places, strict=True)):
        place, weight = _neighbours(c, c.unsqueeze(at, [2]), n, taps, mode, padding, align)
        shape = [rows, points, *(taps if k == axis else 1 for k in range(rank))]
        place = c.reshape(place, shape)
        weights.append(c.reshape(weight, shape))
        step = math.prod(size[axis + 1 :])
        term = c.mul(place, step) if step != 1 else place
        flat = term if flat is None else c.add(flat, term)
    assert flat is not None
    plane = math.prod(size)
    if batch is not None:
        flat = c.add(flat, c.mul(c.reshape(batch, (rows, *[1] * (rank + 1))), plane))
    elif count > 1:
        flat = c.add(flat, c.affine((rows, *[1] * (rank + 1)), [plane, *[0] * (rank + 1)]))
    pixels = c.reshape(c.transpose(image, [0, *range(2, 2 + rank), 1]), (count * plane, channels))
    value = c.gather(pixels, c.broadcast(flat, (rows, points, *[taps] * rank)), 0)  # [R, P, taps…, C]
    for weight in weights:
        value = c.mul(value, c.unsqueeze(weight, [rank + 2]))
    over = list(range(2, 2 + rank))
    total = c.reduce(
        "max" if maximum else "+", c.broadcast(value, (rows, points, *[taps] * rank, channels)), over, False
    )
    return c.transpose(total, (0, 2, 1))


def _neighbours(
    c: Call, at: Array, n: int, taps: int, mode: str, padding: str, align: bool
) -> tuple[Array, Array]:
    """The places around ``at`` [R, P, 1] and their weights, [R, P, taps]."""
    low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
    if mode == "nearest":
        at = c.map("round", at)
    if padding == "border":
        inside = c.clamp(at, 0.0, n - 1.0)
    elif padding == "reflection":
        inside = _reflected(c, at, low, high)
    else:
        inside = at
    shape = (*at.shape[:2], taps)
    tap = c.iota((1, 1, taps), 2, at.dtype)
    if mode == "nearest":
        place, weight = inside, c.number(1, at.dtype, (1, 1, 1))
    else:
        base = c.map("floor", inside)
        place = c.formula("b + t - o", b=base, t=tap, o=taps // 2 - 1)
        distance = c.formula("abs(x - p)", x=inside, p=place)
        if mode == "linear":
            weight = c.formula("max(1 - d, 0)", d=distance)
        else:
            weight = c.formula(
                "select(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, ((d - 5) * d + 8) * d * a - 4 * a)",
                d=distance, a=-0.75,
            )  # fmt: skip
    if padding == "zeros":
        valid = c.formula("select(p >= 0, p < n, 0)", p=place, n=n, dtype="bool")
        weight = c.where(c.broadcast(valid, shape), weight, 0)
    elif padding == "reflection":
        place = _reflected(c, place, low, high)
    return c.convert(c.clamp(place, 0.0, n - 1.0), "i64"), c.broadcast(weight, shape)


def _reflected(c: Call, x: Array, low: float, high: float) -> Array:
    """Folded back between two mirrors."""
    if high <= low:
        return c.number(low, x.dtype, x.shape)
    span = high - low
    turns = c.formula("floor(abs(x - l) / s)", x=x, l=low, s=span)
    rest = c.formula("abs(x - l) - t * s", x=x, l=low, t=turns, s=span)
    return c.formula("select(t - 2 * floor(t * 0.5) > 0.5, h - r, l + r)", t=turns, r=rest, h=high, l=low)


@operator("GridSample")
def grid_sample(c: Call) -> Array:
    x, grid = c.computed(0), c.computed(1)
    rank = len(x.shape) - 2
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        c.attribute("mode", "linear"), c.attribute("mode", "linear")
    )
    padding, align = c.choice("padding_mode", ("zeros", "border", "reflection")), c.flag("align_corners")
    if (
        mode not in ("linear", "nearest", "cubic")
        or rank < 1
        or grid.shape[-1] != rank
        or len(grid.shape) != rank + 2
    ):
        raise Refusal(
            f"Its mode {mode!r} or the shapes {list(x.shape)} and {list(grid.shape)} do not fit.",
            "Mend the model.",
        )
    count, spatial = x.shape[0], grid.shape[1:-1]
    points = math.prod(spatial)
    places = []
    for axis in range(rank):
        g = c.places(grid, rank + 1, rank - 1 - axis, 1)  # x first
        g = c.reshape(g, (count, points))
        n = x.shape[2 + axis]
        text = "(g + 1) * 0.5 * (n - 1)" if align else "((g + 1) * n - 1) * 0.5"
        places.append(c.formula(text, g=g, n=n))
    value = sampled(c, x, places, mode, padding, align)
    return c.reshape(value, (count, x.shape[1], *spatial))


@operator("RoiAlign")
def roi_align(c: Call) -> Array:
    x, rois, batch = c.computed(0), c.computed(1), c.array(2)
    ratio = int(c.attribute("sampling_ratio", 0))
    if ratio < 1:
        raise Refusal(
            "Its sampling_ratio is 0, so that the number of samples hangs on data.", "Give one of at least 1."
        )
    high, wide = int(c.attribute("output_height", 1)), int(c.attribute("output_width", 1))
    scale = float(c.attribute("spatial_scale", 1.0))
    half = c.since >= 16 and c.attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    count, channels, height, width = rois.shape[0], *x.shape[1:]
    points = high * ratio * wide * ratio
    shape = (count, high, ratio, wide, ratio)
    places: list[Array] = []
    inside: Array | None = None
    for axis, (cells, n) in enumerate(((high, height), (wide, width))):
        first, last = (c.reshape(c.places(rois, 1, k, 1), (count, 1, 1, 1, 1)) for k in (1 - axis, 3 - axis))
        offset = 0.5 if half else 0.0
        start = c.formula("f * s - o", f=first, s=scale, o=offset)
        span = c.formula("l * s - o - b", l=last, s=scale, o=offset, b=start)
        if not half:
            span = c.max(span, 1.0)
        cell, tap = c.iota(shape, 1 + 2 * axis, "f32"), c.iota(shape, 2 + 2 * axis, "f32")
        bin_ = c.mul(span, 1 / cells)
        at = c.formula("b + (k + (t + 0.5) * r) * w", b=start, k=cell, t=tap, r=1 / ratio, w=bin_)
        valid = c.formula("select(y >= -1, y <= n, 0)", y=at, n=n, dtype="bool")
        inside = valid if inside is None else c.both(inside, valid)
        places.append(c.reshape(c.broadcast(at, shape), (count, points)))
    assert inside is not None
    maximum = c.attribute("mode", "avg") == "max"
    value = sampled(c, x, places, "linear", "border", True, batch, maximum)
    value = c.where(c.reshape(c.broadcast(inside, shape), (count, 1, points)), value, 0)
    value = c.reshape(value, (count, channels, high, ratio, wide, ratio))
    if maximum:
        return c.reduce("max", value, [3, 5], False)
    return c.mul(c.reduce("+", value, [3, 5], False), 1 / (ratio * ratio))


@operator("MaxRoiPool")
def max_roi_pool(c: Call) -> Array:
    """The windows are data: of each row and column all elements are looked at, and those beyond left out."""
    x, rois = c.computed(0), c.computed(1)
    pooled, scale = c.attribute("pooled_shape"), float(c.attribute("spatial_scale", 1.0))
    if len(x.shape) != 4 or len(rois.shape) != 2 or rois.shape[1] != 5 or len(pooled) != 2:
        raise Refusal(
            f"It pools {list(rois.shape)} of {list(x.shape)} to {list(pooled)}: it takes [n, 5] of "
            "[n, c, h, w], and two sizes.",
            "Mend the model.",
        )
    count = rois.shape[0]
    column = [c.reshape(c.places(rois, 1, k, 1), (count, 1)) for k in range(5)]
    value = c.gather(x, c.convert(c.reshape(column[0], (count,)), "i64"), 0)
    some: Array | None = None
    for axis in (3, 2):  # the columns of each row, then the rows
        size, cells = value.shape[axis], int(pooled[axis - 2])
        first, last = (
            c.formula("sign(v) * floor(abs(v) + 0.5)", v=c.mul(column[4 - axis + k], scale)) for k in (0, 2)
        )
        bin_ = c.formula("max(l - f + 1, 1) / n", f=first, l=last, n=cells)
        cell = c.iota((count, cells), 1, bin_.dtype)
        begin = c.formula("min(max(floor(k * b) + f, 0), n)", k=cell, b=bin_, f=first, n=size)
        end = c.formula("min(max(ceil((k + 1) * b) + f, 0), n)", k=cell, b=bin_, f=first, n=size)
        here = c.iota((1, 1, size), 2, bin_.dtype)
        inside = c.formula(
            "(i >= b) & (i < e)", dtype="bool", i=here, b=c.unsqueeze(begin, [2]), e=c.unsqueeze(end, [2])
        )
        spread = [count, 1, 1, 1, 1]
        spread[axis], spread[axis + 1] = (
            cells,
            size,
        )  # beside [n, c, h, 1, w], then beside [n, c, 1, h, cells]
        elements = c.where(c.reshape(inside, spread), c.unsqueeze(value, [axis]), -math.inf)
        value = c.reduce("max", elements, [axis + 1], False)
        del spread[axis + 1]
        any_ = c.reshape(c.map("<", begin, end), spread)
        some = any_ if some is None else c.both(some, any_)
    assert some is not None
    return c.where(some, value, 0)


@operator("AffineGrid")
def affine_grid(c: Call) -> Array:
    """[n, *sizes, rank]: where each place of an image comes from, x before y before z."""
    theta, sizes = c.computed(0), c.ints(1)[2:]
    rank, n = len(sizes), theta.shape[0]
    if rank not in (2, 3) or theta.shape[1:] != (rank, rank + 1) or min(sizes) < 1:
        raise Refusal(
            f"Its theta is {list(theta.shape)}, and its size {c.ints(1)}.", "Give [n, 2, 3] and [n, c, h, w]."
        )
    corners = c.flag("align_corners")
    factors = [c.reshape(c.places(theta, 2, k, 1), (n, *(1,) * rank, rank)) for k in range(rank + 1)]
    names: dict[str, Operand] = {"t": factors[rank]}
    terms = ["t"]
    for axis, size in enumerate(sizes):  # from the first to the last place is 2, or a step less
        step = (2 / (size - 1) if size > 1 else 0.0) if corners else 2 / size
        start = (-1.0 if size > 1 else 0.0) if corners else step / 2 - 1
        at = c.iota(
            [n_ if k == axis + 1 else 1 for k, n_ in enumerate((1, *sizes, 1))], axis + 1, theta.dtype
        )
        names |= {
            f"f{axis}": factors[rank - 1 - axis],
            f"a{axis}": c.formula("k * s + b", k=at, s=step, b=start),
        }
        terms.append(f"f{axis} * a{axis}")
    return c.formula(" + ".join(reversed(terms)), None, **names)
