"""A comparison as a process of its own: ``python -m dojo_core.bench.job``.

It reads a job as one line of JSON and answers in JSON lines: ``step``, ``round``, and at the end ``report``
with the programs that were compared, or ``failed``. SIGTERM ends it after the round that is under way.

A job: kernel, shape, start (text), policy, rounds, against (baselines), entries; an entry is a dict with a
``kind``: start, heuristic, line (with ``name``), game (``text``) or program (``text``), and a ``name``.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from dataclasses import dataclass
from typing import Any

from dojo_core.bench.contest import BenchFailed
from dojo_core.bench.ours import Entry, heuristics
from dojo_core.bench.rounds import run_bench
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.measure.records import Records
from dojo_core.program.dependence import POLICIES
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.wording import counted

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Resolved:
    """An entry's program, and how many moves lead to it, None where that is not known; ``line`` are these
    moves, of an entry that was played here."""

    entry: Entry
    moves: int | None
    policy: str
    line: tuple[str, ...] = ()


def resolve(game: Game, wanted: dict[str, Any]) -> Resolved:
    """The program of an entry. Raises ValueError or TextError with a sentence where there is none."""
    kind, name = wanted["kind"], str(wanted["name"])
    replay = Game.new(game.start, game.kernel, game.shape, game.target, game.policy)
    if kind == "start":
        return Resolved(Entry(name, game.start), 0, game.policy)
    if kind == "program":
        made = parse(wanted["text"])
        made = game.start if made.hash == game.start.hash else made
        return Resolved(Entry(name, made, wanted.get("details", "")), wanted.get("moves"), wanted["policy"])
    if kind == "heuristic":
        next(iter(heuristics().values()))(replay)
    elif kind == "line":
        line = recorded_lines()[wanted["line"]]
        replay = Game.new(game.start, game.kernel, game.shape, game.target, line.policy)
        stopped = [entry for entry in line.play(replay).entries if not entry.applies]
        if stopped:
            raise ValueError(f"It does not apply to this shape: {stopped[0].move}: {stopped[0].reason}")
    elif kind == "game":
        replay = Game.from_text(wanted["text"])
        if replay.start.hash != game.start.hash:
            raise ValueError("It begins at another start program.")
        replay.goto(replay.main_line(0)[-1].id)
    else:
        raise ValueError(f"There is no kind of entry {kind!r}.")
    moves = tuple(str(position.move) for position in replay.line()[1:])
    entry = Entry(name, replay.current.program, counted(len(moves), "move"))
    return Resolved(entry, len(moves), replay.policy, moves)


def run(job: dict[str, Any], say: Any, stopped: threading.Event) -> None:
    """One comparison; ``say`` is told each event."""
    game = Game.new(parse(job["start"]), job["kernel"], job["shape"], DEFAULT_TARGET, job["policy"])
    resolved: list[Resolved] = []
    failed: list[dict[str, Any]] = []
    for wanted in job["entries"]:
        say({"step": f"preparing {wanted['name']}"})
        try:
            resolved.append(resolve(game, wanted))
        except (ValueError, KeyError, TextError) as fault:
            failed.append(_failed(wanted["name"], str(fault)))
        except Exception:
            log.exception("entry %s", wanted["name"])
            failed.append(_failed(wanted["name"], "It could not be played: a fault of ours, logged."))
    # The loosest policy among them: the tolerance that all of their results are judged by.
    policy = max((each.policy for each in resolved), key=POLICIES.index, default=game.policy)
    game = Game.new(game.start, game.kernel, game.shape, DEFAULT_TARGET, policy)
    with Records() as records:
        report = run_bench(
            game, [each.entry for each in resolved], job["against"], job["rounds"],
            lambda done, of: say({"round": done, "rounds": of}),
            lambda words: say({"step": words}), stopped.is_set, tolerant=True, records=records,
        )  # fmt: skip
    report["entries"] = report["entries"][: len(resolved)] + failed + report["entries"][len(resolved) :]
    programs = {
        each.entry.name: {
            "text": each.entry.program.text,
            "moves": each.moves,
            "line": list(each.line),
            "policy": each.policy,
            "hash": each.entry.program.hash,
        }
        for each in resolved
    }
    say({"report": report, "programs": programs, "start_hash": game.start.hash})


def _failed(name: str, why: str) -> dict[str, Any]:
    """The row of an entry that did not come to a program."""
    return {
        "name": f"ours: {name}", "entry": name, "kind": "ours", "apart": False, "details": "",
        "status": "failed", "message": why, "verified": False, "variants": {}, "samples_ns": [],
    }  # fmt: skip


def main() -> None:
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    # What libraries print must not stand between the events.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(event: dict[str, Any]) -> None:
        out.write(json.dumps(event) + "\n")
        out.flush()

    def watch() -> None:
        """The app is gone when its end of the pipe is: nobody waits for the rounds that are left."""
        sys.stdin.read()
        stopped.set()

    try:
        job = json.loads(sys.stdin.readline())
        threading.Thread(target=watch, daemon=True).start()
        run(job, say, stopped)
    except (BenchFailed, ValueError) as fault:
        say({"failed": str(fault)})
    except Exception:
        log.exception("the comparison failed")
        say({"failed": "The comparison failed: a fault of ours, noted in the log."})
        raise


if __name__ == "__main__":
    main()
