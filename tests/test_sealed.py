"""Files of the cache that are empty, cut or damaged are found by their checksum and made again."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.measure import sealed
from dojo_core.measure.alone import measured_alone
from dojo_core.measure.limits import USUAL_SEED
from dojo_core.measure.measurement import Workload
from dojo_core.measure.pool_cache import cached_pool
from dojo_core.measure.records import Records
from dojo_core.program.text import parse
from dojo_core.targets.cpu.build import build
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.gpu.check import Checker
from dojo_core.targets.gpu.emulator import build_emulated
from dojo_core.targets.registry import backend


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flipped(file: Path) -> None:
    contents = bytearray(file.read_bytes())
    contents[len(contents) // 2] ^= 1
    file.write_bytes(contents)


def grown(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


def a_folder(file: Path) -> None:
    file.unlink()
    (file / "inside").mkdir(parents=True)


def a_dead_link(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.with_suffix(".gone"))


every_damage = pytest.mark.parametrize("damage", [empty, cut, flipped, grown, a_folder, a_dead_link])
# For what starts a compiler or a worker each time, and reads the files as all do.
several = [pytest.param(damage, marks=pytest.mark.soak) for damage in (empty, cut)]
Damage = Callable[[Path], None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOJO_LOCK_DIR", str(tmp_path / "lock"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def files(cache: Path) -> list[Path]:
    """In place, as a fault of the disk leaves them: names that share one file are damaged together."""
    by_file = {f.stat().st_ino: f for f in sorted(cache.rglob("*")) if f.is_file()}
    return list(by_file.values())


@every_damage
def test_no_damaged_file_is_read_and_what_is_made_again_stands_in_its_place(
    home: Path, damage: Damage
) -> None:
    contents, file = b"contents" * 100, home / "a.so"
    for _ in range(2):
        sealed.keep(file, contents)
        assert bytes(sealed.read(file) or b"") == contents
        damage(file)
        assert not sealed.is_intact(file)


WORKLOAD = Workload(kernels.get("softmax").program((16, 40)), "softmax", "reassoc")


@pytest.mark.usefixtures("kept_workers")
@pytest.mark.parametrize("damage", [flipped, a_folder, *several])
def test_a_kernel_is_measured_right_whatever_became_of_the_cache(home: Path, damage: Damage) -> None:
    with Records(home / "r.sqlite") as records, Measurer(records) as measurer:
        first = measurer.measure(WORKLOAD, [WORKLOAD.start])[0]
        assert first.status == "ok"
        damaged = files(home / "cache")
        assert {f.suffix for f in damaged} == {".so", ".npy", ".json"}
        for file in damaged:
            damage(file)
        again = measurer.measure(WORKLOAD, [WORKLOAD.start], fresh=True)[0]
        assert (again.status, again.verified) == ("ok", True)
        for file in files(home / "cache"):
            damage(file)
        with Measurer(records) as another:  # as in another process: nothing is held in memory
            again = another.measure(WORKLOAD, [WORKLOAD.start], fresh=True)[0]
        assert (again.status, again.verified) == ("ok", True)
        assert {r.status for _, r in records.measurements()} == {"ok"}
    assert not list(home.glob("wrong/*")), "no fault of the Dojo"


@pytest.mark.usefixtures("kept_workers")
def test_a_kernel_is_measured_where_the_cache_went_away_or_is_something_else(home: Path) -> None:
    with Measurer() as measurer:
        for spoil in (
            lambda: None,
            lambda: shutil.rmtree(home / "cache"),
            lambda: (shutil.rmtree(home / "cache/objects"), (home / "cache/objects").write_text("a file")),
            lambda: (shutil.rmtree(home / "cache/pools"), (home / "cache/pools").write_text("a file")),
        ):
            spoil()
            assert measurer.measure(WORKLOAD, [WORKLOAD.start], fresh=True)[0].status == "ok"
            measurer.close()  # the next one holds no inputs


@pytest.mark.usefixtures("kept_workers")
def test_an_object_that_is_damaged_after_it_was_built_is_built_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = []

    def late(take, cancelled):
        if not times:
            for file in (home / "cache" / "objects").glob("*.so"):
                cut(file)
        times.append(1)
        return measured_alone(take, cancelled)

    monkeypatch.setattr("dojo_core.targets.cpu.measurer.measured_alone", late)
    with Measurer() as measurer:
        assert measurer.measure(WORKLOAD, [WORKLOAD.start])[0].status == "ok"
    assert len(times) == 2


@pytest.mark.parametrize("damage", [empty, cut, flipped, a_folder])
def test_every_file_of_a_pool_is_checked(home: Path, damage: Damage) -> None:
    program, parameters = WORKLOAD.start, generate(WORKLOAD.start).parameters
    made = cached_pool(program.text, parameters, USUAL_SEED, home)
    (folder,) = (home / "pools").iterdir()
    names = sorted(file.name for file in folder.iterdir())
    assert "index.json" in names and "inputs-0.npy" in names and "references-0.npy" in names
    for name in names:
        damage(folder / name)
        again = cached_pool(program.text, parameters, USUAL_SEED, home)
        np.testing.assert_array_equal(again.inputs["x"], made.inputs["x"])
        np.testing.assert_array_equal(again.references["y"], made.references["y"])
        assert again.adversarial == made.adversarial
        assert all(map(sealed.is_intact, folder.iterdir())), "made again, and kept"


@pytest.mark.thorough  # any file of the cache: above; as it is loaded: below
@pytest.mark.parametrize("damage", [flipped, *several])
def test_the_emulator_s_objects_are_checked(home: Path, damage: Damage) -> None:
    game = Game.new(kernels.get("relu").program((8, 64)), "relu", "8x64", target="cuda")
    for move in ("map_grid y@0", "map_block y@1"):
        game.play(move)
    workload = Workload(game.start, "relu", game.policy, "cuda")
    for damaged in (False, True):
        for file in files(home / "cache") if damaged else ():
            damage(file)
        with Checker(backend("cuda")) as checker:  # as in another process: nothing is held in memory
            checked = checker.check(workload, game.current.program)
        assert checked.verdict.verified, checked.verdict.message


def test_what_the_emulator_runs_may_be_damaged_as_it_is_about_to_be_loaded(home: Path) -> None:
    game = Game.new(kernels.get("relu").program((8, 64)), "relu", "8x64", target="cuda")
    game.play("map_grid y@0")
    built = build_emulated(backend("cuda").generate(game.current.program, "reassoc"))
    cut(Path(built.library))
    with pytest.raises(sealed.Damaged), sealed.loadable(Path(built.library)):
        pass


def test_a_batch_is_one_file_under_many_names_and_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = [generate(parse(WORKLOAD.start.text.replace("40", str(n)))) for n in range(40, 46)]
    build(codes, jobs=1)
    reads = []
    intact = sealed.is_intact
    monkeypatch.setattr(sealed, "is_intact", lambda file: reads.append(file) or intact(file))
    build(codes, jobs=1)
    assert len(reads) == 1


def test_what_is_made_again_is_told_in_the_log(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    sealed.keep(home / "a.json", json.dumps([1]).encode())
    assert bytes(sealed.read(home / "a.json") or b"") == b"[1]"
    flipped(home / "a.json")
    with caplog.at_level(logging.WARNING):
        assert sealed.read(home / "a.json") is None
    assert caplog.messages == [f"{home / 'a.json'} is damaged: it is made again"]
    assert sealed.read(home / "b.json") is None
    assert len(caplog.messages) == 1, "what was never there is no damage"
