"""Arrays with named axes, and what can be done with them: primitives whose operands are matched by name.

An ``Array`` is a view to be, not data: ``x + y`` notes a pass that adds. Each array knows its axes by name
and size, so that broadcasting needs no rule about positions.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import NoReturn

from dojo_core import primitives
from dojo_core.own.axes import Axes, KernelError, Number, axes_named, is_axis_name, listed
from dojo_core.primitives import Builder, Condition
from dojo_core.primitives.array import is_identifier
from dojo_core.primitives.contractions import contract_named, parsed_form
from dojo_core.program.dtypes import COMPARISONS, STORAGE, STORAGE_INTEGERS
from dojo_core.program.functions import IDENTITY
from dojo_core.program.tree import NUMBER_DTYPES, Access

View = primitives.Array


def checked_name(name: str, what: str) -> str:
    """A name that the text form takes. Raises KernelError for another."""
    if not is_identifier(name):
        raise KernelError(
            f"{name!r} cannot be the name of {what}: take another one of letters, digits and _."
        )
    return name


@dataclass
class Trace:
    """The kernel that is being written down, and the sizes of its axes."""

    sizes: dict[str, int]
    builder: Builder

    def array(self, axes: Sequence[str], view: View, condition: Condition | None = None) -> Array:
        """A view whose axes have these names."""
        return Array(tuple(zip(axes, view.shape, strict=True)), view, self, condition)


_TRACE: ContextVar[Trace] = ContextVar("trace")


def trace() -> Trace:
    """The kernel being written down. Raises KernelError outside of one."""
    current = _TRACE.get(None)
    if current is None:
        raise KernelError("Arrays exist only while a kernel's function runs: put @kernel(...) above it.")
    return current


@dataclass(frozen=True, eq=False)
class Array:
    """An array, a view of one, or an iterator as a value.

    Attributes of use to a kernel: ``axes`` (names and sizes), ``dtype``.
    """

    axes: Axes
    view: View = field(repr=False)
    owner: Trace = field(repr=False)
    condition: Condition | None = field(default=None, repr=False)  # of a comparison of iterators

    @property
    def dtype(self) -> str:
        return self.view.dtype

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the axes."""
        return tuple(name for name, _ in self.axes)

    def __str__(self) -> str:
        operand = self.view.operand
        return f"{operand.array if isinstance(operand, Access) else 'iterator'}[{listed(self.axes)}]"

    def axis(self, name: str, purpose: str) -> int:
        """The number of an axis. Raises KernelError where there is none of the name."""
        if name not in self.names:
            raise KernelError(f"{self} has no axis {name!r} {purpose}.")
        return self.names.index(name)

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

    def __and__(self, other: Array | Number) -> Array:
        both = apply("and", self, other)
        if isinstance(other, Array) and self.condition and other.condition:
            return replace(both, condition=_placed(self, both.names) & _placed(other, both.names))
        return both

    def __or__(self, other: Array | Number) -> Array:
        return apply("or", self, other)

    def __xor__(self, other: Array | Number) -> Array:
        return apply("xor", self, other)

    def __invert__(self) -> Array:
        return apply("not", self)

    def __lshift__(self, other: Array | Number) -> Array:
        return apply("shl", self, other)

    def __rshift__(self, other: Array | Number) -> Array:
        return apply("shr", self, other)

    def __bool__(self) -> bool:
        raise KernelError(f"{self} has no value while the kernel is written down: use where(...), not if.")

    def __iter__(self) -> NoReturn:
        raise KernelError(f"{self} cannot be gone through element by element: write over whole arrays.")

    def equals(self, other: Array | Number) -> Array:
        """Elementwise ``==``, for ``where``."""
        return apply("==", self, other)

    def to(self, dtype: str) -> Array:
        """Converted to another dtype."""
        if dtype not in NUMBER_DTYPES:
            raise KernelError(f"There is no dtype {dtype!r}. The dtypes are {', '.join(NUMBER_DTYPES)}.")
        return self._of(primitives.convert(self.owner.builder, self.view, dtype))

    def bitcast(self, dtype: str) -> Array:
        """The bits of each element as another dtype of the same size, ``x.bitcast("i32")``."""
        return self._of(primitives.bitcast(self.owner.builder, self.view, dtype))

    def named(self, name: str) -> Array:
        """The same, under this name in the program's text."""
        builder = self.owner.builder
        checked_name(name, "an array")
        operand = self.view.operand
        if not isinstance(operand, Access) or operand.array not in builder.temporaries:
            raise KernelError(f"{self} is an input and keeps its name.")
        builder.named(self.view, name)
        return self

    def _of(self, view: View) -> Array:
        """Another view with the same axes' names."""
        return self.owner.array(self.names, view)

    # ------------------------------------------------------------------ reductions

    def sum(self, over: str | None = None, where: Array | None = None) -> Array:
        """The sum over axes, such as ``x.sum("n")``; over all where none is named.

        ``where`` restricts it to places: ``x.sum("n", where=iterator("n") <= iterator("m"))``.
        """
        return self._reduced("+", over, where)

    def prod(self, over: str | None = None, where: Array | None = None) -> Array:
        """The product over axes."""
        return self._reduced("*", over, where)

    def max(self, over: str | None = None, where: Array | None = None) -> Array:
        """The largest over axes."""
        return self._reduced("max", over, where)

    def min(self, over: str | None = None, where: Array | None = None) -> Array:
        """The least over axes."""
        return self._reduced("min", over, where)

    def argmax(self, axis: str) -> Array:
        """The place of the largest along an axis, the first of equals (i64)."""
        return self._arg("max", axis)

    def argmin(self, axis: str) -> Array:
        """The place of the least along an axis, the first of equals (i64)."""
        return self._arg("min", axis)

    def _arg(self, accumulate: str, axis: str) -> Array:
        number = self.axis(axis, "to reduce over")
        _, place = primitives.arg_reduce(self.owner.builder, accumulate, self.view, number)
        return self.owner.array([name for name in self.names if name != axis], place)

    def mean(self, over: str | None = None) -> Array:
        """The mean over axes."""
        gone = self.names if over is None else axes_named(over, self.owner.sizes)
        return self.sum(over) / math.prod(size for name, size in self.axes if name in gone)

    def _reduced(self, accumulate: str, over: str | None, where: Array | None) -> Array:
        gone = self.names if over is None else axes_named(over, self.owner.sizes)
        numbers = [self.axis(name, "to reduce over") for name in gone]
        if not gone:
            raise KernelError(f"{self} has no axis to reduce over: name at least one.")
        held = None if where is None else _condition(where, self.names, str(self))
        left = [name for name in self.names if name not in gone]
        made = primitives.reduce(self.owner.builder, accumulate, _computable(self).view, numbers, where=held)
        return self.owner.array(left, made)

    def scan(self, axis: str, accumulate: str = "+", exclusive: bool = False, reverse: bool = False) -> Array:
        """The sum (``+``), product (``*``), ``max`` or ``min`` of all up to each place of an axis.

        ``exclusive`` leaves each place itself out; ``reverse`` goes from the end.
        """
        number = self.axis(axis, "to scan along")
        b = self.owner.builder
        return self._of(primitives.scan(b, accumulate, _computable(self).view, number, exclusive, reverse))

    # ------------------------------------------------------------------ views

    def window(
        self, axis: str, place: str, tap: str, width: int, stride: int = 1, dilation: int = 1
    ) -> Array:
        """A view with one axis replaced by two: ``axis = place*stride + tap*dilation``.

        There are ``width`` taps. A convolution or a pooling is a contraction or a reduction over them. Places
        where the window would reach beyond the axis do not exist: ``pad`` first.
        """
        number = self.axis(axis, "for a window")
        for new in (place, tap):
            if not is_axis_name(new) or (new in self.names and new != axis) or place == tap:
                raise KernelError(f"{new!r} is no new axis for a window: use a letter that {self} lacks.")
        size = self.axes[number][1]
        if width < 1 or stride < 1 or dilation < 1 or (width - 1) * dilation >= size:
            raise KernelError(
                f"A window of {width} with stride {stride} does not fit the axis {axis}={size}."
            )
        view = primitives.window(self.owner.builder, self.view, number, width, stride, dilation)
        return self.owner.array([place if name == axis else name for name in self.names] + [tap], view)

    def slice(self, axis: str, start: int | None = None, stop: int | None = None, step: int = 1) -> Array:
        """A view of some places along an axis, as Python's slices: a negative step goes backwards."""
        number = self.axis(axis, "to slice")
        return self._of(primitives.slice_(self.owner.builder, self.view, number, start, stop, step))

    def take(self, axis: str, index: Array) -> Array:
        """A view of the places that an integer array says: ``rows.take("n", i)`` has those of ``i`` for n.

        Axes that both have are the same one: ``x[b,n].take("n", i[b,k])`` is ``x[b,i[b,k]]``. What the domain
        of ``i`` does not keep within the axis is brought into it; negative places count from the end.
        """
        number = self.axis(axis, "to take from")
        if not isinstance(index, Array):
            raise KernelError(f"take reads places from an array of the kernel, and {index!r} is none.")
        b = self.owner.builder
        gathered = primitives.gather(b, self.view, index.view, number)
        names = (*self.names[:number], *index.names, *self.names[number + 1 :])
        mine = dict(self.axes)
        for name, size in index.axes:
            if name != axis and mine.get(name, size) != size:
                raise KernelError(f"Axis {name} is {mine[name]} long in {self} and {size} in {index}.")
        wanted = tuple(dict.fromkeys(names))
        return self.owner.array(wanted, contract_named(b, [names], wanted, [gathered]))

    def scatter(self, axis: str, index: Array, updates: Array, accumulate: str = "") -> Array:
        """A copy in which the places that an integer array says have other values: those of ``updates``, the
        later where two have one place, or what comes of accumulating all of them (``+ * max min``).

        ``rows.scatter("n", i, updates)`` has updates of the axes of ``rows`` with those of ``i`` for n. Axes
        that both have are the same one, and places are brought into the axis, as ``take`` does. Where the
        domain of ``i`` is distinct its updates may run at once.
        """
        number = self.axis(axis, "to scatter into")
        for array in (index, updates):
            if not isinstance(array, Array):
                raise KernelError(f"scatter takes arrays of the kernel, and {array!r} is none.")
        if accumulate not in ("", *IDENTITY):
            raise KernelError(f"scatter accumulates with {', '.join(IDENTITY)}, or not at all ('').")
        common_dtype("", (self, updates))
        others = tuple(a for a in self.axes if a[0] != axis and a[0] not in index.names)
        wanted = (*index.axes, *others)
        mine = dict(self.axes)
        if sorted(wanted) != sorted(updates.axes) or any(
            n != axis and mine.get(n, s) != s for n, s in wanted
        ):
            raise KernelError(
                f"{updates} does not go into {self} at {index}: its axes are those of {index}, and of {self} "
                f"all but {axis}."
            )
        names = [name for name, _ in wanted]
        places: list[View | int] = [0 if name == axis else names.index(name) for name in self.names]
        places[number] = _aligned(index, index.view, names)
        view = primitives.scatter(
            self.owner.builder, self.view, _aligned(updates, updates.view, names), places, accumulate
        )
        return self._of(view)

    def split(self, axis: str, into: str, **sizes: int) -> Array:
        """An axis as several, the first the outermost: ``x.split("c", "h d", h=8)``.

        Sizes are those given here or those of the kernel's axes; one is found out.
        """
        number = self.axis(axis, "to split")
        names = axes_named(into, self.owner.sizes.keys() | sizes)
        others = [name for name in self.names if name != axis]
        for name in names:
            if not is_axis_name(name) or name in others or names.count(name) > 1:
                raise KernelError(f"{name!r} is no new axis for {self}: give each part a name of its own.")
        whole = self.axes[number][1]
        known = [sizes.get(name, self.owner.sizes.get(name)) for name in names]
        count = math.prod(size for size in known if size) or 1
        fits = whole % count == 0 if known.count(None) == 1 else None not in known and whole == count
        if not fits:
            raise KernelError(
                f"{axis}={whole} does not split into {into!r}: give all sizes but one, such as {names[0]}=2."
            )
        shape = list(self.view.shape)
        shape[number : number + 1] = [-1 if size is None else size for size in known]
        view = primitives.reshape(self.owner.builder, self.view, shape)
        return self.owner.array([*self.names[:number], *names, *self.names[number + 1 :]], view)

    def merge(self, axes: str, into: str) -> Array:
        """Several axes as one, the first named the outermost: ``x.merge("h d", "c")``.

        It stands where the first of them stood.
        """
        merged = axes_named(axes, self.owner.sizes)
        numbers = [self.axis(name, "to merge") for name in merged]
        left = [k for k in range(len(self.axes)) if k not in numbers]
        if (
            not is_axis_name(into)
            or into in [self.names[k] for k in left]
            or len(set(numbers)) < len(numbers)
        ):
            raise KernelError(f"{axes!r} of {self} do not become {into!r}: name each once, and a new axis.")
        before = [k for k in left if k < numbers[0]]
        behind = [k for k in left if k > numbers[0]]
        b = self.owner.builder
        view = primitives.transpose(b, self.view, [*before, *numbers, *behind])
        sizes = self.view.shape
        shape = [*(sizes[k] for k in before), -1, *(sizes[k] for k in behind)]
        names = [*(self.names[k] for k in before), into, *(self.names[k] for k in behind)]
        return self.owner.array(names, primitives.reshape(b, view, shape))

    # ------------------------------------------------------------------ copies

    def pad(
        self, ends: Mapping[str, int | tuple[int, int]], mode: str = "constant", value: Number = 0
    ) -> Array:
        """A copy with places added along axes, before and after: ``x.pad({"h": (1, 1), "w": 2})``.

        ``mode`` is ``constant``, ``edge``, ``reflect`` or ``wrap``, as NumPy's. A negative number takes away.
        """
        pads = [(0, 0)] * len(self.axes)
        for name, end in ends.items():
            pads[self.axis(name, "to pad")] = end if isinstance(end, tuple) else (end, end)
        return self._of(primitives.pad(self.owner.builder, self.view, pads, mode, value))


# ---------------------------------------------------------------------------- operations on several


def _computable(array: Array) -> Array:
    """Raises KernelError for numbers that are only stored."""
    if array.dtype in STORAGE:
        wider = "i32" if array.dtype in STORAGE_INTEGERS else "f32"
        raise KernelError(
            f"{array} is {array.dtype}, which is stored and converted, not computed in: convert it first, "
            f"with .to({wider!r})."
        )
    return array


def _plain(value: object, function: str) -> Array | Number:
    if isinstance(value, Array):
        return _computable(value) if function else value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    raise KernelError(f"{value!r} is neither an array of the kernel nor a number: {function} takes those.")


def common_dtype(function: str, operands: Sequence[Array | Number]) -> str:
    """The dtype of a result. Raises KernelError where operands differ in theirs."""
    if function in COMPARISONS:
        common_dtype("", operands)
        return "bool"
    values = operands[1:] if function == "select" else operands
    kinds = {o.dtype: o for o in values if isinstance(o, Array) and not o.view.is_free}
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
        for name, size in array.axes:
            if sizes.setdefault(name, size) != size:
                other = next(a for a in arrays if (name, sizes[name]) in a.axes)
                raise KernelError(f"Axis {name} is {sizes[name]} long in {other} and {size} in {array}.")
    return tuple(sizes.items())


def _aligned(array: Array, view: View, names: Sequence[str]) -> View:
    """A view with an array's axes, with all of these in their order: of size 1 where it lacks one."""
    b = array.owner.builder
    order = [array.names.index(name) for name in names if name in array.names]
    view = primitives.transpose(b, view, order)
    return primitives.unsqueeze(b, view, [k for k, name in enumerate(names) if name not in array.names])


def _placed(array: Array, names: Sequence[str]) -> Condition:
    """The condition that an array is, over these axes."""
    assert array.condition is not None
    return replace(
        array.condition, forms=tuple(_aligned(array, form, names) for form in array.condition.forms)
    )


def _condition(where: object, names: Sequence[str], what: str) -> Condition:
    if not isinstance(where, Array) or where.condition is None:
        raise KernelError(
            "A sum is restricted by comparisons of iterators, such as iterator('n') <= iterator('m'); "
            "values are left out with where(...)."
        )
    beyond = [name for name in where.names if name not in names]
    if beyond:
        raise KernelError(f"The condition is on the axis {beyond[0]!r}, which {what} has not.")
    return _placed(where, names)


def apply(function: str, *given: object) -> Array:
    """One function of the text form, element by element."""
    operands = tuple(_plain(value, function) for value in given)
    owner = next((o.owner for o in operands if isinstance(o, Array)), None) or trace()
    axes = joined(*operands)
    names = [name for name, _ in axes]
    dtype = common_dtype(function, operands)
    views = [_aligned(o, o.view, names) if isinstance(o, Array) else o for o in operands]
    b = owner.builder
    view = primitives.elementwise(b, function, *views, dtype=dtype)
    condition = None
    if function in COMPARISONS and len(views) == 2:
        condition = primitives.condition(b, views[0], function, views[1])
    return owner.array(names, view, condition)


def concatenate(axis: str, *arrays: Array) -> Array:
    """Arrays one after the other along an axis; all others are the same in all."""
    for array in arrays:
        if not isinstance(array, Array):
            raise KernelError(f"concatenate takes an axis and arrays of the kernel, and {array!r} is none.")
        array.axis(axis, "to concatenate along")
    if not arrays:
        raise KernelError("There is nothing to concatenate: give an axis and at least one array.")
    first = arrays[0]
    common_dtype("", arrays)
    for array in arrays:
        others = sorted(a for a in array.axes if a[0] != axis)
        if others != sorted(a for a in first.axes if a[0] != axis):
            raise KernelError(f"{array} and {first} do not go together along {axis}: other axes differ.")
    views = [_aligned(array, array.view, first.names) for array in arrays]
    view = primitives.concatenate(first.owner.builder, views, first.names.index(axis))
    return first.owner.array(first.names, view)


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


def size(axis: str) -> int:
    """The size of an axis of the kernel."""
    sizes = trace().sizes
    if axis not in sizes:
        raise KernelError(f"The kernel has no axis {axis!r}; its axes are {', '.join(sizes)}.")
    return sizes[axis]


def iterator(axis: str) -> Array:
    """The position along an axis as a value: ``where(iterator("n") <= iterator("m"), s, -inf)``."""
    return trace().array([axis], primitives.iterator(trace().builder, (size(axis),), 0))


def einsum(spec: str, *arrays: Array, where: Array | None = None) -> Array:
    """A contraction: ``einsum("mk,kn->mn", a, b)`` sums ``a*b`` over k. ``where`` restricts the sum.

    Letters, or words that stand apart (``"row k, k col -> row col"``), stand for the arrays' axes in order,
    whatever those are called. Of one array: its transpose, diagonal (views, without a step) or sum. More than
    two are contracted one after the other.
    """
    known = trace().sizes
    try:
        forms, wanted = parsed_form(spec, [name for name in known if len(name) > 1])
    except primitives.BuildError:
        forms, wanted = (), ()
    if not arrays or not forms:
        raise KernelError(
            f"einsum takes a form such as 'mk,kn->mn' and arrays, not {spec!r} with {len(arrays)}."
        )
    if len(forms) != len(arrays):
        raise KernelError(f"einsum {spec!r} names {len(forms)} arrays and is given {len(arrays)}.")
    sizes: dict[str, int] = {}
    for form, array in zip(forms, arrays, strict=True):
        if not isinstance(array, Array):
            raise KernelError(f"einsum contracts arrays of the kernel, and {array!r} is none.")
        if len(form) != len(array.axes):
            named = "".join(form) if max(map(len, form), default=1) == 1 else " ".join(form)
            raise KernelError(
                f"einsum {spec!r}: {array} has {len(array.axes)} axes, and {named!r} has {len(form)}."
            )
        for name, (_, extent) in zip(form, array.axes, strict=True):
            if sizes.setdefault(name, extent) != extent:
                raise KernelError(
                    f"einsum {spec!r}: axis {name} is {sizes[name]} long, and {extent} in {array}."
                )
    for name in wanted:
        if name not in sizes or wanted.count(name) > 1:
            raise KernelError(f"einsum {spec!r}: {name!r} of the result is no axis of the arrays, or twice.")
    over = tuple(name for name in sizes if name not in wanted)
    held = None if where is None else _condition(where, (*wanted, *over), f"einsum {spec!r}")
    owner = arrays[0].owner
    dtype = common_dtype("*", arrays)
    view = contract_named(
        owner.builder, forms, wanted, [_computable(a).view for a in arrays], dtype=dtype, where=held
    )
    return owner.array(wanted, view)
