"""The times that come with a game from its author: in a link, in a file, and what is refused of either."""

from __future__ import annotations

import base64
import json

import pytest

from dojo_core.game import Game
from dojo_core.service.authored import Authored, note, of_link, of_text
from dojo_core.service.saved_games import notes, notes_in
from dojo_core.study.sheets import study_data
from dojo_core.study.times import Times
from tests.test_studies import study


def link(*content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def test_times_come_along_a_line() -> None:
    known = of_link(link("Fast, µ", "2026-11-27", [8e-6, None, 2e-6]), ["a", "b", "c"])
    assert known == Authored("Fast, µ", "2026-11-27", {"a": 8e-6, "c": 2e-6})
    assert of_text(f"dojo game 1\n{note(known)}\n") == known
    assert of_text(notes_in(notes(2.0, True, authored=known))) == known


@pytest.mark.parametrize(
    "packed",
    [
        "", "!", "x" * 9000, link("m", "d", [1.0] * 4), link("m", "d", [-1.0]), link("m", "d", ["1"]),
        link("m", "d", {"a": 1}), link(["m"], "d", [1.0]), link("m", "d"), link("m", "d", [True]),
        base64.urlsafe_b64encode(b"[" * 3000).decode(),
        base64.urlsafe_b64encode(b'["m","d",[1e999]]').decode(),
    ],
)  # fmt: skip
def test_what_is_no_list_of_times_is_passed_over(packed: str) -> None:
    assert of_link(packed, ["a", "b", "c"]) is None
    assert of_text(f"# author's times: {packed}") is None


def test_words_are_one_line_and_bounded() -> None:
    known = of_link(link("a\n# measuring is off" + "x" * 900, "d\n", [1.0]), ["a"])
    assert known is not None and len(known.machine) == 200
    assert len(note(known).splitlines()) == 1


def test_the_file_of_a_fork_tells_the_authors_times() -> None:
    read = study()
    (game,) = read.games
    times = Times("k", "A machine", "2026-11-27", {game.start.hash: [8e-6, 9e-6]})
    (told,) = study_data(read, [times], assembly=False)["games"]
    known = of_text(told["text"])
    assert known is not None and known.told(Game.from_text(told["text"])) is None
    game.goto(0)
    assert known.told(game) == {"seconds": 8e-6, "start": 8e-6, "machine": "A machine", "date": "2026-11-27"}
