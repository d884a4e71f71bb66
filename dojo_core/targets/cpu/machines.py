"""Processors of other machines by fingerprint: what workers told, what records tell, what a game brings.

What a worker told, and what could be read out of records, lies in a file for each machine beside the
records, so that every process of this user knows it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Set
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from dojo_core.bounded_json import NotJson, read_object
from dojo_core.files import naming
from dojo_core.measure.places import data_directory, data_home
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.targets.cpu.processor import (
    ARM,
    NAMES,
    X86,
    NotAProcessor,
    Processor,
    from_json,
    vectors_of,
)

if TYPE_CHECKING:
    from dojo_core.measure.records import Records

FOLDER = "machines"
MOST = 256  # machines that are remembered, and as many that games brought to this process
FINGERPRINT = re.compile("[0-9a-f]{16}")
_LARGEST = 1 << 16  # bytes of a file

_brought: dict[str, Processor] = {}


def remember(fingerprint: str, processor: Processor) -> None:
    """Keep what a machine is, over what was known of it before."""
    if not FINGERPRINT.fullmatch(fingerprint):
        raise NotAProcessor(f"{fingerprint!r:.40} is no fingerprint of a machine.")
    folder = data_directory() / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{fingerprint}.json"
    before = remembered(fingerprint)
    if before is not None and before.json == processor.json:
        return
    others = sorted(folder.glob("*.json"), key=lambda each: each.stat().st_mtime)
    for oldest in others[: max(0, len(others) - MOST + 1)] if before is None else ():
        oldest.unlink(missing_ok=True)
    temporary = folder / f".{fingerprint}.{os.getpid()}"
    with naming(temporary):
        temporary.write_text(processor.json, encoding="utf-8")
        os.replace(temporary, file)


def remembered(fingerprint: str) -> Processor | None:
    """What a machine is, if a worker or the records told it."""
    file = data_home() / FOLDER / f"{fingerprint}.json"
    try:
        return _read(file, file.stat().st_mtime_ns) if FINGERPRINT.fullmatch(fingerprint) else None
    except OSError:
        return None


@lru_cache(maxsize=MOST)
def _read(file: Path, changed: int) -> Processor | None:
    """It is asked for at every turn of a game."""
    try:
        with file.open("rb") as opened:
            return from_json(opened.read(_LARGEST).decode())
    except (UnicodeDecodeError, NotAProcessor):
        return None


def all_remembered() -> dict[str, Processor]:
    """Every machine that is remembered, by fingerprint."""
    files = sorted((data_home() / FOLDER).glob("*.json"))
    by_fingerprint = {f.stem: remembered(f.stem) for f in files if FINGERPRINT.fullmatch(f.stem)}
    return {
        fingerprint: processor for fingerprint, processor in by_fingerprint.items() if processor is not None
    }


def bring(fingerprint: str, told: str) -> None:
    """Take a machine's processor from a game, for this process alone: whoever wrote the game need not know
    better than the machine itself. Raises NotAProcessor."""
    processor = from_json(told)
    if FINGERPRINT.fullmatch(fingerprint) and len(_brought) < MOST:
        _brought.setdefault(fingerprint, processor)


def find(fingerprint: str) -> Processor | None:
    """What a machine is, as far as anybody told here."""
    return remembered(fingerprint) or _brought.get(fingerprint)


def learn(records: Records) -> dict[str, str]:
    """Remember the machines of records, as long as there is room: what workers told counts more. Claims tell
    nothing. Of those that cannot be, why, by fingerprint."""
    known = all_remembered()
    untold = {}
    for fingerprint, details in records.measured_on(DEFAULT_TARGET, known, max(0, MOST - len(known))):
        try:
            remember(fingerprint, of_details(details))
        except NotAProcessor as fault:
            untold[fingerprint] = str(fault)
    return untold


def of_details(details: str) -> Processor:
    """The processor of a machine as its records describe it (``measure/machine.py``).

    Records of an older Dojo name no architecture, which its features tell, and no caches of one core.
    Raises NotAProcessor.
    """
    try:
        facts = read_object(details, _LARGEST)
        features = frozenset(str(facts["features"]).split())
        cores = int(facts["cores"])
        name = str(facts["cpu"])
        architecture = str(facts.get("architecture") or "")
        named = NAMES.get(architecture, architecture) or _guessed(features)
        shared, last = int(facts["second_level_cache"]), int(facts["last_level_cache"])
        caches = list(facts.get("caches") or (0, shared // max(cores, 1), last))
    except (NotJson, KeyError, TypeError, ValueError):
        raise NotAProcessor("Its records describe it in a form that is not read here.") from None
    if not named:
        raise NotAProcessor("Its records do not tell its instruction set: a worker on it does.")
    register_bytes, vectors = vectors_of(named, features)
    processor = Processor(
        name,
        named,
        features,
        vectors,
        register_bytes,
        tuple(caches),
        cores,
    )
    return from_json(processor.json)  # within its limits


def _guessed(features: Set[str]) -> str:
    """The instruction set that has features of these names."""
    return X86 if "sse2" in features else ARM if {"fp", "asimd"} <= features else ""
