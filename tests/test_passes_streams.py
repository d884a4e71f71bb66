"""What the heuristic pass does for programs that memory binds: rows in pipelines, moments block by block, the
next product of a batch asked for. The caches are made small, so that small programs outgrow them."""

from dataclasses import replace

import pytest

from agents.passes import PASSES
from dojo_core import kernels
from dojo_core.moves.legality import context
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.recipes import Sketch
from tests.test_passes import WIDE, agrees

SMALL_CACHES = replace(
    WIDE, first_cache_bytes=6 << 10, cache_bytes=8 << 10, shared_cache_bytes=24 << 10, threads=2
)
SCALED = parse(
    "kernel k\nin x\nout y\nx f32 [32, 128] heap\ny f32 [32, 128] heap\ns f32 [32] heap\n"
    "32 s[{0}] = 0\n| 128 s[{0}] += x[{0},{1}]\n32 128 y[{0},{1}] = x[{0},{1}]*s[{0}]\n"
)


def played(program: Program, target=SMALL_CACHES, policy: str = "reassoc") -> list[str]:
    """What the pass makes of a program, checked to compute the same; without inputs and outputs."""
    sketch = Sketch(context(program, target, policy), most=1000)
    PASSES["heuristic"].run(sketch)
    agrees(program, sketch)
    return [line for line in sketch.program.text.splitlines() if " heap" not in line][3:]


def played_kernel(name: str, shape: str) -> list[str]:
    kernel = kernels.get(name)
    return played(kernel.program(kernel.shape(shape)), policy="algebraic")


def test_a_row_is_stored_while_the_next_one_is_summed():
    lines = played(SCALED)
    assert lines[:3] == [
        "s f32 [8:N, 4] stack",
        "qs f32 [32:N, 16] register",
        "os f32 [32:N, 4, 16] register",
    ]
    assert lines[3] == "8:p s[{0},0] = 0", "a thread's run of four rows"
    at = lines.index("| 3 s[{0},{1}+1] = 0")
    x, y = "x[{0}*4+{1}+1,{2}*64+{3}*16+{4}]", "y[{0}*4+{1},{2}*64+{3}*16+{4}]"
    assert lines[at + 3 : at + 7] == [
        f"| | 2 4:u 16:v os[{{0}}*4+{{1}}+1,{{3}},{{4}}] += {x} !prefetch({x[:-1]}+1536])",
        f"| | | 4:u 16:v {y} = {y.replace('y', 'x')}*s[{{0}},{{1}}] !stream",
        "| | 4:u 16:v qs[{0}*4+{1}+1,{3}] += os[{0}*4+{1}+1,{2},{3}]",
        "| | 16:v s[{0},{1}+1] += qs[{0}*4+{1}+1,{2}]",
    ]


def test_results_are_stored_past_the_caches_in_whole_lines_alone():
    """A tile of 3 vectors of 8 is a line and a half: the other half would be written much later."""
    product = parse(
        "kernel k\nin x, w\nout y\nx f32 [64, 16] heap\nw f32 [16, 96] heap\ny f32 [64, 96] heap\n"
        "64 96 y[{0},{1}] = 0\n64 96 16 y[{0},{1}] += x[{0},{2}]*w[{2},{1}]\n"
    )
    narrow = replace(
        SMALL_CACHES, vector_registers=16, vector_widths={"f32": (8, 4)}, instructions=frozenset()
    )
    for target, streamed in ((narrow, False), (SMALL_CACHES, True)):
        stores = [line for line in played(product, target) if "v y[" in line]
        assert stores and all(line.endswith("!stream") == streamed for line in stores), stores
    assert any(line.endswith("!stream") for line in played(SCALED, narrow)), "its rows are whole lines"


ONE_VECTOR = (
    "kernel k\nin a, x\nout y\na f32 [ROWS, 128] heap\nx f32 [128] heap\ny f32 [ROWS] heap\n"
    "ROWS y[{0}] = 0\nROWS 128 y[{0}] += a[{0},{1}]*x[{1}]\n"
)
TWO_VECTORS = (
    "kernel k\nin a, x\nout y\na f32 [32, 128] heap\nx f32 [2, 128] heap\ny f32 [2, 32] heap\n"
    "2 32 y[{0},{1}] = 0\n2 32 128 y[{0},{1}] += a[{1},{2}]*x[{0},{2}]\n"
)


@pytest.mark.parametrize(
    ("text", "side_by_side"),
    [
        (ONE_VECTOR.replace("ROWS", "32"), True),
        (ONE_VECTOR.replace("ROWS", "8"), False),
        (ONE_VECTOR.replace("ROWS", "30"), False),
        (TWO_VECTORS, False),
    ],
    ids=["in memory", "in a cache", "rows that four do not divide", "two vectors share it"],
)
def test_a_matrix_in_memory_meets_a_vector_in_rows_side_by_side(text, side_by_side):
    """They are streams enough: nothing further on is asked for."""
    tile = "| 8 4:u 16:v qy[{0},{2},{3}] += a[{0}*4+{2},{1}*16+{3}]*x[{1}*16+{3}]"
    assert (tile in played(parse(text))) == side_by_side


@pytest.mark.parametrize(
    "roomier", [{"shared_cache_bytes": 1 << 20}, {"threads": 9}], ids=["the last cache holds all", "few runs"]
)
def test_rows_are_gone_over_one_after_the_other_where_no_pipeline_pays(roomier):
    assert any(line.endswith(" s[{0}] = 0") for line in played(SCALED, replace(SMALL_CACHES, **roomier)))


def test_of_three_stages_the_first_is_two_rows_ahead_and_cheap_values_are_computed_again():
    lines = played_kernel("layernorm", "64x128")
    at = lines.index("| 6 u[{0},{1}+2] = 0")
    loop = lines[next(n for n in range(at, len(lines)) if lines[n].startswith("| | 2 4:u")) :][:7]
    assert [line.split("= ")[0].split()[-2 if "+=" in line else -1] for line in loop] == [
        "ou[{0}*8+{1}+2,{3},{4}]",
        "d[{0}*8+{1}+1,{2}*4+{3},{4}]",
        "ov[{0}*8+{1}+1,{3},{4}]",
        "dr[{0}*8+{1},{2}*4+{3},{4}]",
        "n[{0}*8+{1},{2}*4+{3},{4}]",
        "n[{0}*8+{1},{2}*4+{3},{4}]",
        "y[{0}*8+{1},{2}*64+{3}*16+{4}]",
    ]


@pytest.mark.parametrize("shape,block", [("4x2x16x64", 64), ("4x8x20x36", 240)])
def test_squares_are_summed_about_the_means_of_blocks_before_the_mean_of_all_is_known(shape, block):
    """A block is a row; where no vector divides rows, a part of an image."""
    lines = played_kernel("batchnorm", shape)
    at = next(n for n, line in enumerate(lines) if f"*{1 / block!r}" in line and "o1[" in line)
    assert " += x[" in lines[at - 1], "a block's sum and its mean in one loop"
    squares = next(n for n, line in enumerate(lines) if "+= oe[" in line and "*oe[" in line)
    assert at < squares < next(n for n, line in enumerate(lines) if "u[" in line and "*0.000" in line)


def test_the_next_product_of_a_batch_is_asked_for_a_line_for_each_block_of_terms():
    (total,) = (line for line in played_kernel("bmm", "4x64x64x64") if " acc" in line and "+=" in line)
    assert total.startswith("| | | 16 4 16:u 16:v acc["), "blocks of four terms"
    assert total.endswith(" !prefetch(a[{0}+1,{2}*16+{3},{1}*16]) !prefetch(b[{0}+1,{2}*16+{3},{1}*16])")


@pytest.mark.parametrize(("lanes", "asks"), [(16, True), (8, False)])
def test_a_stream_that_is_only_read_is_asked_for_where_a_vector_is_a_line(lanes: int, asks: bool):
    """Machines of shorter vectors find it by themselves."""
    target = replace(SMALL_CACHES, vector_widths={"f32": (lanes,)})
    kernel = kernels.get("reducemean")
    text = "\n".join(played(kernel.program((32, 256)), target))
    assert f"{lanes}:v" in text
    assert ("!prefetch(x[" in text) == asks


def test_a_loop_of_long_functions_asks_for_what_lies_a_page_ahead():
    """On a machine whose vectors are less than a line; a loop of short operations waits for memory alone."""
    narrow = replace(
        SMALL_CACHES, vector_registers=16, vector_widths={"f32": (8, 4)}, instructions=frozenset()
    )
    cases = ("exp", narrow, True), ("abs", narrow, False), ("exp", SMALL_CACHES, False)
    for function, target, asks in cases:
        program = parse(
            f"kernel k\nin x, b\nout y\nx f32 [64, 256] heap\nb f32 [256] heap\ny f32 [64, 256] heap\n"
            f"t f32 [64, 256] heap\n64 256 t[{{0}},{{1}}] = x[{{0}},{{1}}] + b[{{1}}]\n"
            f"64 256 y[{{0}},{{1}}] = {function}(t[{{0}},{{1}}])\n"
        )
        asked = [line for line in played(program, target) if "!prefetch(" in line]
        assert len(asked) == asks and all("!prefetch(x[" in line for line in asked), asked
