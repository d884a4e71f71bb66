"""The game as calls: what a client gets, what it is refused, and what a person sees of it."""

from __future__ import annotations

import pytest

from dojo_core.calls import CallFault, Desk
from dojo_core.ownership import of_browser
from dojo_core.service import Service

JOIN, REUSE, SPLIT = "join_scopes t@0", "reuse_dims t 0", "split_scope t@0 2"
ANN = of_browser("a" * 32)


@pytest.fixture
def desk(service: Service) -> Desk:
    return Desk(service, "Claude via MCP")


def begun(desk: Desk) -> str:
    return str(desk.call("open", {"kernel": "pair"}).data["game"])


def fault(desk: Desk, name: str, **arguments: object) -> tuple[str, str]:
    with pytest.raises(CallFault) as told:
        desk.call(name, arguments)
    return told.value.code, str(told.value)


def test_a_game_from_open_to_measured(desk: Desk) -> None:
    game = begun(desk)
    kinds = {row["kind"]: row for row in desk.call("moves", {"game": game}).data["kinds"]}
    assert kinds["join_scopes"]["examples"] == [JOIN]
    answer = desk.call("play", {"game": game, "moves": [JOIN, REUSE]})
    assert answer.data["ply"] == 2 and answer.data["stopped"] is None
    assert "-t f32 [64] heap" in answer.data["changed"] and "+t f32 [64:N] heap" in answer.data["changed"]
    measured = desk.call("measure", {"game": game})
    assert measured.data["state"] == "measured" and measured.data["outcome"]["seconds"] > 0
    assert measured.data["speedup"]["value"] > 0
    assert measured.text.splitlines()[-1].startswith(f'Next: moves(game="{game}")')
    assert f"| 2 | `{REUSE}` |" in desk.call("study", {"game": game}).text
