"""How each value draws itself: ``html(value)``, and ``words(value)`` where only text is shown.

Whatever a value holds is escaped; what is long is cut, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, singledispatch
from html import escape
from itertools import groupby

from dojo_core.actions.timing import number_text
from dojo_core.bench.table import Line, lines
from dojo_core.game import Game, Position
from dojo_core.line import RecordedLine
from dojo_core.measure.measurement import Measurement, seconds_text
from dojo_core.moves import IllegalMove, Move, Refusal, Verdict
from dojo_core.moves.reference import summary
from dojo_core.notebook.charts import bars, speed_chart
from dojo_core.notebook.programs import COLUMNS, LINES, coloured, loops
from dojo_core.notebook.style import boxed, folded, heading, paragraph, span
from dojo_core.notebook.views import Listing, Measured, Moves
from dojo_core.program.tree import Program
from dojo_core.service.comparing import Comparison
from dojo_core.targets.registry import backend
from dojo_core.wording import counted

SHOWN_MOVES = 40  # of a line that is not folded up


def html(value: object) -> str:
    """A value's drawing: a style sheet and one element, without script."""
    return boxed(_inside(value))


@singledispatch
def words(value: object) -> str:
    """A value in words, for a terminal."""
    return str(value)


@singledispatch
def _inside(value: object) -> str:
    raise TypeError(f"{type(value).__name__} has no drawing.")


# ---------------------------------------------------------------- programs and texts


@_inside.register
def _(program: Program) -> str:
    return coloured(program) + loops(program)


@_inside.register
def _(listing: Listing) -> str:
    shown = [line[:COLUMNS] for line in listing.lines[:LINES]]
    more = len(listing.lines) - len(shown)
    rest = span("quiet", f"\n… {more} more lines: print(…) has them") if more else ""
    return heading(listing.title) + f"<pre>{escape(chr(10).join(shown))}{rest}</pre>"


# ---------------------------------------------------------------- moves and refusals


@_inside.register
def _(move: Move) -> str:
    return f"<code>{escape(str(move))}</code>" + paragraph(summary(move.name), "quiet")


@_inside.register
def _(moves: Moves) -> str:
    if not moves:
        return paragraph("No legal move.", "quiet")
    kinds = _kinds(moves)
    drawn = []
    for name, each in kinds:
        listed = "\n".join(map(str, each[:LINES]))
        inside = paragraph(summary(name), "quiet") + f"<pre>{escape(listed)}</pre>"
        drawn.append(folded(f"{name} ({len(each)})", inside, opened=len(kinds) == 1))
    return heading(counted(len(moves), "legal move"), f"of {counted(len(kinds), 'kind')}") + "".join(drawn)


@words.register
def _(moves: Moves) -> str:
    rows = [f"{name}: {', '.join(str(m).partition(' ')[2] for m in each)}" for name, each in _kinds(moves)]
    return "\n".join([f"{counted(len(moves), 'legal move')}.", *rows])


def _kinds(moves: Moves) -> list[tuple[str, list[Move]]]:
    """By name, in the order of the table of moves."""
    return [(name, list(each)) for name, each in groupby(moves, lambda move: move.name)]


@_inside.register
def _(refusal: Refusal) -> str:
    drawn = [paragraph(refusal.sentence, "bad")]
    if refusal.witness is not None:
        drawn.append(paragraph(str(refusal.witness)))
    for way in refusal.ways:
        drawn.append(f"<p>{'Try first' if way.then else 'Try instead'}: <code>{escape(str(way))}</code></p>")
    return "".join([*drawn, paragraph(refusal.needs) * bool(refusal.needs)])


@_inside.register
def _(illegal: IllegalMove) -> str:
    return f"<h4><code>{escape(str(illegal.move))}</code> is not legal</h4>" + _inside(illegal.refusal)


@_inside.register
def _(verdict: Verdict) -> str:
    if verdict.refusal is None:
        return paragraph(verdict.sentence, "good" if verdict.legal else "bad")
    return "<h4>Not legal</h4>" + _inside(verdict.refusal)


# ---------------------------------------------------------------- games and lines


@_inside.register
def _(game: Game) -> str:
    position = game.current
    before = None if position.parent is None else game.positions[position.parent].program
    about = f"{backend(game.target).words.title} · {game.policy} · position {position.id}"
    drawn = [heading(game.title, about), coloured(position.program, before), loops(position.program)]
    moves = len(game.positions) - 1
    if moves:
        tree = f"<ol>{''.join(_tree(game))}</ol>"
        drawn.append(folded(counted(moves, "move"), tree, opened=moves <= SHOWN_MOVES))
    return "".join(drawn)


def _tree(game: Game) -> Iterator[str]:
    """The main line's moves, each with its variations in a list of their own behind it."""
    position = game.positions[0]
    while position.children:
        main, *others = game.children(position.id)
        varied = "".join(_variation(game, other) for other in others)
        yield f"<li>{_named(game, main)}{varied}</li>"
        position = main


def _variation(game: Game, begin: Position) -> str:
    """A variation to its end on a line; variations of it stand as their number of moves."""
    line, position, left = [_named(game, begin)], begin, 0
    while position.children:
        main, *others = game.children(position.id)
        left += sum(1 + _below(game, other) for other in others)
        line.append(_named(game, main))
        position = main
    more = span("quiet", f" … and {counted(left, 'move')} of its variations") if left else ""
    return f"<ul><li>{' '.join(line)}{more}</li></ul>"


def _below(game: Game, position: Position) -> int:
    """How many moves follow a position."""
    count, open_ = 0, [*position.children]
    while open_:
        count += 1
        open_ += game.positions[open_.pop()].children
    return count


def _named(game: Game, position: Position) -> str:
    text = f"<code>{escape(str(position.move))}</code>"
    return f'<span class="here">{text}</span>' if position.id == game.cursor else text


@words.register
def _(game: Game) -> str:
    played = [f"{number}. {position.move}" for number, position in enumerate(game.line()[1:], 1)]
    return "\n".join([f"{game.title}, {game.target}, {game.policy}", *played, str(game.current.program)])


@_inside.register
def _(line: RecordedLine) -> str:
    facts = " ".join(filter(None, (line.kernel, line.shape, line.policy, line.target)))
    played = "".join(f"<li><code>{escape(text)}</code></li>" for _, text, _ in line.moves)
    count = len(line.moves)
    drawn = folded(counted(count, "move"), f"<ol>{played}</ol>", opened=count <= SHOWN_MOVES)
    return heading(line.title, facts) + paragraph(line.about) * bool(line.about) + drawn


@words.register
def _(line: RecordedLine) -> str:
    return "\n".join([line.title, *(text for _, text, _ in line.moves)])


# ---------------------------------------------------------------- times


@_inside.register
def _(measurement: Measurement) -> str:
    return _measured(measurement, seconds_text)


def _measured(measurement: Measurement, number: Callable[[float], str]) -> str:
    if measurement.seconds is None:
        told = (
            "verified, and nothing here has a number for it" if measurement.verified else measurement.status
        )
        kind = "good" if measurement.verified else "bad"
        return paragraph(told.replace("_", " "), kind) + paragraph(measurement.message, "quiet")
    about = [measurement.provenance(), *filter(None, [measurement.message])]
    return paragraph(number(measurement.seconds), "big") + paragraph("; ".join(about), "quiet")


@words.register
def _(measurement: Measurement) -> str:
    if measurement.seconds is None:
        return f"{measurement.status.replace('_', ' ')}: {measurement.message}".rstrip(": ")
    return f"{seconds_text(measurement.seconds)}, {measurement.provenance()}"


@_inside.register
def _(measured: Measured) -> str:
    number = partial(number_text, measured.target)
    drawn = [heading(measured.title), _measured(measured.result, number)]
    if measured.speed is not None:
        low, high = measured.speed.low, measured.speed.high
        told = f"{measured.speed} against the start"
        between = f", between {low:.3g} and {high:.3g}×" if high > low else ""
        drawn.append(paragraph(told + between, _KIND.get(measured.speed.verdict, "")))
        drawn.append(speed_chart(measured.points, len(measured.names) - 1))
    return "".join(drawn)


_KIND = {"faster": "good", "slower": "bad"}


@words.register
def _(measured: Measured) -> str:
    rows = [measured.title]
    for number, name, speed in measured.points:
        result = measured.results[number]
        if result is not None and result.seconds is not None:
            rows.append(
                f"{name}: {number_text(measured.target, result.seconds)}"
                + (f", {speed:.3g}×" if speed else "")
            )
        elif result is not None:
            rows.append(f"{name}: {words(result)}")
    return "\n".join(rows)


@_inside.register
def _(comparison: Comparison) -> str:
    drawn = [heading(comparison.spec.title, _state(comparison))]
    known = _rows(comparison)
    timed = [line for line in known if line.best is not None]
    if timed:
        first = _first(comparison)
        drawn.append(bars([(e.name, e.best or 0.0, _told(e, first), e.kind == "ours") for e in timed]))
    for line in known:
        if line.best is None:
            drawn.append(paragraph(f"{line.name}: {line.status}. {line.message}", "quiet"))
    return "".join(drawn)


@words.register
def _(comparison: Comparison) -> str:
    rows = [f"{line.name}: {_told(line, _first(comparison))}" for line in _rows(comparison)]
    return "\n".join([f"{comparison.spec.title}, {_state(comparison)}", *rows])


def _rows(comparison: Comparison) -> list[Line]:
    """The entries, with their speeds against the first one."""
    if comparison.document is None:
        return []
    return lines(comparison.document["reports"][0], _first(comparison))


def _first(comparison: Comparison) -> str:
    """The name of what the others are held against."""
    return comparison.spec.contenders[0].name


def _state(comparison: Comparison) -> str:
    if comparison.document is None:
        return comparison.message or comparison.state
    return f"{counted(comparison.rounds, 'round')} in turns, the best run of each: shorter is faster"


def _told(line: Line, first: str) -> str:
    if line.best is None:
        return f"{line.status}. {line.message}"
    against = line.speed if line.name != first else None
    speed = f", {against.value:.2f}× as fast" if against is not None else ""
    return f"{seconds_text(line.best)}{speed}"
