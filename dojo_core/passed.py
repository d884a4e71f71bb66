"""What players that measure nothing make of a start, kept on disk, so that a second process does not wait."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dojo_core.measure import sealed
from dojo_core.measure.machine import this_machine
from dojo_core.measure.places import cache_directory
from dojo_core.program.expressions import TextError
from dojo_core.program.target import Target
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.source_digest import source_digest

log = logging.getLogger(__name__)

_RULES = "dojo_core.moves", "dojo_core.program"  # the packages that say what a move is and makes


@dataclass(frozen=True)
class Passed:
    """The program that was made, and the moves that led there from the start."""

    program: Program
    moves: tuple[str, ...]


def passed(
    player: str,
    packages: Sequence[str],
    start: Program,
    policy: str,
    limits: Target,
    play: Callable[[], Passed],
    constants: frozenset[str] = frozenset(),
) -> Passed:
    """What ``play`` gives, or what it gave before: kept by the start's text, the policy, the limits, the
    inputs that are ``constants``, the machine, the player's name, the sources of its ``packages`` and of the
    target. What it raises is not kept."""
    own = type(limits).__module__
    passes = [where.partition(":")[0] for where in limits.passes.values()]
    sources = source_digest(*packages, *_RULES, own.rpartition(".")[0] or own, *passes)
    known = sorted(constants)
    asked = (player, start.text, policy, described(limits), known, this_machine().fingerprint, sources)
    key = hashlib.sha256(repr(asked).encode()).hexdigest()[:24]
    path = sealed.folder(cache_directory() / "passes") / f"{key}.text"
    content = sealed.read(path)
    if content is not None:
        head, _, text = bytes(content).partition(b"\n")
        try:
            return Passed(parse(text.decode()), tuple(map(str, json.loads(head))))
        except (TextError, ValueError, TypeError):
            log.info("%s cannot be read: %s plays again", path, player)
    made = play()
    try:
        sealed.keep(path, json.dumps(made.moves).encode() + b"\n" + made.program.text.encode())
    except OSError as fault:
        log.warning("What %s played is not kept: %s", player, fault)
    return made


def described(limits: Target) -> list[Any]:
    """Limits as values whose ``repr`` is the same in every process."""
    values = (getattr(limits, field.name) for field in fields(limits))
    return [type(limits).__name__, *(sorted(v) if isinstance(v, frozenset) else v for v in values)]
