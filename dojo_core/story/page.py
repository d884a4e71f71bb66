"""A line as a page of Markdown: each group of moves with what it gains, what changed, and the times after."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from dojo_core.measure.measurement import seconds_text
from dojo_core.program.tree import Program
from dojo_core.story.steps import Group, Story
from dojo_core.story.times import Times

_MADE = "<!-- Made by `dojo story {name}` from dojo_core/lines/{name}.line: change that, not this page. -->"


def page(story: Story, times: Times, picture: str) -> str:
    """The page. ``picture`` is the plot's address as seen from it."""
    seconds = times.seconds
    change = f"{_total(seconds)} in {len(seconds) - 1} moves"
    rounds = f"{times.rounds} round{'s' if times.rounds != 1 else ''}"
    lines = [
        _MADE.format(name=story.name),
        "",
        f"# {story.title}, from the naive program to the fast one",
        "",
        story.about,
        "",
        f"{story.kernel} {story.shape}, floating-point policy {story.policy}: {change}.",
        "",
        f"![Time after each move]({picture})",
        "",
        "Every position was verified element by element before it was timed; a time is the least of several "
        f"runs, in {rounds} ({times.machine}; {times.date}). The moves are explained in "
        "[moves.md](moves.md), the notation in [text.md](text.md). "
        f"`dojo play {story.name} --line {story.name}` replays the line, and the app steps through it.",
        "",
        f"## The start: {_time(seconds[0])}",
        "",
        *_program(story.start),
    ]
    for number, group in enumerate(story.groups, 1):
        lines += _group(number, group, seconds)
    lines += ["", "## The end", "", *_program(story.programs[-1])]
    return "\n".join(lines) + "\n"


def _group(number: int, group: Group, seconds: Sequence[float | None]) -> list[str]:
    first, last = group.steps[0].number, group.steps[-1].number
    lines = ["", f"## {number}. {group.title}: {_time(seconds[last])}", ""]
    if group.note:
        lines += [group.note, ""]
    lines += _change(group.before, group.after)
    lines += ["", *move_table([(step.number, step.move) for step in group.steps], seconds)]
    if first == last:
        return lines
    lines += ["", f"<details><summary>What each of these {len(group.steps)} moves changes</summary>", ""]
    before = group.before
    for step in group.steps:
        lines += [f"{step.number}: `{step.move}`", "", *_change(before, step.program), ""]
        before = step.program
    return [*lines, "</details>"]


def _time(seconds: float | None) -> str:
    return "no C for it" if seconds is None else seconds_text(seconds)


def move_table(
    moves: Sequence[tuple[int, str]],
    seconds: Sequence[float | None],
    told: Callable[[float | None], str] = _time,
) -> list[str]:
    """Moves by their numbers, from 1, as lines of a table; ``seconds`` of the start and after each move
    of the whole line, ``told`` as it says."""
    lines = ["| | move | time | against the start |", "|--:|---|--:|--:|"]
    for number, move in moves:
        time, start = seconds[number], seconds[0]
        ratio = f"{start / time:.3g}×" if time and start else ""
        lines.append(f"| {number} | `{move}` | {told(time)} | {ratio} |")
    return lines


def _program(program: Program) -> list[str]:
    return ["```", *program.text.splitlines(), "```"]


def _change(before: Program, after: Program) -> list[str]:
    """The lines that go and those that come, as a block that is shown in colours."""
    old, new = before.text.splitlines(), after.text.splitlines()
    changed = [
        line
        for line in difflib.unified_diff(old, new, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    return ["```diff", *(f"{line[0]} {line[1:]}" for line in changed), "```"]


def _total(seconds: Sequence[float | None]) -> str:
    start, end = seconds[0], seconds[-1]
    if start is None or end is None:
        return "not timed"
    return f"from {seconds_text(start)} to {seconds_text(end)}, {start / end:.3g} times as fast,"
