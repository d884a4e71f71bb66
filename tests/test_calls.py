"""The game as calls: what a client gets, what it is refused, and what a person sees of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import jsonschema
import pytest

from dojo_core.calls import CALLS, Answer, CallFault, Desk, Limits
from dojo_core.calls.reference import page
from dojo_core.measure.records import Records
from dojo_core.ownership import of_browser
from dojo_core.service import Service
from dojo_core.service.wiring import RecordStore
from tests.goldens import ROOT, Golden
from tests.stand_ins import Bench, Kernels, Page

JOIN, REUSE, SPLIT = "join_scopes t@0", "reuse_dims t 0", "split_scope t@0 2"
ANN = of_browser("a" * 32)


class Held(Desk):
    """A desk whose answers are held against what the call says that they have."""

    def call(self, name: str, arguments: Mapping[str, object]) -> Answer:
        answer = super().call(name, arguments)
        jsonschema.validate(json.loads(json.dumps(answer.data)), CALLS[name].data)
        return answer


@pytest.fixture
def desk(service: Service) -> Desk:
    return Held(service, "Claude via MCP")


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


def test_a_text_of_another_language_is_read_and_never_run(desk: Desk) -> None:
    opened = desk.call("open", {"text": "ij,jk->ik", "sizes": {"i": 2, "j": 3, "k": 4}}).data
    assert "y f32 [2, 4] heap" in opened["program"] and "i=2, j=3, k=4" in opened["told"][0]


def test_play_stops_at_the_first_refusal_and_says_how_far_it_came(desk: Desk) -> None:
    game = begun(desk)
    stopped = desk.call("play", {"game": game, "moves": [SPLIT, "split_scope t@0 7", SPLIT]})
    assert [each["position"] for each in stopped.data["played"]] == [1]
    assert stopped.data["stopped"]["move"] == "split_scope t@0 7" and stopped.data["position"] == 1
    assert "Played 1 of 3" in stopped.text and "Stopped at move 2 of 3, split_scope t@0 7. " in stopped.text
    # refused at once, nothing has changed, and the way around it is in the sentence
    code, sentence = fault(desk, "play", game=game, moves=[REUSE], at=0)
    assert code == "refused" and sentence.endswith(f"Try first: {JOIN}.")
    assert desk.call("show", {"game": game}).data["position"] == 1


def test_why_tells_ways_that_can_be_played(desk: Desk) -> None:
    game = begun(desk)
    answer = desk.call("why", {"game": game, "move": REUSE})
    assert not answer.data["legal"] and answer.data["refusal"]["witness"]
    assert answer.next == (f'play(game="{game}", moves=["{JOIN}", "{REUSE}"])',)
    assert desk.call("play", {"game": game, "moves": [JOIN, REUSE]}).data["stopped"] is None


def test_back_and_forth_in_the_tree(desk: Desk) -> None:
    game = begun(desk)
    desk.call("play", {"game": game, "moves": [JOIN]})
    assert desk.call("take_back", {"game": game}).data["position"] == 0
    desk.call("play", {"game": game, "moves": [SPLIT]})
    tree = desk.call("goto", {"game": game}).data["tree"]
    assert [(node["position"], node["move"], node["variation"]) for node in tree] == [
        (0, None, False), (1, JOIN, False), (2, SPLIT, True),
    ]  # fmt: skip
    assert desk.call("goto", {"game": game, "position": 1}).data["position"] == 1
    assert fault(desk, "goto", game=game, position=9)[0] == "not_found"


def test_moves_are_timed_in_turns_without_being_played(desk: Desk) -> None:
    game = begun(desk)
    rows = desk.call("measure", {"game": game, "moves": [JOIN, SPLIT]}).data["moves"]
    assert [(row["move"], row["outcome"]["status"], row["speed"] is not None) for row in rows] == [
        (JOIN, "ok", True), (SPLIT, "ok", True),
    ]  # fmt: skip
    listed = desk.call("moves", {"game": game, "kind": "join_scopes"}).data["moves"]
    assert fault(desk, "moves", game=game, place="q@1") == (
        "not_found", "Nothing is called 'q@1' at this position: x, y, t are."
    )  # fmt: skip
    assert listed[0]["move"] == JOIN and listed[0]["seconds"] > 0
    (recipe,) = desk.call("measure", {"game": game, "moves": ["fuse t@0"]}).data["moves"]
    assert recipe["outcome"]["seconds"] == listed[0]["seconds"]  # it comes to the same program
    assert desk.call("show", {"game": game}).data["ply"] == 0


def test_what_is_not_measured_in_time_is_told(desk: Desk, bench: Bench) -> None:
    bench.gate.clear()
    game = begun(desk)
    try:
        waited = desk.call("measure", {"game": game, "seconds": 0})
        assert waited.data["state"] == "not yet" and waited.next[0].startswith("measure(")
    finally:
        bench.gate.set()


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("ply", {}, "There is no call 'ply'. Did you mean play?"),
        ("play", {"game": "x"}, "play needs moves: moves or recipes as they are written, in order."),
        ("play", {"game": "x", "move": JOIN}, "play has no argument 'move'. Did you mean moves?"),
        ("play", {"game": "x", "moves": JOIN}, "moves of play is a list."),
        ("play", {"game": "x", "moves": [7]}, "An entry of moves of play is text."),
        ("moves", {"game": "x", "page": 0}, "page of moves is between 1 and 10000."),
        ("measure", {"game": "x", "seconds": float("nan")}, "seconds of measure is between 0 and 300."),
        ("show", {"game": "x", "what": "rust"}, "what of show is one of program, c, assembly, profile."),
        ("show", {"game": "x" * 99}, "game of show has at most 40 characters."),
        ("open", {"kernel": "pair\x00"}, "kernel of open has characters that no text has."),
        ("open", {"kernel": "pear"}, "There is no kernel 'pear'."),
        ("open", {"line": "pear"}, "There is no such recorded line."),
        ("open", {}, "Name one thing to begin with"),
        ("open", {"text": "__import__('os')"}, "line 1, column 1: there is no function __import__"),
        ("show", {"game": "nowhere"}, "There is no saved game with this id here."),
    ],
)
def test_what_no_call_takes_is_a_sentence(
    desk: Desk, name: str, arguments: dict[str, object], sentence: str
) -> None:
    assert fault(desk, name, **arguments)[1].startswith(sentence)


def test_every_call_says_what_it_takes_and_gives() -> None:
    assert set(CALLS) == {
        "kernels", "networks", "open", "games", "show", "moves", "why", "recipes", "play", "take_back",
        "goto", "measure", "hint", "compare", "save", "study", "export",
    }  # fmt: skip
    for each in CALLS.values():
        told = each.description.partition("Data: ")[2]
        said = told.startswith("as ``open`` has it") or all(
            f"``{name}``" in told for name in each.data["properties"]
        )
        assert said, f"{each.name} tells not all that it gives: {told}"
        assert len(each.summary) < 130
        assert all(p.schema.get("description") for p in each.parameters), each.name
        assert each.schema()["additionalProperties"] is False


def test_the_page_of_all_calls_is_what_they_say(golden: Golden) -> None:
    golden(ROOT / "docs" / "interface.md", page())


def test_a_client_keeps_few_games_open_and_none_that_it_never_played(service: Service) -> None:
    desk = Desk(service, "many", limits=Limits(open_games=2))
    first = begun(desk)
    desk.call("play", {"game": first, "moves": [JOIN]})
    empty = begun(desk)
    for _ in range(2):
        begun(desk)
    assert fault(desk, "show", game=empty)[0] == "not_found"
    assert desk.call("show", {"game": first}).data["ply"] == 1


def test_all_clients_together_keep_so_many_games(
    apart: tuple[Desk, Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dojo_core.service.games.KEPT_OF_CLIENTS", 1)
    desk, _ = apart
    desk.call("play", {"game": begun(desk), "moves": [JOIN]})
    code, sentence = fault(Desk(desk.service, "another name"), "open", kernel="pair")
    assert code == "too_much" and sentence.startswith("Programs have 1 games here together")


def test_games_of_another_client_are_looked_at_and_copied(desk: Desk, service: Service) -> None:
    game = begun(desk)
    desk.call("play", {"game": game, "moves": [JOIN]})
    other = Desk(service, "another\n\tclient " + "x" * 99)
    assert other.client == ("another client " + "x" * 99)[:60]
    assert not other.call("show", {"game": game}).data["yours"]
    assert fault(other, "play", game=game, moves=[REUSE])[0] == "refused"
    copy = other.call("open", {"game": game}).data
    assert copy["yours"] and copy["ply"] == 1 and copy["game"] != game
    assert [row["game"] for row in other.call("games", {}).data["games"]] == [copy["game"]]


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[tuple[Desk, Page]]:
    """A client, and a person's page at the start screen: each in a process of its own, on one store."""
    file = tmp_path / "records.sqlite"
    served, app = (
        Service(RecordStore(Records(file)), Kernels(), lambda: Bench(), local=True) for _ in range(2)
    )
    yield Held(served, "Claude via MCP"), Page(app, "ann", ANN)
    for service in (served, app):
        service.close()


def look(page: Page) -> dict[str, object]:
    """What the page asks for when it polls, later than it may ask again."""
    assert page.player.table is not None
    page.player.table.looked = 0.0
    return page.board


def test_a_person_watches_what_a_client_plays_elsewhere_and_takes_it_over(apart: tuple[Desk, Page]) -> None:
    desk, ann = apart
    game = begun(desk)
    desk.call("play", {"game": game, "moves": [JOIN]})
    # the list of games is looked at again by itself, and sent where there is something new in it
    assert ann.service.poll(ann.player)
    first = ann.service.exchange(ann.player, "page", [], "start/0.0")["board"]
    assert ann.service.exchange(ann.player, "page", [], first["version"])["board"] is None
    (card,) = ann.board["start"]["games"]
    assert (card["client"], card["yours"], card["taken"]) == ("Claude via MCP", False, True)

    ann.send("open", game=game)
    shown = ann.board["game"]
    assert "is played by Claude via MCP" in shown["watching"] and shown["taken"]
    assert 0 < (ann.service.poll(ann.player) or 0) <= 1
    desk.call("play", {"game": game, "moves": [REUSE]})
    assert look(ann)["position"]["id"] == 2  # type: ignore[index]
    desk.call("goto", {"game": game, "position": 1})
    assert look(ann)["position"]["id"] == 1  # type: ignore[index]
    ann.send("play", move=SPLIT)
    assert "is played by Claude via MCP" in ann.feed["notice"]["text"]

    ann.send("take_over")
    assert not ann.board["game"]["watching"] and ann.board["game"]["client"] == "Claude via MCP"
    ann.send("play", move=SPLIT)
    code, sentence = fault(desk, "play", game=game, moves=[REUSE])
    assert code == "refused" and sentence.startswith("A person took this game over")
    seen = desk.call("show", {"game": game})
    assert not seen.data["yours"] and "A person took this game over" in seen.text
    assert {node["move"] for node in desk.call("goto", {"game": game}).data["tree"]} == {
        None, JOIN, REUSE, SPLIT,
    }  # fmt: skip


def test_what_others_come_in_to_is_not_taken_over(service: Service, desk: Desk) -> None:
    game = begun(desk)
    desk.call("play", {"game": game, "moves": [JOIN]})
    guest = Page(service, "guest", ANN)
    assert guest.board["start"]["games"] == []
    guest.send("open", game=game)
    assert not guest.board["game"]["taken"]
    guest.send("take_over")
    assert guest.board["game"]["watching"] and desk.call("show", {"game": game}).data["yours"]
