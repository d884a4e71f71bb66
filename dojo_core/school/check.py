"""Is a lesson sound? Solutions are played, goals asked before and after, puzzles tried by their first ideas.

``check`` measures nothing. ``measure`` times starts, solutions and first ideas on this machine: slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from dojo_core.game import Game, GameFull
from dojo_core.measure.measurement import Measurement, seconds_text
from dojo_core.moves import REGISTRY, IllegalMove, MoveSyntax, apply, legal_moves, why
from dojo_core.program.expressions import TextError
from dojo_core.program.tree import Program
from dojo_core.recipes import RECIPES, play
from dojo_core.school.goals import TOLERANCE, Goal
from dojo_core.school.lesson import TRY, Lesson, Origin, Step
from dojo_core.school.puzzles import MOST_RIGHT
from dojo_core.targets.cpu.measurer import Effort, Measurer, Workload

HINTS = 2  # levels of help that a step with a goal has at least


@dataclass(frozen=True)
class Fault:
    """What is wrong in a lesson's file, and what to do."""

    line: int
    step: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"line {self.line}, {self.step}: {self.message}\n{self.remedy}"


class Unplayable(ValueError):
    """A solution or an idea that stops; the message says where and why."""


def played(step: Step, moves: tuple[str, ...]) -> tuple[Game, frozenset[str]]:
    """A game of a step with moves played, and those that were tried and refused. Raises Unplayable."""
    game = step.game()
    tried: set[str] = set()
    for move in moves:
        if move.startswith(TRY):
            words = move.removeprefix(TRY).strip()
            if why(game.current.program, words, game.target, game.policy).legal:
                raise Unplayable(f"{words} is to be refused, and is legal here.")
            tried.add(words)
            continue
        try:
            play(game, move, RECIPES)
        except (IllegalMove, MoveSyntax, GameFull) as fault:
            message = str(fault)  # a refusal names its move, a recipe's is another one
            raise Unplayable(message if message.startswith(f"{move}: ") else f"{move}: {message}") from fault
    return game, frozenset(tried)


def check(lesson: Lesson) -> list[Fault]:
    """All that is wrong, in the order of the steps; nothing is measured."""
    return [fault for step in lesson.steps for fault in _check_step(step, lesson.puzzles)]


def _check_step(step: Step, puzzle: bool) -> Iterator[Fault]:
    def fault(message: str, remedy: str) -> Fault:
        return Fault(step.line, step.title, message, remedy)

    for note in step.notes:
        if note.about.split(" ")[0] not in (*REGISTRY, *RECIPES):
            yield fault(
                f"a note is about {note.about!r}, which is no move", "Name a move, or a kind of move."
            )
    if not step.text:
        yield fault("the step says nothing", "Write what it is about and what to do.")
    if not step.goals:
        return
    if not step.solution:
        yield fault("there is no solution", "Add a block ```solution with its moves.")
        return
    if len(step.hints) < HINTS:
        yield fault(
            f"it has {len(step.hints)} of {HINTS} hints", "Add a block ```hint for each level of help."
        )
    begin = step.situation(step.game())
    for goal in step.goals:
        reached = goal.look(begin).reached
        if reached and not _holds_from_the_start(goal):
            yield fault(
                f"{goal.text!r} is reached at the start", "Ask for something that is still to be done."
            )
        if reached is False and goal.kept:
            yield fault(f"{goal.text!r} does not hold at the start", "Leave 'still' out.")
    try:
        game, tried = played(step, step.solution)
    except Unplayable as stopped:
        yield fault(f"the solution stops: {stopped}", "Correct the solution or the position.")
        return
    for goal, state in unreached(step, game, tried):
        yield fault(
            f"the solution does not reach {goal.text!r} ({state})", "Correct the solution or the goal."
        )
    if step.asked is not None:
        yield from _check_answers(step, step.asked, fault)
    if step.origin is not None:
        yield from _check_origin(step, step.origin, fault)
    if puzzle:
        yield from _check_puzzle(step, fault)


def _holds_from_the_start(goal: Goal) -> bool:
    """A goal that keeps something as it is, or limits the moves, beside one that is to be reached."""
    return goal.kept or goal.form.words == "at most N moves"


def unreached(step: Step, game: Game, tried: frozenset[str] = frozenset()) -> list[tuple[Goal, str]]:
    """The goals that a position does not reach, with what stands there; what needs times is left out."""
    situation = step.situation(game, tried)
    looks = [(goal, goal.look(situation)) for goal in step.goals]
    return [(goal, seen.now or "not reached") for goal, seen in looks if seen.reached is False]


def solves(step: Step, game: Game) -> bool:
    return not unreached(step, game)


def _check_answers(step: Step, asked: float, fault: Callable[[str, str], Fault]) -> Iterator[Fault]:
    """Of a puzzle of one move: what its moves gain is recorded, and leaves none of them open."""
    gains = step.gains.by_program if step.gains is not None else {}
    if not gains:
        yield fault(
            "what its moves gain is not recorded", "Mine it: dojo puzzles mine, with the file beside."
        )
        return
    right = [gain for gain in gains.values() if gain.low >= asked]
    if any(gain.low < asked <= gain.high for gain in gains.values()):
        yield fault(f"the noise leaves open whether a move gains {asked:g} times", "Ask for more, or less.")
    if len(right) > MOST_RIGHT:
        yield fault(
            f"{len(right)} moves gain {asked:g} times", "Ask for more: guessing is no way to solve it."
        )


def _check_origin(step: Step, origin: Origin, fault: Callable[[str, str], Fault]) -> Iterator[Fault]:
    """The game that a puzzle was found in leads to its position."""
    try:
        game = origin.game()
    except (TextError, ValueError) as stopped:
        yield fault(f"its game stops: {stopped}", "Correct the block game, or leave it out.")
        return
    if game.current.program.hash != step.begin.current.program.hash:
        yield fault("its game does not lead to its position", "Correct the number behind ```game.")


def _check_puzzle(step: Step, fault: Callable[[str, str], Fault]) -> Iterator[Fault]:
    """A puzzle is not solved by the first idea, nor by any move alone."""
    if not step.first_idea:
        yield fault(
            "it has no first idea", "Add a block ```first-idea: the move that one plays first, in vain."
        )
    elif not any(goal.measured for goal in step.goals):
        try:
            game, _ = played(step, step.first_idea)
        except Unplayable:
            pass  # refused: that is what the puzzle is about
        else:
            if solves(step, game):
                yield fault("the first idea solves it", "Ask for more, or name another first idea.")
    if step.asked is not None:
        return
    if all(goal.measured or goal.kept for goal in step.goals):  # only a clock can say: measure --greedy
        return
    for move, program in single_moves(step):
        game = step.game()
        replay = Game.new(program, target=game.target, policy=game.policy)
        situation = step.situation(replay)
        if all(goal.look(situation).reached is not False for goal in step.goals if not goal.measured):
            yield fault(f"one move solves it: {move}", "Ask for something that needs a plan.")
            return


def single_moves(step: Step) -> Iterator[tuple[str, Program]]:
    """Every legal move of the start and what it leads to."""
    program = step.begin.current.program
    target, policy = step.begin.target, step.begin.policy
    for move in legal_moves(program, target, policy):
        yield str(move), apply(program, move, target=target, policy=policy)


# ---------------------------------------------------------------------------- times


@dataclass(frozen=True)
class Timed:
    """What measuring a step came to: a sentence of its times, and what is wrong with them."""

    step: Step
    told: str
    fault: str = ""


def timed_steps(lesson: Lesson) -> list[Step]:
    """The steps that promise a gain."""
    return [step for step in lesson.steps if promise(step) is not None]


def promise(step: Step) -> float | None:
    """How many times faster than its start a step's solution must be."""
    goals = [float(goal.arguments[0]) for goal in step.goals if goal.measured and not goal.negated]
    return max([*goals, *([step.gain] if step.gain else [])], default=None)


def measure(step: Step, measurer: Measurer, greedy: bool = False) -> Timed:
    """Time the start, the solution, the first idea and (``greedy``) each single legal move."""
    wanted = promise(step)
    assert wanted is not None
    try:
        end = played(step, step.solution)[0].current.program
    except Unplayable as stopped:
        return Timed(step, "", f"The solution stops: {stopped}")
    begin = step.begin.current.program
    ideas: dict[str, Program] = {}
    if step.first_idea:
        with suppress(Unplayable):
            ideas[" ".join(step.first_idea)] = played(step, step.first_idea)[0].current.program
    if greedy:
        ideas |= dict(single_moves(step))
    programs = {p.hash: p for p in (begin, end, *ideas.values())}
    workload = Workload(begin, None, step.begin.policy, step.begin.target)
    measurements: dict[str, Measurement] = {}
    for _ in range(2):  # a slow minute of the machine must not decide: the shorter time counts
        for each in measurer.measure(workload, list(programs.values()), Effort.QUICK, fresh=True):
            old = measurements.get(each.program_hash)
            if old is None or (each.seconds or 1e9) < (old.seconds or 1e9):
                measurements[each.program_hash] = each
    first, last = measurements[begin.hash], measurements[end.hash]
    if first.seconds is None or last.seconds is None:
        bad = first if first.seconds is None else last
        return Timed(step, "", f"It was not measured: {bad.message or bad.status}")
    gain = first.seconds / last.seconds
    words = (
        f"{seconds_text(first.seconds)} → {seconds_text(last.seconds)}, {gain:.2f} times; promised {wanted:g}"
    )
    if gain < wanted * (1 - TOLERANCE):
        return Timed(step, words, f"The solution is {gain:.2f} times as fast, {wanted:g} are promised.")
    for idea, program in ideas.items():
        seconds = measurements[program.hash].seconds
        if (
            seconds is not None
            and first.seconds / seconds >= wanted * (1 - TOLERANCE)
            and solves_measured(step, program)
        ):
            return Timed(
                step, words, f"One idea is enough: {idea} is {first.seconds / seconds:.2f} times as fast."
            )
    return Timed(step, words)


def solves_measured(step: Step, program: Program) -> bool:
    """Does a position reach all goals that need no time?"""
    return solves(step, Game.new(program, target=step.begin.target, policy=step.begin.policy))
