"""A legality condition is switched off, and noticed. All of them: ``make mutate``."""

import re
from types import ModuleType

import pytest

from dojo_core.program.codes import Code
from tests import mutate


@pytest.mark.thorough  # what make mutate goes over, and what it calls: below
def test_some_conditions_switched_off_are_noticed(capsys):
    """In forks of this process, which has imported what they import besides."""
    assert mutate.main(["--sample", "1", "--seed", "7", "--walks", "3"]) == 0
    assert capsys.readouterr().out.count("| ") > 6


def test_each_condition_of_several_terms_is_switched_off_term_by_term():
    found = [s for s in mutate.sites() if s.function == "SplitScope.plan" and s.code == "split-factor"]
    assert [s.text for s in found] == ["not 1 < factor", "not factor < scope.size", "scope.size % factor"]


def test_every_mutant_differs_and_compiles():
    for site in mutate.sites()[::60]:
        compile(mutate.mutated(site), site.file, "exec")


def test_every_family_of_moves_has_conditions():
    assert {s.file for s in mutate.sites()} >= {
        f"dojo_core/moves/{f}.py" for f in ("scopes", "values", "marks")
    }


@pytest.mark.parametrize("target", ["gpu", "snitch"])
def test_every_refusal_of_a_target_has_a_condition(target):
    file = f"dojo_core/targets/{target}/conditions.py"
    named = re.findall(r"_fault\(\s*Code\.([A-Z_]+)", (mutate.ROOT / file).read_text())
    codes = {Code[name] for name in named}
    # thread-write is what is left of every write that no condition lets through
    assert codes - {s.code for s in mutate.sites() if s.file == file} <= {"thread-write"} and codes


def test_rows_that_make_test_leaves_out_are_left_out_and_those_with_a_name_are_not():
    left_out = [pytest.param(5, 6, marks=pytest.mark.soak), pytest.param(7, 8, marks=pytest.mark.thorough)]
    rows = [(1, 2), pytest.param(3, 4, id="named"), *left_out]

    @pytest.mark.parametrize(("a", "b"), rows)
    def test_pairs(a, b):
        seen.append((a, b))

    seen: list[tuple[int, int]] = []
    module = ModuleType("one")
    module.test_pairs = test_pairs
    for _, check in mutate.checks(module):
        check()
    assert seen == [(1, 2), (3, 4)]


@pytest.mark.thorough  # make mutate as a whole, as above
def test_tests_that_cannot_be_called_notice_nothing(monkeypatch, capsys):
    monkeypatch.setattr(mutate, "checks", lambda module: 1 / 0)
    assert mutate.main(["--sample", "1", "--walks", "0"]) == 2
    assert "The tests could not be called: ZeroDivisionError" in capsys.readouterr().out


def test_what_a_test_needs_and_is_not_here_notices_nothing(monkeypatch):
    monkeypatch.setattr(mutate, "TESTS", ("test_mutate",))
    monkeypatch.setattr(mutate, "checks", lambda module: [("skips", lambda: pytest.skip("no NVRTC"))])
    assert mutate.verdict(0) == {"by": ""}


def test_what_noticed_a_condition_the_last_time_is_asked_first(monkeypatch, tmp_path):
    site = next(s for s in mutate.sites() if " | " in s.text)
    (tmp_path / "page.md").write_text(mutate.row(site, {"by": "test", "what": "test_b[x | y]"}))
    told = mutate.witnesses(tmp_path / "page.md")[mutate.condition(site)]
    asked = []
    monkeypatch.setattr(mutate, "TESTS", ("test_mutate",))
    labels = ("test_a", "test_b[x | y]", "test_c")
    monkeypatch.setattr(mutate, "checks", lambda module: [(a, lambda a=a: asked.append(a)) for a in labels])
    mutate.verdict(0, told)
    assert asked == ["test_b[x | y]", "test_a", "test_c"]


@pytest.mark.thorough  # make mutate begins with it
def test_the_program_as_it_is_plays_in_the_process_that_judges(monkeypatch):
    """There all of ours is loaded anew: what stayed would meet classes that are others by the same names."""

    def plays():
        from agents.passes import play_pass
        from dojo_core import kernels
        from dojo_core.game import Game

        assert play_pass(Game.new(kernels.get("relu").program((64, 64))), "heuristic")

    plays()
    monkeypatch.setattr(mutate, "TESTS", ("test_mutate",))
    monkeypatch.setattr(mutate, "checks", lambda module: [("plays", plays)])
    assert mutate.run(None, 0, 300) == {"by": ""}
