"""The feed: the times of the position on the board, of its moves and of the whole game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dojo_core.bench.roofline import Roofline
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.speed import Speed
from dojo_core.service import yardstick
from dojo_core.service.analysis import Analysis
from dojo_core.service.lanes import waited_for
from dojo_core.service.players import Player, Table
from dojo_core.service.queue import MeasuringQueue, Outcome, stopped
from dojo_core.service.view import Json
from dojo_core.targets.registry import backend

# What stands for a move's time while there is none (the page's words for them are in moves.js).
WAITING, RUNNING, NOT_ASKED = 0, 1, 2


def times(
    player: Player, table: Table, analysis: Analysis, queue: MeasuringQueue, listed: bool = True
) -> Json:
    """All that changes while measuring; of the moves nothing unless they are ``listed``. The table is
    locked."""
    game = table.game
    hashes = {p.id: p.program.hash for p in game.positions.values()}
    outcomes = zip(hashes, queue.results(table.key, list(hashes.values())), strict=True)
    known = {number: outcome for number, outcome in outcomes if outcome is not None}
    start, best = yardstick_of(table, known.get(0)), fastest(known)
    running = queue.running(table.key)
    results = move_results(player, table, analysis, queue, running) if listed else []
    measured_now = hashes[game.cursor] in running
    again = yardstick.better(start, known.get(0)) if table.source is None else None
    return {
        "game": game.id,
        "position": game.cursor,
        "now": current(player, game.target, known.get(game.cursor), measured_now, queue.down)
        | roughly(table, known.get(game.cursor), queue),
        "start": None if start is None else start.seconds,
        "yardstick": None if start is None else {
            **yardstick.provenance(start), "again": yardstick.as_json(again)
        },
        "last": last_move(table, queue),
        "best": None if best is None else {
            "id": best[1], "seconds": best[0], "ply": len(game.line(best[1])) - 1
        },
        "times": {str(number): o.seconds if o.ok else o.status for number, o in known.items()},
        "provenance": {str(number): yardstick.provenance(o) for number, o in known.items() if o.ok},
        "results": results,
        "explored": player.explored,  # what is known of the moves is in the results
        "look": {"move": player.looked_at, "diff": player.preview[:60], "why": player.reason},
        "hint": None if player.hint is None else player.hint.as_json(),
        "learned": None if player.learned is None else player.learned.as_json(),
        "work": {"flops": table.work[0], "bytes": table.work[1]},
        "roofline": roofline_view(table.roofline, list(known.values())),
        "torch": table.torch,
        "authored": None if table.authored is None else table.authored.told(game),
        "queue": queue_state(player, game.target, results, queue),
    }  # fmt: skip


def fastest(outcomes: dict[int, Outcome]) -> tuple[float, int] | None:
    """(seconds, position) of the fastest position of a game."""
    return min(((o.seconds, number) for number, o in outcomes.items() if o.ok), default=None)


def speed_up(table: Table, queue: MeasuringQueue) -> float | None:
    """The best of a game against its start, as far as known. The table is locked."""
    numbers = list(table.game.positions)
    hashes = [table.game.positions[number].program.hash for number in numbers]
    known = zip(numbers, queue.results(table.key, hashes), strict=True)
    outcomes = {number: outcome for number, outcome in known if outcome is not None}
    start, best = yardstick_of(table, outcomes.get(0)), fastest(outcomes)
    return start.seconds / best[0] if best and start is not None and best[0] > 0 else None


def yardstick_of(table: Table, outcome: Outcome | None) -> Outcome | None:
    """The start's time that a game's speed-ups stand on; ``outcome``: as it is known now.

    The table is locked. Where a game is watched, it is the owner's.
    """
    if table.source is not None and table.source.yardstick is not None:
        return table.source.yardstick
    if outcome is not None and outcome.ok and (table.yardstick is None or len(table.game.positions) == 1):
        table.yardstick = outcome
    return table.yardstick


def start_again(table: Table, queue: MeasuringQueue) -> Outcome | None:
    """The start's time as it is known now, where it is another than speed-ups stand on."""
    return yardstick.better(table.yardstick, queue.results(table.key, [table.game.start.hash])[0])


def last_move(table: Table, queue: MeasuringQueue) -> list[Any] | None:
    """How fast the position on the board is against the one before it."""
    current = table.game.current
    if current.parent is None:
        return None
    before = table.game.positions[current.parent].program.hash
    steady = backend(table.game.target).clock().steady
    speed = queue.speeds(table.key, before, [current.program.hash], steady)[0]
    return None if speed is None else speed_view(speed)


def speed_view(speed: Speed) -> list[Any]:
    """[verdict, value, low, high, rounds]"""
    return [speed.verdict, *(float(f"{x:.4g}") for x in (speed.value, speed.low, speed.high)), speed.rounds]


def machine(conditions: Conditions) -> Json:
    """What else the machine does now."""
    return {
        "busy": conditions.busy, "quiet": conditions.quiet, "words": str(conditions),
        "share": round(100 * (conditions.load or 0.0)),
    }  # fmt: skip


def move_results(
    player: Player, table: Table, analysis: Analysis, queue: MeasuringQueue, running: set[str]
) -> list[Any]:
    """For each legal move: [seconds, median, verdict, value, low, high, rounds], the last five of the speed
    against the position on the board, where that has a time; or [failure, message], or a number above."""
    successors = analysis.known_successors
    if successors is None:
        return [WAITING if player.measuring else NOT_ASKED] * len(analysis.moves)
    hashes = [s.program.hash for s in successors]
    wanted = queue.wanted(player.id) if player.explored else set(hashes)
    results: list[Any] = []
    at_hash, steady = table.game.current.program.hash, backend(table.game.target).clock().steady
    outcomes = queue.results(table.key, hashes)
    speeds = queue.speeds(table.key, at_hash, hashes, steady)
    for program_hash, outcome, speed in zip(hashes, outcomes, speeds, strict=True):
        if outcome is None:
            waiting = RUNNING if program_hash in running else WAITING
            asked = player.measuring and (program_hash in wanted or program_hash in running)
            results.append(waiting if asked else NOT_ASKED)
        elif outcome.ok:
            results.append([outcome.seconds, outcome.median, *([] if speed is None else speed_view(speed))])
        else:
            results.append([outcome.status, outcome.message[:600]])
    return results


def current(player: Player, target: str, outcome: Outcome | None, running: bool, down: str) -> Json:
    """The time of the position on the board, or what became of it."""
    if outcome is None or outcome.status == "untimed":
        clock = backend(target).clock()
        if clock.kind == "elsewhere":
            return {"state": "no time", "about": clock.missing}
        waiting = "waiting" if player.measuring and not down else "not measured"
        return {"state": "measuring…" if running else waiting}
    if outcome.status == "verified":  # on a target that has no time here
        return {"state": "verified, no time", "about": outcome.message}
    if not outcome.ok:
        return {"state": outcome.status.replace("_", " "), "error": outcome.message or outcome.status}
    spread = outcome.median / outcome.seconds - 1 if outcome.seconds > 0 else 0.0
    return {
        "state": "ok",
        "seconds": outcome.seconds,
        "median": outcome.median,
        "spread": max(0.0, spread),
        "about": outcome.message,  # on a GPU: registers, shared memory, occupancy
        **yardstick.provenance(outcome),
    }


def roughly(table: Table, outcome: Outcome | None, queue: MeasuringQueue) -> Json:
    """``rough``: seconds of the first run of the position on the board, while its time is worked out."""
    seconds = None if outcome is not None else queue.rough(table.key, table.game.current.program.hash)
    return {} if seconds is None else {"rough": seconds}


def queue_state(player: Player, target: str, results: Sequence[Any], queue: MeasuringQueue) -> Json:
    """How far the measuring of the moves has come, whether it goes on, and if not, why."""
    down, message = queue.down, ""
    if down:
        state, message = "down", f"{stopped(down)} Play goes on unmeasured."
    elif (clock := backend(target).clock()).kind == "elsewhere":
        state, message = "elsewhere", clock.missing
    elif not player.measuring:
        state = "off"
    elif queue.open_tasks(player.id) or not player.explored:
        state = "measuring" if queue.serves() in (player.id, None) else "waiting"
        wait = waited_for(target)
        if wait is not None:
            state, message = "locked", wait.sentence
    else:
        state = "idle"
    done = sum(isinstance(result, list) for result in results)
    left = queue.seconds_left(player.id) if state == "measuring" else None
    return {"state": state, "done": done, "total": len(results), "message": message, "left": left}


def roofline_view(roofline: Roofline | None, outcomes: Sequence[Outcome]) -> Json | None:
    """The machine's limit, which none of the times that are shown beats."""
    if roofline is None:
        return None
    for outcome in outcomes:
        if outcome.ok:
            roofline = roofline.beaten(outcome.seconds, "a program on this board")
    return {
        "seconds": roofline.seconds,
        "bound": roofline.bound,
        "gbytes_per_second": roofline.gbytes_per_second,
        "gflops": roofline.gflops,
        "pattern": roofline.pattern,
        "reached": roofline.reached,
    }
