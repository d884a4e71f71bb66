"""The C of keys of 128 bits: the type, its extremes, and vectors of them.

A vector is two, of the upper halves and of the lower ones, so that a comparison of keys is three of vectors.
In memory each key is whole: loads take the halves apart, and stores put them together.
"""

from __future__ import annotations

from dojo_core.codegen.keys import vector_element, vector_order, vector_place
from dojo_core.program.dtypes import KEY_ELEMENTS, KEYS

WIDE_KEY_TYPES = "".join(
    f"typedef {sign} {name}128 __attribute__((mode(TI)));\n"
    for sign, name in (("int", "i"), ("unsigned", "u"))
)
_EXTREMES = {"max": (">", "maximum"), "min": ("<", "minimum")}


def wide_keys() -> dict[str, str]:
    """``i128_max(a, b)`` and ``i128_min(a, b)`` by name."""
    return {
        f"i128_{name}": f"INLINE i128 i128_{name}(i128 a, i128 b) {{ return a {sign} b ? a : b; }}\n"
        for name, (sign, _) in _EXTREMES.items()
    }


def wide_key_vectors(lanes: int) -> str:
    """``i128xN``: loads, stores, single lanes, extremes, and what keys are made of and hold."""
    return _moves(lanes) + _extremes(lanes) + _made(lanes)


def _moves(n: int) -> str:
    key, high, low = f"i128x{n}", f"i64x{n}", f"u64x{n}"
    cells = ", ".join(f"i128 x{k}" for k in range(n))
    highs, lows = (
        ", ".join(f"{cast}x{k}{upper}" for k in range(n))
        for cast, upper in (("(i64)(", " >> 64)"), ("(u64)", ""))
    )
    of = [", ".join(map(str, range(first, 2 * n, 2))) for first in (0, 1)]
    whole = [", ".join(f"{k}, {n + k}" for k in part) for part in (range(n // 2), range(n // 2, n))]
    return (
        f"typedef struct {{ {high} high; {low} low; }} {key};\n"
        f"INLINE {key} {key}_load(const i128 *p) {{\n"
        f"    {low} a = {low}_load((const u64 *)p), b = {low}_load((const u64 *)p + {n});\n"
        f"    {low} h = __builtin_shufflevector(a, b, {of[1]});\n"
        f"    {key} k = {{({high})h, __builtin_shufflevector(a, b, {of[0]})}};\n    return k;\n}}\n"
        f"INLINE void {key}_store(i128 *p, {key} k) {{\n"
        f"    {low} h = ({low})k.high;\n"
        f"    {low}_store((u64 *)p, __builtin_shufflevector(k.low, h, {whole[0]}));\n"
        f"    {low}_store((u64 *)p + {n}, __builtin_shufflevector(k.low, h, {whole[1]}));\n}}\n"
        f"INLINE void {key}_stream(i128 *p, {key} k) {{ {key}_store(p, k); }}\n"
        f"INLINE {key} {key}_splat(i128 x) {{\n"
        f"    {key} k = {{{high}_splat((i64)(x >> 64)), {low}_splat((u64)x)}};\n    return k;\n}}\n"
        f"INLINE {key} {key}_of({cells}) {{\n    {key} k = {{{{{highs}}}, {{{lows}}}}};\n    return k;\n}}\n"
        f"INLINE i128 {key}_lane({key} k, int n) {{\n"
        f"    return (i128)((u128)(i128)k.high[n] << 64 | k.low[n]);\n}}\n"
        f"INLINE void {key}_set({key} *k, int n, i128 x) {{\n"
        f"    k->high[n] = (i64)(x >> 64);\n    k->low[n] = (u64)x;\n}}\n"
    )


def _extremes(n: int) -> str:
    key, high, low, text = f"i128x{n}", f"i64x{n}", f"u64x{n}", ""
    for name, (sign, word) in _EXTREMES.items():
        text += (
            f"INLINE {key} {key}_{name}({key} a, {key} b) {{\n"
            f"    {high} m = ({high})(a.high {sign} b.high)"
            f" | (({high})(a.high == b.high) & ({high})(a.low {sign} b.low));\n"
            f"    {key} k = {{(a.high & m) | (b.high & ~m), (a.low & ({low})m) | (b.low & ~({low})m)}};\n"
            f"    return k;\n}}\n"
        )
        most = f"{key}_lane(k, 0)"
        for lane in range(1, n):
            most = f"i128_{name}({most}, {key}_lane(k, {lane}))"
        text += f"INLINE i128 {key}_{word}({key} k) {{ return {most}; }}\n"
    return text


def _made(n: int) -> str:
    key, high, low, text = f"i128x{n}", f"i64x{n}", f"u64x{n}", ""
    for element in KEY_ELEMENTS["i128"]:
        for name in KEYS:
            text += (
                f"INLINE {key} {key}_{name}_{element}({element}x{n} x, {high} i) {{\n"
                f"{vector_order(name, element, n)}"
                f"    {key} k = {{b, {vector_place(name, n)}}};\n    return k;\n}}\n"
            )
        text += (
            f"INLINE {element}x{n} {element}x{n}_keyvalue({key} k) {{\n"
            f"    {high} b = k.high;\n    return {vector_element(element, n)};\n}}\n"
        )
    return text + (
        f"INLINE {high} {high}_keyindex_i128({key} k) {{\n"
        f"    {low} low = k.low;\n    return ({high})((low ^ -(low & 1)) >> 1);\n}}\n"
    )
