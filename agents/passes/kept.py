"""What the heuristic pass makes of a kernel, kept on disk, so that a second process does not wait for it."""

from __future__ import annotations

import hashlib
import logging
from functools import cache
from pathlib import Path

from agents import passes
from dojo_core import moves
from dojo_core.measure import sealed
from dojo_core.measure.machine import this_machine
from dojo_core.measure.places import cache_directory
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse
from dojo_core.program.tree import Program

log = logging.getLogger(__name__)


def heuristic(start: Program, policy: str = "reassoc") -> Program:
    """What the heuristic pass plays from a program on this machine's CPU.

    Kept by the program's text, the policy, the machine, and the sources of passes and moves.
    """
    path = sealed.folder(cache_directory() / "passes") / f"{_key(start, policy)}.text"
    kept = sealed.read(path)
    if kept is not None:
        try:
            return parse(bytes(kept).decode())
        except TextError:  # another version's, whose text form was another
            log.info("%s cannot be read: the pass plays again", path)
    program = passes.passed(start, "heuristic", policy)
    sealed.keep(path, program.text.encode())
    return program


def _key(start: Program, policy: str) -> str:
    content = "\0".join((start.text, policy, this_machine().fingerprint, _players()))
    return hashlib.sha256(content.encode()).hexdigest()[:24]


@cache
def _players() -> str:
    """The sources that decide what the pass plays."""
    digest = hashlib.sha256()
    for package in (passes, moves):
        for path in sorted(Path(package.__path__[0]).glob("**/*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
