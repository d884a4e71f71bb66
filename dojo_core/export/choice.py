"""Which program of a kernel is exported: this machine's best record, a line, a game, or a text as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from dojo_core import kernels
from dojo_core.bench.ours import heuristic_ends
from dojo_core.export.narrow import widest_vector
from dojo_core.game import Game, Step
from dojo_core.line import RecordedLine, end_of, line_for
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Record, Records
from dojo_core.moves.notation import MoveSyntax, parse_move
from dojo_core.program.expressions import TextError
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.target import DEFAULT_TARGET, VECTOR_BYTES, Target
from dojo_core.program.text import parse
from dojo_core.program.tree import Program, Scope, walk
from dojo_core.targets.cpu.limits import narrower
from dojo_core.targets.registry import backend, base

TARGET = DEFAULT_TARGET
_GAMES = 100  # saved games that are searched for the moves that led to a record's program


class NotExported(Exception):
    """A kernel that cannot be exported as asked; ``str()`` is a sentence that says what to do."""


Again = Callable[[Target], tuple[Program, str] | None]
"""Plays a choice with other limits: its program there and where that comes from, in words; None where a move
does not apply."""


@dataclass(frozen=True)
class Choice:
    """One kernel to export. ``shape`` is empty for a text of one's own, which has its sizes in itself.

    ``source`` says in words where the program comes from. ``moves`` lead from ``start`` to ``program``;
    None where they are not known. ``record`` is its best verified measurement on this machine. ``narrower``:
    programs of its own for vector registers of fewer bytes; where there is none, ``program`` is narrowed.
    ``others``: in words, the lines that some of these are the ends of, where ``source`` is not the one.
    ``again``: how it is made for another processor; None where nothing but the program is known.
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
    again: Again | None = field(default=None, compare=False, repr=False)

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
    _exportable(game, source)
    moves = tuple(str(p.move) for p in game.line()[1:])
    shape = game.shape if game.kernel else ""
    return Choice(
        game.kernel, shape, game.policy, game.start, game.current.program, source, moves,
        target=game.target, again=_moves_again(game, moves, source),
    )  # fmt: skip


def _exportable(game: Game, source: str) -> None:
    if not backend(base(game.target)).native:
        raise NotExported(
            f"A library runs on the CPU, and {source} is made for {game.target}: export another."
        )


def used_instruction(program: Program) -> str | None:
    """A machine instruction that the program asks for and not every processor has. Rows are turned in C that
    any compiler takes."""
    marks = (node.mark for node, _, _ in walk(program.body) if isinstance(node, Scope))
    return next((mark for mark in marks if mark in INSTRUCTIONS and not INSTRUCTIONS[mark].rows), None)


def _moves_again(start: Game, moves: tuple[str, ...], source: str) -> Again:
    """Moves of a game, played with other limits from its start."""

    def again(on: Target) -> tuple[Program, str] | None:
        game = _elsewhere(start, on)
        numbered = ((number, move_there(move, on)) for number, move in enumerate(moves, 1))
        try:
            steps = [Step(parse_move(move), number) for number, move in numbered if move is not None]
        except MoveSyntax:  # of a record that another version wrote
            return None
        report = game.replay(0, steps, longest_way=0)
        return (game.current.program, source) if all(e.applies for e in report.entries) else None

    return again


def _elsewhere(start: Game, on: Target) -> Game:
    """A game's start with other limits."""
    return Game.new(
        start.start, start.kernel, start.shape, start.target, start.policy, start.title, on, start.constants
    )


def move_there(move: str, on: Target) -> str | None:
    """A move as a target takes it: of an instruction, with the one that means the same there; None where
    there is none, for loops that are not marked compute the same."""
    *words, name = move.split()
    names = {each for each, _ in on.instructions}
    if words[:1] != ["use_instruction"] or name not in INSTRUCTIONS or name in names:
        return move
    meant = INSTRUCTIONS[name].program_text(4)
    same = [n for n in sorted(names) if INSTRUCTIONS[n].program_text(4).replace(n, name) == meant]
    return " ".join([*words, same[0]]) if same else None


def line_there(line: RecordedLine, on: Target) -> RecordedLine:
    """A line with each move as a target takes it."""
    numbered = zip(line.numbers, line.moves, strict=True)
    played = [(n, at, move_there(words, on), provenances) for n, (at, words, provenances) in numbered]
    playable = [(n, (at, words, provenances)) for n, at, words, provenances in played if words is not None]
    return replace(line, moves=tuple(move for _, move in playable), numbers=tuple(n for n, _ in playable))


def _line_again(
    line: RecordedLine, start: Game, settings: Mapping[str, int] | None, on: Target
) -> tuple[Program, str] | None:
    """The end of a line with other limits: of the one that comes first there where this one does here, else
    of the line itself."""
    kernel, shape = start.kernel or "", start.shape
    first = not settings and line == line_for(kernel, shape)
    other = line_for(kernel, shape, on=on) if first else None
    ends = (line_end(each, start, on, settings) for each in (other, line) if each is not None)
    return next((end for end in ends if end is not None), None)


def line_end(
    line: RecordedLine, start: Game, on: Target, settings: Mapping[str, int] | None = None
) -> tuple[Program, str] | None:
    """Where a line leads with other limits, and its name in words; None where a move does not apply."""
    try:
        end = end_of(line_there(line, on), start, on, settings)
    except TextError:  # a parameter has no value for vectors of this width
        return None
    return (end, f"{_source(line)}, with the parameters that it has for this processor") if end else None


def start_game(kernel: str, shape: str | None, policy: str) -> Game:
    """A game at a kernel's start. Raises ValueError for an unknown kernel or a shape that does not fit it."""
    its_kernel = kernels.get(kernel)
    sizes = its_kernel.shape(shape) if shape else its_kernel.shapes[0]
    return Game.new(its_kernel.program(sizes), kernel, "x".join(map(str, sizes)), TARGET, policy)


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
    made = replace(of_game(game, _source(line)), again=partial(_line_again, line, game, settings))
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
            end = end_of(played, game, on)
            if end is not None:
                programs[width] = end
                if played != line:
                    others[width] = _source(played)
    return replace(made, narrower=programs, others=others)


def of_heuristic(start: Game) -> Choice:
    """What the heuristic pass makes of a start, without machine instructions, which a library's processor may
    not have, but for those that turn rows. Raises NotExported where none is installed or it fails."""
    limits = start.limits or backend(start.target).limits
    rows = frozenset(each for each in limits.instructions if INSTRUCTIONS[each[0]].rows)
    _exportable(start, "what a pass plays")
    ends, remarks = heuristic_ends(_elsewhere(start, replace(limits, instructions=rows)))
    for name, end in ends.items():
        return Choice(
            start.kernel, start.shape if start.kernel else "", start.policy, start.start, end.program,
            f"the {name} pass", end.moves, target=start.target, again=partial(heuristic_end, start),
        )  # fmt: skip
    raise NotExported(f"No heuristic played {start.title}: {'; '.join(remarks) or 'none is installed'}.")


def heuristic_end(start: Game, on: Target) -> tuple[Program, str] | None:
    """What the first heuristic makes of a start with other limits, and its name in words."""
    ends, _ = heuristic_ends(_elsewhere(start, on))
    return next(((end.program, f"the {name} pass") for name, end in ends.items()), None)


def of_record(records: Records, start: Game, policy: str | None = None) -> Choice | None:
    """The fastest verified program that this machine's records have for a start; None where there is none,
    or it needs a machine instruction, which a library's processor may not have.

    ``policy``: only what it allows.
    """
    best = records.best(start.start.hash, TARGET, this_machine().fingerprint, policy)
    if best is None:
        return None
    program = parse(best.program_text)
    if used_instruction(program):
        return None
    moves = tuple(best.line.splitlines()) or _moves_to(records, start, program)
    source = "the best verified record of this machine"
    allowed = replace(start, policy=best.policy)
    return Choice(
        start.kernel, start.shape if start.kernel else "", best.policy, start.start, program,
        source, moves, best, again=None if moves is None else _moves_again(allowed, moves, source),
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
    record = records.known(
        choice.program.hash, TARGET, this_machine().fingerprint, choice.policy, choice.start.hash
    )
    verified = record is not None and record.verified and record.status == "ok"
    return replace(choice, record=record if verified else None)


def _believed(choice: Choice) -> bool:
    """Has it a record that says what measuring it now would say?"""
    origin = backend(TARGET).clock().origin
    return choice.record is not None and origin is not None and origin.believes(choice.record)


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
    if played is not None and used_instruction(played.program):
        played = None
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
        passed = of_heuristic(start)
        if line is not None:  # which may be playable elsewhere
            passed = replace(passed, again=partial(_line_again, line, start, None))
        return verified(passed, records, measure)
    except NotExported:
        return verified(of_game(start, "the start program"), records, measure)


def verified(choice: Choice, records: Records, measure: Measure | None = None) -> Choice:
    """The choice with its record; with ``measure``, verified and timed now where that is not known, or old,
    or of a busy machine. What is made for another machine is not run here."""
    if choice.target != TARGET:
        return choice
    recorded = with_record(choice, records)
    if measure is not None and not _believed(recorded):
        measure(choice)
        recorded = with_record(choice, records)
    return recorded
