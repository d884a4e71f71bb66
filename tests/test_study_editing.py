"""Studies written in the app: edits of a text, the files of a folder, an author's session, times as a job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dojo_core.game import Game
from dojo_core.measure.exclusive import announcer
from dojo_core.measure.records import Records
from dojo_core.program.expressions import TextError
from dojo_core.service.service import Service
from dojo_core.service.view import Json
from dojo_core.service.wiring import KernelLibrary, RecordStore
from dojo_core.study import work
from dojo_core.study.authoring import Author, AuthoringSession
from dojo_core.study.editing import Draft, moves_to, position_at
from dojo_core.study.folder import Changed, NotKept, Studies, folder_of
from dojo_core.study.panel import panel
from dojo_core.study.study import read_study
from dojo_core.study.times import Times, clock_of, read_times, times_file, write_times
from tests.stand_ins import Bench
from tests.test_studies import STUDY, told_by

JOINED, SPLIT = ["join_scopes t@0"], ["split_scope t@0 8"]
FILE = Path("two.md")


def draft(text: str = STUDY) -> Draft:
    return Draft(text, FILE)


def told(made: Draft, chapter: int, moves: list[str]) -> str:
    """The paragraphs that a reader of the text meets at a position."""
    read = read_study(made.text, FILE).chapters[chapter]
    at = position_at(read.game, moves)
    assert at is not None
    return " | ".join("".join(span[1] for span in block["spans"]) for block in read.notes.get(at, []))


def lines(made: Draft) -> str:
    return "\n".join(made.text.splitlines())


def test_a_note_stands_at_its_position_and_replaces_the_one_before() -> None:
    made = draft()
    made.write_note(0, [], "First.\n")
    assert told(made, 0, []) == "First." and "neighbour" in made.text
    made.write_note(0, [], "")
    assert told(made, 0, []) == "" and lines(made).count("```") == lines(draft()).count("```")
    made.write_note(0, JOINED, "Here.\n\n- one\n- two")
    assert made.note(0, JOINED) == "Here.\n\n- one\n- two"


def test_a_note_at_a_move_within_a_block_cuts_it_and_its_name_stays_at_the_end() -> None:
    two = "split_scope t@0 8\nunroll t@1\n```\n\nAnother"
    made = draft(STUDY.replace("split_scope t@0 8\n```\n\nAnother", two))
    assert [len(each.steps) for each in made.study.chapters[0].passages if each.steps] == [1, 2]
    made.write_note(0, SPLIT, "Between.")
    cut = "```moves after start\nsplit_scope t@0 8\n```\n\nBetween.\n\n```moves\nunroll t@1\n```"
    assert cut in made.text


def test_words_at_a_move_that_the_study_has_not_put_it_in_as_a_variation() -> None:
    made = draft()
    made.write_note(0, [*JOINED, "split_scope t@0 4"], "Smaller.")
    assert "```moves after joined\nsplit_scope t@0 4\n```\n\nSmaller.\n" in made.text
    # The chapter behind it goes on where it went on before.
    before, after = (each.study.chapters[1] for each in (draft(), made))
    ends = [moves_to(chapter.game, chapter.begins) for chapter in (before, after)]
    assert ends[0] == ends[1] and after.names["joined"] == position_at(after.game, JOINED)


def test_of_a_recorded_line_its_own_positions_are_told_of_by_their_numbers() -> None:
    made = draft("# S\nkind: study\nabout: x.\n\n## A line\nline: softmax\nshape: 48x64\n\nTold.\n")
    chapter = made.study.chapters[0]
    third = moves_to(chapter.game, [p.id for p in chapter.game.line(chapter.ends)][3])
    made.write_note(0, third, "The third.")
    assert "```moves after 3\n```\n\nThe third.\n" in made.text and made.note(0, third) == "The third."
    with pytest.raises(TextError, match="told of elsewhere"):
        made.write_title(0, third, "No")


def test_a_heading_keeps_the_words_behind_it() -> None:
    made = draft()
    made.write_title(0, JOINED, "One loop: not two")
    assert "# One loop, not two: t is read where it was written.\njoin_scopes t@0" in made.text
    made.write_title(0, SPLIT, "Blocks")
    assert "```moves after start\n# Blocks\nsplit_scope t@0 8" in made.text
    made.write_title(0, SPLIT, "")
    assert "# Blocks" not in made.text


def test_a_question_is_asked_and_one_that_cannot_be_is_refused_and_changes_nothing() -> None:
    made = draft()
    answers = [("unroll t@0", True, "Why not."), ("join_scopes t@0", False, "")]
    made.write_question(0, SPLIT, "", "What now?", answers)
    assert "```question\nWhat now?\n+ unroll t@0 :: Why not.\n- join_scopes t@0\n```" in made.text
    before = made.text
    with pytest.raises(TextError, match="is to be right, and is refused"):
        refused = [("join_scopes t@0", True, "")] * 2
        made.write_question(0, [*JOINED, "split_scope t@0 4"], "move", "?", refused)
    assert made.text == before, "the moves that were put in for it are out again"
    made.write_question(0, SPLIT, "", "", [])
    assert made.text == draft().text


def test_a_chapter_goes_on_at_a_position_or_through_another_game() -> None:
    made = draft()
    made.add_chapter("Back at the start", [])
    goes_back = "## Back at the start\n\n```moves after move-0\n```\n\nWhat is there to see here?\n"
    assert made.text.endswith(goes_back)
    made.add_game("Another game", Game.new(draft().study.games[0].start))
    assert [chapter.title for chapter in made.study.chapters][2:] == ["Back at the start", "Another game"]
    assert made.study.chapters[3].game is not made.study.chapters[2].game


def test_facts_and_titles_are_lines_of_the_file() -> None:
    made = draft()
    made.write_facts("A title", {"about": "What.\nkind: lesson", "authors": "", "licence": "CC0"})
    made.write_chapter_title(0, "First")
    head = "# A title\nkind: study\nabout: What. kind: lesson\nlicence: CC0\n\n## First\n"
    assert made.text.startswith(head) and made.fact("authors") == ""
    with pytest.raises(TextError, match="no headings and no blocks"):
        made.write_note(0, [], "## A chapter of somebody's")


@pytest.fixture
def author(tmp_path: Path) -> Iterator[Author]:
    with Records(tmp_path / "records.sqlite") as records:
        service = Service(RecordStore(records), KernelLibrary(), Bench)
        yield Author(service)
        service.close()


def session_of(author: Author, folder: Path) -> AuthoringSession:
    played = Game.new(draft().study.games[0].start, title="Two")
    return AuthoringSession(author.service.player(None, owner="browser:a"), Studies(folder), lambda: played)


def say(author: Author, session: AuthoringSession, kind: str, **fields: object) -> Json:
    """As the panel sends an event; the study that it is told then."""
    number = session.acknowledged.get("panel", 0) + 1
    author.hear(session, "panel", [{"seq": number, "kind": kind, **fields}])
    told = panel(author, session)
    return {**told.get("study", {}), "error": told["fault"], "view": told["view"]}


def test_an_author_plays_writes_and_finds_it_again(author: Author, tmp_path: Path) -> None:
    session = session_of(author, tmp_path)
    study = say(author, session, "begin")
    assert study["title"] == "Two" and study["here"]["moves"] == "" and study["here"]["in"]
    board = author.game(session)
    assert board is not None
    author.service.branch(board.id, 0, JOINED, "browser:a", go=True)
    here = panel(author, session)["study"]["here"]
    assert (here["move"], here["in"], here["note"]) == (JOINED[0], False, "")
    study = say(author, session, "note", chapter=0, moves=JOINED[0], words="One loop.", before="")
    assert study["here"]["in"] and study["here"]["note"] == "One loop." and not study["error"]
    study = say(author, session, "ask", on=True)
    assert "unroll t@0" in study["here"]["legal"]

    again = session_of(author, tmp_path)
    study = say(author, again, "open", name="two")
    assert study["here"]["move"] == JOINED[0], "the board stands where it stood"
    study = say(author, again, "note", chapter=0, moves=JOINED[0], words="Other words.", before="")
    assert "changed in another window" in study["error"] and study["here"]["note"] == "One loop."
    study = say(author, again, "note", chapter=0, moves=JOINED[0], words="Other words.", before="One loop.")
    assert study["here"]["note"] == "Other words."
    assert not author.service.recent_games(9, "browser:a"), "a study's game is on no list of games"


def test_a_text_that_is_no_study_is_kept_and_its_fault_told(author: Author, tmp_path: Path) -> None:
    session = session_of(author, tmp_path)
    study = say(author, session, "begin")
    bad = study["text"].replace("```program", "```progrm")
    study = say(author, session, "text", text=bad, before=study["revision"], number=1)
    assert study["text"] == bad and study["wrong"]["line"] == 11 and "progrm" in study["wrong"]["told"]
    told = say(author, session, "note", chapter=0, moves="", words="x", before="")
    assert "Correct the text first" in told["error"]
    told = say(author, session, "text", text="mine", before="of another window", number=2)
    assert told["text"] == bad and told["clash"] == {"client": "panel", "number": 2}
    for hostile in ({"chapter": 10**9}, {"moves": "x\n" * 900}, {"words": None}, {"chapter": "0"}):
        assert say(author, session, "note", **hostile)["view"] == "study"
    assert say(author, session, "delete", name="../../etc")["error"] == "There is no such study here."
    assert say(author, session, "delete", name="two")["view"] == "list"


def test_a_page_is_built_beside_the_study_and_handed_out_once(author: Author, tmp_path: Path) -> None:
    session = session_of(author, tmp_path)
    say(author, session, "begin")
    assert "build it first" in say(author, session, "download")["error"]
    work.build(session.file)  # what the process does that "build" starts
    told = say(author, session, "download")
    assert told["building"]["state"] == "done" and not told["building"]["built"]["older"]
    assert told["page"]["name"] == "two.html" and told_by(told["page"]["text"])["study"]["title"] == "Two"
    assert say(author, session, "received")["page"] is None and not session.busy


def test_files_are_written_over_only_by_who_knows_them(tmp_path: Path) -> None:
    studies = Studies(folder_of(tmp_path, "browser:a", local=False))
    first = studies.begin("Two loops!", STUDY)
    assert first.name == "two-loops" and studies.begin("Two loops", STUDY).name == "two-loops-2"
    mine = studies.write(first.name, STUDY + "\nMine.\n", first.revision)
    with pytest.raises(Changed):
        studies.write(first.name, STUDY + "\nTheirs.\n", first.revision)
    assert studies.read(first.name) == mine
    for name in ("../two-loops", "/etc/passwd", "", "a.times"):
        with pytest.raises(NotKept):
            studies.read(name)
    with pytest.raises(NotKept, match="256 KB"):
        studies.write(first.name, "x" * 300_000, mine.revision)
    studies.delete(first.name)
    assert studies.names() == ["two-loops-2"] and list(studies.folder.glob("deleted/*-two-loops.md"))
    assert folder_of(tmp_path, "browser:b", local=False) != studies.folder


def test_whom_a_work_waits_for_is_told_with_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcer, "say", announcer.say)
    file = tmp_path / "two.md"
    work._keep(work.BUILDING, file, work.Progress("running", 3, 9), os.getpid())
    work.tell_of_waiting(work.BUILDING, file)
    announcer.say("Waiting for the measuring lock: held by `dojo app`.")
    told = work.progress_of(work.BUILDING, file)
    assert (told.state, told.done, told.total) == ("running", 3, 9) and told.message.startswith("Waiting")


def test_times_go_on_from_what_an_ended_process_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "two.md"
    file.write_text(STUDY, encoding="utf-8")
    assert work.progress_of(work.TIMING, file).state == "none"
    key, _ = clock_of(read_study(STUDY, file).games)
    left = Times(key, "Here", "2026-11-26", {"known": [1.0, 1.0]})
    nobody = 1 << 22  # no process has this number
    work._keep(work.TIMING, file, work.Progress("running", 2, 4, times=left), nobody)
    assert work.progress_of(work.TIMING, file) == work.Progress("stopped", 2, 4)

    def take(study: Any, limits: Any, begun: Times | None, keep: Any) -> Times:
        assert begun == left
        keep(begun)
        assert work.progress_of(work.TIMING, file) == work.Progress("running", 1, 4)
        return Times(key, "Here", "2026-11-27", {**begun.seconds, "new": [2.0, 2.0]})

    monkeypatch.setattr(work, "take", take)
    other = Times("other", "There", "2026-11-20")
    times_file(file).write_text(write_times([other]), encoding="utf-8")
    work.take_times(file, again=False)
    assert work.progress_of(work.TIMING, file).state == "done"
    kept = read_times(times_file(file).read_text(encoding="utf-8"))
    assert [each.machine for each in kept] == ["There", "Here"] and set(kept[1].seconds) == {"known", "new"}
