"""Which program runs for each kernel of a graph: what the heuristic pass plays, or the best that is recorded.

What the pass plays is kept on disk, by the text it began with and by the pass itself, so that a second
process does not wait for it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

from agents import passes
from agents.passes import play_pass
from dojo_core import moves
from dojo_core.game import Game, GameFull
from dojo_core.measure import sealed
from dojo_core.measure.machine import this_machine
from dojo_core.measure.places import cache_directory
from dojo_core.measure.records import Records
from dojo_core.moves import IllegalMove
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.processor import host
from dojo_core.program.target import DEFAULT_TARGET

log = logging.getLogger(__name__)

Choose = Callable[[Program], Program]


def heuristic(start: Program, policy: str = "reassoc") -> Program:
    """What the heuristic pass makes of a kernel on this machine's CPU; the kernel as it is where it fails."""
    path = sealed.folder(cache_directory() / "passes") / f"{_key(start, policy)}.text"
    kept = sealed.read(path)
    if kept is not None:
        try:
            return parse(bytes(kept).decode())
        except TextError:  # of a version with another text form: it is played again
            log.info("%s is of another version", path)
    game = Game.new(start, policy=policy)
    try:
        play_pass(game, "heuristic")
    except (IllegalMove, GameFull) as fault:
        log.warning("The heuristic pass did not finish %s, which runs as it is: %s", start.name, fault)
        return start
    program = game.current.program
    sealed.keep(path, program.text.encode())
    return program


def recorded(records: Records, policy: str = "reassoc") -> Choose:
    """The fastest verified program that the records have for a kernel on this machine, else the pass's."""

    def choose(start: Program) -> Program:
        best = records.best(start.hash, DEFAULT_TARGET, this_machine().fingerprint, policy)
        return heuristic(start, policy) if best is None else parse(best.program_text)

    return choose


def _key(start: Program, policy: str) -> str:
    content = "\0".join((start.text, policy, repr(host()), _players()))
    return hashlib.sha256(content.encode()).hexdigest()[:24]


@cache
def _players() -> str:
    """The sources that decide what the pass plays."""
    digest = hashlib.sha256()
    for package in (passes, moves):
        for path in sorted(Path(package.__path__[0]).glob("**/*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
