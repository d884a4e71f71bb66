"""The heuristic pass on products that no panel suits: few rows, few results."""

from dataclasses import replace

import pytest

from dojo_core.primitives import Array, Builder, contract, elementwise, reduce
from dojo_core.program.target import Target
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from tests.test_passes import WIDE
from tests.test_passes_channels import NARROW
from tests.test_passes_fusion import lines
from tests.thorough import one_of


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


SMALL = replace(WIDE, cache_bytes=32 << 10)


def attention(b: Builder, axis: int, keys: int = 32, queries: int = 64, width: int = 16) -> Array:
    """Two heads, the softmax along an axis of the scores."""
    q, k, v = (b.input(n, "f32", (2, size, width)) for n, size in (("q", queries), ("k", keys), ("v", keys)))
    scores = contract(b, "hmd,hnd->hmn", q, k)
    e = elementwise(b, "exp", elementwise(b, "-", scores, reduce(b, "max", scores, axis, keepdims=True)))
    p = elementwise(b, "/", e, reduce(b, "+", e, axis, keepdims=True))
    return contract(b, "hmn,hnd->hmd", p, v)


def buffers(program: Program, *names: str, target: Target = SMALL) -> list[str]:
    """Of the program that the pass makes."""
    return [line for line in lines(program, target) if line.split()[0] in names and line.split()[1] == "f32"]


def test_scores_of_attention_are_made_and_used_a_block_of_rows_at_a_time():
    b = Builder("k")
    b.output("y", attention(b, -1))
    assert buffers(b.program(), "pk", "pv", "t1", "t6") == [
        "pk f32 [2:N, 16, 2, 16] stack",
        "pv f32 [2:N, 32, 16] stack",
        "t1 f32 [2:N, 4:N, 16, 32] stack",
        "t6 f32 [2:N, 4:N, 16, 32] stack",
    ]


@pytest.mark.parametrize(
    ("length", "scores"),
    one_of(3, [(1536, "128:N, 12, 1536] stack"), (1024, "64:N, 16, 1024] stack"), (768, "")]),
)
def test_panels_that_only_the_shared_cache_keeps_ask_for_blocks_of_more_rows(length, scores):
    """Two panels of 384 KiB, beside a core's cache of 512 KiB. Of fewer queries the shared cache keeps the
    scores."""
    b = Builder("k")
    b.output("y", attention(b, -1, keys=length, queries=length, width=64))
    target = replace(NARROW, cache_bytes=512 << 10, shared_cache_bytes=32 << 20, threads=2)
    assert [
        line.removeprefix("t1 f32 [2:N, ") for line in lines(b.program(), target) if line[:3] == "t1 "
    ] == [scores][: bool(scores)]


def test_rows_of_a_block_begin_where_vectors_do_and_share_memory_for_which_the_stack_has_no_room():
    b = Builder("k")
    b.output("y", attention(b, -1, keys=40))
    small = replace(SMALL, stack_bytes=9 << 10)
    assert buffers(b.program(), "t1", "t6", target=small) == ["t1 f32 [2:N, 4:N, 16, 48] stack -> t6, t1"]


def test_scores_that_all_rows_have_a_part_in_are_kept():
    b = Builder("k")
    b.output("y", attention(b, 1))
    assert buffers(b.program(), "t1", "t2") == [
        "t1 f32 [2:N, 4, 16, 32] stack",
        "t2 f32 [2:N, 32] register",
    ]


def test_what_a_tiles_results_meet_is_asked_for_when_its_sums_begin():
    b = Builder("k")
    x, w, r = (b.input(n, "f32", size) for n, size in (("x", (96, 64)), ("w", (64, 96)), ("r", (96, 96))))
    b.output("y", elementwise(b, "+", contract(b, "mk,kn->mn", x, w), r))
    asked = [line for line in lines(b.program(), replace(WIDE, first_cache_bytes=32 << 10)) if "!" in line]
    assert asked == [
        "| 12 8:u 3:u 16:v acc[{0},{1},{2},{3},{4}] = 0 !prefetch(r[{1}*8+{2},{0}*48+{3}*16+{4}])"
    ]


def test_pieces_of_rows_that_lie_far_apart_are_asked_for_ahead():
    b = Builder("k")
    b.output("y", contract(b, "mk,kn->mn", b.input("x", "f32", (8, 64)), b.input("w", "f32", (64, 256))))
    asked = [line for line in lines(b.program(), replace(WIDE, first_cache_bytes=32 << 10)) if "!" in line]
    assert asked == [
        "| 64 8:u 2:u 16:v acc[{0},{2},{3},{4}] += x[{2},{1}]*w[{1},{0}*32+{3}*16+{4}] "
        "!prefetch(w[{1}+16,{0}*32+{3}*16+{4}])"
    ]


def test_rows_whose_terms_lie_far_apart_are_turned_for_all_tiles():
    b = Builder("k")
    b.output("y", contract(b, "km,kn->mn", b.input("x", "f32", (512, 256)), b.input("w", "f32", (512, 136))))
    assert [line for line in lines(b.program()) if " rx[" in line or "*rx[" in line] == [
        "4:p 512 64 rx[{0}*64+{2},{1}] = x[{1},{0}*64+{2}]",
        "| | 512 8:u 2:u 16:v acc[{0},{1},{3},{4},{5}] += rx[{1}*8+{3},{2}]*pw[{0},{2},{4},{5}]",
        "| 512 16:u 8:v acc1[{0},{2},{3}] += rx[{0}*16+{2},{1}]*w[{1},{3}+128]",
    ]
    small = Builder("k")
    x = small.input("x", "f32", (64, 64))
    small.output("y", contract(small, "km,kn->mn", x, small.input("w", "f32", (64, 128))))
    assert not any("rx" in line for line in lines(small.program()))


def product(rows: int, terms: int, columns: int, cache: int, target: Target = WIDE) -> list[str]:
    b = Builder("k")
    x, w = b.input("x", "f32", (rows, terms)), b.input("w", "f32", (terms, columns))
    b.output("y", contract(b, "mk,kn->mn", x, w))
    return [line for line in lines(b.program(), replace(target, cache_bytes=cache)) if "register" not in line]


def test_rows_that_outgrow_the_cache_go_by_once_where_it_keeps_all_panels():
    assert product(1024, 32, 64, cache=32 << 10) == [
        "2 32 2:u 16:v pw[{0},{1},{2},{3}] = w[{1},{0}*32+{2}*16+{3}]",
        "16:p 2 8 8:u 2:u 16:v acc[{1},{0}*8+{2},{3},{4},{5}] = 0",
        "| | | 32 8:u 2:u 16:v acc[{1},{0}*8+{2},{4},{5},{6}] += x[{0}*64+{2}*8+{4},{3}]*pw[{1},{3},{5},{6}]",
        "| | | 8:u 2:u 16:v y[{0}*64+{2}*8+{3},{1}*32+{4}*16+{5}] = acc[{1},{0}*8+{2},{3},{4},{5}] !stream",
    ]


def test_else_a_block_of_rows_stays_while_all_panels_go_by_if_it_has_many_tiles():
    assert [line for line in product(2048, 32, 288, cache=128 << 10) if "acc" in line][:1] == [
        "8:p 6 32 8:u 3:u 16:v acc[{1},{0}*32+{2},{3},{4},{5}] = 0",
    ]
    assert [line for line in product(2048, 48, 288, cache=128 << 10) if "acc" in line][:1] == [
        "16:p 6 16 8:u 3:u 16:v acc[{1},{0}*16+{2},{3},{4},{5}] = 0",
    ]
    assert [line for line in product(2048, 96, 288, cache=128 << 10) if "acc" in line][:1] == [
        "| 256 8:u 3:u 16:v acc[{0},{1},{2},{3},{4}] = 0",  # few tiles do not make up for distant panels
    ]


def test_columns_that_are_cut_off_have_a_panel_and_blocks_of_terms_of_their_own():
    found = product(64, 4096, 136, cache=256 << 10)
    assert [line for line in found if "acc1[" in line or "] = w[" in line or "pw1[" in line] == [
        "16 4 256 2:u 16:v pw[{0},{1},{2},{3},{4}] = w[{0}*256+{2},{1}*32+{3}*16+{4}]",
        "4 1024 8:v pw1[{0},{1},{2}] = w[{0}*1024+{1},{2}+128]",
        "| 4:p 16:u 8:v acc1[{0},{1},{2},{3}] = y[{1}*2176+{2}*136+{3}+128]",
        "| | | 512 16:u 8:v part[{0},{1},{2},{4},{5}] += "
        "x[{1}*16+{4},{0}*1024+{2}*512+{3}]*pw1[{0},{2}*512+{3},{5}]",
        "| | | 16:u 8:v acc1[{0},{1},{3},{4}] += part[{0},{1},{2},{3},{4}]",
        "| | 16:u 8:v y[{1}*2176+{2}*136+{3}+128] = acc1[{0},{1},{2},{3}]",
    ]


def test_rows_that_no_tile_divides_read_the_panels_that_are_packed_for_the_others():
    found = product(101, 96, 136, cache=1 << 20)
    assert [line for line in found if "] = w[" in line or "] += " in line] == [
        "| 96 16:u 8:v acc3[{0},{2},{3}] += x[{0}*16+{2},{1}]*w[{1},{3}+128]",
        "2:p 96 4:u 16:v pw[{0},{1},{2},{3}] = w[{1},{0}*64+{2}*16+{3}]",
        "| | 96 6:u 4:u 16:v acc[{0},{1},{3},{4},{5}] += x[{1}*6+{3},{2}]*pw[{0},{2},{4},{5}]",
        "| 96 5:u 4:u 16:v acc1[{0},{2},{3},{4}] += x[{2}+96,{1}]*pw[{0},{1},{3},{4}]",
        "| 96 5:u 8:v acc2[{0},{2},{3}] += x[{2}+96,{1}]*w[{1},{3}+128]",
    ]


@pytest.mark.parametrize(
    ("target", "tile"), [(NARROW, "| | 512 4:u 3:u 8:v"), (WIDE, "| | | 128 8:u 3:u 16:v")]
)
def test_panels_of_short_vectors_may_be_longer(target, tile):
    found = product(48, 512, 96, cache=160 << 10, target=target)
    assert [line.split(" acc")[0] for line in found if "] += " in line] == [tile]


def test_few_rows_get_tiles_for_panels_where_they_lie():
    """Three tiles of 4 by 3 would pay no packing; then 6 by 2 are faster."""
    (sums,) = [line for line in product(12, 96, 96, 1 << 20, NARROW) if "] += " in line]
    assert "6:u 2:u 8:v acc" in sums and "*w[" in sums, sums


def rows_of(x: str, w: str, *nests: str) -> list[str]:
    """The pass on nests that make ``y``, 192 rows by 64 columns, of ``x`` and ``w`` of these sizes."""
    arrays = f"x f32 [{x}] heap\nw f32 [{w}] heap\ny f32 [192, 64] heap"
    return lines(parse("\n".join(["kernel k", "in x, w", "out y", arrays, *nests, ""])))


TILED = [
    "32:p 6:u 4:u 16:v acc[{0},{1},{2},{3}] = 0",
    "| 32 6:u 4:u 16:v acc[{0},{2},{3},{4}] += rx[{0}*6+{2},{1}]*pw[{1},{3},{4}]",
    "| 6:u 4:u 16:v y[{0}*6+{1},{2}*16+{3}] = acc[{0},{1},{2},{3}]",
]


def test_rows_of_windows_are_copied_in_the_order_of_the_results():
    assert rows_of(
        "2, 8, 3, 4, 32",
        "32, 64",
        "2 3 8 4 64 y[{0}*96+{1}*32+{2}*4+{3},{4}] = 0",
        "2 3 8 4 64 32 y[{0}*96+{1}*32+{2}*4+{3},{4}] += x[{0},{2},{1},{3},{5}]*w[{5},{4}]",
    )[-4:] == [
        "2:p 3 8 4 2:u 16:v rx[{0}*96+{1}*32+{2}*4+{3},{4}*16+{5}] = x[{0},{2},{1},{3},{4}*16+{5}]",
        *TILED,
    ]


def test_rows_from_the_last_to_the_first_are_copied_in_the_order_of_the_results():
    assert rows_of(
        "16, 12, 32",
        "32, 64",
        "16 12 64 y[{0}*12+{1},{2}] = 0",
        "16 12 64 32 y[{0}*12+{1},{2}] += x[-{0}+15,{1},{3}]*w[{3},{2}]",
    )[-4:] == ["16:p 12 2:u 16:v rx[{0}*12+{1},{2}*16+{3}] = x[-{0}+15,{1},{2}*16+{3}]", *TILED]


def test_rows_that_lie_in_order_are_read_where_they_are():
    assert rows_of(
        "192, 32",
        "32, 64",
        "16 12 64 y[{0}*12+{1},{2}] = 0",
        "16 12 64 32 y[{0}*12+{1},{2}] += x[{0}*12+{1},{3}]*w[{3},{2}]",
    )[-3:] == [line.replace("rx", "x") for line in TILED]


def test_rows_that_are_enough_for_tiles_are_read_where_they_are():
    found = rows_of(
        "3, 64, 32",
        "32, 64",
        "3 64 64 y[{0}*64+{1},{2}] = 0",
        "3 64 64 32 y[{0}*64+{1},{2}] += x[-{0}+2,{1},{3}]*w[{3},{2}]",
    )
    assert not any("rx" in line for line in found)
    assert any(line.endswith("x[-{0}+2,{2}*8+{4},{3}]*pw[{0},{1},{3},{5},{6}]") for line in found)


def test_tiles_are_made_of_rows_that_are_neighbours():
    assert rows_of(
        "16, 12, 32",
        "16, 32, 64",
        "16 12 64 y[{0}*12+{1},{2}] = 0",
        "16 12 64 32 y[{0}*12+{1},{2}] += x[{0},{1},{3}]*w[{0},{3},{2}]",
    )[-3:] == [
        "16:p 2 6:u 4:u 16:v acc[{0},{1},{2},{3},{4}] = 0",
        "| | 32 6:u 4:u 16:v acc[{0},{1},{3},{4},{5}] += x[{0},{1}*6+{3},{2}]*w[{0},{2},{4}*16+{5}]",
        "| | 6:u 4:u 16:v y[{0}*12+{1}*6+{2},{3}*16+{4}] = acc[{0},{1},{2},{3},{4}]",
    ]


def test_rows_that_are_windows_which_overlap_are_not_copied():
    found = rows_of(
        "18, 14, 32",
        "3, 3, 32, 64",
        "16 12 64 y[{0}*12+{1},{2}] = 0",
        "16 12 64 3 3 32 y[{0}*12+{1},{2}] += x[{0}+{3},{1}+{4},{5}]*w[{3},{4},{5},{2}]",
    )
    assert not any("rx" in line for line in found)
