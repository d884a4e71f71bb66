"""The passes: they end, keep the meaning of any program, and make what they promise."""

import random
from dataclasses import replace

import numpy as np
import pytest

from agents.passes import PASSES, pass_moves, play_pass, tiles
from agents.passes.tiles import Tile, choose_tile
from dojo_core import kernels, legal_moves, parse
from dojo_core.faults import program_fault
from dojo_core.game import Game
from dojo_core.moves.legality import context
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.interpret import interpret
from dojo_core.program.marks import mark_fault
from dojo_core.program.tree import Program
from dojo_core.program.validity import storage_fault
from dojo_core.recipes import Sketch
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.processor import known
from tests import oracle
from tests.compiled import random_inputs
from tests.programs import SMALL, random_program
from tests.thorough import covering, group, one_of
from tests.tiny import TINY

# The limits of one machine, so that the texts below hold on all.
WIDE = replace(
    SMALL,
    name="wide",
    vector_widths={"f32": (16, 8, 4), "f64": (8, 4, 2), "i32": (16, 8, 4)},
    stack_bytes=1 << 20,
    register_cells=1024,
    unrolled_ops=2048,
    vector_registers=32,
)


def played(text: str, name: str = "heuristic", target=WIDE, policy: str = "reassoc") -> list[str]:
    """The lines of the program after a pass, without its head and interface."""
    sketch = Sketch(context(parse(text), target, policy), most=500)
    PASSES[name].run(sketch)
    lines = sketch.program.text.splitlines()
    return [line for line in lines if not line.startswith(("kernel", "in ", "out "))]


def game_of(kernel: str, shape: str, policy: str = "reassoc") -> Game:
    found = kernels.get(kernel)
    return Game.new(found.program(found.shape(shape)), kernel, policy=policy)


def test_naive_softmax_is_one_nest_with_a_number_for_each_row():
    game = game_of("softmax", "4x8")
    play_pass(game, "naive")
    assert game.current.program.text.splitlines()[3:] == [
        "x f32 [4, 8] heap",
        "y f32 [4, 8] heap",
        "m f32 [4:N] heap",
        "d f32 [4:N, 8:N] heap",
        "e f32 [4:N, 8] heap",
        "s f32 [4:N] heap",
        "4 m[{0}] = -inf",
        "| 8 m[{0}] max= x[{0},{1}]",
        "| 8 d[{0},{1}] = x[{0},{1}] - m[{0}]",
        "| | e[{0},{1}] = exp(d[{0},{1}])",
        "| s[{0}] = 0",
        "| 8 s[{0}] += e[{0},{1}]",
        "| 8 y[{0},{1}] = e[{0},{1}] / s[{0}]",
    ]


@pytest.mark.parametrize("kernel", ["softmax", "rmsnorm", "matmul"])
def test_naive_ends_where_nothing_of_its_kind_is_legal(kernel):
    game = game_of(kernel, "4x4x4" if kernel == "matmul" else "4x8")
    play_pass(game, "naive")
    assert not {m.name for m in legal_moves(game.current.program)} & {"join_scopes", "reuse_dims"}


def test_greedy_gives_a_row_to_vectors_and_rows_to_threads():
    assert played(
        "kernel k\nin x\nout y\nx f32 [4096, 64] heap\ny f32 [4096, 64] heap\nt f32 [4096, 64] heap\n"
        "4096 64 t[{0},{1}] = x[{0},{1}]*2\n4096 64 y[{0},{1}] = t[{0},{1}]*2\n",
        "greedy",
    ) == [
        "x f32 [4096, 64] heap",
        "y f32 [4096, 64] heap",
        "t f32 [4096:N, 64:N] register",
        "4096:p 64 t[{0},{1}] = x[{0},{1}]*2",
        "| | y[{0},{1}] = t[{0},{1}]*2",
    ]
    assert played(
        "kernel k\nin x\nout y\nx f32 [4096, 64] heap\ny f32 [4096, 64] heap\n"
        "4096 64 y[{0},{1}] = x[{0},{1}]*2\n",
        "greedy",
    )[2:] == ["4096:p 4:u 16:v y[{0},{1}*16+{2}] = x[{0},{1}*16+{2}]*2"]


def test_heuristic_sums_rows_in_lanes_and_keeps_values_in_registers():
    assert played(
        "kernel k\nin x\nout y\nx f32 [4096, 128] heap\ny f32 [4096, 128] heap\ns f32 [4096] heap\n"
        "4096 s[{0}] = 0\n| 128 s[{0}] += x[{0},{1}]\n4096 128 y[{0},{1}] = x[{0},{1}]*s[{0}]\n"
    )[2:] == [
        "s f32 [4096:N] register",
        "qs f32 [4096:N, 16] register",
        "os f32 [4096:N, 4, 16] register",
        "4096:p s[{0}] = 0",
        "| 16:v qs[{0},{1}] = 0",
        "| 4:u 16:v os[{0},{1},{2}] = 0",
        "| 2 4:u 16:v os[{0},{2},{3}] += x[{0},{1}*64+{2}*16+{3}]",
        "| 4:u 16:v qs[{0},{2}] += os[{0},{1},{2}]",
        "| 16:v s[{0}] += qs[{0},{1}]",
        "| 2 4:u 16:v y[{0},{1}*64+{2}*16+{3}] = x[{0},{1}*64+{2}*16+{3}]*s[{0}]",
    ]


def test_heuristic_goes_by_what_fits_the_last_cache_where_nests_go_over_the_same_data():
    """A channel of all images is summed, and used while it is there; all channels fit no cache."""
    lines = played(
        "kernel k\nin x\nout y\nx f32 [4, 64, 16384] heap\ny f32 [4, 64, 16384] heap\ns f32 [64] heap\n"
        "64 s[{0}] = 0\n| 4 16384 s[{0}] += x[{1},{0},{2}]\n"
        "4 64 16384 y[{0},{1},{2}] = x[{0},{1},{2}]*s[{1}]\n"
    )
    assert "s f32 [8:N, 8] stack" in lines and "8:p s[{0},0] = 0" in lines, "a thread's run of eight channels"
    used = "y[{2},{0}*8+{1},{3}*64+{4}*16+{5}] = x[{2},{0}*8+{1},{3}*64+{4}*16+{5}]*s[{0},{1}] !stream"
    assert f"| | | | 4:u 16:v {used}" in lines, "beside the sum of the next"


def test_heuristic_computes_again_rather_than_keeps_what_the_first_cache_has_no_room_for():
    """The centred row; the next row is asked for in halves where each row is gone over three times. (No run
    of rows divides them, so they are no pipeline.)"""

    def centred(columns: int) -> list[str]:
        return played(
            f"kernel k\nin x\nout y\nx f32 [4099, {columns}] heap\ny f32 [4099, {columns}] heap\n"
            f"u f32 [4099] heap\nv f32 [4099] heap\nd f32 [4099, {columns}] heap\n"
            f"4099 u[{{0}}] = 0\n| {columns} u[{{0}}] += x[{{0}},{{1}}]\n"
            f"4099 {columns} d[{{0}},{{1}}] = x[{{0}},{{1}}] - u[{{0}}]\n"
            f"4099 v[{{0}}] = 0\n| {columns} v[{{0}}] += d[{{0}},{{1}}]*d[{{0}},{{1}}]\n"
            f"4099 {columns} y[{{0}},{{1}}] = d[{{0}},{{1}}]*v[{{0}}]\n"
        )

    short, long = centred(1024), centred(4096)
    assert "d f32 [4099:N, 1024] stack" in short and not any("dr f32" in line for line in short)
    assert "d f32 [4099:N, 256:N, 16] register" in long and "dr f32 [4099:N, 256:N, 16] register" in long
    asked = [line[line.index("!") :] for line in long if "prefetch" in line]
    assert asked == ["!prefetch(x[{0}+1,{1}*64+{2}*16+{3}])"], (
        "where it is gone over the second time of three"
    )
    assert any("!prefetch(x[{0}+3," in line for line in short), "as far ahead in bytes"


def test_heuristic_computes_again_from_the_last_value_on():
    """Of a channel's squared differences no cache keeps all, nor, then, of the differences."""
    lines = played(
        "kernel k\nin x\nout v\nx f32 [64, 64, 4096] heap\nu f32 [64] heap\nv f32 [64] heap\n"
        "d f32 [64, 64, 4096] heap\ns f32 [64, 64, 4096] heap\n"
        "64 u[{0}] = 0\n| 64 4096 u[{0}] += x[{1},{0},{2}]\n"
        "64 64 4096 d[{0},{1},{2}] = x[{0},{1},{2}] - u[{1}]\n"
        "| | | s[{0},{1},{2}] = d[{0},{1},{2}]*d[{0},{1},{2}]\n"
        "64 v[{0}] = 0\n| 64 4096 v[{0}] += s[{1},{0},{2}]\n"
    )
    assert [line.split(" = ")[0] for line in lines if line.startswith("64")] == ["64:p u[{0}]"], lines


def test_rows_for_whose_values_the_stack_has_no_room_are_vectors():
    """Merged into one of 1640, as no vector divides 41; of what is computed again a vector is left."""
    lines = played(
        "kernel k\nin x\nout y\nx f32 [2, 40, 41] heap\ny f32 [2, 40, 41] heap\nt f32 [2, 40, 41] heap\n"
        "s f32 [2] heap\n2 40 41 t[{0},{1},{2}] = x[{0},{1},{2}]*x[{0},{1},{2}]\n"
        "2 s[{0}] = 0\n2 40 41 s[{0}] += t[{0},{1},{2}]\n"
        "2 40 41 y[{0},{1},{2}] = t[{0},{1},{2}] - s[{0}]\n",
        target=replace(WIDE, cache_bytes=4 << 10, stack_bytes=4 << 10),
    )
    assert "| | | 16:v y[{0},{1}*48+{2}*16+{3}] = tr1[{0},{1}*3+{2},{3}] - s[{0}]" in lines


def test_heuristic_packs_panels_and_tiles_a_product_in_registers():
    found = kernels.get("matmul")
    assert played(found.program((96, 128, 128)).text)[3:] == [
        "pb f32 [2:N, 128, 4, 16] stack",
        "acc f32 [2:N, 16:N, 6, 4, 16] register",
        "2:p 128 4:u 16:v pb[{0},{1},{2},{3}] = b[{1},{0}*64+{2}*16+{3}]",
        "| 16 6:u 4:u 16:v acc[{0},{1},{2},{3},{4}] = 0",
        "| | 128 6:u 4:u 16:v acc[{0},{1},{3},{4},{5}] += a[{1}*6+{3},{2}]*pb[{0},{2},{4},{5}]",
        "| | 6:u 4:u 16:v c[{1}*6+{2},{0}*64+{3}*16+{4}] = acc[{0},{1},{2},{3},{4}]",
    ]


def test_heuristic_goes_along_the_rows_of_a_matrix_that_only_one_row_is_multiplied_with():
    text = """kernel vecmat
in a, b
out c
a f32 [512] heap
b f32 [512, 8192] heap
c f32 [8192] heap
8192 c[{0}] = 0
8192 512 c[{0}] += a[{1}]*b[{1},{0}]
"""
    assert played(text)[-2:] == [
        "2:p 64 4:u 16:v c[{0}*4096+{1}*64+{2}*16+{3}] = 0",
        "| 512 64 4:u 16:v c[{0}*4096+{2}*64+{3}*16+{4}] += a[{1}]*b[{1},{0}*4096+{2}*64+{3}*16+{4}]",
    ]


def test_heuristic_cuts_a_long_sum_into_blocks_whose_panels_stay_in_the_cache():
    lines = played(kernels.get("matmul").program((64, 16384, 48)).text)
    assert lines[-6:] == [
        "16 1024:p 3:u 16:v pb[{0},{1},{2},{3}] = b[{0}*1024+{1},{2}*16+{3}]",
        "| 8:p 8:u 3:u 16:v acc[{0},{1},{2},{3},{4}] = c[{1}*8+{2},{3}*16+{4}]",
        "| | 2 8:u 3:u 16:v part[{0},{1},{2},{3},{4},{5}] = 0",  # its terms in parts (sums_in_parts.py)
        "| | | 512 8:u 3:u 16:v part[{0},{1},{2},{4},{5},{6}] += "
        "a[{1}*8+{4},{0}*1024+{2}*512+{3}]*pb[{0},{2}*512+{3},{5},{6}]",
        "| | | 8:u 3:u 16:v acc[{0},{1},{3},{4},{5}] += part[{0},{1},{2},{3},{4},{5}]",
        "| | 8:u 3:u 16:v c[{1}*8+{2},{3}*16+{4}] = acc[{0},{1},{2},{3},{4}]",
    ]


def test_heuristic_makes_one_run_of_the_short_rows_of_a_convolution():
    found = kernels.get("conv")
    lines = played(found.program((4, 8, 4, 18, 22, 3)).text)
    assert [line for line in lines if line.split()[0] in ("wx", "ty", "x")] == [
        "x f32 [4, 1584] heap",
        "wx f32 [4:N, 1586] stack",  # four channels, and room for what the last padded columns read
        "ty f32 [4:N, 8, 352] stack",  # 16 rows of 22, of which 20 columns are wanted
    ]


def conv2d(shape: tuple[int, ...]) -> list[str]:
    """The heuristic's program for a convolution: N, Cout, Cin, H, W, window, stride, padding."""
    return played(kernels.get("conv2d").program(shape).text)


def test_heuristic_gathers_what_a_strided_window_reads():
    assert conv2d((1, 8, 16, 16, 16, 3, 2, 1))[-4:] == [
        "| | 3 3 8 8:v gz[{0},{1},{2},{3},{4}*8+{5}] = z[{0},{1},{2}*18+{3}+{4}*36+{5}*2]",
        "| 2:p 8:u 2:u 16:v acc[{0},{1},{2},{3},{4}] = 0",
        "| | 16 3 3 8:u 2:u 16:v acc[{0},{1},{5},{6},{7}] += "
        "gz[{0},{2},{3},{4},{1}*32+{6}*16+{7}]*w[{5},{2},{3},{4}]",
        "| | 8:u 2:u 16:v y[{0},{2},{1}*32+{3}*16+{4}] = acc[{0},{1},{2},{3},{4}]",
    ]


def test_heuristic_gathers_long_rows_panel_by_panel():
    """A filter of one pixel leaves every other column out."""
    assert conv2d((1, 8, 16, 8, 128, 1, 2, 0))[-4:] == [
        "1 4:p 2 16 1 1 2:u 16:v gx[{0},{1},{2},{3},{4},{5},{6}*16+{7}] = "
        "x[{0},{3},{1}*2+{4},{2}*64+{5}+{6}*32+{7}*2]",
        "| | | 1 8:u 2:u 16:v acc[{0},{1},{2},{3},{4},{5},{6}] = 0",
        "| | | | 16 1:u 1:u 8:u 2:u 16:v acc[{0},{1},{2},{3},{7},{8},{9}] += "
        "gx[{0},{1},{2},{4},{5},{6},{8}*16+{9}]*w[{7},{4},{5},{6}]",
        "| | | | 8:u 2:u 16:v y[{0},{4},{1},{2}*32+{5}*16+{6}] = acc[{0},{1},{2},{3},{4},{5},{6}]",
    ]


def test_heuristic_sets_even_and_odd_columns_apart_for_long_rows_of_stride_2():
    """Each of the filter's seven columns reads a dense run; the last one has no partner."""
    assert conv2d((1, 8, 3, 128, 128, 7, 2, 3))[-7:] == [
        "3:p 133 2 4:u 16:v hz[0,{0},{1},{2},{3}*16+{4}] = z[0,{0},{1}*134+{2}+{3}*32+{4}*2]",
        "| | | 2 hz[0,{0},{1},{2},{3}+64] = z[0,{0},{1}*134+{2}+{3}*2+128]",
        "| | 1 hz[0,{0},{1},{2},66] = z[0,{0},{1}*134+{2}+132]",
        "1 64:p 2 8:u 2:u 16:v acc[{0},{1},{2},{3},{4},{5}] = 0",
        "| | | 3 7 3 2:u 8:u 2:u 16:v acc[{0},{1},{2},{7},{8},{9}] += "
        "hz[0,{3},{1}*2+{4},{6},{2}*32+{5}+{8}*16+{9}]*w[{7},{3},{4},{5}*2+{6}]",
        "| | | | | 8:u 2:u 16:v acc[{0},{1},{2},{5},{6},{7}] += "
        "hz[0,{3},{1}*2+{4},0,{2}*32+{6}*16+{7}+3]*w[{5},{3},{4},6]",
        "| | | 8:u 2:u 16:v y[{0},{3},{1},{2}*32+{4}*16+{5}] = acc[{0},{1},{2},{3},{4},{5}]",
    ]


def test_heuristic_sums_in_a_register_what_no_vector_takes():
    assert played(kernels.get("maxpool").program((1, 64, 43, 43, 3, 5)).text)[2:] == [
        "acc f32 [1:N, 64:N, 9:N, 9:N] register",
        "1 64:p 9 9 acc[{0},{1},{2},{3}] = -inf",
        "| | | | 3:u 3:u acc[{0},{1},{2},{3}] max= x[{0},{1},{2}*5+{4},{3}*5+{5}]",
        "| | | | y[{0},{1},{2},{3}] = acc[{0},{1},{2},{3}]",
    ]


def test_heuristic_makes_a_product_of_a_convolution_without_a_window():
    assert [line.split(" = ")[0] for line in conv2d((1, 8, 16, 14, 14, 1, 1, 0))[3:]] == [
        "acc f32 [1:N, 4:N, 8, 3, 16] register",
        "acc1 f32 [1:N, 8, 4] register",  # 196 columns: four times 48, and 4
        "1 4:p 8:u 3:u 16:v acc[{0},{1},{2},{3},{4}]",
        "| | 16 8:u 3:u 16:v acc[{0},{1},{3},{4},{5}] += x[{0},{2},{1}*48+{4}*16+{5}]*w[{3},{2},0,0]",
        "| | 8:u 3:u 16:v y[{0},{2},{1}*48+{3}*16+{4}]",
        "| 8:u 4:v acc1[{0},{1},{2}]",
        "| 16 8:u 4:v acc1[{0},{2},{3}] += x[{0},{1},{3}+192]*w[{2},{1},0,0]",
        "| 8:u 4:v y[{0},{1},{2}+192]",
    ]


@pytest.mark.parametrize("window", [(1, 1, 0), (1, 2, 0), (3, 1, 1), (3, 2, 1)])
def test_heuristic_leaves_no_sum_of_a_layer_to_single_numbers(window):
    """Images of 7 by 7, which no vector divides, are computed with room for whole vectors."""
    side = 7 * window[1]
    for line in conv2d((1, 8, 16, side, side, *window)):
        assert "+=" not in line or ":v" in line, line


@pytest.mark.parametrize(
    "shape",
    [
        (1, 8, 4, 14, 14, 3, 2, 1),
        (2, 8, 4, 7, 7, 1, 1, 0),
        (1, 4, 8, 14, 14, 1, 2, 0),
        (2, 4, 2, 4, 132, 3, 2, 1),
    ],
)
def test_heuristic_keeps_what_layers_compute(shape):
    start = kernels.get("conv2d").program(shape)
    sketch = Sketch(context(start, WIDE, "reassoc"), most=500)
    PASSES["heuristic"].run(sketch)
    assert any(":v" in line and "+=" in line for line in sketch.program.text.splitlines())
    agrees(start, sketch)


def test_heuristic_gives_a_long_sum_to_threads_in_parts():
    lines = played(
        "kernel k\nin x\nout s\nx f32 [1048576] heap\ns f32 [] heap\ns[] = 0\n1048576 s[] += x[{0}]\n"
    )
    assert "64:p ts[{0}] = 0" in lines
    assert "| 256 4:u 16:v ots[{0},{2},{3}] += x[{0}*16384+{1}*64+{2}*16+{3}]" in lines


def test_heuristic_gives_a_loss_over_a_matrix_to_threads_in_parts():
    """What is summed is computed part by part as well, so that no temporary leaves the registers."""
    lines = played(
        "kernel k\nin x, z\nout s\nx f32 [1024, 1024] heap\nz f32 [1024, 1024] heap\ns f32 [] heap\n"
        "t f32 [1024, 1024] heap\nu f32 [1024, 1024] heap\n"
        "1024 1024 t[{0},{1}] = x[{0},{1}] - z[{0},{1}]\n"
        "1024 1024 u[{0},{1}] = t[{0},{1}]*t[{0},{1}]\n"
        "s[] = 0\n1024 1024 s[] += u[{0},{1}]\n"
    )
    assert "u f32 [1024:N, 64:N, 16] register" in lines
    assert "64:p ts[{0}] = 0" in lines
    assert "| | | | 16:v ots[{0},{3},{4}] += u[{0}*16+{1},{2}*4+{3},{4}]" in lines


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_read_beside_a_sum_stays_with_it(threads):
    """In parts the sum alone would go to threads, and t through memory to the other that reads it."""
    lines = played(
        "kernel k\nin x\nout s, y\nx f32 [1024, 1024] heap\ny f32 [1024, 1024] heap\ns f32 [] heap\n"
        "t f32 [1024, 1024] heap\n"
        "1024 1024 t[{0},{1}] = x[{0},{1}]*2\n"
        "s[] = 0\n1024 1024 s[] += t[{0},{1}]\n"
        "1024 1024 y[{0},{1}] = t[{0},{1}] + 1\n",
        target=replace(WIDE, threads=threads),
    )
    assert any(line.startswith("64:p ts[") for line in lines) == (threads == 2)
    assert all(line.endswith("register") for line in lines if line.startswith(("t f32", "tr f32")))


def test_nothing_is_cut_where_no_sum_can_go_in_parts():
    """Rows that hang on each other: 4,096 steps of a recurrence."""
    lines = played(
        "kernel k\nin x\nout y\nx f32 [4096, 256] heap\ny f32 [4097, 256] heap\n256 y[0,{0}] = 0\n"
        "4096 256 y[{0}+1,{1}] = y[{0},{1}] + x[{0},{1}]\n"
    )
    assert any(line.startswith("4096 ") for line in lines)


def test_a_nest_is_joined_with_what_uses_its_results_before_others_of_its_size():
    """Eight rows of p are made for all of y: with t beside them, y would have to wait for all of t."""
    lines = played(
        "kernel k\nin x, w\nout y\nx f32 [8, 16] heap\nw f32 [8, 16] heap\ny f32 [8, 16] heap\n"
        "t f32 [8, 16] heap\np f32 [8, 16] heap\n"
        "8 16 t[{0},{1}] = x[{0},{1}]*2\n"
        "8 16 p[{0},{1}] = w[{0},{1}] + 1\n"
        "8 16 y[{0},{1}] = t[{0},{1}] + p[7,{1}]\n"
    )
    assert "t f32 [8:N, 16] register" in lines


def test_heuristic_cuts_off_what_no_vector_divides():
    assert played(
        "kernel k\nin x\nout s\nx f32 [64, 44] heap\ns f32 [64] heap\n"
        "64 s[{0}] = 0\n| 44 s[{0}] += x[{0},{1}]\n"
    )[1:] == [
        "s f32 [64] heap",
        "qs f32 [64:N, 16] register",
        "os f32 [64:N, 2, 16] register",
        "qs1 f32 [64:N, 8] register",
        "qs2 f32 [64:N, 4] register",
        "64:p s[{0}] = 0",
        "| 16:v qs[{0},{1}] = 0",
        "| 2:u 16:v os[{0},{1},{2}] = 0",
        "| 2:u 16:v os[{0},{1},{2}] += x[{0},{1}*16+{2}]",
        "| 2:u 16:v qs[{0},{2}] += os[{0},{1},{2}]",
        "| 16:v s[{0}] += qs[{0},{1}]",
        "| 8:v qs1[{0},{1}] = 0",
        "| 8:v qs1[{0},{1}] += x[{0},{1}+32]",
        "| 8:v s[{0}] += qs1[{0},{1}]",
        "| 4:v qs2[{0},{1}] = 0",
        "| 4:v qs2[{0},{1}] += x[{0},{1}+40]",
        "| 4:v s[{0}] += qs2[{0},{1}]",
    ]


def test_the_tile_fills_the_registers_and_divides_the_result():
    assert choose_tile(768, 1024, (16, 8, 4), 32, 128) == Tile(6, 4, 16)
    assert choose_tile(96, 2, (16, 8, 4), 32, 2) == Tile(16, 1, 2)  # no vector: sums side by side
    with pytest.raises(NoSuchPlace):
        choose_tile(96, 200, (), 32, 200)  # a type without vectors
    rows, vectors = choose_tile(96, 64, (8, 4), 16, 64).rows, choose_tile(96, 64, (8, 4), 16, 64).vectors
    assert rows * vectors + vectors + 1 <= 16


def test_a_copied_panel_of_short_vectors_is_read_for_fewer_rows():
    assert choose_tile(96, 96, (8, 4), 16, 96) == Tile(6, 2, 8)
    assert choose_tile(96, 96, (8, 4), 16, 96, packed=True) == Tile(4, 3, 8)
    assert choose_tile(96, 96, (16, 8), 32, 96, packed=True) == choose_tile(96, 96, (16, 8), 32, 96)


def test_rows_are_cut_off_where_the_panel_of_the_others_suits_them():
    whole = {packed: tiles.whole_rows(197, 384, (8, 4), 16, 384, packed) for packed in (False, True)}
    assert whole == {False: 192, True: 196}  # the last five have a tile of 2 vectors, the last one one of 3


def test_a_long_row_is_divided_by_looking_at_each_rest_once():
    tiles._cheapest.cache_clear()
    tiles.whole_rows(128, 4094, (16, 8, 4), 32, 4094)  # up to eight ways to go on at each rest
    assert tiles._cheapest.cache_info().misses < 200


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("seed", one_of(4, range(4)))
def test_a_pass_keeps_the_meaning_of_any_program(name, seed):
    rng = random.Random(seed)
    for _ in range(6):
        program = random_program(rng)
        terms, policy = oracle.Terms(), rng.choice(("reassoc", "strict"))
        sketch = Sketch(context(program, SMALL, policy), most=500)
        PASSES[name].run(sketch)
        result = sketch.program
        before, after = oracle.run(program, policy, terms), oracle.run(result, policy, terms)
        assert after.fault is None, f"{program.text}\n{result.text}"
        assert list(before.outputs.values()) == list(after.outputs.values()), f"{program.text}\n{result.text}"
        assert storage_fault(result) is None and mark_fault(result, SMALL, policy) is None


@pytest.mark.parametrize("kernel", covering(TINY, group))
def test_heuristic_keeps_what_each_kernel_computes(kernel):
    start = kernels.get(kernel).program(TINY[kernel])
    sketch = Sketch(context(start, SMALL, "algebraic"), most=500)
    PASSES["heuristic"].run(sketch)
    agrees(start, sketch)


def agrees(start: Program, sketch: Sketch) -> None:
    """The results of both, on one set of inputs."""
    inputs = random_inputs(start)
    wanted = interpret(start, inputs)
    homes = sketch.program.buffer_of  # a pass may see an input in other dimensions: no byte moves
    inputs = {name: value.reshape([d.size for d in homes[name].dims]) for name, value in inputs.items()}
    for name, found in interpret(sketch.program, inputs).items():
        assert np.allclose(found.ravel(), wanted[name].ravel(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", covering(kernels.names(), group))
def test_heuristic_makes_vectors_or_threads_of_every_kernel(kernel):
    found = kernels.get(kernel)
    game = Game.new(found.program(found.shapes[0]), kernel, policy="algebraic")
    assert play_pass(game, "heuristic")
    marks = {scope.mark for leaf in game.current.program.leaves for scope in leaf.scopes}
    assert marks & {"v", "p"}


def test_of_a_sockets_cache_a_virtual_machine_counts_its_share():
    socket = replace(known("x86-64-v4"), caches=(48 << 10, 2 << 20, 260 << 20))
    assert limits_of(replace(socket, threads=2)).shared_cache_bytes == 32 << 20
    assert limits_of(replace(socket, threads=56)).shared_cache_bytes == 260 << 20


def test_passes_play_on_large_programs_that_look_up_what_they_have_made():
    """No heuristic takes an index for affine; nothing goes through all cells."""
    text = (
        "kernel embed\nin w, i\nout y\nw f32 [32000, 1024] heap\ni i64 [2048] heap\na i64 [2048] heap\n"
        "b i64 [2048] heap\n"
        "t f32 [32000, 1024] heap\ny f32 [2048, 1024] heap\n32000 1024 t[{0},{1}] = w[{0},{1}]*2\n"
        "2048 a[{0}] = max(i[{0}],0)\n2048 b[{0}] = min(a[{0}],31999)\n2048 1024 y[{0},{1}] = t[b[{0}],{1}]\n"
    )
    assert program_fault(parse(text)) is None
    for name in ("naive", "heuristic"):
        assert pass_moves(Game.new(parse(text)), name)


def test_a_sum_whose_copy_has_a_level_more_than_what_sets_it_is_left_as_it_is():
    """A start that a person has played on: its nests share fewer scopes than tiles have."""
    game = game_of("gemm", "4x6x8", "strict")
    for move in (
        "interchange t#1@1", "wrap t@0 1", "wrap t#1@0 1", "join_scopes t@0", "stage_write t t@0 acc",
        "stage_read a acc#1@3 ap",
    ):  # fmt: skip
        game.play(move)
    assert play_pass(game, "heuristic")
    assert "ap[" in game.current.program.text


@pytest.mark.parametrize("name", ["naive", "greedy", "heuristic"])
def test_a_pass_plays_around_sums_that_are_scattered(name):
    """Their rows lie where an array says: no tiles, but lanes."""
    start = parse(
        "kernel p\nin x, w, i\nout y\ndomain i 0 7\nx f32 [32, 16] heap\nw f32 [16, 32] heap\n"
        "i i32 [32] heap\ny f32 [8, 32] heap\n"
        "8 32 y[{0},{1}] = 0\n32 16 32 y[i[{0}],{2}] += x[{0},{1}]*w[{1},{2}]\n"
    )
    sketch = Sketch(context(start, SMALL, "reassoc"), most=200)
    PASSES[name].run(sketch)
    inputs = random_inputs(start)
    np.testing.assert_allclose(
        interpret(sketch.program, inputs)["y"], interpret(start, inputs)["y"], rtol=1e-9, atol=1e-9
    )
    assert name == "naive" or "4:v y[i[{0}]," in sketch.program.text


def test_results_that_are_scattered_go_through_the_caches():
    """Where their rows lie is not known, nor whether stores are whole vectors."""
    start = parse(
        "kernel p\nin x, i\nout y\ndomain i 0 7\nx f32 [32, 16] heap\ni i32 [32] heap\ny f32 [128] heap\n"
        "128 y[{0}] = 0\n32 16 y[i[{0}]*16+{1}] = x[{0},{1}]\n"
    )
    sketch = Sketch(context(start, replace(SMALL, shared_cache_bytes=64), "reassoc"), most=200)
    PASSES["heuristic"].run(sketch)
    assert ["!stream" in line for line in sketch.program.text.splitlines()[-2:]] == [True, False]
