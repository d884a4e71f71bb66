"""The Train page without a browser: a finished run's figures, and what is said where torch is missing."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from agents.jobs.trainings import TrainingSpec
from dojo_core import extras


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
