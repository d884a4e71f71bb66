"""Hints, the machine's limit and previews: what helps a player along, without a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.passes import play_heuristic
from dojo_core import kernels
from dojo_core.bench.roofline import Roofline
from dojo_core.game import Game
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.records import Records
from dojo_core.program.text import parse
from dojo_core.service import Service
from dojo_core.service.hints import DETOURS, STARTS, Adviser
from dojo_core.service.players import Table
from dojo_core.service.queue import Outcome
from dojo_core.service.wiring import KernelLibrary, RecordStore
from tests.stand_ins import Bench, Kernels, Page
from tests.tiny import TINY

LIMIT = Roofline(1e-4, 2e-5, 512, 1e6, "1 read and 1 written", 5e10)


class Limits:
    """A machine whose limit is measured once, and told from then on."""

    def __init__(self, measured: list[str]) -> None:
        self.measured = measured

    def known(self, table: Table) -> Roofline | None:
        return LIMIT if self.measured else None

    def torch(self, table: Table) -> float | None:
        return None

    def doubtful(self, table: Table) -> bool:
        return not self.measured

    def measure(self, table: Table, unwanted: Callable[[], bool]) -> Roofline:
        self.measured.append(table.game.title)
        return LIMIT


@pytest.fixture
def measured_limits() -> list[str]:
    return []


def joining(game: Game) -> None:
    """A pass that joins the two nests of ``pair``."""
    if len(game.current.program.body) > 1:
        game.play("join_scopes t@0")


@pytest.fixture
def helped(tmp_path: Path, bench: Bench, measured_limits: list[str]) -> Iterator[Service]:
    """A service with a pass that would join, and a machine whose limit is known."""
    made = Service(
        RecordStore(Records(tmp_path / "records.sqlite")),
        Kernels(),
        lambda: bench,
        limits=Limits(measured_limits),
        advise=joining,
    )
    yield made
    bench.gate.set()
    made.close()


def test_a_hint_of_a_pass_tells_kind_then_place_then_move(helped: Service) -> None:
    page = Page(helped)
    page.start()
    page.send("measure", on=False)
    page.send("hint")
    page.until(lambda: page.feed["hint"]["source"] != "waiting")
    hint = page.feed["hint"]
    assert (hint["source"], hint["level"], hint["kind"]) == ("pass", 1, "join_scopes")
    assert "place" not in hint and "move" not in hint
    page.send("hint")
    assert page.feed["hint"]["place"] == "t@0" and page.feed["hint"]["paths"] == ["0", "1"]
    assert "move" not in page.feed["hint"]
    page.send("hint")
    assert page.feed["hint"]["move"] == "join_scopes t@0"
    # played, it is gone, and the pass has nothing more to say
    page.send("play", move="join_scopes t@0")
    assert page.feed["hint"] is None
    page.send("hint")
    assert page.feed["hint"]["source"] == "none"
    # and what it planned is there at once
    page.send("take_back")
    page.send("hint")
    assert page.feed["hint"]["source"] == "pass"


def test_a_measured_improvement_is_hinted_before_any_pass_is_asked(helped: Service) -> None:
    page = Page(helped)
    page.start()
    page.until(lambda: not helped.polling(page.player))
    table = page.player.table
    assert table is not None and page.player.analysis is not None
    faster = next(
        s for s in page.player.analysis.find_successors() if str(s.move).startswith("split_scope y@0 4")
    )
    queue = helped.queue.of(table.key)
    queue.standings.keep((table.key, faster.program.hash), Outcome("ok", 0.0001, 0.0001, 5))
    for _ in range(3):
        page.send("hint")
    hint = page.feed["hint"]
    assert (hint["source"], hint["move"]) == ("measured", "split_scope y@0 4")
    assert hint["gain"] == pytest.approx(page.feed["now"]["seconds"] / 0.0001)


def test_the_limit_is_measured_once_and_told_with_the_times(
    helped: Service, measured_limits: list[str]
) -> None:
    page, other = Page(helped), Page(helped)
    page.start()
    assert page.feed["roofline"] is None
    page.until(lambda: page.feed["roofline"] is not None)
    assert page.feed["roofline"]["seconds"] == 1e-4 and page.feed["roofline"]["bound"] == "memory"
    page.send("play", move="join_scopes t@0")
    page.until(lambda: not helped.polling(page.player))
    assert measured_limits == ["pair 64"]
    other.start("128")
    other.send("measure", on=False)  # who asks for no times is not measured for
    other.until(lambda: not helped.polling(other.player))
    assert measured_limits == ["pair 64"]


@pytest.mark.parametrize("busy", [True, False])
def test_a_limit_taken_on_a_busy_machine_is_taken_again_once_that_is_idle(tmp_path: Path, busy: bool) -> None:
    measured: list[str] = []

    class Doubtful(Limits):
        def known(self, table: Table) -> Roofline | None:
            return LIMIT

        def doubtful(self, table: Table) -> bool:
            return True

    service = Service(
        RecordStore(Records(tmp_path / "records.sqlite")),
        Kernels(),
        Bench,
        limits=Doubtful(measured),
        machine=lambda: Conditions(0.9 if busy else 0.0),
    )
    page = Page(service)
    page.start()
    page.until(lambda: not service.polling(page.player) and (busy or bool(measured)))
    service.close()
    assert measured == ([] if busy else ["pair 64"])


def test_a_preview_shows_any_legal_move_listed_or_not(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("look", move="split_scope t@0 32")
    assert {mark for mark, _ in page.feed["look"]["diff"]} == {"-", "+"}
    page.send("look", move="split_scope t@0 7")
    assert page.feed["look"]["diff"] == []


def test_a_game_for_a_gpu_begins_from_a_card(tmp_path: Path, bench: Bench) -> None:
    made = Service(RecordStore(Records(tmp_path / "records.sqlite")), KernelLibrary(), lambda: bench)
    page = Page(made)
    page.send("start", kernel="relu", shape="8x64", policy="reassoc", target="cuda")
    assert page.board["game"]["target"] == "cuda" and page.board["game"]["title"] == "relu 8x64 on cuda"
    assert any("__global__" in text for text, _ in page.board["code"]["lines"])
    assert any(move["name"] == "map_grid" for move in page.board["moves"])
    page.send("leave")
    page.send("start", kernel="sparse24", shape="", policy="reassoc", target="cuda")
    assert "no constant tables" in page.board["start"]["errors"]["sparse24"]
    page.send("start", kernel="relu", shape="8x64", policy="reassoc", target="abacus")
    assert "There is no target 'abacus'" in page.board["start"]["errors"]["relu"]
    made.close()


def test_the_heuristic_pass_has_a_first_move_on_both_kinds_of_target() -> None:
    for target in ("cpu", "cuda"):
        game = begun("softmax", (96, 32), target)
        hint = Adviser(play_heuristic).hint(game)
        game.play(hint.move)  # raises where it is not legal


def begun(kernel: str, shape: tuple[int, ...], target: str = "cpu") -> Game:
    return Game.new(
        kernels.get(kernel).program(shape), kernel, "x".join(map(str, shape)), target, "algebraic"
    )


def followed(adviser: Adviser, game: Game) -> list[str]:
    """What is hinted, and played, from a game's cursor on."""
    played: list[str] = []
    while (hint := adviser.hint(game)).source != "none":
        game.play(hint.move)
        played.append(hint.move)
    return played


@pytest.mark.parametrize("kernel", ["softmax", "layernorm", "matmul"])
def test_who_follows_hints_plays_the_line_of_the_pass_to_its_end(kernel: str) -> None:
    alone, game = begun(kernel, TINY[kernel]), begun(kernel, TINY[kernel])
    moves = play_heuristic(alone)
    assert len(followed(Adviser(play_heuristic), game)) == moves
    assert game.current.program.hash == alone.current.program.hash
    # asked for the first time in the middle, as after a restart, it goes on as before
    game.goto(moves // 2)
    assert len(followed(Adviser(play_heuristic), game)) == moves - moves // 2


def test_hints_go_on_and_end_where_a_player_has_left_their_line() -> None:
    adviser, game = Adviser(play_heuristic), begun("softmax", TINY["softmax"])
    followed(adviser, game)
    game.goto(8)
    game.play("split_scope m@0 2")
    alone = Game.new(parse(game.current.program.text), policy=game.policy)
    assert len(followed(adviser, game)) == play_heuristic(alone)
    assert game.current.program.hash == alone.current.program.hash


def test_the_lines_that_are_kept_are_bounded() -> None:
    asked: list[Game] = []
    adviser = Adviser(asked.append)  # a pass that plays nothing
    games = [begun("fill", (1 << 20, 1 + n)) for n in range(STARTS + 1)]
    for game in games:
        assert adviser.hint(game).source == "none"
    assert len(asked) == STARTS + 1
    adviser.hint(games[0])
    assert len(asked) == STARTS + 2  # it was forgotten, and is planned anew
    asked.clear()
    for n in range(DETOURS + 1):
        games[0].play(f"split_scope y@0 {2 << n}", at=0)
        adviser.hint(games[0])
    assert len(asked) == DETOURS + 1
    for position in (0, DETOURS + 1):
        games[0].goto(position)
        assert adviser.known(games[0]) is not None
    games[0].goto(1)
    assert adviser.known(games[0]) is None
