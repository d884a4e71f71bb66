"""The command line with the agents: passes without measuring, tuning that goes on where it was stopped."""

import json
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from agents.cli import app
from dojo_core.game import Game
from tests.homes import with_objects

pytestmark = pytest.mark.usefixtures("kept_workers")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path)))
    return tmp_path


def dojo(*words: str, code: int = 0):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def test_a_pass_tells_its_moves_and_saves_a_game(home):
    told = dojo("pass", "softmax", "naive", "--shape", "4x8", "--moves", "--save", str(home / "game"))
    assert told.stdout.splitlines()[0] == "join_scopes m@0"
    assert "naive: " in told.stderr
    saved = Game.from_text((home / "game").read_text())
    assert [str(p.move) for p in saved.line()[1:]] == told.stdout.splitlines()
    assert ":v y[" in dojo("pass", "relu", "--shape", "64x64").stdout  # without a name: the heuristic one


def test_tuning_is_told_as_lines_of_json_and_goes_on_from_its_log(home):
    words = ("tune", "relu", "--shape", "64x64", "--budget", "4", "--agent", "random-edges", "--json")
    first = [json.loads(line) for line in dojo(*words).stdout.splitlines()]
    assert {event["status"] for event in first} == {"ok"}
    assert [e["evaluation"] for e in first if not e["final"]] == [1, 2, 3, 4]
    again = [json.loads(line) for line in dojo(*words).stdout.splitlines()]
    known = ("program", "seconds", "best", "final")
    assert [[e[k] for k in known] for e in again] == [[e[k] for k in known] for e in first]


def test_tuning_ends_with_a_table_and_a_game(home):
    told = dojo("tune", "relu", "--shape", "64x64", "--agent", "heuristic", "--save", str(home / "best"))
    assert "relu 64x64" in told.stdout and "1.00×" in told.stdout
    assert Game.from_text((home / "best").read_text()).shape == "64x64"
    told = dojo("tune", "relu", "--shape", "64x64", "--agent", "heuristic")
    assert "This run is done" in told.stderr


def test_all_kernels_are_tuned_and_what_is_done_is_not_done_again(home, monkeypatch):
    shapes = {"dot": ((64,), (96,)), "axpy": ((32,),)}

    def only(*names: str) -> SimpleNamespace:
        return SimpleNamespace(names=lambda: names, get=lambda name: SimpleNamespace(shapes=shapes[name]))

    monkeypatch.setattr("agents.commands.kernels", only("dot"))
    first = dojo("tune", "--all", "--agent", "naive")
    assert "dot 64" in first.stdout and "dot 96" in first.stdout and "This run is done" not in first.stderr
    monkeypatch.setattr("agents.commands.kernels", only("dot", "axpy"))
    told = dojo("tune", "--all", "--agent", "naive")
    assert all(title in told.stdout for title in ("dot 64", "dot 96", "axpy 32"))
    assert told.stderr.count("This run is done") == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("pass", "softmax", "clever"), "There is no pass 'clever'. The passes: naive, greedy, heuristic."),
        (("tune", "softmax", "--agent", "clever"), "There is no agent 'clever'."),
        (("tune",), "Name the kernels to tune, or give --all"),
        (("tune", "softmax", "--all"), "Name the kernels to tune, or give --all"),
        (("tune", "--all", "--shape", "4x8"), "--all takes every kernel as it is"),
        (("tune", "softmax", "relu", "--save", "x"), "--save keeps one game"),
        (("tune", "softmux"), "There is no kernel 'softmux'."),
    ],
)
def test_a_mistake_is_told_in_a_sentence(words, sentence):
    told = dojo(*words, code=1).stderr
    assert sentence in " ".join(told.split()) and "Traceback" not in told
