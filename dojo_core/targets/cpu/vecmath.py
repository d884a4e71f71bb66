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

from dojo_core.codegen.conversions import (
    float_bounds,
    integer_functions,
    scalar_conversions,
    truncation,
    unsigned,
    wide_integers,
)
from dojo_core.codegen.keys import scalar_keys, vector_keys
from dojo_core.program.dtypes import FLOATS, HALVES, INTEGERS
from dojo_core.program.instructions import INSTRUCTIONS, available
from dojo_core.program.target import VECTOR_DTYPES
from dojo_core.program.tree import DTYPE_BYTES
from dojo_core.program.unification import meaning
from dojo_core.targets.cpu.dialect import Dialect
from dojo_core.targets.cpu.halves import half_vectors, scalar_halves
from dojo_core.targets.cpu.processor import Processor, host
from dojo_core.targets.cpu.resizing import resized_integers

ERROR_BOUNDS: dict[str, float] = {
    "sqrt": 6.0e-8,  # correctly rounded
    "rsqrt": 1.2e-7,  # 1/sqrt(x): two roundings
    "exp": 1.7e-7,  # and 7.1e-46, half the smallest denormal, where the result is denormal
    "log": 1.2e-7,  # near 1, where log is near 0, relative too: 1 is subtracted exactly
    "tanh": 2.0e-7,
    "erf": 1.3e-7,
    "sigmoid": 3.5e-7,
    "pow": 1.2e-7,  # the C library's
}
"""Relative error of each function in f32, for every argument; f64 is the C library's, below 1e-15.

The polynomials: exp a minimax of degree 5 on [-ln2/2, ln2/2] that is 1 at 0 (relative error 9.2e-8 before
rounding, 1.61e-7 in all); log and tanh Cephes (S. L. Moshier, logf.c, tanhf.c); erf N. Juffa's two-branch
form (public domain), its exp a minimax of degree 5.
"""

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
}

_SIGNED = {8: "i64", 4: "i32", 2: "i16", 1: "i8"}

HEAD = """\
#define INLINE static inline __attribute__((always_inline, unused))

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

# T_residue: x less n times ln 2, n whole, and t = n + 1.5*2**23, which made it whole. Beyond c's bounds exp
# is inf or 0; a NaN passes.
_RESIDUE_F32 = """
    T c = T_least(S(89.0f), T_most(S(-104.0f), x));
    *t = T_fma(c, S(1.44269504f), S(12582912.0f));
    T n = *t - S(12582912.0f);
    T r = T_fma(n, S(-0.693359375f), c);
    return T_fma(n, S(2.12194440e-4f), r);
"""

# One instruction in place of two: where t is far from 1.5*2**23 it has a bit of -2**-22, the residue is 0,
# and 1 scaled by n, however large, is right. (Only n near -10**7 pass for near; their residues are small.)
_RESIDUE_F32_MASKED = """
    *t = T_fma(x, S(1.44269504f), S(12582912.0f));
    T n = *t - S(12582912.0f);
    T r = T_fma(n, S(-0.693359375f), x);
    int near = __builtin_ia32_ptestnmdBITS((I)*t, (I)S(-2.38418579e-7f), -1);
    return __builtin_ia32_vfmaddpsBITS_maskz(n, S(2.12194440e-4f), r, nearTAIL;
"""

_EXP_F32 = """\
INLINE T T_exp(T x) {
    T t, r = T_residue(x, &t), n = t - S(12582912.0f);
    T p = T_fma(S(8.29030666e-3f), r, S(4.18979749e-2f));
    p = T_fma(p, r, S(1.66676372e-1f));
    p = T_fma(p, r, S(4.99991506e-1f));
    p = T_fma(p, r, S(9.99999702e-1f));
    p = T_fma(p, r, S(1.0f));
    return T_scale(p, n, t);
}
"""

_LOG_F32 = """\
INLINE T T_log(T x) {
    T tiny = T_select(x < S(1.17549435e-38f), S(1.0f), S(0.0f));
    T m = x * T_fma(tiny, S(8388607.0f), S(1.0f)); /* denormals times 2**23 */
    I e = (T_bits(m) - 0x3f3504f3) >> 23;
    m = T_from_bits(T_bits(m) - e * 8388608); /* in [sqrt(1/2), sqrt(2)) */
    T k = T_fma(tiny, S(-23.0f), T_convert(e));
    T f = m - S(1.0f), z = f * f;
    T p = T_fma(S(7.0376836292e-2f), f, S(-1.1514610310e-1f));
    p = T_fma(p, f, S(1.1676998740e-1f));
    p = T_fma(p, f, S(-1.2420140846e-1f));
    p = T_fma(p, f, S(1.4249322787e-1f));
    p = T_fma(p, f, S(-1.6668057665e-1f));
    p = T_fma(p, f, S(2.0000714765e-1f));
    p = T_fma(p, f, S(-2.4999993993e-1f));
    p = T_fma(p, f, S(3.3333331174e-1f));
    T y = T_fma(k, S(-2.12194440e-4f), f * z * p);
    y = T_fma(z, S(-0.5f), y);
    T r = T_fma(k, S(0.693359375f), f + y);
    T special = T_select(x < S(0.0f), S(__builtin_nanf("")), x);
    special = T_select(x == S(0.0f), S(-__builtin_inff()), special);
    return T_select((x > S(0.0f)) & (x < S(__builtin_inff())), r, special);
}
"""

_SIGMOID = """\
INLINE T T_sigmoid(T x) {
    T z = T_exp(-T_abs(x));
    T s = S(1.0f) / (S(1.0f) + z);
    return T_select(x >= S(0.0f), s, z * s);
}
"""

_TANH_F32 = """\
INLINE T T_tanh(T x) {
    T a = T_abs(x), z = x * x;
    T p = T_fma(S(-5.70498872745e-3f), z, S(2.06390887954e-2f));
    p = T_fma(p, z, S(-5.37397155531e-2f));
    p = T_fma(p, z, S(1.33314422036e-1f));
    p = T_fma(p, z, S(-3.33332819422e-1f));
    T small = T_fma(p * z, a, a);
    T large = S(1.0f) - S(2.0f) / (T_exp(a + a) + S(1.0f));
    return T_copysign(T_select(a < S(0.625f), small, large), x);
}
"""

_ERF_F32 = """\
INLINE T T_erf(T x) {
    T a = T_least(T_abs(x), S(4.0f)), z = a * a; /* 1 beyond, and for a NaN, which is not chosen below */
    T p = T_fma(S(-1.72853470e-5f), a, S(3.83197126e-4f));
    T q = T_fma(S(-3.88396438e-3f), a, S(2.42546219e-2f));
    p = T_fma(p, z, q);
    p = T_fma(p, a, S(-1.06777877e-1f));
    p = T_fma(p, a, S(-6.34846687e-1f));
    p = T_fma(p, a, S(-1.28717512e-1f));
    p = T_fma(p, a, -a);
    T t = T_fma(p, S(1.44269504f), S(12582912.0f)); /* exp(p), p in [-17, 0], to 1.1e-7 */
    T r = T_fma(t - S(12582912.0f), S(-0.693147181f), p);
    T g = T_fma(S(8.31250143e-3f), r, S(4.18903318e-2f));
    g = T_fma(g, r, S(1.66671154e-1f));
    g = T_fma(g, r, S(4.99992303e-1f));
    g = T_fma(g, r, S(1.0f));
    g = T_fma(g, r, S(1.0f));
    g = T_from_bits(T_bits(g) + (T_bits(t) - 0x4b400000) * 8388608);
    T s = T_fma(S(-5.96761703e-4f), z, S(4.99119423e-3f));
    s = T_fma(s, z, S(-2.67681349e-2f));
    s = T_fma(s, z, S(1.12819925e-1f));
    s = T_fma(s, z, S(-3.76125336e-1f));
    s = T_fma(s, z, S(1.28379166e-1f));
    return T_select(T_abs(x) > S(0.921875f), T_copysign(S(1.0f) - g, x), T_fma(s, x, x));
}
"""

_RSQRT = "INLINE T T_rsqrt(T x) { return S(1.0f) / T_sqrt(x); }\n"


def _fill(template: str, name: str, element: str, integers: str, splat: str) -> str:
    """Instantiate a template: ``T`` and ``I`` are types, ``T_f`` functions of the type."""
    out = template.replace("INLINE T ", f"INLINE {name} ").replace("T_", f"{name}_")
    for letter, word in (("T ", f"{name} "), ("I ", f"{integers} "), ("E ", f"{element} ")):
        for before in ("    ", "(", ", ", "const "):
            out = out.replace(before + letter, before + word)
    return out.replace("(I)", f"({integers})").replace("S(", f"{splat}(")


def _libm_lanes(name: str, element: str, lanes: int, functions: dict[str, str]) -> str:
    """Vector functions lane by lane, from the scalar ones."""
    lines = []
    for function, scalar in functions.items():
        calls = ", ".join(f"{scalar}(x[{k}])" for k in range(lanes))
        lines.append(f"INLINE {name} {name}_{function}({name} x) {{ return ({name}){{{calls}}}; }}\n")
    return "".join(lines)


def _scalar_float(element: str, dialect: Dialect) -> str:
    """Functions of one f32 or f64."""
    suffix, integers = ("f", "i32") if element == "f32" else ("", "i64")
    fused = dialect.fused(element, f"return __builtin_fma{suffix}(a, b, c);", "return a * b + c;")
    most = f"{element} m = a > b ? a : b;\n    return __builtin_islessgreater(a, 0) ? m : a + m;"
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
INLINE {element} {element}_round({element} x) {{ return __builtin_rint{suffix}(x); }}
INLINE {element} {element}_pow({element} x, {element} y) {{ return __builtin_pow{suffix}(x, y); }}
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
    templates = _RSQRT
    if element == "f32":
        text += """\
/* p * 2**n; the integer n is also t - 1.5*2**23. Two factors reach infinity and the denormals. */
INLINE f32 f32_scale(f32 p, f32 n, f32 t) {
    i32 k = f32_bits(t) - 0x4b400000, h = k >> 1;
    (void)n; /* of a NaN the shifts are of any number: they wrap */
    return p * f32_from_bits((i32)((u32)(h + 127) << 23)) * f32_from_bits((i32)((u32)(k - h + 127) << 23));
}
"""
        templates += f"INLINE T T_residue(T x, T *t) {{{_RESIDUE_F32}}}\n"
        templates += _EXP_F32 + _LOG_F32 + _SIGMOID + _TANH_F32 + _ERF_F32
    else:
        for function in ("exp", "log", "tanh", "erf"):
            text += f"INLINE f64 f64_{function}(f64 x) {{ return __builtin_{function}(x); }}\n"
        templates += _SIGMOID
    text += _fill(templates, element, element, integers, f"{element}_splat")
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
        ("round", 8, "__builtin_elementwise_rint"),
    ):
        one = f"return __builtin_ia32_round{p}{legacy}(x, {mode});"
        if wide:
            one = f"return __builtin_ia32_rndscale{p}_mask(x, {mode}, x, -1, 4);"
        test = {64: "__AVX512F__", 32: "__AVX__", 16: "__SSE4_1__"}[size]
        plain = lanewise(f"{element}_{function}")
        text += f"{head}{function}({name} x) {{\n"
        text += dialect.body(plain, (test, one), riscv=(elementwise, f"return {elementwise}(x);")) + "}\n"
    text += f"INLINE {integers} {name}_bits({name} x) {{ return ({integers})x; }}\n"
    text += f"{head}from_bits({integers} b) {{ return ({name})b; }}\n"
    text += f"{head}convert({integers} b) {{ return __builtin_convertvector(b, {name}); }}\n"
    templates = _RSQRT
    if element == "f32":
        one = f"(void)t;\n    return __builtin_ia32_scalefps{bits}_mask(p, n, p, -1{tail};"
        plain = (
            f"(void)n;\n    {integers} k = ({integers})t - 0x4b400000, h = k >> 1;\n"
            f"    return p * ({name})((h + 127) << 23) * ({name})((k - h + 127) << 23);"
        )
        text += f"{head}scale({name} p, {name} n, {name} t) {{\n" + dialect.body(plain, (avx512, one)) + "}\n"
        masked = _RESIDUE_F32_MASKED.replace("BITS", bits).replace("TAIL", tail)
        residue = dialect.body(_RESIDUE_F32.strip(), (avx512, masked.strip()))
        templates += f"INLINE T T_residue(T x, T *t) {{\n{residue}}}\n"
        templates += _EXP_F32 + _LOG_F32 + _SIGMOID + _TANH_F32 + _ERF_F32
    else:
        text += _libm_lanes(name, element, lanes, {f: f"f64_{f}" for f in ("exp", "log", "tanh", "erf")})
        templates += _SIGMOID
    filled = _fill(templates, name, element, integers, f"{name}_splat")
    text += filled if element == "f32" else _double(filled)
    if dialect.truncates:
        text += truncation(element, lanes)
    return text + float_bounds(name, element) + wide_integers(element, lanes, dialect.truncates)


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
    if element in HALVES:
        stream = f"INLINE void {name}_stream({element} *p, {name} x) {{ {name}_store(p, x); }}\n"
        return _moves(element, lanes) + half_vectors(element, lanes, dialect) + stream
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
    text += (
        _scalar_float("f32", dialect)
        + _scalar_float("f64", dialect)
        + scalar_halves(dialect)
        + (truncation("f32", 1) + truncation("f64", 1)) * dialect.truncates
        + scalar_conversions(dialect.truncates)
    )
    for dtype, lanes in shapes:
        text += _vector(dtype, lanes, dialect)
    if dialect.resizes:
        text += resized_integers(shapes)
    text += "".join(scalar_keys().values())
    text += "".join(vector_keys(lanes, dialect.resizes) for dtype, lanes in shapes if dtype == "i64")
    return dialect.finish(text + _instructions(processor))


def _instructions(processor: Processor) -> str:
    """Those of ``program/instructions.py`` that the processor has, by the compiler's names."""
    text = ""
    words = {instruction.word for instruction in INSTRUCTIONS.values()}
    for word in sorted(words):
        text += (
            f"typedef {word} {word}_unaligned __attribute__((aligned(1), may_alias));\n"
            f"INLINE {word} {word}_word(const void *p) {{ return *(const {word}_unaligned *)p; }}\n"
        )
    for name, lanes in sorted(available(processor.features)):
        instruction = INSTRUCTIONS[name]
        if lanes * DTYPE_BYTES[instruction.word] not in processor.vector_bytes:
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


def _accumulated(name: str, lanes: int) -> str:
    """The dtype of what an instruction writes."""
    program, leaf = meaning(name, lanes)
    return program.buffer_of[leaf.op.target.array].dtype


def _lanes(dtype: str, sizes: tuple[int, ...]) -> list[int]:
    """How many lanes a vector may have: also fewer than fill a register, beside a wider dtype."""
    bytes_ = DTYPE_BYTES[dtype]
    most = max(sizes) // (4 if dtype in HALVES else bytes_)
    least = 4 if dtype in HALVES else 2
    return [n for n in (2, 4, 8, 16, 32, 64) if least <= n <= most]


PREAMBLE = preamble(host())
"""What ``Code.text`` needs before it, for this machine."""
