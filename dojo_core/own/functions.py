"""Functions of arrays element by element: those beside what ``arrays.py`` needs for itself."""

from __future__ import annotations

from dojo_core.own.arrays import Array, apply
from dojo_core.own.axes import Number


def sin(x: Array) -> Array:
    """Of x in radians, as all circular functions are."""
    return apply("sin", x)


def cos(x: Array) -> Array:
    return apply("cos", x)


def tan(x: Array) -> Array:
    return apply("tan", x)


def asin(x: Array) -> Array:
    return apply("asin", x)


def acos(x: Array) -> Array:
    return apply("acos", x)


def atan(x: Array) -> Array:
    return apply("atan", x)


def sinh(x: Array) -> Array:
    return apply("sinh", x)


def cosh(x: Array) -> Array:
    return apply("cosh", x)


def asinh(x: Array) -> Array:
    return apply("asinh", x)


def acosh(x: Array) -> Array:
    return apply("acosh", x)


def atanh(x: Array) -> Array:
    return apply("atanh", x)


def exp2(x: Array) -> Array:
    """2**x."""
    return apply("exp2", x)


def expm1(x: Array) -> Array:
    """exp(x) - 1, exact near 0."""
    return apply("expm1", x)


def log2(x: Array) -> Array:
    """The logarithm to base 2."""
    return apply("log2", x)


def log1p(x: Array) -> Array:
    """log(1 + x), exact near 0."""
    return apply("log1p", x)


def ceil(x: Array) -> Array:
    return apply("ceil", x)


def trunc(x: Array) -> Array:
    """The whole number next to x towards 0."""
    return apply("trunc", x)


def sign(x: Array) -> Array:
    """-1, 0 or 1; a zero and a NaN stay themselves."""
    return apply("sign", x)


def isnan(x: Array) -> Array:
    """A bool."""
    return apply("isnan", x)


def isinf(x: Array) -> Array:
    """A bool: infinite, of either sign?"""
    return apply("isinf", x)


def fmod(a: Array | Number, b: Array | Number) -> Array:
    """What is left of a division whose quotient goes towards 0: it has the sign of ``a``."""
    return apply("fmod", a, b)
