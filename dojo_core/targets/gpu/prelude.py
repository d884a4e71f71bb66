"""What stands before the kernels: types by dtype, and the functions that the kernels use, for CUDA and HIP.

``max`` and ``min`` keep a NaN on either side, which ``fmaxf`` does not, and order -0 below +0. Everything
else is the device library's; the bounds are the CUDA programming guide's (appendix "Mathematical Functions",
in ulp).
"""

from __future__ import annotations

import re

from dojo_core.codegen.bitcasts import bitcast_functions
from dojo_core.codegen.conversions import scalar_integer, to_integer
from dojo_core.codegen.keys import scalar_keys
from dojo_core.codegen.minifloats import WORDS, storage_function
from dojo_core.codegen.wide_keys import WIDE_KEY_TYPES, wide_keys
from dojo_core.program.dtypes import INTEGERS, STORAGE, STORAGE_INTEGERS, extremes

ULP = 1.2e-7  # of f32, relative
ERROR_BOUNDS = {
    "rsqrt": 2 * ULP,
    "exp": 2 * ULP,
    "log": 2 * ULP,
    "tanh": 2 * ULP,
    "erf": 2 * ULP,
    "sigmoid": 4 * ULP,
    "pow": 4 * ULP,
    "sqrt": ULP,
    "exp2": 2 * ULP,
    "expm1": ULP,
    "log2": ULP,
    "log1p": ULP,
    "sin": 2 * ULP,
    "cos": 2 * ULP,
    "tan": 4 * ULP,
    "asin": 2 * ULP,
    "acos": 2 * ULP,
    "atan": 2 * ULP,
    "sinh": 3 * ULP,
    "cosh": 2 * ULP,
    "asinh": 3 * ULP,
    "acosh": 4 * ULP,
    "atanh": 3 * ULP,
}
F64_ERROR_BOUND = 1.0e-15
LARGEST = {"f32": "3.4028234663852886e38f", "f64": "1.7976931348623157e308"}  # finite number

TYPES = """\
typedef float f32;
typedef double f64;
typedef long long i64;
typedef int i32;
typedef short i16;
typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
"""
# CUDA's own vector types are aligned to their size, so that one instruction moves them.
CUDA_VECTORS = {
    "f32x4": "float4", "f32x2": "float2", "f64x2": "double2", "i32x4": "int4", "i32x2": "int2",
    "i64x2": "longlong2", "u32x4": "uint4", "u32x2": "uint2", "u64x2": "ulonglong2",
}  # fmt: skip

_OF_LIBRARY = (
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "trunc", "sqrt", "rsqrt",
)  # fmt: skip
_REAL = {name: f"{name}{{s}}(x)" for name in _OF_LIBRARY} | {
    "abs": "fabs{s}(x)",
    "round": "rint{s}(x)",
    "sigmoid": "1 / (1 + exp{s}(-x))",
    "sign": "x > 0 ? 1 : x < 0 ? -1 : x",
}

_MAX_NAN = """\
DEVICE f32 f32_{name}(f32 a, f32 b) {{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    f32 r;
    asm("{name}.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
#else
    return {ordered};
#endif
}}
"""

_SHUFFLE_WIDE = """\
DEVICE i128 SHUFFLE_XOR_I128(i128 value, int mask) {
    u64 high = SHUFFLE_XOR((u64)(value >> 64), mask), low = SHUFFLE_XOR((u64)value, mask);
    return (i128)((u128)high << 64 | low);
}
"""

_PREFETCH = """\
DEVICE void prefetch(const void *base, i64 bytes) {
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)base + bytes));
#endif
}
"""

_TF32 = """\
DEVICE f32 f32_tf32(f32 x) {
#ifdef __CUDA_ARCH__
    u32 bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
#else
    union { f32 x; u32 bits; } u = {x};
    u.bits = (u.bits + 0x1000) & 0xffffe000;
    return x != x ? x : u.x;
#endif
}
"""

# The emulator has an instruction of its own.
_MMA_TF32 = """\
#ifndef DOJO_EMULATOR
DEVICE void mma_tf32(f32 (&d)[4], f32 a0, f32 a1, f32 a2, f32 a3, f32 b0, f32 b1) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
                   "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}
#endif
"""

CUDA_HEAD = """\
#define DEVICE static __device__ __forceinline__
#define SHUFFLE_XOR(value, mask) __shfl_xor_sync(0xffffffffu, value, mask)
#define STREAM_STORE(place, value) __stcs(place, value)
#define STREAM_LOAD(place) __ldcs(place)
"""

# NVRTC has none of the host compiler's builtins.
NVRTC_CONSTANTS = {
    "__builtin_inff()": "__int_as_float(0x7f800000)",
    "__builtin_inf()": "__longlong_as_double(0x7ff0000000000000LL)",
    "__builtin_nanf(text)": "__int_as_float(0x7fc00000)",
    "__builtin_nan(text)": "__longlong_as_double(0x7ff8000000000000LL)",
}

# Nor its macros: the least i64, the identity of a maximum, is written with one.
_LIMITS = "#ifndef __INT64_MAX__\n#define __INT64_MAX__ 9223372036854775807LL\n#endif\n"

# Offline clang has no HIP headers, as hipcc and hipRTC do: what the kernels use of them, from its builtins.
HIP_HEAD = """\
#define DEVICE static inline __attribute__((device, always_inline))
#if !defined(__HIPCC_RTC__) && !defined(DOJO_EMULATOR) && !defined(HIP_INCLUDE_HIP_HIP_RUNTIME_H)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#define threadIdx_x (int)__builtin_amdgcn_workitem_id_x()
#define blockIdx_x (int)__builtin_amdgcn_workgroup_id_x()
DEVICE void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
DEVICE int __shfl_xor(int value, int mask) {
    int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
    return __builtin_amdgcn_ds_bpermute((lane ^ mask) << 2, value);
}
DEVICE float __shfl_xor(float value, int mask) {
    return __builtin_bit_cast(float, __shfl_xor(__builtin_bit_cast(int, value), mask));
}
DEVICE long long __shfl_xor(long long value, int mask) {
    unsigned low = __shfl_xor((int)value, mask), high = __shfl_xor((int)(value >> 32), mask);
    return (long long)((unsigned long long)high << 32 | low);
}
DEVICE unsigned __shfl_xor(unsigned value, int mask) { return (unsigned)__shfl_xor((int)value, mask); }
DEVICE unsigned long long __shfl_xor(unsigned long long value, int mask) {
    return (unsigned long long)__shfl_xor((long long)value, mask);
}
DEVICE double __shfl_xor(double value, int mask) {
    return __builtin_bit_cast(double, __shfl_xor(__builtin_bit_cast(long long, value), mask));
}
#define OCML(name, suffix, bits, type) \\
    extern "C" __attribute__((device)) type __ocml_##name##_f##bits(type); \\
    DEVICE type name##suffix(type x) { return __ocml_##name##_f##bits(x); }
OCML_LIST#define OCML2(name, suffix, bits, type) \\
    extern "C" __attribute__((device)) type __ocml_##name##_f##bits(type, type); \\
    DEVICE type name##suffix(type x, type y) { return __ocml_##name##_f##bits(x, y); }
OCML2(pow, f, 32, float) OCML2(fmod, f, 32, float) OCML2(pow, , 64, double) OCML2(fmod, , 64, double)
DEVICE float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
#define threadIdx_x (int)threadIdx.x
#define blockIdx_x (int)blockIdx.x
#endif
#ifndef DOJO_EMULATOR
#define __syncwarp sync_wave
DEVICE void sync_wave() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
#endif
#define SHUFFLE_XOR(value, mask) __shfl_xor(value, mask)
#define STREAM_STORE(place, value) (*(place) = (value))
#define STREAM_LOAD(place) (*(place))
""".replace(
    "OCML_LIST",
    "".join(
        f"OCML({name}, f, 32, float) OCML({name}, , 64, double)\n" for name in ("fabs", "rint", *_OF_LIBRARY)
    ),
)


def _function(dtype: str, name: str) -> str:
    """The definition of ``{dtype}_{name}``."""
    head = f"DEVICE {dtype} {dtype}_{name}"
    suffix = "f" if dtype == "f32" else ""
    if name.startswith("from_"):
        return to_integer(dtype, name.removeprefix("from_")).replace("INLINE", "DEVICE")
    if name in ("max", "min"):
        sign, zero = (">", "a + b") if name == "max" else ("<", "-(-a - b)")
        ordered = f"a {sign} b || a != a ? a : a == 0 && b == 0 ? {zero} : b"
        if dtype == "f32":
            return _MAX_NAN.format(name=name, ordered=ordered)
        return f"{head}({dtype} a, {dtype} b) {{ return {ordered}; }}\n"
    if name in ("pow", "fmod"):
        return f"{head}({dtype} x, {dtype} y) {{ return {name}{suffix}(x, y); }}\n"
    if name == "tf32":
        return _TF32
    if name in ("isnan", "isinf"):
        test = "x != x" if name == "isnan" else f"fabs{suffix}(x) > {LARGEST[dtype]}"
        return f"DEVICE int {dtype}_{name}({dtype} x) {{ return {test}; }}\n"
    if name == "fma":
        return f"{head}({dtype} a, {dtype} b, {dtype} c) {{ return fma{suffix}(a, b, c); }}\n"
    return f"{head}({dtype} x) {{ return {_REAL[name].format(s=suffix)}; }}\n"


_CALL = re.compile(rf"\b(f32|f64|{'|'.join(INTEGERS)})_(from_f32|from_f64|[a-z][a-z0-9]*)\(")
_STORAGE_CALL = re.compile(
    rf"\b((?:f32|i8|u8)_from_(?:{'|'.join(STORAGE)})|(?:{'|'.join(STORAGE)})_from_\w+)\("
)
_KEY_CALL = re.compile(rf"\b(?:{'|'.join(scalar_keys() | wide_keys())})\b")
_VECTOR = re.compile(r"\b(?:f32|f64|[iu]32|[iu]64)x[24]\b")


def _storage(kernels: str) -> list[str]:
    """The types and conversions of what is only stored."""
    used = [dtype for dtype in STORAGE if re.search(rf"\b{dtype}\b", kernels)]
    signs = {d: "signed" if d in STORAGE_INTEGERS and extremes(d)[0] else "unsigned" for d in used}
    calls = sorted(set(_STORAGE_CALL.findall(kernels)))
    parts = [f"typedef {sign} char {dtype};\n" for dtype, sign in signs.items()]
    return [
        *parts,
        *(
            t.replace("INLINE", "DEVICE")
            for t in ([WORDS] * bool(calls)) + list(map(storage_function, calls))
        ),
    ]


def _keys(kernels: str) -> list[str]:
    """The types and functions of keys."""
    parts = [WIDE_KEY_TYPES] if re.search(r"\bi128\b", kernels) else []
    functions = scalar_keys() | wide_keys()
    parts += [functions[name].replace("INLINE", "DEVICE") for name in sorted(set(_KEY_CALL.findall(kernels)))]
    return [*parts, _SHUFFLE_WIDE] if "SHUFFLE_XOR_I128(" in kernels else parts


def prelude(kernels: str, dialect: str) -> str:
    """What the text of some kernels needs before it."""
    parts = [CUDA_HEAD if dialect == "cuda" else HIP_HEAD, TYPES]
    keys = _keys(kernels)
    if any("__INT64_MAX__" in text for text in (kernels, *keys)):
        parts.append(_LIMITS)
    constants = [
        f"#define {call} {value}\n"
        for call, value in NVRTC_CONSTANTS.items()
        if call.partition("(")[0] + "(" in kernels
    ]
    if constants and dialect == "cuda":
        parts += ["#ifdef __CUDACC_RTC__\n", *constants, "#endif\n"]
    for vector in sorted(set(_VECTOR.findall(kernels))):
        if dialect == "cuda":
            parts.append(f"typedef {CUDA_VECTORS[vector]} {vector};\n")
        else:
            base, _, width = vector.partition("x")
            cells = ", ".join("xyzw"[: int(width)])
            size = int(base[1:]) // 8 * int(width)
            parts.append(f"struct __attribute__((aligned({size}))) {vector} {{ {base} {cells}; }};\n")
    calls = sorted(set(_CALL.findall(kernels)))
    for dtype in INTEGERS:
        used = {name for d, name in calls if d == dtype}
        if used & {"abs", "divide"}:
            used.add("negate")
        parts += [t.replace("INLINE", "DEVICE") for n, t in scalar_integer(dtype).items() if n in used]
    parts += keys
    bitcasts = bitcast_functions()
    called = [name for name in bitcasts if re.search(rf"\b{name}\(", kernels)]
    parts += [bitcasts[name].replace("INLINE", "DEVICE") for name in called]
    calls = [(d, n) for d, n in calls if not _KEY_CALL.fullmatch(f"{d}_{n}")]
    parts += [_function(d, n) for d, n in calls if d not in INTEGERS or n.startswith("from_")]
    parts += _storage(kernels)
    if "mma_tf32(" in kernels:
        parts.append(_MMA_TF32)
    if "prefetch(" in kernels:
        parts.append(_PREFETCH)
    return "".join(parts)
