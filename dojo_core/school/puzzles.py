"""Puzzles of one move: positions of games in which one move gains, and its neighbours do not.

Every legal move of a position is timed in turns with the position, so that each gain comes with the interval
that holds it. Few moves are right, those whose interval lies above what is asked; the intervals of all others
lie clearly below. Where the noise of a machine leaves one move open, the position is no puzzle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dojo_core.game import Game, Position
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.speed import DRIFT_BUSY, Speed, apart, in_turns
from dojo_core.moves import apply, legal_moves
from dojo_core.program.tree import Program
from dojo_core.school.gains import below, gains_of, puzzle_key
from dojo_core.school.review import WHY
from dojo_core.service.analysis import words_for
from dojo_core.study.times import Times, clock_of, today
from dojo_core.targets.measurers import Measurers
from dojo_core.targets.registry import backend

GAIN = 1.3  # what a right move gains at least, by the lower end of its interval
CLEAR = 1.25  # that lower end over the upper end of every other move's interval
MOST_RIGHT = 4  # moves that are right
RARE = 8  # legal moves for each that is right: guessing is no way to solve it
MOST_MOVES = 160  # legal moves of a position that are timed; one with more is passed over
LOOKS = 8  # at a position: noise that they leave is the machine's


@dataclass(frozen=True)
class Source:
    """A game that puzzles are looked for in. ``words`` tell where it comes from; ``times`` are those of its
    positions' moves that are known."""

    words: str
    game: Game
    times: tuple[Times, ...] = ()


@dataclass(frozen=True)
class Puzzle:
    """A position of a game with the moves that gain. ``asked``: what a right move gains at least; ``others``:
    what the best of the others may gain at most."""

    source: Source
    ply: int
    position: Position
    asked: float
    right: tuple[str, ...]  # the largest gain first
    gains: Mapping[str, Speed]  # of each legal move that was timed, by its text
    times: Times
    others: float
    legal: int

    @property
    def game(self) -> Game:
        return self.source.game

    @property
    def title(self) -> str:
        name = self.game.kernel or "A kernel of one's own"
        return f"{name} {self.game.shape}".strip() + f", move {self.ply + 1}"


def answers(gains: Mapping[str, Speed], gain: float = GAIN) -> tuple[float, tuple[str, ...]] | None:
    """(what is asked, the moves that gain it): the few moves whose gains lie clearly above all others; None
    where there are none."""
    ordered = sorted(gains, key=lambda move: -gains[move].low)
    for count in range(1, min(MOST_RIGHT, len(ordered) // RARE) + 1):
        right, others = ordered[:count], ordered[count:]
        least = gains[right[-1]].low
        if least < gain:
            return None
        if least >= CLEAR * max(gains[move].high for move in others):
            return below(least), tuple(sorted(right, key=lambda move: -gains[move].value))
    return None


class Miner:
    """Looks through games, each position once. Close it when done.

    With ``twice`` what was found is timed once more from the beginning, and is a puzzle only where the same
    moves are right again: one slow minute of a machine makes none.
    """

    def __init__(
        self,
        gain: float = GAIN,
        looked: Callable[[str], None] = lambda words: None,
        twice: bool = False,
    ) -> None:
        self.gain, self.looked, self.twice = gain, looked, twice
        self._measurers = Measurers(None)
        self._seen: set[str] = set()  # positions that were looked at
        self._alike: set[tuple[object, ...]] = set()  # kernel, target and right moves of the puzzles so far

    def close(self) -> None:
        self._measurers.close()

    def mine(self, source: Source, most: int) -> Iterator[Puzzle]:
        """So many puzzles of a game's main line at most, none that is like one that was found before: the
        same position, or the same right moves of the same kernel."""
        found = 0
        for ply, position in self._candidates(source):
            if found == most:
                return
            key = puzzle_key(position.program.hash, source.game.target, source.game.policy)
            if key in self._seen:
                continue
            self._seen.add(key)
            puzzle = self._look(source, ply, position)
            if puzzle is None:
                continue
            alike = (
                source.game.kernel or source.game.start.hash,
                source.game.target,
                frozenset(puzzle.right),
            )
            if alike in self._alike:
                continue
            self._alike.add(alike)
            found += 1
            yield puzzle

    def _candidates(self, source: Source) -> Iterator[tuple[int, Position]]:
        """(moves before it, position), of the line's positions those after which the next move gains, as far
        as times of different moments tell."""
        line = source.game.main_line(0)
        known = {name for times in source.times for name in times.speeds}
        if known:
            yield from ((ply, each) for ply, each in enumerate(line) if each.program.hash in known)
            return
        self.looked(f"{source.words}: {len(line)} positions are timed")
        workload = Workload(source.game.start, source.game.kernel, source.game.policy, source.game.target)
        programs = list({each.program.hash: each.program for each in line}.values())
        measured = self._measurers.of(source.game.target).measure(workload, programs, Effort.QUICK)
        seconds = {each.program_hash: each.seconds for each in measured if each.verified}
        for ply, (position, after) in enumerate(pairwise(line)):
            before, then = seconds.get(position.program.hash), seconds.get(after.program.hash)
            if before and then and before >= self.gain * then:
                yield ply, position

    def _look(self, source: Source, ply: int, position: Position) -> Puzzle | None:
        game, program = source.game, position.program
        legal = legal_moves(program, game.target, game.policy)
        if not RARE < len(legal) <= MOST_MOVES:
            return None
        ends = {str(move): _after(game, program, str(move)) for move in legal}
        different = list({end.hash: end for end in ends.values()}.values())

        def by_move(speeds: Mapping[str, Speed]) -> dict[str, Speed]:
            return {move: speeds[end.hash] for move, end in ends.items() if end.hash in speeds}

        known = next((each for each in source.times if _complete(each, program, ends)), None)
        if known is not None:
            machine, date = (known.key, known.machine), known.date
            speeds: Mapping[str, Speed] | None = gains_of([known], program.hash).by_program
        else:
            self.looked(f"{source.words}, after {ply} moves: {len(legal)} legal moves are timed")
            machine, date = clock_of([game]), today()
            speeds = self._timed(game, program, different)
        if speeds is None:
            return None
        gains = by_move(speeds)
        told = answers(gains, self.gain)
        if told is None:
            return None
        asked, right = told
        if self.twice and not backend(game.target).clock().exact:
            self.looked(f"{source.words}, after {ply} moves: they are timed once more")
            again = self._timed(game, program, different)
            held = None if again is None else answers(by_move(again), self.gain)
            if held is None or set(held[1]) != set(right):
                return None
            asked = min(asked, held[0])
        others = max(gains[move].high for move in gains if move not in right)
        times = Times(*machine, date, speeds={program.hash: {name: _row(s) for name, s in speeds.items()}})
        return Puzzle(source, ply, position, asked, right, gains, times, others, len(legal))

    def _timed(self, game: Game, program: Program, ends: Sequence[Program]) -> Mapping[str, Speed] | None:
        """What moves gain at a position, by the hash of what they lead to; None once it can be no puzzle.
        What does not run is left out: no such move is right."""
        workload = Workload(game.start, game.kernel, game.policy, game.target)
        measurer = self._measurers.of(game.target)
        (here,) = measurer.measure(workload, [program], Effort.NORMAL)
        if here.seconds is None or not here.verified:
            return None
        against = None if backend(game.target).clock().exact else program
        rounds: dict[str, tuple[float, ...]] = {}
        speeds: dict[str, Speed] = {}
        waiting = list(ends)
        for _ in range(LOOKS):
            looked_at = {end.hash for end in waiting}
            for each in measurer.measure(workload, waiting, Effort.QUICK, against=against):
                name = each.program_hash
                if each.seconds is None or not each.verified or name not in looked_at:
                    continue
                if against is None:
                    value = here.seconds / each.seconds
                    speeds[name] = Speed(value, value, value, 0, True)
                    continue
                rounds[name] = rounds.get(name, ()) + each.ratios
                if len(rounds[name]) > 1:
                    speeds[name] = in_turns(rounds[name], final=True)
                else:  # so slow that no round was spent on it
                    speeds[name] = apart(here.seconds, each.seconds, DRIFT_BUSY, final=True)
            if answers(speeds, self.gain) is not None:
                return speeds
            if answers({name: _sure(speed) for name, speed in speeds.items()}, self.gain) is None:
                return None  # nor would it be one if each interval were a point
            waiting = [
                end for end in ends if end.hash in speeds and speeds[end.hash].high * CLEAR >= self.gain
            ]
        return None


def _complete(times: Times, program: Program, ends: Mapping[str, Program]) -> bool:
    """Is every legal move of a position timed, or known not to run?"""
    rows = times.speeds.get(program.hash, {})
    return all(end.hash in rows or end.hash in times.failed for end in ends.values())


def _sure(speed: Speed) -> Speed:
    return Speed(speed.value, speed.value, speed.value, speed.rounds, True)


def _row(speed: Speed) -> list[Any]:
    """As files of times have it."""
    return [speed.verdict, *(float(f"{x:.4g}") for x in (speed.value, speed.low, speed.high)), speed.rounds]


def _after(game: Game, program: Program, move: str) -> Program:
    return apply(program, move, target=game.target, policy=game.policy).lean()


# ---------------------------------------------------------------------------- as a lesson's step


HEAD = """# Puzzles: the one move
kind: puzzles
about: Positions of games and runs in which one move gains, and its neighbours do not.

"""


def file_text(puzzles: Iterable[Puzzle]) -> str:
    """Puzzles as a file of a lesson's form (docs/lessons.md); what they gain stands in a file beside it."""
    titles: Counter[str] = Counter()
    texts = []
    for puzzle in puzzles:
        titles[puzzle.title] += 1
        number = titles[puzzle.title]
        texts.append(puzzle_text(puzzle, f"{puzzle.title} ({number})" if number > 1 else puzzle.title))
    return HEAD + "\n".join(texts)


def puzzle_text(puzzle: Puzzle, title: str) -> str:
    """A puzzle as a step."""
    game, best = puzzle.game, puzzle.right[0]
    kind, _, where = best.partition(" ")
    count = len(puzzle.right)
    which = "one makes" if count == 1 else f"{count} make"
    exact = backend(game.target).clock().exact
    idea = max((move for move in puzzle.gains if move not in puzzle.right),
               key=lambda move: puzzle.gains[move].value)  # fmt: skip
    gained = puzzle.gains[best]
    interval = "exactly" if exact else f"{gained.low:.2f} to {gained.high:.2f}"
    why = WHY.get(kind, words_for(kind))
    source = f"{puzzle.source.words}, after {puzzle.ply} of {len(game.main_line(0)) - 1} moves"
    return "\n".join(
        [
            f"## {title}",
            f"policy: {game.policy}",
            f"target: {game.target}",
            f"source: {source}",
            "",
            f"{puzzle.legal} moves are legal here, and {which} the program at least {puzzle.asked:g} times "
            f"as fast at once. None of the others brings more than {max(1.0, puzzle.others):.2f} times. "
            "Which would you play?",
            "",
            *_block("program", *puzzle.position.program.text.splitlines()),
            *_block("goal", f"the first move gains {puzzle.asked:g} times"),
            *_block("first-idea", idea),
            *_block("hint", f"Look at `{where.partition(' ')[0].partition('@')[0]}`."),
            *_block("hint", f"It is a `{kind}`. {words_for(kind)}"),
            *_block("hint", f"Play `{best}`."),
            *_block("solution", best),
            *_block("done", f"`{best}` gains {gained.value:.2f} times ({interval}). {why}"),
            *(_block(f"game {puzzle.ply}", *_game(game)) if game.kernel is not None else ()),
        ]
    )  # fmt: skip


def _game(game: Game) -> Iterable[str]:
    yield f"kernel {game.kernel}"
    yield f"shape {game.shape}"
    yield f"policy {game.policy}"
    yield f"target {game.target}"
    yield from (str(position.move) for position in game.main_line(0)[1:])


def _block(name: str, *lines: str) -> list[str]:
    return [f"```{name}", *lines, "```", ""]
