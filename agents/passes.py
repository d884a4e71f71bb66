"""Passes: agents that measure nothing and follow the structure of the program alone.

``naive`` is the first of the paper's (PerfDojo, SC '25, section 4.1): join scopes and reuse dimensions
until nothing more applies. On the command line: ``python -m agents.passes softmax --shape 1024x512``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from dojo_core import kernels
from dojo_core.game import Game, Position
from dojo_core.moves import legal_moves

SHRINKING = ("join_scopes", "reuse_dims")  # each leaves fewer scopes or less storage, so the pass ends


def naive(game: Game) -> Iterator[Position]:
    """Play ``join_scopes`` and ``reuse_dims`` from the cursor while one is legal; yields the positions."""
    while True:
        moves = legal_moves(game.current.program, game.target, game.policy)
        chosen = next((m for name in SHRINKING for m in moves if m.name == name), None)
        if chosen is None:
            return
        yield game.play(chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description="Play the naive pass and print the game as text.")
    parser.add_argument("kernel", choices=kernels.names())
    parser.add_argument("--shape", help="sizes such as 1024x512; the kernel's own where left out")
    options = parser.parse_args()
    kernel = kernels.get(options.kernel)
    try:
        sizes = kernel.shape(options.shape) if options.shape else kernel.shapes[0]
    except ValueError as error:
        parser.error(str(error))
    game = Game.new(kernel.program(sizes), kernel.name, shape="x".join(map(str, sizes)))
    for _ in naive(game):
        pass
    print(game.to_text())


if __name__ == "__main__":
    main()
