"""Fourier transforms as contractions with the powers of a root of unity, and what belongs to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dojo_core import primitives as p
from dojo_core.from_onnx.arrays import joint
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import Refusal, Tensor, dtype_of, within
from dojo_core.primitives.array import Array
from dojo_core.primitives.constants import TABLE_VALUES
from dojo_core.program.functions import KERNEL_LIMITS


def _waves(c: Call, length: int, rows: int, columns: int, dtype: str) -> list[Array]:
    """``cos`` and ``sin`` of 2π·row·column/length, each [rows, columns]: one turn's values, looked up."""
    taken, most = 8 * rows * columns, KERNEL_LIMITS["buffer bytes"]
    if taken > most:
        raise Refusal(
            f"The powers of its root of unity would take {taken:,} bytes, more than {most:,}.",
            "Use a smaller length.",
        )
    angle = c.formula("k * a", k=c.iota((length,), 0, "f64"), a=2 * math.pi / length, dtype="f64")
    places: Array | np.ndarray[Any, Any]
    if c.b.table_values + 2 * rows * columns <= TABLE_VALUES:  # one each
        places = np.outer(np.arange(rows), np.arange(columns)) % length
    else:  # exact: a quotient of whole numbers is not rounded up to one
        row, column = (c.iota((rows, columns), k, "f64") for k in range(2))
        places = c.convert(c.formula("k - n * floor(k / n)", k=c.mul(row, column), n=length), "u32")
        places = c.min(places, length - 1)
    turns = [c.convert(c.map(f, angle), dtype) for f in ("cos", "sin")]  # of f32 the sine of π were no 0
    return [c.b.copy(p.gather(c.b, turn, places, 0), whole=True) for turn in turns]


def fourier(c: Call, parts: list[Array], axis: int, length: int, bins: int, inverse: bool) -> list[Array]:
    """The real and the imaginary part of the transform along an axis of ``length`` places."""
    dtype = joint([parts[0].dtype])
    cos, sin = _waves(c, length, bins, length, dtype)
    names = [f"a{k}" for k in range(len(parts[0].shape))]
    result = [name if k != axis else "bins" for k, name in enumerate(names)]
    form = f"bins {names[axis]}, {' '.join(names)} -> {' '.join(result)}"
    real = c.contract(form, cos, parts[0])
    imaginary = c.contract(form, sin, parts[0])
    if len(parts) == 1:
        return [real, imaginary if inverse else c.map("neg", imaginary)]
    other_real, other = c.contract(form, sin, parts[1]), c.contract(form, cos, parts[1])
    if inverse:
        return [c.sub(real, other_real), c.add(imaginary, other)]
    return [c.add(real, other_real), c.sub(other, imaginary)]


def _parts(c: Call, x: Array) -> list[Array]:
    last = len(x.shape) - 1
    return [c.squeeze(c.places(x, last, k, 1), [last]) for k in range(x.shape[-1])]


def _joined(c: Call, parts: list[Array]) -> Array:
    rank = len(parts[0].shape)
    return c.concat([c.unsqueeze(part, [rank]) for part in parts], rank)


@operator("DFT")
def dft(c: Call) -> Array:
    x, rank = c.computed(0), c.rank(0)
    if rank < 2 or x.shape[-1] not in (1, 2):
        raise Refusal(f"It takes [..., 1] or [..., 2], not {list(x.shape)}.", "Mend the model.")
    axis = c.attribute("axis", 1) if c.since < 20 else c.integer(2) if c.has(2) else -2
    axis = c.axis_of(axis, rank)
    if axis == rank - 1:
        raise Refusal("Its axis is that of the real and imaginary parts.", "Mend the model.")
    inverse, onesided = c.flag("inverse"), c.flag("onesided")
    if inverse and onesided:
        return _real_inverse(c, x, axis)
    length = c.integer(1) if c.has(1) else x.shape[axis]
    x = _cut(c, x, axis, length)
    made = fourier(c, _parts(c, x), axis, length, length // 2 + 1 if onesided else length, inverse)
    if inverse:
        made = [c.mul(part, 1 / length) for part in made]
    return _joined(c, made)


def _cut(c: Call, x: Array, axis: int, length: int) -> Array:
    size = x.shape[axis]
    if length < 1:
        raise Refusal(f"Its length is {length}.", "Give one of at least 1.")
    if length <= size:
        return c.places(x, axis, 0, length)
    return c.pad(x, [(0, length - size) if k == axis else (0, 0) for k in range(len(x.shape))])


def _real_inverse(c: Call, x: Array, axis: int) -> Array:
    """From half a spectrum to real numbers: the other half is its conjugate."""
    length = c.integer(1) if c.has(1) else 2 * (x.shape[axis] - 1)
    half = length // 2 + 1
    x = _cut(c, x, axis, half)
    parts = _parts(c, x)
    dtype = joint([x.dtype])
    twice = np.full(half, 2.0)
    twice[0] = 1.0
    if length % 2 == 0:
        twice[-1] = 1.0
    weight = c.reshape(
        p.constant(c.b, twice / length, dtype), [half if k == axis else 1 for k in range(len(x.shape) - 1)]
    )
    cos, sin = _waves(c, length, length, half, dtype)
    names = [f"a{k}" for k in range(len(parts[0].shape))]
    result = [name if k != axis else "places" for k, name in enumerate(names)]
    form = f"places {names[axis]}, {' '.join(names)} -> {' '.join(result)}"
    real = c.contract(form, cos, c.mul(parts[0], weight))
    if len(parts) > 1:
        real = c.sub(real, c.contract(form, sin, c.mul(parts[1], weight)))
    return _joined(c, [real])


@operator("STFT")
def stft(c: Call) -> Array:
    x = c.computed(0)
    if len(x.shape) == 2:
        x = c.unsqueeze(x, [2])
    step = c.integer(1)
    window = c.computed(2) if c.has(2) else None
    if window is None and not c.has(3):
        raise Refusal("It has neither a window nor a frame_length.", "Give one of them.")
    length = c.integer(3) if c.has(3) else window.shape[0] if window is not None else 0
    if not 1 <= length <= x.shape[1] or step < 1:
        raise Refusal(
            f"Frames of {length} with a step of {step} do not fit a signal of {x.shape[1]}.",
            "Mend the model.",
        )
    frames = [c.window(part, 1, length, step) for part in _parts(c, x)]  # [batch, frames, length]
    if window is not None:
        frames = [c.mul(frame, window) for frame in frames]
    onesided = bool(c.attribute("onesided", 1))
    return _joined(c, fourier(c, frames, 2, length, length // 2 + 1 if onesided else length, False))


@operator("MelWeightMatrix")
def mel_weights(c: Call) -> Tensor:
    """All of it is known: its inputs are the parameters of a filter bank."""
    bins, length, rate = c.integer(0), c.integer(1), c.integer(2)
    low, high = (float(c.known(k).reshape(-1)[0]) for k in (3, 4))
    spectrum = length // 2 + 1
    if bins < 1 or length < 1 or rate < 1 or not low < high:
        raise Refusal("Its numbers describe no filter bank.", "Mend the model.")
    mel_low, mel_high = (2595 * math.log10(1 + f / 700) for f in (low, high))
    step = (mel_high - mel_low) / (bins + 2)
    edges = 700 * (10 ** ((np.arange(bins + 2) * step + mel_low) / 2595) - 1)
    places = ((length + 1) * edges // rate).astype(int)
    within(spectrum * bins, "Its weights")
    matrix = np.zeros((spectrum, bins))
    for k in range(bins):
        lower, centre, upper = places[k : k + 3]
        if centre == lower:
            matrix[centre, k] = 1
        else:
            for j in range(lower, centre + 1):
                matrix[j, k] = (j - lower) / (centre - lower)
        if upper > centre:
            for j in range(centre, upper):
                matrix[j, k] = (upper - j) / (upper - centre)
    element = dtype_of(c.attribute("output_datatype", 1) or 1)
    return Tensor(element, matrix.shape, array=p.constant(c.b, matrix, element))
