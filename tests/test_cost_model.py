"""The cost model: features count what is there; it ranks kernels it has not seen, and guides a search."""

import random

import numpy as np
import pytest
from typer.testing import CliRunner

from agents.agent import Budget, Task, run
from agents.cli import app
from agents.players import SEARCHES, agent_named
from agents.search import cost_model
from agents.search.cost_model import CostModel, Ranking, Sampled, held_out, rank_correlation
from agents.search.features import FEATURES, features
from agents.search.neighbours import edge
from agents.timing import CountTiming
from agents.trail import Trail
from dojo_core import apply, kernels, parse
from dojo_core.game import Game
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.records import Record, Records, Sample
from dojo_core.program.tree import Program
from tests.homes import with_objects
from tests.thorough import one_of

TINY = {"softmax": (64, 64), "matmul": (32, 32, 64), "layernorm": (64, 128), "relu": (64, 128)}


def counts(program: Program) -> dict[str, int]:
    found = 2 ** features(program) - 1
    return {name: round(float(n)) for name, n in zip(FEATURES, found, strict=True) if round(float(n))}


def test_threads_of_a_gpu_are_seen():
    start = kernels.get("relu").program((8, 64))
    mapped = start
    for move in ("map_grid y@0", "split_scope y@1 4", "vectorize y@2", "map_block y@1"):
        mapped = apply(mapped, move, "cuda")
    found = counts(mapped)
    assert (found["starts of threads"], found["instructions in threads"]) == (1, 8 * 16)
    assert "instructions outside of threads" not in found and "iterations" not in found
    slow, fast = CountTiming().measure(None, [start, mapped], {}, Effort.QUICK, bool)
    assert fast.seconds * 100 < slow.seconds


def test_features_count_what_a_program_does():
    program = parse(
        "kernel k\nin x\nout y\nx f32 [64, 32] heap\ny f32 [32] heap\nt f32 [64, 32] heap\n"
        "64 32 t[{0},{1}] = exp(x[{0},{1}])\n32 y[{0}] = 0\n| 64 y[{0}] += t[{1},{0}]\n"
    )
    cells = 64 * 32
    assert counts(program) == {
        "instructions": 2 * cells + 32,
        "scalar instructions": 2 * cells + 32,
        "instructions outside of threads": 2 * cells + 32,
        "iterations": 64 + cells + 32 + cells,
        "code": 3,
        "heap, neighbours": 2 * cells + 32,  # x and t row by row, y before the sum
        "heap, the same cell": cells,  # the sum
        "heap, far apart": cells,  # t, column by column
        "costly scalar functions": cells,
        "chained": cells,
        "bytes to the first cache": 3 * cells * 4 + 32 * 4,
        "bytes to the second cache": 3 * cells * 4 + 32 * 4,
        "bytes to the third cache": 3 * cells * 4 + 32 * 4,
        "temporaries": cells * 4,
    }
    wide = counts(apply(apply(program, "split_scope t@1 4"), "vectorize t@2"))
    assert wide["costly vector functions"] == 64 * 8 and "costly scalar functions" not in wide


def test_what_no_cache_holds_comes_again():
    rows = "kernel k\nin x\nout y\nx f32 [4096, 4096] heap\ny f32 [4096, 4096] heap\n"
    once = counts(parse(rows + "4096 4096 y[{0},{1}] = x[{0},{1}]\n"))
    again = counts(parse(rows + "8 4096 4096 y[{1},{2}] = x[{1},{2}]\n"))
    assert again["bytes to the third cache"] == 8 * once["bytes to the third cache"]
    small = counts(parse(rows.replace("4096", "64") + "8 64 64 y[{1},{2}] = x[{1},{2}]\n"))
    assert small["bytes to the first cache"] == 2 * 64 * 64 * 4


def walked(kernel: str, walks: int = 4, steps: int = 16) -> list[Program]:
    start = Trail.at(Game.new(kernels.get(kernel).program(TINY[kernel]), kernel))
    found = [start.program]
    for seed in range(walks):
        trail, rng = start, random.Random(seed)
        for _ in range(steps):
            trail = edge(trail, rng) or trail
            found.append(trail.program)
    return list(dict.fromkeys(found))


def seconds(programs: list[Program]) -> list[float]:
    told = CountTiming().measure(Workload(programs[0]), programs, {}, Effort.QUICK, lambda: False)
    return [each.seconds for each in told if each.seconds]


def sampled(kernel: str) -> Sampled:
    programs = walked(kernel)
    rows = np.array([features(p) for p in programs])
    return Sampled(kernel, rows, np.log2(seconds(programs)))


@pytest.fixture(scope="module")
def samples() -> list[Sampled]:
    return [sampled(kernel) for kernel in TINY]


@pytest.mark.thorough  # learning; what a model says and keeps is tried below
def test_a_model_of_some_kernels_ranks_the_programs_of_another(samples):
    found = held_out(samples)
    assert set(found) == set(TINY)
    assert np.mean([correlation for _, correlation in found.values()]) > 0.5
    nothing = CostModel()
    assert {rank_correlation(nothing.cost(each.rows), each.times) for each in samples} == {0.0}


def test_the_order_alone_counts_in_a_rank_correlation():
    one = np.array([1.0, 2.0, 3.0, 4.0])
    assert rank_correlation(one, np.exp(one)) == pytest.approx(1)
    assert rank_correlation(one, -one) == pytest.approx(-1)
    assert rank_correlation(one, np.array([1.0, 1.0, 2.0, 2.0])) == pytest.approx(0.894, abs=1e-3)


def test_a_run_teaches_the_model():
    programs = walked("softmax")
    trails = [Trail((p,), "cpu", "reassoc") for p in programs]
    times = seconds(programs)
    ranking = Ranking(CostModel())
    ranking.learn(trails[::2], times[::2])
    unseen = np.array([ranking.cost(p) for p in programs[1::2]])
    assert rank_correlation(unseen, np.array(times[1::2])) > 0.6
    assert ranking.seen == {p.hash for p in programs[::2]}


# Edits of lines take longer to find than edges, and are guided alike.
@pytest.mark.parametrize(
    "name",
    one_of(2, ["sampling-edges", "annealing-edges", pytest.param("sampling-lines", marks=pytest.mark.soak)]),
)
def test_a_guided_search_is_decided_by_its_seed_its_times_and_its_model(name):
    task = Task(Game.new(kernels.get("softmax").program((8, 32)), "softmax"))

    def lines(model: CostModel) -> list[object]:
        agent = SEARCHES[name].guided(model)
        return [e.line for e in run(task, agent, CountTiming(), Budget(8))]

    model = CostModel.fitted([sampled("softmax")])
    assert lines(model) == lines(model)
    assert lines(model) != lines(CostModel(tuple(-w for w in model.weights)))
    assert SEARCHES[name].guided(model).version != SEARCHES[name].guided(CostModel()).version


def test_the_command_fits_it_to_the_records(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path)))
    refused = CliRunner().invoke(app, ["cost-model"])
    assert refused.exit_code == 1
    assert "there are 0 kernels with so many: tune some first" in " ".join(refused.output.split())
    with Records() as records:
        for kernel in ("softmax", "relu"):
            programs = walked(kernel, 1)
            for program, took in zip(programs, seconds(programs), strict=True):
                records.add(
                    Record(
                        program.hash, program.text, programs[0].hash, kernel, "", "f32", "reassoc", "", "cpu",
                        this_machine().fingerprint, "", program.hash, "ok", True, took, (Sample(took * 1e9),),
                    )
                )  # fmt: skip
    told = CliRunner().invoke(app, ["cost-model", "--weights"])
    assert told.exit_code == 0, told.output
    assert "softmax" in told.output and "relu" in told.output and "heap, far apart" in told.output
    model = cost_model.load(cost_model.model_file())
    assert any(model.weights) and agent_named("sampling-lines+model").version.endswith(model.digest)
    cost_model.model_file().write_text("{}")
    refused = CliRunner().invoke(app, ["tune", "relu", "--cost-model"])
    assert refused.exit_code == 1 and "is no cost model of this Dojo" in " ".join(refused.output.split())
