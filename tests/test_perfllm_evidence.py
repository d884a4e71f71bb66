"""The page's evidence, from runs as the benchmark keeps them; and that a run ended is not run again."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest

from agents.agent import Event, Thought
from dojo_core import parse
from dojo_core.measure.measurement import Measurement
from dojo_core.measure.records import Record
from dojo_core.moves import parse_move


@pytest.fixture(scope="module", autouse=True)
def modules_of_torch():
    """Their import takes seconds: only where these tests run, not wherever they are collected."""
    global perfllm, perfllm_report, alike, KIND, TAUGHT, correlations, moves_between
    from benchmarks import perfllm, perfllm_report
    from benchmarks.perfllm_alike import alike
    from benchmarks.perfllm_learnable import KIND, TAUGHT, correlations, moves_between


def run(agent: str, seed: int, final: float, kernel: str = "softmax", **more):
    points = [
        {"evaluation": 1, "elapsed": 1.0, "best": 4e-3},
        {"evaluation": 9, "elapsed": 2.0, "best": final},
    ]
    return {
        "kernel": kernel, "shape": "8x8", "agent": agent, "seed": seed, "budget": 10, "settings": "",
        "fingerprint": "f", "start": 4e-3, "final": final, "points": points, "line": [], "evaluations": 10,
        "measured": 5, "recorded": 5, "resumed": 0, "measuring_seconds": 1.0, "thinking_seconds": 2.0,
        "wall_seconds": 3.0,
    } | more  # fmt: skip


def test_ratios_are_paired_by_kernel_and_seed() -> None:
    runs = [run("perfllm-scratch", 0, 1e-3), run("perfllm-scratch", 1, 2e-3), run("random-edges", 0, 3e-3)]
    told = {"softmax": [pytest.approx(math.log(3))]}
    assert perfllm_report.ratios(runs, "perfllm-scratch", "random-edges") == told
    elsewhere = run("random-edges", 1, 4e-3, fingerprint="g")
    assert perfllm_report.ratios([*runs, elsewhere], "perfllm-scratch", "random-edges") == told, (
        "one machine, one pair"
    )


def test_of_an_agent_only_its_last_form_counts_on_any_machine() -> None:
    old = [run("perfllm-flat", 0, 1e-3, settings="a"), run("perfllm-flat", 1, 1e-3, settings="a")]
    new = run("perfllm-flat", 0, 2e-3, settings="b", fingerprint="g")
    first = run("perfllm-scratch", 0, 1e-3)
    assert perfllm_report.newest([*old, first, new]) == [first, new]


@pytest.mark.thorough  # of benchmarks/; its numbers: above
def test_the_section_is_written_between_its_marks_and_says_what_the_files_say(tmp_path) -> None:
    page, folder = tmp_path / "page.md", tmp_path / "evidence"
    folder.mkdir()
    page.write_text(f"before\n{perfllm_report.BEGIN}\nold\n{perfllm_report.END}\nafter\n")
    assert perfllm_report.NONE in perfllm_report.write(folder, page)
    runs = [run("perfllm-scratch", 0, 9e-3)]  # replaced by a later run of the same
    runs += [run(a, s, t) for s in (0, 1) for a, t in (("perfllm-scratch", 1e-3), ("random-edges", 2e-3))]
    runs += [run("perfllm-plain", 0, 4e-3)]
    (folder / "runs.json").write_text(json.dumps({"machines": {"f": "a machine"}, "runs": runs}))
    told = perfllm_report.write(folder, page)
    assert "| softmax 8x8 | 4 ms | 1 ms | 2 ms | 4 ms |" in told
    assert "| perfllm-scratch against random-edges | 2.00 | 2.00 to 2.00 | 2/2 | 0.25 |" in told
    assert "| perfllm-scratch against perfllm-plain | 4.00 |" in told
    # alone it would have measured ten programs in 2 s, and thought for 2 s
    assert "| perfllm-scratch | 2.5 | 50% | 50% |" in told
    assert (folder / "search.png").exists() and "(evidence/search.png)" in told
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text


def test_how_well_expected_values_rank_what_is_measured():
    """In the first half the values order the programs as their times do, in the second the other way."""
    programs = [parse(f"kernel k\nout y\ny f32 [{n + 1}] heap\n{n + 1} y[{{0}}] = 1\n") for n in range(81)]
    events = []
    for n, program in enumerate(programs):
        found = Measurement(program.hash, "", "ok", seconds=1 / (n + 1), median=1.0, verified=True)
        told = Thought(program.hash, programs[0].hash, "tried", value=float(n if n <= 40 else -n))
        line = (parse_move("parallelize y@0"),) if n else ()
        events.append(Event(n + 1, float(n), line, program, found, None, thoughts=(told,) if n else ()))
    assert perfllm.expected_well(events) == [1, 1, -1, -1]
    assert perfllm.expected_well([replace(each, thoughts=()) for each in events]) == []


def test_where_the_best_ahead_and_the_sum_ahead_ask_for_different_moves(tmp_path) -> None:
    def measured(seconds: float, *line: str, effort: str = "quick") -> dict[str, object]:
        return {"hash": "h", "seconds": seconds, "effort": effort, "line": line}

    def log(name: str, *entries: dict[str, object]):
        path = tmp_path / name
        path.write_text("".join(json.dumps(entry) + "\n" for entry in ({"dojo run": 1}, *entries)))
        return path

    # a is twice as fast and so is all behind it; b is no faster, and four times as fast one move on
    apart = [
        measured(t, *line.split())
        for t, line in ((8, ""), (4, "a"), (4, "a c"), (4, "a c d"), (8, "b"), (2, "b e"))
    ]
    alike_too = [measured(8), measured(2, "a"), measured(8, "b"), measured(1, "b", effort="final")]
    found = alike([log("one", *apart), log("other", *alike_too)], gamma=1.0)
    assert (found.runs, found.positions, found.same) == (2, 2, 1)
    assert found.lost == pytest.approx(math.sqrt(2) - 1)


@pytest.mark.thorough  # of benchmarks/, and not of the product
def test_what_some_moves_teach_about_others():
    """Each move of one kind halves the time, each of the other doubles it: the kind tells all."""
    texts = {n: f"kernel k\nout y\ny f32 [{n}] heap\n{n} y[{{0}}] = 1\n" for n in range(1, 2 * TAUGHT + 42)}
    first = Record(
        "1", texts[1], "s", "k", "", "f32", "reassoc", "", "cpu", "f", "", "", "ok", True, 1.0, effort="quick"
    )
    rng = random.Random(0)
    records = [first]
    for n in range(2, len(texts) + 1):
        kind, took = rng.choice([("unroll", 0.5), ("reorder", 2.0)])
        records.append(
            replace(first, program_hash=str(n), program_text=texts[n], line=f"{kind} y@{n}", seconds=took)
        )
    records.append(replace(records[5], program_hash="final", line="reorder y", effort="final"))
    found, programs = moves_between(records)
    assert len(found) == len(texts) - 1 and set(programs) == {str(n) for n in texts}
    assert all(move.gain == pytest.approx(math.log(2 if move.kind == "unroll" else 0.5)) for move in found)
    ranked = correlations(found, programs)
    assert ranked[KIND] == pytest.approx(1) and ranked["bag of tokens"] < 0.5
    row = {"kernel": "k", "shape": "8", "moves": 9, "faster": 0.5, "much_faster": 0.25, "slower": 0.5,
           "noise": 0.1, "correlation": ranked}  # fmt: skip
    told = perfllm_report._learnable({"machine": "a machine", "taught": TAUGHT, "kernels": [row]})
    assert "| k 8 | 9 | 50% | 25% | 50% | 10% | 1.00 |" in told


def test_what_is_there_is_not_run_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path / "home"))
    began: list[tuple[str, int]] = []

    def ran(wanted, measurer, on):
        began.append((wanted["agent"], wanted["seed"]))
        if len(began) == 3:
            raise KeyboardInterrupt
        return run(wanted["agent"], wanted["seed"], 1e-3) | wanted

    monkeypatch.setattr(perfllm, "_run", ran)
    file = tmp_path / "runs.json"
    agents = ("perfllm-scratch", "random-edges")
    with pytest.raises(KeyboardInterrupt):
        perfllm.search(file, agents, ["softmax"], range(2), 300, None)
    assert len(json.loads(file.read_text())["runs"]) == 2
    began.clear()
    perfllm.search(file, agents, ["softmax"], range(2), 300, None)
    assert began == [("perfllm-scratch", 1), ("random-edges", 1)]


def test_what_was_found_is_judged_by_its_times():
    ours, experts = [2e-3, 4e-3, 2e-3], [1e-3, 2e-3, 4e-3]  # in each round
    assert "2.0 times as fast: nothing was found" in perfllm_report._judged(
        perfllm_report._ratio(experts, ours)
    )
    assert "PerfLLM's program is 2.0 times as fast" in perfllm_report._judged(
        perfllm_report._ratio(ours, experts)
    )
    assert perfllm_report._judged(1.01) == "Both programs are as fast."
    assert perfllm_report._judged(perfllm_report._ratio([], ours)) == ""
    long = "\n".join(map(str, range(100)))
    assert perfllm_report._shortened(long).splitlines()[-1] == "/* … and 40 lines more */"
    assert perfllm_report._shortened("one\ntwo") == "one\ntwo"
