"""The C of f16 and bf16, which are stored as 16 bits and computed in f32: conversions to and from it."""

from __future__ import annotations

from dojo_core.codegen.conversions import vector_type
from dojo_core.codegen.minifloats import WORDS
from dojo_core.targets.cpu.dialect import Dialect

_BF16 = """\
INLINE f32 f32_from_bf16(bf16 x) {
    union { u32 b; f32 x; } u = {(u32)x << 16};
    return u.x;
}
INLINE bf16 bf16_from_f32(f32 x) { /* to nearest, ties to even */
    union { f32 x; u32 b; } u = {x};
    return x != x ? 0x7fc0 : (bf16)((u.b + 0x7fff + (u.b >> 16 & 1)) >> 16);
}
"""

_F16 = """\
#ifdef __FLT16_MAX__ /* gcc 12 on x86-64, AArch64 */
INLINE f32 f32_from_f16(f16 x) {
    union { f16 b; _Float16 x; } u = {x};
    return (f32)u.x;
}
INLINE f16 f16_from_f32(f32 x) {
    union { _Float16 x; f16 b; } u = {(_Float16)x};
    return u.b;
}
#endif
"""


def scalar_halves(dialect: Dialect) -> str:
    """``f32_from_f16``, ``f16_from_f32``, and the same of bf16."""
    return _BF16 + WORDS + (_soft(1) if dialect.soft_halves else _F16)


def half_vectors(dtype: str, lanes: int, dialect: Dialect) -> str:
    """``bf16xN_f32`` and ``f32xN_bf16``, or the same of f16, between vectors of as many lanes."""
    if dtype == "bf16":
        return _bf16_vectors(lanes, dialect)
    return _soft(lanes) if dialect.soft_halves else _f16_vectors(lanes, dialect)


def _soft(lanes: int) -> str:
    """f16 by integers, where neither compiler nor library may know the type.

    The exponents are 112 apart; denormals are made, or made whole, by a sum that rounds to nearest, ties to
    even (F. Giesen, half_to_float_fast5 and float_to_half_fast3_rtne, public domain).
    """
    if lanes == 1:
        wide, word, half, whole = "f32", "u32", "f16", "int"
        read, write, choose = "f32_from_f16", "f16_from_f32", "chosen ? a : b"
        bits, number, wider, narrower = "f32_word", "u32_number", "x", "(f16)r"
    else:
        wide, word, half, whole = (vector_type(d, lanes) for d in ("f32", "u32", "f16", "i32"))
        read, write, choose = f"{half}_f32", f"{wide}_f16", f"(a & ({word})chosen) | (b & ~({word})chosen)"
        bits, number = f"({word})", f"({wide})"
        wider, narrower = (f"__builtin_convertvector({x}, {to})" for x, to in (("x", word), ("r", half)))
    return f"""\
INLINE {word} {word}_choose({whole} chosen, {word} a, {word} b) {{ return {choose}; }}
INLINE {wide} {read}({half} x) {{
    {word} w = {wider}, b = (w & 0x7fff) << 13, e = b & 0x0f800000;
    {word} normal = b + 0x38000000, most = b + 0x70000000;
    {word} tiny = {bits}({number}(b + 0x38800000) - {number}(({word}){{0}} + 0x38800000));
    {word} r = {word}_choose(e == 0x0f800000, most, {word}_choose(e == 0, tiny, normal));
    return {number}(r | (w & 0x8000) << 16);
}}
INLINE {half} {write}({wide} x) {{
    {word} w = {bits}(x), b = w & 0x7fffffff;
    {word} normal = (b + 0xc8000fff + (b >> 13 & 1)) >> 13;
    {word} tiny = {bits}({number}(b) + 0.5f) - 0x3f000000;
    {word} most = {word}_choose(b > 0x7f800000, ({word}){{0}} + 0x7e00, ({word}){{0}} + 0x7c00);
    {word} r = {word}_choose(b >= 0x47800000, most, {word}_choose(b < 0x38800000, tiny, normal));
    r |= w >> 16 & 0x8000;
    return {narrower};
}}
"""


def _bf16_vectors(lanes: int, dialect: Dialect) -> str:
    size = 4 * lanes
    wide, words, b = vector_type("f32", lanes), vector_type("u32", lanes), vector_type("bf16", lanes)
    whole = vector_type("i32", lanes)
    extended = f"return ({wide})(__builtin_convertvector(x, {words}) << 16);"
    narrowed = f"return __builtin_convertvector(r, {b});"
    if size == 64:  # gcc 12 would convert each half by itself
        read = dialect.body(
            extended,
            ("__AVX512F__",
             f"{words} w = ({words})__builtin_ia32_pmovzxwd512_mask((i16x16)x, ({whole}){{0}}, -1);\n"
             f"    return ({wide})(w << 16);"),
        )  # fmt: skip
        written = dialect.body(
            narrowed,
            ("__AVX512F__", f"return ({b})__builtin_ia32_pmovdw512_mask(({whole})r, (i16x16){{0}}, -1);"),
        )
    else:  # on Arm gcc 12 would go lane by lane
        arm = f'{b} n;\n    __asm__("xtn %0.4h, %1.4s" : "=w"(n) : "w"(r));\n    return n;'
        written = dialect.body(narrowed, arm=arm)
        arm = f'{wide} r;\n    __asm__("shll %0.4s, %1.4h, #16" : "=w"(r) : "w"(x));\n    return r;'
        read = dialect.body(extended, arm=arm)
    return (
        f"INLINE {wide} {b}_f32({b} x) {{\n{read}}}\n"
        f"INLINE {b} {wide}_bf16({wide} x) {{\n"
        f"    {words} v = ({words})x, r = (v + 0x7fff + (v >> 16 & 1)) >> 16, nan = ({words})(x != x);\n"
        f"    r = (r & ~nan) | (0x7fc0 & nan);\n{written}}}\n"
    )


def _f16_vectors(lanes: int, dialect: Dialect) -> str:
    size = 4 * lanes
    bits = {64: "512", 32: "256", 16: ""}[size]
    wide, h = vector_type("f32", lanes), vector_type("f16", lanes)
    each = ", ".join(f"f32_from_f16(x[{k}])" for k in range(lanes))
    back = ", ".join(f"f16_from_f32(x[{k}])" for k in range(lanes))
    test = "__AVX512F__" if size == 64 else "__F16C__"
    read = f"return __builtin_ia32_vcvtph2ps{bits}((i16x8)x);"
    write = f"return ({h})__builtin_ia32_vcvtps2ph{bits}(x, 4);"  # 4: the current rounding mode
    if size == 64:
        read = f"return __builtin_ia32_vcvtph2ps512_mask((i16x16)x, ({wide}){{0}}, -1, 4);"
        write = f"return ({h})__builtin_ia32_vcvtps2ph512_mask(x, 4, (i16x16){{0}}, -1);"
    elif size == 16:  # the instruction works on the lower half of a register
        read = (
            "i16x8 w = {(i16)x[0], (i16)x[1], (i16)x[2], (i16)x[3]};\n    return __builtin_ia32_vcvtph2ps(w);"
        )
        write = (
            "i16x8 w = __builtin_ia32_vcvtps2ph(x, 4);\n"
            f"    return ({h}){{(f16)w[0], (f16)w[1], (f16)w[2], (f16)w[3]}};"
        )
    arm = {
        "read": f'{wide} r;\n    __asm__("fcvtl %0.4s, %1.4h" : "=w"(r) : "w"(x));\n    return r;',
        "written": f'{h} r;\n    __asm__("fcvtn %0.4h, %1.4s" : "=w"(r) : "w"(x));\n    return r;',
    }  # gcc 12 would go lane by lane
    read = dialect.body(f"return ({wide}){{{each}}};", (test, read), arm["read"])
    written = dialect.body(f"return ({h}){{{back}}};", (test, write), arm["written"])
    return (
        f"#ifdef __FLT16_MAX__\nINLINE {wide} {h}_f32({h} x) {{\n{read}}}\n"
        f"INLINE {h} {wide}_f16({wide} x) {{\n{written}}}\n#endif\n"
    )
