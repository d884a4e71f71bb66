"""The C of keys: a number and where it stood as one i64, so that one ``max=`` or ``min=`` finds both.

The upper half orders the numbers, the lower one their places: ``minkey`` keeps twice the place, ``maxkey``
the complement of that, so that the first of equals is the least, or the greatest. The last bit says which of
the two it is. docs/promises.md says what they mean of NaN, zeros and places beyond 31 bits.
"""

from __future__ import annotations

from dojo_core.codegen.conversions import vector_conversion, vector_type

NAN = {"maxkey": "2147483647", "minkey": "(-2147483647 - 1)"}
_SIGNED = "((b >> 31) & 2147483647)"  # all bits but the sign of what is negative: its own inverse


def scalar_keys() -> dict[str, str]:
    """``i64_maxkey(x, i)``, ``i64_minkey(x, i)``, ``i64_keyindex(k)`` and ``f32_keyvalue(k)``, by name."""
    functions = {}
    for name, nan in NAN.items():
        low = "~((u32)i << 1)" if name == "maxkey" else "(u32)i << 1"
        functions[f"i64_{name}"] = (
            f"INLINE i64 i64_{name}(f32 x, i64 i) {{\n"
            "    union { f32 x; i32 b; } u = {x + 0.0f}; /* -0 is +0 */\n"
            f"    i32 b = u.b;\n    b ^= {_SIGNED};\n    b = x != x ? {nan} : b;\n"
            f"    return (i64)((u64)(i64)b << 32 | (u32)({low}));\n}}\n"
        )
    functions["i64_keyindex"] = (
        "INLINE i64 i64_keyindex(i64 k) {\n"
        "    u32 low = (u32)k;\n    return (i64)((low & 1 ? ~low : low) >> 1);\n}\n"
    )
    functions["f32_keyvalue"] = (
        "INLINE f32 f32_keyvalue(i64 k) {\n    union { i32 b; f32 x; } u;\n"
        f"    i32 b = (i32)(k >> 32);\n    u.b = b ^ {_SIGNED};\n    return u.x;\n}}\n"
    )
    return functions


def vector_keys(lanes: int, resized: bool) -> str:
    """The same of so many lanes; ``resized`` as ``vector_conversion`` takes it."""
    single, half, whole, bits = (vector_type(d, lanes) for d in ("f32", "i32", "i64", "u64"))
    text = ""
    for name, nan in NAN.items():
        low = f"({bits})i << 1" if name == "minkey" else f"~(({bits})i << 1)"
        text += (
            f"INLINE {whole} {whole}_{name}({single} x, {whole} i) {{\n"
            f"    {half} b = ({half})(x + 0.0f), n = x != x;\n"
            f"    b ^= {_SIGNED};\n    b = (b & ~n) | (n & {nan});\n"
            f"    {whole} high = {vector_conversion('b', 'i32', 'i64', lanes, resized)};\n"
            f"    return ({whole})((({bits})high << 32) | (({low}) & 0xffffffffull));\n}}\n"
        )
    shifted = vector_conversion("h", "i64", "i32", lanes, resized)
    return text + (
        f"INLINE {whole} {whole}_keyindex({whole} k) {{\n"
        f"    {bits} low = ({bits})k;\n"
        f"    return ({whole})(((low ^ -(low & 1)) & 0xffffffffull) >> 1);\n}}\n"
        f"INLINE {single} {single}_keyvalue({whole} k) {{\n"
        f"    {whole} h = k >> 32;\n    {half} b = {shifted};\n    b ^= {_SIGNED};\n"
        f"    return ({single})b;\n}}\n"
    )
