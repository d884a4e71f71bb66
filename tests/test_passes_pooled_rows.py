"""Rows of a convolution that windows pool, computed for them (agents/passes/pooled_rows.py)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agents.passes.pooled_rows import compute_pooled_rows
from dojo_core.moves.legality import context
from dojo_core.primitives import Array, Builder, convolve, elementwise, pool, reduce
from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.recipes import Sketch
from tests.test_passes import agrees
from tests.test_passes_channels import NARROW

Then = Callable[[Builder, Array], Array]


def convolution(x: tuple[int, ...], w: tuple[int, ...], then: Then) -> Program:
    b = Builder("k")
    taken = convolve(b, b.input("x", "f32", x), b.input("w", "f32", w))
    b.output("y", then(b, taken))
    return b.program()


def pooled(kind: str, *taps: int, **attributes: Any) -> Then:
    return lambda b, y: pool(b, kind, elementwise(b, "relu", y), taps, **{"strides": taps} | attributes)


def lines(start: Program, target: Target = NARROW) -> list[str]:
    """The lines after the pass's step, whose results are right, without the interface."""
    sketch = Sketch(context(start, target, "reassoc"), most=500)
    for leaf in [leaf for leaf in start.leaves if leaf.op.accumulate]:
        compute_pooled_rows(sketch, leaf.op.provenance)
    agrees(start, sketch)
    return sketch.program.text.splitlines()[6:]


def test_two_rows_are_computed_for_a_row_of_windows_with_channels_side_by_side():
    """Of 5 rows of 7 the last is no window's, and is not computed; what is pooled is turned, as an output."""
    start = convolution((2, 3, 7, 9), (8, 3, 3, 3), pooled("max", 2, 2))
    assert lines(start) == [
        "pw f32 [3, 3, 3, 8] heap",
        "acc f32 [2:N, 2:N, 2:N, 7, 8] register",
        "t1 f32 [2, 2, 2, 7, 8] heap",
        "t2 f32 [2, 2, 2, 7, 8] heap",
        "ty f32 [2:N, 2:N, 3, 8] stack",
        "8 3 3 3 pw[{1},{3},{2},{0}] = w[{0},{1},{2},{3}]",
        "2 2 2 7:u 8:v acc[{0},{1},{2},{3},{4}] = 0",
        "| | | 3 3 3 7:u 8:v acc[{0},{1},{2},{6},{7}] += "
        "x[{0},{3},{1}*2+{2}+{5},{4}+{6}]*pw[{3},{4},{5},{7}]",
        "| | | 7:u 8:v t1[{0},{1},{2},{3},{4}] = acc[{0},{1},{2},{3},{4}]",
        "| | 2 7:u 8:v t2[{0},{1},{2},{3},{4}] = max(t1[{0},{1},{2},{3},{4}],0)",
        "| | 3:u 8:v ty[{0},{1},{2},{3}] = -inf",
        "| | 3 8 2 2 ty[{0},{1},{2},{3}] max= t2[{0},{1},{4},{2}*2+{5},{3}]",
        "| | 8 3 y[{0},{2},{1},{3}] = ty[{0},{1},{3},{2}]",
    ]


def test_so_are_the_planes_and_rows_of_a_volume():
    start = convolution((1, 2, 6, 6, 11), (8, 2, 3, 3, 3), pooled("average", 2, 2, 2))
    found = [line for line in lines(start) if line.startswith("2 2 2 2 9:u 8:v acc")]
    assert found, "planes and rows that are pooled, and in them those that they are made of"


def test_what_is_made_of_all_that_is_pooled_comes_behind():
    def total(b: Builder, y: Array) -> Array:
        return reduce(b, "+", pooled("average", 2, 2)(b, y), (1, 2, 3))

    found = lines(convolution((2, 3, 8, 8), (16, 3, 3, 3), total))
    assert [line.split(" = ")[0] for line in found if line[0] in "23"][-1] == "2 y[{0}]"


def test_the_smallest_channel_of_a_place_is_found_row_by_row_and_mapped_in_vectors():
    def smallest(b: Builder, y: Array) -> Array:
        return elementwise(b, "tanh", reduce(b, "min", y, (1,)))

    assert lines(convolution((2, 3, 6, 11), (8, 3, 3, 3), smallest))[-7:] == [
        "2 4 1 9:u 8:v acc[{0},{1},{2},{3},{4}] = 0",
        "| | | 3 3 3 9:u 8:v acc[{0},{1},{2},{6},{7}] += x[{0},{3},{1}+{5},{4}+{6}]*pw[{3},{4},{5},{7}]",
        "| | | 9:u 8:v t1[{0},{1},{3},{4}] = acc[{0},{1},{2},{3},{4}]",
        "| | 9 t2[{0},{1},{2}] = inf",
        "| | 9 8 t2[{0},{1},{2}] min= t1[{0},{1},{2},{3}]",
        "| | 8:v y[{0},{1},{2}] = tanh(t2[{0},{1},{2}])",
        "| | 1 y[{0},{1},{2}+8] = tanh(t2[{0},{1},{2}+8])",
    ]


def test_a_softmax_over_channels_is_turned_where_a_row_ends():
    def softmax(b: Builder, y: Array) -> Array:
        e = elementwise(b, "exp", elementwise(b, "-", y, reduce(b, "max", y, (1,), keepdims=True)))
        return elementwise(b, "/", e, reduce(b, "+", e, (1,), keepdims=True))

    found = lines(convolution((2, 16, 6, 6), (16, 16, 3, 3), softmax))
    assert found[-1] == "| | 16 4 y[{0},{2},{1},{3}] = ty[{0},{1},{3},{2}]"
    start = convolution((2, 3, 6, 6), (8, 3, 3, 3), softmax)
    assert lines(start) == start.text.splitlines()[6:], "turning takes longer than a few products"


@pytest.mark.parametrize(
    ("channels", "then"),
    [
        (8, pooled("max", 3, 3, strides=(2, 2))),  # windows share rows
        (8, pooled("max", 2, 2, pads=[(1, 1), (1, 1)])),  # windows of what is around the rows, too
        (6, pooled("max", 2, 2)),  # no vector divides the channels
        (8, lambda b, y: elementwise(b, "+", pooled("max", 1, 1)(b, y), y)),  # no windows
        (8, lambda b, y: reduce(b, "+", y, (2,))),  # all rows
    ],
)
def test_else_all_stays_as_it_is(channels: int, then: Then):
    start = convolution((2, 3, 8, 8), (channels, 3, 3, 3), then)
    assert lines(start) == start.text.splitlines()[6:]


def test_so_it_does_where_no_cache_keeps_the_rows_of_a_window():
    start = convolution((1, 1, 6, 9002), (8, 1, 3, 3), pooled("max", 4, 4))
    assert lines(start) == start.text.splitlines()[6:]


def test_or_threads_could_not_share_them():
    start = convolution((1, 3, 12, 12), (8, 3, 3, 3), pooled("max", 2, 2))
    assert lines(start, replace(NARROW, threads=5)) != start.text.splitlines()[6:]
    assert lines(start, replace(NARROW, threads=4)) == start.text.splitlines()[6:], "five rows of windows"


def test_rows_that_an_output_has_are_all_computed():
    b = Builder("k")
    y = convolve(b, b.input("x", "f32", (2, 3, 8, 8)), b.input("w", "f32", (8, 3, 3, 3)))
    b.output("y", y)
    b.output("z", pool(b, "max", y, (2, 2)))
    start = b.program()
    assert lines(start) == start.text.splitlines()[6:]
