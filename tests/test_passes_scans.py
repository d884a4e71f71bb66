"""Recurrences along rows, several rows in turn (agents/passes/scans.py)."""

from agents.passes.scans import recur_side_by_side
from dojo_core.moves.legality import context
from dojo_core.program.text import parse
from dojo_core.recipes import Sketch
from tests.test_passes import agrees
from tests.test_passes_channels import NARROW


def scanned(text: str) -> list[str]:
    """The body of a program after the pass's step, whose results are right."""
    start = parse("kernel k\n" + text)
    sketch = Sketch(context(start, NARROW, "reassoc"), most=500)
    recur_side_by_side(sketch)
    agrees(start, sketch)
    return [line for line in sketch.program.text.splitlines()[3:] if " f32 [" not in line]


def test_four_rows_take_turns():
    assert scanned(
        "in x\nout y\nx f32 [16, 9] heap\ny f32 [16, 9] heap\n"
        "16 y[{0},0] = x[{0},0]\n| 8 y[{0},{1}+1] = y[{0},{1}] + x[{0},{1}+1]\n"
    ) == [
        "4 4 y[{0}*4+{1},0] = x[{0}*4+{1},0]",
        "| 8 4:u y[{0}*4+{2},{1}+1] = y[{0}*4+{2},{1}] + x[{0}*4+{2},{1}+1]",
    ]


def test_what_else_a_step_does_goes_along_and_what_follows_stays_behind():
    """Three arrays: four rows of each would be too many places of a cache at once."""
    assert scanned(
        "in x, z\nout y, s\nx f32 [16, 9] heap\nz f32 [16, 9] heap\ny f32 [16, 9] heap\ns f32 [16] heap\n"
        "t f32 [16:N, 8:N] register\n"
        "16 y[{0},0] = x[{0},0]\n"
        "| 8 t[{0},{1}] = y[{0},{1}]*z[{0},{1}]\n"
        "| | y[{0},{1}+1] = t[{0},{1}] + x[{0},{1}+1]\n"
        "| s[{0}] = y[{0},8]\n"
    ) == [
        "8 2 y[{0}*2+{1},0] = x[{0}*2+{1},0]",
        "| 8 2:u t[{0}*2+{2},{1}] = y[{0}*2+{2},{1}]*z[{0}*2+{2},{1}]",
        "| | | y[{0}*2+{2},{1}+1] = t[{0}*2+{2},{1}] + x[{0}*2+{2},{1}+1]",
        "| 2 s[{0}*2+{1}] = y[{0}*2+{1},8]",
    ]


def test_rows_that_hang_on_each_other_stay_as_they_are():
    text = (
        "in x\nout y\nx f32 [16, 9] heap\ny f32 [17, 9] heap\n9 y[0,{0}] = 0\n"
        "16 y[{0}+1,0] = y[{0},8]\n| 8 y[{0}+1,{1}+1] = y[{0}+1,{1}] + x[{0},{1}+1]\n"
    )
    assert scanned(text) == text.splitlines()[4:]


def test_a_loop_that_is_no_recurrence_stays_as_it_is():
    text = "in x\nout y\nx f32 [16, 9] heap\ny f32 [16, 9] heap\n16 9 y[{0},{1}] = x[{0},{1}]\n"
    assert scanned(text) == text.splitlines()[4:]
