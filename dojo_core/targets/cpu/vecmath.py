"""The C that stands before every generated kernel: types, loads and stores, and our own functions.

Vector types are GCC/Clang vector extensions, so the same text serves AVX-512, AVX2 and NEON; where one
instruction does what portable text cannot say (a maximum that keeps NaN, 2**n scaling), x86 gets the
compiler's builtin behind an ``#ifdef``. No header is included: ``<immintrin.h>`` alone would cost three
times what the rest of a compilation does.

Every function is written once, as a template, and instantiated for the scalar and each vector width,
so that a vectorised program computes the same bits as its scalar form. Multiply-adds are explicit
(``T_fma``), so that a function's error does not hang on the compiler's contraction setting.
"""

from __future__ import annotations

from functools import lru_cache

from dojo_core.codegen.bitcasts import bitcast_functions
from dojo_core.codegen.conversions import (
    float_bounds,
    integer_functions,
    scalar_conversions,
    truncation,
    unsigned,
    wide_integers,
    wide_unsigned,
)
from dojo_core.codegen.keys import scalar_keys, vector_keys
from dojo_core.codegen.minifloats import scalar_storage, storage_vectors
from dojo_core.codegen.wide_keys import WIDE_KEY_TYPES, wide_key_vectors, wide_keys
from dojo_core.program.dtypes import (
    FLOATS,
    HALVES,
    INTEGERS,
    NARROW_FLOATS,
    STORAGE,
    STORAGE_FLOATS,
    STORAGE_INTEGERS,
    arithmetic,
    extremes,
)
from dojo_core.program.instructions import INSTRUCTIONS, Instruction, available
from dojo_core.program.target import VECTOR_DTYPES
from dojo_core.program.tree import DTYPE_BYTES
from dojo_core.program.unification import meaning
from dojo_core.targets.cpu.dialect import Dialect
from dojo_core.targets.cpu.elementary import FAR, OF_LIBRARY, residue_masked, templates
from dojo_core.targets.cpu.halves import half_vectors, scalar_halves
from dojo_core.targets.cpu.processor import Processor, host
from dojo_core.targets.cpu.resizing import resized_integers

ERROR_BOUNDS: dict[str, float] = {
    "sqrt": 6.0e-8,  # correctly rounded
    "rsqrt": 1.2e-7,  # 1/sqrt(x): two roundings
    "exp": 1.9e-7,  # and 7.1e-46, half the smallest denormal, where the result is denormal
    "log": 1.2e-7,  # near 1, where log is near 0, relative too: 1 is subtracted exactly
    "tanh": 2.0e-7,
    "erf": 1.6e-7,
    "sigmoid": 3.5e-7,
    "exp2": 1.1e-7,
    "expm1": 1.3e-7,
    "log2": 1.2e-7,
    "log1p": 1.5e-7,
    "sin": 2.2e-7,  # beyond 1e5 the C library's, as cos and tan
    "cos": 2.4e-7,
    "tan": 3.6e-7,
    "asin": 2.8e-7,
    "acos": 1.5e-7,
    "atan": 2.1e-7,
    "sinh": 1.8e-7,
    "cosh": 1.6e-7,
    "asinh": 1.8e-7,
    "acosh": 1.7e-7,
    "atanh": 2.1e-7,
    "pow": 1.2e-7,  # the C library's
}
"""Relative error of each function in f32, for every argument; f64 is the C library's, below 1e-15."""

F64_ERROR_BOUND = 1.0e-15

C_TYPES: dict[str, str] = {
    "f64": "double",
    "f32": "float",
    "i64": "__INT64_TYPE__",
    "i32": "__INT32_TYPE__",
    "i16": "__INT16_TYPE__",
    "i8": "__INT8_TYPE__",
    "u8": "__UINT8_TYPE__",
    "u16": "__UINT16_TYPE__",
    "u32": "__UINT32_TYPE__",
    "u64": "__UINT64_TYPE__",
    "f16": "__UINT16_TYPE__",  # the bits: what is computed is f32
    "bf16": "__UINT16_TYPE__",
    **dict.fromkeys(STORAGE_FLOATS, "__UINT8_TYPE__"),
    **{d: "__INT8_TYPE__" if extremes(d)[0] else "__UINT8_TYPE__" for d in STORAGE_INTEGERS},
}

_SIGNED = {8: "i64", 4: "i32", 2: "i16", 1: "i8"}

HEAD = """\
#define INLINE static inline __attribute__((always_inline, unused))
#define CALLED static __attribute__((noinline, unused))

"""

# Prefetching an address outside an array is harmless, computing a pointer to it is not: hence integers.
PREFETCH = """\
INLINE void prefetch(const void *base, i64 bytes) {
    __builtin_prefetch((const void *)((__UINTPTR_TYPE__)base + (__UINTPTR_TYPE__)bytes), 0);
}
INLINE void prefetch_write(const void *base, i64 bytes) {
    __builtin_prefetch((const void *)((__UINTPTR_TYPE__)base + (__UINTPTR_TYPE__)bytes), 1);
}

"""

# T: the type; E: its element; I: integers of the same shape; S(c): the constant c in every lane.
# T_least(a, b) is a < b ? a : b, so that a NaN in b passes, and b where both are zeros. T_max and T_min are
# maximum and minimum of IEEE 754-2019: a NaN on either side passes, and -0 is less than +0, so that no order
# of many of them changes the result.


def _fill(template: str, name: str, element: str, integers: str, splat: str) -> str:
    """Instantiate a template: ``T`` and ``I`` are types, ``T_f`` functions of the type."""
    out = template.replace("INLINE T ", f"INLINE {name} ").replace("T_", f"{name}_")
    for letter, word in (("T ", f"{name} "), ("I ", f"{integers} "), ("E ", f"{element} ")):
        for before in ("    ", "(", ", ", "const "):
            out = out.replace(before + letter, before + word)
    return out.replace("(I)", f"({integers})").replace("S(", f"{splat}(")


def _by_lanes(name: str, element: str, lanes: int, function: str, parameters: str = "x") -> str:
    """A vector function lane by lane, from the scalar one."""
    calls = (f"{element}_{function}({', '.join(f'{p}[{k}]' for p in parameters)})" for k in range(lanes))
    given = ", ".join(f"{name} {p}" for p in parameters)
    return f"INLINE {name} {name}_{function}({given}) {{ return ({name}){{{', '.join(calls)}}}; }}\n"


def _scalar_float(element: str, dialect: Dialect) -> str:
    """Functions of one f32 or f64."""
    suffix, integers = ("f", "i32") if element == "f32" else ("", "i64")
    fused = dialect.fused(element, f"return __builtin_fma{suffix}(a, b, c);", "return a * b + c;")
    most = f"{element} m = a > b ? a : b;\n    return __builtin_islessgreater(a, 0) ? m : a + m;"
    trunc = f"__builtin_trunc{suffix}(x)"
    if dialect.truncates:
        trunc = f"__builtin_copysign{suffix}(__builtin_floor{suffix}(__builtin_fabs{suffix}(x)), x)"
    least = f"{element} m = a < b ? a : b;\n    return __builtin_islessgreater(a, 0) ? m : -(-a - m);"
    text = f"""\
INLINE {element} {element}_splat({element} x) {{ return x; }}
INLINE {element} {element}_fma({element} a, {element} b, {element} c) {{
{fused}}}
INLINE {element} {element}_least({element} a, {element} b) {{ return a < b ? a : b; }}
INLINE {element} {element}_most({element} a, {element} b) {{ return a > b ? a : b; }}
/* Which is larger is as good as random: no branch. NaN and zeros are rarer, and right in a sum. */
INLINE {element} {element}_max({element} a, {element} b) {{
{dialect.body(most, arm=_arm("fmax", element))}}}
INLINE {element} {element}_min({element} a, {element} b) {{
{dialect.body(least, arm=_arm("fmin", element))}}}
INLINE {element} {element}_select(int chosen, {element} a, {element} b) {{ return chosen ? a : b; }}
INLINE {element} {element}_abs({element} x) {{ return __builtin_fabs{suffix}(x); }}
INLINE {element} {element}_sqrt({element} x) {{ return __builtin_sqrt{suffix}(x); }}
INLINE {element} {element}_floor({element} x) {{ return __builtin_floor{suffix}(x); }}
INLINE {element} {element}_ceil({element} x) {{ return __builtin_ceil{suffix}(x); }}
INLINE {element} {element}_trunc({element} x) {{ return {trunc}; }}
INLINE {element} {element}_round({element} x) {{ return __builtin_rint{suffix}(x); }}
INLINE {element} {element}_pow({element} x, {element} y) {{ return __builtin_pow{suffix}(x, y); }}
INLINE {element} {element}_fmod({element} x, {element} y) {{ return __builtin_fmod{suffix}(x, y); }}
INLINE int {element}_isnan({element} x) {{ return x != x; }}
INLINE int {element}_isinf({element} x) {{ return {element}_abs(x) == __builtin_inf{suffix}(); }}
INLINE {element} {element}_copysign({element} x, {element} s) {{ return __builtin_copysign{suffix}(x, s); }}
INLINE {integers} {element}_bits({element} x) {{
    union {{ {element} x; {integers} b; }} u = {{x}};
    return u.b;
}}
INLINE {element} {element}_from_bits({integers} b) {{
    union {{ {integers} b; {element} x; }} u = {{b}};
    return u.x;
}}
INLINE {element} {element}_convert({integers} b) {{ return ({element})b; }}
"""
    if element == "f32":
        text += """\
INLINE f32 f32_tf32(f32 x) {
    return x != x ? x : f32_from_bits((i32)(((u32)f32_bits(x) + 0x1000) & 0xffffe000));
}
/* 2**n; the last 8 bits of t are n + 127. Of a NaN they are any. */
INLINE f32 f32_power(f32 t) { return f32_from_bits((i32)((u32)f32_bits(t) << 23)); }
/* x * 2**-e, where both are in range. */
INLINE f32 f32_lowered(f32 x, i32 e) { return f32_from_bits((i32)((u32)f32_bits(x) - ((u32)e << 23))); }
/* (1 + p*r) * 2**n; the last 9 bits of t are n + 254. Two factors reach infinity and the denormals, */
/* the halves of n + 254 rounded down and up; the first one is there before p is. */
INLINE f32 f32_scaled(f32 p, f32 r, f32 n, f32 t) {
    u32 k = (u32)f32_bits(t) << 22;
    f32 h = f32_from_bits((i32)(k & 0x7f800000)), l = f32_from_bits((i32)((k + 0x400000) & 0x7f800000));
    (void)n;
    return f32_fma(p, r * h, h) * l;
}
INLINE int f32_any(int chosen) { return chosen; }
"""
        for function in FAR:
            text += (
                f"INLINE f32 f32_far_{function}(f32 x, f32 near) "
                f"{{ return f32_abs(x) > 1e5f ? __builtin_{function}f(x) : near; }}\n"
            )
    else:
        for function in OF_LIBRARY:
            text += f"INLINE f64 f64_{function}(f64 x) {{ return __builtin_{function}(x); }}\n"
    text += _fill(templates(element, dialect), element, element, integers, f"{element}_splat")
    return text if element == "f32" else _double(text)


def _double(text: str) -> str:
    """Literals of a template instantiated for f64."""
    return text.replace("1.0f", "1.0").replace("0.0f", "0.0")


def _arm(instruction: str, element: str, lanes: int = 1) -> str:
    """One of Arm's instructions of two operands, which is exactly what is meant: the builtins' names differ
    between compilers and versions."""
    kind = element if lanes == 1 else f"{element}x{lanes}"
    letter = "s" if element == "f32" else "d"
    m, a, b = (f"%{letter}{k}" if lanes == 1 else f"%{k}.{lanes}{letter}" for k in range(3))
    text = f'__asm__("{instruction} {m}, {a}, {b}" : "=w"(m) : "w"(a), "w"(b));'
    return f"{kind} m;\n    {text}\n    return m;"


def _vector_float(element: str, lanes: int, dialect: Dialect) -> str:
    """Functions of a vector of f32 or f64."""
    name = f"{element}x{lanes}"
    size = DTYPE_BYTES[element] * lanes
    integers = f"{_SIGNED[DTYPE_BYTES[element]]}x{lanes}"
    p = "ps" if element == "f32" else "pd"
    wide = size == 64
    bits = {64: "512", 32: "256", 16: "128"}[size]
    legacy = {64: "512", 32: "256", 16: ""}[size]  # how builtins before AVX-512 write the size
    avx512 = "__AVX512F__" if wide else "__AVX512VL__"
    tail = ", 4)" if wide else ")"  # rounding: the current mode
    head = f"INLINE {name} {name}_"
    text = ""

    def lanewise(scalar: str) -> str:
        return f"return ({name}){{" + ", ".join(f"{scalar}(x[{k}])" for k in range(lanes)) + "};"

    # multiply-add
    if wide:
        fused, test = f"return __builtin_ia32_vfmadd{p}512_mask(a, b, c, -1, 4);", "__AVX512F__"
    else:
        fused, test = f"return __builtin_ia32_vfmadd{p}{legacy}(a, b, c);", "__FMA__"
    # A machine whose vectors are narrower, or clang, which has no such builtin, rounds once all the same.
    plain = dialect.fused(element, _fused(element, lanes), "return a * b + c;").rstrip("\n")
    plain = f"\n{plain}" if plain.startswith("#") else plain.strip()
    once = "__builtin_elementwise_fma", "return __builtin_elementwise_fma(a, b, c);"
    text += f"{head}fma({name} a, {name} b, {name} c) {{\n"
    text += dialect.body(plain, (test, fused), riscv=once) + "}\n"
    text += (
        f"{head}select({integers} chosen, {name} a, {name} b) {{\n"
        f"    return ({name})((({integers})a & chosen) | (({integers})b & ~chosen));\n}}\n"
    )
    # a < b ? a : b and its twin, in x86 terms
    for function, instruction, sign in (("least", "min", "<"), ("most", "max", ">")):
        one = f"return __builtin_ia32_{instruction}{p}{legacy}(a, b);"
        if wide:
            one = f"return __builtin_ia32_{instruction}{p}512_mask(a, b, a, -1, 4);"
        test = {64: "__AVX512F__", 32: "__AVX__", 16: "__SSE2__"}[size]
        plain = f"return {name}_select(a {sign} b, a, b);"
        text += f"{head}{function}({name} a, {name} b) {{\n" + dialect.body(plain, (test, one)) + "}\n"
    text += _ordered_extremes(name, integers, element, lanes, dialect)
    mask = "__INT32_MAX__" if element == "f32" else "__INT64_MAX__"
    text += f"{head}abs({name} x) {{ return ({name})(({integers})x & {mask}); }}\n"
    text += (
        f"{head}copysign({name} x, {name} s) {{\n"
        f"    return ({name})((({integers})x & {mask}) | (({integers})s & ~{mask}));\n}}\n"
    )
    # square root and rounding
    one = f"return __builtin_ia32_sqrt{p}{legacy}(x);"
    if wide:
        one = f"return __builtin_ia32_sqrt{p}512_mask(x, x, -1, 4);"
    test = {64: "__AVX512F__", 32: "__AVX__", 16: "__SSE2__"}[size]
    plain, elementwise = lanewise(f"{element}_sqrt"), "__builtin_elementwise_sqrt"
    text += f"{head}sqrt({name} x) {{\n"
    text += dialect.body(plain, (test, one), riscv=(elementwise, f"return {elementwise}(x);")) + "}\n"
    for function, mode, elementwise in (
        ("floor", 9, "__builtin_elementwise_floor"),
        ("ceil", 10, "__builtin_elementwise_ceil"),
        ("trunc", 11, "__builtin_elementwise_trunc"),
        ("round", 8, "__builtin_elementwise_rint"),
    ):
        one = f"return __builtin_ia32_round{p}{legacy}(x, {mode});"
        if wide:
            one = f"return __builtin_ia32_rndscale{p}_mask(x, {mode}, x, -1, 4);"
        test = {64: "__AVX512F__", 32: "__AVX__", 16: "__SSE4_1__"}[size]
        value = f"{elementwise}(x)"
        if function == "trunc" and dialect.truncates:
            elementwise, value = (
                "__builtin_elementwise_floor",
                f"{name}_copysign({name}_floor({name}_abs(x)), x)",
            )
        plain = lanewise(f"{element}_{function}")
        text += f"{head}{function}({name} x) {{\n"
        text += dialect.body(plain, (test, one), riscv=(elementwise, f"return {value};")) + "}\n"
    text += f"INLINE {integers} {name}_bits({name} x) {{ return ({integers})x; }}\n"
    text += f"{head}from_bits({integers} b) {{ return ({name})b; }}\n"
    text += f"{head}convert({integers} b) {{ return __builtin_convertvector(b, {name}); }}\n"
    text += _by_lanes(name, element, lanes, "fmod", "xy")
    text += _any(integers, name, lanes, dialect)
    masked = None
    if element == "f32":
        text += _by_lanes(name, element, lanes, "tf32")
        text += f"{head}power({name} t) {{ return ({name})(({integers})t << 23); }}\n"
        text += f"{head}lowered({name} x, {integers} e) {{ return ({name})(({integers})x - (e << 23)); }}\n"
        one = (
            f"(void)t;\n    {name} q = {name}_fma(p, r, {name}_splat(1.0f));\n"
            f"    return __builtin_ia32_scalefps{bits}_mask(q, n, q, -1{tail};"
        )
        plain = (
            f"(void)n;\n    {integers} k = ({integers})t << 22;\n"
            f"    {name} h = ({name})(k & 0x7f800000), l = ({name})((k + 0x400000) & 0x7f800000);\n"
            f"    return {name}_fma(p, r * h, h) * l;"
        )
        text += f"{head}scaled({name} p, {name} r, {name} n, {name} t) {{\n"
        text += dialect.body(plain, (avx512, one)) + "}\n"
        text += "".join(_by_lanes(name, element, lanes, f"far_{f}", "xv") for f in FAR)
        masked = avx512, residue_masked(bits, tail)
    else:
        text += "".join(_by_lanes(name, element, lanes, f) for f in OF_LIBRARY)
    filled = _fill(templates(element, dialect, masked), name, element, integers, f"{name}_splat")
    text += filled if element == "f32" else _double(filled)
    if dialect.truncates:
        text += truncation(element, lanes)
    return (
        text
        + float_bounds(name, element)
        + wide_integers(element, lanes, dialect.truncates)
        + wide_unsigned(element, lanes, dialect.truncates)
    )


def _any(integers: str, name: str, lanes: int, dialect: Dialect) -> str:
    """``T_any``: is a comparison true in any lane?"""
    wide = integers.startswith("i64")
    p, test512 = "pd" if wide else "ps", "__builtin_ia32_ptestmd512"
    test, one = {
        64: ("__AVX512F__", f"return {test512}((i32x16)m, (i32x16)m, -1) != 0;"),
        32: ("__AVX__", f"return __builtin_ia32_movmsk{p}256(({name})m);"),
        16: ("__SSE2__", f"return __builtin_ia32_movmsk{p}(({name})m);"),
    }.get(lanes * (8 if wide else 4), ("", ""))
    pairs = lanes if wide else lanes // 2
    each = " | ".join(f"m[{k}]" if wide else f"((i64x{pairs})m)[{k}]" for k in range(pairs))
    reduced = "__builtin_reduce_or"
    body = dialect.body(
        f"return ({each}) != 0;", (test, one) if test else None, riscv=(reduced, f"return {reduced}(m) != 0;")
    )
    return f"INLINE int {name}_any({integers} m) {{\n{body}}}\n"


def _fused(element: str, lanes: int) -> str:
    """A multiply-add of vectors by those of their halves, or lane by lane."""
    name, half = f"{element}x{lanes}", lanes // 2
    if half * DTYPE_BYTES[element] < 16:
        each = ", ".join(f"{element}_fma(a[{k}], b[{k}], c[{k}])" for k in range(lanes))
        return f"return ({name}){{{each}}};"

    def part(first: int) -> str:
        chosen = ", ".join(str(first + k) for k in range(half))
        parts = ", ".join(f"__builtin_shufflevector({x}, {x}, {chosen})" for x in "abc")
        return f"{element}x{half}_fma({parts})"

    whole = ", ".join(map(str, range(lanes)))
    return f"return __builtin_shufflevector({part(0)}, {part(half)}, {whole});"


def _ordered_extremes(name: str, integers: str, element: str, lanes: int, dialect: Dialect) -> str:
    """``T_max`` and ``T_min`` of a vector.

    The two minima differ where one is NaN, and where both are zeros; all bits of both are a NaN again, or the
    sign of either zero. A maximum is negative only where both are: it takes ``a`` over where that is NaN
    (``b`` passes), and its sign bit stays where ``a`` has one. Two instructions lie between one maximum and
    the next, of floating point both: what is computed of ``a`` alone need not wait.
    """
    size = lanes * DTYPE_BYTES[element]
    p, bits = "ps" if element == "f32" else "pd", 8 * size
    legacy = {64: "512", 32: "256", 16: ""}[size]
    tail = ", 4)" if size == 64 else ")"
    avx512 = "__AVX512DQ__" if size == 64 else "__AVX512DQ__ && defined __AVX512VL__"
    magnitude = "__INT32_MAX__" if element == "f32" else "__INT64_MAX__"
    sign = f"(({integers})a | {magnitude})"
    masked = (
        f"{name} m = __builtin_ia32_max{p}{legacy}_mask(a, b, a, "
        f"__builtin_ia32_cmp{p}{bits}_mask(a, a, 7, -1{tail}{tail};\n"
        f"    return __builtin_ia32_and{p}{bits}_mask(m, ({name}){sign}, m, -1);"
    )
    plain = f"return ({name})((({integers}){name}_most(a, b) | (a != a)) & {sign});"
    both = f"return ({name})(({integers}){name}_least(a, b) | ({integers}){name}_least(b, a));"
    arm = {function: _arm(f"f{function}", element, lanes) for function in ("min", "max")}
    riscv = {function: _riscv_extreme(function, integers, name) for function in ("min", "max")}
    bodies = {
        "min": dialect.body(both, None, arm["min"], riscv["min"]),
        "max": dialect.body(plain, (avx512, masked), arm["max"], riscv["max"]),
    }
    return "".join(
        f"INLINE {name} {name}_{function}({name} a, {name} b) {{\n{body}}}\n"
        for function, body in bodies.items()
    )


def _riscv_extreme(function: str, integers: str, name: str) -> tuple[str, str]:
    """Its instructions order the zeros, and pass a NaN over: all bits of what is one there make it again."""
    builtin = f"__builtin_elementwise_{function}"
    return builtin, f"return ({name})(({integers}){builtin}(a, b) | (a != a) | (b != b));"


_REDUCTIONS = (("sum", "add"), ("product", "multiply"), ("maximum", "max"), ("minimum", "min"))


def _moves(element: str, lanes: int) -> str:
    """Loads, stores, and one number in every lane."""
    name = f"{element}x{lanes}"
    splat = ", ".join(["x"] * lanes)
    return (
        f"INLINE {name} {name}_load(const {element} *p) {{ return *(const {name}_unaligned *)p; }}\n"
        f"INLINE void {name}_store({element} *p, {name} x) {{ *({name}_unaligned *)p = x; }}\n"
        f"INLINE {name} {name}_splat({element} x) {{ return ({name}){{{splat}}}; }}\n"
    )


def _narrow_reductions(element: str, lanes: int) -> str:
    """Reductions of a vector of integers that is narrower than a register."""
    name, text = f"{element}x{lanes}", ""
    for word, combine in _REDUCTIONS:
        value = "x[0]"
        for lane in range(1, lanes):
            value = f"{element}_{combine}({value}, x[{lane}])"
        text += f"INLINE {element} {name}_{word}({name} x) {{ return {value}; }}\n"
    return text


def _vector(element: str, lanes: int, dialect: Dialect) -> str:
    """The vector type, its loads, stores and horizontal reductions."""
    name = f"{element}x{lanes}"
    bytes_ = DTYPE_BYTES[element]
    size = bytes_ * lanes
    if element in (*HALVES, *STORAGE):
        stream = f"INLINE void {name}_stream({element} *p, {name} x) {{ {name}_store(p, x); }}\n"
        between = (
            half_vectors(element, lanes, dialect) if element in HALVES else storage_vectors(element, lanes)
        )
        return _moves(element, lanes) + between + stream
    text = _moves(element, lanes)
    if element in FLOATS:
        if size < 16:
            return text  # two f32, on the way from or to f64
        suffix = ("ps" if element == "f32" else "pd") + {64: "512", 32: "256", 16: ""}[size]
        test = {64: "__AVX512F__", 32: "__AVX__", 16: "__SSE2__"}[size]
        past = (
            f"#if defined {test} && !defined __clang__\n"
            f"    if (((__UINTPTR_TYPE__)p & {size - 1}) == 0) {{\n"
            f"        __builtin_ia32_movnt{suffix}(p, x);\n        return;\n    }}\n#endif\n"
        )
        text += f"INLINE void {name}_stream({element} *p, {name} x) {{\n"
        text += past * dialect.is_x86 + f"    {name}_store(p, x);\n}}\n"
        text += _vector_float(element, lanes, dialect)
    else:
        text += f"INLINE void {name}_stream({element} *p, {name} x) {{ {name}_store(p, x); }}\n"
        text += integer_functions(element, lanes)
        if size < 16:
            return text + _narrow_reductions(element, lanes)
    for word, combine in _REDUCTIONS:
        lines = [f"INLINE {element} {name}_{word}({name} x) {{"]
        width, last, step = lanes, "x", 0
        # Halves while they are whole registers, then lanes exchanged within the smallest one.
        while width > 1:
            half = width // 2
            if half * bytes_ >= 16:
                lower = ", ".join(map(str, range(half)))
                upper = ", ".join(map(str, range(half, width)))
                kind, left, right = f"{element}x{half}", lower, upper
            else:
                n = 16 // bytes_
                kind = f"{element}x{n}"
                left = ", ".join(map(str, range(n)))
                right = ", ".join(str(k ^ half) for k in range(n))
            a = f"__builtin_shufflevector({last}, {last}, {left})"
            b = f"__builtin_shufflevector({last}, {last}, {right})"
            value = f"{kind}_{combine}({a}, {b})"
            if element in FLOATS and combine in ("add", "multiply"):
                value = f"{a} {'+' if combine == 'add' else '*'} {b}"
            lines.append(f"    {kind} h{step} = {value};")
            last, width, step = f"h{step}", half, step + 1
        lines.append(f"    return {last}[0];\n}}\n")
        text += "\n".join(lines)
    return text


@lru_cache(maxsize=16)
def preamble(processor: Processor) -> str:
    """What ``Code.text`` needs before it, for a processor and all with as much as it."""
    text, sizes, dialect = HEAD, processor.vector_bytes, Dialect(processor.instruction_set)
    for name, c_type in C_TYPES.items():
        text += f"typedef {c_type} {name};\n"
    text += WIDE_KEY_TYPES
    shapes = [(d, n) for d in VECTOR_DTYPES for n in _lanes(d, sizes)]
    bare = dict.fromkeys((unsigned(d), n) for d, n in shapes if (unsigned(d), n) not in shapes)
    for name, lanes, bytes_ in (
        *((d, n, DTYPE_BYTES[d]) for d, n in shapes),
        *((u, n, int(u[1:]) // 8) for u, n in bare),
    ):
        size = lanes * bytes_
        text += f"typedef {name} {name}x{lanes} __attribute__((vector_size({size})));\n"
        text += (
            f"typedef {name} {name}x{lanes}_unaligned"
            f" __attribute__((vector_size({size}), aligned({bytes_}), may_alias));\n"
        )
    text += PREFETCH
    for dtype in INTEGERS:
        text += integer_functions(dtype, 1)
    text += "".join(wide_keys().values())
    text += (
        _scalar_float("f32", dialect)
        + _scalar_float("f64", dialect)
        + scalar_halves(dialect)
        + (truncation("f32", 1) + truncation("f64", 1)) * dialect.truncates
        + scalar_conversions(dialect.truncates)
        + scalar_storage(dialect.truncates)
    )
    for dtype, lanes in shapes:
        text += _vector(dtype, lanes, dialect)
    if dialect.resizes:
        text += resized_integers(shapes)
    text += "".join(scalar_keys().values()) + "".join(bitcast_functions().values())
    wide = [lanes for dtype, lanes in shapes if dtype == "i64"]
    text += "".join(vector_keys(lanes, dialect.resizes) for lanes in wide)
    text += "".join(map(wide_key_vectors, wide))
    return dialect.finish(text + _instructions(processor))


def _instructions(processor: Processor) -> str:
    """Those of ``program/instructions.py`` that the processor has, by the compiler's names."""
    text = ""
    words = {instruction.word for instruction in INSTRUCTIONS.values() if not instruction.rows}
    for word in sorted(words):
        text += (
            f"typedef {word} {word}_unaligned __attribute__((aligned(1), may_alias));\n"
            f"INLINE {word} {word}_word(const void *p) {{ return *(const {word}_unaligned *)p; }}\n"
        )
    for name, lanes in sorted(available(processor.features)):
        instruction = INSTRUCTIONS[name]
        if lanes * DTYPE_BYTES[instruction.word] not in processor.vector_bytes:
            continue
        if instruction.rows:
            text += _transpose(instruction, lanes)
            continue
        operands = "ab"[: len(meaning(name, lanes)[1].op.operands)]
        kind, held = f"{instruction.word}x{lanes}", f"{_accumulated(name, lanes)}x{lanes}"
        taken = ", ".join(f"{kind} {o}" for o in operands)
        value = f"return {instruction.builtin.get(lanes)}(c, {', '.join(operands)});"
        if instruction.assembly:
            inputs = ", ".join(f'"w"({o})' for o in operands)
            value = f'__asm__("{instruction.assembly}" : "+w"(c) : {inputs}); return c;'
        text += f"INLINE {held} {name}_{lanes}({held} c, {taken}) {{ {value} }}\n"
    return text


def _transpose(instruction: Instruction, lanes: int) -> str:
    """Rows of ``a``, ``as`` cells apart, turned into those of ``b``: squares of half the size each time, of
    which the two off the diagonal are exchanged.

    It is called, not written out: a compiler keeps which lanes go where in registers over the loops around,
    and a product beside it would have its sums in memory.
    """
    kind, step, lines = f"{instruction.word}x{lanes}", lanes // 2, list[str]()
    lines += [f"{kind} h;", *(f"{kind} r{n} = {kind}_load(a + {n}*as);" for n in range(lanes))]
    while step:
        low = ", ".join(str(e - step + lanes if e & step else e) for e in range(lanes))
        high = ", ".join(str(e + lanes if e & step else e + step) for e in range(lanes))
        for n in (n for n in range(lanes) if not n & step):
            one, other = f"r{n}", f"r{n + step}"
            lines.append(f"h = __builtin_shufflevector({one}, {other}, {high});")
            lines.append(f"{one} = __builtin_shufflevector({one}, {other}, {low}); {other} = h;")
        step //= 2
    lines += [f"{kind}_store(b + {n}*bs, r{n});" for n in range(lanes)]
    head = f"CALLED void {instruction.name}_{lanes}"
    head += f"({instruction.word} *b, i64 bs, const {instruction.word} *a, i64 as)"
    return f"{head} {{\n    " + "\n    ".join(lines) + "\n}\n"


def _accumulated(name: str, lanes: int) -> str:
    """The dtype of what an instruction writes."""
    program, leaf = meaning(name, lanes)
    return program.buffer_of[leaf.op.target.array].dtype


def _lanes(dtype: str, sizes: tuple[int, ...]) -> list[int]:
    """How many lanes a vector may have: also fewer than fill a register, beside a wider dtype."""
    bytes_ = DTYPE_BYTES[arithmetic(dtype)]
    most = max(sizes) // bytes_
    least = 4 if dtype in NARROW_FLOATS else 2
    return [n for n in (2, 4, 8, 16, 32, 64) if least <= n <= most]


PREAMBLE = preamble(host())
"""What ``Code.text`` needs before it, for this machine."""
