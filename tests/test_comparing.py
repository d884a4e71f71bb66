"""Comparisons without a clock: intervals, rows, files, the process beside the app, entries by their kind."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agents.curves import logged
from dojo_core import kernels
from dojo_core.bench.job import resolve
from dojo_core.bench.table import as_csv, lines
from dojo_core.game import Game
from dojo_core.measure.confidence import Median, median, ratio
from dojo_core.service.comparing import Comparison, Comparisons, Contender, Spec


def test_the_interval_of_a_median_is_that_of_order_statistics() -> None:
    # of ten samples the second smallest and largest: 1 - 22/1024 (David and Nagaraja, table 7.1)
    found = median([float(n) for n in range(1, 11)])
    assert (found.value, found.low, found.high) == (5.5, 2.0, 9.0)
    assert found.level == pytest.approx(1 - 22 / 1024)
    few = median([1.0, 2.0, 4.0])
    assert (few.low, few.high, few.level) == (1.0, 4.0, 0.75)
    assert median([3.0]) == Median(3.0, 3.0, 3.0, 0.0)
    with pytest.raises(ValueError, match="no samples"):
        median([])


def test_a_ratio_is_taken_within_rounds() -> None:
    found = ratio([[10.0, 11.0], [], [20.0]], [[20.0], [7.0], [40.0, 50.0]])
    assert found is not None and (found.value, found.low, found.high) == (2.0, 2.0, 2.0)
    assert ratio([[1.0]], [[]]) is None


def entry(key: str, samples: list[list[float]], **others: Any) -> dict[str, Any]:
    told = {
        "name": f"ours: {key}", "entry": key, "kind": "ours", "apart": False, "details": "", "status": "ok",
        "message": "", "verified": True, "variants": {}, "samples_ns": samples,
    }  # fmt: skip
    if samples:
        told["min"] = min(ns for each in samples for ns in each) / 1e9
    return told | others


def report(*entries: dict[str, Any]) -> dict[str, Any]:
    return {
        "kernel": "softmax", "shape": "96x32", "policy": "reassoc", "line": [], "program": "", "rounds": 2,
        "samples": 2, "flops": 100, "bytes": 10, "machine": "{}", "machine_summary": "a machine",
        "reference": None, "limits": None, "remarks": [], "entries": list(entries),
    }  # fmt: skip


MISSING = entry(
    "torch", [], name="PyTorch eager", kind="baseline", status="missing", verified=False,
    message="Install it: pip install torch.",
)  # fmt: skip


def test_rows_have_medians_speeds_and_the_reason_where_there_is_no_time() -> None:
    told = report(entry("start", [[20.0, 22.0], [40.0, 44.0]]), entry("line", [[10.0], [10.0]]), MISSING)
    start, line, torch = lines(told, "start")
    assert line.speed is not None and (line.speed.low, line.speed.high) == (2.0, 4.0)
    assert start.middle is not None and start.middle.value == pytest.approx(30e-9)
    assert torch.best is None and torch.message == "Install it: pip install torch."


def test_the_csv_has_each_sample_and_the_fingerprint_and_no_formulas() -> None:
    document = {"reports": [report(entry("=HYPERLINK(1)", [[20.0, 22.0]]), MISSING)], "fingerprint": "f00d"}
    rows = list(csv.DictReader(io.StringIO(as_csv(document))))
    assert [(r["entry"], r["round"], r["ns"]) for r in rows] == [
        ("'=HYPERLINK(1)", "1", "20.0"),
        ("'=HYPERLINK(1)", "1", "22.0"),
        ("PyTorch eager", "", ""),
    ]
    assert {r["fingerprint"] for r in rows} == {"f00d"}


def softmax() -> Game:
    found = kernels.get("softmax")
    return Game.new(found.program((96, 32)), "softmax", "96x32")


def test_entries_are_resolved_by_their_kind() -> None:
    game = softmax()
    played = softmax()
    played.play("join_scopes m@0")
    start = resolve(game, {"kind": "start", "name": "start"})
    assert start.entry.program is game.start and start.moves == 0
    saved = resolve(game, {"kind": "game", "name": "g", "text": played.to_text()})
    assert saved.moves == 1 and saved.entry.program.hash == played.current.program.hash
    best = resolve(game, {"kind": "heuristic", "name": "heuristic"})
    assert best.moves and best.entry.program.hash != game.start.hash
    other = Game.new(kernels.get("softmax").program((8, 8)), "softmax", "8x8")
    with pytest.raises(ValueError, match="another start program"):
        resolve(game, {"kind": "game", "name": "g", "text": other.to_text()})


CHILD = """
import json, signal, sys, time
job = json.loads(sys.stdin.readline())
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
def say(**event): print(json.dumps(event), flush=True)
for n in range(job["rounds"]):
    say(step="timing"), say(round=n + 1, rounds=job["rounds"])
    while HOLD and not stop: time.sleep(0.01)
    if stop: break
if job["policy"] == "bad": say(failed="It cannot be measured: why."); sys.exit()
if job["policy"] == "dies": sys.exit(3)
say(report=REPORT, programs={}, start_hash="s1")
"""
START, TORCH = Contender("start", "start"), Contender("baseline", "PyTorch eager", baseline="torch")
SPEC = Spec("softmax", "96x32", "", "reassoc", (START, TORCH))


def comparisons(folder: Path, hold: bool = False) -> Comparisons:
    told = report(entry("start", [[20.0]]), entry("torch", [[10.0]], name="PyTorch eager", kind="baseline"))
    text = CHILD.replace("HOLD", str(hold)).replace("REPORT", repr(told))
    return Comparisons(folder, [sys.executable, "-c", text])


def until(made: Comparison, condition: Any) -> None:
    end = time.monotonic() + 300
    while not condition(made):
        assert time.monotonic() < end, made
        time.sleep(0.01)


def test_a_comparison_is_followed_kept_and_found_again(tmp_path: Path) -> None:
    made = comparisons(tmp_path).start(SPEC)
    until(made, lambda each: not each.open)
    assert (made.state, made.rounds) == ("done", 10)
    later = Comparisons(tmp_path)
    again = later.get(made.id)
    assert again is not None and again.spec == SPEC and again.document is not None
    assert again.document["spec"]["contenders"][0]["name"] == "start"
    fingerprint = json.loads((tmp_path / f"{made.id}.json").read_text())["fingerprint"]
    assert later.seconds("s1", fingerprint, "torch") == 10e-9
    assert later.seconds("s1", "elsewhere", "torch") is None
    assert later.get("../secret") is None


def test_stopping_keeps_the_rounds_there_are(tmp_path: Path) -> None:
    host = comparisons(tmp_path, hold=True)
    made = host.start(SPEC)
    until(made, lambda each: each.rounds == 1)
    host.stop(made.id)
    until(made, lambda each: not each.open)
    assert made.state == "stopped" and made.document is not None


@pytest.mark.parametrize(
    ("policy", "words"), [("bad", "It cannot be measured: why."), ("dies", "ended early")]
)
def test_a_comparison_that_fails_says_why(tmp_path: Path, policy: str, words: str) -> None:
    made = comparisons(tmp_path).start(Spec("softmax", "96x32", "", policy, SPEC.contenders))
    until(made, lambda each: not each.open)
    assert made.state == "failed" and words in made.message


def test_two_to_six_entries_one_of_them_ours(tmp_path: Path) -> None:
    host = comparisons(tmp_path)
    for contenders, why in (
        (SPEC.contenders[:1], "2 to 6"),
        (SPEC.contenders[1:] * 2, "at least one program"),
    ):
        with pytest.raises(ValueError, match=why):
            host.start(Spec("softmax", "96x32", "", "reassoc", contenders))


def test_the_curves_of_logged_runs(tmp_path: Path) -> None:
    head = {
        "dojo run": 1,
        "kernel": "softmax",
        "shape": "96x32",
        "start": "s1",
        "machine": "m",
        "agent": "a",
        "seed": 3,
    }

    def measured(name: str, seconds: float | None, effort: str = "quick") -> dict[str, Any]:
        told = {"hash": name, "seconds": seconds, "verified": seconds is not None, "effort": effort}
        return {**told, "elapsed": 1.0}

    log = [head, measured("s1", 8.0), measured("p", 4.0), measured("q", None), measured("p", 3.0, "final")]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log) + "half")
    (tmp_path / "b.jsonl").write_text("nonsense")
    (curve,) = logged(tmp_path, "s1", "m")
    assert (curve.agent, curve.seed, curve.start, curve.final) == ("a", 3, 8.0, 3.0)
    assert [(p.evaluation, p.best) for p in curve.points] == [(1, 8.0), (2, 4.0), (3, 4.0)]
    assert logged(tmp_path, "s2", "m") == []
