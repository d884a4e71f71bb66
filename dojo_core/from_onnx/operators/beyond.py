"""Operators that no text can be: why, and what to do."""

from __future__ import annotations

_SHAPE = "The shape of its result hangs on data, and a kernel's sizes are fixed."
_STRINGS = "It is about strings, and a kernel computes with numbers."
_RANDOM = "It draws random numbers, and a kernel's results are those of its inputs."
_OUTSIDE = "Compute it outside of the kernel, and give its result as an input."

BEYOND: dict[str, tuple[str, str]] = {
    "Compress": (_SHAPE, _OUTSIDE),
    "NonZero": (_SHAPE, _OUTSIDE),
    "Unique": (_SHAPE, _OUTSIDE),
    "NonMaxSuppression": (_SHAPE, _OUTSIDE),
    "RegexFullMatch": (_STRINGS, _OUTSIDE),
    "StringConcat": (_STRINGS, _OUTSIDE),
    "StringNormalizer": (_STRINGS, _OUTSIDE),
    "StringSplit": (_STRINGS, _OUTSIDE),
    "ImageDecoder": (
        "It reads compressed images (JPEG, PNG, …), and a kernel computes with numbers.",
        _OUTSIDE,
    ),
    "Bernoulli": (_RANDOM, _OUTSIDE),
    "Multinomial": (_RANDOM, _OUTSIDE),
    "RandomNormal": (_RANDOM, _OUTSIDE),
    "RandomNormalLike": (_RANDOM, _OUTSIDE),
    "RandomUniform": (_RANDOM, _OUTSIDE),
    "RandomUniformLike": (_RANDOM, _OUTSIDE),
}
