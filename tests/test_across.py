"""What carries over from kernel to kernel: the player, lines, examples, the policy, the loop."""

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from agents.agent import Budget, Costs, Proposals, Task, run
from agents.passes import pass_moves
from agents.perfllm.across import features
from agents.perfllm.across.examples import Line, examples_of, siblings_of
from agents.perfllm.across.guides import Kinds, alike
from agents.perfllm.across.lines import (
    MOST_MOVES,
    finished,
    forced,
    grafted,
    made_legal,
    minimised,
    transplanted,
)
from agents.perfllm.across.loop import Loop, Plan, game_of, listed
from agents.perfllm.across.policy import NgramReader, Policy, trained
from agents.perfllm.across.problem import Costs as KeptCosts
from agents.perfllm.across.problem import Problem, spend
from agents.perfllm.across.saved import load, save, shipped
from agents.perfllm.across.search import ABREAST, Search, SearchSettings, structure
from agents.perfllm.actions import Action, actions_in_turn
from agents.players import AGENTS
from agents.timing import CountTiming
from agents.trail import Trail
from benchmarks.carryover import folds
from benchmarks.carryover_card import BEGIN, END, card, ship
from dojo_core import kernels
from dojo_core.game import Step
from dojo_core.moves.notation import parse_move
from dojo_core.program.tree import Program


def problem(kernel: str = "mul", shape: str = "2x4") -> Problem:
    return Problem(game_of(kernel, shape, "snitch"), CountTiming())


def test_a_search_is_decided_by_its_seed_and_spends_what_it_may() -> None:
    curves = []
    for _ in range(2):
        mul = problem()
        search = Search(mul.start, random.Random(3), settings=SearchSettings(minimising=True))
        curves.append(spend(search.proposals(), mul, 30))
        assert len(mul.costs) <= 30 + 1  # what was proposed last is measured
    assert curves[0] == curves[1]
    assert len(curves[0]) == 30
    assert curves[0] == sorted(curves[0], reverse=True)


def test_attempts_are_made_abreast_where_programs_are_compiled() -> None:
    mul = problem()
    batches: list[int] = []

    def counted(search: Proposals) -> Proposals:
        costs: Costs = []
        with suppress(StopIteration):
            batch = next(search)
            while True:
                batches.append(len(batch))
                costs = yield batch
                batch = search.send(costs)

    search = Search(mul.start, random.Random(3), measured=True)
    curve = spend(counted(search.proposals()), mul, 60)
    assert len(curve) == 60 and curve[-1] < 0.9 * curve[0]
    assert max(batches) == ABREAST and batches.count(ABREAST) > len(batches) / 2


def test_moves_of_a_position_are_tried_without_replacement() -> None:
    mul = problem()
    settings = SearchSettings(most_actions=200, from_start=1.0, first_moves=1, edits=0.0)
    for guide in (None, Kinds([["ssr z@0"]])):
        search = Search(mul.start, random.Random(0), guide, settings)
        legal = {after.hash for after, _ in actions_in_turn(mul.start, random.Random(0))}
        spend(search.proposals(), mul, 1 + len(legal))
        assert set(search.positions) == {mul.start.program.hash, *legal}


def test_a_guided_walk_is_measured_where_the_guide_stops_and_none_is_drawn_twice() -> None:
    mul = problem()

    def two_moves(trail: Trail, actions: list[Action]) -> np.ndarray:
        """To stop behind two moves; those before are equally likely."""
        return np.array([50.0 if len(trail.steps) == 2 else -50.0, *(0.0 for _ in actions)])

    settings = SearchSettings(edits=0.0, from_start=1.0, explored=0.0)
    search = Search(mul.start, random.Random(0), two_moves, settings)
    best = spend(search.proposals(), mul, 40)
    behind = [position.trail for position in search.positions.values() if position.cost < np.inf]
    assert len(best) == 40 and {len(trail.steps) for trail in behind} == {0, 2}
    assert search.positions[mul.start.program.hash].left < 1.0


def test_moves_that_look_good_by_their_text_are_asked_for_legality_first() -> None:
    mul = problem()

    def unrolls(program: Program, moves: Sequence[str]) -> np.ndarray:
        return np.array([30.0 * move.startswith("unroll") for move in moves])

    settings = SearchSettings(glanced=2, edits=0.0, from_start=1.0, first_moves=1, explored=0.0)
    search = Search(mul.start, random.Random(0), Kinds([["ssr z@0"]]), settings, glance=unrolls)
    spend(search.proposals(), mul, 3)
    assert {str(p.trail.moves[-1]) for p in search.positions.values() if p.trail.steps} == {
        "unroll z@0", "unroll z@1"
    }  # fmt: skip


def test_programs_of_one_structure_differ_in_sizes_alone() -> None:
    start = problem().start
    (split,) = (
        after for after, move in actions_in_turn(start, random.Random(0)) if move == "split_scope z@1 2"
    )
    (marked,) = (after for after, move in actions_in_turn(start, random.Random(0)) if move == "unroll z@1")
    assert structure(split) == structure(start.program) != structure(marked)


def test_minimising_drops_what_made_nothing_faster() -> None:
    mul = problem()
    trail = mul.start.played(map(parse_move, ("interchange z@0", "unroll z@1", "split_scope z@0 2")))
    assert len(trail.steps) == 3
    [cost] = mul.seconds([trail])
    search = minimised(trail, cost, random.Random(0))
    batch = next(search)
    with pytest.raises(StopIteration) as ended:
        while True:
            batch = search.send(mul.seconds(batch))
    left: Trail = ended.value.value
    assert [step.move.name for step in left.steps] == ["unroll"]
    assert mul.seconds([left]) <= [cost]


def test_two_moves_that_undo_each_other_are_dropped_together() -> None:
    mul = problem()
    trail = mul.start.played(map(parse_move, ("unroll z@1", "interchange z@0", "interchange z@0")))
    [cost, apart] = mul.seconds([trail, trail.upto(2)])
    assert len(trail.steps) == 3 and cost < apart  # neither is dropped by itself
    search = minimised(trail, cost, random.Random(0))
    batch = next(search)
    with pytest.raises(StopIteration) as ended:
        while True:
            batch = search.send(
                [
                    1.0 if t.program.hash == apart else c
                    for t, c in zip(batch, mul.seconds(batch), strict=True)
                ]
            )
    assert [str(move) for move in ended.value.value.moves] == ["unroll z@1"]


def test_a_line_that_is_finished_has_an_end() -> None:
    start = problem("conv", "1x2x2x6x6x3").start
    donor = list(map(parse_move, ("split_scope y@0 2", "interchange y@0", "unroll y@0"))) * 20
    for made in (transplanted(start, donor, random.Random(0)), finished(start, donor, random.Random(0))):
        assert len(made.steps) <= MOST_MOVES + 4  # and what the last needs


@pytest.mark.parametrize(("margin", "left"), [(1.005, 1), (1.02, 0)])
def test_a_move_is_dropped_that_gains_less_than_times_can_tell(margin: float, left: int) -> None:
    trail = problem().start.played([parse_move("unroll z@1")])
    search = minimised(trail, 1.0, random.Random(0), margin)
    assert [len(each.steps) for each in next(search)] == [0]
    with pytest.raises(StopIteration) as ended:
        search.send([1.01])
    assert len(ended.value.value.steps) == left


def test_moves_of_another_kernel_are_played_at_places_like_theirs() -> None:
    line = ("split_scope s#1@0 4", "split_reduction s#1@1 ps", "unroll ps@0", "set_location ps register")
    of_dot = list(map(parse_move, line))
    gemv = problem("gemv", "4x8").start  # writes y, and has a scope more
    played = {"; ".join(map(str, transplanted(gemv, of_dot, random.Random(n)).moves)) for n in range(12)}
    begun = "split_scope y#1@1 4; split_reduction y#1@1 py; unroll py@0"
    needed = "unroll py@1; unroll py#1@1; unroll y#1@1"  # by an array in registers here, not in the line
    assert f"{begun}; {needed}; set_location py register" in played
    assert not any("heap" in each for each in played)  # register is no place: another word is another move


def test_a_refused_move_is_played_behind_what_makes_it_legal() -> None:
    staged = problem("matmul", "4x4x4").start.played(
        map(parse_move, ("interchange c#1@1", "join_scopes c@0", "stage_write c c@0 rc"))
    )
    register = parse_move("set_location rc register")
    assert staged.extended(Step(register, staged.born)) is None
    after = made_legal(staged, register, random.Random(0))
    assert after is not None
    needed = ["unroll rc@1", "unroll rc#1@2", "unroll c@1"]
    assert list(map(str, after.moves[3:])) == [*needed, "set_location rc register"]
    assert made_legal(staged, parse_move("drop_dead rc"), random.Random(0)) is None  # rc is read: no way


def test_what_an_edit_makes_differs_from_what_later_moves_of_the_line_make() -> None:
    start = problem("matmul", "4x4x4").start
    line = start.played(map(parse_move, ("stage_write c c#1@1 ct", "split_scope c@0 2", "split_scope c@1 2")))
    for seed in range(20):
        for after in (forced(line, random.Random(seed)), grafted(line, line.moves, random.Random(seed))):
            steps = after.steps if after else ()
            assert len({step.origin for step in steps}) == len(steps)


def test_a_line_is_finished_as_another_one_was_wherever_that_is_possible() -> None:
    add = problem("add").start
    after = finished(add, [parse_move("unroll z@1")], random.Random(0))
    assert {str(move) for move in after.moves} == {"unroll z@0", "unroll z@1"}


def test_features_read_what_moves_change_and_no_names() -> None:
    start = problem().start
    actions = list(actions_in_turn(start, random.Random(0)))
    (unrolled,) = (after for after, move in actions if move == "unroll z@1")
    change = features.change_of(start.program, "unroll z@1", unrolled)
    assert change.removed and change.added and change.move
    assert features.change_of(start.program, "unroll z@1", start.program).added == ()
    # Another kernel whose text differs in the operation alone: its lines read otherwise, its move does not.
    add = problem("add").start.program
    assert features.context_of(add) != features.context_of(start.program)


def test_examples_teach_the_next_move_and_leave_out_those_that_commute_with_it() -> None:
    mul = problem(shape="4x4")
    moves = ("unroll z@1", "split_scope z@0 2")
    first, second, last = examples_of(mul.start, Line(1.0, moves), NgramReader(), 48)
    legal = list(actions_in_turn(mul.start, random.Random(0)))
    assert set(moves) < {move for _, move in legal}
    assert len(first.changes) == len(legal) - 2 + 2  # both moves commute; the good one and stop stand first
    assert first.changes[1] == second.changes[1] == last.changes[0] == features.STOP
    assert examples_of(mul.start, Line(1.0, ("unroll z@9",)), NgramReader(), 48) == []


def test_siblings_are_ranked_by_the_best_that_was_found_behind_them() -> None:
    mul = problem()
    search = Search(mul.start, random.Random(1))
    spend(search.proposals(), mul, 40)
    best = search.ranked()[0].trail
    behind = siblings_of(best, search)
    assert min(behind[0].values()) == mul.seconds([best])[0]
    line = Line(1.0, tuple(map(str, best.moves)), tuple(behind))
    example = examples_of(mul.start, line, NgramReader(), 48)[0]
    assert example.ranks and all(faster != slower for faster, slower in example.ranks)


def test_a_policy_learns_the_moves_of_good_lines() -> None:
    mul = problem()
    line = Line(1.0, ("unroll z@1",))
    policy = trained(examples_of(mul.start, line, NgramReader(), 48), seed=0, epochs=30)
    add = problem("add").start  # never seen
    actions = list(actions_in_turn(add, random.Random(0)))
    logits = policy.weigh(add, actions)
    assert actions[int(np.argmax(logits[1:]))][1] == "unroll z@1"
    moves = [move for _, move in actions]
    by_text = dict(zip(moves, policy.glance(add.program, moves), strict=True))
    assert by_text["unroll z@1"] > by_text["interchange z@0"]


def test_a_saved_policy_weighs_as_before_to_half_precision(tmp_path: Path) -> None:
    mul = problem()
    policy = trained(examples_of(mul.start, Line(1.0, ("unroll z@1",)), NgramReader(), 48), seed=0, epochs=2)
    policy.lines, policy.examples = (("unroll z@1",),), 2
    save(policy, tmp_path / "policy")
    again = load(tmp_path / "policy")
    assert again is not None and (again.lines, again.examples) == (policy.lines, 2)
    actions = list(actions_in_turn(mul.start, random.Random(0)))
    assert np.allclose(again.weigh(mul.start, actions), policy.weigh(mul.start, actions), atol=0.02)
    table = (tmp_path / "policy" / "tensors.safetensors").stat().st_size
    assert table < 200_000  # rows of n-grams that were never seen are left out
    assert load(tmp_path / "nothing") is None


@pytest.mark.thorough  # the agents that begin with a line: below
def test_perfllm_begins_with_moves_of_other_kernels_lines() -> None:
    policy = shipped("snitch")
    assert policy is not None and policy.examples and shipped("cpu") is None
    task = Task(game_of("batchnorm", "1x2x4x4", "snitch"))  # not in the library's list
    events = [e for e in run(task, AGENTS["perfllm"], CountTiming(), Budget(4), seed=0) if not e.final]
    kinds = {move.name for event in events for move in event.line}
    assert len(events) == 4 and {"ssr", "set_location"} <= kinds


def test_perfllm_onward_begins_with_the_line_of_the_pass_and_goes_on_from_it() -> None:
    for target in ("snitch", "riscv"):  # one that has a policy, one that has none
        task = Task(game_of("axpy", "256", target))
        events = list(run(task, AGENTS["perfllm-onward"], CountTiming(), Budget(12), seed=0))
        tried = [event.line for event in events if not event.final]
        of_pass = tuple(pass_moves(task.game, "heuristic"))
        assert tried[1] == of_pass
        assert sum(len(line) > len(of_pass) / 2 for line in tried) > 6


def test_the_encoder_of_lines_reads_behind_the_same_interface() -> None:
    start = problem().start
    actions = list(actions_in_turn(start, random.Random(0)))
    logits = Policy("lines").eval().weigh(start, actions)
    assert logits.shape == (1 + len(actions),)
    assert np.ptp(logits) > 0


def test_kinds_are_weighed_by_how_often_they_stand_in_good_lines() -> None:
    start = problem().start
    actions = list(actions_in_turn(start, random.Random(0)))
    logits = Kinds([["unroll z@0", "unroll z@1"], ["ssr z@0"]])(start, actions)
    of = dict(zip([move for _, move in actions], logits[1:], strict=True))
    unrolls = [move for move in of if move.startswith("unroll")]
    assert of[unrolls[0]] == of[unrolls[1]] > max(v for m, v in of.items() if m.startswith("split"))
    assert len(alike([move for _, move in actions])) == 1 + len(actions)


@pytest.mark.thorough  # a run on one kernel: test_perfllm.py; what it keeps: below
def test_a_loop_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    plan = Plan((("mul", "2x4"), ("add", "2x4")), "snitch", blind=8, guided=4, rounds=1)
    whole = [json.dumps(e) for e in Loop(plan, CountTiming(), tmp_path / "whole").events()]
    killed = Loop(plan, CountTiming(), tmp_path / "killed").events()
    first = [json.dumps(next(killed)) for _ in range(2)]
    killed.close()
    with (tmp_path / "killed" / "rounds.jsonl").open("a") as file:
        file.write('{"event": "rou')  # what a kill left
    again = Loop(plan, CountTiming(), tmp_path / "killed")
    assert [json.dumps(e) for e in again.events()] == whole
    assert whole[:2] == first
    assert again.policy().reads == "ngrams" and again.taught()
    told = card(again, ("relu",), dict.fromkeys(plan.problems, 2e-9), "make it")
    assert "**Never seen**: relu." in told and "| mul | 2x4 | " in told and "| 2 |" in told
    (tmp_path / "README.md").write_text(f"{BEGIN.format('snitch')}{END.format('snitch')}")
    ship(again, told, tmp_path)
    assert told in (tmp_path / "README.md").read_text() and load(tmp_path / "snitch") is not None
    with pytest.raises(ValueError, match="Another run goes on"):
        Loop(plan, CountTiming(), tmp_path / "killed")
    del again
    with pytest.raises(ValueError, match="holds another run"):
        Loop(Plan(plan.problems, "snitch", seed=1), CountTiming(), tmp_path / "killed")


def test_costs_are_kept_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "costs.jsonl"
    kept = KeptCosts(path)
    kept.put("a", 1.5)
    kept.put("b", float("inf"))
    with path.open("a") as file:
        file.write('{"program": "c", "sec')
    again = KeptCosts(path)
    assert len(again) == 2 and again["a"] == 1.5 and again["b"] == float("inf") and "c" not in again
    again.put("c", 2.0)
    assert len(KeptCosts(path)) == 3


def test_what_is_measured_learns_on_the_same_kernels_as_what_is_counted_in_larger_shapes() -> None:
    counted, measured = listed("snitch"), listed("cpu")
    assert [list(of) for of in counted.values()] == [list(of) for of in measured.values()]
    for family, of in measured.items():
        for kernel, shapes in of.items():
            of_kernel = kernels.get(kernel)
            small, large = (
                [of_kernel.bytes(of_kernel.shape(shape)) for shape in each]
                for each in (counted[family][kernel], shapes)
            )
            assert max(small) < min(large)


def test_folds_leave_out_every_kernel_once_in_each_scheme() -> None:
    known = sorted(kernel for of in listed("snitch").values() for kernel in of)
    for scheme in ("by_kernel", "by_family"):
        assert sorted(k for fold in folds().values() if fold.scheme == scheme for k in fold.left_out) == known
    for fold in folds().values():
        assert not set(fold.left_out) & set(fold.learned_on("snitch"))
