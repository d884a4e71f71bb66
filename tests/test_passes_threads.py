"""The heuristic pass gives scopes to threads: few times, each for a while."""

from dataclasses import replace

import pytest

from agents.passes import PASSES
from agents.passes.threads import share_work
from dojo_core import parse
from dojo_core.moves.legality import context
from dojo_core.program.tree import Program
from dojo_core.recipes import Sketch
from tests.test_passes import WIDE, agrees
from tests.test_passes_scattering import scattered

# An image's results, 7 KiB, have no room on the stack, and so all images have them in one place.
CROWDED = replace(WIDE, threads=2, stack_bytes=4 << 10)
IMAGES = (32, 4, 8, 8), (4, 16, 3, 4)


def played(start: Program, target) -> list[str]:
    sketch = Sketch(context(start, target, "reassoc"), most=500)
    PASSES["heuristic"].run(sketch)
    agrees(start, sketch)
    return sketch.program.text.splitlines()


def test_parts_of_a_scope_have_arrays_of_their_own_where_each_iteration_alone_is_little_to_share():
    """Four for a thread: else threads would begin and wait for each other in every image, for its rows."""
    found = played(scattered(*IMAGES), CROWDED)
    assert "tt1 f32 [8, 4:N, 110, 16] heap" in found
    assert [line for line in found if ":p" in line] == [
        "8:p 4 10:u 11:u 16:v tt1[{0},{1},{2}*11+{3},{4}] = 0"
    ]


@pytest.mark.parametrize(
    ("bytes_of_all", "parts"), [(8 * 7040, 8), (3 * 7040, 2)], ids=["as many as fit", "else the fewest"]
)
def test_arrays_of_parts_stay_in_the_last_cache(bytes_of_all, parts):
    found = played(scattered(*IMAGES), replace(CROWDED, shared_cache_bytes=bytes_of_all))
    assert f"tt1 f32 [{parts}, {32 // parts}:N, 110, 16] heap" in found


@pytest.mark.parametrize(("cache", "mark"), [(4 * 16384, "4:p 8"), (16384, "32")])
def test_parts_have_no_more_memory_than_the_cache_or_what_goes_in_and_out(cache, mark):
    """Of 256 bytes a row of 16 KiB is made, and a number of each row."""
    start = parse(
        "kernel k\nin x\nout y\nx f32 [32] heap\ny f32 [32] heap\nt f32 [32:N, 4096] heap\n"
        "32 4096 t[{0},{1}] = x[{0}]*{1}\n| y[{0}] = -inf\n| 4096 y[{0}] max= t[{0},{1}]\n"
    )
    sketch = Sketch(context(start, replace(CROWDED, shared_cache_bytes=cache), "reassoc"))
    share_work(sketch)
    agrees(start, sketch)
    assert sketch.program.text.splitlines()[6].startswith(f"{mark} 4096 t[")


@pytest.mark.parametrize(("columns", "shared"), [(8192, False), (32768, True)])
def test_threads_are_not_begun_in_each_step_for_a_microsecond(columns, shared):
    """Of a recurrence the steps come one after the other."""
    start = parse(
        f"kernel k\nin x\nout y\nx f32 [8, {columns}] heap\ny f32 [9, {columns}] heap\n"
        f"{columns} y[0,{{0}}] = 0\n8 {columns} y[{{0}}+1,{{1}}] = fma(y[{{0}},{{1}}],0.5,x[{{0}},{{1}}])\n"
    )
    found = [line for line in played(start, replace(WIDE, threads=2)) if line.startswith("8")]
    assert any(":p" in line for line in found) == shared, found
