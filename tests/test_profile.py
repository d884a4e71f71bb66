"""Where the time of a program goes: timers in C, counts of machine code, what bounds a part.

How near the timers come to the whole, and that ten programs on this machine are named by what each was made
for, is for a clock that nobody else uses: ``python -m benchmarks.profiles``. Here its readings of a day are
named again.
"""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents.cli import app
from dojo_core import parse
from dojo_core.measure.measurement import Workload
from dojo_core.measure.profile import KINDS, NOT_EXPLAINED, Limit, Part
from dojo_core.measure.records import Records
from dojo_core.service import Service
from dojo_core.service.wiring import RecordStore
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.cpu.processor import X86, host
from dojo_core.targets.cpu.profile.blocks import counted, counting
from dojo_core.targets.cpu.profile.bounds import Work, accesses, limits, named
from dojo_core.targets.cpu.profile.pipeline import Pipeline
from dojo_core.targets.cpu.profile.rates import Level, Rates
from dojo_core.targets.cpu.profile.timers import read, with_timers
from dojo_core.targets.cpu.profile.tree import due, inherited, parted
from dojo_core.targets.cpu.traffic import traffic, traffic_by_operation
from dojo_core.targets.registry import backend
from tests.stand_ins import Bench, Kernels, Page

TWO = parse(
    """\
kernel two
in x
out y, z
x f32 [64, 8] heap
y f32 [64] heap
z f32 [64, 8] heap
64 y[{0}] = 0
| 8 y[{0}] += x[{0},{1}]
64 8 z[{0},{1}] = x[{0},{1}]*2
"""
)
needs_x86 = pytest.mark.skipif(host().instruction_set != X86, reason="pieces are counted on x86 alone")
READINGS = json.loads((Path(__file__).parent / "reported" / "profiles.json").read_text())
EVEN = Level(0.1, 0.2, 0.3, 0.4)
RATES = Rates(1.0, 1.0, 0.01, 0.02, 0.5, 1.0, 15.0, EVEN, EVEN, EVEN)


# ---------------------------------------------------------------------------- what bounds a part


@pytest.mark.parametrize("made_for", KINDS)
def test_a_program_made_to_be_bound_by_one_thing_is_named_by_it(made_for):
    reading = READINGS[made_for]
    found = [Limit(**limit) for limit in reading["limits"]]
    bound, explained = named(reading["seconds"], found, reading["together"])
    assert bound == made_for and explained > 0.5


@pytest.mark.parametrize("made_for", KINDS)
def test_without_the_limit_that_it_was_made_for_nothing_else_is_named_in_its_stead(made_for):
    """At three times what the other limits say, none of them explains it."""
    others = [Limit(**limit) for limit in READINGS[made_for]["limits"] if limit["kind"] != made_for]
    longest = max((limit.seconds for limit in others), default=1.0)
    assert named(3 * longest, others)[0] == NOT_EXPLAINED


def test_of_limits_that_are_alike_the_farthest_place_is_named():
    found = [Limit("instructions", 1.0, ""), Limit("ports", 1.0, ""), Limit("L2", 0.95, "")]
    assert named(1.1, found)[0] == "L2"
    assert named(1.1, found[:2])[0] == "ports"


def test_a_part_tells_what_the_program_would_gain_at_its_limit():
    def part(share, explained):
        return Part((0,), "8", share, share, "timer", "memory", explained, (Limit("memory", 1, "it"),), 0.0)

    assert part(0.5, 0.5).gain == pytest.approx(4 / 3) and "1.33× as fast" in part(0.5, 0.5).sentence
    assert part(1.0, 1.2).gain == part(0.5, 0.0).gain == 1.0 and "as fast" not in part(1.0, 1.2).sentence


def test_a_chain_is_a_limit_where_it_is_longer_than_what_the_ports_take():
    kinds = {limit.kind for limit in limits(Work(issue=10, ports=10, chain=11), RATES, "a model")}
    assert "latency" not in kinds
    [longest, *_] = limits(Work(issue=10, ports=10, chain=40), RATES, "a model")
    assert (longest.kind, longest.seconds) == ("latency", 40.0)


def test_what_goes_back_to_a_cache_costs_what_writing_was_measured_to():
    assert EVEN.seconds(into=30, out=10, together=False) == pytest.approx(20 * 0.1 + 20 * 0.2)
    assert EVEN.seconds(into=30, out=0, together=True) == pytest.approx(30 * 0.3)


def test_loads_and_stores_are_told_by_where_the_place_in_memory_stands():
    work = accesses(
        [
            "vmovups (%rcx,%rax), %zmm0",
            "vaddps 64(%rcx,%rax), %zmm1, %zmm0",
            "vmovups %zmm0, (%rdx,%rax)",
            "addl $1, 8(%rsp)",
            "cmpl $3, (%rdi)",
            "leaq 64(%rax), %rax",
        ]
    )
    assert (work.loads, work.load_bytes) == (4, 2 * 64 + 2 * 8)
    assert (work.stores, work.store_bytes) == (2, 64 + 8)


def test_traffic_by_operation_adds_up_to_all_traffic():
    moved = traffic_by_operation(TWO, 1024)
    assert sum(into + out for into, out in moved.values()) == traffic(TWO, 1024) > 0
    assert not traffic_by_operation(TWO, 1 << 20)
    assert traffic_by_operation(TWO, 8192, sets=4), "four sets of arrays do not fit where one does"


# ---------------------------------------------------------------------------- timers


def test_what_is_long_gets_a_timer_and_what_is_alone_its_scope_s_time():
    assert due(TWO, {(): 1.0}, 1) == [(0,), (1,)]
    known = inherited(TWO, {(): 1.0, (0,): 0.6, (1,): 0.4})
    assert known[1, 0] == known[1, 0, 0] == 0.4 and (0, 0) not in known
    assert due(TWO, known, 1) == [(0, 0), (0, 1)]
    assert due(TWO, inherited(TWO, {(): 1e-6, (0,): 6e-7, (1,): 4e-7}), 1) == []


def test_what_no_timer_tells_is_parted_by_weights():
    parts = parted(TWO, {(): 1.0, (0,): 0.6, (1,): 0.4}, {(0, 0): 1.0, (0, 1, 0): 3.0})
    assert parts[0, 0] == pytest.approx(0.15) and parts[0, 1] == parts[0, 1, 0] == pytest.approx(0.45)
    # of two nests that take fewer ticks than the clock tells, no timer says anything
    short = parted(TWO, {(): 1.0}, {(0, 0): 1.0, (0, 1, 0): 2.0, (1, 0, 0): 1.0})
    assert short[(0,)] == pytest.approx(3 * short[(1,)])


def test_a_reading_takes_off_what_timers_cost():
    timed = with_timers(generate(TWO), TWO, [(0,), (1,)], 2, X86)
    assert timed.numbers == timed.width
    numbers = [0] * timed.numbers
    # Two runs: the whole; 128 empty timers of 10 ticks by themselves, 20 to those around; the parts.
    numbers[:10] = [2 * 1000 + 2 * 10 + 4 * 20, 2, 1280, 128, 2560, 2, 2 * 610, 2, 2 * 410, 2]
    reading = read(timed, numbers, 2)
    assert reading.parts == {(0,): 600.0, (1,): 400.0} and reading.rounds[0,] == 1
    assert reading.whole == 1000.0


# ---------------------------------------------------------------------------- counts and a profile


@pytest.fixture(scope="module")
def measurer():
    with Measurer() as made:
        yield made


@needs_x86
def test_branches_that_go_both_ways_are_told_from_loops():
    """Of a loop over quotients, the branch on a divisor of zero goes both ways."""
    buffers = "".join(f"{name} i32 [64] heap\n" for name in "xdy")
    program = parse(f"kernel q\nin x, d\nout y\n{buffers}64 y[{{0}}] = x[{{0}}] / d[{{0}}]\n")
    made = counting(generate(program))
    loop = next(k for k, (_, last) in enumerate(made.pieces) if "test" in made.assembly.lines[last - 1])
    numbers = [64] * len(made.pieces)
    numbers[loop + 1] = 40  # the piece behind the branch, where the divisor is not zero
    pipeline = Pipeline(made, tuple(counted(made, numbers)), (), "", "")
    assert pipeline.flips(loop) == 24
    ends = [k for k, (_, last) in enumerate(made.pieces) if "cmp" in made.assembly.lines[last - 1]]
    assert all(pipeline.flips(k) == 0 for k in ends if k in pipeline._loops)


@needs_x86
def test_a_profile_tells_of_every_node_and_counts_each_piece_exactly(measurer):
    told = measurer.profile(Workload(TWO), TWO)
    assert [part.path for part in told.parts] == [(0,), (0, 0), (0, 1), (0, 1, 0), (1,), (1, 0), (1, 0, 0)]
    assert {part.path: part.text for part in told.parts}[1, 0, 0] == "z[{0},{1}] = x[{0},{1}]*2"
    assert sum(part.share for part in told.parts if len(part.path) == 1) > 0
    assert all(part.limits or not part.bound for part in told.parts if part.bound != NOT_EXPLAINED)
    assert {each.runs for each in told.hot} & {64}, "a loop of 64 goes round 64 times"
    if sys.platform == "linux":
        assert "page faults" in told.counters, "the system counts those, whatever the processor lets be read"
    assert told.data["agreement"] == told.parts_seconds / told.seconds > 0


def test_what_is_wrong_is_not_profiled(measurer):
    wrong = parse(TWO.text.replace("*2", "*3"))
    with pytest.raises(ValueError, match="It cannot be profiled"):
        measurer.profile(Workload(TWO), wrong)


def test_the_board_tells_of_a_position_where_that_is_asked_for(tmp_path):
    asked = []

    def profiled(analysis, workload, unwanted):
        asked.append(workload.start.hash)
        return {"parts": {}, "hot": [], "note": "told"}

    records, bench = RecordStore(Records(tmp_path / "records.sqlite")), Bench()
    service = Service(records, Kernels(), lambda: bench, profile=profiled)
    page = Page(service)
    page.start()
    assert page.board["game"]["profiled"] and not page.board["profiling"] and page.board["profile"] is None
    page.send("show", profile=True)
    page.until(lambda: page.board["profile"] is not None)
    assert page.board["profile"]["note"] == "told" and len(asked) == 1
    page.send("show", profile=False)
    assert page.board["profile"] is None
    service.close()


def test_a_target_without_a_clock_says_so():
    said = CliRunner().invoke(app, ["profile", "add:64x64", "--target", "snitch"])
    assert said.exit_code == 1 and "Nothing here measures programs for snitch" in said.output
    with backend("snitch").measurer() as model, pytest.raises(ValueError, match="Nothing here tells"):
        model.profile(Workload(TWO, target="snitch"), TWO)
