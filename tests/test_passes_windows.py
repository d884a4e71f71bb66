"""Rows that a convolution's tiles read, copied for all of them (agents/passes/windows.py)."""

from dataclasses import replace

from agents.passes.contractions import tile_contractions
from dojo_core.moves.legality import context
from dojo_core.primitives import Builder, convolve
from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.recipes import Sketch
from tests.test_passes import agrees
from tests.test_passes_channels import NARROW, convolution


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
