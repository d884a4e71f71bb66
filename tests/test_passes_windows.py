"""Rows that a convolution's tiles read, copied for all of them (agents/passes/windows.py)."""

from dataclasses import replace

from agents.passes import PASSES
from agents.passes.contractions import tile_contractions
from dojo_core.moves.legality import context
from dojo_core.primitives import Builder, convolve
from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.recipes import Sketch
from tests.test_passes import agrees
from tests.test_passes_channels import NARROW, convolution

COLUMNS = replace(NARROW, instructions=frozenset())  # results that cannot be turned stay in the lanes


def tiled(start: Program, target: Target = NARROW) -> list[str]:
    """The text of a tiled convolution, whose results are right, without its head."""
    sketch = Sketch(context(start, target, "reassoc"), most=500)
    tile_contractions(sketch)
    agrees(start, sketch)
    return sketch.program.text.splitlines()[3:]


def test_a_block_of_rows_is_copied_and_has_room_for_whole_vectors():
    """Rows of 22 results become 24, the width of a tile. Three rows find room in a quarter of the cache, as
    one run: columns that nobody asks for are made of the next row's numbers."""
    lines = tiled(convolution((2, 3, 11, 24), (16, 3, 3, 3)), replace(NARROW, cache_bytes=8 << 10))
    assert lines[3:] == [
        "wx f32 [2:N, 3:N, 362] stack",
        "acc f32 [2:N, 3:N, 3:N, 4:N, 4, 3, 8] register",
        "ty f32 [2:N, 3:N, 3:N, 16, 24] stack",
        "2 3 3 5 24 wx[{0},{1},{2}*120+{3}*24+{4}] = x[{0},{2},{1}*3+{3},{4}]",
        "| | 3 4 4:u 3:u 8:v acc[{0},{1},{2},{3},{4},{5},{6}] = 0",
        "| | | | 3 3 3 4:u 3:u 8:v acc[{0},{1},{2},{3},{7},{8},{9}] += "
        "wx[{0},{1},{2}*24+{4}*120+{5}*24+{6}+{8}*8+{9}]*w[{3}*4+{7},{4},{5},{6}]",
        "| | | | 4:u 3:u 8:v ty[{0},{1},{2},{3}*4+{4},{5}*8+{6}] = acc[{0},{1},{2},{3},{4},{5},{6}]",
        "| | | 16 22 y[{0},{3},{1}*3+{2},{4}] = ty[{0},{1},{2},{3},{4}]",
    ]


def test_where_weights_outgrow_a_cache_some_channels_go_over_a_block_first():
    """64 channels' weights are 7 KB; 16 channels go over all three rows that were copied, then 16 others."""
    lines = tiled(convolution((2, 3, 11, 24), (64, 3, 3, 3)), replace(NARROW, cache_bytes=8 << 10))
    assert "wx f32 [2:N, 3:N, 362] stack" in lines
    assert "| | 4 3 4 4:u 3:u 8:v acc[{0},{1},{2},{3},{4},{5},{6},{7}] = 0" in lines
    assert any(line.endswith("*w[{2}*16+{4}*4+{8},{5},{6},{7}]") for line in lines)


def test_where_weights_outgrow_a_cache_one_row_may_take_half_of_it():
    """A row's 8 channels are 2,496 bytes of 8 KB; all weights come by once for it, not for each panel."""
    start = convolution((1, 8, 11, 26), (64, 8, 3, 3))
    lines = tiled(start, replace(NARROW, cache_bytes=8 << 10))
    assert "wx f32 [9:N, 8, 3, 26] stack" in lines
    few = tiled(convolution((1, 8, 11, 26), (16, 8, 3, 3)), replace(NARROW, cache_bytes=9 << 10))
    assert not any(line.startswith("wx ") for line in few)  # beside all weights there is no room for it


def test_an_image_that_no_cache_keeps_is_summed_over_by_blocks():
    """Of 256 channels, 16 at a time: their part of the image stays in a core's cache for all results."""
    b = Builder("k")
    x, w = b.input("x", "f32", (1, 256, 5, 5)), b.input("w", "f32", (16, 256, 3, 3))
    b.output("y", convolve(b, x, w, pads=[(1, 1)] * 2))

    def played(cache: int) -> str:
        sketch = Sketch(context(b.program(), replace(COLUMNS, cache_bytes=cache), "reassoc"), most=500)
        PASSES["heuristic"].run(sketch)
        agrees(b.program(), sketch)
        return sketch.program.text

    assert "\n16 4:p 4:u 3:u 8:v acc[" in played(16 << 10)
    assert "256 3 3 4:u 3:u 8:v acc[" in played(1 << 20)


def test_planes_of_a_copy_do_not_share_the_sets_of_a_cache():
    """Four rows of 64 numbers are 1 KiB: a fifth, which nobody reads, stands between planes."""
    lines = tiled(convolution((2, 3, 4, 64), (16, 3, 3, 9)))
    assert "wx f32 [2:N, 3, 5, 64] stack" in lines


def test_a_panel_is_copied_where_no_rows_share_a_window():
    lines = tiled(convolution((2, 8, 98), (16, 8, 3)))
    assert "wx f32 [2:N, 4:N, 8, 26] stack" in lines
    assert "2 4 8 26 wx[{0},{1},{2},{3}] = x[{0},{2},{1}*24+{3}]" in lines


def test_few_rows_of_results_read_windows_where_they_are():
    lines = tiled(convolution((2, 3, 11, 24), (8, 3, 3, 3)))
    assert not any(line.startswith("wx ") for line in lines)


def test_what_others_read_too_is_not_copied():
    """Two convolutions of one image, as the phases of a transposed one are: nests that share it are fused."""
    b = Builder("k")
    x = b.input("x", "f32", (2, 3, 11, 24))
    for name in ("v", "w"):
        b.output("y" + name, convolve(b, x, b.input(name, "f32", (16, 3, 3, 3))))
    assert not any(line.startswith("wx") for line in tiled(b.program()))
