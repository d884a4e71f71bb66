"""How many refusals tell a way: ``python -m benchmarks.ways [KERNEL …]``.

At positions of each kernel's recorded line the line's later moves are asked for, too early, and some random
ones that are blocked there. Of those that are refused for what they would do, or for the form of what they
name (not for a name that is not there yet), told are, by the refusal's code: how many there are, how many
come with moves that make them legal, all of them tried out, and how long asking took.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.moves import Refusal, blocked_moves, parse_move
from dojo_core.moves.legality import context, outcome
from dojo_core.moves.ways import with_enablers
from dojo_core.program.codes import Code

EVERY, AHEAD, RANDOM = 6, 12, 6  # positions of a line; of each, moves of the line behind it, and blocked ones
NAMELESS = {Code.NO_SUCH_PLACE, Code.NAME_TAKEN}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=sorted(kernels.names()), metavar="KERNEL")
    parser.add_argument(
        "--show", default="", metavar="CODE", help="each refusal of this code that has no way"
    )
    options = parser.parse_args()
    asked, with_way, shown = Counter[str](), Counter[str](), set[str]()
    seconds = defaultdict[str, list[float]](list)
    rng = random.Random(0)
    for name in options.kernels:
        line = recorded_lines().get(name)
        if line is None or line.kernel is None:
            continue
        found = kernels.get(line.kernel)
        game = Game.new(found.program(found.shape(line.shape)), line.kernel, line.shape, policy=line.policy)
        line.play(game)
        path = game.line()
        for at in range(0, len(path) - 1, EVERY):
            here = context(path[at].program, game.target, game.policy)
            early = [position.move for position in path[at + 2 : at + 2 + AHEAD]]
            blocked = [move for move, _ in blocked_moves(path[at].program, game.target, game.policy)]
            for move in [*early, *rng.sample(blocked, min(RANDOM, len(blocked)))]:
                refusal = outcome(here, parse_move(str(move)))
                if not isinstance(refusal, Refusal) or refusal.code in NAMELESS:
                    continue
                begin = time.perf_counter()
                told = with_enablers(here, parse_move(str(move)), refusal)
                seconds[refusal.code].append(time.perf_counter() - begin)
                asked[refusal.code] += 1
                with_way[refusal.code] += bool(told.ways)
                if refusal.code == options.show and not told.ways:
                    shown.add(f"{name}, position {at}: {move}: {refusal.sentence}")
    print("| refused for | times | with a way | asked in, ms (mean) |\n|---|---:|---:|---:|")
    for code, count in asked.most_common():
        mean = 1e3 * sum(seconds[code]) / count
        print(f"| {code} | {count} | {with_way[code]} | {mean:.1f} |")
    print(
        f"| all | {asked.total()} | {with_way.total()} ({with_way.total() / max(asked.total(), 1):.0%}) | |"
    )
    print(*sorted(shown), sep="\n", end="")


if __name__ == "__main__":
    main()
