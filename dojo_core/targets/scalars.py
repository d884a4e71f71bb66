"""One scalar instruction as an expression of C or C++: what the code generators share.

The text names types by dtype (``f32``, ``i64``) and functions by dtype and name (``f32_exp``); each
generator's preamble defines them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dojo_core.program.affine import Affine
from dojo_core.program.functions import FUNCTIONS
from dojo_core.program.tree import DTYPE_BYTES, Access, Comparison, Number, Op, Operand, Program, Scope
from dojo_core.targets.cpu.code import NotGeneratable

# Dtypes from narrow to wide: an operation is computed in the widest of its operands' and target's.
RANK = {d: k for k, d in enumerate(("bool", "u8", "i8", "i16", "i32", "i64", "f32", "f64"))}
FLOATS = ("f32", "f64")
OF_REALS = ("sqrt", "rsqrt", "exp", "log", "tanh", "erf", "sigmoid", "pow")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Scalars:
    """Statements for a program's operations; ``place`` gives the text of a cell."""

    def __init__(
        self, program: Program, strict: bool, place: Callable[[Access, Sequence[Scope]], str]
    ) -> None:
        self.program, self.strict, self.place = program, strict, place

    def statement(self, op: Op, scopes: Sequence[Scope]) -> str:
        """The assignment or accumulation of one scalar."""
        dtype = self.program.buffer_of[op.target.array].dtype
        place = self.place(op.target, scopes)
        compute = self._compute_dtype(op)

        def operand(value: Operand, wanted: str) -> str:
            if isinstance(value, Number):
                return literal(value.value, wanted)
            if isinstance(value, Affine):
                return f"({c_type(wanted)})({index_text(value, scopes)})"
            text = self.place(value, scopes)
            own = self.program.buffer_of[value.array].dtype
            return text if own == wanted else f"({c_type(wanted)}){text}"

        if op.accumulate == "+" and op.function == "*" and self.strict and dtype == compute in FLOATS:
            a, b = (operand(o, compute) for o in op.operands)
            return f"{place} = {dtype}_fma({a}, {b}, {place});"
        value, got = self._expression(op, compute, [operand(o, w) for o, w in _wanted(op, compute)])
        if got != dtype:
            value = f"({value}) != 0" if dtype == "bool" else f"({c_type(dtype)})({value})"
        if not op.accumulate:
            return f"{place} = {value};"
        if op.accumulate in "+*":
            if dtype == "bool":
                return f"{place} = ({place} {op.accumulate} ({value})) != 0;"
            return f"{place} {op.accumulate}= {value};"
        return f"{place} = {c_type(dtype)}_{op.accumulate}({value}, {place});"

    def _compute_dtype(self, op: Op) -> str:
        """The dtype an operation's function is computed in: the widest of what it touches."""
        if op.function in DTYPE_BYTES:
            if op.function not in RANK:
                raise NotGeneratable(f"This target has no arithmetic in {op.function}: use f32.")
            return op.function
        comparison = op.function in _COMPARISONS
        dtypes = {self.program.buffer_of[a.array].dtype for a in op.reads}
        if not comparison:
            dtypes.add(self.program.buffer_of[op.target.array].dtype)
        if not dtypes or any(isinstance(o, Affine) for o in op.operands):
            dtypes.add("i64")
        widest = max(dtypes, key=RANK.__getitem__)
        if widest in FLOATS:
            return widest
        # Infinities stand for the extreme values of an integer type, other than in a comparison.
        numbers = [o.value for o in op.operands if isinstance(o, Number)]
        fractions = [n for n in numbers if isinstance(n, float) and (comparison or math.isfinite(n))]
        if op.function in OF_REALS or fractions:
            return "f64"
        if widest == "bool":
            return widest if op.function in ("", "select") else "i64"
        low, high = _extremes(widest)
        if any(math.isfinite(n) and not low <= n <= high for n in numbers):
            return "i64"
        return "i16" if widest == "i8" and "u8" in dtypes else widest

    def _expression(self, op: Op, dtype: str, values: list[str]) -> tuple[str, str]:
        """The C of a scalar function of ``values`` and the dtype it yields."""
        function, kind = op.function, c_type(dtype)
        if not function:
            return values[0], dtype
        if function in DTYPE_BYTES:
            return f"{values[0]} != 0" if dtype == "bool" else values[0], dtype
        if function in _COMPARISONS:
            return f"{values[0]} {function} {values[1]}", "bool"
        if function == "select":
            return f"{values[0]} != 0 ? {values[1]} : {values[2]}", dtype
        if function == "neg":
            return f"-{atom(values[0])}", dtype
        if FUNCTIONS[function].infix:
            left, right = values[0], values[1]
            return f"{left} {function} {atom(right)}", dtype
        if dtype not in FLOATS:
            if function in ("floor", "round"):
                return values[0], dtype
            if function == "fma":
                return f"{atom(values[0])} * {atom(values[1])} + {atom(values[2])}", dtype
        return f"{kind}_{function}({', '.join(values)})", dtype


def c_type(dtype: str) -> str:
    return "u8" if dtype == "bool" else dtype


def _wanted(op: Op, compute: str) -> list[tuple[Operand, str]]:
    """Each operand with the dtype it is wanted in; what is only compared with 0 keeps its fraction."""
    wanted = [(o, compute) for o in op.operands]
    if op.function in ("select", "bool"):
        wanted[0] = (op.operands[0], "f64")
    return wanted


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
        if math.isinf(value) or (dtype == "f32" and abs(value) > 3.4028235677973366e38):
            return f"{'-' if value < 0 else ''}__builtin_inf{suffix}()"
        return f"{float(value)!r}{suffix}"
    low, high = _extremes(dtype)
    # The identity of max is -inf: the least value of an integer type.
    if math.isinf(value):
        value = low if value < 0 else high
    if math.isnan(value):
        raise NotGeneratable(f"NaN has no value in {dtype}.")
    whole = int(value)
    if not low <= whole <= high:
        raise NotGeneratable(f"{value} does not fit {dtype}.")
    if whole == -(2**63):
        return "(-__INT64_MAX__ - 1)"
    return str(whole) if dtype != "i64" else f"{whole}ll"


def _extremes(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    bits = 8 * DTYPE_BYTES[dtype]
    return (0, 2**bits - 1) if dtype == "u8" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def index_text(form: Affine, scopes: Sequence[Scope], wide: bool = False) -> str:
    """A C expression of an affine form, 64-bit where it may exceed 2**31 or ``wide`` asks for it."""
    low, high = form.bounds([s.size for s in scopes]) if form.terms else (form.const, form.const)
    wide = wide or low < -(2**31) or high >= 2**31
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
        parts.append(f"{sign}{number}{'ll' if wide and number >= 2**31 else ''}")
    return "".join(parts)


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
