"""Puzzles of one move: what makes a position one, how they are rated, and those that come with the Dojo."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agents.cli import app
from agents.puzzles.sources import NoSource, sources
from agents.puzzles.tries import tries
from dojo_core.game import Game
from dojo_core.measure.records import Records
from dojo_core.measure.speed import Speed
from dojo_core.opening import named_game
from dojo_core.program.expressions import TextError
from dojo_core.program.tree import Program
from dojo_core.school import practice
from dojo_core.school.check import check, played, unreached
from dojo_core.school.daily import PUZZLES_FOLDER, daily
from dojo_core.school.lesson import Lesson, Step, read_lesson
from dojo_core.school.panel import panel
from dojo_core.school.progress import Progress
from dojo_core.school.puzzles import Miner, Source, answers, file_text
from dojo_core.school.ratings import (
    Attempt,
    Rating,
    chance,
    fitted,
    ratings_in,
    read_ratings,
    replayed,
    updated,
    write_ratings,
)
from dojo_core.school.school import LESSONS_FOLDER, School, open_school
from dojo_core.school.tutoring import Tutor, TutoringSession
from dojo_core.service import Service
from dojo_core.service.wiring import KernelLibrary, RecordStore
from dojo_core.study.times import Times, times_file, write_times
from dojo_core.targets.cpu import limits
from dojo_core.targets.cpu.processor import known
from tests.stand_ins import Bench

FILES = sorted(PUZZLES_FOLDER.glob("*.md"))


def speeds(*intervals: tuple[float, float]) -> dict[str, Speed]:
    """Moves a, b, … by the ends of their intervals, and a dozen that change nothing."""
    told = [Speed((low + high) / 2, low, high) for low, high in (*intervals, *[(0.98, 1.02)] * 16)]
    return {chr(ord("a") + number): speed for number, speed in enumerate(told)}


@pytest.mark.parametrize(
    ("intervals", "found"),
    [
        (((1.93, 2.1), (0.9, 1.2)), (1.9, ("a",))),
        (((1.7, 1.8), (1.75, 1.9)), (1.7, ("b", "a"))),  # two are right, the larger gain first
        (((1.2, 1.4),), None),  # it may gain less than 1.3
        (((1.9, 2.1), (1.2, 1.6)), None),  # its neighbour may gain nearly as much
        (((1.9, 2.1), (0.9, 2.0)), None),  # noise leaves open what its neighbour gains
        (((1.9, 2.0),) * 3, None),  # of 19 moves two may be right
    ],
)
def test_few_moves_are_right_and_all_others_clearly_gain_less(
    intervals: tuple[tuple[float, float], ...], found: tuple[float, tuple[str, ...]] | None
) -> None:
    assert answers(speeds(*intervals)) == found


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A puzzle mined on Snitch's model: arrays as streams, then the FPU's own loop."""
    game = named_game("add", "4x8", "snitch", "reassoc")
    for move in ("ssr z@0", "frep z@1"):
        game.play(move)
    miner = Miner()
    found = list(miner.mine(Source("a game", game), 1))
    assert [list(miner.mine(Source("again", game), 5)), len(found)] == [[], 1]
    miner.close()
    file = tmp_path_factory.mktemp("mined") / "mined.md"
    file.write_text(file_text(found))
    times_file(file).write_text(write_times([found[0].times]))
    return file


def read(file: Path) -> Lesson:
    return read_lesson(file.read_text(), file)


@pytest.mark.parametrize(("faster", "asked"), [((2.1, 2.0), 2.0), ((2.0, 1.7), 1.7), ((2.0, 1.0), None)])
def test_of_what_is_timed_twice_the_same_moves_have_to_be_right_again(
    faster: tuple[float, float], asked: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter(faster)

    def timed(_: Miner, game: Game, program: Program, ends: Sequence[Program]) -> dict[str, Speed]:
        fast = next(looks)
        told = {end.hash: Speed(1.0, 0.98, 1.02) for end in ends}
        return told | {ends[0].hash: Speed(fast, 0.99 * fast, 1.01 * fast)}

    monkeypatch.setattr(Miner, "_timed", timed)
    game = named_game("add", "8x32", "cpu", "reassoc")
    rows: dict[str, dict[str, list[Any]]] = {game.start.hash: {}}  # a candidate whose moves have no times
    source = Source("a game", game, (Times("a" * 16, "A machine", "2026-11-27", speeds=rows),))
    miner = Miner(twice=True)
    found = [puzzle.asked for puzzle in miner.mine(source, 1)]
    miner.close()
    assert found == ([] if asked is None else [pytest.approx(asked, rel=0.05)])
    assert next(looks, None) is None


def test_what_was_mined_is_a_sound_step_that_tells_where_it_comes_from(mined: Path) -> None:
    lesson = read(mined)
    (step,) = lesson.steps
    assert check(lesson) == []
    assert step.begin.target == "snitch" and step.solution == ("ssr z@0",) and step.asked and step.asked > 2
    assert step.origin is not None and step.origin.words == "a game, after 0 of 2 moves"
    assert [str(each.move) for each in step.origin.game().main_line(0)[1:]] == ["ssr z@0", "frep z@1"]
    (wrong,) = unreached(step, played(step, step.first_idea)[0])
    assert wrong[1].startswith("it gains ")
    assert tries(step, "heuristic") == 1 < tries(step, "random")


def test_a_wrong_record_is_told(mined: Path, tmp_path: Path) -> None:
    file = tmp_path / "other.md"
    file.write_text(mined.read_text())
    assert any("is not recorded" in str(fault) for fault in check(read(file)))
    times = json.loads(times_file(mined).read_text())
    (rows,) = times["machines"][0]["speeds"].values()
    for row in rows.values():
        row[1:4] = [9.0, 1.0, 10.0]
    times_file(file).write_text(json.dumps(times))
    assert any("leaves open" in str(fault) for fault in check(read(file)))
    result = CliRunner().invoke(app, ["puzzles", "check", str(file), "--again"])
    assert result.exit_code == 1 and "9 are recorded" in " ".join(result.output.split())


def test_glickos_own_example() -> None:
    """Glickman 1999: a player of 1500, deviation 200, against three others."""
    player = Rating(1500, 200)
    others = (Rating(1400, 30), Rating(1550, 100), Rating(1700, 300))
    assert [round(chance(player, other), 3) for other in others] == [0.639, 0.432, 0.303]
    won, lost = updated(player, others[0], 1), updated(player, others[0], 0)
    assert won.value > player.value > lost.value and won.deviation == lost.deviation < player.deviation


def test_attempts_move_both_sides_in_their_order() -> None:
    learners, puzzles = replayed(
        [Attempt("me", "a", True), Attempt("me", "b", False)], {"b": Rating(1200, 60)}
    )
    assert learners["me"].value < 1500 < updated(Rating(), Rating(), 1).value
    assert puzzles["a"].value < 1500 and puzzles["b"].value > 1200 and set(learners) == {"me"}


def test_a_puzzle_that_programs_need_more_tries_for_is_rated_higher() -> None:
    ratings = fitted({"easy": {"random": 5, "pass": 1}, "hard": {"random": 40, "pass": 12}})
    assert ratings.puzzles["hard"].value > ratings.puzzles["easy"].value
    assert ratings.agents["pass"].value > ratings.agents["random"].value
    again = read_ratings(write_ratings(ratings))
    assert again == ratings
    with pytest.raises(TextError, match="dojo puzzles rate"):
        read_ratings('{"dojo ratings": 1, "agents": {}, "puzzles": {"a": {"value": "much"}}}')


def test_each_day_has_its_puzzle_and_none_comes_again_before_all_have_come() -> None:
    first = date(2026, 11, 27)
    count = sum(len(read(file).steps) for file in FILES)
    days = [daily(first + timedelta(days=day)) for day in range(count)]
    assert len(set(days)) == count and daily(first + timedelta(days=count)) == days[0]


def test_what_comes_with_the_dojo_can_be_read_and_each_is_rated() -> None:
    lessons = [read(file) for file in FILES]
    steps = [step for lesson in lessons for step in lesson.steps]
    assert len(steps) >= 60 and len({step.key for step in steps}) == len(steps)
    assert {step.begin.target for step in steps} == {"cpu", "snitch"}
    assert set(ratings_in(PUZZLES_FOLDER).puzzles) == {step.key for step in steps}
    for lesson in lessons:
        for step in lesson.steps:
            assert step.asked and step.gains and step.gains.machine and step.gains.date and step.origin
    for lesson in lessons:  # a sample; make test has no time for all: dojo puzzles check
        assert check(Lesson(lesson.id, lesson.title, [], True, lesson.steps[:2])) == []


def test_those_for_processors_can_be_solved_on_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "host", lambda: known("x86-64-v2"))
    for step in read(PUZZLES_FOLDER / "processors.md").steps:
        assert unreached(step, played(step, step.solution)[0]) == [], step.title


# ---------------------------------------------------------------------------- on the page Learn


@pytest.fixture
def tutor(mined: Path, tmp_path: Path) -> Iterator[Tutor]:
    school = School((*open_school([LESSONS_FOLDER]).lessons[1:2], read(mined)), open_school([]).glossary)
    with Records(tmp_path / "records.sqlite") as records:
        service = Service(RecordStore(records), KernelLibrary(), Bench)
        progress = Progress(tmp_path / "school.sqlite")
        yield Tutor(service, school, progress)
        progress.close()
        service.close()


def seated(tutor: Tutor, learner: str) -> TutoringSession:
    session = TutoringSession(learner, tutor.service.player(None))
    tutor.open(session, "mined")
    return session


def play(tutor: Tutor, session: TutoringSession, move: str) -> dict[str, object]:
    """Play a move on the board; what the panel says of the puzzle then."""
    table = session.player.table
    assert table is not None
    number = max(session.player.acknowledged.values(), default=0) + 1
    at = {"game": table.game.id, "position": table.game.cursor}
    tutor.service.handle(session.player, "board", [{"seq": number, "kind": "play", **at, "move": move}])
    return shown(tutor, session)


def shown(tutor: Tutor, session: TutoringSession) -> dict[str, object]:
    step = panel(tutor, session)["step"]
    return {**step["puzzle"], "reached": step["reached"]}


def the_step(tutor: Tutor) -> Step:
    return tutor.school.lessons[-1].steps[0]


def test_the_first_move_is_the_attempt_and_times_are_kept_back_until_then(tutor: Tutor) -> None:
    (wrong,), (right,) = the_step(tutor).first_idea, the_step(tutor).solution
    session = seated(tutor, "one")
    assert session.secret
    told = play(tutor, session, wrong)
    assert (told["tried"], told["solved"], told["reached"], session.secret) == (True, False, False, False)
    tutor.handle(session, {"kind": "reset"})
    told = play(tutor, session, right)
    assert (told["solved"], told["reached"]) == (False, True)
    other = seated(tutor, "another")
    assert play(tutor, other, right)["solved"] is True
    ratings = {
        name: practice.standing(tutor.school, tutor.progress, name).rating for name in ("one", "another")
    }
    assert ratings["another"].value > 1500 > ratings["one"].value


def test_a_hint_is_not_rated_and_the_solution_loses(tutor: Tutor) -> None:
    session = seated(tutor, "one")
    tutor.handle(session, {"kind": "hint"})
    told = play(tutor, session, the_step(tutor).solution[0])
    assert (told["tried"], told["solved"], told["reached"]) == (True, None, True)
    assert tutor.progress.attempts() == []
    other = seated(tutor, "another")
    tutor.handle(other, {"kind": "solution"})
    assert [each.solved for each in tutor.progress.attempts()] == [False]


def test_after_a_puzzle_come_the_next_its_lesson_and_its_game(tutor: Tutor) -> None:
    session = seated(tutor, "one")
    assert shown(tutor, session)["next"] is None  # there is no other
    game = tutor.handle(session, {"kind": "origin"})
    assert game is not None and tutor.service.copied(game)[0].title.startswith("add 4x8")
    at = practice.standing(tutor.school, tutor.progress, "one")
    assert practice.following(tutor.school, at) == (tutor.school.lessons[-1], the_step(tutor))
    fusion = tutor.school.lessons[0]
    solving = next(step for step in fusion.steps if step.solution == ("join_scopes t@0",))
    assert practice.teaches(tutor.school, solving) == (fusion, solving)


# ---------------------------------------------------------------------------- where games come from


def test_games_are_found_in_logs_recordings_evidence_and_lines(tmp_path: Path) -> None:
    played = {"kernel": "relu", "shape": "4x8", "policy": "reassoc", "target": "cpu"}
    head = {"dojo run": 1, **played, "before": [], "agent": "annealing-edges"}
    slow = {"verified": True, "seconds": 2.0, "line": ["unroll y@1"]}
    fast = {"verified": True, "seconds": 1.0, "line": ["split_scope y@1 4", "vectorize y@2"]}
    log = tmp_path / "run.jsonl"
    log.write_text("".join(json.dumps(each) + "\n" for each in (head, slow, fast)))
    evidence = tmp_path / "evidence.json"
    evidence.write_text(json.dumps({"runs": [{"kernel": "add", "shape": "4x8", "line": ["ssr z@0"]}] * 2}))
    recording = PUZZLES_FOLDER.parents[1] / "agents" / "recordings" / "softmax-by-hand.jsonl"
    found = [
        *sources(str(log)),
        *sources(str(evidence), "snitch"),
        *sources("relu:4x64"),
        *sources(str(recording)),
    ]
    assert [(each.words, each.game.target) for each in found] == [
        ("a run of annealing-edges", "cpu"), ("a run of perfllm", "snitch"), ("the line relu", "cpu"),
        ("a run of by hand", "cpu"),
    ]  # fmt: skip
    assert [str(each.move) for each in found[0].game.main_line(0)[1:]] == fast["line"]
    begun = CliRunner().invoke(app, ["study", "begin", str(log)])
    assert "# relu 4x8: a run of annealing-edges" in begun.output and "vectorize y@2" in begun.output
    with pytest.raises(NoSource, match="neither a file nor a line"):
        list(sources("no-such-line"))
