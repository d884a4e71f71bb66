"""The heuristic pass as a process of its own, which its parent can end: a game in, the game played on out."""

from __future__ import annotations

import sys

from agents.passes import play_pass
from dojo_core.game import Game, GameFull
from dojo_core.moves import IllegalMove


def main() -> None:
    game = Game.from_text(sys.stdin.read())
    try:
        play_pass(game, "heuristic")
    except (IllegalMove, GameFull) as fault:
        sys.exit(str(fault))
    sys.stdout.write(game.to_text())


if __name__ == "__main__":
    main()
