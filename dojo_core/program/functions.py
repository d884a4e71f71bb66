"""The functions and accumulations an operation may use, and how the text form writes them."""

from __future__ import annotations

from dataclasses import dataclass

from dojo_core.program.nodes import NUMBER_DTYPES


@dataclass(frozen=True, slots=True)
class Function:
    """``infix`` functions stand between their operands; ``vector``: a vector form exists."""

    name: str
    arity: int
    infix: bool = False
    vector: bool = True


_ARITHMETIC = [Function(sign, 2, infix=True) for sign in ("+", "-", "*", "/")]
_COMPARISONS = [Function(sign, 2, infix=True) for sign in ("<", "<=", ">", ">=", "==", "!=")]
_NAMED = [
    Function(name, 1)
    for name in (
        "neg", "abs", "sign", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log1p",
        "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
        "erf", "sigmoid", "floor", "ceil", "trunc", "round", "tf32", "not",
    )
] + [
    *(Function(name, 1) for name in ("isnan", "isinf", "bitcast")),
    Function("max", 2),
    Function("min", 2),
    Function("pow", 2, vector=False),
    *(Function(name, 2) for name in ("fmod", "and", "or", "xor", "shl", "shr")),
    Function("fma", 3),
    Function("select", 3),
    Function("maxkey", 2),
    Function("minkey", 2),
    Function("keyindex", 1),
    Function("keyvalue", 1),
]  # fmt: skip
_CONVERSIONS = [Function(dtype, 1) for dtype in NUMBER_DTYPES]

FUNCTIONS: dict[str, Function] = {f.name: f for f in _ARITHMETIC + _COMPARISONS + _NAMED + _CONVERSIONS}

# Accumulations: associative, commutative, with a known identity.
IDENTITY: dict[str, int | float] = {"+": 0, "*": 1, "max": float("-inf"), "min": float("inf")}

LARGEST = 2**63  # what is counted with iterators stays below it: generated code counts in 64 bits
KERNEL_LIMITS = {
    "text bytes": 64 * 1024,
    "nodes": 500,
    "size": 2**40 - 1,  # of a scope or a dimension
    "depth": 16,
    "buffers": 512,
    "buffer bytes": 16 * 2**30,
    "table values": 16 * 1024,
}
