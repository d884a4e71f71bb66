"""What a position can be taken away as, and what is told of one that was pinned."""

from __future__ import annotations

import base64
import io
import zipfile
from pathlib import Path

from dojo_core.game import Game
from dojo_core.measure.records import Records
from dojo_core.moves import apply
from dojo_core.program.text import parse
from dojo_core.service import Service
from dojo_core.service.takeaway import parts
from dojo_core.service.wiring import RecordStore
from dojo_core.sharing import open_link
from dojo_core.study.study import read_study
from tests.stand_ins import TEXT, Kernels, NoisyBench, Page, move_of

JOIN = "join_scopes t@0"


def test_each_part_is_of_the_position_on_the_board(service: Service) -> None:
    page = Page(service)
    page.send("text", text=TEXT, policy="reassoc")
    page.send("play", move=JOIN)
    page.send("play", move="reuse_dims t 0")
    page.send("step", to="back")
    page.send("take_away")
    taken = page.feed["taken"]
    hash_here = page.board["position"]["hash"]

    assert open_link(taken["link"]["text"]).game.current.program.hash == hash_here
    assert taken["link"]["whole"] and taken["moves"] == 1
    assert f"1: {JOIN}" in taken["code"]["text"] and "reuse_dims" not in taken["code"]["text"]
    assert taken["code"]["name"] == "pair.c"
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(taken["library"]["zip"]))) as archive:
        example = archive.read("dojo_kernels/README.md").decode()
    assert taken["library"]["use"] in example and "y = torch_ops.pair(x)" in example
    assert "reuse_dims" in taken["game"]["text"]
    (game,) = read_study(taken["study"]["text"], Path(taken["study"]["name"])).games
    assert [str(p.move) for p in game.main_line(0)[1:]] == [JOIN, "reuse_dims t 0"]

    page.send("received")
    assert page.feed["taken"] is None


def test_a_line_of_a_text_of_ones_own_can_be_pasted(service: Service) -> None:
    page = Page(service)
    page.send("text", text=TEXT, policy="strict")
    page.send("play", move=JOIN)
    here = page.board["position"]["hash"]
    page.send("take_away")
    line = page.feed["taken"]["line"]["text"]
    page.send("leave")
    page.send("text", text=line, policy="reassoc")
    assert page.board["game"]["policy"] == "strict"  # as the line says
    page.send("step", to="last")
    assert page.board["position"]["hash"] == here
    page.send("leave")
    page.send("text", text=line.replace("t@0", "t@7"), policy="reassoc")
    assert "does not" in page.board["start"]["errors"]["text"]


def test_what_is_no_c_is_taken_as_it_is_shown() -> None:
    program = parse("kernel k\nin x\nout y\nx f64 [8] heap\ny f64 [8] heap\n8 y[{0}] = x[{0}]*2\n")
    taken = parts(Game.new(program, target="snitch"))
    assert taken["code"]["name"] == "k.snitch" and "fmul.d" in taken["code"]["text"]
    assert "export another" in taken["library"]["error"]


def test_the_pinned_position_keeps_its_texts(service: Service) -> None:
    page = Page(service)
    page.start()
    page.send("pin")
    assert page.board["pinned"]["name"] == "Start"
    page.send("play", move=move_of(page, "join_scopes"))
    board = page.board
    assert board["pinned"]["program"] == parse(TEXT).text.splitlines()
    assert board["pinned"]["hash"] != board["position"]["hash"]
    assert board["pinned"]["code"] != board["code"]
    page.until(lambda: page.feed["pinned"]["seconds"] is not None)
    page.send("leave")  # in another game, of another start, there is nothing to hold its time against
    page.start(shape="32")
    assert page.board["pinned"]["name"] == "Start" and page.feed["pinned"] is None
    page.send("unpin")
    assert page.board["pinned"] is None


def test_the_board_is_timed_in_turns_with_what_is_pinned(tmp_path: Path) -> None:
    start = parse(TEXT)
    faster = apply(apply(start, JOIN), "reuse_dims t 0")
    bench = NoisyBench({start.hash: 3e-3, faster.hash: 1e-3}, load=0.1)
    service = Service(RecordStore(Records(tmp_path / "records.sqlite")), Kernels(), lambda: bench)
    page = Page(service)
    page.start()
    page.send("pin")
    page.send("play", move=JOIN)
    page.send("play", move="reuse_dims t 0")  # no single move leads back from here
    page.until(lambda: (page.feed["pinned"]["speed"] or [0])[-1] > 1)
    verdict, value, low, high, _ = page.feed["pinned"]["speed"]
    assert verdict == "faster" and low <= value <= high and 2 < value < 4
    service.close()
