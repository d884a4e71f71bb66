"""Without an extra: what needs one says the line that installs it, and the rest works; test_distribution.py
draws every page so."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents.cli import app
from agents.jobs.child import why_failed
from dojo_core import extras
from dojo_core.bench import baselines
from dojo_core.extras import EXTRAS, install_line
from tests.without_extras import with_extras_absent

ROOT = Path(__file__).parent.parent


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The base install alone."""
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    monkeypatch.setattr(extras, "checkout", lambda: None)
    with with_extras_absent():
        yield


NEEDING = (
    (
        "train relu --shape 8x32 --count",
        "learn",
        "Training needs torch, transformers, safetensors and gymnasium",
    ),
    ("try some/folder relu", "learn", "Playing what was learned needs torch"),
    ("train-encoder --out some/folder", "learn", "Training an encoder needs torch"),
    ("probe-encoder", "learn", "Probing an encoder needs torch"),
    ("tune relu --shape 8x32 --agent perfllm", "learn", "The agent perfllm needs torch"),
    ("compare relu --shape 8x32 --agents perfllm", "learn", "The agent perfllm needs torch"),
    ("scheduler", "scale", "A scheduler needs distributed and dask"),
    ("worker tls://127.0.0.1:8786", "scale", "A worker needs distributed"),
    ("tune relu --shape 8x32 --workers 2", "scale", "Measuring on other machines needs distributed"),
    ("import model.onnx", "onnx", "dojo import needs onnx"),
    ("import model.pt2", "learn", "dojo import needs torch"),
    ("mcp", "mcp", "dojo mcp needs mcp"),
    ("tune relu --shape 8x32 --slurm 2", "scale", "Measuring on other machines needs distributed"),
)


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize(("words", "extra", "sentence"), NEEDING, ids=[words for words, *_ in NEEDING])
def test_a_command_that_needs_an_extra_says_its_line(words: str, extra: str, sentence: str) -> None:
    told = CliRunner().invoke(app, words.split())
    assert told.exit_code == 1, told.output
    assert sentence in told.output and f'pip install "dojo[{extra}]"' in told.output
    assert told.output.count("\n") == 1, told.output


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize(
    "words",
    [
        "play relu --line relu --text",
        "pass softmax heuristic --shape 4x8",
        "lesson list",
        "recipes",
        "kernels",
    ],
)
def test_a_command_that_plays_needs_none(words: str) -> None:
    told = CliRunner().invoke(app, words.split())
    assert told.exit_code == 0, told.output


def test_a_baseline_that_is_missing_says_its_line(base: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "checkout", lambda: None)
    assert baselines.how_to_get("torch") == install_line("learn")
    monkeypatch.setenv("DOJO_BENCH_PYTHON", "/opt/bench/bin/python")
    assert baselines.how_to_get("tvm") == "/opt/bench/bin/python -m pip install apache-tvm"


def test_a_run_of_the_app_that_misses_an_extra_says_its_line(base: None) -> None:
    with pytest.raises(ModuleNotFoundError) as fault:
        import torch  # noqa: F401
    told = why_failed(fault.value, "The agent")
    assert told == f"The agent needs torch, which is not installed here: {install_line('learn')}"


def test_the_line_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(extras, "checkout", lambda: tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert install_line("learn") == "make setup"  # a checkout with an environment of its own
    assert install_line("gpu").endswith('pip install "dojo[gpu]"')  # which make setup does not install
    monkeypatch.setattr(sys, "prefix", "/usr")
    assert install_line("learn").endswith('pip install "dojo[learn]"')
    monkeypatch.setattr(sys, "executable", "/some where/bin/python")  # whose pip is not the first on the path
    assert install_line("scale") == "'/some where/bin/python' -m pip install \"dojo[scale]\""


def test_the_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    brought = {
        name: {_module(row) for row in rows} for name, rows in project["optional-dependencies"].items()
    }
    base = {_module(row) for row in project["dependencies"]}
    for extra, modules in EXTRAS.items():
        assert set(modules) <= brought[extra] and not set(modules) & base, extra


def _module(requirement: str) -> str:
    name = re.match(r"[\w-]+", requirement)
    assert name is not None
    return name[0].replace("-", "_")
