"""Searches over lines: where they begin, the pass for other machines, edits that keep what belongs together,
and times on one scale."""

import random
from dataclasses import replace

import pytest

from agents.agent import Task
from agents.passes import pass_moves
from agents.search.neighbours import _renumber, edit
from agents.search.restarts import Machine, Restarts, recorded
from agents.timing import MeasurerTiming, timed
from agents.trail import Trail
from dojo_core import kernels, parse
from dojo_core.game import Game
from dojo_core.line import line_for
from dojo_core.measure.clock import TargetMeasurer
from dojo_core.measure.job import Job
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.moves.notation import parse_move
from dojo_core.program.tree import Program
from dojo_core.targets.registry import target
from tests import oracle
from tests.thorough import one_of


def game(kernel: str, shape: tuple[int, ...], on: str = "cpu") -> Game:
    return Game.new(kernels.get(kernel).program(shape), kernel, "x".join(map(str, shape)), on)


# ---------------------------------------------------------------------------- where it begins


def test_a_search_begins_with_the_pass_and_the_recorded_lines():
    begun = game("reducemean", (64, 256))
    start = [trail.program.hash for trail in Restarts(Task(begun)).start()]
    line = line_for("reducemean", "64x256")
    line.play(replayed := game("reducemean", (64, 256)))
    passed = Trail.at(begun).played(pass_moves(begun, "heuristic"))
    assert start[0] == passed.program.hash and start[-1] == begun.start.hash
    assert replayed.current.program.hash in start
    assert len(set(start)) == len(start)


@pytest.mark.thorough  # a search begins with the pass: above; what that plays: test_bilinear.py
def test_a_search_under_algebraic_begins_with_fewer_products():
    shape = "1x16x16x24x24x3x1x1"
    conv = kernels.get("conv2d")
    begun = Game.new(conv.program(conv.shape(shape)), "conv2d", shape, policy="algebraic")
    first = Restarts(Task(begun)).start()[0]
    assert "bilinear" in {move.name for move in first.moves}


def test_a_game_that_has_begun_has_no_recorded_line():
    begun = game("reducemean", (64, 256))
    assert recorded(begun)
    begun.play("split_scope y@0 4")
    assert not recorded(begun)


# ---------------------------------------------------------------------------- the pass for another machine


def test_a_machine_differs_from_the_target_in_what_it_says():
    cpu = target("cpu")
    assert Machine().of(cpu) == cpu
    other = Machine((("cache_bytes", 0.5),), frozenset({"parallelize"}), 1).of(cpu)
    assert other.cache_bytes == cpu.cache_bytes // 2
    assert other.without == cpu.without | {"parallelize"}
    assert other.vector_widths["f32"] == cpu.vector_widths["f32"][1:]


@pytest.mark.parametrize("on", one_of(2, ["cpu", "cuda"]))
def test_the_pass_for_other_machines_plays_other_lines_that_compute_the_same(on):
    begun = game("matmul", (8, 16, 16), on)
    restarts, rng = Restarts(Task(begun)), random.Random(0)
    trail = restarts.start()[0]
    found = [each for _ in range(20) if (each := restarts.restarted(trail, rng)) is not None]
    different = {each.program.hash: each for each in found}
    assert len(different) > 2 and trail.program.hash not in different
    wanted = list(oracle.run(begun.start, "reassoc", terms := oracle.Terms()).outputs.values())
    for each in list(different.values())[:4]:
        assert list(oracle.run(each.program, "reassoc", terms).outputs.values()) == wanted
        replay = game("matmul", (8, 16, 16), on)  # legal on the target, not only on what the pass played for
        for move in each.moves:
            replay.play(move)
        assert replay.current.program.hash == each.program.hash


def test_the_pass_plays_once_for_a_machine(monkeypatch):
    restarts, rng = Restarts(Task(game("relu", (4, 8)))), random.Random(0)
    trail, played = restarts.start()[0], []
    monkeypatch.setattr(restarts, "_moves", lambda machine: played.append(machine) or [])
    for _ in range(200):
        restarts.restarted(trail, rng)
    assert len(played) > 10 and len(set(played)) == len(played)


# ---------------------------------------------------------------------------- edits

TWICE = parse(
    "kernel k\nin x\nout y\nx f32 [4, 48] heap\ny f32 [4, 48] heap\nt f32 [4, 48] heap\n"
    "4 48 t[{0},{1}] = x[{0},{1}]*2\n4 48 y[{0},{1}] = t[{0},{1}]+1\n"
)


def test_moves_with_the_same_numbers_get_others_together():
    begun = Game.new(TWICE)
    for move in ("split_scope t@1 16", "split_scope y@1 16"):
        begun.play(move)
    trail = Trail.at(Game.new(TWICE)).played(p.move for p in begun.line()[1:])
    rng, factors = random.Random(0), set()
    for _ in range(40):
        changed = _renumber(trail, rng, None)
        factors.add(tuple(move.arguments[-1] for move in changed.moves))
    assert {first for first, second in factors if first == second} > {2, 4, 8}
    assert any(first != second for first, second in factors)


def test_an_edit_that_most_of_the_line_does_not_survive_is_seldom_one():
    begun = game("matmul", (64, 64, 64))
    trail, rng = Trail.at(begun).played(pass_moves(begun, "heuristic")), random.Random(0)
    origins = {step.origin for step in trail.steps}

    def lost(child: Trail) -> int:
        return len(origins.difference(step.origin for step in child.steps))

    children = [child for _ in range(30) if (child := edit(trail, rng)) is not None]
    assert len(children) > 10
    assert sum(lost(child) > 10 for child in children) <= 5  # two edits lose five moves each at most


# ---------------------------------------------------------------------------- times


def nodes(program: Program) -> int:
    return program.summary.nodes


class Drifting(TargetMeasurer):
    """A machine that gets slower with each batch: programs take a second for each node, times its minute."""

    records = None

    def __init__(self) -> None:
        self.slower = 1.0
        self.against: list[str | None] = []

    def carry_out(self, job: Job) -> None:
        self.against.append(job.against.hash if job.against else None)
        for program in job.programs:
            m = timed(program, nodes(program) * self.slower)
            if job.against is not None:
                m = replace(m, ratios=(nodes(job.against) / nodes(program),) * 5)
            job.tell(m)
        self.slower *= 1.5


def test_times_are_on_one_scale_whatever_the_minute():
    trail = Trail.at(Game.new(TWICE))
    fast = trail.played([parse_move("join_scopes t@0")]).program
    slow = trail.played([parse_move("split_scope t@0 2"), parse_move("split_scope y@0 2")]).program
    assert nodes(fast) < nodes(TWICE) < nodes(slow)
    measurer = Drifting()
    timing = MeasurerTiming(measurer, "me")

    def seconds(*programs: Program, effort: Effort = Effort.QUICK) -> list[float | None]:
        return [m.seconds for m in timing.measure(Workload(TWICE), programs, {}, effort, lambda: False)]

    assert seconds(TWICE) == [nodes(TWICE)]
    assert seconds(slow) == pytest.approx([nodes(slow)])  # and not half as long again
    assert seconds(fast) == pytest.approx([nodes(fast)])
    assert seconds(slow) == pytest.approx([nodes(slow)])
    # Each took turns with the fastest that was told until then.
    assert measurer.against == [None, TWICE.hash, TWICE.hash, fast.hash]
    # The last times are those of their own minute.
    minute = measurer.slower
    final = seconds(slow, fast, effort=Effort.FINAL)
    assert final == pytest.approx([minute * nodes(slow), minute * nodes(fast)])
