"""benchmarks.kernelbench: a problem of KernelBench's form, scaled and held against PyTorch."""

import math
import re

import pytest
import torch

pytestmark = pytest.mark.thorough  # of what measures the product, in benchmarks/, and not of the product

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.norm = nn.GroupNorm(groups, CHANNELS)

    def forward(self, x):
        return self.norm(x).relu()

BATCH, SIZE = 4, 1024 * 8
CHANNELS = 512

def get_inputs():
    return [torch.rand(BATCH, CHANNELS, SIZE)]

def get_init_inputs():
    return [8]
"""


@pytest.fixture(scope="module", autouse=True)
def backend():
    """TorchDynamo comes with it, in seconds: only where these tests run, not wherever they are collected."""
    global kernelbench, Row, _as_near, needs, ran, run_all, scaled, table
    from benchmarks import kernelbench
    from benchmarks.kernelbench import Row, _as_near, needs, ran, run_all, scaled, table


def test_the_largest_size_is_halved_until_a_problem_fits():
    names, halvings = scaled(SOURCE, 1.0, 48.0)
    # 1024 to 512, then both numbers that are 512: 4 x 256 x 2048 floats, in and out, are 17 MB.
    assert (names["BATCH"], names["CHANNELS"], names["SIZE"]) == (4, 256, 256 * 8)
    assert halvings == 2
    gflops, megabytes = needs(names)
    assert gflops <= 1 and 12 < megabytes <= 48


def test_a_size_that_others_ask_for_stays():
    source = SOURCE.replace("return [8]", "return [512]").replace("SIZE = 4, 1024 * 8", "SIZE = 4, 64 * 128")
    names, _ = scaled(source, 1.0, 48.0)
    assert names["CHANNELS"] == 512  # 512 groups go into no fewer channels


def test_where_sizes_hang_on_each_other_one_place_is_halved_alone():
    """As many channels as the image is wide, so that neither can be halved: the batch can."""
    source = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x)

WIDTH = 1024
BATCH = 1024

def get_inputs():
    return [torch.rand(8, BATCH, 1024)]

def get_init_inputs():
    return [WIDTH]
"""
    names, halvings = scaled(source, 1.0, 48.0)
    assert (names["WIDTH"], names["BATCH"], halvings) == (1024, 512, 1)


def test_a_model_that_asks_for_values_is_scaled_by_running_it():
    source = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.linspace(0, 1, 3)[1].item()

    def forward(self, x):
        return self.scale * (x @ x)

def get_inputs():
    return [torch.rand(1024, 1024)]

def get_init_inputs():
    return []

SIZES = [1024, 1024]
"""
    names, halvings = scaled(source.replace("rand(1024, 1024)", "rand(*SIZES)"), 1.0, 48.0)
    assert (names["SIZES"], halvings) == ([512, 512], 1)


def test_as_near_as_eager_to_float64_is_correct():
    exact = torch.tensor([1.0], dtype=torch.float64)
    near, far = torch.tensor([1.0]), torch.tensor([1.1])
    assert _as_near(far, far, exact) and _as_near(near, far, exact) and not _as_near(far, near, exact)
    assert not _as_near(torch.tensor([math.nan]), far, exact)


@pytest.mark.soak
def test_a_problem_is_held_against_pytorch(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    path = tmp_path / "level1" / "7_Norm.py"
    path.parent.mkdir()
    path.write_text(SOURCE.replace("1024 * 8", "64").replace("512", "16"))
    settings = {"against": ["eager"], "budget": 0, "rounds": 1, "gflops": 1.0, "megabytes": 48.0}
    row = ran(path, settings)
    assert (row.level, row.name, row.status, row.message, row.stays) == (1, "7_Norm", "correct", "", [])
    assert set(row.seconds) == {"eager", "dojo"}
    assert re.search(r"Level 1: 1 of 1 correct, 1 of them whole in the Dojo\.", table([row]))


def test_a_file_of_rows_goes_on_where_it_was(tmp_path, monkeypatch):
    paths = [tmp_path / "level1" / f"{k}_Norm.py" for k in (2, 10)]
    settings = {"against": ["eager"], "budget": 0, "rounds": 0}
    file, fails = tmp_path / "rows.json", {"10_Norm"}

    def ran_or_not(path, settings):
        return Row(1, path.stem, "error" if path.stem in fails else "correct", f"round {settings['rounds']}")

    monkeypatch.setattr(kernelbench, "ran", ran_or_not)
    assert [row.status for row in run_all(paths, settings, 1, file)] == ["correct", "error"]
    fails = {"2_Norm"}  # which is there, and not run again; what failed is
    rows = run_all(paths, settings, 1, file)
    assert [(row.name, row.status) for row in rows] == [("2_Norm", "correct"), ("10_Norm", "correct")]
    assert run_all(paths[1:], settings, 1, file) == rows[1:]
    other = run_all(paths[1:], {**settings, "rounds": 3}, 1, file)  # under others it is run
    assert [row.message for row in other] == ["round 3"]
    assert [row.message for row in run_all(paths[:1], settings, 1, file)] == ["round 0"]
