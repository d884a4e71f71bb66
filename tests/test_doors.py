"""A position that was reached by play comes through every door: saved, shared, exported, read as a text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents.cli import app
from dojo_core import kernels, parse
from dojo_core.bench.job import resolve
from dojo_core.cli.exporting import _from_file
from dojo_core.cli.positions import played, start_of
from dojo_core.faults import program_fault
from dojo_core.game import Game
from dojo_core.measure.catalogue import Catalogue, Wanted
from dojo_core.measure.pool import Undefined, make_pool
from dojo_core.moves.legality import all_candidates, context, is_legal
from dojo_core.program import definedness, unset
from dojo_core.program.validity import definition_fault
from dojo_core.service import Service
from dojo_core.service.comparing import Comparisons
from dojo_core.service.library import Library
from dojo_core.service.wiring import KernelLibrary, RecordStore
from dojo_core.sharing import link, open_link, open_text
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.registry import target as target_named
from dojo_core.targets.snitch.simulate import judge
from tests.programs import random_plain
from tests.stand_ins import Bench
from tests.test_library import record

COPY = "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]\n"
# What cuts and splits leave to be covered together by several writes comes of these most.
CUTTING = (
    "split_scope",
    "cut_scope",
    "pad_scope",
    "uncut_scope",
    "fission_scope",
    "split_dim",
    "merge_scopes",
)


def walk(game: Game, rng: random.Random, moves: int) -> Game:
    """Play random legal moves, those that cut scopes more often than others."""
    for _ in range(moves):
        here = context(game.current.program, game.target, game.policy)
        candidates = list(all_candidates(here, rng.choice((None, CUTTING))))
        rng.shuffle(candidates)
        move = next((m for m in candidates[:200] if is_legal(here, m)), None)
        if move is not None:
            game.play(str(move))
    return game


@cache
def games() -> tuple[Game, ...]:
    return tuple(_games())


def _games() -> Iterator[Game]:
    own = Game.new(parse(COPY))
    for move in ("split_scope y@0 2", "cut_scope y@1 1"):
        own.play(move)
    yield own
    for name, shape in (
        ("softmax", "4x8"),
        ("matmul", "2x4x3"),
        ("layernorm", "2x4"),
        ("conv", "1x2x2x4x4x3"),
    ):
        found = kernels.get(name)
        policy = "algebraic" if name == "softmax" else "reassoc"
        game = Game.new(found.program(found.shape(shape)), name, shape, policy=policy)
        yield walk(game, random.Random(name), 10)
    for seed in range(6):
        rng = random.Random(f"doors {seed}")
        program = None
        while program is None or definition_fault(program) is not None:
            program = random_plain(rng)
        yield walk(Game.new(parse(program.text)), rng, 10)


def test_every_position_is_sound_as_a_text():
    """By itself, with no word of the moves behind it."""
    texts = [position.program.text for game in games() for position in game.positions.values()]
    assert len(texts) > 60
    for text in texts:
        assert parse(text).text == text
        assert program_fault(parse(text)) is None, text


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    catalogue = Catalogue(tmp_path / "r.sqlite")
    service = Service(RecordStore(catalogue), KernelLibrary(), Bench)
    yield Library(catalogue, service, Comparisons(tmp_path / "comparisons"))
    service.close()
    catalogue.close()


def test_it_comes_through_every_door(library: Library, tmp_path: Path):
    for number, game in enumerate(games()):
        at = game.current.program
        assert Game.from_text(game.to_text()).current.program == at, "saved and loaded"
        assert open_text(game.to_text()).game.current.program == at, "a file of a game"
        shared = link(game)
        if shared is not None:
            opened = open_link(shared)
            assert not opened.gone and opened.game.current.program == at, "a link"
        assert open_text(at.text).game.start == at, "a file of a program"
        taken_in = library._service._games.from_text(at.text, game.policy)
        assert taken_in.start == at, "a text of one's own in the app"
        assert library._service._games.from_text(game.to_text(), "reassoc").current.program == at
        text, saved = tmp_path / f"{number}.txt", tmp_path / f"{number}.dojo"
        text.write_text(at.text)
        saved.write_text(game.to_text())
        assert start_of(str(text), None)[0] == at, "a text that a command plays on"
        assert _from_file(str(text), None, None, None).program == at, "exported"
        assert _from_file(str(saved), None, None, None).program == at
        if game.kernel is not None:
            assert played(game.kernel, line=saved).current.program == at
        for file in (text, saved):
            told = CliRunner().invoke(app, ["check", str(file)])
            assert told.exit_code == 0 and "valid" in told.output, told.output
        wanted = {"kind": "program", "name": "n", "text": at.text, "policy": game.policy}
        assert resolve(game, wanted).entry.program == at, "compared"
        assert resolve(game, {"kind": "game", "name": "n", "text": game.to_text()}).entry.program == at
        moves = "\n".join(str(position.move) for position in game.line()[1:])
        for line, kernel in ((moves, game.kernel), ("", "of another version")):
            told = replace(
                record(1e-6),
                program_hash=at.hash, program_text=at.text, start_hash=game.start.hash, policy=game.policy,
                kernel=kernel or game.start.name, shape=game.shape, line=line, time=float(number),
            )  # fmt: skip
            library.catalogue.add_all([told])
            newest = max(row.id for row in library.catalogue.rows(Wanted(), "time", 0, 1_000))
            assert library.replayed(newest).game.current.program == at, "a record, with its moves and without"


@pytest.mark.parametrize("target", ["snitch", "cuda"])
def test_a_link_of_a_game_on_another_target_begins_where_it_began(target: str):
    found = kernels.get("relu")
    start = target_named(target).start(found.program((4, 8)))
    game = walk(Game.new(start, "relu", "4x8", target), random.Random(target), 4)
    opened = open_link(link(game))
    assert opened.game.start == game.start and opened.game.current.program == game.current.program


# A recurrence of a million steps is not gone through: whether it is sound is open.
LONG = (
    "kernel long\nin x\nout y\nx f32 [] heap\ny f32 [] heap\nt f32 [1000000] heap\n"
    "t[2] = x[]\n999997 t[{0}+3] = t[{0}+2]\n2 t[{0}+1] = t[{0}]\ny[] = t[9]\n"
)
DOUBT = (
    "It could not be shown that each read of t[{0}] finds a write: there is too much of it to go through. "
    "It is checked before it is measured."
)


def test_what_is_open_is_let_in_and_said_at_every_door(library: Library, tmp_path: Path):
    file, saved = tmp_path / "long.txt", tmp_path / "long.dojo"
    file.write_text(LONG)
    saved.write_text(Game.new(parse(LONG)).to_text())
    for command in (["check", file], ["show", file], ["moves", file]):
        told = CliRunner().invoke(app, list(map(str, command)))
        assert told.exit_code == 0 and DOUBT in told.output, told.output
    service = library._service
    player = service.player("doors")
    for text, doubt in ((LONG, DOUBT), (saved.read_text(), DOUBT), (COPY, "")):
        service.seat(player, service.take_in(service._games.from_text(text, "reassoc")))
        assert service.board(player)["game"]["doubt"] == doubt


def test_export_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name, text in (("long.txt", LONG), ("long.dojo", Game.new(parse(LONG)).to_text())):
        (tmp_path / name).write_text(text)
        _from_file(str(tmp_path / name), None, None, None)
        assert DOUBT in capsys.readouterr().err


HOLE = (
    "kernel hole\nin x\nout y\nx f32 [64, 64] heap\ny f32 [64, 64] heap\nt f32 [64, 64] stack\n"
    "64 32 t[{0},{1}*2] = x[{0},{1}]\n64 32 t[{0},{1}*2+1] = x[{0},{1}] if {1} >= 1\n"
    "63 t[{0},1] = x[{0},1]\n64 64 y[{0},{1}] = t[{0},{1}]\n"
)


def test_measuring_decides_what_the_door_left_open(monkeypatch: pytest.MonkeyPatch):
    """Also where the values that happen to stand there would pass."""
    monkeypatch.setattr(definedness, "POINTS", 1)
    monkeypatch.setattr(unset, "POINTS", 1)
    for text, code in ((HOLE, "undecided"), (HOLE.replace("63 t", "64 t"), "undecided")):
        assert definition_fault(parse(text)).code == code
    drawn = generate(parse(HOLE)).parameters
    with pytest.raises(
        Undefined, match=r"The value of y\[63,1\] comes from t\[63,1\], which no earlier write"
    ):
        make_pool(parse(HOLE), drawn, 0)
    assert make_pool(parse(HOLE.replace("63 t", "64 t")), drawn, 0).references["y"].shape == (64, 64)
    unwritten = HOLE.replace("64 64 y", "63 64 y")
    with pytest.raises(Undefined, match=r"y\[63,0\] of the output y is never written"):
        make_pool(parse(unwritten.replace("63 t", "64 t")), drawn, 0)
    core = HOLE.replace("f32", "f64").replace("stack", "heap").replace("64", "8").replace("f8", "f64")
    core = core.replace("8 32 t", "8 4 t").replace("63 t", "7 t")
    verdict = judge(parse(core))
    assert verdict.status == "refused" and verdict.message.startswith("The value of y[7,1] comes from t[7,1]")
    assert judge(parse(core.replace("7 t", "8 t"))).status == "ok"
