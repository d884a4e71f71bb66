"""The page that goes from a model to a kernel and back: its commands, as they stand."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agents.cli import app
from dojo_core.graph import trial
from tests.homes import with_objects

pytestmark = pytest.mark.usefixtures("kept_workers")

BLOCK = re.compile(r"^```(python)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SLOWEST = "matmul_add_relu"


@pytest.mark.thorough  # test_model_page.py, test_onnx_models.py
def test_a_game_on_the_slowest_kernel_makes_the_model_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path / "home")))
    monkeypatch.setattr(trial, "SECONDS", 0.01)  # runs of a timing
    monkeypatch.setattr(trial, "RUNS", 1)
    page = (Path(__file__).parent.parent / "docs" / "model_walk.md").read_text(encoding="utf-8")
    timings: list[dict[str, Any]] = []
    printed = ""
    for language, text in BLOCK.findall(page):
        if language:
            exec(text, {})
        elif text.startswith("dojo "):
            words = shlex.split(text)[1:]
            of_a_model = words[:2] == ["time", "--model"]
            result = CliRunner().invoke(app, words + ["--json"] * of_a_model)
            assert result.exit_code == 0, result.output
            printed = result.stdout
            if of_a_model:
                timings.append(json.loads(printed))
        else:  # what the command before it prints, of which the page leaves out some and times differ
            told = {" ".join(line.split()) for line in printed.splitlines()}
            assert of_a_model or {" ".join(line.split()) for line in text.splitlines()} <= told
    start, faster = ({call["kernel"]: call for call in each["calls"]} for each in timings)
    assert max(start, key=lambda kernel: start[kernel]["seconds"]) == SLOWEST
    assert faster[SLOWEST]["from"] == "the best verified record of this machine"
    assert faster[SLOWEST]["seconds"] < start[SLOWEST]["seconds"]
    assert all(each["right"] for each in timings)
    assert (tmp_path / "perceptron" / "CMakeLists.txt").exists()
