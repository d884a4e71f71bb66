"""A person's saved game as a player: each position of its main line is a program of its budget."""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path

from agents.agent import Agent, Budget, PlayerFailed, Proposals, Task
from agents.trail import Trail
from dojo_core.files import trouble_text
from dojo_core.game import Game, Step
from dojo_core.measure.records import Records
from dojo_core.program.expressions import TextError

NAME = "game"
FORM = "game:FILE, or game:ID of the library"
BATCH = 8  # positions measured at once
LONGEST = 512 * 1024  # characters of a game's text


class NoGame(ValueError):
    """There is no such game; ``str()`` is a sentence."""


def agent(text: str) -> Agent:
    """The player of ``game:FILE`` or ``game:ID``. Raises NoGame."""
    named = text.removeprefix(f"{NAME}:")
    try:
        game = Game.from_text(_text(named))
    except TextError as wrong:
        raise NoGame(f"{named} is no game that can be played again here: {wrong}") from None
    line = game.main_line()

    def unfit(wanted: Game) -> str:
        if wanted.current.program.hash == game.start.hash:
            return ""
        return f"The game {named} is one of {game.title} and begins at another program than {wanted.title}."

    def strategy(task: Task, budget: Budget, rng: random.Random) -> Proposals:
        trails = [Trail.at(task.game)]
        for number, position in enumerate(line[1:], 1):
            assert position.move is not None
            trail = trails[-1].extended(Step(position.move, trails[-1].born))
            if trail is None:
                raise PlayerFailed(
                    f"Move {number} of the game {named}, {position.move}, is not legal for target "
                    f"{task.game.target} under policy {task.game.policy}: choose those that it was played "
                    "with."
                )
            trails.append(trail)
        for first in range(0, len(trails), BATCH):
            yield trails[first : first + BATCH]

    moves = "\n".join(str(position.move) for position in line[1:])
    version = hashlib.sha256(moves.encode()).hexdigest()[:12]
    return Agent(text, f"the {len(line)} positions of a saved game", strategy, version, unfit)


def _text(named: str) -> str:
    path = Path(named)
    if path.is_file():
        try:
            with path.open(encoding="utf-8-sig") as file:
                return file.read(LONGEST)
        except UnicodeDecodeError:
            raise NoGame(f"{named} is no text.") from None
        except OSError as error:
            raise NoGame(trouble_text(error)) from None
    if re.fullmatch(r"\w{4,40}", named, re.ASCII):
        with Records() as records:
            saved = records.game(named)
        if saved is not None:
            return saved.text
    raise NoGame(
        f"There is no game {named!r}: name a file, or the id of a game of the library, as its address has it."
    )
