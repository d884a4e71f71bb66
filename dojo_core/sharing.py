"""A game as a link: the moves that lead to its position, compressed, where that stays under 2 KB.

A link says ``1.`` and then, in base64 for addresses, the deflated text of a line (dojo_core/line.py); a text
of one's own has its start program with it. Reading one limits the size before anything is parsed, plays each
move through the legality checks, and reports what no longer applies. A link holds no times.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import dataclass

from dojo_core import kernels
from dojo_core.faults import program_fault
from dojo_core.game import Entry, Game
from dojo_core.line import read_line
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.registry import target
from dojo_core.wording import counted

MARK = "1."
LONGEST_LINK = 2048  # characters after ?g=
LONGEST_TEXT = 64 * 1024  # characters that a link may unfold to
_START = "\nstart:\n"

# What most lines have in common; deflate refers to it, so that a short line stays short.
_COMMON = (
    b"kernel softmax\nshape x\npolicy reassoc\npolicy algebraic\ntarget cpu\n# \nfission_scope set_location "
    b"share_buffer use_reciprocal online_rescale stage_read stage_write split_reduction interchange "
    b"reuse_dims prefetch unroll split_scope parallelize vectorize join_scopes m@0 s@0 t@0 y@0 y#1@1 "
    b" ; 0.0 0.1 \n1: \n2: \n3: \n4: "
)


class BadLink(ValueError):
    """A link that is none; the message says what to do."""


@dataclass(frozen=True)
class Opened:
    """A game from elsewhere, replayed: its cursor where it was, ``gone`` the moves that no longer apply."""

    game: Game
    gone: tuple[Entry, ...] = ()

    @property
    def words(self) -> str:
        """What became of the moves, as a sentence or two."""
        moves = len(self.game.positions) - 1
        if not self.gone:
            return f"Replayed {counted(moves, 'move')} through the legality checks."
        first = self.gone[0]
        why = first.reason.rstrip(".")
        return (
            f"{moves} of {moves + len(self.gone)} moves still apply. {first.move} does not: {why}. "
            "What follows it was left out."
        )


def line_text(game: Game) -> str:
    """The line to the cursor as text; a text of one's own with its start program."""
    lines = [f"# {game.title}"]
    if game.kernel:
        lines += [f"kernel {game.kernel}", f"shape {game.shape}"]
    lines += [f"policy {game.policy}", f"target {game.target}"]
    for position in game.line()[1:]:
        provenances = " ".join(map(str, position.references))
        lines.append(f"{position.origin}: {position.move}" + (f" ; {provenances}" if provenances else ""))
    start = "" if game.kernel else _START + game.start.text
    return "\n".join(lines) + start


def link(game: Game) -> str | None:
    """What stands after ``?g=``; None where that is too long for a link."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=_COMMON)
    packed = packer.compress(line_text(game).encode()) + packer.flush()
    made = MARK + base64.urlsafe_b64encode(packed).decode().rstrip("=")
    return made if len(made) <= LONGEST_LINK else None


def has_start(text: str) -> bool:
    """Is it a line that has its start program with it?"""
    return _START in text and "\npolicy " in text.partition(_START)[0]


def is_link(text: str) -> bool:
    """Is it a link's text, and not the id of a saved game?"""
    return text.startswith(MARK)


def unfolded(text: str) -> str:
    """The line's text of a link. Raises BadLink; never makes more than ``LONGEST_TEXT`` bytes."""
    damaged = BadLink("This link is damaged or cut off: copy the whole of it, or ask for the .dojo file.")
    if not is_link(text) or len(text) > LONGEST_LINK:
        raise damaged
    packed = text[len(MARK) :]
    try:
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        reader = zlib.decompressobj(-15, zdict=_COMMON)
        unpacked = reader.decompress(data, LONGEST_TEXT + 1)
        if len(unpacked) > LONGEST_TEXT:
            raise BadLink("This link unfolds to more than 64 KB: nothing was opened. Ask for the .dojo file.")
        if not reader.eof:
            raise damaged
        return unpacked.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError):
        raise damaged from None


def open_link(text: str) -> Opened:
    """The game of a link, each move checked again. Raises BadLink and TextError."""
    return open_line(unfolded(text))


def open_line(text: str, title: str = "") -> Opened:
    """The game of a line's text, each move checked again; moves that do not apply are left out from there on.

    Raises TextError, and BadLink for a kernel or a shape that there is not here.
    """
    moves, _, start = text.partition(_START)
    line = read_line(moves)
    title = title or line.about
    try:
        if line.kernel is None:
            if not start:
                raise BadLink("This line names neither a kernel nor a start program to play it on.")
            program = parse(start)
            _judge(program, line.target, line.policy)
        else:
            kernel = kernels.get(line.kernel)
            program = kernel.program(kernel.shape(line.shape) if line.shape else kernel.shapes[0])
            program = target(line.target).start(program)
        game = Game.new(program, line.kernel, line.shape, line.target, line.policy, title[:80] or None)
    except TextError:
        raise
    except (ValueError, TypeError, KeyError) as fault:
        raise BadLink(str(fault)) from None
    report = line.play(game)
    return Opened(game, tuple(entry for entry in report.entries if not entry.applies))


def open_text(text: str, name: str = "") -> Opened:
    """A game from a file's text: a game, a line, or a program of one's own. Raises TextError and BadLink."""
    if text.lstrip().startswith("dojo game"):
        gone: list[Entry] = []
        try:
            game = Game.from_text(text.lstrip(), gone)
        except TextError:
            raise
        except ValueError as fault:
            raise BadLink(str(fault)) from None
        _judge(game.start, game.target, game.policy)
        return Opened(game, tuple(gone))
    if any(row.startswith(("shape ", "policy ")) for row in text.splitlines()):
        return open_line(text, name)
    program = parse(text)
    _judge(program)
    return Opened(Game.new(program, title=program.name))


def _judge(start: Program, on: str = DEFAULT_TARGET, policy: str = "reassoc") -> None:
    """Raises BadLink for a program that cannot be played on."""
    fault = program_fault(start, on, policy)
    if fault is not None:
        raise BadLink(fault)
