"""One scalar instruction as an expression of C or C++: what the code generators share.

The text names types by dtype (``f32``, ``i64``) and functions by dtype and name (``f32_exp``); each
generator's preamble defines them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dojo_core.codegen.code import NotGeneratable
from dojo_core.codegen.conversions import integer_literal, scalar_conversion
from dojo_core.codegen.keys import key_suffix
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import (
    BEYOND,
    COMPARISONS,
    FLOATS,
    HALVES,
    NARROW_FLOATS,
    STORAGE,
    STORAGE_FLOATS,
    STORAGE_INTEGERS,
    TO_WHOLE,
    arithmetic,
    compute_dtype,
    dtypes_of,
    extremes,
    operand_dtype,
)
from dojo_core.program.functions import FUNCTIONS
from dojo_core.program.minifloats import minifloat_stored
from dojo_core.program.tables import Indirect, Lookup
from dojo_core.program.tree import DTYPE_BYTES, Access, Comparison, Number, Op, Operand, Program, Scope

WRAPPING = {"+": "add", "-": "subtract", "*": "multiply", "neg": "negate"}  # of integers


class Scalars:
    """Statements for a program's operations; ``place`` gives the text of a cell."""

    def __init__(
        self, program: Program, strict: bool, place: Callable[[Access, Sequence[Scope]], str]
    ) -> None:
        self.dtypes, self.strict, self.place = dtypes_of(program), strict, place

    def statement(self, op: Op, scopes: Sequence[Scope]) -> str:
        """The assignment or accumulation of one scalar."""
        dtype = self.dtypes[op.target.array]
        place = self.place(op.target, scopes)
        if moves_bytes(op, dtype):
            return f"{place} = {self._bytes(op, dtype, scopes)};"
        if op.function == "bitcast":
            (source,) = op.sources
            return f"{place} = {dtype}_bits_{self.dtypes[source.array]}({self.place(source, scopes)});"
        compute = converted_in(self.compute_dtype(op))

        def operand(value: Operand, wanted: str) -> str:
            if isinstance(value, Number):
                return literal(value.value, wanted)
            if isinstance(value, Affine):
                text = f"({index_text(value, scopes)})"
                return f"({text} != 0)" if wanted == "bool" else f"({c_type(wanted)}){text}"
            return scalar_conversion(self.place(value, scopes), self.dtypes[value.array], wanted)

        if op.accumulate == "+" and op.function == "*" and self.strict and dtype == compute in ("f32", "f64"):
            a, b = (operand(o, compute) for o in op.operands)
            return f"{place} = {dtype}_fma({a}, {b}, {place});"
        value, got = self._expression(op, compute, [operand(o, w) for o, w in self._wanted(op, compute)])
        inner = arithmetic(dtype)  # f16 and bf16: what is written is rounded from f32
        if op.function in NARROW_FLOATS:
            value, got = scalar_conversion(value, got, op.function), op.function
        if not op.accumulate:
            if got != dtype and not (got == "bool" and dtype != "bool" and dtype not in NARROW_FLOATS):
                value = scalar_conversion(value, got, dtype)
            return f"{place} = {value};"
        value = scalar_conversion(value, got, inner) if got != "bool" else value
        old = scalar_conversion(place, dtype, inner)
        if op.accumulate in "+*":
            if dtype == "bool":
                return f"{place} = ({place} {op.accumulate} ({value})) != 0;"
            if dtype in FLOATS and dtype not in HALVES:
                return f"{place} {op.accumulate}= {value};"
            if dtype in HALVES:
                value = f"{old} {op.accumulate} {atom(value)}"
            else:
                return f"{place} = {dtype}_{WRAPPING[op.accumulate]}({place}, {value});"
        else:
            value = f"{c_type(inner)}_{op.accumulate}({value}, {old})"
        return f"{place} = {scalar_conversion(value, inner, dtype)};"

    def _bytes(self, op: Op, dtype: str, scopes: Sequence[Scope]) -> str:
        """What a copy within a dtype that is only stored writes, one of two where it is a choice."""
        chosen = [
            literal(o.value, dtype) if isinstance(o, Number) else self.place(o, scopes)  # type: ignore[arg-type]
            for o in op.operands[bool(op.function) :]
        ]
        if not op.function:
            return chosen[0]
        tested = op.operands[0]
        if isinstance(tested, Access):
            held = self.dtypes[tested.array]
            test = scalar_conversion(self.place(tested, scopes), held, arithmetic(held))
        elif isinstance(tested, Number):
            test = literal(tested.value, "f64")
        else:
            test = f"({index_text(tested, scopes)})"
        return f"{test} != 0 ? {chosen[0]} : {chosen[1]}"

    def compute_dtype(self, op: Op) -> str:
        """The dtype an operation's function is computed in."""
        try:
            return compute_dtype(op, self.dtypes)
        except ValueError as error:
            raise NotGeneratable(f"{error}: convert one operand.") from None

    def _wanted(self, op: Op, compute: str) -> list[tuple[Operand, str]]:
        """Each operand with the dtype it is wanted in; what is only compared with 0 keeps its own."""
        wanted = [(o, operand_dtype(op, k, compute, self.dtypes)) for k, o in enumerate(op.operands)]
        first = op.operands[0]
        if op.function in ("select", "bool"):
            dtype = self.dtypes[first.array] if isinstance(first, Access) else "f64"
            wanted[0] = (first, arithmetic(dtype))
        return wanted

    def _expression(self, op: Op, dtype: str, values: list[str]) -> tuple[str, str]:
        """The C of a scalar function of ``values`` and the dtype it yields."""
        function, kind = op.function, c_type(dtype)
        if not function:
            return values[0], dtype
        if function in DTYPE_BYTES:
            return (f"{values[0]} != 0" if dtype == "bool" else values[0]), dtype
        if function in COMPARISONS:
            if FUNCTIONS[function].infix:
                return f"{values[0]} {function} {values[1]}", "bool"
            return f"{kind}_{function}({values[0]})" if dtype in FLOATS else "0", "bool"
        if function == "select":
            return f"{values[0]} != 0 ? {values[1]} : {values[2]}", dtype
        if dtype not in FLOATS:
            if function in TO_WHOLE:
                return values[0], dtype
            if function == "not" and dtype == "bool":
                return f"{values[0]} == 0", dtype
            if function == "fma":
                return f"{kind}_add({kind}_multiply({values[0]}, {values[1]}), {values[2]})", dtype
            if function == "/":
                divisor = op.operands[1]
                if isinstance(divisor, Number) and literal(divisor.value, dtype) not in (
                    "0",
                    "0u",
                    "0ull",
                    "-1",
                ):
                    return f"{values[0]} / {atom(values[1])}", dtype
                return f"{kind}_divide({values[0]}, {values[1]})", dtype
            named = WRAPPING.get(function, function) + key_suffix(op, self.dtypes)
            return f"{kind}_{named}({', '.join(values)})", dtype
        if function == "neg":
            return f"-{atom(values[0])}", dtype
        if FUNCTIONS[function].infix:
            return f"{values[0]} {function} {atom(values[1])}", dtype
        if function in ("max", "min"):
            return self.extreme(op, kind, values), dtype
        return f"{kind}_{function}({', '.join(values)})", dtype

    def extreme(self, op: Op, kind: str, values: Sequence[str]) -> str:
        """The maximum or minimum of two floating-point numbers, or vectors of them."""
        return f"{kind}_{op.function}({', '.join(values)})"


def converted_in(dtype: str) -> str:
    """The dtype that an operation's operands are converted to: integers of four and two bits are made of each
    dtype directly, so that what is beyond them is cut off, or the nearest."""
    return dtype if dtype in STORAGE_INTEGERS else arithmetic(dtype)


def moves_bytes(op: Op, dtype: str) -> bool:
    """Is it a copy within a dtype that is only stored, or of one of two? It needs no conversion."""
    return op.function in ("", "select") and not op.accumulate and dtype in STORAGE


def c_type(dtype: str) -> str:
    return "u8" if dtype == "bool" else dtype


def atom(text: str) -> str:
    """``text`` in brackets where another sign beside it could bind it apart."""
    depth = 0
    for k, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 and c in "+-*/<>=!?" and (k == 0 or text[k - 1] == " "):
            return f"({text})"
    return text


def literal(value: int | float, dtype: str) -> str:
    if dtype == "bool":
        return str(int(value != 0))
    if dtype in FLOATS:
        suffix = "f" if dtype == "f32" else ""
        if math.isnan(value):
            return f'__builtin_nan{suffix}("")'
        if math.isinf(value) or (dtype == "f32" and abs(value) >= BEYOND["f32"]):
            return f"{'-' if value < 0 else ''}__builtin_inf{suffix}()"
        if dtype == "f32" and abs(value) <= 2**-150:  # rounds to 0, of which compilers warn
            value = math.copysign(0.0, value)
        return f"{float(value)!r}{suffix}"
    if dtype in STORAGE_FLOATS:
        return str(int(minifloat_stored(np.asarray(value, np.float64), dtype)))
    low, high = extremes(dtype)
    # The identity of max is -inf: the least value of an integer type.
    if math.isinf(value):
        value = low if value < 0 else high
    if math.isnan(value):
        raise NotGeneratable(f"NaN has no value in {dtype}.")
    whole = int(value)
    if not low <= whole <= high:
        raise NotGeneratable(f"{value} does not fit {dtype}.")
    return integer_literal(whole, dtype)


def index_text(form: Affine, scopes: Sequence[Scope], wide: bool = False) -> str:
    """A C expression of an affine form, 64-bit where a part of its sum may exceed 2**31 or ``wide`` asks for
    it."""
    wide = wide or form.reach([s.size for s in scopes]) >= 2**31
    parts: list[str] = []
    for depth, coefficient in form.terms:
        size = scopes[depth].size
        magnitude = abs(coefficient)
        cast = "(i64)" if wide and (not parts or magnitude * size >= 2**31) else ""
        factor = "" if magnitude == 1 else f"*{magnitude}"
        sign = (" - " if coefficient < 0 else " + ") if parts else ("-" if coefficient < 0 else "")
        parts.append(f"{sign}{cast}i{depth}{factor}")
    if form.const or not parts:
        number = abs(form.const)
        sign = (" - " if form.const < 0 else " + ") if parts else ("-" if form.const < 0 else "")
        parts.append(f"{sign}{number}{'ll' if wide and (number >= 2**31 or not parts) else ''}")
    return "".join(parts)


def indirect_text(
    index: Indirect, scopes: Sequence[Scope], looked_up: Callable[[Lookup, Sequence[Scope]], str]
) -> str:
    """The same of an indirect index; ``looked_up`` gives the text of what a table or an array holds."""
    wide = index.reach([s.size for s in scopes]) >= 2**31
    text = ""
    for lookup, coefficient in index.lookups:
        sign = (" - " if coefficient < 0 else " + ") if text else ("-" if coefficient < 0 else "")
        factor = f"*{abs(coefficient)}" if abs(coefficient) != 1 else ""
        text += f"{sign}{'(i64)' if wide else ''}{looked_up(lookup, scopes)}{factor}"
    rest = index_text(index.rest, scopes, wide)
    if rest == "0":
        return text
    return f"{text} - {rest[1:]}" if rest.startswith("-") else f"{text} + {rest}"


def guard_text(guard: tuple[Comparison, ...], scopes: Sequence[Scope]) -> str | None:
    """The condition in C, "" where it always holds, None where it never does."""
    parts: list[str] = []
    for comparison in guard:
        if comparison.form.is_constant:
            if not comparison.holds(()):
                return None
            continue
        parts.append(f"{index_text(comparison.form, scopes)} {comparison.relation} {comparison.bound}")
    return " && ".join(parts)
