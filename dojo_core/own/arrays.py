"""Arrays with named axes, and what can be done with them: each operation is a step of a start program.

An ``Array`` is an access to be, not data: ``x + y`` notes a nest that adds. Axes are single letters and each
array knows their sizes; operands are matched by letter, so broadcasting needs no rule about positions.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NoReturn

from dojo_core.program.dtypes import STORAGE, STORAGE_INTEGERS
from dojo_core.program.functions import IDENTITY
from dojo_core.program.tree import DTYPE_BYTES, number_text

Axes = tuple[tuple[str, int], ...]  # letters and sizes, in order
Terms = tuple[tuple[str, int], ...]  # letters and coefficients: one index
Number = int | float


class KernelError(ValueError):
    """A kernel of one's own that is none; the message says what to change."""


_RESERVED = ("kernel", "in", "out", "if", "and", "inf", "nan", "prefetch", "stream", "table", "domain")


def checked_name(name: str, what: str) -> str:
    """A name that the text form takes. Raises KernelError for another."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or name in _RESERVED:
        raise KernelError(
            f"{name!r} cannot be the name of {what}: take another one of letters, digits and _."
        )
    return name


@dataclass(frozen=True)
class Step:
    """One operation over a nest of axes; ``fresh`` gives an accumulation its first value."""

    target: str
    at: str  # letters of the target's index
    nest: Axes
    function: str
    operands: tuple[Array | Number, ...]
    accumulate: str = ""

    def lines(self, names: Mapping[str, str]) -> list[str]:
        """The step as lines of a program's body; ``names`` are the arrays' final ones."""
        depth = {letter: d for d, (letter, _) in enumerate(self.nest)}
        sizes = [str(size) for _, size in self.nest]
        target = f"{names[self.target]}[{','.join(f'{{{depth[a]}}}' for a in self.at)}]"
        operands = [o.text(depth, names) if isinstance(o, Array) else number_text(o) for o in self.operands]
        value = _call(self.function, operands)
        if not self.accumulate:
            return [" ".join([*sizes, f"{target} = {value}"])]
        outer, inner = sizes[: len(self.at)], sizes[len(self.at) :]
        first = " ".join([*outer, f"{target} = {number_text(IDENTITY[self.accumulate])}"])
        again = outer if len(self.operands) > 1 else ["|"] * len(outer)  # a contraction is a nest of its own
        return [first, " ".join([*again, *inner, f"{target} {self.accumulate}= {value}"])]


def _call(function: str, operands: list[str]) -> str:
    if not function:
        return operands[0]
    if function.isalnum():
        return f"{function}({','.join(operands)})"
    left, right = (f"({o})" if re.search(r"[+-]", o) and "[" not in o else o for o in operands)
    return f"{left} {function} {right}"


@dataclass
class Trace:
    """The steps of the kernel that is being written down."""

    sizes: dict[str, int]
    steps: list[Step] = field(default_factory=list)
    arrays: dict[str, tuple[Axes, str]] = field(default_factory=dict)  # axes and dtype, as declared
    named: dict[str, str] = field(default_factory=dict)

    def declare(self, axes: Axes, dtype: str, name: str = "") -> Array:
        """A new array in row-major order of its axes."""
        name = name or f"t{len(self.steps) + 1}"
        while name in self.arrays:
            name += "_"
        self.arrays[name] = axes, dtype
        return Array(name, axes, dtype, tuple(((letter, 1),) for letter, _ in axes), self)

    def step(
        self,
        function: str,
        operands: tuple[Array | Number, ...],
        axes: Axes,
        over: Axes = (),
        accumulate: str = "",
        dtype: str = "",
    ) -> Array:
        """Note ``result[axes] (accumulate)= function(operands)`` over the axes and those summed away."""
        kind = dtype or common_dtype(function, operands)
        if kind in STORAGE and (accumulate or (function and function not in DTYPE_BYTES)):
            named = next((o for o in operands if isinstance(o, Array)), "the result")
            wider = "i32" if kind in STORAGE_INTEGERS else "f32"
            raise KernelError(
                f"{named} is {kind}, which is stored and converted, not computed in: convert it first, "
                f"with .to({wider!r})."
            )
        made = self.declare(axes, kind)
        letters = "".join(letter for letter, _ in axes)
        self.steps.append(Step(made.name, letters, (*axes, *over), function, operands, accumulate))
        return made


_TRACE: ContextVar[Trace] = ContextVar("trace")


def trace() -> Trace:
    """The kernel being written down. Raises KernelError outside of one."""
    current = _TRACE.get(None)
    if current is None:
        raise KernelError("Arrays exist only while a kernel's function runs: put @kernel(...) above it.")
    return current


@dataclass(frozen=True, eq=False)
class Array:
    """An array, a view of one, or (with an empty name) an iterator as a value.

    ``index`` gives, for each dimension of the stored array, a sum of axes times whole numbers.
    Attributes of use to a kernel: ``axes`` (letters and sizes), ``dtype``.
    """

    name: str
    axes: Axes
    dtype: str
    index: tuple[Terms, ...]
    owner: Trace = field(repr=False)

    def text(self, depth: Mapping[str, int], names: Mapping[str, str]) -> str:
        """As an operand where each axis stands at a depth."""
        indices = []
        for terms in self.index:
            summands = [f"{{{depth[a]}}}" + (f"*{c}" if c != 1 else "") for a, c in terms]
            indices.append("+".join(summands) or "0")
        return f"{names[self.name]}[{','.join(indices)}]" if self.name else indices[0]

    @property
    def letters(self) -> str:
        return "".join(letter for letter, _ in self.axes)

    def __str__(self) -> str:
        shape = ", ".join(f"{letter}={size}" for letter, size in self.axes)
        return f"{self.name or 'iterator'}[{shape}]"

    # ------------------------------------------------------------------ element by element

    def __add__(self, other: Array | Number) -> Array:
        return apply("+", self, other)

    def __radd__(self, other: Number) -> Array:
        return apply("+", other, self)

    def __sub__(self, other: Array | Number) -> Array:
        return apply("-", self, other)

    def __rsub__(self, other: Number) -> Array:
        return apply("-", other, self)

    def __mul__(self, other: Array | Number) -> Array:
        return apply("*", self, other)

    def __rmul__(self, other: Number) -> Array:
        return apply("*", other, self)

    def __truediv__(self, other: Array | Number) -> Array:
        return apply("/", self, other)

    def __rtruediv__(self, other: Number) -> Array:
        return apply("/", other, self)

    def __pow__(self, other: Array | Number) -> Array:
        return apply("*", self, self) if isinstance(other, int) and other == 2 else apply("pow", self, other)

    def __neg__(self) -> Array:
        return apply("neg", self)

    def __abs__(self) -> Array:
        return apply("abs", self)

    def __lt__(self, other: Array | Number) -> Array:
        return apply("<", self, other)

    def __le__(self, other: Array | Number) -> Array:
        return apply("<=", self, other)

    def __gt__(self, other: Array | Number) -> Array:
        return apply(">", self, other)

    def __ge__(self, other: Array | Number) -> Array:
        return apply(">=", self, other)

    def __bool__(self) -> bool:
        raise KernelError(f"{self} has no value while the kernel is written down: use where(...), not if.")

    def __iter__(self) -> NoReturn:
        raise KernelError(f"{self} cannot be gone through element by element: write over whole arrays.")

    def equals(self, other: Array | Number) -> Array:
        """Elementwise ``==``, for ``where``."""
        return apply("==", self, other)

    def to(self, dtype: str) -> Array:
        """Converted to another dtype."""
        if dtype not in DTYPE_BYTES:
            raise KernelError(f"There is no dtype {dtype!r}. The dtypes are {', '.join(DTYPE_BYTES)}.")
        return self.owner.step(dtype, (self,), self.axes, dtype=dtype)

    def named(self, name: str) -> Array:
        """The same, under this name in the program's text."""
        owner = self.owner
        checked_name(name, "an array")
        if not any(step.target == self.name for step in owner.steps):
            raise KernelError(f"{self} is an input and keeps its name.")
        owner.named[self.name] = name
        return self

    # ------------------------------------------------------------------ reductions

    def sum(self, over: str | None = None) -> Array:
        """The sum over axes, such as ``x.sum("n")``; over all where none is named."""
        return self._reduced("+", over)

    def prod(self, over: str | None = None) -> Array:
        """The product over axes."""
        return self._reduced("*", over)

    def max(self, over: str | None = None) -> Array:
        """The largest over axes."""
        return self._reduced("max", over)

    def min(self, over: str | None = None) -> Array:
        """The least over axes."""
        return self._reduced("min", over)

    def mean(self, over: str | None = None) -> Array:
        """The mean over axes."""
        count = math.prod(size for letter, size in self.axes if over is None or letter in over)
        return self.sum(over) / count

    def _reduced(self, accumulate: str, over: str | None) -> Array:
        gone = self.letters if over is None else over
        for letter in gone:
            if letter not in self.letters:
                raise KernelError(f"{self} has no axis {letter!r} to reduce over.")
        if not gone:
            raise KernelError(f"{self} has no axis to reduce over: name at least one.")
        remaining = tuple(a for a in self.axes if a[0] not in gone)
        inner = tuple(a for a in self.axes if a[0] in gone)
        return self.owner.step("", (self,), remaining, inner, accumulate, self.dtype)

    # ------------------------------------------------------------------ views

    def window(self, axis: str, place: str, tap: str, width: int, stride: int = 1) -> Array:
        """A view with one axis replaced by two: ``axis = place*stride + tap``, ``tap`` from 0 to width-1.

        A convolution or a pooling is a contraction or a reduction over the taps. Places where the window
        would reach beyond the axis do not exist: there is no padding.
        """
        sizes = dict(self.axes)
        if axis not in sizes:
            raise KernelError(f"{self} has no axis {axis!r} for a window.")
        for new in (place, tap):
            if not _letter(new) or (new in sizes and new != axis) or place == tap:
                raise KernelError(f"{new!r} is no new axis for a window: use a letter that {self} lacks.")
        if not 1 <= width <= sizes[axis] or stride < 1:
            raise KernelError(
                f"A window of {width} with stride {stride} does not fit the axis {axis}={sizes[axis]}."
            )
        axes: list[tuple[str, int]] = []
        for letter, size in self.axes:
            count = (size - width) // stride + 1
            axes += [(place, count)] if letter == axis else [(letter, size)]
        axes.append((tap, width))
        return Array(
            self.name,
            tuple(axes),
            self.dtype,
            tuple(_windowed(terms, axis, place, tap, stride) for terms in self.index),
            self.owner,
        )


def _windowed(terms: Terms, axis: str, place: str, tap: str, stride: int) -> Terms:
    windowed: list[tuple[str, int]] = []
    for letter, c in terms:
        windowed += [(place, c * stride), (tap, c)] if letter == axis else [(letter, c)]
    return tuple(windowed)


def _letter(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text.isalpha()


# ---------------------------------------------------------------------------- operations on several


def _plain(value: object, function: str) -> Array | Number:
    if isinstance(value, Array):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    raise KernelError(f"{value!r} is neither an array of the kernel nor a number: {function} takes those.")


def common_dtype(function: str, operands: tuple[Array | Number, ...]) -> str:
    """The dtype of a result. Raises KernelError where operands differ in theirs."""
    if function in ("<", "<=", ">", ">=", "==", "!="):
        common_dtype("", operands)
        return "bool"
    values = operands[1:] if function == "select" else operands
    kinds = {o.dtype: o for o in values if isinstance(o, Array) and o.name}
    if len(kinds) > 1:
        (a, x), (b, y) = list(kinds.items())[:2]
        raise KernelError(f"{x} is {a} and {y} is {b}: convert one of them, for example with .to({a!r}).")
    if kinds:
        return next(iter(kinds))
    return next((o.dtype for o in values if isinstance(o, Array)), "f32")


def joined(*operands: Array | Number) -> Axes:
    """The axes of an elementwise result: those of the operand that has most, then what others add."""
    arrays = [o for o in operands if isinstance(o, Array)]
    sizes: dict[str, int] = {}
    for array in sorted(arrays, key=lambda a: -len(a.axes)):
        for letter, size in array.axes:
            if sizes.setdefault(letter, size) != size:
                other = next(a for a in arrays if (letter, sizes[letter]) in a.axes)
                raise KernelError(f"Axis {letter} is {sizes[letter]} long in {other} and {size} in {array}.")
    return tuple(sizes.items())


def apply(function: str, *given: object) -> Array:
    """One function of the text form, element by element."""
    operands = tuple(_plain(value, function) for value in given)
    owner = next((o.owner for o in operands if isinstance(o, Array)), None) or trace()
    return owner.step(function, operands, joined(*operands))


def exp(x: Array) -> Array:
    return apply("exp", x)


def log(x: Array) -> Array:
    return apply("log", x)


def sqrt(x: Array) -> Array:
    return apply("sqrt", x)


def rsqrt(x: Array) -> Array:
    """1/sqrt(x)."""
    return apply("rsqrt", x)


def tanh(x: Array) -> Array:
    return apply("tanh", x)


def erf(x: Array) -> Array:
    return apply("erf", x)


def sigmoid(x: Array) -> Array:
    return apply("sigmoid", x)


def floor(x: Array) -> Array:
    return apply("floor", x)


def rint(x: Array) -> Array:
    """To the nearest whole number, halves to the even one."""
    return apply("round", x)


def absolute(x: Array) -> Array:
    return apply("abs", x)


def maximum(a: Array | Number, b: Array | Number) -> Array:
    """The larger, element by element; ``x.max("n")`` is the largest over an axis."""
    return apply("max", a, b)


def minimum(a: Array | Number, b: Array | Number) -> Array:
    return apply("min", a, b)


def where(condition: Array, a: Array | Number, b: Array | Number) -> Array:
    """``a`` where the condition holds, else ``b``."""
    return apply("select", condition, a, b)


def size(letter: str) -> int:
    """The size of an axis of the kernel."""
    sizes = trace().sizes
    if letter not in sizes:
        raise KernelError(f"The kernel has no axis {letter!r}; its axes are {', '.join(sizes)}.")
    return sizes[letter]


def iterator(letter: str) -> Array:
    """The position along an axis as a value: ``where(iterator("n") <= iterator("m"), s, -inf)``."""
    return Array("", ((letter, size(letter)),), "i32", (((letter, 1),),), trace())


def einsum(spec: str, *arrays: Array) -> Array:
    """A contraction of one or two arrays: ``einsum("mk,kn->mn", a, b)`` sums ``a*b`` over k.

    Letters stand for the arrays' axes in order, whatever those are called. Of one array: its transpose,
    diagonal (views, without a step) or sum.
    """
    form = re.sub(r"\s", "", spec)
    match = re.fullmatch(r"([A-Za-z]*)(?:,([A-Za-z]*))?->([A-Za-z]*)", form)
    if match is None or not 1 <= len(arrays) <= 2:
        raise KernelError(
            f"einsum takes a form such as 'mk,kn->mn' and one or two arrays, not {spec!r} with "
            f"{len(arrays)}: contract more arrays two at a time."
        )
    letters = [part for part in match.groups()[:2] if part is not None]
    if len(letters) != len(arrays):
        raise KernelError(f"einsum {spec!r} names {len(letters)} arrays and is given {len(arrays)}.")
    sizes: dict[str, int] = {}
    views: list[Array] = []
    for form, array in zip(letters, arrays, strict=True):
        if not isinstance(array, Array):
            raise KernelError(f"einsum contracts arrays of the kernel, and {array!r} is none.")
        if len(form) != len(array.axes):
            raise KernelError(
                f"einsum {spec!r}: {array} has {len(array.axes)} axes, and {form!r} has {len(form)}."
            )
        for letter, (_, extent) in zip(form, array.axes, strict=True):
            if sizes.setdefault(letter, extent) != extent:
                raise KernelError(
                    f"einsum {spec!r}: axis {letter} is {sizes[letter]} long, and {extent} in {array}."
                )
        views.append(_relabelled(array, form))
    wanted = match.group(3)
    for letter in wanted:
        if letter not in sizes or wanted.count(letter) > 1:
            raise KernelError(
                f"einsum {spec!r}: {letter!r} of the result is no axis of the arrays, or twice."
            )
    axes = tuple((letter, sizes[letter]) for letter in wanted)
    over = tuple((letter, extent) for letter, extent in sizes.items() if letter not in wanted)
    owner = views[0].owner
    if len(views) == 1 and not over:
        return Array(views[0].name, axes, views[0].dtype, views[0].index, owner)
    function = "*" if len(views) == 2 else ""
    return owner.step(function, tuple(views), axes, over, "+" if over else "")


def _relabelled(array: Array, letters: str) -> Array:
    new = {old: letter for (old, _), letter in zip(array.axes, letters, strict=True)}
    index = tuple(_collected(tuple((new[a], c) for a, c in terms)) for terms in array.index)
    axes = {new[a]: n for a, n in array.axes}
    return Array(array.name, tuple(axes.items()), array.dtype, index, array.owner)


def _collected(terms: Terms) -> Terms:
    total: dict[str, int] = {}
    for letter, c in terms:
        total[letter] = total.get(letter, 0) + c
    return tuple(total.items())
