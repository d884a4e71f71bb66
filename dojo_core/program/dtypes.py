"""The dtypes: what each holds, in which one an operation is computed, and which mixes are refused.

An operand is read exactly; the operation is computed in the dtype of its target (f16 and bf16: in f32, and
rounded when written); so the target must hold every value of each operand's dtype. Where it does not, the
text says so with a conversion, an operation of its own: ``q[{0}] = i8(r[{0}])``.

Floating-point numbers of eight bits and fewer and integers of four and two are stored and converted, not
computed in: what writes them is a conversion to them, or a copy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from dojo_core.program.affine import Affine
from dojo_core.program.minifloats import MINIFLOATS, to_minifloat
from dojo_core.program.nodes import fact, number_text
from dojo_core.program.tree import DTYPE_BYTES, Access, Number, Op, Operand, Program

FLOATS = ("f64", "f32", "f16", "bf16")
HALVES = ("f16", "bf16")  # stored in 16 bits, computed in f32, rounded when they are written
STORAGE_FLOATS = tuple(MINIFLOATS)
STORAGE_INTEGERS = ("i4", "u4", "i2", "u2")
STORAGE = (*STORAGE_FLOATS, *STORAGE_INTEGERS)
NARROW_FLOATS = (*HALVES, *STORAGE_FLOATS)  # computed in f32
UNSIGNED = ("u64", "u32", "u16", "u8")
INTEGERS = ("i64", "i32", "i16", "i8", *UNSIGNED)
ARITHMETIC = (*FLOATS, *INTEGERS, "bool")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "isnan", "isinf")  # 0 or 1, whatever the target's dtype
KEYS = ("maxkey", "minkey")  # an element and where it stood as one integer, whose order has both
# What keys of each dtype are made of; what one of these holds becomes that first.
KEY_ELEMENTS = {"i64": ("f32", "i32", "u32"), "i128": ("f64", "i64", "u64")}
OF_KEYS = ("keyindex", "keyvalue")
OF_BITS = (*KEYS, *OF_KEYS, "bitcast")  # which see a number as bits
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
_SETTLED = {"", "*", "neg", "abs", "sign", *TO_WHOLE, "fmod", "max", "min", "select", "sqrt", "keyvalue",
            *DTYPE_BYTES}  # fmt: skip

NUMPY_TYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0fnu": "float8_e8m0fnu", "f6e2m3fn": "float6_e2m3fn",
    "f6e3m2fn": "float6_e3m2fn", "f4e2m1fn": "float4_e2m1fn", "i4": "int4", "u4": "uint4", "i2": "int2",
    "u2": "uint2",
}  # fmt: skip
"""What each is called in Python: NumPy and PyTorch share these names, down to eight bits; bfloat16 and what
is only stored come to NumPy from the package ml_dtypes."""

# Bits of the numbers that a dtype holds without rounding: whole numbers up to 2**bits.
_WHOLE_BITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
# Numbers from here on are infinite once rounded to the dtype.
BEYOND = {"f64": math.inf, "f32": 3.4028235677973366e38}
# Dtypes that C has arithmetic in, from narrow to wide, signed ones first.
_COMMON = ("bool", "u8", "i8", "i16", "u16", "i32", "u32", "f32", "i64", "u64", "f64")


def extremes(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype (bool: 0 and 1)."""
    if dtype == "bool":
        return 0, 1
    bits = int(dtype[1:])
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@cache
def holds(wide: str, narrow: str) -> bool:
    """Is every value of ``narrow`` one of ``wide``, so that what is computed in that takes it as it is?"""
    if wide == narrow:
        return True
    if wide in STORAGE or "i128" in (wide, narrow):
        return False
    if narrow in STORAGE_FLOATS:  # f16 has as many exponents as f8e5m2, bf16 as f8e8m0fnu
        return wide in FLOATS and (wide, narrow) != ("f16", "f8e8m0fnu")
    if narrow in FLOATS:
        return wide == "f64" or (wide == "f32" and narrow != "f64")
    low, high = extremes(narrow)
    if wide in FLOATS:
        return max(-low, high) <= 1 << _WHOLE_BITS[wide]
    least, most = extremes(wide)
    return least <= low and high <= most


def arithmetic(dtype: str) -> str:
    """The dtype that a processor computes in: f32 for f16 and bf16, and f32, i8 or u8 for what is only
    stored."""
    if dtype in STORAGE_INTEGERS:
        return f"{dtype[0]}8"
    return "f32" if dtype in NARROW_FLOATS else dtype


def compute_dtype(op: Op, dtypes: Mapping[str, str]) -> str:
    """The dtype of an operation's function; ``dtypes`` has that of each array.

    Raises ValueError where a comparison's operands have none in common.
    """
    if op.function in DTYPE_BYTES:
        return op.function
    if op.function in COMPARISONS:
        return _compared(op, [dtypes[a.array] for a in op.sources])
    if op.function == "bitcast":
        return dtypes[op.target.array]
    target = arithmetic(dtypes[op.target.array])
    if op.function == "keyvalue":
        elements = KEY_ELEMENTS[key_read(op, dtypes)]
        return target if target in elements else elements[0]
    return "i64" if target == "bool" and op.function not in ("", "select", *LOGICAL) else target


def operand_dtype(op: Op, number: int, computed: str, dtypes: Mapping[str, str]) -> str:
    """The dtype in which a function takes an operand: the one that it is computed in, but for keys."""
    if op.function in KEYS:
        return "i64" if number else key_element(op, computed, dtypes)
    if op.function == "bitcast":
        return dtypes[op.sources[0].array]
    return key_read(op, dtypes) if op.function in OF_KEYS else computed


def key_element(op: Op, key: str, dtypes: Mapping[str, str]) -> str:
    """The dtype in which keys of a dtype compare an operation's element: its own, or the floating-point one
    that holds it."""
    element, elements = op.operands[0], KEY_ELEMENTS[key]
    own = dtypes[element.array] if isinstance(element, Access) else ""
    return own if own in elements else elements[0]


def key_of(dtype: str) -> tuple[str, str]:
    """The dtype of the shortest keys of elements of a dtype, and that in which these compare them."""
    return next(
        (key, dtype if dtype in elements else elements[0])
        for key, elements in KEY_ELEMENTS.items()
        if dtype in elements or holds(elements[0], dtype)
    )


def key_read(op: Op, dtypes: Mapping[str, str]) -> str:
    """The dtype of the key that something is taken out of."""
    key = op.operands[0]
    return "i128" if isinstance(key, Access) and dtypes[key.array] == "i128" else "i64"


def _compared(op: Op, reads: list[str]) -> str:
    numbers = [o.value for o in op.operands if isinstance(o, Number)]
    forms = [o for o in op.operands if isinstance(o, Affine)]
    wanted = [arithmetic(d) for d in reads]
    whole = not any(d in FLOATS for d in wanted)
    if whole and any(isinstance(n, float) and math.isfinite(n) for n in numbers):
        wanted.append("f64")
    elif whole and (forms or not wanted):
        wanted.append("u64" if "u64" in wanted and all(map(_never_negative, forms)) else "i64")
    for dtype in _COMMON:
        fitting = dtype in FLOATS or all(_fits(n, dtype) for n in numbers)
        if fitting and all(holds(dtype, w) for w in wanted):
            return dtype
    beside = [number_text(n) for n in numbers if not _fits(n, wanted[0])] if whole else []
    raise ValueError(f"{' and '.join(dict.fromkeys([*wanted, *beside]))} are held by no one dtype")


def _never_negative(form: Affine) -> bool:
    """Is an iterator expression at least 0 whatever its iterators are?"""
    return form.const >= 0 and all(coefficient >= 0 for _, coefficient in form.terms)


def _unlike_remedy(op: Op, dtypes: Mapping[str, str]) -> str:
    """What to do where no one dtype holds both sides of a comparison."""
    reads = [a for a in op.reads if dtypes[a.array] == "u64"]
    if reads and not any(dtypes[a.array] in FLOATS for a in op.reads):
        converted = Access("t", reads[0].index)
        return (
            f"Convert it in a line of its own, {converted} = i64({reads[0]}) with t in i64, "
            "if its values stay below 2**63."
        )
    return "Convert one operand in a line of its own, such as: t[{0}] = f64(x[{0}])"


def _fits(number: int | float, dtype: str) -> bool:
    if not math.isfinite(number):
        return not math.isnan(number)  # infinities stand for the extreme values
    low, high = extremes(dtype)
    return number == int(number) and low <= number <= high


def dtype_fault(op: Op, dtypes: Mapping[str, str]) -> tuple[str, str] | None:
    """Why an operation's mix of dtypes is refused, and what to do; None where it is sound."""
    target = dtypes[op.target.array]
    if op.function == "bitcast":
        return _bitcast_fault(op, target, dtypes)
    if op.function in (*KEYS, *OF_KEYS):
        return _key_fault(op, dtypes)
    if "i128" in (target, *(dtypes[a.array] for a in op.sources)):
        return _wide_key_fault(op, target, dtypes)
    if target in STORAGE and not _stores(op, target, dtypes):
        message = f"{target}, the dtype of {op.target.array}, is stored and converted, not computed in"
        wider = "i32" if target in STORAGE_INTEGERS else "f32"
        return message, f"Compute in {wider}, and convert in a line of its own: {op.target} = {target}(...)."
    if op.function in DTYPE_BYTES:
        if not holds(target, op.function):
            message = f"{op.target.array} is {target}, which does not hold every {op.function}"
            return message, f"Convert to {target}, or give {op.target.array} the dtype {op.function}."
        return _number_fault(op.operands[0], op.function)
    try:
        computed = compute_dtype(op, dtypes)
    except ValueError as error:
        return str(error), _unlike_remedy(op, dtypes)
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
            # What is computed for a bool is compared with 0: i64 keeps what matters there.
            whole = dtype in INTEGERS and holds("i64", dtype)
            if holds(target, dtype) or (target == "bool" and whole and op.function not in ("", *LOGICAL)):
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
    if op.function == "tf32" and computed != "f32":
        message = f"tf32 rounds numbers of f32, and {op.target.array} is {target}"
        return message, "Compute it in f32, and convert the result in a line of its own."
    if op.function in OF_REALS and computed not in FLOATS:
        message = f"{op.function} is a function of floating-point numbers, and {op.target.array} is {target}"
        return message, "Compute it in f32, and convert the result in a line of its own."
    return None


def _key_fault(op: Op, dtypes: Mapping[str, str]) -> tuple[str, str] | None:
    array, target = op.target.array, dtypes[op.target.array]
    given: tuple[str, ...] = ("i64",)
    if op.function == "keyvalue":
        given = KEY_ELEMENTS[key_read(op, dtypes)]
    elif op.function in KEYS:
        given = tuple(KEY_ELEMENTS)
    if target not in given and not (given[0] == "f32" and target == "f64"):
        named = f"{', '.join(given[:-1])} or {given[-1]}" if given[1:] else given[0]
        message = f"{op.function} gives an {named}, and {array} is {target}"
        return message, f"Give {array} the dtype {named}, and convert what comes of it in a line of its own."
    if target == "i128" and op.accumulate in ("+", "*"):
        return f"{array} is i128, a key, of which nothing is computed", f"Write {op.function[:3]}=."
    for number, operand in enumerate(op.operands):
        wanted = operand_dtype(op, number, target, dtypes)
        if isinstance(operand, Access) and not holds(wanted, dtypes[operand.array]):
            have = dtypes[operand.array]
            message = f"{operand.array} is {have}, and {op.function} takes an {wanted} there"
            if op.function in KEYS and not number and target == "i64":
                message = f"{operand.array} is {have}, of which there are no keys in i64"
                return message, f"Give {array} the dtype i128."
            return message, f"Convert it in a line of its own, such as: t[{{0}}] = {wanted}({operand})"
        fault = _number_fault(operand, wanted)
        if fault is not None:
            return fault
    return None


def bitcast_dtypes() -> dict[int, list[str]]:
    """The dtypes whose bits are seen as each other's, by their bytes."""
    sized: dict[int, list[str]] = {}
    for dtype in (*FLOATS, *INTEGERS):
        sized.setdefault(DTYPE_BYTES[dtype], []).append(dtype)
    return sized


def _bitcast_fault(op: Op, target: str, dtypes: Mapping[str, str]) -> tuple[str, str] | None:
    source = op.operands[0]
    if not isinstance(source, Access):
        return f"bitcast takes an element of an array, not {source}", "Write it to an array in a line before."
    if op.accumulate:
        return "bitcast is a line of its own", f"Write it to a temporary, and then {op.accumulate}= that."
    have = dtypes[source.array]
    if have != target and any({have, target} <= set(alike) for alike in bitcast_dtypes().values()):
        return None
    message = f"{source.array} is {have}, whose bits are none of {target}, the dtype of {op.target.array}"
    alike = [d for d in bitcast_dtypes().get(DTYPE_BYTES[have], ()) if d != have and have in ARITHMETIC]
    if not alike or have == "bool":
        return message, "Bits are seen of floating-point numbers of 16 bits and more, and of integers."
    return message, f"Those of {have} are bits of {', '.join(alike)}."


def _wide_key_fault(op: Op, target: str, dtypes: Mapping[str, str]) -> tuple[str, str] | None:
    """Keys of 128 bits are copied, and the greatest or least of them found: there is nothing else to them."""
    copied = all(
        dtypes[o.array] == "i128" if isinstance(o, Access) else isinstance(o, Number) and math.isinf(o.value)
        for o in op.operands
    )
    if (
        target == "i128"
        and copied
        and op.function in ("", "max", "min")
        and op.accumulate in ("", "max", "min")
    ):
        return None
    if target == "i128":
        message = f"{op.target.array} is i128, which has keys alone"
        return message, "Write one with maxkey or minkey, a copy of one, inf or -inf; all else in i64."
    key = next(a for a in op.sources if dtypes[a.array] == "i128")
    message = f"{key.array} is i128, a key, of which nothing is computed"
    return message, f"Take out its place with keyindex({key}), or its element with keyvalue({key})."


def _stores(op: Op, target: str, dtypes: Mapping[str, str]) -> bool:
    """Is an operation a conversion, or a copy of what has the same dtype, or one of two such?"""
    if op.accumulate or op.function not in ("", "select", *DTYPE_BYTES):
        return False
    copied = () if op.function in DTYPE_BYTES else op.operands[1:] or op.operands
    return all(
        dtypes[each.array] == target
        if isinstance(each, Access)
        else isinstance(each, Number) and _has(target, each.value)
        for each in copied
    )


def _has(dtype: str, number: int | float) -> bool:
    """Is a number one of a dtype that is only stored?"""
    if dtype in STORAGE_INTEGERS:
        return _fits(number, dtype)
    value = float(to_minifloat(number, dtype))
    return value == number or (math.isnan(value) and math.isnan(number))


def _number_fault(operand: Operand, dtype: str) -> tuple[str, str] | None:
    if not isinstance(operand, Number):
        return None
    if dtype in (*FLOATS, *STORAGE_FLOATS):
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
