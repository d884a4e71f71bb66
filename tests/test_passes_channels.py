"""Lanes of a convolution: channels (agents/passes/channels.py), or columns that it steps over (phases.py)."""

from dataclasses import replace
from typing import Any

import pytest

from agents.passes import PASSES
from agents.passes.channels import channels_in_lanes
from agents.passes.dense import dense_rows
from agents.passes.phases import separate_phases
from dojo_core.moves.legality import context
from dojo_core.primitives import Builder, convolve, elementwise
from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.recipes import Sketch
from tests.test_passes import WIDE, agrees

TURNING = replace(WIDE, instructions=frozenset({("transpose", 16), ("transpose", 8)}))


NARROW = replace(
    TURNING, vector_widths={"f32": (8, 4)}, vector_registers=16, instructions=frozenset({("transpose", 8)})
)  # as AVX2 has it


def convolution(x: tuple[int, ...], w: tuple[int, ...], **attributes: Any) -> Program:
    b = Builder("k")
    y = convolve(b, b.input("x", "f32", x), b.input("w", "f32", w), **attributes)
    b.output("y", y)
    return b.program()


def sketched(start: Program, target: Target = TURNING) -> Sketch:
    sketch = Sketch(context(start, target, "reassoc"), most=500)
    for leaf in [leaf for leaf in start.leaves if leaf.op.accumulate]:
        channels_in_lanes(sketch, leaf.op.provenance)
    return sketch


def test_short_rows_leave_no_lane_idle_where_channels_are_the_lanes():
    """Rows of 10 results: tiles of one row by 16 channels, and 12 rows that are turned together."""
    sketch = sketched(convolution((2, 3, 4, 14, 16), (16, 3, 3, 3, 7)))
    assert sketch.program.text.splitlines()[5:] == [
        "y f32 [2, 16, 2, 120] heap",
        "pw f32 [3, 3, 7, 3, 16] heap",
        "acc f32 [2:N, 2:N, 12:N, 10, 16] register",
        "ty f32 [2:N, 2:N, 120, 16] stack",
        "16 3 3 3 7 pw[{1},{2},{4},{3},{0}] = w[{0},{1},{2},{3},{4}]",
        "2 2 12 10:u 16:v acc[{0},{1},{2},{3},{4}] = 0",
        "| | | 3 3 7 3 10:u 16:v acc[{0},{1},{2},{7},{8}] += "
        "x[{0},{3},{1}+{4},{2}+{6},{5}+{7}]*pw[{3},{4},{5},{6},{8}]",
        "| | | 10:u 16:v ty[{0},{1},{2}*10+{3},{4}] = acc[{0},{1},{2},{3},{4}]",
        "| | 7 16:transpose 16 y[{0},{4},{1},{2}*16+{3}] = ty[{0},{1},{2}*16+{3},{4}]",
        "| | 2 8:transpose 8 y[{0},{2}*8+{4},{1},{3}+112] = ty[{0},{1},{3}+112,{2}*8+{4}]",
    ]


def test_twelve_sums_and_three_numbers_leave_a_register_for_the_vectors():
    """With 16 registers, tiles of 3 columns by 4 vectors: the vectors come by one after the other."""
    start = convolution((1, 3, 4, 8, 32), (32, 3, 3, 5, 7))
    sketch = sketched(start, NARROW)
    assert " 3 3 7 5 4:u 3:u 8:v acc[" in sketch.program.text
    agrees(start, sketch)


def test_no_image_of_twice_a_cache_is_copied_for_one_run_of_its_rows():
    """Blocks of its rows are (agents/passes/windows.py), where a quarter of the cache has room for one row's
    windows."""

    def moves(cache: int) -> int:
        target = replace(NARROW, cache_bytes=cache)
        sketch = Sketch(context(convolution((2, 4, 100, 24), (16, 4, 3, 3)), target, "reassoc"), most=500)
        (total,) = [leaf for leaf in sketch.program.leaves if leaf.op.accumulate]
        dense_rows(sketch, total.op.provenance)
        return len(sketch.moves)

    assert moves(32 << 10) > 0  # 4 channels of 100 rows of 24 numbers are 38,400 bytes
    assert not moves(8 << 10)
    assert moves(2 << 10) > 0  # a row's windows are 1,152 bytes


def test_what_a_window_of_stride_2_reads_is_not_gathered():
    sketch = sketched(convolution((2, 3, 29, 29), (32, 3, 3, 3), strides=(2, 2)))
    assert sketch.program.text.splitlines()[9:] == [
        "32 3 3 3 pw[{1},{3},{2},{0}] = w[{0},{1},{2},{3}]",
        "2 14 14:u 2:u 16:v acc[{0},{1},{2},{3},{4}] = 0",
        "| | 3 3 3 14:u 2:u 16:v acc[{0},{1},{5},{6},{7}] += "
        "x[{0},{2},{1}*2+{4},{3}+{5}*2]*pw[{2},{3},{4},{6}*16+{7}]",
        "| | 14:u 2:u 16:v ty[{0},{1}*14+{2},{3}*16+{4}] = acc[{0},{1},{2},{3},{4}]",
        "| 2 12 16:transpose 16 y[{0},{1}*16+{4},{2}*16+{3}] = ty[{0},{2}*16+{3},{1}*16+{4}]",
        "| 32 4 y[{0},{1},{2}+192] = ty[{0},{2}+192,{1}]",
    ]


def test_of_a_single_image_threads_have_rows_to_share():
    sketch = sketched(convolution((1, 3, 29, 29), (32, 3, 3, 3), strides=(2, 2)))
    assert "2 7 14:u 2:u 16:v acc[" in sketch.program.text  # two blocks of seven rows


def test_weights_of_a_tile_of_few_rows_stay_in_the_first_cache():
    """Tiles of 6 rows by 16 channels: the sums of 32 input channels come in two blocks, and in each the
    tiles of a row go by with the same 9 KB of weights."""
    start = convolution((1, 32, 3, 49), (16, 32, 3, 3), strides=(2, 2))
    sketch = sketched(start, NARROW)
    taken, summed, stored = sketch.program.text.splitlines()[11:14]
    assert taken == "| 2 4 6:u 2:u 8:v acc[{0},{1},{2},{3},{4},{5}] = ty[{0},{2}*6+{3},{4}*8+{5}]"
    assert summed.startswith("| | | 16 3 3 6:u 2:u 8:v acc[{0},{1},{2},{6},{7},{8}] += x[0,{1}*16+{3},")
    assert stored == "| | | 6:u 2:u 8:v ty[{0},{2}*6+{3},{4}*8+{5}] = acc[{0},{1},{2},{3},{4},{5}]"
    agrees(start, sketch)


FEW = replace(NARROW, cache_bytes=64 << 10, first_cache_bytes=8 << 10, threads=2)


def with_constants(start: Program, target: Target = FEW) -> Sketch:
    """Where the weights are the same in every run."""
    sketch = Sketch(context(start, target, "reassoc", constants=frozenset({"w"})), most=500)
    for leaf in [leaf for leaf in start.leaves if leaf.op.accumulate]:
        channels_in_lanes(sketch, leaf.op.provenance)
    return sketch


def test_panels_of_constant_weights_take_all_rows_before_the_next_ones_do():
    """72 KB of weights are more than a cache keeps from row to row. A panel of 16 channels goes over all rows
    block by block of 4 of the 32 input channels, whose 36 lines of weights are asked for while the block
    before takes its 49 results."""
    start = convolution((1, 32, 9, 9), (64, 32, 3, 3))
    sketch = with_constants(start)
    lines = sketch.program.text.splitlines()
    assert lines[11:17] == [
        "4 16 32 3 3 pw[{0},{2},{4},{3},{1}] = w[{0}*16+{1},{2},{3},{4}]",
        "4 7 7 16 ty[{0},{1}*7+{2},{3}] = 0",
        "| 8 7 1 4:u 2:u 8:v acc[{0},{1},{2},{3},{4},{5},{6}] = ty[{0},{2}*7+{4},{5}*8+{6}] "
        "!prefetch(pw[{0},{1}*4+4,0,0,{2}*112+{4}*16])",
        "| | | | 4 3 3 4:u 2:u 8:v acc[{0},{1},{2},{3},{7},{8},{9}] += "
        "x[0,{1}*4+{4},{2}+{6},{5}+{7}]*pw[{0},{1}*4+{4},{5},{6},{8}*8+{9}]",
        "| | | | 4:u 2:u 8:v ty[{0},{2}*7+{4},{5}*8+{6}] = acc[{0},{1},{2},{3},{4},{5},{6}]",
        "| | | 1 3:u 2:u 8:v acc1[{0},{1},{2},{3},{4},{5},{6}] = ty[{0},{2}*7+{4}+4,{5}*8+{6}] "
        "!prefetch(pw[{0},{1}*4+4,0,0,{2}*112+{4}*16+64])",
    ]
    assert "| 2 6 8:transpose 8 uy[{0},0,{1}*8+{4},{2}*8+{3}] = ty[{0},{2}*8+{3},{1}*8+{4}]" in lines
    agrees(start, sketch)


def test_weights_that_change_from_run_to_run_are_not_laid_out_for_a_single_image():
    assert not sketched(convolution((1, 32, 9, 9), (64, 32, 3, 3)), FEW).moves


def test_results_of_a_panel_stay_in_a_cache_from_block_to_block():
    """30 by 30 of them are 57,600 bytes."""
    start = convolution((1, 32, 32, 32), (64, 32, 3, 3))
    assert not with_constants(start).moves


def test_constant_weights_that_a_cache_keeps_pass_by_for_each_row():
    start = convolution((1, 32, 9, 9), (64, 32, 3, 3))
    assert "| 8 7 1 4:u" not in with_constants(start, replace(FEW, cache_bytes=1 << 20)).program.text


@pytest.mark.parametrize(
    ("x", "w", "attributes", "asked"),
    [
        ((2, 32, 16, 16), (64, 32, 3, 3), {}, "{3}*32+{4}*16]"),  # a line for each tile of each row
        ((1, 32, 8, 9), (64, 32, 3, 3), {"strides": (2, 2)}, "{2}*128+{3}*32+{4}*16]"),  # for each vector
        ((1, 64, 16), (64, 64, 3), {}, ""),  # a block's weights are no run
    ],
)
def test_what_panels_compute_and_ask_for(
    x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any], asked: str
):
    start = convolution(x, w, **attributes)
    sketch = with_constants(start)
    prefetches = [line.split("!prefetch(")[1] for line in sketch.program.text.splitlines() if "!p" in line]
    assert ":transpose" in sketch.program.text
    assert [each.endswith(asked + ")") for each in prefetches[:1]] == [True] * bool(asked)
    agrees(start, sketch)


def test_every_second_column_of_a_product_is_gathered_row_by_row_or_read_by_channels():
    """A convolution of 1x1 by steps of 2 is a product whose columns lie apart: contractions.py would copy
    them row by row, 7 for vectors of 8."""
    start = convolution((2, 64, 13, 13), (128, 64, 1, 1), strides=(2, 2))
    assert ":transpose" in sketched(start, replace(NARROW, cache_bytes=512 << 10)).program.text


def test_sums_of_a_tile_of_many_rows_stay_in_registers_to_their_end():
    """Each of its weights serves so many rows that the second cache is near enough."""
    sketch = sketched(convolution((1, 32, 3, 225), (32, 32, 3, 3), strides=(2, 2)))
    (line,) = [line for line in sketch.program.text.splitlines() if "+=" in line]
    assert " 32 3 3 14:u 2:u 16:v acc[" in line


def test_rows_whose_windows_slide_along_the_rows_alone_are_one_run_as_they_lie():
    sketch = Sketch(context(convolution((1, 3, 12, 10), (8, 3, 3, 1)), WIDE, "reassoc"), most=500)
    PASSES["heuristic"].run(sketch)
    assert sketch.program.text.splitlines()[3:6:2] == ["x f32 [1, 3, 120] heap", "y f32 [1, 8, 100] heap"]


def test_rows_that_vectors_divide_stay_in_the_lanes():
    assert not sketched(convolution((1, 16, 18, 34), (16, 16, 3, 3))).moves


def test_what_follows_takes_the_results_when_they_are_turned():
    b = Builder("k")
    y = convolve(b, b.input("x", "f32", (2, 3, 14, 16)), b.input("w", "f32", (16, 3, 3, 7)))
    b.output("y", elementwise(b, "max", y, 0))
    sketch = Sketch(context(b.program(), TURNING, "reassoc"), most=500)
    PASSES["heuristic"].run(sketch)
    assert sketch.program.text.splitlines()[-4:] == [
        "| 7 16:transpose 16 ut1[{0},0,{3},{1}*16+{2}] = tt1[{0},{1}*16+{2},{3}]",
        "| 2 8:transpose 8 ut1[{0},0,{1}*8+{3},{2}+112] = tt1[{0},{2}+112,{1}*8+{3}]",
        "| 16 7:u 16:v y[{0},{1},{2}*16+{3}] = max(ut1[{0},0,{1},{2}*16+{3}],0)",
        "| | 8:v y[{0},{1},{2}+112] = max(ut1[{0},0,{1},{2}+112],0)",
    ]


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((2, 3, 14, 16), (16, 3, 3, 7), {}),
        ((1, 2, 9, 23), (16, 2, 3, 3), {"strides": (2, 2)}),
        ((1, 2, 12, 41), (16, 2, 3, 4), {}),
        ((2, 3, 43), (64, 3, 5), {"strides": (3,), "dilations": (2,)}),
        ((1, 2, 4, 9, 8), (16, 2, 2, 2, 2), {"pads": [(1, 0), (0, 1), (1, 1)]}),
    ],
)
def test_channels_in_lanes_keep_what_is_computed(
    x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]
):
    start = convolution(x, w, **attributes)
    sketch = sketched(start)
    assert ":transpose" in sketch.program.text
    agrees(start, sketch)


def test_what_the_first_cache_keeps_of_a_row_decides_what_the_lanes_are():
    """Nothing is gathered where channels are the lanes, but each tile of them goes over all that a row of
    results is made of: short pieces of many rows, which nothing fetches ahead."""
    start = convolution((1, 128, 29, 29), (128, 128, 3, 3), strides=(2, 2))
    roomy = replace(TURNING, cache_bytes=4 << 20, first_cache_bytes=1 << 20)
    assert sketched(start, roomy).moves
    assert not sketched(start, replace(roomy, first_cache_bytes=32 << 10)).moves


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((2, 3, 9, 135), (8, 3, 3, 7), {"strides": (2, 2)}),  # a filter's columns in twos, and one
        ((1, 2, 6, 196), (4, 2, 2, 5), {"strides": (1, 3), "pads": [(1, 1), (2, 0)]}),  # threes, and two
        ((1, 2, 9, 160), (4, 2, 3, 4), {"strides": (2, 2), "dilations": (2, 1)}),  # none is left over
        ((2, 3, 201), (6, 3, 3), {"strides": (2,)}),
    ],
)
def test_windows_that_step_over_columns_keep_what_is_computed(
    x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]
):
    start = convolution(x, w, **attributes)
    sketch = Sketch(context(start, WIDE, "reassoc"), most=500)
    for leaf in [leaf for leaf in start.leaves if leaf.op.accumulate]:
        separate_phases(sketch, leaf.op.provenance)
    assert ":v acc[" in sketch.program.text and "g" not in {b.name[0] for b in sketch.program.buffers}
    agrees(start, sketch)
