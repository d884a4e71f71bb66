"""What a learned policy says of a position: the one that comes along; to a player, and to a client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.perfllm.across import weights
from agents.perfllm.across.asked import familiar, shipped_says
from dojo_core import extras, kernels
from dojo_core.calls import Desk
from dojo_core.game import Game
from dojo_core.measure.records import Records
from dojo_core.service import Service
from dojo_core.service.learned import LIKELIEST, Learned, LearnedMove
from dojo_core.service.wiring import RecordStore
from dojo_core.targets.registry import target
from tests.stand_ins import Bench, Kernels, Page

JOIN, SPLIT = "join_scopes t@0", "split_scope y@0 4"


def begun(kernel: str, shape: str, on: str = "snitch") -> Game:
    definition = kernels.get(kernel)
    return Game.new(target(on).start(definition.program(definition.shape(shape))), kernel, shape, on)


def test_it_weighs_all_legal_moves_and_says_whether_it_has_seen_the_kernel() -> None:
    pytest.importorskip("torch")
    game = begun("axpy", "256")
    learned = shipped_says(game)
    assert learned.words == familiar("axpy", "256", weights.seen("snitch"))
    assert 0 < len(learned.moves) <= LIKELIEST and learned.stop is not None
    chances = [each.probability for each in learned.moves]
    assert chances == sorted(chances, reverse=True) and sum(chances) + learned.stop <= 1 + 1e-9
    best = learned.moves[0]
    before = game.current.program.text.splitlines()
    after = game.play(best.move).program.text.splitlines()  # raises where it is not legal
    assert {line for sign, line in best.changes if sign == "-"} == set(before) - set(after)
    assert {line for sign, line in best.changes if sign == "+"} == set(after) - set(before)


def test_what_it_has_seen_is_what_the_card_says() -> None:
    for name in weights.targets():
        assert {kernel for kernel, _ in weights.seen(name)} <= set(kernels.names())
        assert weights.seen(name)
    seen = [("axpy", "256"), ("axpy", "1024")]
    assert familiar("axpy", "256", seen) == "It has learned on this kernel, in this shape."
    assert familiar("axpy", "64", seen) == "It has learned on this kernel, as 1024 and 256."
    assert familiar("softmax", "256", seen) == "It has never seen this kernel."
    assert familiar(None, "", seen) == "It has never seen this kernel."
    assert familiar("axpy", "256", []) == "Its model card does not say on which kernels it has learned."


def test_where_there_is_none_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shipped_says(begun("axpy", "256", "cpu")) == Learned(
        "Nothing was learned for cpu so far, only for snitch."
    )
    monkeypatch.setattr(extras, "_present", lambda name: name != "torch")
    words = shipped_says(begun("axpy", "256")).words
    assert "needs torch, which is not installed here: " in words and extras.install_line("learn") in words


def says(game: Game) -> Learned:
    """A policy that knows the stand-in's kernel."""
    if len(game.line()) > 1:
        raise RuntimeError("a policy that breaks")
    return Learned("It has never seen this kernel.", 0.25, (LearnedMove(JOIN, 0.5), LearnedMove(SPLIT, 0.25)))


@pytest.fixture
def taught(tmp_path: Path, bench: Bench) -> Iterator[Service]:
    store = RecordStore(Records(tmp_path / "records.sqlite"))
    made = Service(store, Kernels(), lambda: bench, advise=lambda game: None, policy=says)
    yield made
    made.close()


def test_who_asks_for_a_hint_is_told_what_was_learned_beside_it(taught: Service) -> None:
    page = Page(taught)
    page.start()
    page.send("measure", on=False)
    assert page.feed["learned"] is None  # nobody has asked
    page.send("hint")
    page.until(lambda: page.feed["learned"]["words"] != "")
    learned = page.feed["learned"]
    assert learned == {
        "words": "It has never seen this kernel.",
        "stop": 0.25,
        "moves": [{"move": JOIN, "probability": 0.5}, {"move": SPLIT, "probability": 0.25}],
    }
    page.send("play", move=JOIN)
    assert page.feed["learned"] is None  # that was of the position before
    page.send("hint")
    page.until(lambda: page.feed["learned"]["words"] != "")
    assert page.feed["learned"]["words"] == "The learned policy could not be asked; the log says why."


def test_at_a_puzzle_that_keeps_times_back_no_policy_tells_the_move(taught: Service) -> None:
    page = Page(taught)
    page.start()
    page.player.companion = Puzzle()
    page.send("hint")
    assert page.feed["hint"] is not None and page.feed["learned"] is None


class Puzzle:
    """What stands beside its board."""

    secret, busy = True, False

    def told(self) -> dict[str, object]:
        return {}


def test_a_client_hears_of_it_where_it_asks(taught: Service) -> None:
    desk = Desk(taught, "somebody")
    game = desk.call("open", {"kernel": "pair", "shape": "64"}).data["game"]
    assert "learned" not in desk.call("hint", {"game": game}).data
    answer = desk.call("hint", {"game": game, "learned": True})
    assert [each["move"] for each in answer.data["learned"]["moves"]] == [JOIN, SPLIT]
    assert f"Learned: It has never seen this kernel.\n  50.0%  {JOIN}" in answer.text
