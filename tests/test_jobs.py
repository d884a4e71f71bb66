"""Agents as processes of the app: followed, paused, stepped, stopped, resumed, found again."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from agents.agent import Budget, Task, run
from agents.expert import expert_seconds
from agents.jobs import JobRefused, Jobs, JobSpec, JobView
from agents.jobs.journal import Journal, Writer, event_line
from agents.players import AGENTS
from agents.timing import CountTiming
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.moves import IllegalMove
from dojo_core.service import Refused
from tests.homes import with_objects


def game() -> Game:
    return Game.new(kernels.get("softmax").program((8, 32)), "softmax", "8x32")


def spec(agent: str = "annealing-edges", evaluations: int = 24, seed: int = 0, **others) -> JobSpec:
    return JobSpec.of(game(), agent, seed, evaluations, 300.0, "count", **others)


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path / "home")))
    made = Jobs(tmp_path / "jobs")
    yield made
    made.close()


def until(jobs: Jobs, job: str, condition: Callable[[JobView], bool]) -> JobView:
    end = time.monotonic() + 400
    while not condition(view := jobs.view(job)):
        assert time.monotonic() < end, view
        time.sleep(0.02)
    return view


def ended(view: JobView) -> bool:
    return view.state in ("done", "stopped", "failed", "interrupted")


def expected(agent: str, evaluations: int, first: int | None = None) -> list[dict[str, object]]:
    """What the run tells when it is played here, in one go; the ``first`` of it."""
    events = run(Task(game()), AGENTS[agent], CountTiming(), Budget(evaluations, 300.0))
    return [event_line(event, 0, number) for number, event in enumerate(islice(events, first), 1)]


def plain(lines: list[dict[str, object]]) -> list[dict[str, object]]:
    """Without what the clock says."""
    return [{name: value for name, value in line.items() if name != "elapsed"} for line in lines]


def written(jobs: Jobs, job: str) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in jobs.file(job).read_text().splitlines()]
    return [line for line in lines if "event" in line]


@pytest.mark.thorough  # as one is that is paused, stopped and killed: below
def test_a_run_in_its_own_process_is_the_run_itself(jobs: Jobs) -> None:
    views: list[JobView] = []
    jobs._keep = lambda view: views.append(view)
    job = jobs.start(spec())
    view = until(jobs, job, ended)
    assert view.state == "done", view
    assert plain(written(jobs, job)) == plain(expected("annealing-edges", 24))
    assert view.best is not None and view.best.seconds is not None
    assert view.expert == expert_seconds(game(), CountTiming())
    assert view.best.seconds == min(e.seconds for e in view.entries if e.seconds is not None)
    assert {t.decision for e in view.entries for t in e.thoughts} == {"accepted", "rejected"}
    end = time.monotonic() + 300
    while not views and time.monotonic() < end:
        time.sleep(0.02)
    assert [each.spec.id for each in views] == [job]
    again = game()  # the line that it found is a line of the game
    for move in view.best.moves:
        again.play(move)
    assert again.current.program.hash == view.best.hash


def test_pause_step_stop_resume_and_kill_give_the_same_run(jobs: Jobs) -> None:
    job = jobs.start(spec("sampling-edges", 2000))
    jobs.pause(job)
    held = until(jobs, job, lambda view: view.state == "paused")
    jobs.step(job)
    until(jobs, job, lambda view: len(view.entries) > len(held.entries) and view.state == "paused")
    with pytest.raises(JobRefused, match="Stop this run before"):
        jobs.delete(job)
    jobs.stop(job)
    stopped = until(jobs, job, ended)
    assert stopped.state == "stopped" and stopped.resumable
    with pytest.raises(JobRefused, match="does not go on here"):
        jobs.step(job)

    jobs.resume(job)
    more = until(jobs, job, lambda view: len(view.entries) > len(stopped.entries) + 20)
    pid = jobs._processes.pid(job)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    killed = until(jobs, job, ended)
    assert killed.state == "interrupted" and "SIGKILL" in killed.message
    count = len(killed.entries)
    assert count >= len(more.entries)
    assert plain(written(jobs, job)) == plain(expected("sampling-edges", 2000, count))


@pytest.mark.thorough  # killed and found again: above
def test_a_run_ends_with_its_app_and_is_found_again(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs.start(spec("random-edges", 5000))
    until(jobs, job, lambda view: len(view.entries) > 3)
    other = Jobs(tmp_path / "jobs")  # another app of the same user
    assert [view.state for view in other.all()] == ["elsewhere"]
    with pytest.raises(JobRefused, match="not one that was stopped"):
        other.resume(job)
    jobs._processes.hang_up(job)  # as it is when the app is killed
    until(other, job, ended)
    assert [view.state for view in other.all()] == ["interrupted"]
    other.delete(job)
    assert other.all() == []


def test_what_cannot_be_run_is_told_in_a_sentence(jobs: Jobs) -> None:
    for wrong, sentence in (
        (spec("clever"), "There is no agent 'clever'."),
        (spec(evaluations=0), "Give a budget of 1 to 100000 programs."),
    ):
        with pytest.raises(JobRefused, match=sentence):
            jobs.start(wrong)
    with pytest.raises(JobRefused, match="There is no run with this id here"):
        jobs.view("../../etc")
    assert jobs.all() == []


@pytest.mark.parametrize("target", ["cuda", "hip"])
def test_what_has_no_clock_here_is_not_timed_as_something_else(jobs: Jobs, target: str) -> None:
    other = Game.new(kernels.get("add").program((8, 32)), "add", "8x32", target)
    with pytest.raises(JobRefused, match=f"nothing here times those for {target}"):
        jobs.start(JobSpec.of(other, "annealing-edges", 0, 8, 60.0, "machine"))
    assert not JobSpec.of(other, "annealing-edges", 0, 8, 60.0, "count").fault


def test_a_run_says_beside_which_it_was_begun_and_an_older_one_beside_none() -> None:
    second = spec(seed=1, beside=spec().id)
    told = second.to_json()
    assert JobSpec.from_json(told) == second and not second.fault
    del told["beside"]
    assert JobSpec.from_json(told).beside == ""
    assert "no valid id" in spec(beside="../x").fault


def test_a_journal_survives_half_a_line_and_what_is_no_entry(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    lines = expected("heuristic", 5)
    with Writer(path, spec("heuristic")) as writer:
        for line in lines:
            writer.write(line)
        writer.write({"event": 99, "seconds": "soon"})
    with path.open("ab") as file:
        file.write(b'{"event": 100')
    journal = Journal(path)
    assert [e.number for e in journal.entries] == [line["event"] for line in lines]
    with Writer(path) as writer:
        writer.state("done")
    journal.refresh()
    assert journal.state == "done"
    (tmp_path / "other").write_text("{}\n")
    with pytest.raises(ValueError, match="other is no journal of a run"):
        Journal(tmp_path / "other")


def test_what_an_agent_found_becomes_a_variation_of_the_game(service) -> None:
    saved = service.new_game("pair", "64", "reassoc")
    first = service.branch(saved, 0, ["split_scope t@0 8"], go=True)
    second = service.branch(saved, 0, ["join_scopes t@0", "unroll t@0"])
    assert service.times(saved) == {}  # nobody has looked at it yet
    reopened = Game.from_text(service.game_text(saved))
    assert reopened.cursor == first
    assert [str(p.move) for p in reopened.line(second)[1:]] == ["join_scopes t@0", "unroll t@0"]
    with pytest.raises(Refused, match="no longer in the game"):
        service.branch(saved, 77, ["unroll t@0"])
    with pytest.raises(IllegalMove, match="q@9"):
        service.branch(saved, 0, ["split_scope t@0 4", "unroll q@9"])
    assert Game.from_text(service.game_text(saved)).to_text() == reopened.to_text()
