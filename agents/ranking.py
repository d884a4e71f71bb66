"""``dojo compare --from``: leaderboards as a table, and with ``--check`` what became of each entry here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from agents import leaderboard
from agents.leaderboard import Checked, Entry, NoLeaderboard
from agents.outside import cost_text
from dojo_core.cli.records import opened
from dojo_core.cli.terminal import Failure, columns, err, out, print_table, progress, tell_machine
from dojo_core.measure.measurement import seconds_text
from dojo_core.targets.measurers import Measurers
from dojo_core.targets.registry import base

NOTE = (
    "Times are claims of the machines named; only those of one machine are ranked against each other. "
    "--check plays, verifies and times each entry here."
)


def read_all(files: Sequence[Path]) -> list[Entry]:
    """The entries of several leaderboards, the best of each player. Raises Failure."""
    try:
        entries = [entry for file in files for entry in leaderboard.read(file)]
    except NoLeaderboard as wrong:
        raise Failure(str(wrong)) from None
    return leaderboard.merged(entries, [])


def rank(files: Sequence[Path], check: bool) -> bool:
    """Print the table; with ``check`` of what holds here. Does all of it hold?"""
    entries = read_all(files)
    if not entries:
        raise Failure(
            f"{' and '.join(map(str, files))} has no entries yet: dojo compare KERNEL --leaderboard FILE "
            "adds some."
        )
    checked = _checked(entries) if check else []
    head = [
        "kernel",
        "target",
        "player",
        "time",
        "against the start",
        "moves",
        "programs",
        "tokens",
        "cost",
        "machine",
    ]
    numbers = ("time", "against the start", "moves", "programs", "tokens", "cost", "here", "start here")
    shown = columns(*head, *(["here", "start here", "holds"] if check else []), right=numbers)
    for number, entry in enumerate(entries):
        here = _here(checked[number]) if check else ()
        shown.add_row(*map(escape, (*_row(entry), *here)))
    print_table(shown)
    for each in checked:
        if each.why:
            err.print(
                escape(f"{each.entry.title}, {each.entry.player}: {each.why}"), style="yellow", soft_wrap=True
            )
    held = sum(each.holds for each in checked)
    out.print(f"{held} of {len(entries)} hold here." if check else NOTE, style="dim", soft_wrap=True)
    return held == len(checked)


def _row(entry: Entry) -> tuple[str, ...]:
    return (
        entry.title,
        entry.target,
        entry.player,
        seconds_text(entry.seconds),
        "" if entry.claimed is None else f"{entry.claimed:.3g}×",
        str(len(entry.moves)),
        str(entry.programs),
        "" if entry.tokens is None else f"{entry.tokens:,}",
        "" if entry.cost is None else cost_text(entry.cost),
        " ".join(filter(None, ((entry.processor or entry.machine).partition(",")[0], entry.day))),
    )


def _here(checked: Checked) -> tuple[str, str, str]:
    time = "–" if checked.seconds is None else seconds_text(checked.seconds)
    return (
        time,
        "–" if checked.speed is None else f"{checked.speed.value:.3g}×",
        "yes" if checked.holds else "no",
    )


def _checked(entries: Sequence[Entry]) -> list[Checked]:
    tell_machine()
    results = []
    with opened() as records, progress("checking", len(entries)) as step:
        measurers = Measurers(records)
        try:
            for entry in entries:
                results.append(_one(entry, measurers))
                step()
        finally:
            measurers.close()
    return results


def _one(entry: Entry, measurers: Measurers) -> Checked:
    try:
        measurer = measurers.of(base(entry.target))
    except ValueError as unknown:
        return Checked(entry, False, str(unknown))
    return leaderboard.check(entry, measurer)
