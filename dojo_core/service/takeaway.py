"""What the position on the board can be taken away as: its C, a library with PyTorch operators, its line, a
link, the whole game."""

from __future__ import annotations

import base64
import re

from dojo_core.actions import looking
from dojo_core.codegen.code import NotGeneratable
from dojo_core.export import (
    DEFAULT_NAME,
    Library,
    NotExported,
    library,
    of_game,
    single_file,
    torch_example,
    with_record,
    zipped,
)
from dojo_core.game import Game
from dojo_core.measure.records import Records
from dojo_core.service.view import Json
from dojo_core.sharing import line_text, link
from dojo_core.study.writing import of_game as study_of
from dojo_core.targets.registry import backend


def file_name(title: str) -> str:
    """A title as the name of a file."""
    return re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-")[:60] or "game"


def c_text(game: Game, records: Records | None = None) -> str:
    """The position's C as it is compiled, in a file of its own; with ``records``, what they know of it.

    Raises NotExported for a game of a target whose code is not C, and NotGeneratable.
    """
    choice = of_game(game, f"the game {game.title}")
    return single_file(choice if records is None else with_record(choice, records))


def library_of(game: Game, name: str = DEFAULT_NAME, records: Records | None = None) -> Library:
    """The position as a library; with ``records``, what they know of it is in it. Raises NotExported."""
    try:
        choice = of_game(game, f"the game {game.title}")
        return library([choice if records is None else with_record(choice, records)], name)
    except (NotGeneratable, ValueError) as fault:
        raise NotExported(str(fault)) from fault


def parts(game: Game, records: Records | None = None) -> Json:
    """All of it at once, each part of the position at the cursor:

    - ``code``: ``name`` of a file, ``text``, and ``called``, as the board calls it;
    - ``library``: ``name`` of a zip archive, ``zip`` (base64), ``use``: Python that calls its operator;
    - ``line``: the moves to here as a ``text`` that the start screen reads;
    - ``link``: ``text``, what stands after ``?g=``; not ``whole`` where the line is too long for one;
    - ``game``: ``name`` and ``text`` of the game with its variations;
    - ``study``: ``name`` and ``text`` of a study that goes through it, for words to be put between.

    A part that cannot be made has ``error``, a sentence, in place of its texts.
    """
    name, linked = file_name(game.title), link(game)
    return {
        "title": game.title,
        "moves": len(game.line()) - 1,
        "code": _code(game, name, records),
        "library": _library(game, name, records),
        "line": {"text": line_text(game)},
        "link": {"text": linked or game.id, "whole": linked is not None},
        "game": {"name": f"{name}.line", "text": game.to_text()},
        "study": {"name": f"{name}.md", "text": study_of(game)},
    }


def _code(game: Game, name: str, records: Records | None) -> Json:
    called = backend(game.target).words.code
    try:
        try:
            text = c_text(game, records)
        except NotExported:  # not C: as it is shown
            text = looking.code(game.current.program, game.target, game.policy).text
    except (NotGeneratable, ValueError) as fault:
        return {"called": called, "error": str(fault)}
    return {"called": called, "name": f"{name}.{called.lower()}", "text": text}


def _library(game: Game, name: str, records: Records | None) -> Json:
    try:
        made = library_of(game, records=records)
    except NotExported as fault:
        return {"error": str(fault)}
    packed = base64.b64encode(zipped(made)).decode()
    return {"name": f"{name}.zip", "zip": packed, "use": torch_example(made)}
