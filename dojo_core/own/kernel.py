"""From a Python function over named arrays to a start program, its inputs, its reference, its text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dojo_core.faults import program_fault
from dojo_core.game import Game
from dojo_core.own.arrays import _TRACE, Array, Trace, checked_name
from dojo_core.own.axes import KernelError, axes_named, is_axis_name
from dojo_core.primitives import Builder, BuildError
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import NUMBER_DTYPES, Program

Result = Array | Mapping[str, Array]
Promise = tuple[float, float] | tuple[float, float, str]
"""A domain: between which values an input's lie, and perhaps the word distinct."""


@dataclass(frozen=True)
class Input:
    """One input as declared: its axes' names, its dtype, where its values lie (None: anywhere), and whether
    no two of them are the same."""

    name: str
    axes: tuple[str, ...]
    dtype: str = "f32"
    domain: tuple[float, float] | None = None
    distinct: bool = False


@dataclass(frozen=True)
class OwnKernel:
    """A kernel of one's own at certain sizes: ``program`` is its start program, naive and checked.

    ``at(m=100)`` gives the same kernel at other sizes.
    """

    name: str
    sizes: Mapping[str, int]
    inputs: tuple[Input, ...]
    function: Callable[..., Result] = field(repr=False)
    program: Program = field(repr=False)

    @property
    def text(self) -> str:
        """The start program's text: what ``save`` writes."""
        return self.program.text

    def at(self, **sizes: int) -> OwnKernel:
        """The kernel at other sizes. Raises KernelError where they do not fit."""
        for letter in sizes:
            if letter not in self.sizes:
                raise KernelError(
                    f"{self.name} has no axis {letter!r}; its axes are {', '.join(self.sizes)}."
                )
        return _built(self.name, {**self.sizes, **sizes}, self.inputs, self.function)

    def save(self, path: str | Path) -> Path:
        """Write the text, for ``dojo play PATH`` and for the app. Raises KernelError where that fails."""
        try:
            Path(path).write_text(self.text, encoding="utf-8")
        except OSError as error:
            raise KernelError(f"{path} could not be written: {error.strerror}.") from error
        return Path(path)

    def random_inputs(self, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
        """Inputs by name as they are drawn for a measurement: within their domains."""
        from dojo_core.measure.pool import STORED, draw, numbers

        rng = np.random.default_rng(seed)
        drawn: dict[str, np.ndarray[Any, Any]] = {}
        for each in self.inputs:
            buffer = self.program.buffer_of[each.name]
            shape = tuple(d.size for d in buffer.dims)
            values = draw(buffer.dtype, shape, rng, self.program.domain_of(each.name))
            drawn[each.name] = (
                values if np.dtype(STORED[buffer.dtype]).kind == "f" else numbers(values, buffer.dtype)
            )
        return drawn

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """The outputs in float64 by name: the start program interpreted. ValueError: a wrong shape."""
        return interpret(self.program, inputs)

    def game(self, policy: str = "reassoc") -> Game:
        """A game at the start position: ``game.play("split_scope y@0 16")``."""
        return Game.new(self.program, policy=policy, title=self.name)


def kernel(
    sizes: Mapping[str, int],
    *,
    domains: Mapping[str, Promise] | None = None,
    name: str = "",
    **inputs: str,
) -> Callable[[Callable[..., Result]], OwnKernel]:
    """A kernel from a function: ``@kernel({"m": 64, "n": 512}, x="mn", w="n")`` above ``def name(x, w):``.

    ``sizes`` are those of the axes by name. Each input has its axes as a string, letters or words that stand
    apart, ``"mn"`` or ``"row col"``, and may have a dtype behind them, ``"mn f16"`` (f32 where none is
    named); ``""`` is a scalar. ``domains`` bounds the values of
    inputs, ``{"x": (0.1, 10)}``; without one they are normal, with some adversarial rows. ``{"i": (0, 127,
    "distinct")}`` promises of integers besides that no two of them are the same. The function gives one
    array, the output ``y``, or several by name. Raises KernelError with a sentence.
    """

    def build(function: Callable[..., Result]) -> OwnKernel:
        kernel_name = name or function.__name__
        parameters = list(inspect.signature(function).parameters)
        if parameters != list(inputs):
            raise KernelError(
                f"The function takes {_listed(parameters)} and @kernel declares {_listed(inputs)}: "
                "declare each parameter as an input, in order."
            )
        for array in domains or {}:
            if array not in inputs:
                raise KernelError(f"domains names {array!r}, which is no input.")
        declared = tuple(
            _input(array, form, sizes, (domains or {}).get(array)) for array, form in inputs.items()
        )
        return _built(kernel_name, dict(sizes), declared, function)

    return build


def _listed(names: Any) -> str:
    return ", ".join(names) or "nothing"


def _input(name: str, form: str, sizes: Mapping[str, int], domain: Promise | None) -> Input:
    words = form.split()
    dtype = words.pop() if words and words[-1] in NUMBER_DTYPES else "f32"
    axes = axes_named(" ".join(words), sizes)
    if not all(map(is_axis_name, axes)):
        raise KernelError(
            f"{form!r} declares no array: write its axes and perhaps a dtype, such as 'mn f16'."
        )
    if len(set(axes)) < len(axes):
        raise KernelError(f"Input {name} has an axis twice in {form!r}: give each its own name.")
    checked_name(name, "an input")
    if domain is None:
        return Input(name, axes, dtype)
    low, high, *more = domain
    if not (-1e300 < low <= high < 1e300) or more not in ([], ["distinct"]):
        raise KernelError(
            f"The domain of {name} is two finite numbers, the lower first, and perhaps the word 'distinct', "
            f"not {domain}."
        )
    return Input(name, axes, dtype, (low, high), bool(more))


def _built(
    name: str, sizes: dict[str, int], inputs: tuple[Input, ...], function: Callable[..., Result]
) -> OwnKernel:
    """Run the function once, and make a program of what it noted."""
    for axis, size in sizes.items():
        if not is_axis_name(axis):
            raise KernelError(f"{axis!r} cannot name an axis: take a letter or a word that is no dtype.")
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise KernelError(f"Axis {axis} has the size {size!r}: a size is a whole number, at least 1.")
    try:
        program = _program(checked_name(name, "a kernel"), sizes, inputs, function)
    except KernelError:
        raise
    except BuildError as error:  # of a primitive: as much a mistake of the kernel
        raise KernelError(str(error)) from error
    fault = program_fault(program)
    if fault is not None:
        raise KernelError(f"{name} makes no sound program. {fault}")
    return OwnKernel(name, sizes, inputs, function, program)


def _program(
    name: str, sizes: dict[str, int], inputs: tuple[Input, ...], function: Callable[..., Result]
) -> Program:
    trace = Trace(sizes, Builder(name))
    given = [_declared(trace, each) for each in inputs]
    token = _TRACE.set(trace)
    try:
        result = function(*given)
        for output, array in _outputs(name, result).items():
            trace.builder.output(output, array.view)
    finally:
        _TRACE.reset(token)
    return trace.builder.program()


def _declared(trace: Trace, each: Input) -> Array:
    missing = [axis for axis in each.axes if axis not in trace.sizes]
    if missing:
        known = _listed(trace.sizes)
        raise KernelError(f"Axis {missing[0]!r} of input {each.name} has no size; the sizes given: {known}.")
    shape = [trace.sizes[axis] for axis in each.axes]
    return trace.array(
        each.axes, trace.builder.input(each.name, each.dtype, shape, each.domain, each.distinct)
    )


def _outputs(name: str, result: object) -> dict[str, Array]:
    """The outputs by name."""
    if isinstance(result, Array):
        result = {"y": result}
    if not isinstance(result, Mapping) or not result:
        raise KernelError(
            f"{name} returns {type(result).__name__}: return one array, or several by name in a dict."
        )
    for output, array in result.items():
        if not isinstance(array, Array):
            raise KernelError(f"The output {output!r} of {name} is {array!r} and no array of the kernel.")
    return dict(result)
