"""Functions of real numbers in C, written once for a scalar and for vectors of every width.

A template's words are those of ``vecmath.py``: T the type, E its element, I integers of the same shape, S(c)
the constant c in every lane. A product that goes into a sum is a ``T_fma`` and no other: a compiler that may
fuse the two would round in one width once, in another twice.

The polynomials: exp a minimax of degree 5 on [-ln2/2, ln2/2] that is 1 at 0 (relative error 9.2e-8 before
rounding, 1.61e-7 in all); exp2 one of degree 6 (2e-9) and expm1 of degree 6 (1.4e-8) likewise;
log, log2, log1p, sin, cos, tan, atan, asin and acos Cephes (S. L. Moshier, logf.c, sinf.c, atanf.c, asinf.c);
tanh a quotient of expm1; erf 1 less the exponential of a minimax of degree 9 (4e-9 of erf), that of expm1
again.

A processor waits for the chain of a function's operations: of the vectors that follow it holds too few to
fill the time. So long polynomials are summed in parts (Estrin), but for the last steps, whose rounding
counts.
"""

from __future__ import annotations

from dojo_core.targets.cpu.dialect import Dialect

OF_LIBRARY = (
    "exp", "log", "tanh", "erf", "exp2", "expm1", "log2", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
)  # fmt: skip
"""What the C library computes in f64, lane by lane."""

FAR = ("sin", "cos", "tan")
"""What the C library computes in f32 too, of arguments beyond 1e5: pi/2 has too few digits here."""

# T_residue: x less n times ln 2, n whole, and t = n + 254 + 1.5*2**23, which made it whole. Beyond c's bounds
# exp is inf or 0; a NaN passes.
_RESIDUE_F32 = """
    T c = T_least(S(89.0f), T_most(S(-104.0f), x));
    *t = T_fma(c, S(1.44269504f), S(12583166.0f));
    T n = *t - S(12583166.0f);
    T r = T_fma(n, S(-0.693359375f), c);
    return T_fma(n, S(2.12194440e-4f), r);
"""

# One instruction in place of two: where t is far from 1.5*2**23 it has a bit of -2**-22, the residue is 0,
# and 1 scaled by n, however large, is right. (Only n near -10**7 pass for near; their residues are small.)
_RESIDUE_F32_MASKED = """
    *t = T_fma(x, S(1.44269504f), S(12583166.0f));
    T n = *t - S(12583166.0f);
    T r = T_fma(n, S(-0.693359375f), x);
    int near = __builtin_ia32_ptestnmdBITS((I)*t, (I)S(-2.38418579e-7f), -1);
    return __builtin_ia32_vfmaddpsBITS_maskz(n, S(2.12194440e-4f), r, nearTAIL;
"""

_EXP_F32 = """\
INLINE T T_exp(T x) {
    T t, r = T_residue(x, &t), n = t - S(12583166.0f);
    T p = T_fma(S(8.29030666e-3f), r, S(4.18979749e-2f));
    p = T_fma(p, r, S(1.66676372e-1f));
    p = T_fma(p, r, S(4.99991506e-1f));
    p = T_fma(p, r, S(9.99999702e-1f));
    return T_scaled(p, r, n, t);
}
"""

_LOG_F32 = """\
INLINE T T_mantissa(T x, T *k) { /* x less 1 where k times ln 2 are taken out of its logarithm */
    I tiny = x < S(1.17549435e-38f);
    T m = T_select(tiny, T_abs(x) * S(8388608.0f), x); /* denormals times 2**23 */
    I e = (T_bits(m) - 0x3f3504f3) >> 23;
    *k = T_convert(e) + T_select(tiny, S(-23.0f), S(0.0f));
    return T_lowered(m, e) - S(1.0f); /* of what lies in [sqrt(1/2), sqrt(2)) */
}
INLINE T T_series(T f, T z) {
    T w = z * z, p = T_fma(S(-1.1514610310e-1f), f, S(1.1676998740e-1f));
    p = T_fma(p, z, T_fma(S(-1.2420140846e-1f), f, S(1.4249322787e-1f)));
    p = T_fma(S(7.0376836292e-2f), w, p);
    T q = T_fma(S(-1.6668057665e-1f), f, S(2.0000714765e-1f));
    return T_fma(p, w, T_fma(q, z, T_fma(S(-2.4999993993e-1f), f, S(3.3333331174e-1f))));
}
INLINE T T_log_of_all(T x, T r) { /* r, but where x is no positive number */
    T beside = T_select(x == S(0.0f), S(-__builtin_inff()), S(__builtin_nanf("")));
    return T_select(x > S(0.0f), T_select(x < S(__builtin_inff()), r, x), beside);
}
INLINE T T_natural(T f, T k) { /* the logarithm of 1 + f, and k times ln 2 */
    T z = f * f, y = T_fma(k, S(-2.12194440e-4f), f * z * T_series(f, z));
    y = T_fma(z, S(-0.5f), y);
    return T_fma(k, S(0.693359375f), f + y);
}
INLINE T T_log(T x) {
    T k, f = T_mantissa(x, &k);
    return T_log_of_all(x, T_natural(f, k));
}
INLINE T T_log2(T x) {
    T k, f = T_mantissa(x, &k), z = f * f;
    T y = T_fma(z, S(-0.5f), f * z * T_series(f, z));
    T r = T_fma(f, S(0.442695041f), y * S(0.442695041f)); /* log2(e) less 1 */
    return T_log_of_all(x, k + (r + y + f));
}
"""

_SIGMOID = """\
INLINE T T_sigmoid(T x) {
    T z = T_exp(-T_abs(x));
    return T_select(x < S(0.0f), z, S(1.0f)) / (S(1.0f) + z);
}
"""

# T_less: exp(r) less 1, r at most half of ln 2.
_LESS_F32 = """\
INLINE T T_less(T r) {
    T z = r * r;
    T p = T_fma(S(1.38825099e-3f), z, T_fma(S(8.36658034e-3f), r, S(4.16672018e-2f)));
    p = T_fma(p, z, T_fma(S(1.66665432e-1f), r, S(4.99999981e-1f)));
    return T_fma(p, z, r);
}
"""

# (exp(2a) - 1) / (exp(2a) + 1), both of what exp(2a) less a power of two is. 1 beyond 9.1; a NaN passes.
_TANH_F32 = """\
INLINE T T_tanh(T x) {
    T a = T_least(S(9.1f), T_abs(x)), c = a + a;
    T t = T_fma(c, S(1.44269504f), S(12583039.0f));
    T p = T_less(T_fma(t - S(12583039.0f), S(-0.693147181f), c)), h = T_power(t);
    return T_copysign(T_fma(p, h, h - S(1.0f)) / T_fma(p, h, h + S(1.0f)), x);
}
"""

# 1 - exp(p), p the logarithm of 1 - erf(a), whose polynomial keeps its relative error down to 0: no second
# one for small a. t's last bits are n + 127, those of 2**n.
_ERF_F32 = """\
INLINE T T_erf(T x) {
    T a = T_least(S(4.0f), T_abs(x)); /* 1 beyond; a NaN passes */
    T z = a * a, p = T_fma(S(9.25626725e-6f), a, S(-1.17641290e-4f));
    p = T_fma(p, z, T_fma(S(6.32836919e-4f), a, S(-1.66702758e-3f)));
    p = T_fma(p, z, T_fma(S(1.60396183e-4f), a, S(1.91530638e-2f)));
    p = T_fma(p, z, T_fma(S(-1.02777830e-1f), a, S(-6.36619382e-1f)));
    p = T_fma(p, a, S(-1.28379172e-1f));
    p = T_fma(p, a, -a);
    T t = T_fma(p, S(1.44269504f), S(12583039.0f));
    T g = T_less(T_fma(t - S(12583039.0f), S(-0.693147181f), p)), h = T_power(t);
    return T_copysign(T_fma(-g, h, S(1.0f) - h), x);
}
"""

_RSQRT = "INLINE T T_rsqrt(T x) { return S(1.0f) / T_sqrt(x); }\n"

_EXP2_F32 = """\
INLINE T T_exp2(T x) {
    T c = T_least(S(129.0f), T_most(S(-151.0f), x));
    T t = c + S(12583166.0f), n = t - S(12583166.0f), r = c - n;
    T p = T_fma(S(1.53533618e-4f), r, S(1.33988744e-3f));
    p = T_fma(p, r, S(9.61843736e-3f));
    p = T_fma(p, r, S(5.55033247e-2f));
    p = T_fma(p, r, S(2.40226479e-1f));
    p = T_fma(p, r, S(6.93147203e-1f));
    return T_scaled(p, r, n, t);
}
"""

# A quarter of expm1(x), of x up to 89.5, of which expm1 itself is infinite. t's last bits are n + 125, those
# of 2**(n-2).
_EXPM1_F32 = """\
INLINE T T_quarter(T x) {
    T c = T_least(S(89.5f), T_most(S(-30.0f), x));
    T t = T_fma(c, S(1.44269504f), S(12583037.0f)), n = t - S(12583037.0f);
    T r = T_fma(n, S(-0.693359375f), c);
    T p = T_less(T_fma(n, S(2.12194440e-4f), r)), h = T_power(t);
    return T_fma(p, h, h - S(0.25f));
}
INLINE T T_expm1(T x) {
    return T_select(T_abs(x) < S(1e-10f), x, S(4.0f) * T_quarter(x));
}
"""

_HYPERBOLIC_F32 = """\
INLINE T T_sinh(T x) {
    T a = T_abs(x), e = T_quarter(a);
    T v = e + e / T_fma(S(4.0f), e, S(1.0f));
    return T_copysign(T_select(a < S(1e-10f), a, v + v), x);
}
INLINE T T_cosh(T x) {
    T w = T_quarter(T_abs(x)) + S(0.25f);
    return (w + w) + S(0.125f) / w;
}
INLINE T T_asinh(T x) {
    T a = T_abs(x);
    T v = a + a * a / (S(1.0f) + T_sqrt(T_fma(a, a, S(1.0f))));
    v = T_log1p(T_select(a > S(1e9f), a, v)) + T_select(a > S(1e9f), S(0.693147181f), S(0.0f));
    return T_copysign(v, x);
}
INLINE T T_acosh(T x) {
    T t = x - S(1.0f);
    T v = t + T_sqrt(T_fma(t, t, t + t));
    v = T_log1p(T_select(x > S(1e9f), x, v)) + T_select(x > S(1e9f), S(0.693147181f), S(0.0f));
    return T_select(x >= S(1.0f), v, S(__builtin_nanf("")));
}
INLINE T T_atanh(T x) {
    T a = T_abs(x);
    return T_copysign(S(0.5f) * T_log1p((a + a) / (S(1.0f) - a)), x);
}
"""

# Of 1 + x only the power of two is taken: x and 1 are divided by it apart, so that nothing of x is left out.
# Its inverse, which may be 2**-128, is made four times as large first.
_LOG1P_F32 = """\
INLINE T T_log1p(T x) {
    T u = S(1.0f) + x;
    I e = (T_bits(T_abs(u)) - 0x3f3504f3) >> 23;
    T s = T_lowered(S(4.0f), e) * S(0.25f);
    T r = T_natural(T_fma(x, s, s - S(1.0f)), T_convert(e));
    return T_copysign(T_log_of_all(u, r), x);
}
"""

# T_quadrant: a, up to 1e5, less n times pi/2, n whole, and n's last bits in q. Where a product and a sum are
# rounded once, three parts of pi/2 are enough; where twice, n is in two parts and pi/2 in parts of 15 bits,
# whose products are exact.
_QUADRANT = """
    T t = T_fma(a, S(0.636619772f), S(12582912.0f)), n = t - S(12582912.0f);
    *q = T_bits(t);
    T r = T_fma(n, S(-1.57079637f), a);
    r = T_fma(n, S(4.37113883e-8f), r);
    return T_fma(n, S(1.71512451e-15f), r);
"""
_QUADRANT_ROUNDED_TWICE = """
    T t = T_fma(a, S(0.636619772f), S(12582912.0f)), n = t - S(12582912.0f);
    *q = T_bits(t);
    T h = (n + S(3221225472.0f)) - S(3221225472.0f), l = n - h; /* multiples of 256 and the rest */
    T r = (a - h * S(1.57073974609375f)) - l * S(1.57073974609375f);
    r = (r - h * S(5.65797090530395508e-5f)) - l * S(5.65797090530395508e-5f);
    r = (r - h * S(9.92088189377682284e-10f)) - l * S(9.92088189377682284e-10f);
    return r - n * S(5.39030295e-15f);
"""

_CIRCULAR_F32 = """\
INLINE T T_sine(T r) {
    T z = r * r;
    T p = T_fma(S(-1.9515295891e-4f), z, S(8.3321608736e-3f));
    p = T_fma(p, z, S(-1.6666654611e-1f));
    return T_fma(p * z, r, r);
}
INLINE T T_cosine(T r) {
    T z = r * r;
    T p = T_fma(S(2.443315711809948e-5f), z, S(-1.388731625493765e-3f));
    p = T_fma(p, z, S(4.166664568298827e-2f));
    p = T_fma(p, z, S(-0.5f));
    return T_fma(p, z, S(1.0f));
}
INLINE T T_sin(T x) {
    I q;
    T a = T_abs(x), r = T_quadrant(a, &q);
    T v = T_select((q & 1) != 0, T_cosine(r), T_sine(r));
    v = T_from_bits(T_bits(v) ^ (T_bits(x) & (-2147483647 - 1)) ^ ((q & 2) * -1073741824));
    return T_any(a > S(1e5f)) ? T_far_sin(x, v) : v;
}
INLINE T T_cos(T x) {
    I q;
    T a = T_abs(x), r = T_quadrant(a, &q);
    T v = T_select((q & 1) != 0, T_sine(r), T_cosine(r));
    v = T_from_bits(T_bits(v) ^ (((q ^ (q >> 1)) & 1) * (-2147483647 - 1)));
    return T_any(a > S(1e5f)) ? T_far_cos(x, v) : v;
}
INLINE T T_tan(T x) {
    I q;
    T a = T_abs(x), r = T_quadrant(a, &q), s = T_sine(r), c = T_cosine(r);
    T v = T_select((q & 1) != 0, c, s) / T_select((q & 1) != 0, s, c);
    v = T_from_bits(T_bits(v) ^ (T_bits(x) & (-2147483647 - 1)) ^ ((q & 1) * (-2147483647 - 1)));
    return T_any(a > S(1e5f)) ? T_far_tan(x, v) : v;
}
"""

# T_arc: asin(s), whose square is z, of s up to 1/2; beyond, the half of what is left to a right angle is one.
_ARCS_F32 = """\
INLINE T T_atan(T x) {
    T a = T_abs(x);
    I steep = a > S(2.41421356f), middle = a > S(0.414213562f);
    T n = T_select(steep, S(-1.0f), T_select(middle, a - S(1.0f), a));
    T r = n / T_select(steep, a, T_select(middle, a + S(1.0f), S(1.0f))), z = r * r;
    T p = T_fma(S(8.05374449538e-2f), z, S(-1.38776856032e-1f));
    p = T_fma(p, z, S(1.99777106478e-1f));
    p = T_fma(p, z, S(-3.33329491539e-1f));
    r = T_fma(p * z, r, r);
    T turned = T_select(steep, S(1.57079633f), T_select(middle, S(0.785398163f), S(0.0f)));
    return T_copysign(turned + r, x);
}
INLINE T T_arc(T s, T z) {
    T p = T_fma(S(4.2163199048e-2f), z, S(2.4181311049e-2f));
    p = T_fma(p, z, S(4.5470025998e-2f));
    p = T_fma(p, z, S(7.4953002686e-2f));
    p = T_fma(p, z, S(1.6666752422e-1f));
    return T_fma(p * z, s, s);
}
INLINE T T_asin(T x) {
    T a = T_abs(x);
    I steep = a > S(0.5f);
    T z = T_select(steep, S(0.5f) * (S(1.0f) - a), a * a);
    T s = T_arc(T_select(steep, T_sqrt(z), a), z);
    return T_copysign(T_select(steep, S(1.57079633f) - (s + s), s), x);
}
INLINE T T_acos(T x) {
    T a = T_abs(x);
    I steep = a > S(0.5f);
    T z = T_select(steep, S(0.5f) * (S(1.0f) - a), a * a);
    T s = T_arc(T_select(steep, T_sqrt(z), a), z);
    T beyond = T_select(x < S(0.0f), S(3.14159265f) - (s + s), s + s);
    return T_select(steep, beyond, S(1.57079633f) - T_copysign(s, x));
}
"""

_SIGN = """\
INLINE T T_sign(T x) { return T_select((x == S(0.0f)) | (x != x), x, T_copysign(S(1.0f), x)); }
"""


def templates(element: str, dialect: Dialect, masked: tuple[str, str] | None = None) -> str:
    """The functions of ``element``. ``masked``: a macro and the body of ``T_residue`` where it is defined."""
    if element == "f64":
        return _RSQRT + _SIGMOID + _SIGN
    residue = dialect.body(_RESIDUE_F32.strip("\n "), masked)
    quadrant = dialect.fused(element, _QUADRANT.strip("\n "), _QUADRANT_ROUNDED_TWICE.strip("\n "))
    return (
        _RSQRT
        + f"INLINE T T_residue(T x, T *t) {{\n{residue}}}\n"
        + _EXP_F32 + _LESS_F32 + _LOG_F32 + _SIGMOID + _TANH_F32 + _ERF_F32
        + _EXP2_F32 + _EXPM1_F32 + _LOG1P_F32 + _HYPERBOLIC_F32
        + f"INLINE T T_quadrant(T a, I *q) {{\n{quadrant}}}\n"
        + _CIRCULAR_F32 + _ARCS_F32 + _SIGN
    )  # fmt: skip


def residue_masked(bits: str, tail: str) -> str:
    """``T_residue`` of a vector in one instruction less, by masks of AVX-512."""
    return _RESIDUE_F32_MASKED.replace("BITS", bits).replace("TAIL", tail).strip("\n ")
