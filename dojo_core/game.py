"""The game: positions, the line that leads to each, variations as a tree, replay without a move.

A game is plain data: no lock, no thread, no clock. Its text form is made for people to read and mail.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dojo_core.drawn import Drawn
from dojo_core.moves.core import Context, IllegalMove, Move, Refusal
from dojo_core.moves.legality import context, outcome
from dojo_core.moves.notation import MoveSyntax, parse_move
from dojo_core.moves.places import NoSuchPlace
from dojo_core.moves.references import readdress, references
from dojo_core.moves.ways import with_enablers
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET, Target
from dojo_core.program.text import parse
from dojo_core.program.tree import Program, Provenance
from dojo_core.targets.registry import backend, bring

MAX_MOVES = 500  # of one game, variations included


@dataclass
class Position:
    """One position of a game. ``id`` 0 is the start; ``move`` led here from ``parent``.

    ``origin`` numbers the nodes that the move made: the id it was first played under, kept when the
    move is replayed on another branch. ``references`` are the provenance of what the move named.
    """

    id: int
    parent: int | None
    move: Move | None
    program: Program
    origin: int = 0
    references: tuple[Provenance, ...] = ()
    children: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Step:
    """One move to replay: its text, and what it named where it was first played."""

    move: Move
    origin: int
    references: tuple[Provenance, ...] = ()
    before: Program | None = None


@dataclass(frozen=True)
class Entry:
    """What became of one move in a replay: ``same``, ``readdressed`` (its node has another name now),
    ``place changed`` (the node is gone or another stands there) or ``refused``."""

    move: str
    outcome: str
    new: str
    reason: str = ""

    @staticmethod
    def lost(move: str) -> Entry:
        """Of a move that stands behind one that became nothing."""
        return Entry(move, "refused", move, "comes after a move that no longer applies")

    @property
    def applies(self) -> bool:
        return self.outcome in ("same", "readdressed")


@dataclass(frozen=True)
class Replay:
    """The report of a replay, move by move, and the position it ended on. ``begins``: of a recorded line,
    how many entries come before those of each of its moves, of which a recipe has several."""

    entries: tuple[Entry, ...]
    position: int
    begins: tuple[int, ...] = ()


def _same(first: Context, second: Context) -> bool:
    """The very program, its nodes' provenance included, which equal programs may differ in."""
    return first.program is second.program and first == second


def _twin(known: Game | None, at: int | None, step: Step) -> Position | None:
    """The position that a step leads to in a known game from one of its positions, if it was played there."""
    if known is None or at is None:
        return None
    for child in known.children(at):
        if (child.move, child.origin, child.references) == (step.move, step.origin, step.references):
            return child
    return None


def followed(context: Context, step: Step) -> Move | None:
    """The move of a step under new names, if everything it names and implies is still there."""
    if step.before is None or not step.references:
        return None
    try:
        move = readdress(context, step.move, step.references, step.before)
        return move if move is not None and references(context, move) == step.references else None
    except NoSuchPlace:
        return None


class GameFull(ValueError):
    """The game has as many moves as one game may have."""

    def __init__(
        self, sentence: str = f"A game has at most {MAX_MOVES} moves: start a new one from this position."
    ) -> None:
        super().__init__(sentence)


class NoSuchPosition(ValueError):
    """A number that no position of the game has; ``str()`` is a sentence."""


@dataclass
class Game(Drawn):
    """A start position, a tree of moves, and a cursor in it."""

    id: str
    title: str
    kernel: str | None
    shape: str
    target: str
    policy: str
    positions: dict[int, Position]
    cursor: int = 0
    limits: Target | None = None  # other ones than that target's; not kept in a game's text
    constants: frozenset[str] = frozenset()  # inputs that are the same in every run of a model; as limits

    @staticmethod
    def new(
        program: Program,
        kernel: str | None = None,
        shape: str = "",
        target: str = DEFAULT_TARGET,
        policy: str = "reassoc",
        title: str | None = None,
        limits: Target | None = None,
        constants: frozenset[str] = frozenset(),
    ) -> Game:
        context(program, limits or target, policy)  # raises where target or policy is unknown
        target = backend(target).name  # of this machine, where it is named as another's
        name = title or (f"{kernel} {shape}".strip() if kernel else program.name)
        return Game(
            secrets.token_hex(6), name, kernel, shape, target, policy,
            {0: Position(0, None, None, program)}, limits=limits, constants=constants,
        )  # fmt: skip

    @property
    def start(self) -> Program:
        return self.positions[0].program

    @property
    def current(self) -> Position:
        return self.positions[self.cursor]

    def context(self, at: int, born: int) -> Context:
        """What legality is asked in at a position."""
        limits = self.limits or self.target
        return context(self.positions[at].program, limits, self.policy, born, self.constants)

    # ---------------------------------------------------------------- playing

    def play(
        self, move: Move | str, at: int | None = None, known: tuple[Context, Program] | None = None
    ) -> Position:
        """Play a move at a position (default: the cursor) and go there.

        A move that was played there before is entered, not made twice. ``known``: the outcome of the move in
        some context; it is not asked again where that is the context here. Raises IllegalMove, MoveSyntax or
        GameFull; then nothing has changed.
        """
        return self._go(self.after(move, at, known))

    def after(
        self, move: Move | str, at: int | None = None, known: tuple[Context, Program] | None = None
    ) -> Position:
        """The position that ``play`` would go to, with the number that it would have; the game stays as it
        is. Raises what ``play`` raises."""
        at = self.cursor if at is None else at
        played = parse_move(move) if isinstance(move, str) else move
        for child in self.children(at):
            if child.move == played:
                return child
        born = self._next_id()
        context = self.context(at, born)
        result = known[1] if known is not None and _same(known[0], context) else outcome(context, played)
        if isinstance(result, Refusal):
            raise IllegalMove(str(played), with_enablers(context, played, result))
        return Position(born, at, played, result, born, references(context, played))

    def _next_id(self) -> int:
        if len(self.positions) > MAX_MOVES:
            raise GameFull
        return max(self.positions) + 1

    def _go(self, position: Position) -> Position:
        """Go to a position of the game, or to a new one, which becomes the last of its parent's children."""
        if position.id not in self.positions and position.parent is not None:
            self.positions[position.id] = position
            self.positions[position.parent].children.append(position.id)
        return self.goto(position.id)

    def at(self, position: int | None = None) -> Position:
        """A position by its number, by default the one at the cursor. Raises NoSuchPosition."""
        number = self.cursor if position is None else position
        try:
            return self.positions[number]
        except (KeyError, TypeError):  # TypeError: what is no number, and cannot be looked up either
            raise NoSuchPosition(
                f"There is no position {position!r} in this game: the last one is {max(self.positions)}."
            ) from None

    def goto(self, position: int) -> Position:
        """Move the cursor. Raises NoSuchPosition."""
        self.cursor = self.at(position).id
        return self.current

    def back(self) -> Position:
        """Take back: the cursor goes to the parent; the move stays as a variation."""
        parent = self.current.parent
        if parent is not None:
            self.cursor = parent
        return self.current

    def forward(self) -> Position:
        """The cursor goes to the first child, where there is one."""
        if self.current.children:
            self.cursor = self.current.children[0]
        return self.current

    def children(self, at: int) -> list[Position]:
        """The moves played at a position, the main one first."""
        return [self.positions[c] for c in self.positions[at].children]

    def line(self, at: int | None = None) -> list[Position]:
        """The positions from the start to one (default: the cursor), both included."""
        line: list[Position] = []
        walk: int | None = self.cursor if at is None else at
        while walk is not None:
            line.append(self.positions[walk])
            walk = self.positions[walk].parent
        return line[::-1]

    def main_line(self, at: int | None = None) -> list[Position]:
        """The line to a position, and on along first children to its end."""
        line = self.line(at)
        while line[-1].children:
            line.append(self.positions[line[-1].children[0]])
        return line

    def promote(self, position: int) -> None:
        """Make the variation that leads to a position the main one, all the way up."""
        for ancestor in self.line(position)[1:]:
            siblings = self.positions[ancestor.parent or 0].children
            siblings.remove(ancestor.id)
            siblings.insert(0, ancestor.id)

    def delete(self, position: int) -> None:
        """Remove a position and all that follows it. The start stays."""
        root = self.positions[position]
        if root.parent is None:
            raise ValueError("The start position cannot be deleted.")
        inside = [root.id]
        for each in inside:
            inside.extend(self.positions[each].children)
        if self.cursor in inside:
            self.cursor = root.parent
        self.positions[root.parent].children.remove(root.id)
        for each in inside:
            del self.positions[each]

    # ---------------------------------------------------------------- replay

    def steps(self, positions: Sequence[Position]) -> list[Step]:
        """Positions after the start as steps that can be replayed elsewhere."""
        return [
            Step(p.move, p.origin, p.references, self.positions[p.parent or 0].program)
            for p in positions
            if p.move is not None
        ]

    def drop(self, position: int, skip_invalid: bool = False) -> Replay:
        """Replay the line without one of its moves, on a new branch.

        Replays up to the end of the main line through that position. Stops at the first move that no
        longer applies, or skips it and goes on. The report names every move.
        """
        dropped = self.positions[position]
        if dropped.parent is None:
            raise ValueError("The start position has no move to remove.")
        later = [
            p
            for p in self.main_line(self._end_through(position))
            if p.id not in {q.id for q in self.line(position)}
        ]
        return self.replay(dropped.parent, self.steps(later), skip_invalid)

    def _end_through(self, position: int) -> int:
        """The cursor where the line to it passes the position, else the position."""
        return self.cursor if any(p.id == position for p in self.line(self.cursor)) else position

    def replay(
        self, at: int, steps: Sequence[Step], skip_invalid: bool = False, longest_way: int | None = None
    ) -> Replay:
        """Play steps from a position on, each checked again; see ``Entry`` for what can become of one.

        ``longest_way``: of how many moves the ways around a refusal may be that its report tells.
        """
        entries: list[Entry] = []
        stopped = False
        for step in steps:
            if stopped:
                entries.append(Entry.lost(str(step.move)))
                continue
            # Longer ways take a second each to find. One refusal that ends the replay is worth it; where they
            # are passed over there may be dozens, most because of the first.
            longest = longest_way if longest_way is not None else 1 if skip_invalid else 3
            entry, move = self._replayed(at, step, longest)
            entries.append(entry)
            if move is None:
                stopped = not skip_invalid
                continue
            at = self.cursor
        self.cursor = at
        return Replay(tuple(entries), at)

    def _replayed(self, at: int, step: Step, longest_way: int = 3) -> tuple[Entry, Move | None]:
        """Play one step at a position; (report, the move as played or None)."""
        text = str(step.move)
        context = self.context(at, step.origin)
        move: Move | None = step.move
        status, reason = "same", ""
        try:
            named = references(context, step.move)
        except NoSuchPlace as missing:
            named, reason = (), str(missing)
        if (step.references and named != step.references) or reason:
            status = "readdressed"
            move = followed(context, step)
            if move is None:
                return Entry(text, "place changed", text, reason or self._changed(step, named)), None
        assert move is not None
        for child in self.children(at):
            if child.move == move and child.origin == step.origin:
                self.cursor = child.id
                return Entry(text, status, str(move)), move
        result = outcome(context, move)
        if isinstance(result, Refusal):
            return Entry(
                text, "refused", str(move), str(with_enablers(context, move, result, longest_way))
            ), None
        named = references(context, move)
        self._go(Position(self._next_id(), at, move, result, step.origin, named))
        return Entry(
            text, status, str(move), "its node has another name here" if status == "readdressed" else ""
        ), move

    def _changed(self, step: Step, named: tuple[Provenance, ...]) -> str:
        for recorded, provenance in zip(step.references, named, strict=False):
            if recorded != provenance:
                if recorded.move == provenance.move:
                    return "what it named has another name here, and the move cannot follow it there"
                made = "of the start" if recorded.move == 0 else f"made by move {recorded.move}"
                stands = "of the start" if provenance.move == 0 else f"made by move {provenance.move}"
                return f"it named a place {made}; here the name stands for one {stands}"
        return "what it named is no longer there"

    # ---------------------------------------------------------------- text

    def to_text(self) -> str:
        """The whole game as text: facts, start program, moves with the provenance of what they name."""
        processor = backend(self.target).told
        lines = [
            "dojo game 1",
            f"title: {self.title}",
            f"kernel: {self.kernel or '-'}",
            f"shape: {self.shape or '-'}",
            f"target: {self.target}",
            *([f"processor: {processor}"] if processor else ()),
            f"policy: {self.policy}",
            f"cursor: {self.cursor}",
            "",
            "start:",
            *("  " + line for line in self.start.text.splitlines()),
            "",
            "moves:",
        ]
        previous = 0
        order = [*reversed(self.positions[0].children)]
        while order:
            position = self.positions[order.pop()]
            order.extend(reversed(position.children))
            after = "" if position.parent == previous else f" after {position.parent}"
            origin = "" if position.origin == position.id else f" as {position.origin}"
            named = " ".join(map(str, position.references))
            lines.append(
                f"  {position.id}{after}{origin}: {position.move}" + (f"  ; {named}" if named else "")
            )
            previous = position.id
        return "\n".join(lines) + "\n"

    @staticmethod
    def from_text(text: str, gone: list[Entry] | None = None, known: Game | None = None) -> Game:
        """Read a game's text. Raises TextError where it is none, or where a move does not replay.

        With a list ``gone``, moves that do not replay are put there and left out, with all that follows them.
        ``known``: the same game as it was before or after, whose moves need not be found out again.
        """
        reader = _Lines(text)
        facts = reader.facts()
        start = reader.start()
        twins: dict[int, int] = {}  # positions of the known game that are the same
        if known is not None and known.start.text == start.text and known.policy == facts["policy"]:
            start, twins = known.start, {0: 0} if known.target == facts["target"] else {}
        try:
            if "processor" in facts:
                bring(facts["target"], facts["processor"])
            game = Game.new(
                start,
                None if facts["kernel"] == "-" else facts["kernel"],
                "" if facts["shape"] == "-" else facts["shape"],
                facts["target"],
                facts["policy"],
                facts["title"],
            )
        except ValueError as error:
            raise TextError(str(error), "Correct the line above 'start:'.", 1, 1, "dojo game 1") from error
        numbers = {0: 0}
        lost: set[int] = set()  # moves that do not replay, and those after them
        previous = 0
        for number, line, match in reader.moves():
            position, after, origin, words, provenances = match.groups()
            parent = int(after) if after else previous
            if parent in lost and int(position) not in numbers:
                lost.add(int(position))
                previous = int(position)
                assert gone is not None
                gone.append(Entry.lost(words))
                continue
            if parent not in numbers or int(position) in numbers or int(position) == 0:
                raise TextError(
                    f"move {position} follows {parent}, which is not there, or stands twice",
                    "Correct the numbers.",
                    number,
                    1,
                    line,
                )
            try:
                step = Step(parse_move(words), int(origin or position), read_provenance(provenances))
            except MoveSyntax as error:
                raise TextError(str(error), "Correct the move.", number, 1, line) from error
            twin = _twin(known, twins.get(numbers[parent]), step)
            if known is not None and twin is not None:
                game._go(replace(twin, id=game._next_id(), parent=numbers[parent], children=[]))
                twins[game.cursor] = twin.id
                numbers[int(position)] = game.cursor
                previous = int(position)
                continue
            entry, move = game._replayed(numbers[parent], step)
            if move is None and gone is not None:
                lost.add(int(position))
                previous = int(position)
                gone.append(entry)
                continue
            if move is None:
                raise TextError(
                    f"{words} does not apply: {entry.reason}",
                    "Remove it and the moves after it.",
                    number,
                    1,
                    line,
                )
            numbers[int(position)] = game.cursor
            previous = int(position)
        game._renumber({new: old for old, new in numbers.items()})
        cursor = facts.get("cursor", "0")
        game.cursor = (
            int(cursor) if re.fullmatch("[0-9]{1,6}", cursor) and int(cursor) in game.positions else 0
        )
        return game

    def _renumber(self, names: dict[int, int]) -> None:
        """Give positions the ids that the text has."""
        for position in self.positions.values():
            position.id = names[position.id]
            position.parent = None if position.parent is None else names[position.parent]
            position.children = [names[c] for c in position.children]
        self.positions = {p.id: p for p in self.positions.values()}


# Possessive, so that a line of many spaces is looked at once.
_MOVE_LINE = re.compile(
    r"\s*+(\d{1,6})(?: after (\d{1,6}))?(?: as (\d{1,6}))?: \s*+((?>[^\s;](?:[^;]*[^\s;])?))\s*+"
    r"(?:;\s*+([\d. ]*+))?\Z",
    re.ASCII,
)
_FACTS = ("title", "kernel", "shape", "target", "processor", "policy", "cursor")
_LONGEST = {"processor": 1 << 16}  # characters of a fact; of the others 200 count


def read_provenance(text: str | None) -> tuple[Provenance, ...]:
    """Provenance as a stored line writes them: ``0.3 12.1``."""
    provenances = []
    for word in (text or "").split():
        move, _, ordinal = word.partition(".")
        if re.fullmatch("[0-9]{1,6}", move) and re.fullmatch("[0-9]{1,6}", ordinal):
            provenances.append(Provenance(int(move), int(ordinal)))
    return tuple(provenances)


class _Lines:
    """Reads the sections of a game's text in order."""

    def __init__(self, text: str) -> None:
        if len(text) > 512 * 1024:
            raise TextError("the game is longer than 512 KiB", "Export single lines instead.")
        self.lines = text.splitlines()
        self.at = 0

    def fail(self, message: str, remedy: str) -> TextError:
        line = self.lines[self.at] if self.at < len(self.lines) else ""
        return TextError(message, remedy, self.at + 1, 1, line)

    def facts(self) -> dict[str, str]:
        if not self.lines or self.lines[0].strip() != "dojo game 1":
            raise self.fail("this is no game of the Dojo", "A game begins with the line: dojo game 1")
        facts: dict[str, str] = {}
        self.at = 1
        while self.at < len(self.lines) and self.lines[self.at].strip() != "start:":
            line = self.lines[self.at]
            name, colon, value = line.partition(":")
            if line.strip() and (not colon or name.strip() not in _FACTS):
                raise self.fail(f"unknown line {line[:40]!r}", f"Here stand {', '.join(_FACTS)}, then start:")
            if line.strip():
                most = _LONGEST.get(name.strip(), 200)
                facts[name.strip()] = value.strip()[:most].strip()
            self.at += 1
        for name in ("kernel", "shape", "target", "policy", "title"):
            if name not in facts:
                raise self.fail(f"the game names no {name}", f"Add a line such as: {name}: -")
        return facts

    def start(self) -> Program:
        self.at += 1
        first = self.at
        while self.at < len(self.lines) and self.lines[self.at].strip() != "moves:":
            self.at += 1
        if self.at >= len(self.lines):
            raise self.fail("the game has no moves section", "Add a line: moves:")
        try:
            return parse("\n".join(line.strip() for line in self.lines[first : self.at]))
        except TextError as error:
            raise TextError(
                error.message, error.remedy, first + error.line, error.column, error.source
            ) from error

    def moves(self) -> list[tuple[int, str, re.Match[str]]]:
        moves = []
        for at in range(self.at + 1, len(self.lines)):
            self.at = at
            line = self.lines[self.at]
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            match = _MOVE_LINE.match(line)
            if match is None:
                raise self.fail("this is no move of a game", "A move reads: 3: split_scope y@0 16")
            moves.append((self.at + 1, line, match))
            if len(moves) > MAX_MOVES:
                raise self.fail(f"more than {MAX_MOVES} moves", "Split the game.")
        return moves
