"""What the model tells of a position and of its moves: cycles, and where they went."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dojo_core.game import Game
from dojo_core.moves import apply, legal_moves
from dojo_core.package_data import document
from dojo_core.targets.backend import Report
from dojo_core.targets.snitch.codegen import generate
from dojo_core.targets.snitch.limits import LABEL, MEMORY_BYTES
from dojo_core.targets.snitch.simulate import Verdict, judge

_COLUMNS = ("move", "cycles", "speed-up", "of FPU peak", "no work", "latency", "streams", "")


def report(game: Game, all_moves: bool) -> Report:
    """The position first in the data, the fastest first in the table."""
    program = game.current.program
    verdicts: list[tuple[str, Verdict]] = [("this position", judge(program, game.start, game.policy))]
    if all_moves:
        for move in legal_moves(program, game.target, game.policy):
            after = apply(program, move, game.target, game.policy)
            verdicts.append((str(move), judge(after, game.start, game.policy)))
    position = verdicts[0][1]
    ordered = sorted(verdicts, key=lambda r: r[1].run.cycles if r[1].run and r[1].status == "ok" else 1 << 60)
    remark = f"These are {LABEL}: {document('snitch.md')} compares it with the hardware's. The peak is one "
    remark += "arithmetic instruction a cycle; the shares are the FPU's cycles without work, waiting for a "
    remark += "result, or for a stream."
    if position.run is not None and generate(program).bytes > MEMORY_BYTES:
        remark += f" Its arrays take more than the {MEMORY_BYTES:,} bytes of a cluster: what moves data into "
        remark += "these beside the core is not counted."
    return Report(
        columns=_COLUMNS,
        rows=tuple(_row(name, verdict, position) for name, verdict in ordered),
        data=[_data(name, verdict) for name, verdict in verdicts],
        fault="" if position.status == "ok" else f"{position.status.replace('_', ' ')}: {position.message}",
        failed=frozenset(n for n, (_, verdict) in enumerate(ordered) if verdict.status != "ok"),
        remarks=(remark,),
    )


def _row(name: str, verdict: Verdict, position: Verdict) -> tuple[str, ...]:
    run = verdict.run
    if verdict.status != "ok" or run is None:
        message = f"{verdict.status.replace('_', ' ')}: {verdict.message}"
        return (name, *["–"] * (len(_COLUMNS) - 2), message[:160])
    ratio = f"{position.run.cycles / run.cycles:.2f}×" if position.run else ""
    shares = (f"{n / run.cycles:.0%}" for n in (run.idle, run.latency, run.starved))
    return (name, f"{run.cycles:,}", ratio, f"{run.utilisation:.1%}", *shares, "verified")


def _data(name: str, verdict: Verdict) -> dict[str, Any]:
    return {
        "move": name,
        "status": verdict.status,
        "verified": verdict.status == "ok",
        "message": verdict.message,
        "unit": LABEL,
        "run": asdict(verdict.run) if verdict.run else None,
        "utilisation": verdict.run.utilisation if verdict.run else None,
    }
