"""The Train page without a browser: a finished run's figures, and what is said where torch is missing."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from agents.jobs.trainings import TrainingSpec
from agents.perfllm.across import held_out
from agents.perfllm.across.folders import told
from dojo_core import extras
from dojo_core.package_data import document_path
from pages.train.carried import of_held_out, of_teachers


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    st.cache_resource.clear()
    return tmp_path


def finished(home: Path) -> str:
    """A run that halved the operations twice, as its files tell it."""
    spec = TrainingSpec.of("relu", "8x32", policy="reassoc", budget=10, seed=0, counting=True)
    folder = home / "trainings" / spec.id
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(asdict(spec)))
    move = {"event": "move", "episode": 0, "kernel": "relu 8x32", "q": 1.5, "best_q": 2.0, "explored": False}
    learn = {"event": "learn", "updates": 4, "loss": 0.5, "epsilon": 0.25, "evaluations_per_second": 3.0}
    events = [{"event": "start", "kernel": "relu 8x32", "seconds": 8e-7}]
    for number, seconds in ((1, 4e-7), (2, 2e-7)):
        now = {"evaluation": number, "move": "unroll y@0", "seconds": seconds, "best": seconds}
        events += [{**move, **now, "reward": 8e-7 / seconds}, {**learn, "evaluation": number}]
    events.append({"event": "episode", "best_reward": 4.0, "q": [1.5, 1.5], "measured": [4.0, 4.0]})
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (folder / "state.jsonl").write_text('{"state": "done", "message": ""}\n')
    return spec.id


def test_a_finished_run_tells_its_best_and_offers_its_checkpoint(home: Path) -> None:
    def app(run: str) -> None:
        from pages.train import follow

        follow.page(run)

    shown = AppTest.from_function(app, args=(finished(home),), default_timeout=500).run()
    assert not shown.exception
    metrics = {metric.label: metric.value for metric in shown.metric}
    assert metrics["Best"] == "200 ops" and metrics["Programs"] == "2 of 10" and metrics["ε"] == "0.25"
    assert "Play this checkpoint" in [button.label for button in shown.button]
    table = shown.segmented_control(key="train_shown").set_value("table").run()
    assert not table.exception
    assert list(table.dataframe[0].value["best so far"]) == ["200 ops", "400 ops"]


def test_what_carries_over_is_shown_at_once_and_of_ones_own_loops(home: Path) -> None:
    folder = home / "training" / "library-snitch-0"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"problems": [["mul", "8x64"], ["dot", "256"]], "target": "snitch"}')
    (folder / "experts.json").write_text('{"mul": {"8x64": 5e-7}, "dot": {"256": 1e-6}}')
    # In round 1 the teacher of dot found nothing better.
    best = {("mul", "8x64"): (1e-6, 5e-7), ("dot", "256"): (4e-6, 5e-6)}
    rounds = [
        {"event": "teacher", "round": n, "kernel": kernel, "shape": shape, "start": 8e-6, "best": seconds[n],
         "evaluations": 10}
        for n in (0, 1) for (kernel, shape), seconds in best.items()
    ]  # fmt: skip
    rounds.insert(2, {"event": "round", "round": 0, "gain": None, "examples": 3})
    (folder / "rounds.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in rounds) + '{"half')

    def app() -> None:
        from pages.train import page

        page()

    shown = AppTest.from_function(app, default_timeout=500)
    shown.session_state["carried_shown"] = "table"  # the next test draws the curves
    shown.run()
    assert not shown.exception
    own, *shipped = shown.selectbox(key="carried_loop").options
    assert own == "library-snitch-0" and "by_kernel-a-ngrams-0, which comes with the Dojo" in shipped
    *tables, teachers = (each.value for each in shown.dataframe)
    _, runs = held_out.read(document_path("perfllm/carryover.json"))
    for scheme, players in zip(held_out.schemes(runs), tables, strict=True):
        assert "policy (ngrams)" in list(players["player"])
        assert sum(players["runs"]) == len(held_out.of_scheme(runs, scheme))
    assert list(teachers["round 0"]) == ["0.50", "0.25"] and list(teachers["round 1"]) == ["1.00", "0.25"]
    assert any("1 round ended (blind in round 0), 40 programs" in each.value for each in shown.caption)
    loop = told(folder)
    assert loop.mean(1) == pytest.approx(0.5) and loop.mean(2) is None
    (
        of_teachers(loop),
        of_teachers(replace(loop, teachers=tuple(replace(t, expert=None) for t in loop.teachers))),
    )
    (folder / "run.json").write_text("{}")
    with pytest.raises(ValueError, match="is no folder of a run of dojo train --library"):
        told(folder)


def test_a_player_is_drawn_alike_in_every_chart() -> None:
    def curve(player: str, last: float) -> held_out.Curve:
        mean = (last / 2, last)
        return held_out.Curve(player, 3, (25, 300), mean, mean, mean)

    players = ["policy", "kinds", "blind"]
    all_of_them = of_held_out([curve("policy", 0.9), curve("kinds", 0.6), curve("blind", 0.3)], players)
    two = of_held_out([curve("blind", 0.3), curve("policy", 0.6)], players)
    drawn = {line.name: (line.line.color, line.marker.symbol) for line in all_of_them.data}
    assert len(set(drawn.values())) == 3
    assert [line.name for line in two.data] == ["policy", "blind"]
    assert {line.name: (line.line.color, line.marker.symbol) for line in two.data}.items() <= drawn.items()


def test_without_torch_the_page_says_what_to_install(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_present", lambda name: name != "torch")

    def app() -> None:
        from pages.train import page

        page()

    shown = AppTest.from_function(app, default_timeout=500).run()
    assert not shown.exception
    assert "Training needs torch, which is not installed here: " in shown.warning[0].value
    assert extras.install_line("learn") in shown.warning[0].value
    assert [button.disabled for button in shown.button if button.label == "Start"] == [True]
