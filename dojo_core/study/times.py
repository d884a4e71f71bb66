"""What a study's programs take, on the machines that were asked: kept in a file beside the study.

A file holds what each machine measured. Taking the times anew on a machine replaces that machine's, and
leaves the others'.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dojo_core.actions.timing import workload_of
from dojo_core.bounded_json import NotJson, read_object
from dojo_core.codegen.code import NotGeneratable
from dojo_core.game import Game, Position
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.measure.speed import in_turns
from dojo_core.moves import Move, apply, legal_moves
from dojo_core.program.expressions import TextError
from dojo_core.program.tree import Program
from dojo_core.service.view import profile_view
from dojo_core.study.study import Study
from dojo_core.targets.measurers import Measurers
from dojo_core.targets.registry import backend

VERSION = 1
LARGEST = 32 << 20  # bytes of a file
MOST_MACHINES = 8

Json = dict[str, Any]


@dataclass(frozen=True)
class Times:
    """What one machine took. ``machine`` in words, ``date`` of the day; ``key`` tells two machines apart.

    ``seconds``: shortest and median of a verified program, by its hash (on a target with a model: of the
    model), the shortest twice where a record holds no more; ``failed``: why others have none. ``speeds``: of
    a position's program the moves', by both hashes, as [verdict, value, low, high, rounds] of rounds in
    turns. ``profiles``: where the time of a program goes. ``limits``: of a start program, by its hash, the
    machine's limit and PyTorch's time.
    """

    key: str
    machine: str
    date: str
    seconds: dict[str, list[float]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    speeds: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    profiles: dict[str, Json] = field(default_factory=dict)
    limits: dict[str, Json] = field(default_factory=dict)


def times_file(study: Path) -> Path:
    """Where the times of a study's file are kept: ``softmax.md`` has ``softmax.times.json``."""
    return study.with_suffix(".times.json")


def write_times(every: list[Times]) -> str:
    """The text of a file."""
    content = {"dojo times": VERSION, "machines": [asdict(times) for times in every]}
    return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def read_times(text: str) -> list[Times]:
    """The machines of a file's text. Raises TextError."""
    try:
        content = read_object(text, LARGEST)
        if content.get("dojo times") != VERSION or not isinstance(content.get("machines"), list):
            raise ValueError('it does not begin with "dojo times": 1')
        if len(content["machines"]) > MOST_MACHINES:
            raise ValueError(f"more than {MOST_MACHINES} machines")
        return [_read(each) for each in content["machines"]]
    except (NotJson, ValueError, KeyError, TypeError, AttributeError) as fault:
        why = f"{fault} is missing" if isinstance(fault, KeyError) else str(fault)
        raise TextError(
            f"these are no times of a study ({why})", "Take them again: dojo study time"
        ) from fault


# What a file may say of each program: no page grows without bound because of it.
MOST_PROGRAMS = 100_000
MOST_PARTS = 2_000
_PATH = re.compile(r"(\d+(\.\d+)*)?\Z", re.ASCII)
_VERDICTS = ("faster", "slower", "equal", "unsure", "undecided")
_LIMIT_NUMBERS = ("seconds", "gbytes_per_second", "gflops")
_LIMIT_WORDS = ("bound", "pattern", "reached")


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError(f"{value!r:.40} is no time")
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError(f"{value!r:.40} is no count")
    return value


def _words(value: Any, longest: int = 600) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is no text")
    return value[:longest]


def _known(content: Any, most: int = MOST_PROGRAMS) -> Iterator[tuple[str, Any]]:
    """The entries of an object whose keys are hashes, or paths."""
    if len(content) > most:
        raise ValueError(f"more than {most:,} entries in one place")
    for name, value in content.items():
        if len(name) > 200:
            raise ValueError(f"{name[:40]!r} names no program")
        yield name, value


def _speed(row: Any) -> list[Any]:
    verdict, value, low, high, rounds = row
    if verdict not in _VERDICTS:
        raise ValueError(f"{verdict!r:.40} is no verdict")
    return [verdict, _number(value), _number(low), _number(high), _count(rounds)]


def _path(text: str) -> str:
    if not _PATH.match(text):
        raise ValueError(f"{text[:40]!r} is no node of a program")
    return text


def _share(value: Any) -> float:
    return min(1.0, _number(value))


def _profile_of(content: Json) -> Json:
    """Where the time of a program goes, as ``profile_view`` tells it, and no more than that."""
    rows = content["hot"]
    if len(rows) > MOST_PARTS:
        raise ValueError(f"a profile of more than {MOST_PARTS:,} rows")
    return {
        "parts": {
            _path(path): {
                "text": _words(part["text"]),
                "share": _share(part["share"]),
                **{name: _words(part[name]) for name in ("bound", "source", "sentence")},
            }
            for path, part in _known(content["parts"], MOST_PARTS)
        },
        "hot": [[_count(first), _count(last), _share(share)] for first, last, share in rows],
        "note": _words(content["note"]),
    }


def _limit_of(content: Json) -> Json:
    """``roofline``, as ``roofline_view`` tells it, and no more than that."""
    told = content.get("roofline")
    if told is None:
        return {}
    numbers = {name: _number(told[name]) for name in _LIMIT_NUMBERS}
    return {"roofline": {**numbers, **{name: _words(told[name]) for name in _LIMIT_WORDS}}}


def _read(content: Json) -> Times:
    return Times(
        _words(content["key"], 64),
        _words(content["machine"], 200),
        _words(content["date"], 20),
        {h: [_number(a), _number(b)] for h, (a, b) in _known(content["seconds"])},
        {h: _words(why) for h, why in _known(content["failed"])},
        {a: {b: _speed(row) for b, row in _known(each)} for a, each in _known(content["speeds"])},
        {h: _profile_of(each) for h, each in _known(content["profiles"])},
        {h: _limit_of(each) for h, each in _known(content["limits"])},
    )


def joined(known: list[Times], new: Times) -> list[Times]:
    """The machines of a file with one taken anew: it keeps its place, the others stay as they are."""
    if any(times.key == new.key for times in known):
        return [new if times.key == new.key else times for times in known]
    if len(known) == MOST_MACHINES:
        raise TextError(
            f"the times of {MOST_MACHINES} machines are here already", "Take one out of the file first."
        )
    return [*known, new]


def workload(game: Game) -> Workload:
    return workload_of(game)


def take(
    study: Study,
    moves: int | None = None,
    profiles: bool = True,
    advance: Callable[[], None] = lambda: None,
    limits: Callable[[Game], Json] = lambda game: {},
    begun: Times | None = None,
    keep: Callable[[Times], None] = lambda times: None,
) -> Times:
    """Verify and time every position of a study on this machine, and in turns with it what its legal moves
    lead to, ``moves`` of them at most (None: all); ``profiles``: and where the time of each goes.

    ``advance`` is called after each position. ``limits`` tells of a game what the machine could do at best.
    ``begun``: what is known already, and not taken again; ``keep`` is given what is known then, after each
    position.
    """
    key, machine = clock_of(study.games)
    times = Times(key, machine, today())
    if begun is not None and begun.key == key:
        times = replace(begun, machine=machine, date=times.date)
    every = [(game, position) for game in study.games for position in game.positions.values()]
    with ExitStack() as stack:
        measurers = Measurers(None)
        stack.callback(measurers.close)
        for game, position in every:
            measurer = measurers.of(game.target)
            program = position.program
            if program.hash not in times.seconds and program.hash not in times.failed:
                _keep(times, measurer.measure(workload(game), [program], Effort.NORMAL))
            if moves != 0 and program.hash not in times.speeds:
                _successors(times, measurer, game, program, chosen(study, game, position, moves))
            if (
                profiles
                and program.hash not in times.profiles
                and backend(game.target).clock().kind == "measured"
            ):
                _profile(times, measurer, game, program)
            if game.start.hash not in times.limits:
                times.limits[game.start.hash] = limits(game)
            keep(times)
            advance()
    return times


def today() -> str:
    """The day as files of times tell it."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def clock_of(games: Iterable[Game]) -> tuple[str, str]:
    """What tells this machine from others, and its words; where models alone tell the games' times, it is
    theirs."""
    targets = {game.target for game in games}
    if all(backend(name).clock().kind == "modelled" for name in targets):
        return "model", " and ".join(sorted(f"model of {backend(name).words.title}" for name in targets))
    machine = this_machine()
    return machine.fingerprint, machine.summary


def _keep(times: Times, measured: list[Measurement]) -> None:
    for each in measured:
        if each.status == "ok" and each.seconds is not None:
            times.seconds[each.program_hash] = [each.seconds, each.median or each.seconds]
        else:
            times.failed[each.program_hash] = each.message or each.status.replace("_", " ")


def chosen(study: Study, game: Game, position: Position, most: int | None) -> list[Program]:
    """What the legal moves of a position lead to, ``most`` different programs (None: all): by the moves that
    the study plays or asks about there, then by one of each kind of move in turn."""
    told = {str(game.positions[child].move) for child in position.children}
    for chapter in study.chapters:
        asked = chapter.questions.get(position.id) if chapter.game is game else None
        if asked is not None and asked.kind == "move":
            told |= {" ".join(answer.text.split()) for answer in asked.question.answers}
    of_kind: Counter[str] = Counter()
    turns: list[tuple[bool, int, Move]] = []
    for move in legal_moves(position.program, game.target, game.policy):
        turns.append((str(move) not in told, of_kind[move.name], move))
        of_kind[move.name] += 1
    after: dict[str, Program] = {}
    for _, _, move in sorted(turns, key=lambda turn: turn[:2]):
        if most is not None and len(after) >= most:
            break
        program = apply(position.program, move, target=game.target, policy=game.policy).lean()
        after.setdefault(program.hash, program)
    return list(after.values())


def _successors(times: Times, measurer: Any, game: Game, program: Program, after: list[Program]) -> None:
    exact = backend(game.target).clock().exact
    against = None if exact or program.hash not in times.seconds else program
    measured = measurer.measure(workload(game), after, Effort.QUICK, against=against)
    speeds = times.speeds.setdefault(program.hash, {})
    here = times.seconds.get(program.hash)
    for each in measured:
        if each.program_hash == program.hash:
            continue
        _keep(times, [each])
        if each.status != "ok" or each.seconds is None or here is None:
            continue
        if each.ratios and len(each.ratios) > 1:
            speed = in_turns(each.ratios, final=True)
            row = [speed.verdict, speed.value, speed.low, speed.high, speed.rounds]
        elif exact:
            value = here[0] / each.seconds
            row = ["faster" if value > 1 else "slower" if value < 1 else "equal", value, value, value, 0]
        else:
            continue
        speeds[each.program_hash] = [row[0], *(float(f"{x:.4g}") for x in row[1:4]), row[4]]


def _profile(times: Times, measurer: Any, game: Game, program: Program) -> None:
    try:
        told = measurer.profile(workload(game), program)
    except (NotGeneratable, ValueError):
        return
    times.profiles[program.hash] = profile_view(told)
