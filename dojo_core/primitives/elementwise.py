"""Functions element by element: one of the text form's, or a formula of several in one pass."""

from __future__ import annotations

import ast
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dojo_core.primitives.array import Array, BuildError, filled, free
from dojo_core.primitives.builder import Builder, checked_dtype, nest
from dojo_core.primitives.views import matched
from dojo_core.program.affine import Affine
from dojo_core.program.arithmetic import rounded
from dojo_core.program.dtypes import (
    COMPARISONS,
    FLOATS,
    HALVES,
    INTEGERS,
    KEY_ELEMENTS,
    arithmetic,
    bitcast_dtypes,
    extremes,
    holds,
)
from dojo_core.program.functions import FUNCTIONS, IDENTITY
from dojo_core.program.tree import NUMBER_DTYPES, Access, Number, Op, Operand, substituted

Value = Array | int | float

# What the text form has no function for, by what it has.
ENCODINGS = {
    "relu": "max(x, 0)",
    "silu": "x * sigmoid(x)",
    "softplus": "max(x, 0) + log1p(exp(-abs(x)))",
    "softsign": "x / (1 + abs(x))",
    "mod": "select(fmod(x, y) * y < 0, fmod(x, y) + y, fmod(x, y))",  # with the sign of y
}

# Powers that need no logarithm, which takes as long as a hundred products.
WHOLE_POWERS: dict[float, str] = {
    1: "1 * x", 2: "x * x", 3: "x * x * x", 4: "(x * x) * (x * x)", -1: "1 / x", -2: "1 / (x * x)",
}  # fmt: skip

# The dtypes of results that do not hang on the operands'.
RESULTS = {**dict(zip(NUMBER_DTYPES, NUMBER_DTYPES, strict=True)), "keyindex": "i64"}

_SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "pow",
    ast.Mod: "mod", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "shr",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


def as_array(value: Value, dtype: str = "f32") -> Array:
    """A number as an array, of a dtype that does not matter where another operand has one."""
    if isinstance(value, Array):
        return value
    if isinstance(value, numbers.Integral):
        return free(int(value), dtype)
    if isinstance(value, numbers.Real):
        number = float(value)
        return free(int(number) if number.is_integer() and abs(number) < 2**53 else number, dtype)
    raise BuildError(f"{value!r} is neither an array nor a number.")


def joint_dtype(arrays: Sequence[Array]) -> str:
    """The dtype among the arrays' that holds all values of the others; numbers take any.

    Raises BuildError where there is none.
    """
    bound = [a for a in arrays if not a.is_free]
    bound = bound or [a for a in arrays if not isinstance(a.operand, Number)] or list(arrays[:1])
    dtypes = list(dict.fromkeys(a.dtype for a in bound))
    for dtype in dtypes:
        if all(holds(dtype, other) for other in dtypes):
            return dtype
    raise BuildError(f"{' and '.join(dtypes)} do not mix by themselves: convert one of them.")


def identity(accumulation: str, dtype: str) -> int | float:
    """What an accumulation begins with. Raises BuildError for one that there is not."""
    if accumulation not in IDENTITY:
        raise BuildError(f"There is no accumulation {accumulation!r}: there are {', '.join(IDENTITY)}.")
    first = IDENTITY[accumulation]
    return int(first > 0) if dtype == "bool" else first  # the extremes of bool are 0 and 1


def elementwise(b: Builder, function: str, *operands: Value, dtype: str | None = None) -> Array:
    """One function over operands that are broadcast as NumPy does.

    ``function`` is one of the text form's (``+``, ``max``, ``select``, ``exp``, a dtype as a conversion;
    empty: a copy) or of ``ENCODINGS``. The result has the dtype of the operands, bool for a comparison, or
    the one that is asked for. Raises BuildError for shapes and dtypes that do not fit.
    """
    variables = {f"v{k}": as_array(value) for k, value in enumerate(operands)}
    return _evaluate(b, _called(function, list(variables)), variables, dtype)


def formula(b: Builder, text: str, /, dtype: str | None = None, **operands: Value) -> Array:
    """A formula over named operands in one pass: ``formula(b, "x * sigmoid(a*x)", x=x, a=1.702)``.

    Python's signs (``& | ^ ~`` for logic and bits, ``%`` with the divisor's sign) and comparisons, calls of
    what ``elementwise`` takes, numbers, ``inf``. What does not depend on all axes is computed over those that
    it does depend on. Intermediate results of f16 and bf16 are f32, and rounded once. Raises BuildError as
    ``elementwise`` does, and where the text is no formula.
    """
    variables = {name: as_array(value) for name, value in operands.items()}
    return _evaluate(b, _parsed(text), variables, dtype)


def convert(b: Builder, array: Array, dtype: str) -> Array:
    """The same values in another dtype, as the text form's conversions have them."""
    checked_dtype(dtype)
    if isinstance(array.operand, Number):
        return Array(dtype, Number(_rounded(array.operand.value, dtype)), array.axes)
    return array if array.dtype == dtype else elementwise(b, dtype, array, dtype=dtype)


def bitcast(b: Builder, array: Array, dtype: str) -> Array:
    """The bits of each element as another dtype of the same size. Raises BuildError where it has another."""
    checked_dtype(dtype)
    if array.dtype == dtype:
        return array
    if not any({array.dtype, dtype} <= set(alike) for alike in bitcast_dtypes().values()):
        raise BuildError(f"The bits of {array.dtype} are none of {dtype}.")
    if not isinstance(array.operand, Access):  # a number has bits once it is an element
        array = b.copy(array, whole=True)
    return elementwise(b, "bitcast", array, dtype=dtype)


def _rounded(value: int | float, dtype: str) -> int | float:
    """A number as a dtype holds it; one of f32 or f64 as it stands, for the text form rounds it."""
    if dtype in HALVES:
        number = float(rounded(np.array(float(value)), dtype))
    elif dtype in FLOATS:
        number = float(value)
    elif dtype == "bool":
        return int(value != 0)
    else:
        low, high = extremes(dtype)
        if isinstance(value, int):
            return (value - low) % (high - low + 1) + low
        return 0 if math.isnan(value) else int(min(max(value, low), high))
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def select(b: Builder, condition: Value, yes: Value, no: Value, dtype: str | None = None) -> Array:
    """``yes`` where the condition is not 0, else ``no``."""
    return elementwise(b, "select", condition, yes, no, dtype=dtype)


def iterator(b: Builder, shape: Sequence[int], axis: int, dtype: str = "i32") -> Array:
    """The place along an axis as a value, over a whole shape. It costs no pass."""
    array = filled(0, dtype, shape)
    places = array.numbers(axis % len(shape))
    form = Affine.iterator(places.start) if places else Affine()
    return Array(dtype, form if places else Number(0), array.axes)


# ---------------------------------------------------------------------------- formulas as trees


@dataclass(frozen=True)
class _Call:
    function: str
    operands: tuple[_Term, ...]


_Term = _Call | str | int | float  # a name, a number


def _called(function: str, names: Sequence[_Term]) -> _Term:
    """A call; of what the text form lacks, its encoding."""
    if function not in FUNCTIONS and function:
        if function not in ENCODINGS:
            raise BuildError(f"There is no function {function!r}.")
        encoding = _parsed(ENCODINGS[function])
        if len(names) != len(_variables(encoding)):
            raise BuildError(f"{function} takes {len(_variables(encoding))} operands, not {len(names)}.")
        return _renamed(encoding, dict(zip("xy", names, strict=False)))
    arity = FUNCTIONS[function].arity if function else 1
    if len(names) != arity:
        raise BuildError(f"{function or 'A copy'} takes {arity} operands, not {len(names)}.")
    return _Call(function, tuple(names))


def _renamed(term: _Term, names: Mapping[str, _Term]) -> _Term:
    if isinstance(term, _Call):
        return _Call(term.function, tuple(_renamed(t, names) for t in term.operands))
    return names.get(term, term) if isinstance(term, str) else term


def _variables(term: _Term) -> set[str]:
    if isinstance(term, _Call):
        return set().union(*map(_variables, term.operands))
    return {term} if isinstance(term, str) else set()


def _parsed(text: str) -> _Term:
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise BuildError(f"{text!r} is no formula: {error.msg}.") from error
    return _term(tree.body, text)


def _term(node: ast.expr, text: str) -> _Term:
    match node:
        case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
            return _called(_SIGNS[type(sign)], [_term(left, text), _term(right, text)])
        case ast.Compare(left, [sign], [right]) if type(sign) in _SIGNS:
            return _called(_SIGNS[type(sign)], [_term(left, text), _term(right, text)])
        case ast.UnaryOp(ast.USub(), operand):
            inner = _term(operand, text)
            return -inner if isinstance(inner, (int, float)) else _called("neg", [inner])
        case ast.UnaryOp(ast.Invert(), operand):
            return _called("not", [_term(operand, text)])
        case ast.Call(ast.Name(function), arguments):
            return _called(function, [_term(a, text) for a in arguments])
        case ast.Name("inf"):
            return math.inf
        case ast.Name(name):
            return name
        case ast.Constant(int() | float() as value):
            return value
    raise BuildError(f"{text!r} is no formula: write signs, calls, names and numbers.")


def _values(function: str, operands: Sequence[Array]) -> Sequence[Array]:
    """The operands whose dtype matters for that of the result."""
    return operands[1:] if function == "select" else operands


def _folded(function: str, operands: Sequence[Array], dtype: str) -> Operand | None:
    """Whole numbers and iterators added, subtracted and multiplied are an iterator expression again."""
    whole: list[Affine] = []
    for each in operands:
        if isinstance(each.operand, Affine):
            whole.append(each.operand)
        elif isinstance(each.operand, Number) and isinstance(each.operand.value, int):
            whole.append(Affine((), each.operand.value))
    exact = dtype in INTEGERS or all(form.is_constant for form in whole)
    if not exact or len(whole) < len(operands):
        return None
    match function, whole:
        case "+", [a, b]:
            form = a + b
        case "-", [a, b]:
            form = a - b
        case "*", [a, b] if a.is_constant or b.is_constant:
            form = a * b.const if b.is_constant else b * a.const
        case "neg", [a]:
            form = -a
        case _:
            return None
    low, high = extremes(dtype) if dtype in INTEGERS else (-(2**24), 2**24)
    if form.is_constant:
        return Number(form.const) if low <= form.const <= high else None
    return form


def _dtype(function: str, operands: Sequence[Array], wanted: str | None = None) -> str:
    """The dtype of a call's result, ``wanted`` where it may be that."""
    if function == "keyvalue":
        elements = KEY_ELEMENTS[operands[0].dtype]
        return wanted if wanted in elements else elements[0]
    if function == "bitcast":
        if wanted is None:
            raise BuildError("A bitcast says to which dtype.")
        return wanted
    if function in COMPARISONS:
        return "bool"
    return RESULTS.get(function) or joint_dtype(_values(function, operands))


# ---------------------------------------------------------------------------- formulas as passes


@dataclass
class _Nest:
    """The operations over the same factors of the result."""

    depths: dict[int, Affine]
    operations: list[Op] = field(default_factory=list)


class _Evaluation:
    """A formula over operands of the same axes: its operations by the factors that they depend on."""

    def __init__(self, b: Builder, variables: Mapping[str, Array]):
        self.b, self.variables = b, variables
        self.factors = next(iter(variables.values())).factors if variables else ()
        self.nests: dict[tuple[int, ...], _Nest] = {}
        self.known: dict[tuple[str, tuple[Operand, ...], str], Array] = {}

    def result(self, term: _Term, dtype: str | None) -> Array:
        """The value of the whole formula, in a dtype; None: the operands' own."""
        if not isinstance(term, _Call):
            value = self.value(term)
            return self.stored("", [value], value.dtype) if dtype is None else self.converted(value, dtype)
        operands = [self.value(t) for t in term.operands]
        natural = _dtype(term.function, operands, dtype)
        if dtype is None:
            dtypes = {a.dtype for a in self.variables.values() if not a.is_free} - {"bool"}
            narrow = len(dtypes) == 1 and dtypes <= set(HALVES) and natural == "f32"
            dtype = dtypes.pop() if narrow and term.function not in RESULTS else natural
        if term.function in (*RESULTS, "keyvalue", "bitcast"):
            exact = holds(dtype, natural)
        else:
            exact = all(holds(dtype, o.dtype) for o in _values(term.function, operands) if not o.is_free)
        if exact or term.function in COMPARISONS:
            return self.stored(term.function, operands, dtype)
        return self.converted(self.applied(term.function, operands), dtype)

    def converted(self, value: Array, dtype: str) -> Array:
        if value.dtype == dtype and not value.is_free:
            return value
        return self.stored("" if holds(dtype, value.dtype) else dtype, [value], dtype)

    def value(self, term: _Term) -> Array:
        if isinstance(term, _Call):
            return self.applied(term.function, [self.value(t) for t in term.operands])
        if not isinstance(term, str):
            return as_array(term)
        if term not in self.variables:
            raise BuildError(f"The formula names {term!r}, which it is not given.")
        return self.variables[term]

    def applied(self, function: str, operands: list[Array]) -> Array:
        return self.stored(function, operands, arithmetic(_dtype(function, operands)))

    def stored(self, function: str, operands: list[Array], dtype: str) -> Array:
        if not function and operands[0].is_free:  # no pass: it stands in whatever reads it
            return Array(dtype, operands[0].operand, ())
        form = _folded(function, operands, dtype)
        if form is not None:
            return Array(dtype, form, ())
        if function == "*" and all(isinstance(o.operand, Affine) for o in operands):
            operands = [
                self._pass("", operands[:1], dtype),
                *operands[1:],
            ]  # a text multiplies no two iterators
        return self._pass(function, operands, dtype)

    def _pass(self, function: str, operands: list[Array], dtype: str) -> Array:
        """A function over the factors that its operands depend on, stored."""
        key = function, tuple(o.operand for o in operands), dtype
        if key in self.known:
            return self.known[key]
        used = tuple(sorted(set().union(*(o.used for o in operands))))
        if used not in self.nests:
            self.nests[used] = _Nest({n: Affine.iterator(d) for d, n in enumerate(used)})
        place = self.nests[used]
        target = self.b.temporary(dtype, [self.factors[n] for n in used])
        place.operations.append(
            Op(
                Access(target, tuple(place.depths.values())),
                "",
                function,
                tuple(substituted(o.operand, place.depths) for o in operands),
            )
        )
        index = tuple(Affine.iterator(n) for n in used)
        self.known[key] = Array(dtype, Access(target, index), ())
        return self.known[key]

    def add(self) -> None:
        """The passes: those over fewer factors first, for nothing depends on one over more."""
        for used in sorted(self.nests, key=len):
            self.b.add(*nest([self.factors[n] for n in used], tuple(self.nests[used].operations)))


def _evaluate(b: Builder, term: _Term, given: Mapping[str, Array], dtype: str | None) -> Array:
    arrays = matched(b, list(given.values()))
    axes = arrays[0].axes if arrays else ()
    if arrays and arrays[0].empty:
        dtypes = [a.dtype for a in arrays]
        boolean = isinstance(term, _Call) and term.function in COMPARISONS
        return Array(dtype or ("bool" if boolean else dtypes[-1]), Number(0), axes)
    evaluation = _Evaluation(b, dict(zip(given, arrays, strict=True)))
    result = evaluation.result(term, dtype)
    evaluation.add()
    return Array(result.dtype, result.operand, axes)
