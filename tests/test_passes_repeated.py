"""Matrices that a recurrence reads at every step (agents/passes/repeated.py)."""

from dataclasses import replace

from agents.passes import PASSES
from dojo_core.moves.legality import context
from dojo_core.program.text import parse
from dojo_core.recipes import Sketch
from tests.test_passes import agrees
from tests.test_passes_channels import NARROW

SMALL = replace(
    NARROW, cache_bytes=1 << 16
)  # of which the matrices below, of 32 KB, take more than an eighth


def passed(steps: int, more: str = "") -> list[str]:
    """The lines of a program that read the weights ``w``, after the pass; its results are right."""
    start = parse(
        f"kernel k\nin h, w\nout y\nh f32 [32] heap\nw f32 [32, 256] heap\ny f32 [{steps + 1}, 32] heap\n"
        "t f32 [256] heap\n"
        f"32 y[0,{{0}}] = h[{{0}}]\n{steps} 256 t[{{1}}] = 0\n"
        "| 256 32 t[{1}] += y[{0},{2}]*w[{2},{1}]\n"
        f"{more}| 32 y[{{0}}+1,{{1}}] = t[{{1}}]*0.01\n"
    )
    sketch = Sketch(context(start, SMALL, "reassoc"), most=1000)
    PASSES["heuristic"].run(sketch)
    agrees(start, sketch)
    return [line for line in sketch.program.text.splitlines() if "w[" in line]


def test_weights_that_each_step_reads_are_copied_tile_by_tile_once():
    copy, use = passed(steps=16)
    assert copy.startswith("8:p 32 ") and " pw[{0},{1},{2}*8+{3}] = w[{1},{0}*32+{2}*8+{3}]" in copy
    assert use.startswith("| ") and use.endswith("*pw[{1},{2},{3}*8+{4}]")


def test_blocks_of_its_terms_are_read_tile_by_tile_too():
    """Two rows of a state, whose weights outgrow the cache."""
    start = parse(
        "kernel k\nin h, w\nout y\nh f32 [2, 64] heap\nw f32 [64, 256] heap\ny f32 [17, 2, 64] heap\n"
        "t f32 [2, 256] heap\n2 64 y[0,{0},{1}] = h[{0},{1}]\n16 2 256 t[{1},{2}] = 0\n"
        "| 2 256 64 t[{1},{2}] += y[{0},{1},{3}]*w[{3},{2}]\n"
        "| 2 64 y[{0}+1,{1},{2}] = t[{1},{2}]*0.01\n"
    )
    sketch = Sketch(context(start, replace(SMALL, cache_bytes=1 << 15), "reassoc"), most=1000)
    PASSES["heuristic"].run(sketch)
    agrees(start, sketch)
    (use,) = [line for line in sketch.program.text.splitlines() if "*pw[" in line]
    assert use.startswith("| ") and "] += y[" in use


def test_what_few_steps_read_stays_where_it_is():
    (use,) = passed(steps=4)
    assert "pw[" not in use


def test_what_others_read_in_another_order_stays_where_it_is():
    both = passed(steps=16, more="| 256 t[{1}] += w[{0},{1}]\n")
    assert not any("pw[" in line for line in both)
