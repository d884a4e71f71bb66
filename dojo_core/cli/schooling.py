"""``dojo lesson``: lessons listed, checked, measured; the goals that a lesson can ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core.cli.keeping import opened
from dojo_core.cli.terminal import Failure, columns, counted, err, out, plain_errors, print_table, read_file
from dojo_core.faults import text_fault
from dojo_core.measure.measurer import Measurer
from dojo_core.program.text import TextError
from dojo_core.school.check import check as faults_of
from dojo_core.school.check import measure as timed
from dojo_core.school.check import timed_steps
from dojo_core.school.goals import FORMS
from dojo_core.school.lesson import Lesson, read_lesson
from dojo_core.school.school import LESSONS_FOLDER, NO_LESSON, glossary_for, open_school

lesson = typer.Typer(
    no_args_is_help=True, help="Lessons and puzzles: see what there is, check your own (docs/lessons.md)."
)

Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE…", help="Lessons, or folders of them; default: those of the Dojo."),
]


def _lessons(files: list[Path] | None) -> tuple[list[Lesson], list[tuple[Path, str]]]:
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
    found: list[Lesson] = []
    faults: list[tuple[Path, str]] = []
    for path in paths:
        text = read_file(path)
        try:
            found.append(read_lesson(text, path, glossary_for(path.parent).terms))
        except TextError as error:
            lines = text.splitlines()
            if not error.source and error.line <= len(lines):
                error.source = lines[error.line - 1]
            faults.append((path, text_fault(error)))
    return found, faults


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
    lessons, unread = _lessons(files)
    bad = len(unread)
    for path, told in unread:
        out.print(f"{path}: {told}", style="red", soft_wrap=True, markup=False)
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
def measure_lessons(
    files: Files = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Time every legal move, too (long).")] = False,
    only: Annotated[
        str | None, typer.Option("--step", help="Only steps with these words in the title.")
    ] = None,
) -> None:
    """Measure the gains that lessons promise, on this machine. Nothing else should run meanwhile.

    Example: [bold]dojo lesson measure lessons/puzzles-1-loops.md[/bold]
    """
    lessons, unread = _lessons(files)
    for path, told in unread:
        raise Failure(f"{path}: {told}")
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


@lesson.command("goals")
@plain_errors
def show_goals() -> None:
    """List the goals that a lesson can ask for."""
    table = columns("goal", "what it means")
    for form in FORMS:
        table.add_row(escape(form.words), escape(form.about))
    print_table(table)
