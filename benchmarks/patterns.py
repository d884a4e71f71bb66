"""What stands around a product, a convolution or a window, as one kernel and as several.

    python -m benchmarks.patterns            # all, as a table
    python -m benchmarks.patterns linear     # those whose name has the word

The heuristic pass plays each pattern as one text, and each of its stages as a kernel of its own ("apart"):
what one text gains is what need not go through memory. Both are verified. The limit is the machine's
(roofline.py); products of integers have none, for the peak that is known is that of floating-point numbers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.passes import play_pass
from dojo_core.bench.roofline import Question, roofline
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.records import Records
from dojo_core.primitives import (
    Array,
    Builder,
    contract,
    convert,
    convolve,
    convolve_transposed,
    elementwise,
    formula,
    mean,
    pool,
    reduce,
    reshape,
    unsqueeze,
)
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.measurer import Measurer

POLICY = "algebraic"
GELU = "0.5 * x * (1 + erf(x * 0.7071067811865476))"
SELU = "1.0507009873554805 * select(x > 0, x, 1.6732632423543772 * expm1(x))"

Given = Callable[[str], Array]  # an input by its name
Stage = Callable[[Builder, Array, Given], Array]


@dataclass(frozen=True)
class Pattern:
    """``inputs``: the dtype and sizes of each, as ``f32 128 64``. The first stage gets the input x."""

    name: str
    inputs: Mapping[str, str]
    stages: Sequence[Stage]


def stage(text: str) -> Stage:
    """A formula over x, what the stage before gives, and the inputs c and r."""
    names = [name for name in ("c", "r") if name in text.split()]

    def made(b: Builder, x: Array, given: Given) -> Array:
        operands: dict[str, Any] = {name: given(name) for name in names}
        return formula(b, text, x=x, **operands)

    return made


def product(form: str, dtype: str | None = None) -> Stage:
    return lambda b, x, given: contract(b, form, x, given("w"), dtype=dtype)


def convolution(**attributes: object) -> Stage:
    return lambda b, x, given: convolve(b, x, given("w"), given("c"), **attributes)  # type: ignore[arg-type]


def pooling(kind: str, *taps: int, stride: int, pad: int = 0, dilation: int = 1) -> Stage:
    ranks = len(taps)
    return lambda b, x, given: pool(
        b, kind, x, taps, [stride] * ranks, [dilation] * ranks, [(pad, pad)] * ranks
    )


def _relu(b: Builder, x: Array, given: Given) -> Array:
    return elementwise(b, "relu", x)


def _scaled(b: Builder, x: Array, given: Given) -> Array:
    return elementwise(b, "*", convert(b, x, "f32"), given("s"))


def _softmax(b: Builder, x: Array, given: Given) -> Array:
    e = elementwise(b, "exp", elementwise(b, "-", x, reduce(b, "max", x, -1, keepdims=True)))
    return elementwise(b, "/", e, reduce(b, "+", e, -1, keepdims=True))


def _attention(*shared: str) -> Stage:
    """Of queries x, keys k and values v, for each head; ``shared``: what is added to the scores."""

    def made(b: Builder, x: Array, given: Given) -> Array:
        scores = formula(b, f"x * {x.shape[-1] ** -0.5}", x=contract(b, "hmd,hnd->hmn", x, given("k")))
        for name in shared:
            scores = elementwise(b, "+", scores, given(name))
        return contract(b, "hmn,hnd->hmd", _softmax(b, scores, given), given("v"))

    return made


def _swiglu(b: Builder, x: Array, given: Given) -> Array:
    gate, up = (contract(b, "mk,nk->mn", x, given(name)) for name in "wv")
    return formula(b, "g * sigmoid(g) * u", g=gate, u=up)


def _group_norm(b: Builder, x: Array, given: Given) -> Array:
    n, c, *spatial = x.shape
    z = reshape(b, x, (n, 8, c // 8, *spatial))
    axes = tuple(range(2, len(z.shape)))
    q = elementwise(b, "-", z, mean(b, z, axes, keepdims=True))
    v = mean(b, elementwise(b, "*", q, q), axes, keepdims=True)
    y = reshape(b, formula(b, "q * rsqrt(v + 0.00001)", q=q, v=v), x.shape)
    scale, shift = (unsqueeze(b, given(name), (1, 2)) for name in "sc")
    return formula(b, "y * s + c", y=y, s=scale, c=shift)


def _conv(sizes: str, weights: str) -> dict[str, str]:
    return {"x": f"f32 {sizes}", "w": f"f32 {weights}", "c": f"f32 {weights.split()[0]}"}


def _heads(sizes: str, others: str = "", names: str = "kv") -> dict[str, str]:
    return {"x": f"f32 {sizes}"} | dict.fromkeys(names, f"f32 {others or sizes}")


PATTERNS = [
    Pattern(
        "product + bias → gelu",
        {"x": "f32 256 768", "w": "f32 768 3072", "c": "f32 3072"},
        [product("mk,kn->mn"), stage("x + c"), stage(GELU)],
    ),
    Pattern(
        "product + bias + residual",
        {"x": "f32 256 768", "w": "f32 768 768", "c": "f32 768", "r": "f32 256 768"},
        [product("mk,kn->mn"), stage("x + c + r")],
    ),
    Pattern(
        "linear: x·wᵀ + bias → silu",
        {"x": "f32 128 2048", "w": "f32 2048 2048", "c": "f32 2048"},
        [product("mk,nk->mn"), stage("x + c"), stage("x * sigmoid(x)")],
    ),
    Pattern(
        "odd sizes: product + bias → relu",
        {"x": "f32 100 300", "w": "f32 300 250", "c": "f32 250"},
        [product("mk,kn->mn"), stage("x + c"), _relu],
    ),
    Pattern(
        "linear of 8 rows",
        {"x": "f32 8 1024", "w": "f32 1024 1024", "c": "f32 1024"},
        [product("mk,nk->mn"), stage("x + c")],
    ),
    Pattern("product of a few results", {"x": "f32 8 16384", "w": "f32 16384 8"}, [product("mk,kn->mn")]),
    Pattern("two products → silu · up", _heads("64 512", "1024 512", "wv"), [_swiglu]),
    Pattern(  # scaled, as scores are: exponentials of others are denormal numbers, which take long
        "product → softmax",
        {"x": "f32 256 512", "w": "f32 512 512"},
        [product("mk,kn->mn"), lambda b, x, given: _softmax(b, formula(b, f"x * {512**-0.5}", x=x), given)],
    ),
    Pattern("attention", _heads("12 128 64"), [_attention()]),
    Pattern("attention, longer", _heads("8 512 64"), [_attention()]),
    Pattern("attention with a mask", _heads("8 512 64") | {"m": "f32 512 512"}, [_attention("m")]),
    Pattern(
        "u8·i8 → scale to f32",
        {"x": "u8 128 1024", "w": "i8 1024 1024", "s": "f32 1024"},
        [product("mk,kn->mn", "i32"), _scaled],
    ),
    Pattern(
        "i8·i8 → scale to f32",
        {"x": "i8 128 1024", "w": "i8 1024 1024", "s": "f32 1024"},
        [product("mk,kn->mn", "i32"), _scaled],
    ),
    Pattern(
        "conv 3x3 + bias → relu",
        _conv("1 64 56 56", "64 64 3 3"),
        [convolution(pads=[(1, 1)] * 2), _relu],
    ),
    Pattern(
        "conv 3x3, stride 2",
        _conv("1 64 56 56", "64 64 3 3"),
        [convolution(strides=[2, 2], pads=[(1, 1)] * 2), _relu],
    ),
    Pattern(
        "conv 11x11, stride 4, 227x227",
        _conv("1 3 227 227", "96 3 11 11"),
        [convolution(strides=[4, 4]), _relu],
    ),
    Pattern(
        "conv 5x9, dilated and padded",
        _conv("1 16 64 64", "32 16 5 9"),
        [convolution(pads=[(2, 2), (8, 8)], dilations=[1, 2]), _relu],
    ),
    Pattern(
        "conv 3x3 in 8 groups",
        _conv("1 64 28 28", "64 8 3 3"),
        [convolution(pads=[(1, 1)] * 2, groups=8), _relu],
    ),
    Pattern(
        "depthwise 3x3",
        _conv("1 64 56 56", "64 1 3 3"),
        [convolution(pads=[(1, 1)] * 2, groups=64), _relu],
    ),
    Pattern(
        "depthwise 3x3, stride 2",
        _conv("1 64 56 56", "64 1 3 3"),
        [convolution(strides=[2, 2], pads=[(1, 1)] * 2, groups=64), _relu],
    ),
    Pattern(
        "conv 1-D, 5 taps, stride 2",
        _conv("4 64 512", "64 64 5"),
        [convolution(strides=[2], pads=[(2, 2)]), _relu],
    ),
    Pattern(
        "conv 3-D 3x3x3",
        _conv("1 16 16 16 16", "32 16 3 3 3"),
        [convolution(pads=[(1, 1)] * 3), _relu],
    ),
    Pattern(
        "transposed conv 4x4, stride 2",
        _conv("1 32 32 32", "32 32 4 4"),
        [
            lambda b, x, given: convolve_transposed(
                b, x, given("w"), given("c"), strides=[2, 2], pads=[(1, 1)] * 2
            ),
            _relu,
        ],
    ),
    Pattern("max pool 3x3, stride 2", {"x": "f32 4 32 112 112"}, [pooling("max", 3, 3, stride=2, pad=1)]),
    Pattern("average pool 2x2", {"x": "f32 4 32 112 112"}, [pooling("average", 2, 2, stride=2)]),
    Pattern(
        "max pool 1-D, 8 taps, dilated",
        {"x": "f32 16 64 4096"},
        [pooling("max", 8, stride=1, pad=4, dilation=3)],
    ),
    Pattern("group norm", {"x": "f32 8 64 64 64", "s": "f32 64", "c": "f32 64"}, [_group_norm]),
    Pattern("elu", {"x": "f32 1024 4096"}, [stage("select(x > 0, x, exp(x) - 1)")]),
    Pattern("selu", {"x": "f32 1024 4096"}, [stage(SELU)]),
]


def programs(pattern: Pattern) -> list[Program]:
    """The whole pattern as one kernel; then each stage as a kernel of its own, where there are several."""
    found = [_program(pattern, 0, len(pattern.stages))]
    if len(pattern.stages) > 1:
        found += [_program(pattern, number, number + 1) for number in range(len(pattern.stages))]
    return found


def _program(pattern: Pattern, first: int, end: int) -> Program:
    """The stages from one up to another; what comes before is an input."""
    b, sizes = Builder("pattern"), dict(pattern.inputs)
    if first:
        before = _array(pattern, Builder("before"), 0, first, sizes)
        sizes["x"] = " ".join((before.dtype, *map(str, before.shape)))
    b.output("y", _array(pattern, b, first, end, sizes))
    return b.program()


def _array(pattern: Pattern, b: Builder, first: int, end: int, sizes: Mapping[str, str]) -> Array:
    inputs: dict[str, Array] = {}

    def given(name: str) -> Array:
        if name not in inputs:
            dtype, *shape = sizes[name].split()
            inputs[name] = b.input(name, dtype, map(int, shape))
        return inputs[name]

    result = given("x")
    for each in pattern.stages[first:end]:
        result = each(b, result, given)
    return result


def operations(program: Program) -> int:
    """Of the text: two of a sum of products."""
    return sum(
        (1 + bool(leaf.op.accumulate and leaf.op.function)) * math.prod(s.size for s in leaf.scopes)
        for leaf in program.leaves
    )


def main() -> None:
    words = sys.argv[1:]
    print("| pattern | µs | share of the limit | apart, µs | gain |\n|---|---:|---:|---:|---:|")
    with Records() as records, Measurer() as measurer:
        for pattern in PATTERNS:
            if words and not any(word in pattern.name for word in words):
                continue
            starts = programs(pattern)
            limit = roofline(records, Question(starts[0], None, "", operations(starts[0])))
            seconds = [_seconds(measurer, start) for start in starts]
            whole, apart = seconds[0], sum(seconds[1:])
            integers = any(buffer.dtype.startswith(("i", "u")) for buffer in starts[0].buffers)
            share = f"{limit.seconds / whole:.0%}" if limit is not None and not integers else ""
            cells = [f"{apart * 1e6:.0f}", f"{apart / whole:.2f}"] if apart else ["", ""]
            print("| " + " | ".join([pattern.name, f"{whole * 1e6:.0f}", share, *cells]) + " |", flush=True)


def _seconds(measurer: Measurer, start: Program) -> float:
    """Of the heuristic pass' program, verified. Exits where it is wrong."""
    game = Game.new(start, policy=POLICY)
    play_pass(game, "heuristic")
    (found,) = measurer.measure(Workload(start, policy=POLICY), [game.current.program], Effort.NORMAL)
    if found.seconds is None:
        sys.exit(f"{found.status}: {found.message}\n{game.current.program.text}")
    return found.seconds


if __name__ == "__main__":
    main()
