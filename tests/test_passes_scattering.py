"""The heuristic pass on what inputs give to their results: tiles of a row's inputs by its taps."""

from dataclasses import replace

import pytest

from dojo_core.primitives import Builder, convolve_transposed, elementwise
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from tests.test_passes import WIDE
from tests.test_passes_fusion import lines


def scattered(x, w, **attributes) -> Program:
    """A transposed convolution, many of whose padded products would be with zeros."""
    b = Builder("k")
    y = convolve_transposed(b, b.input("x", "f32", x), b.input("w", "f32", w), **attributes)
    b.output("y", elementwise(b, "relu", y) if len(x) < 5 else y)
    return b.program()


def test_inputs_and_taps_of_a_row_meet_in_registers():
    """4 inputs and 5 taps, 16 channels of the result in a vector: 20 multiply-adds, 8 sums."""
    sums, kept = "acc[{0},{1},{2},{3},{4},{5},{6},{7}]", "ty[{0},{1},{2}*32+{3}*8+{4}*32+{5}*8+{6},{7}]"
    found = lines(scattered((2, 3, 2, 2, 4), (3, 32, 3, 3, 5)))
    assert found[3:7] == [
        "2:p 2 4:u 4:u 8:u 16:v ty[{0},{1},{2}*32+{3}*8+{4},{5}] = 0",
        f"| | 2 2 3 3 8:u 16:v {sums} = {kept}",
        "| | | | | | 3:u 5:u 4:u 16:v acc[{0},{1},{2},{3},{4},{5},{7}+{8},{9}]"
        " += x[{0},{6},{2},{3},{8}]*pw[{1},{4},{5},{6},{7},{9}]",
        f"| | | | | | 8:u 16:v {kept} = {sums}",
    ]


def test_sums_begin_with_a_bias_and_rows_whose_terms_lie_in_one_set_of_the_cache_are_copied():
    """Channels of 32x32 numbers are 4 KiB apart: no more than 8 lines of them stay. The 3 taps stand
    innermost, as there are fewer of them than of the 8 inputs."""
    b = Builder("k")
    x, w = b.input("x", "f32", (2, 16, 32, 32)), b.input("w", "f32", (16, 8, 3, 3))
    b.output("y", convolve_transposed(b, x, w, b.input("c", "f32", (8,)), lanes=True))
    narrow = replace(WIDE, vector_widths=WIDE.vector_widths | {"f32": (8, 4)}, vector_registers=16)
    found = lines(b.program(), narrow)
    assert [line for line in found if line.startswith(("2:p", "| 32", "| | | | 16"))] == [
        "2:p 34 34:u 8:v ty[{0},{1}*34+{2},{3}] = c[{3}]",
        "| 32 16 4:u 8:v xx[{0},{1},{2},{3}*8+{4}] = x[{0},{2},{1},{3}*8+{4}]",
        "| | | | 16 8:u 3:u 8:v acc[{0},{1},{2},{3},{5}+{6},{7}]"
        " += xx[{0},{1},{4},{3}*8+{5}]*pw[{2},{4},{6},{7}]",
    ]


CASES = {
    "rows alone": ((2, 4, 4), (4, 16, 6), {}),
    "one image, one vector of channels": ((1, 4, 3, 4), (4, 16, 3, 4), {}),
    "two runs": ((1, 4, 2, 32), (4, 16, 6, 7), {}),
    "vectors of 8, in groups": ((2, 8, 2, 3), (8, 24, 3, 4), {"groups": 2}),
    "cut": ((2, 4, 3, 3), (4, 16, 5, 5), {"pads": [(1, 0), (0, 1)]}),
    "dilated": ((2, 4, 3, 3), (4, 16, 3, 3), {"dilations": [2, 2]}),
}


@pytest.mark.parametrize("name", CASES)
def test_scattered_sums_are_tiles(name):
    x, w, attributes = CASES[name]
    found = [line for line in lines(scattered(x, w, **attributes)) if "+=" in line]
    assert len(found) == 1 and ":v acc" in found[0] and "*pw[" in found[0], found


def test_more_taps_than_registers_have_room_for_stay_as_they_are():
    found = lines(scattered((1, 4, 2, 3), (4, 16, 3, 64)))
    assert not any("acc" in line for line in found)


def test_a_part_of_the_results_is_turned_into_its_place():
    """What padding leaves of 17x17 results: no copy of all of them between."""
    b = Builder("k")
    x, w = b.input("x", "f32", (2, 8, 8, 8)), b.input("w", "f32", (8, 16, 3, 3))
    y = convolve_transposed(b, x, w, strides=[2, 2], pads=[(1, 0), (1, 0)], lanes=True)
    b.output("y", y)
    narrow = replace(
        WIDE,
        vector_widths=WIDE.vector_widths | {"f32": (8, 4)}, vector_registers=16,
        instructions=WIDE.instructions | {("transpose", 8)},
    )  # fmt: skip
    found = lines(b.program(), narrow)
    (read,) = [line for line in found if " y[" in line]
    assert "8:transpose 8 y[{0},{1}*8+{5},{2},{3}*8+{4}] = t" in read, found
    assert sum("+=" in line for line in found) == 1


def test_a_part_of_the_channels_loses_no_tiles():
    start = parse(
        "kernel k\nin x, w\nout y\nx f32 [2, 8, 8, 8] heap\nw f32 [8, 32, 3, 3] heap\n"
        "y f32 [2, 16, 17, 17] heap\nt f32 [2, 32, 17, 17] heap\n"
        "2 32 17 17 t[{0},{1},{2},{3}] = 0\n"
        "2 32 8 8 3 3 8 t[{0},{1},{2}*2+{4},{3}*2+{5}] += x[{0},{6},{2},{3}]*w[{6},{1},{4},{5}]\n"
        "2 16 17 17 y[{0},{1},{2},{3}] = t[{0},{1}+16,{2},{3}]\n"
    )
    (sums,) = [line for line in lines(start) if "+=" in line]
    assert ":v acc" in sums and "*pw[" in sums, sums
