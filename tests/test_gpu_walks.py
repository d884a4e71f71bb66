"""On a GPU target too a legal move never changes what a program computes: random GPU programs and walks.

The oracle runs every thread with registers of its own and knows which iterations have no order.
"""

import random

import pytest

from dojo_core import parse
from dojo_core.program.marks import mark_fault
from dojo_core.program.validity import storage_fault
from tests import oracle, walks
from tests.gpu import TINY, mapped, moved, variants
from tests.programs import random_program
from tests.thorough import one_of


# The first moves of each walk in make test, all of it in make soak.
# The suite plays a walk of six moves of each second seed; make soak the others, and longer ones.
@pytest.mark.parametrize("length", [6, pytest.param(12, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "seed", one_of(3, (pytest.param(s, marks=pytest.mark.soak if s in (0, 2, 5) else ()) for s in range(6)))
)
def test_a_random_walk_on_a_gpu_keeps_the_meaning(seed, length):
    rng = random.Random(f"gpu {seed}")
    program, rules = walks.start_on_a_gpu(rng)
    _, finding = walks.walk_from(program, rules, rng, walks.Tally(), length, 3, compared=4)
    assert finding is None, str(finding)


@pytest.mark.parametrize("drawn", [10, pytest.param(40, marks=pytest.mark.soak)])
def test_what_v2_and_v3_accept_on_a_gpu_the_oracle_accepts(drawn):
    """Marks, locations and ``:N`` at random: most are refused, and none is accepted wrongly."""
    rng = random.Random("gpu 3")  # threads get storage of their own early: with another, after a hundred
    programs = accepted = threads = 0
    while programs < drawn or accepted <= 40 or threads <= 10:
        programs += 1
        assert programs < 10 * drawn, (accepted, threads)
        program = random_program(rng)
        while program.tables:  # which GPU targets have not
            program = random_program(rng)
        after = mapped(program, rng, "reassoc", 5)
        for variant in (*variants(program, rng, 20), *moved(after, rng, 40)):
            if storage_fault(variant) or mark_fault(variant, TINY, "reassoc"):
                continue
            accepted += 1
            threads += any(b.location in ("local", "stack", "shared") for b in variant.buffers)
            fault = oracle.run(variant).fault
            assert fault is None, f"{fault}\n{variant.text}"


WARPS = """kernel softmax
in x
out y
x f32 [4, 32] heap
v f32 [2:N, 2:N, 4, 2, 4] local -> v, d, e
p f32 [2:N, 2:N, 4] local
m f32 [2:N, 2:N] local
q f32 [2:N, 2:N, 4] local
s f32 [2:N, 2:N] local
r f32 [2:N, 2:N] local
y f32 [4, 32] heap
2:g 2:b 4:w 2:u 4:v v[{0},{1},{2},{3},{4}] = x[{0}*2+{1},{3}*16+{2}*4+{4}]
| | | p[{0},{1},{2}] = -inf
| | | 2:u 4:u p[{0},{1},{2}] max= v[{0},{1},{2},{3},{4}]
| | m[{0},{1}] = -inf
| | 4:w m[{0},{1}] max= p[{0},{1},{2}]
| | 4:w q[{0},{1},{2}] = 0
| | | 2:u 4:u d[{0},{1},{2},{3},{4}] = v[{0},{1},{2},{3},{4}] - m[{0},{1}]
| | | | | e[{0},{1},{2},{3},{4}] = exp(d[{0},{1},{2},{3},{4}])
| | | | | q[{0},{1},{2}] += e[{0},{1},{2},{3},{4}]
| | s[{0},{1}] = 0
| | 4:w s[{0},{1}] += q[{0},{1},{2}]
| | r[{0},{1}] = 1/s[{0},{1}]
| | 4:w 2:u 4:v y[{0}*2+{1},{3}*16+{2}*4+{4}] = e[{0},{1},{2},{3},{4}]*r[{0},{1}]
"""


def test_a_warp_for_each_row_is_valid():
    program = parse(WARPS)
    assert storage_fault(program) is None and mark_fault(program, TINY, "reassoc") is None
    seen = oracle.run(program)
    assert seen.fault is None and seen.defined


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("p f32 [2:N, 2:N, 4] local", "p f32 [2:N, 2:N, 4:N] local"), None),  # each lane has its own anyway
        (("q f32 [2:N, 2:N, 4] local", "q f32 [2:N, 2:N, 4:N] shared"), "race"),
        (("m f32 [2:N, 2:N] local", "m f32 [2:N, 2:N] shared"), "race"),
        (("| | m[{0},{1}] = -inf", "| | 4:w m[{0},{1}] = -inf"), "clobber"),
    ],
)
def test_the_oracle_sees_what_is_wrong_with_threads(change, fault):
    found = oracle.run(parse(WARPS.replace(*change))).fault
    assert (found and found.split()[0]) == fault
