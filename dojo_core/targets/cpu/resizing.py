"""The C that makes integers of one size those of another on Arm: a step of twice or half the size is one
instruction on the lower halves of registers."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise, permutations

from dojo_core.codegen.conversions import vector_type
from dojo_core.program.dtypes import INTEGERS, extremes
from dojo_core.program.tree import DTYPE_BYTES

_LETTERS = {1: "b", 2: "h", 4: "s", 8: "d"}


def resized_integers(shapes: Collection[tuple[str, int]]) -> str:
    """``i8x4_to_i32`` and its kin, between all of these dtypes and lanes."""
    known = set(shapes)
    text = ""
    for have, want in permutations(INTEGERS, 2):
        if DTYPE_BYTES[have] != DTYPE_BYTES[want]:
            lanes = sorted(n for dtype, n in known if dtype == have and (want, n) in known)
            text += "".join(_resized(have, want, n) for n in lanes)
    return text


def _resized(have: str, want: str, lanes: int) -> str:
    sizes = [DTYPE_BYTES[have]]
    while sizes[-1] != DTYPE_BYTES[want]:
        sizes.append(2 * sizes[-1] if DTYPE_BYTES[want] > sizes[-1] else sizes[-1] // 2)
    steps = []
    for number, (one, next_) in enumerate(pairwise(sizes)):
        source = "%0" if number else "%1"
        if next_ > one:
            sign = "s" if extremes(have)[0] else "u"
            steps.append(
                f"{sign}shll %0.{16 // next_}{_LETTERS[next_]}, {source}.{8 // one}{_LETTERS[one]}, #0"
            )
        else:
            steps.append(f"xtn %0.{8 // next_}{_LETTERS[next_]}, {source}.{16 // one}{_LETTERS[one]}")
    # What is shorter than half a register goes in and comes out as one number.
    given = _as_number("x", lanes * DTYPE_BYTES[have])
    bytes_, kind = lanes * DTYPE_BYTES[want], vector_type(want, lanes)
    held = kind if bytes_ >= 8 else "u32"
    result = {2: f"({kind})(u16)r", 4: f"({kind})r"}.get(bytes_, "r")
    assembly = "\\n\\t".join(steps)
    return (
        f"INLINE {kind} {vector_type(have, lanes)}_to_{want}({vector_type(have, lanes)} x) {{\n"
        f'    {held} r;\n    __asm__("{assembly}" : "=w"(r) : "w"({given}));\n    return {result};\n}}\n'
    )


def _as_number(text: str, bytes_: int) -> str:
    return {2: f"(u32)(u16){text}", 4: f"(u32){text}"}.get(bytes_, text)
