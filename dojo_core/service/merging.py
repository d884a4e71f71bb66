"""Two processes play one game: what the other one saved meanwhile is taken in, so that no move is lost.

A game is a tree, so both can stay: a move of theirs becomes a variation beside mine. Positions are told
apart by the moves that lead to them, not by their numbers, which each process gives for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from dojo_core.game import MAX_MOVES, Game, Position
from dojo_core.service.refused import Refused

Line = tuple[str, ...]  # the moves from the start


def lines(game: Game) -> dict[Line, Position]:
    """The positions of a game by what was played, parents before children."""
    positions: dict[Line, Position] = {(): game.positions[0]}
    waiting: list[Line] = [()]
    for line in waiting:
        for child in game.children(positions[line].id):
            key = (*line, str(child.move))
            if key not in positions:
                positions[key] = child
                waiting.append(key)
    return positions


@dataclass(frozen=True)
class Merged:
    """How many positions came in, and how many went because they were deleted elsewhere."""

    came: int
    went: int


def merge(mine: Game, base: Game, theirs: Game) -> Merged:
    """Change ``mine`` by what happened from ``base``, which both began with, to ``theirs``.

    What one of them deleted goes, unless the other played on from there. The cursor stays where it is, if
    that is still there. Raises Refused where both together are more moves than a game may have; then ``mine``
    is as it was.
    """
    before, other, ours = lines(base), lines(theirs), lines(mine)
    new = [line for line in other if line not in before and line not in ours]
    gone = [line for line in ours if line in before and line not in other]
    prefixes = {line[:n] for line in ours if line not in before for n in range(len(line))}
    gone = [line for line in gone if line not in prefixes]
    parents = {line[:-1] for line in new}
    if len(mine.positions) - len(gone) + len(new) > MAX_MOVES:
        raise Refused(
            f"This game went on in another window of the Dojo, and both together have more than {MAX_MOVES} "
            "moves. Save your line, then open the game again."
        )
    cursor, came = mine.cursor, 0
    for line in new:
        above = ours.get(line[:-1])
        if above is None:  # deleted here: theirs goes on from it, so it comes back with its parents
            if line[:-1] not in other:
                continue
            above = _with_parents(mine, ours, other, line[:-1])
        ours[line] = _take_in(mine, above, other[line])
        came += 1
    went = 0
    for line in gone:
        if ours[line].id in mine.positions and line not in parents:
            mine.cursor = cursor
            went += len(mine.positions)
            mine.delete(ours[line].id)
            went -= len(mine.positions)
            cursor = mine.cursor
    mine.cursor = cursor
    if mine.title == base.title:
        mine.title = theirs.title
    return Merged(came, went)


def _with_parents(
    mine: Game, ours: dict[Line, Position], other: dict[Line, Position], line: Line
) -> Position:
    for n in range(1, len(line) + 1):
        if line[:n] not in ours:
            ours[line[:n]] = _take_in(mine, ours[line[: n - 1]], other[line[:n]])
    return ours[line]


def _take_in(mine: Game, above: Position, theirs: Position) -> Position:
    """A position of theirs below one of mine. No number is given twice, nor one that numbers nodes."""
    used = {p.id for p in mine.positions.values()} | {p.origin for p in mine.positions.values()}
    number = theirs.id if theirs.id not in used and theirs.id > above.id else max(used) + 1
    position = Position(number, above.id, theirs.move, theirs.program, theirs.origin, theirs.references)
    mine.positions[number] = position
    above.children.append(number)
    return position
