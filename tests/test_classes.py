"""Classes: who may do what, what is kept of whom and how long, the table and its file; without a browser."""

from __future__ import annotations

import csv
import io
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dojo_core.classes import store, view, words
from dojo_core.classes.reports import witness
from dojo_core.classes.store import LESSON, LINK, Classes
from dojo_core.classes.throttle import ONE, WINDOW, Throttle
from dojo_core.measure.records import Records
from dojo_core.school.attempts import Attempt
from dojo_core.school.panel import panel
from dojo_core.school.progress import Progress
from dojo_core.school.school import LESSONS_FOLDER, School, open_school
from dojo_core.school.tutoring import Tutor, TutoringSession
from dojo_core.service.refused import Refused
from dojo_core.service.service import Service
from dojo_core.service.wiring import KernelLibrary, RecordStore
from tests.stand_ins import Bench

TEACHER, ADA, BEN = "browser:teacher", "browser:ada", "browser:ben"
FUSION, STEP = "02-fusion", "one-loop-for-both"
HOSTILE = '=HYPERLINK("http://evil.example","A")'


@pytest.fixture
def classes(tmp_path: Path) -> Iterator[Classes]:
    with_one = Classes(tmp_path / "classes.sqlite")
    yield with_one
    with_one.close()


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> School:
    folder = tmp_path_factory.mktemp("lessons")
    shutil.copy(LESSONS_FOLDER / f"{FUSION}.md", folder)
    shutil.copytree(LESSONS_FOLDER / "pictures", folder / "pictures")
    return open_school([folder])


def new_class(classes: Classes) -> str:
    of, _ = classes.make("Compilers, Monday", TEACHER)
    classes.assign(of.code, LESSON, FUSION, "Fusion")
    return of.code


def test_a_code_is_read_however_it_was_typed() -> None:
    code = words.new_code()
    assert len(code) == 8 and set(code) <= set(words.LETTERS)
    assert words.read_code(f" {words.spelled(code).lower()} ") == code
    for wrong in ("", code[:7], code + "B", "AEIOAEIO", "x" * 10_000):
        assert words.read_code(wrong) == ""


def test_names_are_kept_as_typed_bounded_and_told_apart(classes: Classes) -> None:
    code = new_class(classes)
    for number, (typed, kept) in enumerate(
        (
            ("Ada", "Ada"),
            (" ada ", "ada (2)"),
            ("A\u202eda\x07\n", "Ada (3)"),
            ("<b>Ben</b>", "<b>Ben</b>"),
            ("é" * 100, "é" * 40),
            ("é" * 100, "é" * 36 + " (2)"),
        )
    ):
        assert classes.join(code, typed, f"browser:{number}").name == kept
    for nothing in ("", "  ", "\u202e", "-.-"):
        with pytest.raises(Refused, match="Write a name"):
            classes.join(code, nothing, "browser:nobody")
    assert classes.join(code, "Somebody else", "browser:0").name == "Ada"  # who is one stays who they are


def test_who_is_no_teacher_hears_the_same_of_a_class_as_of_none(classes: Classes) -> None:
    of, key = classes.make("Mine", TEACHER)
    for code in (of.code, words.new_code()):
        with pytest.raises(Refused, match="You teach no such class"):
            classes.taught(code, ADA)
    assert classes.admit("", ADA) is None and classes.admit("guessed", ADA) is None
    assert classes.admit(key, ADA) == of and classes.taught(of.code, ADA) == of
    newer = classes.new_key(of.code, ADA)
    assert classes.admit(key, BEN) is None and classes.admit(newer, BEN) == of
    login, no_key = classes.make("With a login", "login:ada@example.org")
    assert no_key == "" and classes.admit("", BEN) is None
    assert classes.taught_by("login:ada@example.org") == [login]


def test_what_is_kept_is_what_the_class_was_given_and_the_first_wrong_moves(classes: Classes) -> None:
    student = classes.join(new_class(classes), "Ada", ADA)
    classes.report(student, Attempt("01-scopes", "one-line-one-loop", reached=True))  # not given
    classes.report(student, Attempt(FUSION, STEP, refused="reuse_dims t 0", speed_up=2.0, seconds=0.5))
    classes.report(student, Attempt(FUSION, STEP, refused="unroll t@0", astray="split_scope t@0 16"))
    classes.report(
        student, Attempt(FUSION, STEP, reached=True, astray="split_scope t@0 8", speed_up=1.5, game="g")
    )
    classes.report(student, Attempt(FUSION, STEP, helped=True, refused="unroll y@0", astray="", seconds=0.25))
    ((step,),) = (each.steps for each in classes.memberships(ADA))
    assert (step.lesson, step.step, step.helped) == (FUSION, STEP, False) and step.reached is not None
    assert (step.refused, step.astray) == ("reuse_dims t 0", "split_scope t@0 8")
    assert (step.speed_up, step.seconds) == (2.0, 0.25)


def test_a_class_survives_a_restart_and_is_deleted_when_it_was_not_used_for_long(
    classes: Classes, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = new_class(classes)
    classes.report(classes.join(code, "Ada", ADA), Attempt(FUSION, STEP))
    classes.close()
    again = Classes(classes.path)
    (student,) = again.roster(code)
    assert student.name == "Ada" and len(student.steps) == 1 and again.taught_by(TEACHER)
    again.close()
    later = time.time() + (store.KEPT_DAYS + 1) * store.DAY
    monkeypatch.setattr("dojo_core.classes.store.time.time", lambda: later)
    empty = Classes(classes.path)
    assert empty.of_code(code) is None and empty.memberships(ADA) == [] and empty.taught_by(TEACHER) == []
    empty.close()


def test_what_is_deleted_is_not_in_the_files_either(classes: Classes) -> None:
    code = new_class(classes)
    ada, ben = (classes.join(code, f"Unheard-of {name}", f"browser:{name}") for name in ("Ada", "Ben"))
    classes.show(ada, "some-game", "An odd title", None)

    def told() -> bytes:
        return b"".join(file.read_bytes() for file in classes.path.parent.glob("classes*"))

    assert b"Unheard-of Ada" in told()
    classes.remove_student(code, ada.id)
    assert b"Unheard-of Ada" not in told() and b"An odd title" not in told()
    classes.report(ada, Attempt(FUSION, STEP))  # of a tab that is still open
    assert classes.memberships(ada.owner) == [] and [each.id for each in classes.roster(code)] == [ben.id]
    classes.delete(code)
    assert b"Unheard-of" not in told() and b"Monday" not in told()


def test_a_student_of_another_class_is_not_deleted(classes: Classes) -> None:
    code, other = new_class(classes), new_class(classes)
    ada = classes.join(code, "Ada", ADA)
    classes.remove_student(other, ada.id)
    assert classes.roster(code) == [ada]


def test_everything_is_bounded(classes: Classes, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_TAUGHT", "MOST_STUDENTS", "MOST_ASSIGNMENTS", "MOST_STEPS", "MOST_GAMES"):
        monkeypatch.setattr(store, name, 1)
    code = new_class(classes)
    classes.assign(code, LESSON, FUSION, "Fusion")  # once is enough
    ada = classes.join(code, "Ada", ADA)
    classes.show(ada, "one", "One", 2.0)
    for asked, words_of_it in (
        (lambda: classes.make("Another", TEACHER), "delete one"),
        (lambda: classes.assign(code, LINK, "https://example.org", "It"), "take one away"),
        (lambda: classes.join(code, "Ben", BEN), "as many as one can have"),
        (lambda: classes.show(ada, "two", "Two", None), "take one back"),
    ):
        with pytest.raises(Refused, match=words_of_it):
            asked()
    classes.report(ada, Attempt(FUSION, STEP))
    classes.report(ada, Attempt(FUSION, "a-longer-chain", astray="x" * 100_000))
    assert [each.step for each in classes.memberships(ADA)[0].steps] == [STEP]


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "data:text/html,x", "//x", "https://", "https://a b", "https://x:0", ""],
)
def test_what_is_given_by_link_is_an_address_of_the_web(address: str) -> None:
    assert words.web_address(" https://example.org/a.html#3 ") == "https://example.org/a.html#3"
    with pytest.raises(Refused, match="address of the web"):
        words.web_address(address)


def test_codes_cannot_be_guessed_one_after_the_other() -> None:
    now = [0.0]
    throttle = Throttle(lambda: now[0])
    for _ in range(ONE):
        throttle.check("eve")
        throttle.wrong("eve")
    with pytest.raises(Refused, match="wait a minute"):
        throttle.check("eve")
    throttle.check("ada")
    for client in range(1_000):  # from everywhere at once
        throttle.wrong(str(client))
    with pytest.raises(Refused):
        throttle.check("ada")
    now[0] = WINDOW
    throttle.check("eve")


def test_the_teachers_table_and_its_file_say_who_is_where_and_no_name_is_a_formula(
    classes: Classes, school: School
) -> None:
    code = new_class(classes)
    ada, ben = classes.join(code, "Ada", ADA), classes.join(code, HOSTILE, BEN)
    for student, reached in ((ada, True), (ben, False)):
        classes.report(student, Attempt(FUSION, STEP, reached, astray="split_scope t@0 16", game="learn-1"))
    classes.show(ben, "a-game", "@SUM(A1)", 3.0)
    of, titles = classes.taught(code, TEACHER), view.Titles(school)
    shown = view.taught(of, classes.roster(code), titles)
    rows = {row["name"]: row for row in shown["students"]}
    assert rows["Ada"]["where"].endswith(titles.step(FUSION, STEP)) and rows["Ada"]["reached"]
    assert rows["Ada"]["done"] == 1 and rows[HOSTILE]["done"] == 0 and rows["Ada"]["game"] == "?g=learn-1"
    (step,) = shown["steps"]
    assert (step["opened"], step["reached"]) == (2, 1)
    assert step["wrong"] == [{"move": "split_scope t@0 16", "refused": False, "names": [HOSTILE, "Ada"]}]
    assert [(game["student"], game["href"]) for game in shown["games"]] == [(HOSTILE, "?g=a-game")]

    text = view.csv_text(classes.roster(code), titles)
    lines = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    assert [(line["student"], line["what"]) for line in lines] == [
        ("'" + HOSTILE, "step"), ("'" + HOSTILE, "game"), ("Ada", "step"),
    ]  # fmt: skip
    assert lines[1]["step"] == "'@SUM(A1)" and lines[1]["times as fast"] == "3.0"
    assert not any(cell[:1] in "=+-@\t\r" for line in lines for cell in line.values() if cell)

    own = view.joined(of, classes.memberships(ADA)[0], titles)
    assert own["name"] == "Ada" and HOSTILE not in str(own)
    assert own["assignments"][0]["done"] == 1 and own["assignments"][0]["of"] == len(titles.steps(FUSION))


def test_the_tutor_tells_the_class_what_is_tried_and_reached(
    classes: Classes, school: School, tmp_path: Path
) -> None:
    classes.join(new_class(classes), "Ada", ADA)
    with Records(tmp_path / "records.sqlite") as records:
        service = Service(RecordStore(records), KernelLibrary(), Bench)
        progress = Progress(tmp_path / "school.sqlite")
        tutor = Tutor(service, school, progress)
        tutor.witness = witness(classes)
        session = TutoringSession("ada", service.player(None, owner=ADA))
        tutor.open(session, FUSION, STEP)

        def play(*events: tuple[str, str]) -> store.StepTaken:
            for kind, move in events:
                game = tutor.game(session)
                assert game is not None
                number = max(session.player.acknowledged.values(), default=0) + 1
                event = {"seq": number, "kind": kind, "game": game.id, "position": game.cursor, "move": move}
                service.handle(session.player, "board", [event])
                panel(tutor, session)
            return classes.memberships(ADA)[0].steps[0]

        begun = play(("why", "join_scopes t@0"))
        assert begun.reached is None and (begun.refused, begun.astray) == ("", "")
        wrong = play(("play", "reuse_dims t 0"), ("play", "split_scope t@0 16"))
        assert (wrong.refused, wrong.astray, wrong.reached) == ("reuse_dims t 0", "split_scope t@0 16", None)
        # Another way than the solution's that leads to the goal is none that leads astray.
        right = play(("play", "split_scope y@0 16"), ("play", "join_scopes t@0"))
        assert right.reached is not None and right.game.startswith("learn-") and right.astray == ""
        progress.close()
        service.close()
