"""Puzzles mined from games: positions where a few moves bring a large gain that no single move brings.

A game's positions are timed; where the moves before a large gain gained nothing themselves (a plateau), the
position before them is a puzzle if no legal move there comes near by itself: each of them is timed, too.
What was found is told as the text of a lesson (docs/lessons.md), for a teacher to put words around.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

from dojo_core.actions.timing import workload_of
from dojo_core.game import Game, GameFull
from dojo_core.measure.clock import TargetMeasurer
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.records import Record
from dojo_core.moves import IllegalMove, MoveSyntax, apply, legal_moves
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.school.goals import Situation, read_goal
from dojo_core.school.review import WHY
from dojo_core.service.analysis import words_for

log = logging.getLogger(__name__)

GAIN = 2.0  # what a puzzle promises at least
LONGEST = 4  # moves of a solution
STRETCH = 8  # moves of a game that are looked at together: some of them are often not needed
PLATEAU = 1.2  # a move that gains less than this opens the way for others at most
# Machines differ, and so do their times: half of what was measured is promised, and never more than the
# narrowest vectors bring; what is promised is so many times the best single move's gain.
KEPT_BACK, MOST_PROMISED = 0.5, 4.0
CLEAR = 1.4
MOST_SINGLE = 600  # legal moves of a position that are timed; one with more is passed over


@dataclass(frozen=True)
class Find:
    """A puzzle: where it begins, the moves that solve it, and the best that one move does.

    ``gain`` was measured; ``promised`` is what the puzzle asks for. ``idea`` is the fastest single move, with
    ``idea_gain`` over the beginning. ``threads``: does the solution use them? If not, they are out of the
    puzzle: on a machine of many cores they alone would bring any gain.
    """

    origin: str
    ply: int
    begin: Program
    policy: str
    solution: tuple[str, ...]
    gain: float
    idea: str
    idea_gain: float

    @property
    def promised(self) -> float:
        return max(1.5, int(min(MOST_PROMISED, self.gain * KEPT_BACK) * 2) / 2)

    @property
    def threads(self) -> bool:
        return _threaded(self.solution)

    @property
    def title(self) -> str:
        return f"{self.origin}, after {self.ply} moves" if self.ply else f"{self.origin}, from its start"


def mine(
    game: Game,
    measurer: TargetMeasurer,
    gain: float = GAIN,
    longest: int = LONGEST,
    looked: Callable[[str], None] = log.info,
) -> Iterator[Find]:
    """The puzzles in a game's main line, the largest gain first. Times everything anew: minutes.

    ``looked`` hears what is being done.
    """
    line = game.main_line(0)
    workload = workload_of(game)
    looked(f"{game.title}: {len(line)} positions are timed")
    known = _times(workload, [position.program for position in line], measurer)
    at = [known.get(position.program.hash) for position in line]
    taken: set[int] = set()
    for first, last in _windows(at, gain):
        if last in taken:
            continue
        begin = line[first].program
        moves = tuple(str(position.move) for position in line[first + 1 : last + 1])
        looked(f"{game.title}, after {first} moves: {' · '.join(moves)}")
        find = _puzzle(game, begin, first, moves, measurer, gain, longest)
        if find is not None:
            taken.add(last)
            yield find


def _times(workload: Workload, programs: Sequence[Program], measurer: TargetMeasurer) -> dict[str, float]:
    """Seconds by program hash, of those that ran and were right."""
    different = list({program.hash: program for program in programs}.values())
    measurements = measurer.measure(workload, different, Effort.QUICK, fresh=True)
    return {each.program_hash: each.seconds for each in measurements if each.seconds and each.verified}


def _windows(at: Sequence[float | None], gain: float) -> Iterator[tuple[int, int]]:
    """(first, last) positions with a plateau between them and a large gain at the end; largest gain first,
    of the same end the shortest."""
    gains: dict[int, float] = {}
    windows: list[tuple[int, int]] = []
    for last in range(2, len(at)):
        for count in range(2, min(STRETCH, last) + 1):
            first = last - count
            begin, end, between = at[first], at[last], at[first + 1 : last]
            if begin is None or end is None or begin < gain * end:
                continue
            if all(each is not None and begin < PLATEAU * each for each in between):
                windows.append((first, last))
                gains[last] = max(gains.get(last, 0.0), begin / end)
    yield from sorted(windows, key=lambda each: (-gains[each[1]], each[1] - each[0]))


def _puzzle(
    game: Game,
    begin: Program,
    ply: int,
    moves: tuple[str, ...],
    measurer: TargetMeasurer,
    gain: float,
    longest: int,
) -> Find | None:
    """The window as a puzzle, if every move of it is needed and none brings the gain by itself."""
    workload = Workload(begin, None, game.policy, game.target)
    threads = _threaded(moves)
    legal = [m for m in legal_moves(begin, game.target, game.policy) if threads or m.name != "parallelize"]
    if len(legal) > MOST_SINGLE:
        return None
    single = {str(m): apply(begin, m, target=game.target, policy=game.policy) for m in legal}
    ends = {part: _end(game, begin, part) for part in _parts(moves, longest)}
    shorter = {part: program for part, program in ends.items() if program is not None}
    whole = _end(game, begin, moves)
    if whole is None:  # names of places that only this game's history knows
        return None
    known = _times(workload, [begin, whole, *shorter.values(), *single.values()], measurer)
    start, end = known.get(begin.hash), known.get(whole.hash)
    if start is None or end is None or start < gain * end:
        return None
    solution = moves
    for part, program in sorted(shorter.items(), key=lambda each: len(each[0])):
        seconds = known.get(program.hash)
        if seconds is not None and seconds < PLATEAU * end:
            solution, end = part, seconds
            break
    if len(solution) > longest:
        return None
    timed = {move: known[program.hash] for move, program in single.items() if program.hash in known}
    if not timed:
        return None
    idea = min(timed, key=lambda move: timed[move])
    find = Find(game.title, ply, begin, game.policy, solution, start / end, idea, start / timed[idea])
    return find if find.promised >= CLEAR * find.idea_gain else None


def _threaded(moves: Iterable[str]) -> bool:
    return any(move.startswith("parallelize ") for move in moves)


def _parts(moves: tuple[str, ...], longest: int) -> Iterator[tuple[str, ...]]:
    """The line without some of the moves before its last: what may be enough."""
    *opening, last = moves
    for count in range(1, min(longest, len(moves))):
        for chosen in combinations(opening, count):
            yield (*chosen, last)


def _end(game: Game, begin: Program, moves: Iterable[str]) -> Program | None:
    """Where moves lead from a program, None where one does not apply as it is written."""
    replay = Game.new(begin, target=game.target, policy=game.policy)
    try:
        for move in moves:
            replay.play(move)
    except (IllegalMove, MoveSyntax, GameFull):
        return None
    return replay.current.program


# ---------------------------------------------------------------------------- where games come from


def recorded_games(records: Sequence[Record]) -> Iterator[Game]:
    """The fastest lines among measurements as games, one of each start and policy, where the start's text is
    among the measurements as well."""
    starts = {record.program_hash: record.program_text for record in records}
    best: dict[tuple[str, str], Record] = {}
    for record in records:
        key = (record.start_hash, record.policy)
        if not (record.line and record.verified and record.seconds and record.target == DEFAULT_TARGET):
            continue
        if record.start_hash in starts and (
            key not in best or record.seconds < (best[key].seconds or record.seconds)
        ):
            best[key] = record
    for (start, policy), record in best.items():
        with suppress(TextError, IllegalMove, MoveSyntax, GameFull):
            game = Game.new(
                parse(starts[start]), policy=policy, title=f"{record.kernel} {record.shape}".strip()
            )
            for move in record.line.splitlines():
                game.play(move)
            yield game


# ---------------------------------------------------------------------------- as a lesson

_STRUCTURES: Mapping[str, str] = {
    "vectorize": "the innermost scope of {op} is :v",
    "parallelize": "a scope of {op} is :p",
    "set_location": "{op} is on the {word}",
}


def structure(find: Find) -> str:
    """A goal that the last move reaches and that needs no clock; empty where there is none."""
    name, *words = find.solution[-1].split()
    if name not in _STRUCTURES or not words:
        return ""
    return _STRUCTURES[name].format(op=words[0].partition("@")[0], word=words[-1])


def puzzle_text(find: Find, title: str = "") -> str:
    """A puzzle in the form of a lesson's step."""
    begin, end = find.begin, _end_of(find)
    first, last = find.solution[0].split()[0], find.solution[-1].split()[0]
    count = len(find.solution)
    goals = [f"{find.promised:g} times faster"]
    structural = structure(find)
    if structural and not _reached(structural, begin) and _reached(structural, end):
        goals.insert(0, structural)
    without = ""
    if not find.threads:
        reader = _reader(begin)
        asked = f"still not a scope of the reader of {reader} is :p" if reader else ""
        if asked and _reached(asked, begin) and _reached(asked, end):
            goals.append(asked)
            without = " Leave threads aside."
    best = f"The best of them makes it {find.idea_gain:.1f} times as fast" if find.idea_gain > 1.05 else (
        "None of them makes it faster"
    )  # fmt: skip
    why = WHY.get(last, words_for(last))
    return "\n".join(
        [
            f"## {title or find.title}",
            "measure: on",
            f"gain: {find.promised:g}",
            f"policy: {find.policy}",
            "",
            f"A position of a game. Each legal move was timed here by itself. {best}. {_NUMBERS[count]} "
            f"moves, one after the other, make it {find.promised:g} times as fast and more. Which?{without}",
            "",
            *_block("program", begin.text),
            *_block("goal", *goals),
            *_block("first-idea", find.idea),
            *_block("hint", f"The first move gains nothing, but it opens the way. {words_for(first)}"),
            *_block("hint", f"The last move is a {last}. {why}"),
            *_block("hint", f"Play {', then '.join(find.solution)}."),
            *_block("solution", *find.solution),
            *_block("done", why),
        ]
    )


_NUMBERS = {2: "Two", 3: "Three", 4: "Four"}
HEAD = """# Mined puzzles
kind: puzzles
about: Positions of measured games in which no single move helps much, and a few together do.

"""


def _block(name: str, *lines: str) -> list[str]:
    return [f"```{name}", *(line.rstrip("\n") for line in lines), "```", ""]


def _end_of(find: Find) -> Program:
    end = _end(Game.new(find.begin, policy=find.policy), find.begin, find.solution)
    assert end is not None  # it was timed
    return end


def _reader(program: Program) -> str:
    """An input that an operation reads; empty where none does."""
    read = {access.array for leaf in program.leaves for access in leaf.op.reads}
    return next((name for name in program.inputs if name in read), "")


def _reached(goal: str, program: Program) -> bool:
    return read_goal(goal).look(Situation(program, program)).reached is True
