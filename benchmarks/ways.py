"""How many refusals tell a way: ``python -m benchmarks.ways [KERNEL …] [--kept FILE]``.

At positions of each kernel's recorded line the line's later moves are asked for, too early, and some random
ones that are blocked there. Of those that are refused for what they would do, or for the form of what they
name (not for a name that is not there yet), told are, by what was refused for which code: how many there are,
how many come with moves that make them legal or do in their place, all of them tried out, how many with what
would have to be different instead, and how long asking took in processor time. ``--kept`` goes on where a run
was broken off.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import zlib
from collections import defaultdict
from pathlib import Path

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.moves import Refusal, blocked_moves, parse_move
from dojo_core.moves.legality import context, outcome
from dojo_core.moves.ways import with_enablers
from dojo_core.program.codes import Code

EVERY, AHEAD, RANDOM = 6, 12, 6  # positions of a line; of each, moves of the line behind it, and blocked ones
NAMELESS = {Code.NO_SUCH_PLACE, Code.NAME_TAKEN}
RANKED = 30  # kinds of refusals in the table

Asked = dict[str, object]  # one refusal: move, name, code, sentence, position, way, needs, ms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=sorted(kernels.names()), metavar="KERNEL")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="what was asked, kept by kernel (JSON)")
    parser.add_argument(
        "--show", default="", metavar="CODE", help="the refusals of this code, with what they tell"
    )
    options = parser.parse_args()
    kept: dict[str, list[Asked]] = {}
    if options.kept is not None and options.kept.exists():
        kept = json.loads(options.kept.read_text())
    for name in options.kernels:
        if name not in kept:
            kept[name] = _asked(name)
            if options.kept is not None:
                options.kept.write_text(json.dumps(kept))
    asked = [one for name in options.kernels for one in kept[name]]
    _report(asked)
    for one in asked:
        if one["code"] == options.show:
            told = one["way"] or one["needs"] or "nothing"
            print(f"{one['position']}: {one['move']}: {one['sentence']} -> {told}")


def _asked(name: str) -> list[Asked]:
    """What refusals of a kernel's line tell; none of a kernel without one."""
    line = recorded_lines().get(name)
    if line is None or line.kernel is None:
        return []
    found = kernels.get(line.kernel)
    game = Game.new(found.program(found.shape(line.shape)), line.kernel, line.shape, policy=line.policy)
    line.play(game)
    path, rng = game.line(), random.Random(zlib.crc32(name.encode()))
    told: list[Asked] = []
    for at in range(0, len(path) - 1, EVERY):
        here = context(path[at].program, game.target, game.policy)
        early = [str(position.move) for position in path[at + 2 : at + 2 + AHEAD]]
        blocked = [str(move) for move, _ in blocked_moves(path[at].program, game.target, game.policy)]
        for text in [*early, *rng.sample(blocked, min(RANDOM, len(blocked)))]:
            move = parse_move(text)
            refusal = outcome(here, move)
            if not isinstance(refusal, Refusal) or refusal.code in NAMELESS:
                continue
            begin = time.process_time()
            with_ways = with_enablers(here, move, refusal)
            told.append(
                {
                    "move": text,
                    "name": move.name,
                    "code": str(refusal.code),
                    "sentence": refusal.sentence,
                    "position": f"{name}, position {at}",
                    "way": "; or ".join(
                        f"{', '.join(w.moves)} -> {w.then or 'instead'}" for w in with_ways.ways
                    ),
                    "needs": with_ways.needs,
                    "ms": 1e3 * (time.process_time() - begin),
                }
            )
    return told


def _report(asked: list[Asked]) -> None:
    kinds: defaultdict[tuple[object, object], list[Asked]] = defaultdict(list)
    for one in asked:
        kinds[one["name"], one["code"]].append(one)
    ranked = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
    print("| refused | for | times | with a way | none in principle | asked in, ms (mean, most) |")
    print("|---|---|---:|---:|---:|---:|")
    for (name, code), of_kind in ranked[:RANKED]:
        print(f"| {name} | {code} | {_counted(of_kind)} |")
    print(f"| others | | {_counted([one for _, kind in ranked[RANKED:] for one in kind])} |")
    print(f"| all | | {_counted(asked)} |")
    ways, open_ones = (sum(bool(one["way"]) for one in asked), sum(not one["needs"] for one in asked))
    share = f"{ways / max(open_ones, 1):.0%}"
    print(
        f"\nA way is told by {ways / max(len(asked), 1):.0%} of all, and {share} of those that may have one."
    )


def _counted(asked: list[Asked]) -> str:
    ms = [float(str(one["ms"])) for one in asked] or [0.0]
    ways, principle = (sum(bool(one[part]) for one in asked) for part in ("way", "needs"))
    return f"{len(asked)} | {ways} | {principle} | {sum(ms) / len(ms):.1f}, {max(ms):.0f}"


if __name__ == "__main__":
    main()
