"""What remains of a game: its title, its line as a text to study, its program as a library to take away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from dojo_core.actions.timing import number_text
from dojo_core.calls import answers
from dojo_core.calls.call import Answer, CallFault
from dojo_core.calls.desk import Desk
from dojo_core.calls.registry import call
from dojo_core.calls.words import (
    LINES,
    At,
    GameId,
    Page,
    ended,
    paged,
    position_of,
    written,
)
from dojo_core.export import DEFAULT_NAME, Library, NotExported, zipped
from dojo_core.files import naming
from dojo_core.game import Game
from dojo_core.service.changes import copied
from dojo_core.service.players import Table
from dojo_core.service.takeaway import file_name, library_of
from dojo_core.sharing import line_text, link
from dojo_core.study.export import move_table
from dojo_core.study.writing import of_game as study_of
from dojo_core.wording import counted

LARGEST = 400_000  # characters of a library's files in an answer


@call(answers.Titled, changes=True)
def save(
    desk: Desk,
    game: GameId,
    title: Annotated[str, "what lists call it", {"maxLength": 80}],
) -> Answer:
    """Give a game a title. The game itself is saved after each move, whether it has one or not.

    Data: ``game``, ``title``.
    """
    table = desk.own(game)
    desk.service.games.rename(game, title, desk.owner)
    following = (written("study", game=game), written("export", game=game))
    kept = table.game.title
    return Answer(ended([f"Saved as {kept}."], following), {"game": game, "title": kept}, following)


@call(answers.Study)
def study(
    desk: Desk,
    game: GameId,
    form: Annotated[
        Literal["story", "study", "game", "line", "link"],
        "the line as Markdown with its times; the beginnings of a study (dojo study); the game, or its line, "
        "as a text that open reads; an address",
    ] = "story",
    at: At = None,
    page: Page = 1,
) -> Answer:
    """A game as a text to read, to keep or to hand on: its line told with times, or the game itself.

    Data: ``game``, ``form``, ``lines`` of this ``page`` of ``pages``; of a link, ``link``: what stands after
    ``?g=`` in the app's address, null where the line is too long for one.
    """
    table = desk.table(game)
    with table.lock:
        copy = copied(table.game)
    copy.cursor = position_of(copy, at).id
    if form == "link":
        made = link(copy)
        text = [f"?g={made}" if made else "The line is too long for a link: take the game's text."]
        following = (written("study", game=game, form="game"),)
        data = {"game": game, "form": form, "link": made, "lines": text, "page": 1, "pages": 1}
        return Answer(ended(text, following), data, following)
    if form == "story":
        lines = _story(desk, table, copy.cursor)
    else:
        texts = {"game": Game.to_text, "line": line_text, "study": study_of}
        lines = texts[form](copy).splitlines()
    shown, pages = paged(lines, page, LINES)
    following = (written("export", game=game),)
    if page < pages:
        following = (written("study", game=game, form=form, page=page + 1),)
    data = {"game": game, "form": form, "lines": list(shown), "page": page, "pages": pages}
    return Answer(ended(shown, following), data, following)


def _story(desk: Desk, table: Table, at: int) -> list[str]:
    """The line to a position as Markdown: each move with its time, the program at its end."""
    with table.lock:
        game = table.game
        line = game.line(at)
        head = f"{game.kernel or game.start.name} {game.shape}".strip()
        rules = f"for {game.target}, floating-point policy {game.policy}"
    outcomes = desk.service.known(table, [position.program.hash for position in line])
    seconds = [known.seconds if known is not None and known.ok else None for known in outcomes]
    steps = [(n, str(line[n].move), seconds[n : n + 1]) for n in range(1, len(line))]
    first, last = seconds[0], seconds[-1]
    gain = f" {first / last:.3g}× as fast as the start." if first and last and len(line) > 1 else ""

    def told(time: float | None) -> str:
        return "not measured" if time is None else number_text(game.target, time)

    return [
        f"# {game.title}", "", f"{head}, {rules}: {counted(len(steps), 'move')}, {told(last)}.{gain}", "",
        *move_table(steps, seconds[:1], told), "", "```", *line[-1].program.text.splitlines(), "```",
    ]  # fmt: skip


@call(answers.Exported, changes=True)
def export(
    desk: Desk,
    game: GameId,
    name: Annotated[str, "the library's name in C and Python", {"maxLength": 40}] = DEFAULT_NAME,
    at: At = None,
) -> Answer:
    """A position as a library to take away: C, a CMake file, Python and PyTorch; it needs nothing of the
    Dojo.

    Where the Dojo was started with a folder for it, a zip archive is written there; else the files' texts
    are the answer. Data: ``game``, ``name``, and ``files``, texts by path, or ``archive``, the path that
    was written.
    """
    table = desk.table(game)
    with table.lock:
        copy = copied(table.game)
    copy.cursor = position_of(copy, at).id
    try:
        made = library_of(copy, name)
    except NotExported as fault:
        raise CallFault(str(fault), "refused") from fault
    following = (written("compare", game=game), written("study", game=game))
    if desk.exports is not None:
        archive = _write(made, desk.exports / f"{file_name(copy.title)}-{game}-{copy.cursor}.zip")
        lines = [
            f"Wrote {archive}: {counted(len(made.files), 'file')}; README.md there tells how to build it."
        ]
        return Answer(
            ended(lines, following), {"game": game, "name": name, "archive": str(archive)}, following
        )
    if sum(map(len, made.files.values())) > LARGEST:
        raise CallFault(
            "This library is too large for an answer: start the Dojo with a folder to export to.", "too_much"
        )
    head = f"{counted(len(made.files), 'file')} of the library {name}, whose texts are the answer's data:"
    lines = [head, *made.files]
    return Answer(ended(lines, following), {"game": game, "name": name, "files": dict(made.files)}, following)


def _write(made: Library, archive: Path) -> Path:
    """An archive in the folder that was named at the start; the name is ours, so that it meets no other
    file."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with naming(archive):
        archive.write_bytes(zipped(made))
    return archive
