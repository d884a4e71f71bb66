"""What is explored beside the answers: each player's latest, in turns, and no more of it than that."""

from __future__ import annotations

import threading

import pytest

from dojo_core.service import scout as scouts
from dojo_core.service.scout import Scout


def test_of_each_player_the_latest_is_done_in_turns_and_what_never_begins_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scouts, "DRAWN", 0.0)
    monkeypatch.setattr(scouts, "MOST", 4)
    done: list[str] = []
    given_up: list[str] = []
    busy, begun, ended = threading.Event(), threading.Event(), threading.Event()
    scout = Scout()

    def add(who: str, what: str) -> None:
        scout.add(who, lambda: done.append(what), lambda: given_up.append(what))

    def keep_busy() -> None:
        begun.set()
        busy.wait()

    scout.add("somebody", keep_busy, lambda: None)
    begun.wait()
    for who, what in (("dan", "early"), ("ada", "first"), ("ben", "his"), ("ada", "second"), ("eve", "hers")):
        add(who, what)
    add("eve", "hers again")
    scout.add("fay", ended.set, lambda: None)
    busy.set()
    ended.wait()
    scout.close()
    assert done == ["second", "his", "hers again"]
    assert given_up == ["first", "hers", "early"]  # dan had waited longest, and was one too many
