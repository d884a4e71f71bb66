"""Sums over windows that lie side by side, by whole rows of windows (agents/passes/pools.py)."""

from agents.passes.pools import add_rows_of_windows
from dojo_core.moves.legality import context
from dojo_core.program.text import parse
from dojo_core.recipes import Sketch
from tests.test_passes import agrees
from tests.test_passes_channels import NARROW


def pooled(width: int, columns: int, accumulate: str = "+=") -> list[str]:
    """The lines after the pass's step of a pool over windows of 3 rows, whose results are right."""
    start = parse(
        f"kernel k\nin x\nout y\nx f32 [2, 9, {width * columns + 2}] heap\ny f32 [2, 3, {columns}] heap\n"
        f"2 3 {columns} y[{{0}},{{1}},{{2}}] = {'0' if accumulate == '+=' else '-inf'}\n"
        f"| | | 3 {width} y[{{0}},{{1}},{{2}}] {accumulate} x[{{0}},{{1}}*3+{{3}},{{2}}*{width}+{{4}}]\n"
    )
    sketch = Sketch(context(start, NARROW, "reassoc"), most=500)
    add_rows_of_windows(sketch, start.leaves[1].op.provenance)
    agrees(start, sketch)
    return sketch.program.text.splitlines()[5:]


def test_rows_of_windows_are_added_up_as_one_run():
    """Seven columns are no vector, six windows of them are five vectors and some."""
    assert pooled(7, 6) == [
        "qy f32 [2:N, 3:N, 42] stack",
        "2 3 6 y[{0},{1},{2}] = 0",
        "2 3 42 qy[{0},{1},{2}] = 0",
        "| | 3 42 qy[{0},{1},{3}] += x[{0},{1}*3+{2},{3}]",
        "| | 6 7 y[{0},{1},{2}] += qy[{0},{1},{2}*7+{3}]",
    ]


def test_so_are_the_largest_of_windows_found():
    assert "| | 3 42 qy[{0},{1},{3}] max= x[{0},{1}*3+{2},{3}]" in pooled(7, 6, "max=")


def test_vectors_along_the_windows_take_narrow_ones_as_they_are():
    assert not any(line.startswith("qy ") for line in pooled(2, 21))


def test_a_short_row_of_windows_stays_as_it_is():
    assert not any(line.startswith("qy ") for line in pooled(16, 2))


def test_a_single_window_stays_a_sum_of_rows():
    assert not any(line.startswith("qy ") for line in pooled(42, 1))
