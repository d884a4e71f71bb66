"""What is kept of a loop for the app: recordings of its policy at play, its teachers beside the expert."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.jobs import record_policy
from agents.jobs.recording import read
from agents.perfllm.across.folders import told
from agents.perfllm.across.loop import Loop, Plan
from agents.perfllm.across.policy import Policy
from agents.perfllm.across.saved import save
from agents.timing import CountTiming
from benchmarks.carryover import keep

TEACHER = {
    "event": "teacher", "round": 0, "kernel": "mul", "shape": "2x4", "start": 8e-8, "best": 4e-8,
    "evaluations": 5, "lines": [{"seconds": 4e-8, "moves": ["ssr z@0"]}],
}  # fmt: skip


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    """One that has learned on mul, after its first round."""
    made = Loop(Plan((("mul", "2x4"),), "snitch"), CountTiming(), tmp_path / "loop")
    entries = [TEACHER, {"event": "round", "round": 0, "gain": None, "examples": 1}]
    (made.folder / "rounds.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    policy = Policy()
    policy.lines = (("ssr z@0",),)
    save(policy, made.folder / "policy-0")
    return made


def test_a_policy_is_recorded_on_a_kernel_that_it_has_not_seen(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def record(kernel: str, shape: str) -> None:
        words = [str(loop.folder), kernel, shape, "--budget", "2", "--into", str(tmp_path)]
        monkeypatch.setattr("sys.argv", ["record_policy", *words])
        record_policy.main()

    with pytest.raises(SystemExit):
        record("mul", "4x8")
    assert "has learned on mul: name a kernel that it left out." in capsys.readouterr().err
    record("axpy", "8")
    guided, blind, line = (read(tmp_path / f"axpy-{name}.jsonl") for name in ("learned", "unguided", "line"))
    assert guided.source.startswith("Measured on Snitch") and "on 1 other kernels" not in guided.source
    assert blind.spec.beside == guided.spec.id and guided.expert == blind.expert == line.expert
    for each in (guided, blind, line):
        assert {entry.hash for entry in each.entries} == set(each.learned)
        assert {said.words for said in each.learned.values()} == {"It has never seen this kernel."}
    assert line.entries[-1].seconds == guided.entries[-1].best


def test_teachers_are_kept_beside_the_expert_without_their_lines(loop: Loop, tmp_path: Path) -> None:
    keep(loop, tmp_path / "kept", CountTiming())
    kept = told(tmp_path / "kept")
    [teacher] = kept.teachers
    assert teacher.expert is not None and kept.mean(0) == pytest.approx(teacher.expert / 4e-8)
    assert (kept.rounds, kept.evaluations, kept.problems) == (1, 5, (("mul", "2x4"),))
    assert "lines" not in (tmp_path / "kept" / "rounds.jsonl").read_text()
