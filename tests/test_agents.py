"""Agents: the same seed gives the same run; runs can be paused, stopped, gone on with; luck does not win."""

import json
import random
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import pytest

from agents.agent import Agent, Budget, Control, Event, Task, run
from agents.passes import play_pass
from agents.players import AGENTS
from agents.run_log import RunBusy
from agents.search.neighbours import edge, edit
from agents.timing import CountTiming, TableTiming, timed
from agents.trail import Trail
from agents.tuning import Tuning
from dojo_core import kernels, parse
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.measure.records import Records
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.registry import backend
from tests import oracle
from tests.homes import with_objects
from tests.thorough import covering

pytestmark = pytest.mark.usefixtures("kept_workers")


def game(kernel: str = "softmax", shape: tuple[int, ...] = (8, 32)) -> Game:
    return Game.new(kernels.get(kernel).program(shape), kernel, "x".join(map(str, shape)))


def told(event: Event) -> tuple[object, ...]:
    """An event without what the clock says."""
    return event.evaluation, event.line, event.program.hash, event.measurement.seconds, event.final


def played(name: str, evaluations: int = 24, seed: int = 0, start: Game | None = None) -> list[Event]:
    return list(run(Task(start or game()), AGENTS[name], CountTiming(), Budget(evaluations), seed))


@cache
def whole(name: str) -> list[Event]:
    """A run on the usual game, which several tests look at."""
    return played(name)


LEARN_NOTHING = [name for name in AGENTS if not name.startswith("perfllm")]  # the others: test_perfllm.py


def method(agent: str) -> str:
    return agent.partition("-")[0]


def neighbours(agent: str) -> str:
    """What a search's next programs are: those a move away, or lines with a move changed."""
    return agent.partition("-")[2]


@pytest.mark.parametrize("name", covering(LEARN_NOTHING, method, neighbours))
def test_the_same_seed_and_times_give_the_same_run(name):
    def once(seed: int = 0) -> list[Event]:
        return played(name, 8, seed, game("reducemean", (8, 16)))

    first = once()
    assert [told(e) for e in first] == [told(e) for e in once()]
    assert first[-1].best is not None
    if "-" in name:
        assert [told(e) for e in once(seed=1)] != [told(e) for e in first]


@pytest.mark.parametrize(
    "name", covering((name for name in LEARN_NOTHING if "-" in name), method, neighbours)
)
def test_a_search_spends_its_budget_and_ends_with_its_best(name):
    events = whole(name)
    searched = [e for e in events if not e.final]
    assert [e.evaluation for e in searched] == list(range(1, 25))
    assert len({e.program.hash for e in searched}) == 24  # nothing is measured twice
    assert events[-1].best.seconds == min(e.measurement.seconds for e in events)
    bests = [e.best.seconds for e in searched]
    assert bests == sorted(bests, reverse=True)


@pytest.mark.parametrize("name", LEARN_NOTHING)
def test_an_agent_plays_a_gpu_as_it_plays_any_target(name):
    """No agent knows a target: it plays the moves that a GPU has, and its best line replays there."""
    start = Game.new(kernels.get("relu").program((16, 256)), "relu", "16x256", "cuda")
    events = played(name, 24, start=start)
    best = events[-1].best
    assert best is not None
    for move in best.line:
        start.play(move)
    assert start.current.program == best.program
    if name not in ("naive", "annealing-edges"):  # which goes after other moves with this count and seed
        assert any(re.search(r"\d:[gbw] ", e.program.text) for e in events), "a program mapped to a GPU"


def test_a_line_found_is_a_line_of_the_game():
    for name in ("annealing-lines", "sampling-edges"):
        best = whole(name)[-1].best
        replay = game()
        for move in best.line:
            replay.play(move)
        assert replay.current.program == best.program


def test_an_agent_starts_where_the_game_stands():
    begun = game("matmul", (8, 16, 16))
    begun.play("split_scope c@1 4")
    events = played("sampling-lines", start=begun)
    assert {str(e.line[0]) for e in events} == {"split_scope c@1 4"}
    replay = game("matmul", (8, 16, 16))
    for move in events[-1].best.line:
        replay.play(move)
    assert replay.current.program.hash == events[-1].best.program.hash


@pytest.mark.parametrize("neighbour", [edge, edit])
def test_neighbours_compute_the_same(neighbour):
    start = parse(
        "kernel k\nin x\nout y\nx f32 [4, 8] heap\ny f32 [4, 8] heap\nt f32 [4, 8] heap\ns f32 [4] heap\n"
        "4 8 t[{0},{1}] = x[{0},{1}]*2\n4 s[{0}] = 0\n| 8 s[{0}] += t[{0},{1}]\n"
        "4 8 y[{0},{1}] = t[{0},{1}]*s[{0}]\n"
    )
    begun = Game.new(start)
    here, rng = Trail.at(begun), random.Random(3)
    wanted = list(oracle.run(start, "reassoc", terms := oracle.Terms()).outputs.values())
    trail = here
    for _ in range(25):
        trail = neighbour(trail, rng) or here
        assert list(oracle.run(trail.program, "reassoc", terms).outputs.values()) == wanted
        assert trail.program == here.replayed(trail.steps).program


def test_dropping_a_move_keeps_what_stays_legal():
    begun = game()
    play_pass(begun, "heuristic")
    trail = Trail.at(game()).played(p.move for p in begun.line()[1:])
    assert trail.program == begun.current.program
    shorter = trail.upto(2).replayed(trail.steps[3:])
    assert 3 < len(shorter.steps) < len(trail.steps)


# ---------------------------------------------------------------------------- the run


class Told:
    """Times by a rule, and what was asked."""

    def __init__(self, rule: Callable[[Program, Effort], float | None]) -> None:
        self.rule = rule
        self.asked: list[tuple[Effort, tuple[str, ...]]] = []

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        self.asked.append((effort, tuple(p.hash for p in programs)))
        found = []
        for program in programs:
            seconds = self.rule(program, effort)
            if cancelled():
                found.append(Measurement(program.hash, "", "cancelled"))
            elif seconds is None:
                found.append(Measurement(program.hash, "", "wrong_result", "Row 3 differs."))
            else:
                found.append(timed(program, seconds))
        return found


def test_a_lucky_sample_does_not_win():
    honest = {p.program.hash: p.measurement.seconds for p in whole("random-edges") if not p.final}
    slow = max(honest, key=lambda h: honest[h])

    def rule(program: Program, effort: Effort) -> float:
        lucky = program.hash == slow and effort is not Effort.FINAL
        return 1e-9 if lucky else honest[program.hash]

    events = list(run(Task(game()), AGENTS["random-edges"], Told(rule), Budget(24)))
    assert min(e.measurement.seconds for e in events if not e.final) == 1e-9
    assert events[-1].best.program.hash != slow
    assert events[-1].best.seconds == min(e.measurement.seconds for e in events if e.final)


def test_what_failed_is_never_the_best():
    events = list(run(Task(game()), AGENTS["annealing-edges"], Told(lambda p, _: None), Budget(8)))
    assert {e.measurement.status for e in events} == {"wrong_result"}
    assert events[-1].best is None


def test_candidates_come_in_batches_and_finalists_with_more_effort():
    timing = Told(lambda program, _: len(program.text) * 1e-6)
    list(run(Task(game()), AGENTS["sampling-lines"], timing, Budget(30)))
    efforts = [effort for effort, _ in timing.asked]
    assert efforts[0] is Effort.NORMAL and efforts[-1] is Effort.FINAL
    assert set(efforts[1:-1]) == {Effort.QUICK}
    assert max(len(hashes) for _, hashes in timing.asked) == 8


def test_the_seconds_of_a_budget_are_kept_and_a_pause_is_free():
    now = [0.0]

    def rule(program: Program, effort: Effort) -> float:
        now[0] += 1.0
        return len(program.text) * 1e-6

    events = run(Task(game()), AGENTS["random-edges"], Told(rule), Budget(500, 20.0), clock=lambda: now[0])
    searched = [e for e in events if not e.final]
    assert 20 <= len(searched) <= 28  # a batch that is begun is finished


def test_a_run_is_paused_and_stopped_from_another_thread():
    control = Control()
    seen: list[Event] = []
    reached = threading.Event()

    def follow() -> None:
        for event in run(
            Task(game()), AGENTS["random-edges"], CountTiming(), Budget(10_000), control=control
        ):
            seen.append(event)
            if len(seen) == 20:
                control.pause()
                reached.set()

    thread = threading.Thread(target=follow)
    thread.start()
    assert reached.wait(300)
    thread.join(0.2)
    paused = len(seen)
    thread.join(0.2)
    assert thread.is_alive() and len(seen) == paused and control.paused
    control.go_on()
    while len(seen) < paused + 10:
        assert thread.is_alive()
    control.stop()
    thread.join(300)
    assert not thread.is_alive() and seen[-1].best is not None


# ---------------------------------------------------------------------------- logs


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path)))
    return tmp_path


def tuning(timing: object, evaluations: int = 24, agent: Agent = AGENTS["annealing-edges"], **more) -> Tuning:
    return Tuning(game(), agent, more.pop("measurer", Measurer()), Budget(evaluations), timing=timing, **more)


def test_a_stopped_run_goes_on_where_it_was(home):
    whole = [told(e) for e in played("annealing-edges")]
    first = tuning(CountTiming())
    part = []
    for event in first.events():
        part.append(told(event))
        if len(part) == 9:
            first.control.stop()
    assert len(part) < len(whole)
    counted = Told(lambda program, _: CountTiming().measure(None, [program], {}, _, bool)[0].seconds)
    second = tuning(counted)
    assert second.resumed >= 9 and not second.was_done
    assert [told(e) for e in second.events()] == whole
    asked = [h for effort, hashes in counted.asked for h in hashes if effort is not Effort.FINAL]
    assert len(asked) == 24 - second.resumed
    third = tuning(Told(lambda program, _: None))
    assert third.was_done and [told(e) for e in third.events()] == whole


def test_a_run_that_its_seconds_ended_tells_the_same_again(home):
    def limited(timing: object) -> Tuning:
        budget = Budget(100_000, seconds=0.2)
        return Tuning(game(), AGENTS["annealing-edges"], Measurer(), budget, timing=timing)

    whole = [told(e) for e in limited(CountTiming()).events()]
    again = limited(Told(lambda program, _: None))
    assert whole and again.was_done and [told(e) for e in again.events()] == whole


def test_a_log_cut_in_the_middle_of_a_line_loses_that_line_only(home):
    first = tuning(CountTiming())
    whole = [told(e) for e in first.events()]
    (path,) = (home / "runs").iterdir()
    text = path.read_bytes()
    for cut in range(0, len(text), len(text) // 7):
        path.write_bytes(text[:cut])
        again = tuning(CountTiming())
        assert [told(e) for e in again.events()] == whole
    assert [json.loads(line) for line in path.read_text().splitlines()][-1]["done"]


def test_one_process_at_a_time_is_at_a_run(home):
    first = tuning(CountTiming())
    with pytest.raises(RunBusy, match="Another process is at this run"):
        tuning(CountTiming())
    list(first.events())
    tuning(CountTiming(), again=True)


def test_other_settings_are_another_run(home):
    list(tuning(CountTiming()).events())
    assert tuning(CountTiming(), evaluations=25).resumed == 0
    assert tuning(CountTiming(), seed=1).resumed == 0


def test_the_best_line_is_kept_as_a_game(home):
    with Records() as records:
        last = list(tuning(CountTiming(), measurer=Measurer(records)).events())[-1]
        (saved,) = records.games("annealing-edges")
    kept = Game.from_text(saved.text)
    assert kept.current.program == last.best.program


def test_a_recorded_table_stands_in_for_the_clock():
    events = played("sampling-edges")
    table = {e.program.hash: e.measurement for e in events}
    again = list(run(Task(game()), AGENTS["sampling-edges"], TableTiming(table), Budget(24)))
    assert [told(e) for e in again] == [told(e) for e in events]
    less = dict(list(table.items())[:5])
    fewer = list(run(Task(game()), AGENTS["sampling-edges"], TableTiming(less), Budget(24)))
    assert {e.measurement.status for e in fewer} == {"ok", "refused"}


def test_an_agent_on_this_machine(home):
    with Records() as records, Measurer(records) as measurer:
        run_here = Tuning(game("relu", (64, 64)), AGENTS["random-lines"], measurer, Budget(5))
        events = list(run_here.events())
        assert {e.measurement.status for e in events} == {"ok"}
        kept = [record for _, record in records.measurements()]
    assert {record.player for record in kept} == {"random-lines"}
    line = {record.program_hash: record.line for record in kept}
    assert all(line[e.program.hash] == "\n".join(map(str, e.line)) for e in events)


def test_lanes_take_turns_and_share_the_budget():
    def in_lanes(lanes: int) -> list[Event]:
        return list(run(Task(start), AGENTS["sampling-lines"], CountTiming(), Budget(10), lanes=lanes))

    start = game("reducemean", (8, 16))
    events = in_lanes(3)
    assert [told(e) for e in in_lanes(3)] == [told(e) for e in events]  # whichever thread was first
    searched = [e for e in events if not e.final]
    assert len({e.program.hash for e in searched}) == len(searched) == 10
    assert [told(e) for e in in_lanes(1)] == [told(e) for e in played("sampling-lines", 10, start=start)]


@pytest.mark.parametrize("name", ["random-lines", "annealing-lines"])
def test_lines_are_edited_on_a_target_without_vectors(name: str):
    program = kernels.get("add").program((4, 8))
    start = Game.new(backend("snitch").limits.start(program), kernel="add", shape="4x8", target="snitch")
    assert not start.context(0, 0).target.vector_widths
    assert len(list(run(Task(start), AGENTS[name], CountTiming(), Budget(40), seed=1))) >= 40
