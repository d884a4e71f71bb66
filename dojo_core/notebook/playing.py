"""Begin a game, look at it, play: what a notebook calls."""

from __future__ import annotations

from typing import Literal

from dojo_core.actions import looking, playing
from dojo_core.from_code.recognise import kind_of
from dojo_core.game import Game
from dojo_core.line import RecordedLine, recorded_lines
from dojo_core.moves import Move, Verdict, legal_moves
from dojo_core.notebook.views import Listing, Moves
from dojo_core.opening import begun, named_game, text_game
from dojo_core.own.kernel import OwnKernel
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.tree import Program
from dojo_core.sharing import open_text
from dojo_core.targets.registry import backend


def start(
    kernel: str | Program | OwnKernel,
    target: str = DEFAULT_TARGET,
    policy: str = "",
    line: str = "",
) -> Game:
    """A new game. ``kernel``: a kernel's name, with a shape behind it (``"softmax:64x128"``) or at its first
    shape; a layer's name; a program, or a text of one; a game's text, as ``game.to_text()`` gives it, which
    has its own target and policy; a kernel of one's own; NumPy, PyTorch or loops in C in several lines, as
    ``dojo translate`` reads them. ``policy``: ``reassoc`` if none is named, or the line's.

    ``line``: a recorded line of that kernel, which is played first. Raises ValueError with a sentence, and
    TextError for a text that is none.
    """
    recorded = _line(line, target) if line else None
    policy = policy or (recorded.policy if recorded is not None else "reassoc")
    if isinstance(kernel, OwnKernel):
        kernel = kernel.program
    if isinstance(kernel, Program):
        game = begun(kernel, None, "", target, policy)
    elif isinstance(kernel, str) and "\n" in kernel.strip():
        taken = kind_of(kernel) in ("game", "line")
        game = open_text(kernel).game if taken else text_game(kernel, target, policy)
    else:
        game = named_game(kernel, target=target, policy=policy)
    if recorded is not None:
        for number, entry in enumerate(recorded.play(game).entries, 1):
            if not entry.applies:
                raise ValueError(f"Move {number} of {line}, {entry.move}, does not apply: {entry.reason}.")
    return game


def asked(game: Game, function: str) -> Game:
    """The game that a function of these was given. Raises TypeError with a sentence where it is none."""
    if not isinstance(game, Game):
        raise TypeError(f"{function} takes a game first, as start gives one, not {game!r:.60}.")
    return game


def _line(name: str, target: str) -> RecordedLine:
    known = recorded_lines(target)
    if name not in known:
        raise ValueError(f"There is no recorded line {name!r}: {', '.join(known) or 'none'}.")
    return known[name]


def show(
    game: Game, what: Literal["program", "code", "assembly"] = "program", at: int | None = None
) -> Program | Listing:
    """A position's program, the code that is generated from it (C for a processor), or its assembly.

    ``at``: the position's number, by default where the game stands. Raises ValueError with a
    sentence where there is none of that number, or no such text.
    """
    program = asked(game, "show").at(at).program
    if what == "program":
        return program
    if what == "code":
        text = looking.code(program, game.target, game.policy).text
        return Listing(backend(game.target).words.code, tuple(text.splitlines()))
    if what == "assembly":
        return Listing("Assembly", tuple(looking.assembly(program, game.target, game.policy).lines))
    raise ValueError(f"There is 'program', 'code' and 'assembly' to show, no {what!r}.")


def moves(game: Game, name: str = "") -> Moves:
    """The legal moves where the game stands, those of one name alone (``"split_scope"``) if it is given.

    Raises ValueError with a sentence for a name that no move has.
    """
    legal = legal_moves(asked(game, "moves").current.program, game.limits or game.target, game.policy)
    return Moves(looking.chosen(legal, name))


def why(game: Game, move: str | Move) -> Verdict:
    """Is a move legal where the game stands, and why, or why not? With ways around a refusal.

    Raises MoveSyntax of a text that is no move.
    """
    return looking.explained(
        asked(game, "why").current.program, move, game.limits or game.target, game.policy
    )


def play(game: Game, *moves: str | Move) -> Game:
    """Play moves and recipes in order; the same game, at the position after them.

    Raises IllegalMove, which says why and what would help, MoveSyntax or GameFull: those before it are played
    then.
    """
    refused = playing.play(asked(game, "play"), [str(move) for move in moves]).refused
    if refused is not None:
        raise refused
    return game
