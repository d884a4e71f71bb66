"""``dojo lesson``: lessons listed, checked, measured; the goals that a lesson can ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core.cli.positions import played
from dojo_core.cli.records import opened
from dojo_core.cli.terminal import (
    Failure,
    check_new,
    columns,
    err,
    out,
    plain_errors,
    print_table,
    read_file,
    write_file,
)
from dojo_core.cli.waiting import measures
from dojo_core.faults import text_fault
from dojo_core.from_code.recognise import kind_of
from dojo_core.game import Game
from dojo_core.line import read_line
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Records
from dojo_core.package_data import document
from dojo_core.program.expressions import TextError
from dojo_core.school.check import check as faults_of
from dojo_core.school.check import measure as timed
from dojo_core.school.check import timed_steps
from dojo_core.school.goals import FORMS
from dojo_core.school.lesson import Lesson, read_lesson
from dojo_core.school.mine import GAIN, HEAD, LONGEST, mine, puzzle_text, recorded_games
from dojo_core.school.school import LESSONS_FOLDER, NO_LESSON, glossary_for, open_school
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.registry import backend
from dojo_core.wording import counted

lesson = typer.Typer(
    no_args_is_help=True,
    help=f"Lessons and puzzles: see what there is, check your own ({document('lessons.md')}).",
)

Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE…", help="Lessons, or folders of them; default: those of the Dojo."),
]


def read_lessons(files: list[Path] | None) -> tuple[list[Lesson], list[tuple[Path, str]]]:
    """(lessons that can be read, the others with what is wrong)."""
    paths: list[Path] = []
    for file in files or [LESSONS_FOLDER]:
        if file.is_dir():
            inside = sorted(p for p in file.glob("*.md") if p.name not in NO_LESSON)
            if not inside:
                raise Failure(f"No lesson lies in {file}: a lesson is a file such as 01-title.md.")
            paths += inside
        else:
            paths.append(file)
    lessons: list[Lesson] = []
    faults: list[tuple[Path, str]] = []
    for path in paths:
        text = read_file(path)
        try:
            lessons.append(read_lesson(text, path, glossary_for(path.parent).terms))
        except TextError as error:
            lines = text.splitlines()
            if not error.source and error.line <= len(lines):
                error.source = lines[error.line - 1]
            faults.append((path, text_fault(error)))
    return lessons, faults


@lesson.command("list")
@plain_errors
def show_lessons() -> None:
    """List the lessons and puzzles of the app, a teacher's own among them."""
    school = open_school()
    table = columns("lesson", "steps", "what it teaches", right=("steps",))
    for each in school.lessons:
        table.add_row(each.id, str(len(each.steps)), escape("".join(span[1] for span in each.about)))
    print_table(table)
    for name, fault in school.faults:
        err.print(escape(f"{name} is left out. {fault}"), style="red", soft_wrap=True)


@lesson.command("check")
@plain_errors
def check_lessons(files: Files = None) -> None:
    """Check lessons: their form, that solutions are legal and reach the goals, puzzles' first ideas.

    Example: [bold]dojo lesson check my-lessons/01-scopes.md[/bold]
    """
    lessons, unread = read_lessons(files)
    bad = len(unread)
    for path, message in unread:
        out.print(f"{path}: {message}", style="red", soft_wrap=True, markup=False)
    for each in lessons:
        faults = faults_of(each)
        bad += bool(faults)
        steps = counted(len(each.steps), "puzzle" if each.puzzles else "step")
        if not faults:
            out.print(escape(f"{each.file}: {steps}, all sound."), soft_wrap=True)
        for fault in faults:
            out.print(f"{each.file}, {fault}", style="red", soft_wrap=True, markup=False)
    if bad:
        raise typer.Exit(1)


@lesson.command("measure")
@plain_errors
@measures
def measure_lessons(
    files: Files = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Time every legal move, too (long).")] = False,
    only: Annotated[
        str | None, typer.Option("--step", help="Only steps with these words in the title.")
    ] = None,
) -> None:
    """Measure the gains that lessons promise, on this machine. Nothing else should run meanwhile.

    Example: [bold]dojo lesson measure my-lessons/puzzles.md[/bold]
    """
    lessons, unread = read_lessons(files)
    for path, message in unread:
        raise Failure(f"{path}: {message}")
    bad = 0
    with opened() as records, Measurer(records) as measurer:
        for each in lessons:
            for step in timed_steps(each):
                if only is not None and only.lower() not in step.title.lower():
                    continue
                result = timed(step, measurer, greedy)
                bad += bool(result.fault)
                out.print(f"{each.id}, {step.title}: {result.told}", soft_wrap=True, markup=False)
                if result.fault:
                    out.print(f"  {result.fault}", style="red", soft_wrap=True, markup=False)
    if bad:
        raise typer.Exit(1)


@lesson.command("mine")
@plain_errors
@measures
def mine_puzzles(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE…", help="Games or lines (files); default: the records of this machine."),
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", help="Play lines at this shape; default: the one they name.")
    ] = None,
    gain: Annotated[float, typer.Option("--gain", min=1.5, help="What a solution gains at least.")] = GAIN,
    longest: Annotated[int, typer.Option("--moves", min=2, max=4, help="Moves of a solution.")] = LONGEST,
    count: Annotated[int, typer.Option("--count", min=1, help="So many puzzles at most.")] = 10,
    save: Annotated[
        Path | None, typer.Option("--save", help="Write them as a lesson's file; default: print them.")
    ] = None,
) -> None:
    """Mine puzzles: positions where a few moves bring a large gain that no single move brings.

    Every position of the games and every legal move of the puzzles is timed here, so it takes minutes, and
    nothing else should run meanwhile. The texts are a start: put your own words around the positions.

    Example: [bold]dojo lesson mine my-game.dojo --save my-lessons/mined.md[/bold]
    """
    if save is not None:
        check_new(save)
    puzzles: list[str] = []

    def looking(message: str) -> None:
        err.print(escape(message), style="dim", soft_wrap=True)

    with opened() as records, Measurer(records) as measurer:
        for game in _games(files, shape, records):
            for find in mine(game, measurer, gain, longest, looking):
                puzzles.append(puzzle_text(find))
                if len(puzzles) == count:
                    break
            if len(puzzles) == count:
                break
    if not puzzles:
        raise Failure(f"No puzzle was found: try other games, or a smaller gain than --gain {gain:g}.")
    text = HEAD + "\n".join(puzzles)
    if save is None:
        out.print(text, markup=False, soft_wrap=True, highlight=False)
        return
    save.parent.mkdir(parents=True, exist_ok=True)
    write_file(save, text)
    message = f"Saved {counted(len(puzzles), 'puzzle')} in {save}. Next: dojo lesson check {save}"
    err.print(escape(message), style="dim", soft_wrap=True)


def _games(files: list[Path] | None, shape: str | None, records: Records) -> Iterator[Game]:
    """The games of files, or of the records of this machine. Raises Failure."""
    if not files:
        mine_here = this_machine().fingerprint
        timed_here = [r for _, r in records.measurements() if r.fingerprint == mine_here]
        games = list(recorded_games(timed_here))
        if not games:
            raise Failure("There are no recorded lines on this machine yet: run dojo tune, or name files.")
        yield from games
        return
    for file in files:
        text = read_file(file)
        match kind_of(text):
            case "game":
                try:
                    game = Game.from_text(text)
                except TextError as error:
                    raise Failure(f"{file}: {text_fault(error)}") from None
            case "line":
                named = read_line(text, file.stem)
                if named.kernel is None:
                    raise Failure(f"{file} names no kernel: its first lines read kernel …, shape ….")
                game = played(named.kernel, shape, line=file)
            case _:
                raise Failure(
                    f"{file} is neither a game nor a line: save one on Play, or with dojo play --record."
                )
        if not backend(game.target).native:
            raise Failure(f"{file} is for {game.target}: puzzles are timed on this machine's processor.")
        yield game


@lesson.command("goals")
@plain_errors
def show_goals() -> None:
    """List the goals that a lesson can ask for."""
    table = columns("goal", "what it means")
    for form in FORMS:
        table.add_row(escape(form.words), escape(form.about))
    print_table(table)
