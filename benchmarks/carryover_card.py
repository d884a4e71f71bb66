"""The policy that comes with the Dojo, and its card: ``python -m benchmarks.carryover ship``."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from agents.perfllm.across.loop import Key, Loop
from benchmarks.sections import fill
from dojo_core.package_data import data_path

WEIGHTS = data_path("agents", "perfllm", "across", "weights")
BEGIN, END = "<!-- {}: python -m benchmarks.carryover ship -->", "<!-- end of {} -->"


def ship(loop: Loop, told: str, into: Path = WEIGHTS) -> None:
    """Put the loop's last policy where ``perfllm`` looks for its target's, and fill the card's section."""
    target = loop.plan.target
    shutil.rmtree(into / target, ignore_errors=True)
    shutil.copytree(loop.last_policy, into / target)
    fill(into / "README.md", BEGIN.format(target), END.format(target), told)


def card(loop: Loop, left_out: Sequence[str], experts: Mapping[Key, float], command: str) -> str:
    """What a policy reads, what it was taught and what is not known of it, with what teachers found.

    ``left_out``: kernels that it was not taught; ``experts``: seconds of the heuristic pass on each problem;
    ``command``: what makes it again.
    """
    policy, teachers = loop.policy(), loop.teachers()
    rounds = 1 + max(entry["round"] for entry in teachers)
    programs = sum(entry["evaluations"] for entry in teachers)
    size = sum(file.stat().st_size for file in loop.last_policy.iterdir())
    rows = []
    for key in loop.plan.problems:
        own = [entry for entry in teachers if (entry["kernel"], entry["shape"]) == key]
        seconds = (own[0]["start"], min(entry["best"] for entry in own), experts[key])
        rows.append(f"| {' | '.join(key)} | " + " | ".join(f"{1e9 * s:,.0f}" for s in seconds) + " |")
    table = "\n".join(rows)
    return f"""\
- **Form**: `Policy` of `agents/perfllm/across/policy.py`, reader `{policy.reads}`; {size / 1e3:,.0f} kB.
- **Taught**: {policy.examples} positions of minimised good lines of the {len(rows)} problems below, among
  the moves that were legal in each. No recipe, no pass and no recorded line was used.
- **Lends** {len(policy.lines)} lines: the best of each problem, one of those with the same kinds of moves.
- **Never seen**: {", ".join(left_out)}. Policies of this fold are tried on these.
- **Made by** `{command}`: rounds of teachers: {rounds}, {programs:,} programs measured.
- **Not known**: what it is worth on kernels that are unlike these, and on other targets.

| kernel | shape | start | best taught | expert |
|---|---|---:|---:|---:|
{table}

Nanoseconds, of a model cycles. The expert is the target's heuristic pass, which nothing here has seen."""
