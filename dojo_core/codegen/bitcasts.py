"""The C of bitcasts: the bits of a number as another dtype of the same size."""

from __future__ import annotations

from itertools import permutations

from dojo_core.program.dtypes import bitcast_dtypes


def bitcast_functions() -> dict[str, str]:
    """``i32_bits_f32(x)`` and so on, by name. f16 and bf16 are their bits in C already."""
    return {
        f"{to}_bits_{of}": (
            f"INLINE {to} {to}_bits_{of}({of} x) {{\n"
            f"    union {{ {of} x; {to} b; }} u = {{x}};\n    return u.b;\n}}\n"
        )
        for dtypes in bitcast_dtypes().values()
        for to, of in permutations(dtypes, 2)
    }
