"""Telling: a recorded line as a page of the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core.cli.positions import line_text
from dojo_core.cli.terminal import Failure, err, out, progress, read_file, write_file
from dojo_core.line import read_line
from dojo_core.measure.measurement import seconds_text


def tell(
    line: Annotated[Path, typer.Argument(help="A recorded line's name, or a line file.", show_default=False)],
    to: Annotated[
        Path, typer.Option("--out", help="The page to write, such as docs/softmax.md.", show_default=False)
    ],
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=100, help="Rounds of timing.")] = 3,
    again: Annotated[
        bool, typer.Option("--again", help="Write the page anew with the times that stand beside it.")
    ] = False,
) -> None:
    """Write a line as a page: what each move changes, and the time after it.

    The plot (.svg) and the times (.json) stand beside the page. Nothing else should run meanwhile.

    Example: [bold]dojo story softmax --out docs/softmax.md[/bold]
    """
    from dojo_core.story import page, plot, read_times, story, take_times
    from dojo_core.story.times import NotTimed

    the_story = story(read_line(line_text(line), line.stem))
    picture, times_file = to.with_suffix(".svg"), to.with_suffix(".json")
    if again:
        times = read_times(read_file(times_file))
        if len(times.seconds) != len(the_story.programs):
            raise Failure(f"{times_file} has the times of another line: take them again, without --again.")
    else:
        try:
            with progress(
                f"{the_story.kernel} {the_story.shape}", rounds * len(set(the_story.programs))
            ) as advance:
                times = take_times(the_story, rounds, advance)
        except NotTimed as fault:
            raise Failure(str(fault)) from None
        write_file(times_file, times.text())
    write_file(to, page(the_story, times, picture.name))
    write_file(picture, plot(the_story, times))
    start, end = times.seconds[0], times.seconds[-1]
    if start is not None and end is not None:
        err.print(f"{seconds_text(start)} at the start, {seconds_text(end)} at the end.", style="dim")
    out.print(
        f"Wrote {escape(str(to))}, {escape(picture.name)} and {escape(times_file.name)}.", soft_wrap=True
    )
