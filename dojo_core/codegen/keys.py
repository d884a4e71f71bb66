"""The C of keys: a number and where it stood as one integer, so that one ``max=`` or ``min=`` finds both.

The upper half orders the numbers, the lower one their places: ``minkey`` keeps twice the place, ``maxkey``
the complement of that, so that the first of equals is the least, or the greatest. The last bit says which of
the two it is. docs/promises.md says what they mean of NaN, zeros and places beyond the lower half.
"""

from __future__ import annotations

from collections.abc import Mapping

from dojo_core.codegen.conversions import integer_literal, vector_conversion, vector_type
from dojo_core.program.dtypes import KEY_ELEMENTS, KEYS, extremes, key_element, key_read
from dojo_core.program.tree import Op

_SAME_SIZE = {"f32": "i32", "u32": "i32", "f64": "i64", "u64": "i64"}  # the upper half of an element's key


def key_suffix(op: Op, dtypes: Mapping[str, str]) -> str:
    """What tells an operation's function from that of i64 keys of f32, behind its name; empty where it is
    none of keys."""
    if op.function in KEYS:
        key = dtypes[op.target.array]
        return _of_elements(key, key_element(op, key, dtypes))
    return _of_key(key_read(op, dtypes)) if op.function == "keyindex" else ""


def _of_elements(key: str, element: str) -> str:
    return "" if (key, element) == ("i64", "f32") else f"_{element}"


def _of_key(key: str) -> str:
    return "" if key == "i64" else f"_{key}"


def scalar_keys() -> dict[str, str]:
    """``i64_maxkey(x, i)`` of f32, ``i128_minkey_u64(x, i)`` of u64 and so on, ``i64_keyindex(k)``,
    ``i64_keyindex_i128(k)``, ``f32_keyvalue(k)``, ``u64_keyvalue(k)`` and so on, by name."""
    functions = {}
    for key, elements in KEY_ELEMENTS.items():
        lower = "u32" if key == "i64" else "u64"
        for name in KEYS:
            for element in elements:
                functions[f"{key}_{name}{_of_elements(key, element)}"] = _scalar_key(
                    key, name, element, lower
                )
        name = f"i64_keyindex{_of_key(key)}"
        functions[name] = (
            f"INLINE i64 {name}({key} k) {{\n"
            f"    {lower} low = ({lower})k;\n    return (i64)((low & 1 ? ~low : low) >> 1);\n}}\n"
        )
        for element in elements:
            functions[f"{element}_keyvalue"] = _scalar_value(key, element)
    return functions


def _signed(whole: str) -> str:
    """All bits but the sign of what is negative, of a float's bits: its own inverse."""
    bits = int(whole[1:]) - 1
    return f"((b >> {bits}) & {integer_literal(2**bits - 1, whole)})"


def _nan(name: str, whole: str) -> str:
    """The upper half of a NaN's key: beyond all others."""
    return integer_literal(extremes(whole)[name == "maxkey"], whole)


def _flipped(value: str, element: str) -> str:
    """The sign bit of an unsigned number turned over, which orders it as a signed one; and back."""
    return f"{value} ^ {integer_literal(2 ** (int(element[1:]) - 1), element)}"


def _scalar_key(key: str, name: str, element: str, lower: str) -> str:
    whole, wide, bits = _SAME_SIZE.get(element, element), f"u{key[1:]}", int(element[1:])
    low = f"~(({lower})i << 1)" if name == "maxkey" else f"({lower})i << 1"
    if element[0] == "f":
        zero = "0.0f" if element == "f32" else "0.0"
        order = (
            f"    union {{ {element} x; {whole} b; }} u = {{x + {zero}}}; /* -0 is +0 */\n"
            f"    {whole} b = u.b;\n    b ^= {_signed(whole)};\n    b = x != x ? {_nan(name, whole)} : b;\n"
        )
    else:
        ordered = f"({whole})({_flipped('x', element)})" if element[0] == "u" else "x"
        order = f"    {whole} b = {ordered};\n"
    return (
        f"INLINE {key} {key}_{name}{_of_elements(key, element)}({element} x, i64 i) {{\n{order}"
        f"    return ({key})(({wide})({key})b << {bits} | ({lower})({low}));\n}}\n"
    )


def _scalar_value(key: str, element: str) -> str:
    whole, bits = _SAME_SIZE.get(element, element), int(element[1:])
    upper = f"({whole})(k >> {bits})"
    head = f"INLINE {element} {element}_keyvalue({key} k) {{"
    if element[0] == "f":
        return (
            f"{head}\n    union {{ {whole} b; {element} x; }} u;\n"
            f"    {whole} b = {upper};\n    u.b = b ^ {_signed(whole)};\n    return u.x;\n}}\n"
        )
    value = upper if element[0] == "i" else _flipped(f"({element})(k >> {bits})", element)
    return f"{head} return {value}; }}\n"


def vector_keys(lanes: int, resized: bool) -> str:
    """Those of i64 keys, of so many lanes; ``resized`` as ``vector_conversion`` takes it."""
    half, whole, bits = (vector_type(d, lanes) for d in ("i32", "i64", "u64"))
    high = vector_conversion("b", "i32", "i64", lanes, resized)
    shifted = vector_conversion("h", "i64", "i32", lanes, resized)
    text = (
        f"INLINE {whole} {whole}_keyindex({whole} k) {{\n"
        f"    {bits} low = ({bits})k;\n"
        f"    return ({whole})(((low ^ -(low & 1)) & 0xffffffffull) >> 1);\n}}\n"
    )
    for element in KEY_ELEMENTS["i64"]:
        kind = vector_type(element, lanes)
        for name in KEYS:
            text += (
                f"INLINE {whole} {whole}_{name}{_of_elements('i64', element)}({kind} x, {whole} i) {{\n"
                f"{vector_order(name, element, lanes)}    {whole} high = {high};\n    return ({whole})"
                f"((({bits})high << 32) | (({vector_place(name, lanes)}) & 0xffffffffull));\n}}\n"
            )
        text += (
            f"INLINE {kind} {kind}_keyvalue({whole} k) {{\n"
            f"    {whole} h = k >> 32;\n    {half} b = {shifted};\n"
            f"    return {vector_element(element, lanes)};\n}}\n"
        )
    return text


def vector_order(name: str, element: str, lanes: int) -> str:
    """Lines that make ``b``, the upper halves of keys, of the elements ``x``."""
    whole = _SAME_SIZE.get(element, element)
    kind = vector_type(whole, lanes)
    if element[0] == "f":
        zero = "0.0f" if element == "f32" else "0.0"
        return (
            f"    {kind} b = ({kind})(x + {zero}), n = ({kind})(x != x);\n"
            f"    b ^= {_signed(whole)};\n    b = (b & ~n) | (n & {_nan(name, whole)});\n"
        )
    return f"    {kind} b = ({kind})({_flipped('x', element) if element[0] == 'u' else 'x'});\n"


def vector_place(name: str, lanes: int) -> str:
    """The lower halves of keys, of the places ``i``, in 64 bits."""
    place = f"({vector_type('u64', lanes)})i << 1"
    return place if name == "minkey" else f"~({place})"


def vector_element(element: str, lanes: int) -> str:
    """The elements that the upper halves of keys, ``b``, were made of."""
    kind, whole = vector_type(element, lanes), _SAME_SIZE.get(element, element)
    if element[0] == "f":
        return f"({kind})(b ^ {_signed(whole)})"
    return _flipped(f"({kind})b", element) if element[0] == "u" else f"({kind})b"
