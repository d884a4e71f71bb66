"""Which program of a kernel is exported: this machine's best record, a line, a game, or a text as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dojo_core import kernels
from dojo_core.bench.ours import heuristic_games
from dojo_core.export.narrow import widest_vector
from dojo_core.game import Game
from dojo_core.line import RecordedLine, line_for
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Record, Records
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET, VECTOR_BYTES
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.limits import narrower
from dojo_core.targets.registry import backend, base

TARGET = DEFAULT_TARGET
_GAMES = 100  # saved games that are searched for the moves that led to a record's program


class NotExported(Exception):
    """A kernel that cannot be exported as asked; ``str()`` is a sentence that says what to do."""


@dataclass(frozen=True)
class Choice:
    """One kernel to export. ``shape`` is empty for a text of one's own, which has its sizes in itself.

    ``source`` says in words where the program comes from. ``moves`` lead from ``start`` to ``program``;
    None where they are not known. ``record`` is its best verified measurement on this machine. ``narrower``:
    programs of its own for vector registers of fewer bytes; where there is none, ``program`` is narrowed.
    ``others``: in words, the lines that some of these are the ends of, where ``source`` is not the one.
    """

    kernel: str | None
    shape: str
    policy: str
    start: Program
    program: Program
    source: str
    moves: tuple[str, ...] | None
    record: Record | None = None
    narrower: Mapping[int, Program] = field(default_factory=dict)
    others: Mapping[int, str] = field(default_factory=dict)
    target: str = TARGET  # or that of another machine

    @property
    def title(self) -> str:
        """For a sentence about it: ``softmax 24576x512``."""
        return f"{self.kernel} {self.shape}" if self.kernel else self.start.name

    @property
    def formula(self) -> str:
        """What it computes, where that is known."""
        return kernels.get(self.kernel).formula if self.kernel else ""


def of_game(game: Game, source: str) -> Choice:
    """A game's position at the cursor, also of another machine's CPU: a library is C for any. Raises
    NotExported for a game of another target."""
    if not backend(base(game.target)).native:
        raise NotExported(
            f"A library runs on the CPU, and {source} is made for {game.target}: export another."
        )
    moves = tuple(str(p.move) for p in game.line()[1:])
    shape = game.shape if game.kernel else ""
    return Choice(
        game.kernel, shape, game.policy, game.start, game.current.program, source, moves, target=game.target
    )


def start_game(kernel: str, shape: str | None, policy: str) -> Game:
    """A game at a kernel's start. Raises ValueError for an unknown kernel or a shape that does not fit it."""
    found = kernels.get(kernel)
    sizes = found.shape(shape) if shape else found.shapes[0]
    return Game.new(found.program(sizes), kernel, "x".join(map(str, sizes)), TARGET, policy)


def of_line(
    line: RecordedLine,
    kernel: str,
    shape: str | None,
    policy: str | None = None,
    settings: Mapping[str, int] | None = None,
) -> Choice:
    """The end of a line, played at a shape (default: the line's own).

    Raises NotExported where a move does not apply, ValueError and TextError for a bad shape or parameter.
    """
    game = start_game(kernel, shape or line.shape or None, policy or line.policy)
    report = line.play(game, settings)
    for number, entry in enumerate(report.entries, 1):
        if not entry.applies:
            names = ", ".join(line.settings)
            remedy = f"Set its parameters ({names}) with --set, or export" if names else "Export"
            raise NotExported(
                f"The line {line.title} does not apply to {kernel} {game.shape}. Move {number}, "
                f"{entry.move}: {entry.reason.rstrip('.')}. {remedy} a game of your own, or --from heuristic."
            )
    made = of_game(game, _source(line))
    return made if settings else _with_narrower(made, line, game)


def _source(line: RecordedLine) -> str:
    return f"the line {line.title}"


def _with_narrower(made: Choice, line: RecordedLine, game: Game) -> Choice:
    """With the ends for narrower vectors than a game's own end has: of the line that comes first for those
    where this one does here, else of the line itself, where it applies there too."""
    kernel, shape = game.kernel or "", game.shape
    programs: dict[int, Program] = {}
    others: dict[int, str] = {}
    first = line == line_for(kernel, shape)
    for width in VECTOR_BYTES:
        if width < widest_vector(made.program):
            on = narrower(width)
            played = (line_for(kernel, shape, on=on) if first else None) or line
            other = Game.new(game.start, kernel, shape, game.target, game.policy, limits=on)
            if all(entry.applies for entry in played.play(other).entries):
                programs[width] = other.current.program
                if played != line:
                    others[width] = _source(played)
    return replace(made, narrower=programs, others=others)


def of_heuristic(start: Game) -> Choice:
    """What the heuristic pass makes of a start. Raises NotExported where none is installed or it fails."""
    games, remarks = heuristic_games(start)
    for name, game in games.items():
        return of_game(game, f"the {name} pass")
    raise NotExported(f"No heuristic played {start.title}: {'; '.join(remarks) or 'none is installed'}.")


def of_record(records: Records, start: Game, policy: str | None = None) -> Choice | None:
    """The fastest verified program that this machine's records have for a start; None where there is none.

    ``policy``: only what it allows.
    """
    best = records.best(start.start.hash, TARGET, this_machine().fingerprint, policy)
    if best is None:
        return None
    program = parse(best.program_text)
    moves = tuple(best.line.splitlines()) or _moves_to(records, start, program)
    return Choice(
        start.kernel, start.shape if start.kernel else "", best.policy, start.start, program,
        "the best verified record of this machine", moves, best,
    )  # fmt: skip


def _moves_to(records: Records, start: Game, program: Program) -> tuple[str, ...] | None:
    """The moves to a record's program, found among the recorded lines and the saved games."""
    if program.hash == start.start.hash:
        return ()
    line = line_for(start.kernel or "", start.shape)
    if line is not None:
        try:
            choice = of_line(line, start.kernel or "", start.shape)
        except (NotExported, TextError, ValueError):
            choice = None
        if choice is not None and choice.program.hash == program.hash:
            return choice.moves
    for saved in records.games(limit=_GAMES):
        if f"\nkernel: {start.kernel or '-'}\nshape: {start.shape or '-'}\n" not in saved.text:
            continue
        try:
            game = Game.from_text(saved.text)
        except (TextError, ValueError):  # saved by another version, whose moves were others
            continue
        for position in game.positions.values():
            if position.program.hash == program.hash and game.start.hash == start.start.hash:
                return tuple(str(p.move) for p in game.line(position.id)[1:])
    return None


def with_record(choice: Choice, records: Records) -> Choice:
    """The choice with what this machine's records know of exactly this program."""
    found = records.known(
        choice.program.hash, TARGET, this_machine().fingerprint, choice.policy, choice.start.hash
    )
    verified = found is not None and found.verified and found.status == "ok"
    return replace(choice, record=found if verified else None)


def _believed(choice: Choice) -> bool:
    """Has it a record that says what measuring it now would say?"""
    here = backend(TARGET).clock().origin
    return choice.record is not None and here is not None and here.believes(choice.record)


Measure = Callable[[Choice], None]
"""Verifies and times a choice's program and leaves that in the records. Raises NotExported where it fails."""


def best(
    kernel: str,
    shape: str | None,
    records: Records,
    policy: str | None = None,
    measure: Measure | None = None,
) -> Choice:
    """The fastest verified program known on this machine, else the recorded line's end, else the heuristic
    pass's where no line applies, else the start.

    Without a shape it is the recorded line's, or the kernel's first.
    With ``measure``, a recorded line that this machine has not timed is timed first, so that a record of
    some half-way position does not win for want of an opponent; what is chosen is verified; and times that
    are old, or of a busy machine, are taken again. Raises NotExported, and ValueError for an unknown kernel
    or shape.
    """
    line = line_for(kernel, shape)
    start = start_game(kernel, shape or (line.shape if line else None), policy or "reassoc")
    played: Choice | None = None
    if line is not None and policy in (None, line.policy):
        with suppress(NotExported):
            played = with_record(of_line(line, kernel, start.shape), records)
    if played is not None and measure is not None and not _believed(played):
        measure(played)
    recorded = of_record(records, start, policy)
    if recorded is not None and measure is not None and not _believed(recorded):
        measure(recorded)
        recorded = of_record(records, start, policy)
    if recorded is not None:
        return recorded
    if played is not None:
        return played
    try:
        return verified(of_heuristic(start), records, measure)
    except NotExported:
        return verified(of_game(start, "the start program"), records, measure)


def verified(choice: Choice, records: Records, measure: Measure | None = None) -> Choice:
    """The choice with its record; with ``measure``, verified and timed now where that is not known, or old,
    or of a busy machine. What is made for another machine is not run here."""
    if choice.target != TARGET:
        return choice
    found = with_record(choice, records)
    if measure is not None and not _believed(found):
        measure(choice)
        found = with_record(choice, records)
    return found
