"""The heuristic pass on what stands around a product: it is done to the tile, where that is."""

from dataclasses import replace

import pytest

from agents.passes import PASSES
from dojo_core import apply, kernels, why
from dojo_core.moves.legality import context
from dojo_core.primitives import (
    Array,
    Builder,
    contract,
    convert,
    convolve,
    convolve_transposed,
    elementwise,
    formula,
    pool,
)
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.recipes import Sketch
from tests.test_passes import WIDE, agrees

BYTES = replace(  # a machine with an instruction for products of bytes
    WIDE,
    vector_widths=WIDE.vector_widths | {"i8": (64, 32, 16), "u8": (64, 32, 16)},
    instructions=frozenset({("vpdpbusd", 16)}),
)


def product(b: Builder, m: int, k: int, n: int, turned: bool = False) -> Array:
    x, w = b.input("x", "f32", (m, k)), b.input("w", "f32", (n, k) if turned else (k, n))
    return contract(b, "mk,nk->mn" if turned else "mk,kn->mn", x, w)


def lines(program: Program, target=WIDE) -> list[str]:
    """What the pass makes of a program, checked to compute the same; without the interface."""
    sketch = Sketch(context(program, target, "reassoc"), most=500)
    PASSES["heuristic"].run(sketch)
    agrees(program, sketch)
    return [line for line in sketch.program.text.splitlines() if " heap" not in line][3:]


def test_bias_and_activation_take_the_sums_from_the_registers():
    b = Builder("k")
    y = elementwise(b, "+", product(b, 96, 128, 128), b.input("c", "f32", (128,)))
    b.output("y", elementwise(b, "relu", y))
    assert lines(b.program()) == [
        "pw f32 [2:N, 128, 4, 16] stack",
        "acc f32 [2:N, 16:N, 6, 4, 16] register",
        "t2 f32 [96:N, 8:N, 16] register",
        "2:p 128 4:u 16:v pw[{0},{1},{2},{3}] = w[{1},{0}*64+{2}*16+{3}]",
        "| 16 6:u 4:u 16:v acc[{0},{1},{2},{3},{4}] = 0",
        "| | 128 6:u 4:u 16:v acc[{0},{1},{3},{4},{5}] += x[{1}*6+{3},{2}]*pw[{0},{2},{4},{5}]",
        "| | 6:u 4:u 16:v t2[{1}*6+{2},{0}*4+{3},{4}] = acc[{0},{1},{2},{3},{4}] + c[{0}*64+{3}*16+{4}]",
        "| | | | 16:v y[{1}*6+{2},{0}*64+{3}*16+{4}] = max(t2[{1}*6+{2},{0}*4+{3},{4}],0)",
    ]


def test_a_long_activation_goes_over_a_copy_of_the_tile():
    """Its code is written out for a row of vectors, not for all of the tile."""
    b = Builder("k")
    b.output("y", formula(b, "x * sigmoid(x)", x=product(b, 96, 128, 128)))
    assert lines(b.program())[-4:] == [
        "| | 128 6:u 4:u 16:v acc[{0},{1},{3},{4},{5}] += x[{1}*6+{3},{2}]*pw[{0},{2},{4},{5}]",
        "| | 6:u 4:u 16:v tt1[{0},{1},{2},{3}*16+{4}] = acc[{0},{1},{2},{3},{4}]",
        "| | 6 4:u 16:v t2[{1}*6+{2},{0}*4+{3},{4}] = sigmoid(tt1[{0},{1},{2},{3}*16+{4}])",
        "| | | | 16:v y[{1}*6+{2},{0}*64+{3}*16+{4}] = "
        "tt1[{0},{1},{2},{3}*16+{4}]*t2[{1}*6+{2},{0}*4+{3},{4}]",
    ]


def test_columns_that_no_tile_covers_take_their_part_of_what_follows():
    b = Builder("k")
    y = elementwise(b, "+", product(b, 40, 32, 88), b.input("r", "f32", (40, 88)))
    b.output("y", elementwise(b, "relu", y))
    found = lines(b.program())
    assert sum("acc" in line and "+ r[" in line for line in found) == 2, "each tile has its own"
    assert not any(line.startswith("t1 ") for line in found), "nothing is left of the product"


def test_what_makes_an_operand_is_done_while_it_is_packed():
    b = Builder("k")
    x, w = b.input("x", "f32", (96, 128)), b.input("w", "f32", (128, 128))
    b.output("y", contract(b, "mk,kn->mn", x, elementwise(b, "*", w, 0.5)))
    found = lines(b.program())
    assert "t1 f32 [128:N, 8:N, 16] register" in found
    assert "2:p 128 4:u 16:v t1[{1},{0}*4+{2},{3}] = w[{1},{0}*64+{2}*16+{3}]*0.5" in found


def test_a_turned_panel_is_copied_in_blocks_that_the_first_cache_holds():
    b = Builder("k")
    b.output("y", product(b, 96, 128, 176, turned=True))
    found = lines(b.program())
    assert "5 2 2 16 64 pw[{0},{1}*64+{4},{2},{3}] = w[{0}*32+{2}*16+{3},{1}*64+{4}]" in found
    assert "1 2 16 64 pw1[{0},{1}*64+{3},{2}] = w[{2}+160,{1}*64+{3}]" in found, "the columns left over too"


def test_a_product_of_bytes_is_scaled_where_an_instruction_sums_it():
    b = Builder("k")
    x, w = b.input("x", "u8", (64, 128)), b.input("w", "i8", (128, 64))
    y = convert(b, contract(b, "mk,kn->mn", x, w, dtype="i32"), "f32")
    b.output("y", elementwise(b, "*", y, b.input("s", "f32", (64,))))
    assert lines(b.program(), BYTES)[3:] == [
        "2:p 32 2 16 4:u pw[{0},{1},{2},{3},{4}] = w[{1}*4+{4},{0}*32+{2}*16+{3}]",
        "| 8 8:u 2:u 16:v acc[{0},{1},{2},{3},{4}] = 0",
        "| | 32 8:u 2:u 16:vpdpbusd 4 acc[{0},{1},{3},{4},{5}] += "
        "x[{1}*8+{3},{2}*4+{6}]*pw[{0},{2},{4},{5},{6}]",
        "| | 8:u 2:u 16:v t2[{1}*8+{2},{0}*2+{3},{4}] = f32(acc[{0},{1},{2},{3},{4}])",
        "| | | | 16:v y[{1}*8+{2},{0}*32+{3}*16+{4}] = t2[{1}*8+{2},{0}*2+{3},{4}]*s[{0}*32+{3}*16+{4}]",
    ]


@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_begins_with_its_bias_and_ends_with_its_activation(stride):
    b = Builder("k")
    x, w = b.input("x", "f32", (1, 4, 16, 32)), b.input("w", "f32", (8, 4, 3, 3))
    y = convolve(b, x, w, b.input("c", "f32", (8,)), [stride] * 2, pads=[(1, 1)] * 2)
    b.output("y", elementwise(b, "relu", y))
    found = lines(b.program())
    assert any(":v acc" in line and "= c[" in line for line in found)
    assert any(":v y" in line and "max(acc" in line for line in found)


def test_the_phases_of_a_transposed_convolution_are_tiles():
    b = Builder("k")
    x, w = b.input("x", "f32", (1, 4, 8, 16)), b.input("w", "f32", (4, 4, 4, 4))
    b.output("y", convolve_transposed(b, x, w, b.input("c", "f32", (4,)), strides=[2, 2], pads=[(1, 1)] * 2))
    found = lines(b.program())
    assert sum("acc" in line and "+=" in line for line in found) == 4
    assert all(":v acc" in line for line in found if "+=" in line)


@pytest.mark.parametrize("stride", [1, 2])
def test_windows_that_share_nothing_are_vector_code_to_their_last_columns(stride):
    """Depthwise convolutions and pooling: 24 and 12 columns, in vectors of 16 and 8, of 8 and 4."""
    b = Builder("k")
    x, w = b.input("x", "f32", (1, 4, 8, 24)), b.input("w", "f32", (4, 1, 3, 3))
    b.output("y", convolve(b, x, w, strides=[stride] * 2, pads=[(1, 1)] * 2, groups=4))
    b.output("z", pool(b, "max", x, [3, 3], [stride] * 2, pads=[(1, 1)] * 2))
    found = [line for line in lines(b.program()) if "+=" in line or "max=" in line]
    assert len(found) == 4 and all(":v" in line for line in found)


def test_what_follows_a_product_of_bf16_is_rounded_from_the_tile():
    target = replace(WIDE, vector_widths=WIDE.vector_widths | {"bf16": (16, 8, 4)})
    found = lines(kernels.get("matmul_bf16").program((12, 32, 64)), target)
    assert found[-1] == "| 6:u 4:u 16:v c[{0}*6+{1},{2}*16+{3}] = bf16(acc[{0},{1},{2},{3}])"


def test_a_write_that_meets_no_read_is_dead_though_another_write_follows():
    """What reads the other half does not see it."""
    program = parse(
        "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap\n"
        "4 t[{0}+4] = x[{0}+4]\n4 t[{0}] = x[{0}]\n| y[{0}] = x[{0}]\n4 y[{0}+4] = t[{0}+4]\n"
    )
    assert "4 t[{0}] = x[{0}]" not in apply(program, "drop_dead t#1").text
    assert "may be read" in str(why(program, "drop_dead t"))


def test_rows_that_no_tile_divides_are_cut_and_so_is_what_follows():
    b = Builder("k")
    b.output("y", elementwise(b, "relu", product(b, 67, 16, 256)))
    tiles = [line for line in lines(b.program()) if " += " in line]
    assert len(tiles) == 2 and all("16:v" in tile for tile in tiles)
    assert "x[{1}*6+{3},{2}]" in tiles[0] and "+66," in tiles[1]  # 66 rows in tiles of 6, and the last one


def test_one_padded_image_is_one_run_of_its_rows_without_a_copy():
    b = Builder("k")
    x, w = b.input("x", "f32", (1, 16, 7, 7)), b.input("w", "f32", (16, 16, 3, 3))
    b.output("y", elementwise(b, "relu", convolve(b, x, w, pads=[(1, 1)] * 2)))
    played = lines(b.program())
    (tile,) = [line for line in played if " += " in line]
    assert tile.count("16:v") == 1 and not any(line.startswith("wt") for line in played)


def test_strided_windows_whose_last_columns_are_one_panel():
    b = Builder("k")
    x, w = b.input("x", "f32", (1, 8, 152)), b.input("w", "f32", (8, 8, 3))
    b.output("y", convolve(b, x, w, strides=[2], pads=[(1, 1)]))
    assert any(" += " in line and "16:v" in line for line in lines(b.program()))


def test_long_functions_run_on_into_the_room_that_a_convolutions_rows_have():
    """Rows of 14 results lie 16 apart, behind a window of 3."""
    b = Builder("k")
    y = convolve(b, b.input("x", "f32", (2, 4, 16, 16)), b.input("w", "f32", (8, 4, 3, 3)))
    b.output("y", elementwise(b, "tanh", y))
    (computed,) = [line for line in lines(b.program()) if "tanh" in line]
    assert "16:v ty[" in computed


@pytest.mark.thorough  # with unit strides: below, above
def test_each_phase_of_a_strided_transposed_convolution_is_tiled():
    """One phase reads a copy with its rows merged: the others find the windows of the input as they were."""
    b = Builder("k")
    x, w = b.input("x", "f32", (2, 8, 6, 12)), b.input("w", "f32", (8, 16, 3, 3))
    b.output("y", convolve_transposed(b, x, w, strides=[2, 2]))
    sums = [line for line in lines(b.program()) if "+=" in line]
    assert len(sums) >= 4 and all(":v acc" in line for line in sums), "\n".join(sums)


def test_a_pass_that_may_make_few_moves_keeps_some_for_threads():
    b = Builder("k")
    b.output("y", elementwise(b, "relu", product(b, 512, 512, 512)))
    sketch = Sketch(context(b.program(), WIDE, "reassoc"), most=30)
    PASSES["heuristic"].run(sketch)
    assert len(sketch.moves) <= 30 and sketch.moves[-1].name == "parallelize"
