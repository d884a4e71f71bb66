"""A damaged database is told of, kept, and rescued; back-ups are made, and can be gone back to."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from dojo_core.cli import app
from dojo_core.measure import backups
from dojo_core.measure.database import Database, DatabaseFault
from dojo_core.measure.records import _SCHEMA, SCHEMA_VERSION, Records, SavedGame
from dojo_core.school.progress import Progress
from tests.test_records import RECORD
from tests.thorough import one_of

PAGE = 4096
GAMES, MEASUREMENTS = 40, 400


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of 40 games and 400 measurements, some of them longer than a page."""
    path = tmp_path_factory.mktemp("sound") / "records.sqlite"
    with Records(path) as records:
        for n in range(GAMES):
            records.save_game(SavedGame(f"game-{n}", "ann", "softmax", f"number {n}", f"text {n} " * 50 * n))
        records.add_all(
            replace(RECORD, program_hash=f"p{n}", program_text=f"program {n} " * 60, time=1.7e9 + n)
            for n in range(MEASUREMENTS)
        )
    assert not Path(f"{path}-wal").exists()
    return path


@pytest.fixture
def path(tmp_path: Path, sound: Path) -> Path:
    copy = tmp_path / "records.sqlite"
    copy.write_bytes(sound.read_bytes())
    return copy


@pytest.fixture(autouse=True)
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured, whatever else this machine does: else no back-up is made."""
    monkeypatch.setattr(backups, "compiling", lambda cancelled: nullcontext(True))


def overwrite(path: Path, page: int, data: bytes | None = None) -> None:
    with path.open("r+b") as file:
        file.seek(page * PAGE)
        file.write(random.Random(page).randbytes(PAGE) if data is None else data)


def contents(path: Path) -> tuple[dict[str, str], set[str]]:
    with Records(path) as records:
        games = {game.id: game.text for game in records.games(limit=1000)}
        return games, {record.program_hash for _, record in records.measurements()}


def aside(path: Path, why: str = "damaged") -> list[Path]:
    return sorted(path.parent.glob(f"records.{why}-*.sqlite"))


def test_a_sound_database_is_left_alone(path: Path) -> None:
    games, measurements = contents(path)
    assert (len(games), len(measurements)) == (GAMES, MEASUREMENTS)
    assert aside(path) == []


@pytest.mark.parametrize(
    "page", one_of(3, (pytest.param(p, marks=pytest.mark.soak if p % 2 else ()) for p in range(0, 240, 7)))
)
def test_a_page_is_overwritten(path: Path, sound: Path, page: int) -> None:
    """Whatever page it is: nearly all is rescued, and what is rescued is what was there."""
    overwrite(path, page)
    before = path.read_bytes()
    with Records(path) as records:
        # reads of everything, in the middle of which the damage is met
        games = {game.id: game.text for game in records.games(limit=1000)}
        measured = [record for _, record in records.measurements()]
        records.known("p7", "cpu", "here")
        records._rows("SELECT COUNT(*) FROM measurements WHERE code_hash = 'c1' AND fingerprint = 'here'")
        if aside(path):
            assert "damaged" in records.notice and "Rescued into a new one" in records.notice
            assert aside(path)[0].read_bytes() == before
        assert records._rows("PRAGMA integrity_check")[0][0] == "ok" or not aside(path)
    known = contents(sound)
    assert len(games) >= GAMES - 12 and len(measured) >= MEASUREMENTS - 12
    assert all(known[0][identifier] == text for identifier, text in games.items())
    assert {record.program_hash for record in measured} <= known[1]


@pytest.mark.parametrize("share", [0.01, 0.3, 0.7, 0.99])
def test_a_file_is_cut(path: Path, share: float) -> None:
    os.truncate(path, int(path.stat().st_size * share))
    games, measurements = contents(path)
    assert len(games) + len(measurements) >= (GAMES + MEASUREMENTS) * (share - 0.3)
    assert len(aside(path)) == 1


@pytest.mark.parametrize(
    "data", [b"nothing of the kind", b"\x00" * 10_000, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with Records(path) as records:
        assert records.games() == [] and records.measurements() == []
        assert any(w in records.notice for w in ("is not a database", "malformed", "its end is missing"))
        records.add(RECORD)
    assert [file.read_bytes() for file in aside(path)] == [data]


def test_a_version_without_tables_and_one_without_a_column(tmp_path: Path) -> None:
    for number, schema in enumerate((";", _SCHEMA.replace("    title TEXT NOT NULL,\n", ""))):
        path = tmp_path / str(number) / "records.sqlite"
        path.parent.mkdir()
        with sqlite3.connect(path) as connection:
            connection.executescript(schema)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.close()
        with Records(path) as records:
            assert "no such" in records.notice
            assert records.games() == []
        assert len(aside(path)) == 1


def test_an_old_database_is_rescued_into_the_new_form(tmp_path: Path, sound: Path) -> None:
    path = tmp_path / "records.sqlite"
    with Records(sound) as records:
        columns = [row["name"] for row in records._rows("PRAGMA table_info(measurements)")]
    old = sqlite3.connect(path)
    old.executescript(_SCHEMA)
    first = [row[1] for row in old.execute("PRAGMA table_info(measurements)")]
    assert set(first) < set(columns)
    old.execute("ATTACH ? AS sound", (str(sound),))
    old.execute(f"INSERT INTO measurements SELECT {', '.join(first)} FROM sound.measurements")
    old.execute("PRAGMA user_version = 1")
    old.commit()
    old.close()
    overwrite(path, 1)  # where the table's pages are listed
    assert len(contents(path)[1]) >= MEASUREMENTS - 12
    assert len(aside(path)) == 1


def test_what_is_only_in_the_log_is_rescued_too(path: Path) -> None:
    writer = os.fork()
    if writer == 0:
        try:
            records = Records(path)
            for n in range(1000, 1100):
                records.add(replace(RECORD, program_hash=f"p{n}", time=1.7e9 + n))
        finally:
            os._exit(0)
    os.waitpid(writer, 0)
    assert Path(f"{path}-wal").stat().st_size
    overwrite(path, 40)
    with Records(path) as records:
        records.measurements()
    assert {f"p{n}" for n in range(1000, 1100)} <= contents(path)[1]


def test_a_change_in_the_middle_of_which_damage_is_met_is_made_again(path: Path) -> None:
    with Records(path) as records:
        for page in range(2, path.stat().st_size // PAGE):
            overwrite(path, page)
        records.save_game(SavedGame("new", "ann", "softmax", "new", "new text"))
        records.add(replace(RECORD, program_hash="new", time=1.8e9))
        assert records.notice
        game = records.game("new")
        assert game is not None and game.text == "new text"
    assert "new" in contents(path)[1]


def test_another_connection_goes_on_with_the_sound_file(path: Path) -> None:
    with Records(path) as one, Records(path) as two:
        for page in range(30, path.stat().st_size // PAGE, 3):
            overwrite(path, page)
        assert len(one.measurements()) >= MEASUREMENTS / 2
        one.save_game(SavedGame("by-one", "ann", "softmax", "t", "x"))
        two.save_game(SavedGame("by-two", "ann", "softmax", "t", "y"))
        assert one.game("by-two") is not None and two.game("by-one") is not None
        assert len(aside(path)) == 1


# ---------------------------------------------------------------------------- what a person has to mend


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "records.sqlite").mkdir()
    with pytest.raises(DatabaseFault, match="is a folder"):
        Records(tmp_path / "records.sqlite")


def test_a_locked_database_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dojo_core.measure.database.BUSY_SECONDS", 0.05)
    with Records(path) as records:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseFault, match="locked by another process"):
            records.add(RECORD)
        other.execute("ROLLBACK")
        other.close()
        records.add(RECORD)


def test_a_full_disk_says_so_and_nothing_is_half_kept(path: Path) -> None:
    with Records(path) as records:
        pages = records._rows("PRAGMA page_count")[0][0]
        records._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(DatabaseFault, match="no space left on the disk"):
            records.save_game(SavedGame("big", "ann", "softmax", "t", "x" * 10_000_000))
        records._connection.execute("PRAGMA max_page_count = 1000000")
        assert records.game("big") is None
        records.save_game(SavedGame("small", "ann", "softmax", "t", "x"))


@contextmanager
def without_rights() -> Iterator[None]:
    """As nobody, where this is root, who may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_may_not_be_written(path: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = Path(shutil.copy(path, folder))
        copy.chmod(0o444)
        folder.chmod(0o555)
        try:
            with without_rights(), pytest.raises(DatabaseFault, match="may not be written"):
                Records(copy)
        finally:
            folder.chmod(0o700)


def test_anothers_damaged_database_is_left_as_it_is(path: Path, tmp_path: Path) -> None:
    overwrite(path, 0)
    before = path.read_bytes()
    with pytest.raises(DatabaseFault, match="are damaged"):
        Records(path, mends=False)
    assert path.read_bytes() == before


# ---------------------------------------------------------------------------- back-ups


def test_a_backup_is_made_once_a_day_and_the_last_few_are_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Records(path) as records:
        records.keep_backup()
        [first] = backups.of(path)
        records.keep_backup()
        assert backups.of(path) == [first]
        for n in range(1, 8):
            for backup in backups.of(path):
                os.utime(backup.path, (backup.time - 90_000, backup.time - 90_000))
            monkeypatch.setattr(backups.time, "strftime", lambda *_, n=n: f"day-{n}")
            records.keep_backup()
    assert len(backups.of(path)) == backups.KEPT
    assert backups.of(path)[-1].path.name == "records-day-7.sqlite"
    assert not list((path.parent / "backups").glob("*.part*"))


def test_no_backup_is_made_beside_a_measurement(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "compiling", lambda cancelled: nullcontext(False))
    with Records(path) as records:
        records.keep_backup()
    assert backups.of(path) == []


def test_nothing_is_backed_up_where_there_is_nothing_to_lose(tmp_path: Path) -> None:
    with Records(tmp_path / "records.sqlite") as records:
        records.keep_backup()
    assert backups.of(tmp_path / "records.sqlite") == []


def test_making_a_backup_finds_the_damage(path: Path) -> None:
    with Records(path) as records:
        overwrite(path, 30)
        records.keep_backup()
        assert "damaged" in records.notice
    assert backups.of(path) == [] and len(aside(path)) == 1


@pytest.mark.parametrize("kill", ["empty", "rubbish", "schema"])
def test_what_cannot_be_read_comes_from_the_backup(path: Path, kill: str) -> None:
    with Records(path) as records:
        records.keep_backup()
        records.save_game(SavedGame("later", "ann", "softmax", "t", "x"))
    if kill == "schema":
        overwrite(path, 0)
    else:
        path.write_bytes(b"" if kill == "empty" else b"rubbish" * 1000)
    with Records(path) as records:
        assert ("From the back-up of" in records.notice) == (kill != "schema")
    games, measurements = contents(path)
    assert len(measurements) == MEASUREMENTS
    assert len(games) == GAMES + (kill == "schema")


def test_a_backup_is_gone_back_to(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOJO_HOME", str(path.parent))
    with Records(path) as records:
        records.keep_backup()
        records.delete_game("game-3")
        records.save_game(SavedGame("later", "ann", "softmax", "t", "x"))
        listed = CliRunner().invoke(app, ["records-restore"]).stdout
        assert str(GAMES) in listed and str(MEASUREMENTS) in listed
        told = CliRunner().invoke(app, ["records-restore", "1"])
        assert told.exit_code == 0 and "kept as records.before-restore-" in told.stdout
        # who has it open goes on with the back-up
        assert records.game("game-3") is not None and records.game("later") is None
        records.save_game(SavedGame("anew", "ann", "softmax", "t", "x"))
    assert "anew" in contents(path)[0]
    assert "later" in contents(aside(path, "before-restore")[0])[0]
    for asked in ("0", "2", "x", "9" * 50):
        told = CliRunner().invoke(app, ["records-restore", asked])
        assert told.exit_code == 1 and "give a number from 1 to 1" in " ".join(told.stderr.split())


def test_a_damaged_backup_is_not_gone_back_to(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOJO_HOME", str(path.parent))
    with Records(path) as records:
        records.keep_backup()
    overwrite(backups.of(path)[0].path, 20)
    told = CliRunner().invoke(app, ["records-restore", "1"])
    assert told.exit_code == 1 and "is damaged" in " ".join(told.stderr.split())
    assert len(contents(path)[0]) == GAMES


def test_the_command_line_tells_of_the_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOJO_HOME", str(path.parent))
    overwrite(path, 0)
    told = CliRunner().invoke(app, ["records-export", str(path.parent / "all.jsonl")])
    assert told.exit_code == 0, told.output
    assert "were damaged" in told.stderr and "dojo records-restore" in told.stderr
    assert len((path.parent / "all.jsonl").read_text().splitlines()) >= MEASUREMENTS - 12


def test_the_schools_database_is_mended_too(tmp_path: Path) -> None:
    progress = Progress(tmp_path / "school.sqlite")
    for n in range(500):
        progress.finish("ann", f"lesson-{n}", "step")
    progress.keep_place("ann", "lesson-1", "step")
    progress.close()
    overwrite(tmp_path / "school.sqlite", 0)
    progress = Progress(tmp_path / "school.sqlite")
    assert "progress" in progress.notice and len(progress.done("ann")) == 500
    assert progress.place("ann") == ("lesson-1", "step")
    progress.close()
    assert issubclass(Progress, Database)


def _html(node: Any) -> Iterator[str]:
    if getattr(node, "type", "") == "html":
        yield node.proto.body
    for child in getattr(node, "children", {}).values():
        yield from _html(child)


@pytest.mark.parametrize("place", one_of(2, ["rubbish", "a folder"]))
def test_the_app_tells_of_it_in_a_sentence(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    if place == "rubbish":
        (tmp_path / "records.sqlite").write_bytes(b"rubbish" * 1000)
    else:
        (tmp_path / "records.sqlite").mkdir()

    def script() -> None:
        from pages import shell

        shell.run()

    st.cache_resource.clear()
    try:
        page = AppTest.from_function(script, default_timeout=500).run()
    finally:
        st.cache_resource.clear()
    assert not page.exception
    told = " ".join(_html(page._tree))
    assert ("were damaged" if place == "rubbish" else "is a folder") in told
    assert ("dojo records-restore" in told) == (place == "rubbish")
