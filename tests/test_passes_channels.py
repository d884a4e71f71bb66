"""Convolutions whose vectors go along the channels of the result (agents/passes/channels.py)."""

from dataclasses import replace

import pytest

from agents.passes import PASSES
from agents.passes.channels import channels_in_lanes
from dojo_core import kernels, parse
from dojo_core.moves.legality import context
from dojo_core.primitives import Builder, convolve, elementwise
from dojo_core.program.tree import Program
from dojo_core.recipes import Sketch
from tests.test_passes import WIDE, agrees

TURNING = replace(WIDE, instructions=frozenset({("transpose", 16), ("transpose", 8)}))


def convolution(x: tuple[int, ...], w: tuple[int, ...], **attributes: object) -> Program:
    b = Builder("k")
    y = convolve(b, b.input("x", "f32", x), b.input("w", "f32", w), **attributes)
    b.output("y", y)
    return b.program()


def sketched(start: Program) -> Sketch:
    sketch = Sketch(context(start, TURNING, "reassoc"), most=500)
    for leaf in [leaf for leaf in start.leaves if leaf.op.accumulate]:
        channels_in_lanes(sketch, leaf.op.provenance)
    return sketch


def test_short_rows_leave_no_lane_idle_where_channels_are_the_lanes():
    """Rows of 10 results: a tile of one row by 16 channels, 12 rows of which are turned together."""
    sketch = sketched(convolution((2, 3, 4, 14, 16), (16, 3, 3, 3, 7)))
    assert sketch.program.text.splitlines()[3:] == []


def test_what_a_window_of_stride_2_reads_is_not_gathered():
    sketch = sketched(convolution((2, 3, 29, 29), (32, 3, 3, 3), strides=(2, 2)))
    assert sketch.program.text.splitlines()[3:] == []


def test_rows_that_vectors_divide_stay_in_the_lanes():
    assert not sketched(convolution((1, 16, 18, 34), (16, 16, 3, 3))).moves


def test_what_follows_takes_the_results_when_they_are_turned():
    b = Builder("k")
    y = convolve(b, b.input("x", "f32", (2, 3, 14, 16)), b.input("w", "f32", (16, 3, 3, 7)))
    b.output("y", elementwise(b, "max", y, 0))
    sketch = Sketch(context(b.program(), TURNING, "reassoc"), most=500)
    PASSES["heuristic"].run(sketch)
    assert sketch.program.text.splitlines()[3:] == []


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((2, 3, 14, 16), (16, 3, 3, 7), {}),
        ((1, 2, 9, 23), (16, 2, 3, 3), {"strides": (2, 2)}),
        ((1, 4, 12, 13), (32, 2, 3, 4), {"groups": 2}),
        ((2, 3, 23), (16, 3, 5), {"strides": (3,), "dilations": (2,)}),
        ((1, 2, 4, 5, 6), (16, 2, 2, 2, 2), {"pads": [(1, 0), (0, 1), (1, 1)]}),
    ],
)
def test_channels_in_lanes_keep_what_is_computed(x, w, attributes):
    start = convolution(x, w, **attributes)
    sketch = sketched(start)
    assert ":transpose" in sketch.program.text
    agrees(start, sketch)
