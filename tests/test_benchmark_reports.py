"""What benchmarks come to as Markdown: benchmarks/models.py, benchmarks/kernelbench_report.py."""

import pytest

from benchmarks.kernelbench_report import report
from benchmarks.models import Entry, Row, tables
from benchmarks.policies import table
from benchmarks.sections import fill


def problem(name, level=1, **more):
    seconds = {"eager": 2.0, "inductor": 1.0, "dojo": 0.5}
    plain = {"status": "correct", "message": "", "stays": [], "compiling": 2.0, "seconds": seconds}
    plain["settings"] = {"gflops": 8.0, "megabytes": 256.0}
    return {"level": level, "name": name, **plain, **more}


def test_problems_by_level_and_what_is_behind():
    told = report(
        [
            problem("1_Add"),
            problem("2_Sort", stays=["sort stays."], seconds={"eager": 1.0, "inductor": 2.0, "dojo": 2.0}),
            problem("3_Wrong", status="wrong", message="off by 1"),
            problem("1_Chain", level=2, seconds={}),
        ]
    ).splitlines()
    assert "| level 1 | 3 | 2 | 1 | 2.0, 2.0 |" in told
    assert "| all | 4 | 3 | 2 | 2.0, 2.0 |" in told
    assert "| the pass | eager | level 1 | 2 | 1.41 | 1 | 1 |" in told  # 4 and 0.5
    assert "| the pass | the better of both | all | 2 | 1.00 | 1 | 1 |" in told  # 2 and 0.5
    assert "- Problems are scaled to at most 8 GFLOP and 256 MB." in told
    assert "- By the pass behind eager, below 0.8: 1/2_Sort (0.50)." in told
    assert told[-2:] == ["- 1/2_Sort: sort stays.", "- 1/3_Wrong: wrong; off by 1"]


def test_a_search_stands_beside_the_pass():
    seconds = {"eager": 2.0, "inductor": 1.0, "dojo": 1.0, "search": 0.5}
    told = report([problem("1_Add", seconds=seconds)]).splitlines()
    assert "| the pass | eager | level 1 | 1 | 2.00 | 1 | 0 |" in told
    assert "| a search | eager | level 1 | 1 | 4.00 | 1 | 0 |" in told
    assert "| a search | the pass | level 1 | 1 | 2.00 | 1 | 0 |" in told


def test_networks_beside_the_others():
    entries = {
        "eager": Entry(seconds=[0.04, 0.06, 0.04]),
        "inductor": Entry(seconds=[0.02, 0.03, 0.02], first=20.0, second=3.0),
        "onnxruntime": Entry("failed", "PyTorch did not export it."),
        "dojo": Entry(
            seconds=[0.01, 0.015, 0.01], first=9.0, second=2.0, parts={"play": 4.0, "compile": 2.0}
        ),
        "dojo-onnx": Entry("failed", "PyTorch did not export it."),
    }
    told = tables([Row("lstm", 3, entries)]).splitlines()
    assert "| lstm | 40 | 20 | failed | 10 | failed |" in told
    assert "| lstm | 4.00 | 2.00 |  |  |" in told  # ratios within rounds: another load slows both
    assert "| lstm, torch.compile | 9.0 | 3.0 | 4.0 | 2.0 |  | 2.0 | 20.0 | 3.0 |" in told
    assert "- lstm, ONNX Runtime: PyTorch did not export it." in told


def test_a_section_of_a_page_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- end -->\nafter\n")
    fill(page, "<!-- a -->", "<!-- end -->", "new\n")
    assert page.read_text() == "before\n<!-- a -->\n\nnew\n\n<!-- end -->\nafter\n"
    with pytest.raises(SystemExit, match="no such section"):
        fill(page, "<!-- b -->", "<!-- end -->", "new")


def test_another_policy_stands_beside_the_usual_one_with_what_it_is_off_by():
    def row(name, kind, least, ratio=None, **more):
        told = {"entry": name, "name": name, "kind": kind, "status": "ok", "apart": False, "min": least}
        return {**told, **({"ratio": {"median": ratio}} if ratio else {}), **more}

    entries = [
        row("heuristic algebraic", "ours", 1e-3, 0.5, error=2e-6),
        row("line", "ours", 2e-3, error=8e-7),
        row("oneDNN", "baseline", 3e-3, 1.5, error=4e-7),
        row("PyTorch", "baseline", 4e-3, 2.0),
    ]
    told = table([{"kernel": "conv", "shape": "1x2", "reference": "line", "entries": entries}]).splitlines()
    assert "| conv 1x2 | 1 ms | 3.00 | 2 ms | 1.50 | oneDNN | 3 ms |" in told
    assert "| conv 1x2 | 2.0e-06 | 8.0e-07 | 4.0e-07 | – |" in told
