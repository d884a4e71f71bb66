"""The C of numbers that are only stored: to and from the dtypes that they are computed in.

Floating-point numbers of eight bits and fewer (``program/minifloats.py``) become f32 and are made of it by
their bits, denormals by a product and a sum that are rounded as f32 are (F. Giesen's conversions of f16,
public domain); integers of four and two bits are the lower ones of a byte.
"""

from __future__ import annotations

from collections.abc import Callable

from dojo_core.codegen.conversions import to_integer, vector_type
from dojo_core.program.dtypes import STORAGE_FLOATS, STORAGE_INTEGERS, arithmetic, extremes
from dojo_core.program.minifloats import (
    EXPONENT_OF_F32,
    FRACTION_OF_F32,
    INFINITE,
    MINIFLOATS,
    Minifloat,
)

WORDS = """\
INLINE u32 f32_word(f32 x) {
    union { f32 x; u32 b; } u = {x};
    return u.b;
}
INLINE f32 u32_number(u32 b) {
    union { u32 b; f32 x; } u = {b};
    return u.x;
}
"""
_NAN = "0x7fc00000u"


def scalar_storage(truncates: bool = False) -> str:
    """``f32_from_f8e5m2``, ``f8e5m2_from_f32``, ``i4_from_i8``, ``i8_from_i4``, ``i4_from_f32`` and so on."""
    text = "".join(_float_functions(dtype, 1) for dtype in STORAGE_FLOATS)
    for dtype in STORAGE_INTEGERS:
        wide = arithmetic(dtype)
        for to, of in ((wide, dtype), (dtype, wide)):
            text += f"INLINE {to} {to}_from_{of}({of} x) {{ return {_lower('x', dtype, 1)}; }}\n"
        text += "".join(to_integer(dtype, real, truncates) for real in ("f32", "f64"))
    return text


def storage_function(name: str) -> str:
    """The definition of one of them, ``i4_from_f32``."""
    text = scalar_storage()
    begin = text.index(f" {name}(")
    begin = text.rindex("INLINE", 0, begin)
    end = text.find("\nINLINE", begin)
    return text[begin:] if end < 0 else text[begin : end + 1]


def storage_vectors(dtype: str, lanes: int) -> str:
    """``f8e5m2xN_f32`` and ``f32xN_f8e5m2``, or ``i4xN_i8`` and ``i8xN_i4``, between as many lanes."""
    if dtype in STORAGE_FLOATS:
        return _float_functions(dtype, lanes)
    wide, text = arithmetic(dtype), ""
    for to, of in ((wide, dtype), (dtype, wide)):
        kind, given = vector_type(to, lanes), vector_type(of, lanes)
        text += f"INLINE {kind} {given}_{to}({given} x) {{ return {_lower('x', dtype, lanes)}; }}\n"
    return text


def _lower(value: str, dtype: str, lanes: int) -> str:
    """The integer that the lower bits of a byte are."""
    least, most = extremes(dtype)
    if not least:
        return f"{value} & {most}"
    shift = 8 - int(dtype[1:])
    whole, twin = ("i8", "u8") if lanes == 1 else (vector_type("i8", lanes), vector_type("u8", lanes))
    return f"({whole})(({twin}){value} << {shift}) >> {shift}"


def _float_functions(dtype: str, lanes: int) -> str:
    """Both directions, of single numbers or vectors."""
    if lanes == 1:
        wide, word, narrow = "f32", "u32", dtype
        read, write = f"f32_from_{dtype}", f"{dtype}_from_f32"
        bits, number, wider, narrower = "f32_word", "u32_number", "x", f"({dtype})r"
    else:
        wide, word, narrow = (vector_type(d, lanes) for d in ("f32", "u32", dtype))
        read, write = f"{narrow}_f32", f"{wide}_{dtype}"
        bits, number = f"({word})", f"({wide})"
        wider, narrower = (f"__builtin_convertvector({x}, {to})" for x, to in (("x", word), ("r", narrow)))

    def chosen(test: str, then: str, other: str) -> str:
        if lanes == 1:
            return f"{test} ? {then} : {other}"
        return f"(({word})({test}) & ({then})) | (~({word})({test}) & ({other}))"

    form = MINIFLOATS[dtype]
    if isinstance(form, Minifloat):
        reading, writing = _read(form, chosen, bits, number), _written(form, chosen, bits, number)
    else:
        reading, writing = _read_power(chosen), _written_power(chosen)
    bodies = []
    for head, first, lines, result in (
        (f"{wide} {read}({narrow} x)", wider, reading, f"{number}(r)"),
        (f"{narrow} {write}({wide} x)", f"{bits}(x)", writing, narrower),
    ):
        body = "".join(
            f"    {line.replace('WORD', word)};\n" for line in [f"{word} w = {first}, {lines[0]}", *lines[1:]]
        )
        bodies.append(f"INLINE {head} {{\n{body}    return {result};\n}}\n")
    return "".join(bodies)


_Chosen = Callable[[str, str, str], str]  # C of a choice: test, then, else


def _read(form: Minifloat, chosen: _Chosen, bits: str, number: str) -> list[str]:
    """The bits ``r`` of f32 from the code ``w``: exponent and fraction are put where those of f32 are, and a
    product makes up for the other bias."""
    up = EXPONENT_OF_F32 - form.bias
    lines = [
        f"m = w & {form.sign - 1:#x}",
        f"r = {bits}({number}(m << {form.shift}) * {2.0**up!r}f)",
    ]
    if form.infinity:
        lines.append(f"r = {chosen(f'm == {form.most + 1:#x}', f'{INFINITE:#x}u', 'r')}")
    if form.least_nan is not None:
        lines.append(f"r = {chosen(f'm >= {form.least_nan:#x}', _NAN, 'r')}")
    lines.append(f"r |= (w & {form.sign:#x}) << {32 - form.sign.bit_length()}")
    if not form.negative_zero:
        lines.append(f"r = {chosen(f'w == {form.sign:#x}', _NAN, 'r')}")
    return [lines[0] + ", " + lines[1], *lines[2:]]


def _written(form: Minifloat, chosen: _Chosen, bits: str, number: str) -> list[str]:
    """The code ``r`` of the number nearest to the f32 with the bits ``w``."""
    base, most = (EXPONENT_OF_F32 - form.bias) << FRACTION_OF_F32, form.bits(form.most)
    half, shift = (1 << (form.shift - 1)) - 1, form.shift
    rounder = 2.0 ** (FRACTION_OF_F32 + 1 - form.bias - form.fraction)
    signed = f"w >> {32 - form.sign.bit_length()} & {form.sign:#x}"
    return [
        f"m = w & 0x7fffffff, b = {chosen(f'm > {most:#x}u', f'{most:#x}u', 'm')}",
        f"WORD normal = (b - {base:#x}u + {half:#x}u + (b >> {shift} & 1)) >> {shift}",
        f"WORD tiny = {bits}({number}(b) + {rounder!r}f) - {form.rounder:#x}u",
        f"WORD r = {chosen(f'b < {form.normal:#x}u', 'tiny', 'normal')}",
        f"r |= {signed}" if form.negative_zero else f"r = {chosen('r == 0', 'r', f'r | ({signed})')}",
        f"r = {chosen(f'm > {INFINITE:#x}u', f'{form.nan:#x}u', 'r')}",
    ]


def _read_power(chosen: _Chosen) -> list[str]:
    return [f"r = {chosen('w == 0', '0x400000u', 'w << 23')}", f"r = {chosen('w == 255', _NAN, 'r')}"]


def _written_power(chosen: _Chosen) -> list[str]:
    return [
        "m = w & 0x7fffffff, r = (m + 0x7fffff) >> 23",
        f"r = {chosen('r > 254', '254u', 'r')}",
        f"r = {chosen('m <= 0x400000u', '0u', 'r')}",
        f"r = {chosen(f'm > {INFINITE:#x}u', '255u', 'r')}",
        f"r = {chosen('w > 0x80000000u', '255u', 'r')}",
    ]
