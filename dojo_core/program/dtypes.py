"""The dtypes: what each holds, in which one an operation is computed, and which mixes are refused.

An operand is read exactly; the operation is computed in the dtype of its target (f16 and bf16: in f32, and
rounded when written); so the target must hold every value of each operand's dtype. Where it does not, the
text says so with a conversion, an operation of its own: ``q[{0}] = i8(r[{0}])``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from dojo_core.program.affine import Affine
from dojo_core.program.nodes import fact
from dojo_core.program.tree import DTYPE_BYTES, Access, Number, Op, Operand, Program

FLOATS = ("f64", "f32", "f16", "bf16")
HALVES = ("f16", "bf16")  # stored in 16 bits, computed in f32, rounded when they are written
INTEGERS = ("i64", "i32", "i16", "i8", "u8")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "isnan", "isinf")  # 0 or 1, whatever the target's dtype
OF_REALS = (
    "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid", "pow",
)  # fmt: skip
TO_WHOLE = ("floor", "ceil", "trunc", "round")  # which leave integers as they are
DIVISIONS = ("/", "fmod")  # which no processor has for vectors of integers
LOGICAL = ("and", "or", "xor", "not")  # of integers bit by bit, of bool
SHIFTS = ("shl", "shr")  # of integers
# Rounded alike whatever moves are played: what an integer is made of without a doubt. (A quotient may become
# a product with the reciprocal.)
_SETTLED = {"", "*", "neg", "abs", "sign", *TO_WHOLE, "fmod", "max", "min", "select", "sqrt", *DTYPE_BYTES}

# Bits of the numbers that a dtype holds without rounding: whole numbers up to 2**bits.
_WHOLE_BITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
# Numbers from here on are infinite once rounded to the dtype.
BEYOND = {"f64": math.inf, "f32": 3.4028235677973366e38}
# Dtypes that C has arithmetic in, from narrow to wide.
_COMMON = ("bool", "u8", "i8", "i16", "i32", "f32", "i64", "f64")


def extremes(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype (bool: 0 and 1)."""
    if dtype == "bool":
        return 0, 1
    bits = 8 * DTYPE_BYTES[dtype]
    return (0, 2**bits - 1) if dtype == "u8" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@cache
def holds(wide: str, narrow: str) -> bool:
    """Is every value of ``narrow`` one of ``wide``?"""
    if wide == narrow:
        return True
    if narrow in FLOATS:
        return wide == "f64" or (wide == "f32" and narrow != "f64")
    low, high = extremes(narrow)
    if wide in FLOATS:
        return max(-low, high) <= 1 << _WHOLE_BITS[wide]
    least, most = extremes(wide)
    return least <= low and high <= most


def arithmetic(dtype: str) -> str:
    """The dtype that a processor computes in: f32 for f16 and bf16."""
    return "f32" if dtype in HALVES else dtype


def compute_dtype(op: Op, dtypes: Mapping[str, str]) -> str:
    """The dtype of an operation's function; ``dtypes`` has that of each array.

    Raises ValueError where a comparison's operands have none in common.
    """
    if op.function in DTYPE_BYTES:
        return op.function
    if op.function in COMPARISONS:
        return _compared(op, [dtypes[a.array] for a in op.sources])
    target = arithmetic(dtypes[op.target.array])
    return "i64" if target == "bool" and op.function not in ("", "select", *LOGICAL) else target


def _compared(op: Op, reads: list[str]) -> str:
    numbers = [o.value for o in op.operands if isinstance(o, Number)]
    wanted = [arithmetic(d) for d in reads]
    whole = not any(d in FLOATS for d in wanted)
    if whole and any(isinstance(n, float) and math.isfinite(n) for n in numbers):
        wanted.append("f64")
    elif whole and (any(isinstance(o, Affine) for o in op.operands) or not wanted):
        wanted.append("i64")
    for dtype in _COMMON:
        fitting = dtype in FLOATS or all(_fits(n, dtype) for n in numbers)
        if fitting and all(holds(dtype, w) for w in wanted):
            return dtype
    raise ValueError(f"{' and '.join(dict.fromkeys(wanted))} are held by no one dtype")


def _fits(number: int | float, dtype: str) -> bool:
    if not math.isfinite(number):
        return not math.isnan(number)  # infinities stand for the extreme values
    low, high = extremes(dtype)
    return number == int(number) and low <= number <= high


def dtype_fault(op: Op, dtypes: Mapping[str, str]) -> tuple[str, str] | None:
    """Why an operation's mix of dtypes is refused, and what to do; None where it is sound."""
    target = dtypes[op.target.array]
    if op.function in DTYPE_BYTES:
        if not holds(target, op.function):
            message = f"{op.target.array} is {target}, which does not hold every {op.function}"
            return message, f"Convert to {target}, or give {op.target.array} the dtype {op.function}."
        return _number_fault(op.operands[0], op.function)
    try:
        computed = compute_dtype(op, dtypes)
    except ValueError as error:
        return str(error), "Convert one operand in a line of its own, such as: t[{0}] = f64(x[{0}])"
    if computed in FLOATS:
        for operand in op.operands:
            fault = _number_fault(operand, computed)
            if fault is not None:
                return fault
    if op.function in COMPARISONS:
        return None
    if op.function in (*LOGICAL, *SHIFTS) and (
        computed in FLOATS or (target == "bool" and op.function in SHIFTS)
    ):
        kinds = "integers" if op.function in SHIFTS else "integers and of bool"
        message = f"{op.function} is a function of {kinds}, and {op.target.array} is {target}"
        return message, "Compute it in i32, and convert in lines of their own, such as: i[{0}] = i32(x[{0}])"
    operands = op.operands[1:] if op.function == "select" else op.operands
    for operand in operands:
        if isinstance(operand, Access):
            dtype = dtypes[operand.array]
            # What is computed for a bool is compared with 0: whole numbers keep what matters there.
            if holds(target, dtype) or (
                target == "bool" and op.function not in ("", *LOGICAL) and dtype in INTEGERS
            ):
                continue
            return (
                f"{operand.array} is {dtype}, and {target}, the dtype of {op.target.array}, "
                "does not hold all its values",
                f"Convert it: {op.target} = {target}({operand}), in a line of its own where there is "
                "another function.",
            )
        fault = _number_fault(operand, target)
        if fault is not None:
            return fault
    if op.function in OF_REALS and computed not in FLOATS:
        message = f"{op.function} is a function of floating-point numbers, and {op.target.array} is {target}"
        return message, "Compute it in f32, and convert the result in a line of its own."
    return None


def _number_fault(operand: Operand, dtype: str) -> tuple[str, str] | None:
    if not isinstance(operand, Number):
        return None
    if dtype in FLOATS:
        if not math.isfinite(operand.value) or abs(operand.value) < BEYOND[arithmetic(dtype)]:
            return None
        infinity = "-inf" if operand.value < 0 else "inf"
        return f"{operand} goes beyond f32", f"Write {infinity}, or compute in f64."
    if _fits(operand.value, "i64" if dtype == "bool" else dtype):
        return None
    least, most = extremes(dtype)
    remedy = f"Write a whole number from {least} to {most}, or compute in f32."
    return f"{operand} is no value of {dtype}", remedy


@fact
def dtypes_of(program: Program) -> dict[str, str]:
    """The dtype of each array."""
    return {array: buffer.dtype for array, buffer in program.buffer_of.items()}


def reaching_integers(program: Program) -> frozenset[str]:
    """Floating-point arrays whose values go on into an integer one, into a conversion or a comparison; or are
    asked whether they are infinite or NaN, which rounding decides."""
    dtypes = dtypes_of(program)
    reaching: set[str] = set()
    while True:
        more = {
            access.array
            for leaf in program.leaves
            if dtypes[leaf.op.target.array] not in FLOATS
            or leaf.op.target.array in reaching
            or leaf.op.function in ("isnan", "isinf")
            for access in leaf.op.reads
            if dtypes[access.array] in FLOATS
        } - reaching
        if not more:
            return frozenset(reaching)
        reaching |= more


def inexact_integers(program: Program) -> frozenset[str]:
    """Integer arrays made of floating-point numbers whose last bit hangs on how they are computed.

    Sums in another order, a product and a sum in one instruction, and functions such as exp: a value near
    the border between two whole numbers may fall on either side.
    """
    dtypes = dtypes_of(program)
    products = {leaf.op.target.array for leaf in program.leaves if leaf.op.function == "*"}
    doubtful: set[str] = set()
    while True:
        more: set[str] = set()
        for leaf in program.leaves:
            op, sources = leaf.op, {a.array for a in leaf.op.reads}
            target = op.target.array
            if dtypes[target] in FLOATS:
                exact = op.function in _SETTLED or (op.function in ("+", "-") and not sources & products)
                if not exact or op.accumulate in ("+", "*") or sources & doubtful:
                    more.add(target)
            elif sources & doubtful:
                more.add(target)
        if more <= doubtful:
            return frozenset(a for a in doubtful if dtypes[a] not in FLOATS)
        doubtful |= more
