"""The C of integers and of conversions between dtypes, as the interpreter defines them.

Integers wrap around: signed overflow is undefined in C, so arithmetic goes through the unsigned twin of a
type. A floating-point number becomes an integer towards zero, the nearest one there is beyond the range, and
0 where it is NaN. f16 and bf16 are stored as 16 bits and computed in f32.
"""

from __future__ import annotations

from dojo_core.program.dtypes import (
    FLOATS,
    INTEGERS,
    NARROW_FLOATS,
    STORAGE_INTEGERS,
    UNSIGNED,
    arithmetic,
    extremes,
)
from dojo_core.program.tree import DTYPE_BYTES

SAME_SIZE = {"f32": "i32", "f64": "i64"}
LOGICAL = {"and": "&", "or": "|", "xor": "^"}  # as C writes them
_SUFFIX = {"i64": "ll", "u64": "ull", "u32": "u"}  # of literals


def vector_type(dtype: str, lanes: int) -> str:
    """The C name of a vector; those of bool are of bytes."""
    return f"{'u8' if dtype == 'bool' else dtype}x{lanes}"


def unsigned(dtype: str) -> str:
    """The unsigned type of the same size: what bits are moved in."""
    return f"u{8 * DTYPE_BYTES[dtype]}"


# ---------------------------------------------------------------------------- integers


def integer_functions(element: str, lanes: int) -> str:
    """max, min, abs, and arithmetic that wraps, of a scalar (``lanes`` 1) or a vector."""
    if lanes == 1:
        return "".join(scalar_integer(element).values())
    name, twin = vector_type(element, lanes), vector_type(unsigned(element), lanes)
    text = ""
    for function, sign in (("max", ">"), ("min", "<")):
        text += (
            f"INLINE {name} {name}_{function}({name} a, {name} b) {{\n"
            f"    {name} m = ({name})(a {sign} b);\n    return (a & m) | (b & ~m);\n}}\n"
        )
    for function, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*")):
        text += (
            f"INLINE {name} {name}_{function}({name} a, {name} b) "
            f"{{ return ({name})(({twin})a {sign} ({twin})b); }}\n"
        )
    text += f"INLINE {name} {name}_negate({name} x) {{ return ({name})-({twin})x; }}\n"
    for function, sign in LOGICAL.items():
        text += f"INLINE {name} {name}_{function}({name} a, {name} b) {{ return a {sign} b; }}\n"
    least, most = extremes(element)[0], 8 * DTYPE_BYTES[element] - 1
    some = f"    {name} some = ({name})(({twin})b <= {most}); /* fewer than there are bits */\n"
    behind = "(b & some)" if not least else f"((b & some) | ({most} & ~some))"
    shifted = f"(a >> {behind})" + " & some" * (not least)
    sign = "(x < 0) - (x > 0)" if least else f"({name})(x > 0) & 1"
    text += (
        f"INLINE {name} {name}_not({name} x) {{ return ~x; }}\n"
        f"INLINE {name} {name}_shl({name} a, {name} b) {{\n"
        f"{some}    return ({name})(({twin})a << ({twin})(b & some)) & some;\n}}\n"
        f"INLINE {name} {name}_shr({name} a, {name} b) {{\n{some}    return {shifted};\n}}\n"
        f"INLINE {name} {name}_sign({name} x) {{ return {sign}; }}\n"
    )
    value = "x" if element in UNSIGNED else f"{name}_max(x, {name}_negate(x))"
    return text + f"INLINE {name} {name}_abs({name} x) {{ return {value}; }}\n"


def scalar_integer(element: str) -> dict[str, str]:
    """The functions of one integer type by name; ``negate`` comes before those that use it."""
    twin, least = unsigned(element), extremes(element)[0]
    head = f"INLINE {element} {element}"
    functions = {
        "max": f"{head}_max({element} a, {element} b) {{ return a > b ? a : b; }}\n",
        "min": f"{head}_min({element} a, {element} b) {{ return a < b ? a : b; }}\n",
        "negate": f"{head}_negate({element} x) {{ return ({element})(0 - ({twin})x); }}\n",
    }
    # Unsigned integers shorter than int are multiplied as int, beyond which 16 bits would go.
    wide = "u32" if DTYPE_BYTES[element] < 4 else twin
    for function, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*")):
        functions[function] = (
            f"{head}_{function}({element} a, {element} b) "
            f"{{ return ({element})(({wide})a {sign} ({wide})b); }}\n"
        )
    for function, sign in LOGICAL.items():
        functions[function] = (
            f"{head}_{function}({element} a, {element} b) {{ return ({element})(a {sign} b); }}\n"
        )
    functions["not"] = f"{head}_not({element} x) {{ return ({element})~x; }}\n"
    # A count that is negative, or of all bits and more, leaves none but the sign.
    most = 8 * DTYPE_BYTES[element] - 1
    functions["shl"] = (
        f"{head}_shl({element} a, {element} b) "
        f"{{ return ({twin})b <= {most} ? ({element})(({wide})a << b) : 0; }}\n"
    )
    beyond = f"a >> (({twin})b <= {most} ? b : {most})" if least else f"b <= {most} ? a >> b : 0"
    functions["shr"] = f"{head}_shr({element} a, {element} b) {{ return ({element})({beyond}); }}\n"
    negative = " - (x < 0)" if least else ""
    functions["sign"] = f"{head}_sign({element} x) {{ return ({element})((x > 0){negative}); }}\n"
    magnitude = f"x < 0 ? {element}_negate(x) : x" if least else "x"
    functions["abs"] = f"{head}_abs({element} x) {{ return {magnitude}; }}\n"
    # By 0 it is 0; the least value by -1 wraps around.
    wrapped = f"b == -1 ? {element}_negate(a) : " if least else ""
    functions["divide"] = (
        f"{head}_divide({element} a, {element} b) {{ return b == 0 ? 0 : {wrapped}a / b; }}\n"
    )
    none = "b == 0 || b == -1" if least else "b == 0"
    functions["fmod"] = (
        f"{head}_fmod({element} a, {element} b) {{ return {none} ? 0 : ({element})(a % b); }}\n"
    )
    return functions


# ---------------------------------------------------------------------------- scalars


def scalar_conversions(truncates: bool = False) -> str:
    """``i8_from_f32`` and its kin; ``truncates``: by the functions of ``truncation``."""
    return "".join(to_integer(n, w, truncates) for w in ("f32", "f64") for n in INTEGERS)


def to_integer(narrow: str, wide: str, truncates: bool = False) -> str:
    """``i8_from_f32``, for one."""
    least, most = (_bound(value, wide) for value in extremes(narrow))
    low, high = (integer_literal(value, narrow) for value in extremes(narrow))
    inside = _truncated(narrow, wide) if truncates else f"({narrow})x"
    return (
        f"INLINE {narrow} {narrow}_from_{wide}({wide} x) {{\n"
        f"    return x >= {most} ? {high} : x > {least} ? {inside} : x != x ? 0 : {low};\n}}\n"
    )


def _truncated(narrow: str, wide: str) -> str:
    """C that truncates ``x``, which lies within ``narrow``, by the functions of ``truncation``."""
    if narrow == "u64":  # the upper half is beyond i64: 2**63 is taken off and put back
        upper = "(u64)f64_truncate(x - 9223372036854775808.0) + 9223372036854775808ull"
        return f"x >= 9223372036854775808.0 ? {upper} : (u64)f64_truncate(x)"
    through = "f64" if narrow in ("i64", "u32") else wide  # whose integers hold all of these
    return f"({narrow}){through}_truncate(x)"


def truncation(element: str, lanes: int) -> str:
    """``T_truncate``, towards zero to the integers of a number's own size, where no instruction may do it:
    the magnitude is rounded to the nearest integer, and what that is above it taken back."""
    integers = SAME_SIZE[element]
    if lanes == 1:
        return (
            f"INLINE {integers} {element}_truncate({element} x) {{\n"
            f"    {element} a = {element}_abs(x);\n"
            f"    {integers} k = ({integers}){element}_round(a);\n"
            f"    k -= ({element})k > a;\n    return x < 0 ? -k : k;\n}}\n"
        )
    name, whole = vector_type(element, lanes), vector_type(integers, lanes)
    return (
        f"INLINE {whole} {name}_truncate({name} x) {{\n"
        f"    {name} a = {name}_abs(x);\n"
        f"    {whole} k = __builtin_convertvector({name}_round(a), {whole}), below = x < 0;\n"
        f"    k += {name}_convert(k) > a; /* true is -1 in a lane */\n    return (k ^ below) - below;\n}}\n"
    )


def _bound(value: int, dtype: str) -> str:
    """A bound in a floating-point type, which may be its neighbour: 2147483647 is 2147483648.0f."""
    return f"{float(value)!r}{'f' if dtype == 'f32' else ''}"


def integer_literal(value: int, dtype: str) -> str:
    """A whole number in C."""
    if dtype == "i128":  # of which C writes no number: the extremes alone
        return "(-(i128)(~(u128)0 >> 1) - 1)" if value < 0 else "(i128)(~(u128)0 >> 1)"
    if value == -(2**63):
        return "(-__INT64_MAX__ - 1)"
    if value == -(2**31):
        return "(-2147483647 - 1)"
    return f"{value}{_SUFFIX.get(dtype, '')}"


def scalar_conversion(text: str, have: str, want: str) -> str:
    """C that converts a scalar expression; a bool is a byte of 0 or 1."""
    if have == want:
        return text
    if have in STORAGE_INTEGERS:
        wide = arithmetic(have)
        return scalar_conversion(f"{wide}_from_{have}({text})", wide, want)
    if want == "bool":
        return f"({text}) != 0" if have not in NARROW_FLOATS else f"f32_from_{have}({text}) != 0"
    if have in NARROW_FLOATS:
        return scalar_conversion(f"f32_from_{have}({text})", "f32", want)
    if want in NARROW_FLOATS:
        return f"{want}_from_f32({scalar_conversion(text, have, 'f32')})"
    if want in STORAGE_INTEGERS and have not in FLOATS:
        wide = arithmetic(want)
        return f"{want}_from_{wide}({scalar_conversion(text, have, wide)})"
    if have in FLOATS and want not in FLOATS:
        return f"{want}_from_{have}({text})"
    return f"({want}){text}" if _is_one_term(text) else f"({want})({text})"


def _is_one_term(text: str) -> bool:
    """May a cast stand directly before it?"""
    depth = 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 and c in "+-*/<>=!? ":
            return False
    return not text.startswith("(")


# ---------------------------------------------------------------------------- vectors


def float_bounds(name: str, element: str) -> str:
    """``T_within``: clipped to a range, NaN as 0; a maximum of NaN would be NaN."""
    return (
        f"INLINE {name} {name}_within({name} x, {element} low, {element} high) {{\n"
        f"    {name} c = {name}_least({name}_splat(high), {name}_most({name}_splat(low), x));\n"
        f"    return {name}_select(x == x, c, {name}_splat(0));\n}}\n"
    )


def wide_integers(element: str, lanes: int, truncates: bool = False) -> str:
    """Conversions to the integers whose greatest value the type does not hold: f32 to i32, f64 to i64.

    ``lanes`` of f64 to i32 need no function, and f32 go to i64 by way of f64. ``truncates``: by the functions
    of ``truncation``.
    """
    integers = SAME_SIZE[element]
    name, whole = vector_type(element, lanes), vector_type(integers, lanes)
    bound = _bound(extremes(integers)[1], element)
    most = "__INT32_MAX__" if integers == "i32" else "__INT64_MAX__"
    value = f"({name})(({whole})x & inside)"
    converted = f"{name}_truncate({value})" if truncates else f"__builtin_convertvector({value}, {whole})"
    # The least of the integers has no magnitude among them.
    inside, below = (">", "<=") if truncates else (">=", "<")
    return (
        f"INLINE {whole} {name}_{integers}({name} x) {{\n"
        f"    {whole} above = x >= {bound}, inside = (x {inside} -{bound}) & ~above;\n"
        f"    {whole} y = {converted};\n"
        f"    return y | (above & {most}) | ((x {below} -{bound}) & (-{most} - 1));\n}}\n"
    )


def wide_unsigned(element: str, lanes: int, truncates: bool = False) -> str:
    """Conversions to the unsigned integers of a type's own size: what is beyond the signed ones is converted
    less 2**31 (2**63), which is exact there."""
    integers = SAME_SIZE[element]
    name, whole, twin = (vector_type(d, lanes) for d in (element, integers, unsigned(integers)))
    bits = 8 * DTYPE_BYTES[element]
    half, bound = (_bound(2**k, element) for k in (bits - 1, bits))
    converted = f"{name}_truncate(v)" if truncates else f"__builtin_convertvector(v, {whole})"
    return (
        f"INLINE {twin} {name}_{unsigned(integers)}({name} x) {{\n"
        f"    {whole} above = x >= {bound}, upper = (x >= {half}) & ~above, inside = (x > 0) & ~above;\n"
        f"    {name} v = ({name})(({whole})x & inside) - ({name})(({whole}){name}_splat({half}) & upper);\n"
        f"    return (({twin}){converted} + (({twin})upper << {bits - 1})) | ({twin})above;\n}}\n"
    )


def vector_conversion(
    text: str, have: str, want: str, lanes: int, resized: bool = False, truncates: bool = False
) -> str:
    """C that converts a vector expression to as many lanes of another dtype.

    ``resized``: integers of one size become those of another by functions (``i8x4_to_i32``), not by what all
    compilers know; ``truncates``: floats become integers by those of ``truncation``.
    """
    if have == "bool":  # a byte of 0 or 1
        have, want = "u8", "u8" if want == "bool" else want
    if have == want:
        return text
    if have in STORAGE_INTEGERS:
        wide = arithmetic(have)
        whole = f"{vector_type(have, lanes)}_{wide}({text})"
        return vector_conversion(whole, wide, want, lanes, resized, truncates)
    if have in NARROW_FLOATS:
        single = f"{vector_type(have, lanes)}_f32({text})"
        return vector_conversion(single, "f32", want, lanes, resized, truncates)
    if want in NARROW_FLOATS:
        single = vector_conversion(text, have, "f32", lanes, resized, truncates)
        return f"{vector_type('f32', lanes)}_{want}({single})"

    if want in STORAGE_INTEGERS and have not in FLOATS:
        wide = arithmetic(want)
        whole = vector_conversion(text, have, wide, lanes, resized, truncates)
        return f"{vector_type(wide, lanes)}_{want}({whole})"

    def convert(value: str, source: str, dtype: str) -> str:
        if resized and {source, dtype} <= set(INTEGERS) and DTYPE_BYTES[source] != DTYPE_BYTES[dtype]:
            return f"{vector_type(source, lanes)}_to_{dtype}({value})"
        if truncates and source in FLOATS and dtype in INTEGERS:
            whole = f"{vector_type(source, lanes)}_truncate({value})"
            return whole if dtype == SAME_SIZE[source] else convert(whole, SAME_SIZE[source], dtype)
        return f"__builtin_convertvector({value}, {vector_type(dtype, lanes)})"

    if want == "bool":
        signed = f"i{8 * DTYPE_BYTES[have]}"
        true = f"({vector_type(signed, lanes)})(({text}) != 0) & 1"
        return convert(true, signed, "u8") if signed != "i8" else f"({vector_type('u8', lanes)})({true})"
    if have in FLOATS and want in (*INTEGERS, *STORAGE_INTEGERS):
        if DTYPE_BYTES[want] < 4 or (have, want) == ("f64", "i32"):
            least, most = extremes(want)
            low, high = (_bound(v, have) for v in (least, most))
            whole = convert(f"{vector_type(have, lanes)}_within({text}, {low}, {high})", have, "i32")
            return whole if want == "i32" else convert(whole, "i32", arithmetic(want))
        if (have, want) == ("f64", "u32"):
            low, high = (_bound(v, have) for v in extremes(want))
            inside = f"{vector_type(have, lanes)}_within({text}, {low}, {high})"
            return convert(convert(inside, have, "i64"), "i64", want)
        if want in ("i64", "u64") and have == "f32":
            return vector_conversion(convert(text, have, "f64"), "f64", want, lanes, resized, truncates)
        return f"{vector_type(have, lanes)}_{want}({text})"
    if want in FLOATS and have in INTEGERS and DTYPE_BYTES[have] < 4:
        return convert(convert(text, have, "i32"), "i32", want)  # gcc 12 would go lane by lane
    return convert(text, have, want)
