"""``dojo puzzles``: mined from games and runs, checked, rated, and the one of the day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.markup import escape

from agents.puzzles.sources import sources
from agents.puzzles.tries import AGENTS, tries
from dojo_core.cli.schooling import read_lessons
from dojo_core.cli.terminal import (
    Failure,
    columns,
    err,
    out,
    plain_errors,
    print_table,
    progress,
    write_file,
)
from dojo_core.cli.waiting import measures
from dojo_core.faults import text_fault
from dojo_core.measure.measurement import Workload
from dojo_core.moves import apply, legal_moves
from dojo_core.package_data import document
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.school.check import check as faults_of
from dojo_core.school.daily import PUZZLES_FOLDER, daily
from dojo_core.school.gains import computed
from dojo_core.school.lesson import Lesson, Step
from dojo_core.school.puzzles import GAIN, Miner, Puzzle, file_text
from dojo_core.school.ratings import FILE as RATINGS
from dojo_core.school.ratings import fitted, write_ratings
from dojo_core.study.times import Times, times_file, write_times
from dojo_core.targets.registry import backend
from dojo_core.wording import counted

puzzles = typer.Typer(
    no_args_is_help=True,
    help=f"Puzzles of one move, from games and runs: mine, check and rate them ({document('lessons.md')}).",
)


EXACT = 1e-3  # by which a recorded gain may differ from the counted one: records have four digits

Files = Annotated[list[Path], typer.Argument(metavar="FILE…", help="Files of puzzles, or folders of them.")]


@puzzles.command("mine")
@plain_errors
@measures
def mine(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="FROM…",
            help="Games, lines (files or names), studies, logs and recordings of runs, PerfLLM's evidence.",
        ),
    ],
    to: Annotated[Path, typer.Option("--to", help="The file of puzzles to write, FILE.md.")],
    gain: Annotated[float, typer.Option("--gain", min=1.05, help="What a right move gains at least.")] = GAIN,
    count: Annotated[int, typer.Option("--count", min=1, max=40, help="So many puzzles at most.")] = 20,
    each: Annotated[int, typer.Option("--each", min=1, help="So many of one game at most.")] = 2,
    target: Annotated[str, typer.Option("--target", help="For what names no target.")] = DEFAULT_TARGET,
    twice: Annotated[
        bool, typer.Option("--twice", help="Time what was found once more, and keep what holds again.")
    ] = False,
) -> None:
    """Mine puzzles of one move: positions where few moves gain, and all others clearly less.

    Positions are timed, and of those before a gain every legal move, in turns with the position: seconds for
    each on a processor. What a move gains is kept beside the file, in FILE.times.json, with the machine and
    the date.

    Example: [bold]dojo puzzles mine softmax my-game.dojo runs/*.jsonl --to my-lessons/puzzles.md[/bold]
    """
    if to.suffix != ".md":
        raise Failure(f"{to} is no file of puzzles: name one that ends in .md.")
    if to.exists() or times_file(to).exists():
        raise Failure(f"{to} is there already: name another file, or move it away.")

    def looking(words: str) -> None:
        err.print(escape(words), style="dim", soft_wrap=True)

    found: list[Puzzle] = []
    miner = Miner(gain, looking, twice)
    try:
        for name in names:
            for source in sources(name, target):
                for puzzle in miner.mine(source, min(each, count - len(found))):
                    found.append(puzzle)
                    _write(to, found)  # what is found stays, also where the rest is given up
    except TextError as fault:
        raise Failure(f"{name}: {text_fault(fault)}") from None
    except ValueError as fault:  # no such file, line or shape
        raise Failure(str(fault)) from None
    finally:
        miner.close()
    if not found:
        raise Failure(f"No puzzle was found: try other games, or a smaller gain than --gain {gain:g}.")
    message = f"Saved {counted(len(found), 'puzzle')} in {to}. Next: dojo puzzles check {to}"
    err.print(escape(message), style="dim", soft_wrap=True)


@puzzles.command("check")
@plain_errors
def check_puzzles(
    files: Files,
    again: Annotated[
        bool, typer.Option("--again", help="Compute anew what a model of the target tells exactly.")
    ] = False,
) -> None:
    """Check puzzles of one move: their form, that a right move is legal, that no gain leaves one open, and
    that the game of each leads to it.

    With --again, every legal move of those on a target with a model is played and counted anew, and each gain
    must be as it is recorded. Times of a processor stay as its machine took them.

    Example: [bold]dojo puzzles check my-lessons/puzzles.md[/bold]
    """
    bad = 0
    for lesson in _puzzles(files):
        faults = [str(fault) for fault in faults_of(lesson)]
        exact = [step for step in lesson.steps if step.asked and backend(step.begin.target).clock().exact]
        if again:
            faults += [f"{step.title}: {words}" for step in exact for words in _counted_anew(step)]
        bad += bool(faults)
        for fault in faults:
            out.print(f"{lesson.file}, {fault}", style="red", soft_wrap=True, markup=False)
        if not faults:
            sound = f"{lesson.file}: {counted(len(lesson.steps), 'puzzle')}, all sound"
            anew = f"; {len(exact)} of them counted anew, each gain as recorded" if again else ""
            out.print(f"{sound}{anew}.", soft_wrap=True, markup=False)
    if bad:
        raise typer.Exit(1)


def _counted_anew(step: Step) -> Iterator[str]:
    """What a model now says otherwise than the record."""
    begin, gains = step.begin, step.gains
    program = begin.current.program
    workload = Workload(program, None, begin.policy, begin.target)
    for move in legal_moves(program, begin.target, begin.policy):
        after = apply(program, move, target=begin.target, policy=begin.policy)
        now = computed(workload, after)
        then = gains.by_program.get(after.hash) if gains is not None else None
        if (now is None) != (then is None):
            yield f"{move} {'runs' if now else 'does not run'} now, other than when it was recorded"
        elif now is not None and then is not None and abs(now.value / then.value - 1) > EXACT:
            yield f"{move} gains {now.value:.4g} times now, {then.value:.4g} are recorded"


@puzzles.command("rate")
@plain_errors
def rate(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of puzzles.")],
    agents: Annotated[
        str, typer.Option("--agents", help=f"Programs that try them, of: {', '.join(AGENTS)}.")
    ] = ",".join(AGENTS),
) -> None:
    """Rate puzzles by how many moves programs try until one is right; writes ratings.json beside them.

    A program measures nothing: what it tries first is what it would play here. The ratings are the likeliest
    ones for these tries. People's attempts go on from them, each in their own home.

    Example: [bold]dojo puzzles rate my-lessons --agents random,heuristic[/bold]
    """
    names = agents.split(",")
    unknown = [name for name in names if name not in AGENTS]
    if unknown:
        raise Failure(f"There is no program {unknown[0]!r} for this: {', '.join(AGENTS)}.")
    steps = [step for lesson in _puzzles([folder]) for step in lesson.steps if step.asked is not None]
    if not steps:
        raise Failure(f"In {folder} is no puzzle of one move: mine some with dojo puzzles mine.")
    needed: dict[str, dict[str, float]] = {}
    with progress("Programs try", len(steps)) as advance:
        for step in steps:
            try:
                needed[step.key] = {name: tries(step, name) for name in names}
            except ValueError as fault:
                raise Failure(f"{fault}. Next: dojo puzzles check {folder}") from None
            advance()
    ratings = fitted(needed)
    write_file(folder / RATINGS, write_ratings(ratings))
    table = columns("program", "rating", "tries", "at once", right=("rating", "tries", "at once"))
    for name in names:
        counts = [each[name] for each in needed.values()]
        at_once = sum(count <= 1 for count in counts)
        table.add_row(
            name, f"{ratings.agents[name].value:.0f}", f"{median(counts):.1f}", f"{at_once} of {len(counts)}"
        )
    print_table(table)
    values = sorted(each.value for each in ratings.puzzles.values())
    out.print(f"{counted(len(steps), 'puzzle')}, rated {values[0]:.0f} to {values[-1]:.0f}.")


@puzzles.command("today")
@plain_errors
def today(
    day: Annotated[str | None, typer.Option("--day", help="Of another day, 2026-11-27.")] = None,
) -> None:
    """Print the puzzle of the day: of those that come with the Dojo, the same for everybody."""
    try:
        chosen = daily(date.fromisoformat(day) if day is not None else None)
    except ValueError:
        raise Failure(f"{day} is no day: write 2026-11-27.") from None
    if chosen is None:
        raise Failure("No puzzle came with this Dojo: install it again.")
    (lesson,) = _puzzles([PUZZLES_FOLDER / f"{chosen.lesson}.md"])
    step = lesson.step(chosen.step)
    assert step is not None  # its heading stands there
    out.print(f"{step.title} ({step.begin.target}, {step.begin.policy})", markup=False)
    out.print(step.begin.current.program.text, markup=False, soft_wrap=True, highlight=False)
    out.print(f"Which move gains {step.asked:g} times at once? Play it: dojo app, Learn.", markup=False)


def _puzzles(files: list[Path]) -> list[Lesson]:
    """Raises Failure for a file that cannot be read."""
    lessons, unread = read_lessons(files)
    for path, message in unread:
        raise Failure(f"{path}: {message}")
    return lessons


def _write(file: Path, found: list[Puzzle]) -> None:
    times: list[Times] = []
    for puzzle in found:
        known = next((each for each in times if each.key == puzzle.times.key), None)
        if known is None:
            times.append(puzzle.times)
        else:
            known.speeds.update(puzzle.times.speeds)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(times_file(file), write_times(times))
    write_file(file, file_text(found))
