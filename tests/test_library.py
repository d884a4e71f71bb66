"""The library without a browser: what is listed, what comes in from elsewhere, what goes out, and undo."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.players import is_agent
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.measure.catalogue import Catalogue, Wanted
from dojo_core.measure.exchange import to_line
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Origin
from dojo_core.measure.records import Record, Sample
from dojo_core.service import Service
from dojo_core.service.comparing import Comparisons
from dojo_core.service.library import Library
from dojo_core.service.refused import Refused
from dojo_core.service.wiring import KernelLibrary, RecordStore
from dojo_core.targets.cuda.measurer import Gpu
from tests.stand_ins import Bench
from tests.waiting import wait_until

HERE = this_machine().fingerprint


def game(*moves: str) -> Game:
    softmax = kernels.get("softmax")
    made = Game.new(softmax.program((96, 32)), "softmax", "96x32")
    for move in moves:
        made.play(move)
    return made


def record(best: float, *moves: str, **changes: object) -> Record:
    made = game(*moves)
    measured = Record(
        program_hash=made.current.program.hash,
        program_text=made.current.program.text,
        start_hash=made.start.hash,
        kernel="softmax",
        shape="96x32",
        dtype="f32",
        policy="reassoc",
        line="\n".join(moves),
        target="cpu",
        fingerprint=HERE,
        machine=this_machine().details,
        code_hash=f"c{best}",
        status="ok",
        verified=True,
        seconds=best,
        samples=(Sample(best * 1e9),),
        player="ann",
        time=1.7e9,
    )
    return replace(measured, **changes)  # type: ignore[arg-type]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    catalogue = Catalogue(tmp_path / "r.sqlite")
    service = Service(RecordStore(catalogue), KernelLibrary(), Bench)
    yield Library(catalogue, service, Comparisons(tmp_path / "comparisons"), is_agent)
    service.close()
    catalogue.close()


def test_a_leaderboard_ranks_verified_times_and_lists_claims_below(library: Library) -> None:
    library.catalogue.add_all(
        [
            record(8e-6),
            record(4e-6, "join_scopes m@0"),
            record(5e-6, "join_scopes m@0", time=200.0),
            record(2e-6, "join_scopes m@0", "parallelize m@0", verified=False),
            record(1e-6, "parallelize m@0", fingerprint="elsewhere", machine="{}"),
            record(1e-6, "parallelize m@0", status="crash", verified=False, seconds=None, samples=()),
        ]
    )
    boards = library.catalogue.boards()
    ours = library.leaderboard(next(b for b in boards if b.fingerprint == HERE), against=8e-6)
    assert ours.of_this_machine and ours.shape == "96x32"
    lines = [(e.rank, e.row.seconds, e.row.moves, e.row.runs, e.speedup, e.against) for e in ours.lines]
    assert lines == [
        (1, 4e-6, 1, 2, 2.0, 2.0),
        (2, 8e-6, 0, 1, 1.0, 1.0),
        (None, 2e-6, 2, 1, 4.0, 4.0),
    ]
    theirs = library.leaderboard(next(b for b in boards if b.fingerprint != HERE))
    assert [e.rank for e in theirs.lines] == [None] and not theirs.of_this_machine


def test_a_leaderboard_shows_a_game_once(library: Library) -> None:
    first, second = "join_scopes m@0", "parallelize m@0"
    library.catalogue.add_all(
        [
            record(8e-6),
            record(6e-6, first),
            record(4e-6, first, second),
            record(5e-6, first, second, "split_scope d@1 2"),
            record(5.5e-6, first, "split_scope m@0 2"),  # tried beside the game, as all legal moves are
            record(6.5e-6, "split_scope m@0 4"),
            record(7e-6, "split_scope m@0 2", second),  # another game
            record(3e-6, "split_scope m@0 8", second, player="annealing-lines"),
            record(3.5e-6, "split_scope m@0 16", second, player="annealing-lines"),  # an edit of that
            record(3.6e-6, "split_scope m@0 32", second, player="llm:small"),
        ]
    )
    (board,) = library.catalogue.boards()
    ranked = [(e.rank, e.row.seconds, e.row.moves) for e in library.leaderboard(board).lines]
    assert ranked == [(1, 3e-6, 2), (2, 3.6e-6, 2), (3, 4e-6, 2), (4, 7e-6, 2), (5, 8e-6, 0)]


def test_the_gpu_of_this_machine_has_leaderboards_here(library: Library, monkeypatch: Any) -> None:
    gpu = Gpu("NVIDIA H100", "sm_90", 50 << 20, 80 << 30, 10**9, 132, "13.0")
    origins = [Origin("cpu", HERE, ""), Origin("cuda", gpu.fingerprint, gpu.details)]
    monkeypatch.setattr("dojo_core.service.library.origins", lambda: origins)
    library = Library(library.catalogue, library._service, library.comparisons)
    wait_until(lambda: gpu.fingerprint in library.catalogue.own_fingerprints)
    on_gpu = record(8e-6, target="cuda", fingerprint=gpu.fingerprint, machine=gpu.details)
    library.catalogue.add_all([on_gpu])
    (board,) = library.catalogue.boards()
    assert library.leaderboard(board).of_this_machine
    words = library.machine_words(board.fingerprint, board.machine)
    assert words == "NVIDIA H100, sm_90, 80 GB, CUDA 13.0 (this machine)"


def test_filters_pages_and_thousands_of_rows(library: Library) -> None:
    one = record(1e-6)
    rows = [
        replace(one, seconds=1e-6 * n, program_hash=f"p{n}", player="bob" if n % 2 else "", time=float(n))
        for n in range(1, 3001)
    ]
    library.catalogue.add_all(rows)
    assert library.catalogue.count(Wanted()) == 3000
    bobs = library.catalogue.rows(Wanted(player="bob"), "time", 10, 5)
    assert [round(row.seconds * 1e6) for row in bobs if row.seconds] == [21, 23, 25, 27, 29]
    assert library.catalogue.count(Wanted(player="")) == 1500
    assert library.catalogue.facets(Wanted(kernel="softmax"))["player"] == ["", "bob"]
    assert library.catalogue.count(Wanted(state="claim")) == 0


def test_a_record_comes_to_the_board_move_by_move(library: Library) -> None:
    good, stale = record(4e-6, "join_scopes m@0"), record(3e-6, "join_scopes m@0", "parallelize m@0")
    library.catalogue.add_all([good, replace(stale, line="join_scopes m@0\njoin_scopes y@9\nunroll y@0")])
    first, second = library.catalogue.rows(Wanted(), "time")
    opened = library.replayed(second.id)
    assert opened.game.current.program.text == good.program_text
    assert (opened.game.kernel, opened.game.shape, opened.gone) == ("softmax", "96x32", ())
    assert "1 of 3 moves still apply. join_scopes y@9 does not" in library.replayed(first.id).words


def test_what_is_imported_is_a_claim_until_it_is_measured_here(library: Library) -> None:
    mine = record(4e-6, "join_scopes m@0")
    imported = library.take_in("theirs.jsonl", (to_line(mine) + "\n").encode(), "me")
    assert imported.words.startswith("1 new record, 0 known already. Their times are claims")
    assert [row.state for row in library.catalogue.rows(Wanted())] == ["claim"]
    # a forged time of this machine is neither a record nor known to the measurer
    assert library.catalogue.best(mine.start_hash, "cpu", HERE) is None
    assert library.catalogue.known(mine.program_hash, "cpu", HERE) is None
    assert library.catalogue.known_code(mine.code_hash, mine.start_hash, HERE) is None
    assert library.take_in("again.jsonl", to_line(mine).encode(), "me").words.startswith(
        "0 new records, 1 known"
    )


def test_a_game_comes_in_with_its_claim_and_goes_out_again(library: Library) -> None:
    text = game("join_scopes m@0").to_text() + "# best speed-up 9.5000\n"
    imported = library.take_in("theirs.dojo", text.encode(), "me")
    assert imported.words == "softmax 96x32: Replayed 1 move through the legality checks."
    (card,) = library.games()
    assert (card.id, card.best, card.claim, card.moves) == (imported.game, None, 9.5, 1)
    assert library.games("matmul") == []
    assert library.take_in("once more.dojo", text.encode(), "me").game == imported.game
    fork = library._service.fork(imported.game, "me")
    assert fork != imported.game and len(library.games()) == 2
    name, out = library.saved_file(fork)
    assert name == "softmax-96x32-fork.dojo" and Game.from_text(out).title == "softmax 96x32 (fork)"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xff\xfe\x00", "is no text"),
        (b"\x1f\x8b\x08\x00", "f.dojo: Line 1 is no record of the Dojo: the packed file is damaged"),
        (50 * gzip.compress(b"\n" * 1_000_000, 1), "lines before it are empty"),
        (b"{" * 100_000, "nested deeper than 64"),
        (b"[" * 100_000, "f.dojo: Line 1 is no record of the Dojo: .*nested deeper than 64"),
        (b'{"dojo record": ' + b"9" * 400 + b"}", "a number of 400 characters"),
        (b'{"kernel": "\\ud800"}', "half of a surrogate pair"),
        (b"{" + b" " * (17 << 20), "larger than 16 MB"),
        (b"x" * 600_000, "larger than 512 KB"),
        (b"{}", "Line 1 is no record of the Dojo: it does not begin.*Nothing of the file"),
        (b"dojo game 1\ntitle: t\n", "names no kernel|no moves|start"),
        (b"<script>alert(1)</script>", "f.dojo: line 1"),
    ],
)
def test_a_file_that_is_none_is_told_in_a_sentence(library: Library, data: bytes, why: str) -> None:
    with pytest.raises(Refused, match=why):
        raise Refused(library.take_in("f.dojo", data, "me").words)


def test_deleting_is_undone(library: Library) -> None:
    library.catalogue.add_all([record(4e-6), record(5e-6, time=7.0), record(3e-6, "join_scopes m@0")])
    before = library.catalogue.measurements()
    row = next(r for r in library.catalogue.rows(Wanted()) if r.moves == 0)
    deleted = library.delete_records([row.id])
    assert deleted.words == "Deleted 1 record (2 measurements)."
    assert library.catalogue.count(Wanted()) == 1
    library.undo(deleted)
    assert library.catalogue.measurements() == before

    identifier = library.take_in("g.dojo", game("join_scopes m@0").to_text().encode(), "me").game
    gone = library.delete_games([identifier], "me")
    assert gone.words == "Deleted softmax 96x32." and library.games() == []
    library.undo(gone)
    assert [card.id for card in library.games()] == [identifier]


def test_what_goes_out_is_c_a_library_and_lines(library: Library) -> None:
    library.catalogue.add(record(4e-6, "join_scopes m@0"))
    (row,) = library.catalogue.rows(Wanted())
    opened = library.replayed(row.id)
    name, text = library.c_file(opened)
    assert name == "softmax-96x32.c" and "void kernel_softmax(" in text
    assert "1: join_scopes m@0" in text and "-fopenmp -c" in text and len(text.splitlines()) < 200
    name, data = library.archive([opened])
    assert "dojo_kernels/library.c" in zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert json.loads(library.record_lines([row]))["line"] == "join_scopes m@0"
    with pytest.raises(Refused, match="stands twice"):
        library.archive([opened, opened])
