"""The heuristic pass on products that no panel suits: few rows, few results."""

from dojo_core.primitives import Builder, contract
from tests.test_passes_fusion import lines


def test_a_product_that_is_one_tile_is_summed_in_registers():
    b = Builder("k")
    b.output("y", contract(b, "mk,kn->mn", b.input("x", "f32", (4, 100)), b.input("w", "f32", (100, 18))))
    assert lines(b.program()) == [
        "acc f32 [1:N, 4, 16] register",
        "acc1 f32 [1:N, 4, 2] register",
        "1 4:u 16:v acc[{0},{1},{2}] = 0",
        "| 100 4:u 16:v acc[{0},{2},{3}] += x[{2},{1}]*w[{1},{3}]",
        "| 4:u 16:v y[{1},{2}] = acc[{0},{1},{2}]",
        "| 4:u 2:u acc1[{0},{1},{2}] = 0",
        "| 100 4:u 2:u acc1[{0},{2},{3}] += x[{2},{1}]*w[{1},{3}+16]",
        "| 4:u 2:u y[{1},{2}+16] = acc1[{0},{1},{2}]",
    ]


def test_a_few_rows_times_rows_are_summed_in_lanes_along_the_terms():
    b = Builder("k")
    b.output("y", contract(b, "mk,nk->mn", b.input("x", "f32", (8, 128)), b.input("w", "f32", (24, 128))))
    assert lines(b.program()) == [
        "qy f32 [4:N, 2:N, 4, 6, 16] register",
        "4:p 2 4 4:v y[{1}*4+{2},{0}*6+{3}] = 0",
        "| | | 2 y[{1}*4+{2},{0}*6+{3}+4] = 0",
        "| | 4:u 6:u 16:v qy[{0},{1},{2},{3},{4}] = 0",
        "| | 8 4:u 6:u 16:v qy[{0},{1},{3},{4},{5}] += x[{1}*4+{3},{2}*16+{5}]*w[{0}*6+{4},{2}*16+{5}]",
        "| | 4:u 6:u 16:v y[{1}*4+{2},{0}*6+{3}] += qy[{0},{1},{2},{3},{4}]",
    ]


def test_terms_and_columns_that_no_tile_takes_are_summed_apart():
    b = Builder("k")
    b.output("y", contract(b, "mk,nk->mn", b.input("x", "f32", (2, 67)), b.input("w", "f32", (9, 67))))
    assert lines(b.program()) == [
        "qy f32 [1:N, 2, 8, 16] register",
        "qy1 f32 [1:N, 2, 16] register",
        "acc f32 [2:N, 9:N] register",
        "1 2:u 8:u 16:v qy[{0},{1},{2},{3}] = 0",
        "| 4 2:u 8:u 16:v qy[{0},{2},{3},{4}] += x[{2},{1}*16+{4}]*w[{3},{1}*16+{4}]",
        "| 2 8:v y[{1},{2}] = 0",
        "| | y[{1},{0}+8] = 0",
        "| 2:u 8:u 16:v y[{1},{2}] += qy[{0},{1},{2},{3}]",
        "| 2:u 16:v qy1[{0},{1},{2}] = 0",
        "| 4 2:u 16:v qy1[{0},{2},{3}] += x[{2},{1}*16+{3}]*w[{0}+8,{1}*16+{3}]",
        "| 2:u 16:v y[{1},{0}+8] += qy1[{0},{1},{2}]",
        "2 9 acc[{0},{1}] = y[{0},{1}]",
        "| | 3:u acc[{0},{1}] += x[{0},{2}+64]*w[{1},{2}+64]",
        "| | y[{0},{1}] = acc[{0},{1}]",
    ]
