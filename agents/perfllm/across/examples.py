"""What a policy is taught: at each position of a good line its next move, among the moves that were legal."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from agents.perfllm.across.policy import NEAR, Example, Reader
from agents.perfllm.across.search import Search
from agents.perfllm.actions import actions_in_turn
from agents.trail import Trail
from dojo_core.moves.notation import parse_move

PAIRS = 24  # of siblings of a position, at most

Siblings = Sequence[Mapping[str, float]]  # of each position of a line: seconds by the hash of a next program


@dataclass(frozen=True)
class Line:
    """A minimised line of moves. ``siblings``: of each of its positions, the best that the search found
    behind each program that it measured next to it, in seconds by hash."""

    seconds: float
    moves: tuple[str, ...]
    siblings: Siblings = ()

    def entry(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "moves": self.moves, "siblings": list(self.siblings)}

    @staticmethod
    def of(entry: Mapping[str, Any]) -> Line:
        return Line(entry["seconds"], tuple(entry["moves"]), tuple(entry["siblings"]))


def siblings_of(trail: Trail, search: Search) -> list[dict[str, float]]:
    """Of each position of a line, the best that a search found behind each program next to it."""
    behind: dict[str, dict[str, float]] = defaultdict(dict)
    for position in search.positions.values():
        programs = position.trail.programs
        for before, after in pairwise(programs):
            known = behind[before.hash]
            known[after.hash] = min(position.cost, known.get(after.hash, position.cost))
    return [behind.get(program.hash, {}) for program in trail.programs]


def examples_of(start: Trail, line: Line, reader: Reader, most: int) -> list[Example]:
    """An example for each position of a line, the last of which is to stop; none where it is not legal.

    Of the moves that are legal at a position those that the line plays later are left out: they commute with
    its next one, and are no worse.
    """
    trail = start.played(map(parse_move, line.moves))
    if len(trail.steps) < len(line.moves):
        return []
    examples = []
    for at, program in enumerate(trail.programs):
        before = trail.upto(at)
        later = [before.extended(step) for step in trail.steps[at:]]
        left_out = {after.program.hash for after in later if after is not None}
        rng = random.Random(program.hash)
        actions = list(islice(actions_in_turn(before, rng), most))
        others = [(after, move) for after, move in actions if after.hash not in left_out]
        changes = [reader.change_of(program, move, after) for after, move in others]
        hashes = ["stop", *(after.hash for after, _ in others)]
        if at < len(trail.steps):
            after, move = trail.programs[at + 1], str(trail.steps[at].move)
            changes = [reader.change_of(program, move, after), reader.stop(), *changes]
            hashes = [after.hash, *hashes]
        else:
            changes = [reader.stop(), *changes]
        best = line.siblings[at] if line.siblings else {}
        examples.append(Example(reader.context_of(program), tuple(changes), _ranks(hashes, best)))
    return examples


def _ranks(hashes: Sequence[str], best: Mapping[str, float]) -> tuple[tuple[int, int], ...]:
    """Pairs (faster, slower) of measured siblings that differ by more than ``NEAR``."""
    known = [(number, best[key]) for number, key in enumerate(hashes) if key in best]
    pairs = [(a, b) for a, x in known for b, y in known if x * NEAR < y]
    return tuple(random.Random(len(hashes)).sample(pairs, min(PAIRS, len(pairs))))
