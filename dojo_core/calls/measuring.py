"""Times: of a position and of what its moves lead to, in turns; beside other implementations; and hints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from dojo_core import described
from dojo_core.actions.comparing import NAMES, OTHERS, NotComparable, comparison_of
from dojo_core.actions.timing import NothingTimes, clock_here, number_text
from dojo_core.bench.table import lines as rows_of
from dojo_core.calls import answers
from dojo_core.calls.call import Answer, CallFault
from dojo_core.calls.desk import Desk
from dojo_core.calls.looking import looked_at
from dojo_core.calls.registry import call
from dojo_core.calls.words import At, GameId, ended, outcome_text, position_of, written
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.speed import Speed
from dojo_core.service import feed
from dojo_core.service.attention import LOOKED_AT, SELF, START, moves_to, task_of
from dojo_core.service.changes import copied
from dojo_core.service.comparing import Comparison
from dojo_core.service.lanes import waited_for
from dojo_core.service.learned import Learned
from dojo_core.service.players import Table
from dojo_core.service.queue import Outcome, Task, stopped
from dojo_core.service.view import Json
from dojo_core.targets.registry import backend

LOOK = 0.02  # seconds between two looks at what came
Seconds = Annotated[
    float, "how long to wait at most; what is not there then is told as such", {"maximum": 300}
]


@call(answers.Measured, changes=True)
def measure(
    desk: Desk,
    game: GameId,
    moves: Annotated[
        list[str],
        "moves or recipes of the position: what each leads to is timed in turns with it, nothing is played",
        {"maxItems": 16, "items": {"type": "string", "maxLength": 500}},
    ] = (),  # type: ignore[assignment]
    at: At = None,
    seconds: Seconds = 30.0,
) -> Answer:
    """Verify and time a position, or what moves of it lead to; waits until it is done or the seconds are
    over.

    Data: ``game``, ``position``, ``state`` (``measured`` or ``not yet``), ``unit`` (``seconds`` or
    ``cycles`` in ns), ``outcome``: the ``status`` (``ok`` or what is wrong), ``seconds``, ``median``,
    ``message`` and ``machine`` (what else ran), null while unknown; ``speedup`` against the start:
    ``value``, ``low``, ``high``, ``rounds`` in turns (0: times of different moments), ``final``,
    ``verdict``; ``best`` of the game: ``position``, ``seconds``. With moves, ``moves``: of each its
    ``move``, ``outcome`` and ``speed`` against the position.
    """
    table = desk.table(game)
    analysis, number = looked_at(desk, table, at)
    try:
        clock = clock_here(analysis.target)
    except NothingTimes as fault:
        raise CallFault(str(fault), "missing") from fault
    asked = list(dict.fromkeys(" ".join(text.split()) for text in moves))
    after = [analysis.successor(text) for text in asked]
    with table.lock:
        position, start = position_of(table.game, number), table.game.positions[0]
        line = moves_to(table.game, position)
        here = task_of(table, position.program, line)
        begin = task_of(table, start.program, "")
    known = desk.service.known
    known(table, [here.hash, begin.hash, *(program.hash for program in after)])
    lane = desk.service.queue.of(table.key)
    with _measuring(desk) as wait:
        wait(table, [(SELF, here), (START, begin)], seconds, lambda: not lane.wanted(desk.seat))
        if after:
            tasks = [
                (LOOKED_AT, task_of(table, program, f"{line}\n{text}".strip()))
                for text, program in zip(asked, after, strict=True)
            ]
            wait(
                table,
                [(SELF, here), (START, begin), *tasks],
                seconds,
                lambda: _told(desk, table, here, tasks),
            )
        elif here.hash != begin.hash and clock.timed and not clock.exact:
            turns = [(LOOKED_AT, here)]
            wait(table, [(SELF, begin), *turns], seconds, lambda: _told(desk, table, begin, turns))
    return _answer(desk, table, here, begin, number, asked, [program.hash for program in after])


@contextmanager
def _measuring(desk: Desk) -> Iterator[Callable[..., None]]:
    """Waiting for measurements, one call of a client's at a time. Raises CallFault."""
    if not desk.measuring.acquire(blocking=False):
        raise CallFault("Another measurement of yours is under way: wait until it is told.", "too_much")
    begun = time.monotonic()

    def wait(table: Table, tasks: list[tuple[int, Task]], seconds: float, done: Callable[[], bool]) -> None:
        """Until that is ``done``, measuring has stopped for good, or the call's seconds are over."""
        lane, until = desk.service.queue.of(table.key), begun + min(seconds, desk.limits.seconds)
        lane.want(desk.seat, tasks)
        while not done() and not lane.down and time.monotonic() < until:
            time.sleep(LOOK)
            lane.renew(desk.seat)

    try:
        yield wait
    finally:
        desk.service.queue.drop(desk.seat)
        desk.measuring.release()


def _told(desk: Desk, table: Table, against: Task, tasks: list[tuple[int, Task]]) -> bool:
    """Is nothing more to come of these, or each told apart from the one that it is held against?"""
    lane = desk.service.queue.of(table.key)
    if lane.wanted(desk.seat):
        return False
    if not lane.open_tasks(desk.seat):
        return True
    speeds = desk.service.speeds(table, against.hash, [task.hash for _, task in tasks])
    return all(speed is None or (speed.rounds > 0 and speed.verdict != "unsure") for speed in speeds)


def _answer(
    desk: Desk, table: Table, here: Task, begin: Task, number: int, asked: list[str], after: list[str]
) -> Answer:
    service, game = desk.service, table.game.id
    target = table.game.target
    outcome, start, *rest = service.known(table, [here.hash, begin.hash, *after])
    if table.owner == desk.owner:
        service.noted(table)
    with table.lock:
        hashes = {p.id: p.program.hash for p in table.game.positions.values()}
        yardstick = feed.yardstick_of(table, start)
    found = zip(hashes, service.known(table, list(hashes.values())), strict=True)
    best = feed.fastest({each: known for each, known in found if known is not None})
    speedup = service.speeds(table, begin.hash, [here.hash])[0]
    if speedup is not None and not speedup.rounds and yardstick is not None and outcome is not None:
        value = yardstick.seconds / outcome.seconds
        spread = speedup.high / speedup.value
        speedup = Speed(value, value / spread, value * spread)
    state = "measured" if outcome is not None and None not in rest else "not yet"
    clock = backend(target).clock()
    lines = [f"Position {number}: {outcome_text(target, outcome)}{_about(outcome)}."]
    lines += [f"These are {clock.label}."] if clock.label and clock.timed else []
    if state == "not yet":
        wait, down = waited_for(target), service.queue.of(table.key).down
        why = stopped(down) if down else wait.sentence if wait is not None else ""
        lines.append(f"Not all is measured yet. {why} Ask again, with more seconds.".replace("  ", " "))
    if speedup is not None and here.hash != begin.hash:
        lines.append(f"Against the start: {_speed_text(speedup)}.")
    if best is not None and best[1] != number:
        lines.append(f"Best of the game: position {best[1]}, {number_text(target, best[0])}.")
    speeds = service.speeds(table, here.hash, after)
    rows = []
    for text, known, speed in zip(asked, rest, speeds, strict=True):
        row = {"move": text, "outcome": _outcome(known)}
        rows.append(row | {"speed": None if speed is None else described.speed(speed)})
        told = "" if speed is None else f", {speed} against the position"
        lines.append(f"{text}: {outcome_text(target, known)}{told}")
    faster = [
        (speed.value, text)
        for text, speed in zip(asked, speeds, strict=True)
        if speed and speed.verdict == "faster"
    ]
    following = [written("moves", game=game), written("hint", game=game)]
    if faster:
        following.insert(0, written("play", game=game, moves=[max(faster)[1]]))
    elif state == "not yet":
        following.insert(0, written("measure", game=game, seconds=120))
    else:
        following.append(written("show", game=game, what="profile", at=number))
    data = {
        "game": game, "position": number, "state": state, "unit": clock.unit,
        "outcome": _outcome(outcome), "speedup": None if speedup is None else described.speed(speedup),
        "best": None if best is None else {"position": best[1], "seconds": best[0]}, "moves": rows,
    }  # fmt: skip
    return Answer(ended(lines, following), data, tuple(following))


def _outcome(outcome: Outcome | None) -> Json | None:
    if outcome is None:
        return None
    return {
        "status": outcome.status, "seconds": outcome.seconds if outcome.ok else None,
        "median": outcome.median if outcome.ok else None, "message": outcome.message[:600],
        "machine": outcome.conditions.words,
    }  # fmt: skip


def _about(outcome: Outcome | None) -> str:
    """How far the median lies above the time, and what else the machine did."""
    if outcome is None or not outcome.ok:
        return ""
    spread = outcome.median / outcome.seconds - 1 if outcome.seconds > 0 else 0.0
    parts = [f"median +{spread:.1%}"] * (spread > 0.0005) + ["machine busy"] * outcome.conditions.busy
    return f" ({', '.join(parts)})" if parts else ""


def _speed_text(speed: Speed) -> str:
    rounds = f"{speed.rounds} rounds in turns" if speed.rounds else "times of different moments"
    return f"{speed.value:.3g}× as fast ({speed.low:.3g} to {speed.high:.3g}, {rounds})"


@call(answers.Hint)
def hint(
    desk: Desk,
    game: GameId,
    level: Annotated[
        Literal["kind", "place", "move"],
        "how much is told: the kind of a good move, its place too, or the move",
    ] = "move",
    at: At = None,
    learned: Annotated[
        bool, "also tell the moves that a policy finds likeliest which has learned on other kernels"
    ] = False,
) -> Answer:
    """What the heuristic pass would play at a position, by the program's structure alone; nothing is
    measured.

    Hints that are played one after the other go along its line to the end. Data: ``game``, ``position``,
    ``source`` (``pass``, or ``none`` where it would play nothing), ``kind``, ``words``, and by ``level``
    ``place``, ``paths`` and ``move``; where it was asked for, ``learned``: ``words`` (whether the policy has
    seen the kernel, or why there is none), ``moves`` (of each the ``move`` and its ``probability``) and
    ``stop``, the probability that no move is worth more.
    """
    table = desk.table(game)
    with table.lock:
        copy = copied(table.game)
        copy.cursor = position_of(copy, at).id
    advised = desk.service.attention.advised(copy)
    if advised is None:
        raise CallFault("There is no pass to ask here: this Dojo was started without agents.", "missing")
    shown = advised
    for _ in range(("kind", "place", "move").index(level)):
        shown = shown.further
    data = {"game": game, "position": copy.cursor, **shown.as_json(), "level": level}
    data.pop("gain", None)  # of what was measured, which a pass does not ask
    beside: list[str] = []
    if learned:
        said = desk.service.attention.learned(copy) or Learned("No policy was handed to this Dojo.")
        data["learned"] = said.as_json()
        beside = [f"Learned: {said.words}", *(f"{each.probability:7.1%}  {each.move}" for each in said.moves)]
        if said.stop is not None:
            beside.append(f"{said.stop:7.1%}  stop")
    if advised.source == "none":
        following = [written("moves", game=game), written("measure", game=game)]
        lines = ["The pass would play nothing more here.", *beside]
        return Answer(ended(lines, following), data, tuple(following))
    told = {"kind": shown.name, "place": f"{shown.name} at {shown.place}", "move": shown.move}[level]
    lines = [f"The pass would play: {told}. {data['words']}", *beside]
    following = [written("moves", game=game, kind=shown.name)]
    if level == "move":
        following = [
            written("play", game=game, moves=[shown.move]),
            written("why", game=game, move=shown.move),
        ]
    return Answer(ended(lines, following), data, tuple(following))


@call(answers.Compared, changes=True)
def compare(
    desk: Desk,
    game: GameId,
    against: Annotated[
        list[str],
        f"what to compare it with: {', '.join(NAMES)}",
        {"minItems": 1, "maxItems": OTHERS, "items": {"type": "string", "maxLength": 40}},
    ] = ("torch",),  # type: ignore[assignment]
    at: At = None,
    seconds: Seconds = 120.0,
    comparison: Annotated[str, "id of one that was begun before, to hear what became of it"] = "",
) -> Answer:
    """Time a position beside PyTorch and others, in turns, each in a process of its own; waits for the
    result.

    What takes longer goes on: ask with the ``comparison`` that is told. Data: ``comparison`` (its id),
    ``state`` (``waiting``, ``running``, ``done``, ``stopped``, ``failed``), ``rows``: of each its
    ``name``, ``status``, ``message``, ``seconds`` (best), ``speed`` against it (how many times as fast
    this position is: ``value``, ``low``, ``high``), null where it has no time.
    """
    comparisons = desk.service.comparisons
    if comparisons is None:
        raise CallFault("Nothing is compared here: this Dojo keeps no comparisons.", "missing")
    table = desk.table(game)
    if comparison:
        made = comparisons.get(comparison)
        if made is None:
            raise CallFault(f"There is no comparison {comparison!r}: leave it out to begin one.", "not_found")
    else:
        with _measuring(desk):  # one at a time of a client's
            if desk.comparison is not None and desk.comparison.open:
                raise CallFault(
                    "A comparison of yours is under way: "
                    f"{written('compare', game=game, comparison=desk.comparison.id)} tells of it.",
                    "too_much",
                )
            with table.lock:
                copy = copied(table.game)
            copy.cursor = position_of(copy, at).id
            try:
                made = desk.comparison = comparisons.start(comparison_of(copy, against))
            except NotComparable as fault:
                raise CallFault(str(fault), "refused") from fault
    until = time.monotonic() + min(seconds, desk.limits.seconds)
    while made.open and time.monotonic() < until:
        time.sleep(10 * LOOK)
    return _compared(game, made)


def _compared(game: str, made: Comparison) -> Answer:
    data: Json = {"comparison": made.id, "state": made.state, "rows": []}
    if made.document is None:
        again = (written("compare", game=game, comparison=made.id),) if made.open else ()
        words = (
            made.message
            or f"{made.step or made.state}, {made.rounds} of {made.of or made.spec.rounds} rounds"
        )
        return Answer(ended([f"The comparison is not done: {words}."], again), data, again)
    ours = made.spec.contenders[0].name
    lines = [f"{made.spec.title}, {made.rounds} rounds in turns:"]
    rows = rows_of(made.document["reports"][0], ours)
    for row in rows:
        speed = None
        if row.speed is not None and row.name != ours:  # of it against ours, turned round
            speed = {"value": 1 / row.speed.value, "low": 1 / row.speed.high, "high": 1 / row.speed.low}
        data["rows"].append(
            {
                "name": row.name,
                "status": row.status,
                "message": row.message,
                "seconds": row.best,
                "speed": speed,
            }
        )
        time_told = seconds_text(row.best) if row.best is not None else f"{row.status}: {row.message}"
        versus = f"; this position is {speed['value']:.3g}× as fast" if speed else ""
        lines.append(f"{row.name}: {time_told}{versus}")
    following = (written("moves", game=game), written("show", game=game, what="profile"))
    return Answer(ended(lines, following), data, following)
