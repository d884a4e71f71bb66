"""Our entries of a bench: the start program, a heuristic's line, the line by hand, the best record."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from dojo_core.checkout import entries
from dojo_core.game import Game
from dojo_core.graph.hoisting import hoisted
from dojo_core.measure.records import Records
from dojo_core.passed import Passed, passed
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.registry import backend

log = logging.getLogger(__name__)
ENTRY_POINTS = "dojo.heuristics"  # of installed packages: functions that play a game on from its cursor


@dataclass(frozen=True)
class Entry:
    """One of ours: a name, the program, where it comes from. ``policy``: the one that it is judged by, where
    it is not the game's. ``constants``: what it makes of these inputs alone is made beforehand."""

    name: str
    program: Program
    details: str = ""
    policy: str = ""
    constants: frozenset[str] = frozenset()


def heuristics() -> dict[str, Callable[[Game], object]]:
    """Agents that measure nothing, by name: what packages register under ``dojo.heuristics``."""
    return {point.name: point.load() for point in entries(ENTRY_POINTS)}


def heuristic_ends(game: Game) -> tuple[dict[str, Passed], list[str]]:
    """What each heuristic plays from a game's start, by its name, and remarks on those that fail. It is kept:
    the second time, also of another process, nothing is played."""
    ends, remarks = {}, []
    limits = game.limits or backend(game.target).limits
    for name, heuristic in heuristics().items():

        def play(heuristic: Callable[[Game], object] = heuristic) -> Passed:
            copy = Game.new(
                game.start, game.kernel, game.shape, game.target, game.policy, limits=game.limits,
                constants=game.constants,
            )  # fmt: skip
            heuristic(copy)
            return Passed(copy.current.program, tuple(str(p.move) for p in copy.line()[1:]))

        player = f"{heuristic.__module__}:{heuristic.__qualname__} {game.kernel} {game.shape}"
        try:
            ends[name] = passed(
                player, [heuristic.__module__], game.start, game.policy, limits, play, game.constants
            )
        except Exception as fault:  # an agent's fault is a remark, not the end of who asks
            log.exception("%s on %s", name, game.title)
            remarks.append(f"{name} failed: {fault}")
    return ends, remarks


def heuristic_entries(
    game: Game, policy: str = "", constants: Collection[str] = ()
) -> tuple[list[Entry], list[str]]:
    """The ends, and the remarks: by the game's policy; by another one, if any, too; and by each with
    ``constants`` among the inputs, where something is made of these alone. The game's own come last."""
    entries: list[Entry] = []
    remarks: list[str] = []
    for other in dict.fromkeys([policy or game.policy, game.policy]):
        for known in [frozenset(constants), frozenset[str]()] if constants else [frozenset[str]()]:
            copy = Game.new(
                game.start, game.kernel, game.shape, game.target, other, limits=game.limits, constants=known
            )
            ends, failed = heuristic_ends(copy)
            remarks += [each for each in failed if each not in remarks]
            for name, end in ends.items():
                if known and hoisted(end.program, known) is None:
                    remarks.append(f"By the policy {other} {name} makes nothing of {_and(known)} alone.")
                    continue
                title = name if other == game.policy else f"{name} {other}"
                title += f", {_and(known)} made ahead" if known else ""
                entries.append(Entry(title, end.program, f"{len(end.moves)} moves", other, known))
    return entries, remarks


def _and(names: Collection[str]) -> str:
    return " and ".join(sorted(names))


def best_record(records: Records, game: Game) -> Entry | None:
    """The fastest verified program that the records know for this start on this machine."""
    origin = backend(game.target).clock().origin
    record = records.best(game.start.hash, origin.target, origin.fingerprint, game.policy) if origin else None
    if record is None:
        return None
    try:
        program = parse(record.program_text)
    except TextError:  # written by another version
        return None
    who = f" by {record.player}" if record.player else ""
    return Entry("record", program, f"the best record{who}")
