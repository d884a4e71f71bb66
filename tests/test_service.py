"""The service without a page: events, queue, leases, persistence. The measurer is a stand-in."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dojo_core.measure.measurement import Workload
from dojo_core.measure.records import Records
from dojo_core.moves import Move, legal_moves
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.service import KernelCard, Player, Service
from dojo_core.service.analysis import Analysis, Successor
from dojo_core.service.queue import FINALISTS, MeasuringQueue, Outcome, Task
from dojo_core.service.wiring import RecordStore

TEXT = """kernel pair
in x
out y
x f32 [64] heap
t f32 [64] heap
y f32 [64] heap
64 t[{0}] = x[{0}]*2
64 y[{0}] = t[{0}] + 1
"""


class Bench:
    """Answers every program with a time; can be held up, made slow, or broken."""

    def __init__(self) -> None:
        self.measured: list[str] = []
        self.batches: list[tuple[int, bool]] = []
        self.again: list[str] = []  # what was timed once more
        self.gate = threading.Event()
        self.gate.set()
        self.broken = ""

    def measure(
        self,
        workload: Any,
        programs: Sequence[Program],
        careful: bool,
        on_result: Callable[[str, Outcome], None],
        cancelled: Callable[[], bool],
        again: bool = False,
    ) -> None:
        if again:
            for program in programs:
                self.again.append(program.hash)
                on_result(program.hash, Outcome("ok", 0.0005, 0.0005, 5))
            return
        self.batches.append((len(programs), careful))
        for program in programs:
            self.gate.wait(10)
            if self.broken:
                raise RuntimeError(self.broken)
            if cancelled():
                on_result(program.hash, Outcome("cancelled"))
                continue
            self.measured.append(program.hash)
            on_result(program.hash, Outcome("ok", 0.001 * len(self.measured), 0.001, 5))

    def close(self) -> None:
        pass


class Kernels:
    """One kernel, of one dimension."""

    def cards(self) -> list[KernelCard]:
        return [KernelCard("pair", "Element-wise", "2x + 1", "64")]

    def start(self, kernel: str, shape: str) -> Program:
        if not shape.isdigit():
            raise ValueError("it has one dimension")
        return parse(TEXT.replace("64", shape))

    def work(self, kernel: str, shape: str) -> tuple[float, float]:
        return 128.0, 512.0

    def workload(self, start: Program, kernel: str | None, policy: str) -> Any:
        return Workload(start, kernel, policy)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def service(tmp_path: Path, bench: Bench) -> Iterator[Service]:
    made = Service(RecordStore(Records(tmp_path / "records.sqlite")), Kernels(), lambda: bench)
    yield made
    bench.gate.set()
    made.close()


class Page:
    """A browser tab: numbers its events and sends them with the position it has drawn."""

    def __init__(self, service: Service, name: str = "tab") -> None:
        self.service, self.name, self.number = service, name, 0
        self.player: Player = service.player(None)

    def send(self, kind: str, **fields: Any) -> None:
        self.number += 1
        board = self.service.board(self.player)
        at: dict[str, Any] = {}
        if board["view"] == "play":
            at = {"game": board["game"]["id"], "position": board["position"]["id"]}
        self.service.handle(self.player, self.name, [{"seq": self.number, "kind": kind, **at, **fields}])

    def start(self, shape: str = "64") -> None:
        self.send("start", kernel="pair", shape=shape, policy="reassoc")

    @property
    def board(self) -> dict[str, Any]:
        return self.service.board(self.player)

    @property
    def feed(self) -> dict[str, Any]:
        return self.service.feed(self.player)

    def until(self, condition: Callable[[], bool]) -> None:
        """Poll as a page does, which renews the lease."""
        end = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            self.service.feed(self.player)
            time.sleep(0.01)


def move_of(page: Page, name: str) -> str:
    return next(m["text"] for m in page.board["moves"] if m["name"] == name)


def test_start_shows_text_code_moves_and_streams_times(service: Service) -> None:
    page = Page(service)
    assert page.board["start"]["groups"][0]["kernels"][0]["name"] == "pair"
    page.start()
    board = page.board
    assert board["program"]["lines"][0]["op"] == "t[{0}] = x[{0}]*2"
    assert board["program"]["lines"][0]["slots"] == [{"path": "0", "text": "64", "mark": ""}]
    assert any("join_scopes" in m["text"] for m in board["moves"])
    page.until(lambda: all(isinstance(r, list) for r in page.feed["results"]))
    assert page.feed["now"]["seconds"] > 0
    page.until(lambda: not service.polling(page.player))


def test_an_event_counts_once_and_only_on_its_position(service: Service) -> None:
    page = Page(service)
    page.start()
    board = page.board
    join = move_of(page, "join_scopes")
    event = {"kind": "play", "game": board["game"]["id"], "position": 0, "move": join}
    # sent again unchanged, as after a lost acknowledgement; and a second click under a new number
    service.handle(page.player, "a", [{"seq": 1, **event}])
    service.handle(page.player, "a", [{"seq": 1, **event}, {"seq": 2, **event}])
    assert len(page.board["history"]["nodes"]) == 2
    assert page.feed["acknowledged"]["a"] == 2


def test_play_take_back_branch_and_promote(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move=move_of(page, "join_scopes"))
    assert [mark for mark, _ in page.board["program"]["diff"] if mark != " "]
    page.send("take_back")
    page.send("play", move=move_of(page, "split_scope"))
    history = page.board["history"]
    assert len(history["nodes"]) == 3 and history["branches"]
    assert [n["variation"] for n in history["nodes"] if n["id"] == page.board["position"]["id"]] == [True]
    page.send("promote")
    assert not any(n["variation"] for n in page.board["history"]["nodes"] if n["id"] == history["line"][-1])
    page.send("step", to="branch")
    assert page.board["position"]["id"] != history["line"][-1]


def test_an_illegal_move_is_a_sentence_and_changes_nothing(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move="reuse_dims t 0")
    assert page.feed["notice"]["kind"] == "error" and "reuse_dims t 0" in page.feed["notice"]["text"]
    page.send("play", move="no such move")
    assert len(page.board["history"]["nodes"]) == 1
    assert page.feed["notice"]["text"] == "There is no move 'no'."
    page.send("leave")
    page.send("start", kernel="pair", shape="64x64", policy="reassoc")
    assert page.board["start"]["errors"] == {"pair": "it has one dimension"}


def test_a_blocked_move_names_its_reason_and_its_enabler(service: Service) -> None:
    page = Page(service)
    page.start()
    page.until(lambda: page.board["blocked"] is not None)
    blocked = next(b for b in page.board["blocked"] if b["text"] == "reuse_dims t 0")
    assert blocked["enablers"] == ["join_scopes t@0"] and blocked["witness"]
    opener = next(m for m in page.board["moves"] if m["text"] == "join_scopes t@0")
    assert "reuse_dims t 0" in opener["opens"]


def test_a_saved_game_comes_back_in_another_process(tmp_path: Path, bench: Bench) -> None:
    path = tmp_path / "records.sqlite"
    first = Service(RecordStore(Records(path)), Kernels(), lambda: bench)
    page = Page(first)
    page.start()
    page.send("play", move=move_of(page, "join_scopes"))
    game, text = page.board["game"]["id"], page.board["program"]["lines"]
    # no close: as after kill -9
    second = Service(RecordStore(Records(path)), Kernels(), lambda: bench)
    player = second.player("other", game)
    board = second.board(player)
    assert board["game"]["id"] == game and board["program"]["lines"] == text
    assert [g["id"] for g in second.board(second.player(None))["start"]["games"]] == [game]
    first.close()
    second.close()


def test_two_players_have_two_games(service: Service) -> None:
    one, two = Page(service), Page(service)
    one.start()
    two.start()
    one.send("play", move=move_of(one, "join_scopes"))
    assert one.player.id != two.player.id
    assert len(one.board["history"]["nodes"]) == 2
    assert len(two.board["history"]["nodes"]) == 1


def test_measuring_off_measures_nothing(service: Service, bench: Bench) -> None:
    page = Page(service)
    bench.gate.clear()
    page.start()
    page.send("measure", on=False)
    bench.gate.set()
    page.until(lambda: not service.polling(page.player))
    time.sleep(0.05)
    assert len(bench.measured) <= 1
    assert page.feed["queue"]["state"] == "off" and set(map(str, page.feed["results"])) <= {"2"}


def test_a_text_of_ones_own_with_an_error_keeps_the_start_screen(service: Service) -> None:
    page = Page(service)
    page.send("text", text=TEXT.replace("x[{0}]*2", "q[{0}]*2"), policy="reassoc")
    board = page.board
    assert board["view"] == "start" and "q" in board["start"]["errors"]["text"]
    page.send("text", text=TEXT, policy="strict")
    assert page.board["view"] == "play" and page.board["game"]["policy"] == "strict"


def test_export_and_import_give_the_same_game(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move=move_of(page, "join_scopes"))
    page.send("export")
    text = page.feed["download"]["text"]
    other = Page(service)
    other.send("text", text=text, policy="reassoc")
    assert other.board["program"]["lines"] == page.board["program"]["lines"]
    assert other.board["game"]["id"] != page.board["game"]["id"]


def test_removing_a_middle_move_reports_before_it_changes(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move="join_scopes t@0")
    page.send("play", move="reuse_dims t 0")
    page.send("step", to="back")
    page.send("ask_drop")
    report = page.board["drop"]
    assert report["move"] == "join_scopes t@0"
    assert [(e["move"], e["outcome"]) for e in report["entries"]] == [("reuse_dims t 0", "refused")]
    assert len(page.board["history"]["nodes"]) == 3
    page.send("drop", mode="cancel")
    assert page.board["drop"] is None and len(page.board["history"]["nodes"]) == 3


def test_what_is_deleted_comes_back_with_undo(service: Service) -> None:
    page = Page(service)
    page.start()
    for move in ("join_scopes t@0", "reuse_dims t 0"):
        page.send("play", move=move)
    before = page.board["history"]
    page.send("goto", id=1)
    page.send("delete")
    notice = page.feed["notice"]
    assert notice["text"] == "Deleted join_scopes t@0 and 1 later move."
    assert len(page.board["history"]["nodes"]) == 1
    page.send(notice["undo"]["kind"])
    assert page.board["history"] == {**before, "branches": page.board["history"]["branches"]}
    # moves played since stand in the way: they are not overwritten
    page.send("delete")
    page.send("play", move="split_scope y@0 2")
    page.send("undelete")
    assert "cannot come back" in page.feed["notice"]["text"]
    assert [n["move"] for n in page.board["history"]["nodes"]] == [None, "split_scope y@0 2"]


def test_a_notice_is_for_the_page_that_caused_it(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(service)
    page.start()
    page.send("play", move="reuse_dims t 0")
    assert page.feed["notice"]["client"] == "tab"
    monkeypatch.setattr("dojo_core.service.service.NOTICE", 0.0)
    assert page.feed["notice"] is None


def test_the_list_of_games_has_those_with_moves_and_what_is_known_of_them(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("leave")
    assert page.board["start"]["games"] == []
    page.start()
    page.send("play", move="join_scopes t@0")
    page.send("play", move="reuse_dims t 0")
    page.send("take_back")
    page.until(lambda: page.feed["best"] is not None and page.feed["start"] is not None)
    game = page.board["game"]["id"]
    page.send("leave")
    (card,) = page.board["start"]["games"]
    assert (card["id"], card["moves"], card["last"]) == (game, 2, "reuse_dims t 0")
    assert card["kernel"] == "pair 64" and card["best"] >= 1
    page.send("rename", game=game, title="  my   best ")
    assert page.board["start"]["games"][0]["title"] == "my best"
    page.send("forget", game=game)
    assert page.board["start"]["games"] == []
    assert page.feed["notice"]["text"] == "Deleted my best."
    page.send("remember")
    assert page.board["start"]["games"][0]["best"] == card["best"]


def test_steps_count_wherever_the_cursor_is_and_moves_only_on_their_position(service: Service) -> None:
    page = Page(service)
    page.start()
    for move in ("split_scope t@0 2", "split_scope y@0 4", "split_scope y@1 2"):
        page.send("play", move=move)
    at = {"game": page.board["game"]["id"], "position": 3}
    quick = [{"seq": 10 + n, "kind": "step", "to": "back", **at} for n in range(2)]
    service.handle(page.player, "tab", [*quick, {"seq": 12, "kind": "take_back", **at}])
    assert page.board["position"]["id"] == 0
    service.handle(page.player, "tab", [{"seq": 13, "kind": "delete", **at}])
    assert len(page.board["history"]["nodes"]) == 4


def test_measuring_off_is_kept_with_the_game(tmp_path: Path, bench: Bench) -> None:
    path = tmp_path / "records.sqlite"
    first = Service(RecordStore(Records(path)), Kernels(), lambda: bench)
    page = Page(first)
    page.start()
    page.send("measure", on=False)
    page.send("play", move="join_scopes t@0")
    second = Service(RecordStore(Records(path)), Kernels(), lambda: bench)
    player = second.player(page.player.id, page.board["game"]["id"])
    assert second.board(player)["measuring"] is False
    assert second.queue.open_tasks(player.id) == 0
    first.close()
    second.close()


def test_a_text_whose_output_is_not_written_is_refused_beside_the_box(service: Service) -> None:
    page = Page(service)
    page.send("text", text=TEXT.replace("64 y[{0}]", "32 y[{0}]"), policy="reassoc")
    told = page.board["start"]["errors"]["text"]
    assert page.board["view"] == "start" and "y" in told and "32 y[{0}] = t[{0}] + 1" in told


def test_a_wrong_move_in_a_pasted_game_is_told_with_its_line(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move="join_scopes t@0")
    page.send("export")
    text = page.feed["download"]["text"]
    page.send("leave")
    page.send("text", text=text.replace("join_scopes", "join_scpes"), policy="reassoc")
    told = page.board["start"]["errors"]["text"]
    assert "Did you mean join_scopes?" in told and "1: join_scpes t@0" in told
    page.send("text", text=text.replace("join_scopes", "zzz"), policy="reassoc")
    assert "There is no move 'zzz'" in page.board["start"]["errors"]["text"]
    assert "vectorize" not in page.board["start"]["errors"]["text"]
    page.send("text", text="dojo game 1\n" + "x" * 600_000, policy="reassoc")
    assert "^" not in page.board["start"]["errors"]["text"]


def test_a_game_changed_elsewhere_names_the_page_that_did_it(service: Service) -> None:
    one, two = Page(service, "one"), Page(service, "two")
    one.start()
    two.send("open", game=one.board["game"]["id"])
    two.send("play", move="join_scopes t@0")
    one.send("look_again")
    assert one.board["game"]["by"] == "two" and one.board["position"]["id"] == 1


def test_a_second_tab_with_the_same_address_is_another_player_at_the_same_game(service: Service) -> None:
    page = Page(service)
    page.start()
    other = service.newcomer(page.player.id, page.board["game"]["id"])
    assert other is not page.player and other.table is page.player.table
    assert service.newcomer("unknown", None).id == "unknown"  # as after a restart


def test_a_dead_measurer_is_a_state_that_a_restart_ends(service: Service, bench: Bench) -> None:
    page = Page(service)
    bench.broken = "no compiler"
    page.start()
    page.until(lambda: page.feed["queue"]["state"] == "down")
    assert "no compiler" in page.feed["queue"]["message"]
    page.send("play", move=move_of(page, "join_scopes"))
    assert len(page.board["history"]["nodes"]) == 2
    bench.broken = ""
    page.send("restart")
    page.until(lambda: page.feed["now"].get("seconds", 0) > 0)


def test_the_assembly_is_made_once_however_often_it_is_asked_for(tmp_path: Path, bench: Bench) -> None:
    made: list[object] = []
    records = Records(tmp_path / "records.sqlite")
    service = Service(
        RecordStore(records), Kernels(), lambda: bench, assemble=lambda a: made.append(a) or {"lines": []}
    )
    page = Page(service)
    bench.gate.clear()  # a measurement is under way: the assembly has to wait
    page.start()
    page.until(lambda: bool(bench.batches))
    page.send("show", assembly=True)
    page.send("select", path="0")
    page.send("select", path="1")
    bench.gate.set()
    page.until(lambda: page.board["assembly"] is not None)
    page.until(lambda: not service.polling(page.player))
    assert len(made) == 1
    service.close()


def test_a_position_stays_explored_while_others_look_at_many(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dojo_core.service.analysis.KEPT", 1)
    one, two = Page(service), Page(service)
    one.start()
    one.until(lambda: all(isinstance(r, list) for r in one.feed["results"]))
    two.start("128")
    one.send("select", path="0")
    assert all(isinstance(r, list) for r in one.feed["results"])
    assert one.board["moves"] != two.board["moves"]


def test_positions_stepped_over_are_not_explored(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    explored: list[str] = []
    gate = threading.Event()
    find = Analysis.find_successors

    def found(analysis: Analysis) -> list[Successor]:
        explored.append(analysis.program.hash)
        gate.wait(10)
        return find(analysis)

    monkeypatch.setattr(Analysis, "find_successors", found)
    page = Page(service)
    page.start()
    page.until(lambda: len(explored) == 1)
    seen = [page.board["position"]["hash"]]
    for move in ("join_scopes t@0", "reuse_dims t 0"):
        page.send("play", move=move)
        seen.append(page.board["position"]["hash"])
    gate.set()
    page.until(lambda: not page.player.pending)
    assert explored == [seen[0], seen[2]]


def test_a_game_that_everybody_left_takes_no_memory_and_comes_back(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("play", move="join_scopes t@0")
    game = page.board["game"]["id"]
    table = weakref.ref(page.player.table)
    page.until(lambda: not page.player.pending)
    page.send("leave")
    page.until(lambda: gc.collect() >= 0 and table() is None)
    page.send("open", game=game)
    assert len(page.board["history"]["nodes"]) == 2


def test_players_who_open_a_game_at_once_sit_at_one_table(service: Service) -> None:
    page = Page(service)
    page.start()
    game = page.board["game"]["id"]
    page.send("leave")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: service.player(f"p{n}", game), range(8)))
    assert len({id(player.table) for player in found}) == 1


def test_the_player_not_seen_for_longest_is_forgotten(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dojo_core.service.service.KEPT_PLAYERS", 2)
    one, two = Page(service), Page(service)
    one.start()
    game = one.board["game"]["id"]
    two.start()
    _ = one.feed  # seen again
    service.player("third")
    assert service.player(one.player.id) is one.player
    assert not service.queue.open_tasks(two.player.id)
    assert service.board(service.player("fourth", game))["game"]["id"] == game


def test_a_game_that_cannot_be_saved_is_told_and_saved_with_the_next_move(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Page(service)
    page.start()
    with monkeypatch.context() as full:
        full.setattr(Records, "save_game", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
        page.send("play", move="join_scopes t@0")
    assert "could not be saved (no space left)" in page.feed["notice"]["text"]
    assert len(page.board["history"]["nodes"]) == 2
    page.send("play", move="reuse_dims t 0")
    game = page.board["game"]["id"]
    page.send("leave")
    page.send("open", game=game)
    assert len(page.board["history"]["nodes"]) == 3


def test_a_replay_that_stops_half_way_is_saved_as_far_as_it_came(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Page(service)
    page.start()
    for move in ("split_scope t@0 2", "split_scope y@0 4", "split_scope y@1 2"):
        page.send("play", move=move)
    monkeypatch.setattr("dojo_core.game.MAX_MOVES", 4)
    page.send("goto", id=1)
    page.send("drop", mode="skip")  # replays two moves, and may play one
    assert len(page.board["history"]["nodes"]) == 5
    assert "at most" in page.feed["notice"]["text"]
    table = page.player.table
    assert table is not None
    saved = service._games._store.load_game(table.game.id)
    assert saved is not None and saved.text.startswith(table.game.to_text())


def test_a_position_whose_moves_fail_can_be_left(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_when_joined(program: Program, *where: str) -> tuple[Move, ...]:
        if len(program.body) == 1:
            raise IndexError("a fault of ours")
        return legal_moves(program, *where)

    monkeypatch.setattr("dojo_core.service.analysis.legal_moves", fails_when_joined)
    page = Page(service)
    page.start()
    page.send("play", move="join_scopes t@0")
    assert page.board["moves"] == []
    assert "Take back" in page.feed["notice"]["text"]
    page.send("take_back")
    assert page.board["moves"]


def test_nonsense_from_a_page_is_no_fault(service: Service) -> None:
    page = Page(service)
    page.start()
    nonsense: Any = ["play", {}, {"seq": "one"}, {"seq": 7}, {"seq": 8, "kind": "open", "game": "../x"}]
    service.handle(page.player, "tab", nonsense)
    assert page.feed["notice"]["text"] == "There is no saved game with this id here."
    assert page.board["view"] == "play"


def test_a_broken_line_file_is_told_with_its_place(tmp_path: Path, bench: Bench) -> None:
    lines = tmp_path / "lines"
    lines.mkdir()
    (lines / "mine.line").write_text("kernel pair\nshape 64\nlet block =\n")
    service = Service(RecordStore(Records(tmp_path / "r.sqlite")), Kernels(), lambda: bench, lines)
    page = Page(service)
    page.send("line", file="mine.line")
    assert "let block = 32" in page.feed["notice"]["text"]
    service.close()


# ------------------------------------------------------------------ the queue by itself


def tasks(count: int, salt: int = 0, rank: int = 4) -> list[tuple[int, Task]]:
    found = []
    for number in range(count):
        program = parse(TEXT.replace("64", str(64 + 1000 * salt + number)))
        found.append((rank, Task("w", None, program, program.hash)))
    return found


def settle(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def test_players_take_turns_and_the_first_batch_is_small() -> None:
    bench = Bench()
    bench.gate.clear()
    queue = MeasuringQueue(lambda: bench)
    one, two = tasks(30, 1), tasks(30, 2)
    queue.want("one", one)
    queue.want("two", two)
    bench.gate.set()
    settle(lambda: len(bench.measured) == 60)
    first = bench.measured.index(two[0][1].hash)
    assert first < 20, "the second player waited for all of the first one's work"
    assert bench.batches[0][0] == 2
    queue.close()


def test_ranks_decide_and_the_position_itself_is_measured_alone_and_with_care() -> None:
    bench = Bench()
    queue = MeasuringQueue(lambda: bench)
    queue.want("one", tasks(5, 1, rank=4) + tasks(1, 2, rank=0))
    settle(lambda: len(bench.measured) == 6)
    assert bench.measured[0] == tasks(1, 2)[0][1].hash
    assert bench.batches[0] == (1, True)
    queue.close()


def test_what_nobody_looks_at_is_dropped() -> None:
    bench = Bench()
    bench.gate.clear()
    now = [0.0]
    queue = MeasuringQueue(lambda: bench, lease=5, clock=lambda: now[0])
    queue.want("one", tasks(20))
    settle(lambda: bool(bench.batches))
    now[0] = 6.0
    bench.gate.set()
    time.sleep(0.2)
    assert len(bench.measured) == 0
    queue.renew("one")  # the page is back: the work goes on
    settle(lambda: len(bench.measured) == 20)
    queue.close()


def test_new_wants_cancel_the_old_ones() -> None:
    bench = Bench()
    bench.gate.clear()
    queue = MeasuringQueue(lambda: bench)
    queue.want("one", tasks(30, 1))
    settle(lambda: bool(bench.batches))
    fresh = tasks(3, 2)
    queue.want("one", fresh)
    bench.gate.set()
    settle(lambda: all(r is not None for r in queue.results("w", [t.hash for _, t in fresh])))
    assert len(bench.measured) <= 4
    queue.close()


def test_a_finished_result_is_not_measured_again() -> None:
    bench = Bench()
    queue = MeasuringQueue(lambda: bench)
    queue.know("w", {tasks(1)[0][1].hash: Outcome("ok", 0.5, 0.5, 5)})
    queue.want("one", tasks(3))
    settle(lambda: queue.open_tasks("one") == 0)
    assert len(bench.measured) == 2
    queue.close()


def test_the_board_and_the_finalists_are_timed_again_and_the_shorter_time_counts() -> None:
    bench = Bench()
    queue = MeasuringQueue(lambda: bench)
    board, candidates = tasks(1, 2, rank=0), tasks(20, 1)
    queue.want("one", board + candidates)
    settle(lambda: queue.open_tasks("one") == 0)
    own = board[0][1].hash
    assert own in bench.again[: -FINALISTS - 1], "timed again between the batches"
    refined = [h for h in bench.again if h != own]
    assert refined == [t.hash for _, t in candidates[:FINALISTS]]
    assert [o.seconds for o in queue.results("w", [own, refined[0]]) if o] == [0.0005, 0.0005]
    before = list(bench.again)
    queue.want("one", board + candidates)
    settle(lambda: queue.open_tasks("one") == 0)
    assert bench.again == before, "but only once"
    queue.close()


def test_results_asked_for_stay_and_old_ones_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dojo_core.service.queue.KEPT_RESULTS", 2)
    queue = MeasuringQueue(Bench)
    for name in ("a", "b"):
        queue.know("w", {name: Outcome("ok", 1.0)})
    queue.results("w", ["a"])
    queue.know("w", {"c": Outcome("ok", 1.0)})
    assert [o is not None for o in queue.results("w", ["a", "b", "c"])] == [True, False, True]
    queue.close()
