"""PerfLLM's training runs as the app has them: followed, stopped, resumed from the checkpoint, played."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.jobs import JobRefused
from agents.jobs.trainings import Followed, Trainings, TrainingSpec, TrainingView
from dojo_core import extras


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trainings]:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path / "home"))
    made = Trainings(tmp_path / "trainings")
    yield made
    made.close()


def spec(budget: int, **others) -> TrainingSpec:
    settings = {"episode_moves": 4, "most_actions": 6, "warmup": 4}
    return TrainingSpec.of(
        "relu", "8x32", policy="reassoc", budget=budget, seed=0, counting=True, encoder="bag",
        settings=settings, **others,
    )  # fmt: skip


def until(runs: Trainings, run: str, condition: Callable[[TrainingView], bool]) -> TrainingView:
    end = time.monotonic() + 400
    while not condition(view := runs.view(run)):
        assert time.monotonic() < end, (view.state, view.message, view.events[-1:])
        time.sleep(0.05)
    return view


@pytest.mark.thorough  # a run and its checkpoints: test_perfllm.py; in a process of its own: test_jobs.py
def test_a_run_is_stopped_resumed_and_its_checkpoint_plays(runs: Trainings) -> None:
    pytest.importorskip("torch")
    run = runs.start(spec(30))
    until(runs, run, lambda view: len(view.of("move")) > 2)
    runs.say(run, "stop")
    stopped = until(runs, run, lambda view: not view.works)
    assert stopped.state in ("stopped", "done"), stopped.message
    if stopped.resumable:
        runs.resume(run)
    done = until(runs, run, lambda view: not view.works)
    assert done.state == "done", done.message
    assert done.of("move")[-1]["evaluation"] <= 30 and done.of("final")
    assert [e["evaluation"] for e in done.of("learn")] == sorted(e["evaluation"] for e in done.of("learn"))
    runs.play(run, "mul", "8x32")
    with pytest.raises(JobRefused, match="plays already"):
        runs.play(run, "mul", "8x32")
    played = until(runs, run, lambda view: not view.trying)
    assert [told["event"] for told in played.tried] == ["tried"], played.tried
    assert played.tried[0]["name"] == "mul" and len(played.tried[0]["seconds"]) >= 1


def test_without_torch_it_is_told_what_is_missing(runs: Trainings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_present", lambda name: name not in ("torch", "safetensors"))
    with pytest.raises(JobRefused, match="Training needs torch and safetensors, which are not installed"):
        runs.start(spec(10))
    assert runs.all() == []


def test_what_cannot_be_done_is_told_in_a_sentence(runs: Trainings) -> None:
    with pytest.raises(JobRefused, match="no training run with this id"):
        runs.view("../x")
    with pytest.raises(JobRefused, match="no training run with this id"):
        runs.view("abcdef")


def test_a_file_that_was_cut_back_to_its_checkpoint_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    followed = Followed(path)
    assert followed.refresh() == []
    lines = [json.dumps({"event": "learn", "round": n}) for n in range(4)]
    path.write_text("\n".join(lines) + '\n{"event": ')
    assert [line["round"] for line in followed.refresh()] == [0, 1, 2, 3]
    path.write_text("\n".join(lines[:2]) + "\n")
    assert [line["round"] for line in followed.refresh()] == [0, 1]
