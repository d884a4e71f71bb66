"""How many refusals tell a way: ``python -m benchmarks.ways [KERNEL …] [--kept FILE]``.

At positions of each kernel's recorded line the line's later moves are asked for, too early, and some random
ones that are blocked there; with ``--random``, blocked ones at the positions of players who choose any legal
move, in the paper's 16 kernels. Of those that are refused for what they would do, or for the form of what
they name (not for a name that is not there yet), told are, by what was refused for which code: how many there
are, how many come with moves that make them legal or do in their place, all of them tried out, how many with
what would have to be different instead, and how long asking took in processor time. ``--kept`` goes on where
a run was broken off. ``--random --write`` puts the most frequent ones into docs/legality.md, each with an
example and what an expert would do (benchmarks/experts.toml, written by hand).
"""

from __future__ import annotations

import argparse
import json
import random
import time
import tomllib
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.sections import fill
from dojo_core import kernels
from dojo_core.cli.positions import TABLE_3
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.moves import Refusal, apply, blocked_moves, legal_moves, parse_move
from dojo_core.moves.core import Context, Move
from dojo_core.moves.legality import context, outcome
from dojo_core.moves.ways import with_enablers
from dojo_core.program.codes import Code
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.tree import Program

EVERY, AHEAD, RANDOM = 6, 12, 6  # positions of a line; of each, moves of the line behind it, and blocked ones
PLAYERS, STEPS, BLOCKED = 2, 12, 8  # who play any legal move; of each position, moves that are blocked
LONGEST = 60  # lines of a text that such a player goes on from
NAMELESS = {Code.NO_SUCH_PLACE, Code.NAME_TAKEN}
RANKED = 30  # kinds of refusals in the table
MOST_FREQUENT = 20  # in the documentation
PAGE = Path("docs/legality.md")
BEGIN, END = "<!-- written by python -m benchmarks.ways --random --write -->", "<!-- end of refusals -->"
EXPERTS = Path(__file__).with_name("experts.toml")

Asked = dict[str, object]  # one refusal: move, name, code, sentence, position, way, needs, ms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "kernels", nargs="*", metavar="KERNEL", help="all that have a line, or those of --random"
    )
    parser.add_argument("--random", action="store_true", help="moves that random players meet")
    parser.add_argument("--write", action="store_true", help="with --random: into docs/legality.md")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="what was asked, kept by kernel (JSON)")
    parser.add_argument(
        "--show", default="", metavar="CODE", help="the refusals of this code, with what they tell"
    )
    options = parser.parse_args()
    names = options.kernels or (TABLE_3 if options.random else sorted(kernels.names()))
    kept: dict[str, list[Asked]] = {}
    if options.kept is not None and options.kept.exists():
        kept = json.loads(options.kept.read_text())
    for name in names:
        if name not in kept:
            kept[name] = list(_met(name) if options.random else _asked(name))
            if options.kept is not None:
                options.kept.write_text(json.dumps(kept))
    asked = [one for name in names for one in kept[name]]
    _report(asked)
    if options.random and options.write:
        fill(PAGE, BEGIN, END, _page(asked))
    for one in asked:
        if one["code"] == options.show:
            told = one["way"] or one["needs"] or "nothing"
            print(f"{one['position']}: {one['move']}: {one['sentence']} -> {told}")


def _asked(name: str) -> Iterator[Asked]:
    """What refusals of a kernel's line tell; none of a kernel without one."""
    line = recorded_lines().get(name)
    if line is None or line.kernel is None:
        return
    found = kernels.get(line.kernel)
    game = Game.new(found.program(found.shape(line.shape)), line.kernel, line.shape, policy=line.policy)
    line.play(game)
    path, rng = game.line(), random.Random(zlib.crc32(name.encode()))
    for at in range(0, len(path) - 1, EVERY):
        here = context(path[at].program, game.target, game.policy)
        early = [str(position.move) for position in path[at + 2 : at + 2 + AHEAD]]
        blocked = [str(move) for move, _ in blocked_moves(path[at].program, game.target, game.policy)]
        for text in [*early, *rng.sample(blocked, min(RANDOM, len(blocked)))]:
            move = parse_move(text)
            refusal = outcome(here, move)
            if isinstance(refusal, Refusal) and refusal.code not in NAMELESS:
                yield _told(here, move, refusal, f"{name}, position {at}")


def _met(name: str) -> Iterator[Asked]:
    """What refusals tell that players of any legal move meet in a kernel, at its first shape."""
    kernel = kernels.get(name)
    for player in range(PLAYERS):
        rng = random.Random(zlib.crc32(f"{name} {player}".encode()))
        program: Program = kernel.program(kernel.shapes[0])
        for step in range(STEPS):
            here = context(program, DEFAULT_TARGET)
            blocked = blocked_moves(program)
            for move, refusal in rng.sample(blocked, min(BLOCKED, len(blocked))):
                yield _told(here, move, refusal, f"{name}, player {player}, move {step}")
            legal = legal_moves(program)
            if not legal or program.text.count("\n") > LONGEST:
                break
            program = apply(program, rng.choice(legal))


def _told(here: Context, move: Move, refusal: Refusal, position: str) -> Asked:
    begin = time.process_time()
    with_ways = with_enablers(here, move, refusal)
    ways = (f"{', '.join(way.moves)} -> {way.then or 'instead'}" for way in with_ways.ways)
    return {
        "move": str(move),
        "name": move.name,
        "code": str(refusal.code),
        "sentence": refusal.sentence,
        "position": position,
        "way": "; or ".join(ways),
        "needs": with_ways.needs,
        "ms": 1e3 * (time.process_time() - begin),
    }


def _ranked(asked: list[Asked]) -> list[tuple[tuple[str, str], list[Asked]]]:
    """By what was refused for which code, the most frequent first."""
    kinds: defaultdict[tuple[str, str], list[Asked]] = defaultdict(list)
    for one in asked:
        kinds[str(one["name"]), str(one["code"])].append(one)
    return sorted(kinds.items(), key=lambda kind: -len(kind[1]))


def _page(asked: list[Asked]) -> str:
    """A table of the most frequent kinds, each with its most usual way in an example."""
    experts = tomllib.loads(EXPERTS.read_text(encoding="utf-8"))
    rows = [
        f"Of {len(asked):,} refusals that players of any legal move met in the paper's 16 kernels, "
        f"the {MOST_FREQUENT} most frequent kinds:\n",
        "| refused | for | times | with a way | none in principle | for instance | what an expert would do |",
        "|---|---|---:|---:|---:|---|---|",
    ]
    for (name, code), of_kind in _ranked(asked)[:MOST_FREQUENT]:
        ways, principle = (sum(bool(one[part]) for one in of_kind) for part in ("way", "needs"))
        expert = experts.get(name, {}).get(code, "not judged yet")
        example = _example(of_kind)
        rows.append(f"| {name} | {code} | {len(of_kind)} | {ways} | {principle} | {example} | {expert} |")
    return "\n".join(rows)


def _example(of_kind: list[Asked]) -> str:
    """The shortest refusal whose way is of the most usual sort; where none has a way, what it needs."""

    def sort_of(one: Asked) -> str:
        first = str(one["way"] or one["needs"]).partition("; or ")[0]
        return " ".join(part.split()[0] for part in first.split(", ")) if one["way"] else first

    of_kind = [one for one in of_kind if one["way"]] or of_kind
    usual, _ = Counter(map(sort_of, of_kind)).most_common(1)[0]
    one = min(
        (one for one in of_kind if sort_of(one) == usual),
        key=lambda one: (len(str(one["way"])) + len(str(one["move"])), str(one["move"])),
    )
    first = str(one["way"]).partition("; or ")[0]
    moves = [f"`{part}`" for part in first.replace(" -> ", ", ").split(", ") if part not in ("", "instead")]
    instead = "Instead " if first.endswith("instead") else "Offered: "
    offered = f"{instead}{' then '.join(moves)}." if moves else one["needs"]
    return f"`{one['move']}`: {one['sentence']} {offered}".replace("|", "\\|")


def _report(asked: list[Asked]) -> None:
    ranked = _ranked(asked)
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
