"""What PerfLLM is worth: ``python -m benchmarks.perfllm PART [--minutes 45]``, on an idle machine.

    search     against uniform random, random sampling and annealing over edges, at equal evaluations
    finals     what those runs found, timed anew: of each kernel all in turn, so that they compare
    ablations  max against plain Q-learning, then double DQN, dueling heads, the encoder, the paper's form
    snitch     both of these where no time varies: by the cycles of the Snitch model (runs beside other work)
    alike      in the runs of the latter, how often the best reward ahead and the sum ask for the same move
    learnable  how well some moves of those runs tell what the others bring, and how far times vary
    transfer   one policy trained on several kernels, played greedily on kernels that it has not seen
    found      the best lines found beside the heuristic's, timed side by side, with the code
    report     the page's section of evidence from the files, without running anything

Runs are compared within a machine; those of several may stand in one file.

Runs are kept in ``--out`` (found.md and a .json for each part) as each ends. A part that was stopped goes on:
a run that ended is not run again, one that was stopped takes its measurements from its log.
A program that this machine has timed before, by whatever agent, is not compiled again: its recorded time
is used and counted as recorded. The finalists of every run are timed anew.

The shapes are smaller than table 3's, so that a start program runs in milliseconds and one evaluation takes
about as long as its compilation: 300 of them for each of 18 runs of an agent is what makes seeds comparable.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from agents.agent import Budget, Event
from agents.comparison import Curve
from agents.perfllm.settings import VARIANTS, Settings
from agents.players import agent_named
from agents.search.cost_model import rank_correlation
from agents.timing import MachineTiming, Timing
from agents.trail import Trail
from agents.tuning import Tuning
from benchmarks import perfllm_report
from benchmarks.perfllm_alike import alike
from benchmarks.perfllm_learnable import TAUGHT, learnable, moves_between
from dojo_core import kernels
from dojo_core.cli.records import opened
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort, Measurement, Workload, seconds_text
from dojo_core.measure.places import data_directory
from dojo_core.moves.notation import parse_move
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.registry import target
from dojo_core.targets.snitch.measurer import origin_of_the_model

SHAPES = {
    "softmax": "1024x512", "rmsnorm": "1024x1024", "reducemean": "1024x2048",  # bound by memory
    "matmul": "128x128x128", "bmm": "8x64x64x64", "swiglu": "1x32x128x128",  # bound by arithmetic
}  # fmt: skip
ON_SNITCH = {
    "add": "8x64", "axpy": "256", "relu_ffn": "1x8x8x8", "reducemean": "16x32", "gemv": "16x32",
    "sumpool": "1x4x8x8x2x2",
}  # fmt: skip
LEARNED_ON = {"softmax": "1024x512", "matmul": "128x128x128", "layernorm": "1024x512"}
UNSEEN = {"rmsnorm": "1024x1024", "reducemean": "1024x2048", "bmm": "8x64x64x64", "swiglu": "1x32x128x128"}
SEARCH = ("perfllm-scratch", "annealing-edges", "random-edges", "sampling-edges")
ABLATIONS = ("perfllm-scratch", *perfllm_report.SWITCHED, *perfllm_report.PAPERS)
WITHOUT_NOISE = (
    *SEARCH, "perfllm-plain", "perfllm-single", "perfllm-flat", "perfllm-bag", "perfllm-blind",
)  # fmt: skip
QUARTER = 10  # moves of a quarter of a run, at least, for a rank correlation
PAGE = Path("docs/perfllm.md")
Run = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "part",
        choices=(
            "search", "finals", "ablations", "snitch", "alike", "learnable", "transfer", "found", "report",
        ),
    )  # fmt: skip
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="of --seeds, one after the other")
    parser.add_argument("--kernels", nargs="+", choices=(*SHAPES, *ON_SNITCH), help="of the part, some")
    parser.add_argument("--agents", nargs="+", choices=(*SEARCH, *ABLATIONS[1:]), help="of the part, some")
    parser.add_argument("--minutes", type=float, help="begin no run after so many; the next call goes on")
    parser.add_argument("--out", type=Path, default=Path("docs/perfllm"))
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section of evidence is written")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * options.minutes if options.minutes else None
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    names = options.kernels or tuple(ON_SNITCH if options.part in ("snitch", "alike") else SHAPES)
    if options.part in ("search", "ablations", "snitch"):
        usual = {"search": SEARCH, "ablations": ABLATIONS, "snitch": WITHOUT_NOISE}[options.part]
        on, file = ("snitch", "snitch.json") if options.part == "snitch" else ("cpu", "runs.json")
        search(options.out / file, options.agents or usual, names, seeds, options.budget, end, on)
    elif options.part == "finals":
        time_finals(options.out / "runs.json")
    elif options.part == "alike":
        agents = options.agents or ("perfllm-scratch", "perfllm-plain")
        keep_alike(options.out / "alike.json", agents, names, options.budget)
    elif options.part == "learnable":
        keep_learnable(options.out / "learnable.json", names)
    elif options.part == "transfer":
        transfer(options.out / "transfer.json", seeds, options.budget, end)
    elif options.part == "found":
        with opened() as records, Measurer(records) as measurer:
            perfllm_report.write_found(options.out, measurer)
    print(perfllm_report.write(options.out, options.page))


def game_of(kernel: str, shape: str, on: str = "cpu") -> Game:
    found = kernels.get(kernel)
    return Game.new(target(on).start(found.program(found.shape(shape))), kernel, shape, on)


def settings_digest(agent: str) -> str:
    """Differs where an agent that learns would learn in another way; empty for the others."""
    return VARIANTS[agent][1].digest if agent in VARIANTS else ""


class Stopwatch:
    """Times from another source, and how long it took to have them: what remains of a run is thinking."""

    def __init__(self, otherwise: Timing) -> None:
        self._otherwise = otherwise
        self.seconds, self.finals, self.measured, self.recorded = 0.0, 0.0, 0, 0

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        began = time.monotonic()
        found = self._otherwise.measure(workload, programs, lines, effort, cancelled)
        took = time.monotonic() - began
        if effort is Effort.FINAL:
            self.finals += took
        else:
            fresh = sum(not each.known for each in found)
            self.seconds += took
            self.measured += fresh
            self.recorded += len(found) - fresh
        return found


def search(
    path: Path,
    agents: Sequence[str],
    names: Sequence[str],
    seeds: Sequence[int],
    budget: int,
    end: float | None,
    on: str = "cpu",
) -> None:
    """Run what is not there yet, seed by seed and kernel by kernel: a slow hour meets all agents."""
    with opened() as records, Measurer(records) as measurer:
        machine, summary = measurer.machine.fingerprint, measurer.machine.summary
        if on != "cpu":
            # Times are the same everywhere, a learning agent's run is not: sums of its network are rounded
            # otherwise on another processor, and a choice that hangs by a hair goes the other way.
            machine = f"{origin_of_the_model().fingerprint}-{machine}"
            summary = f"the Snitch model, played on {summary}"
        told = json.loads(path.read_text()) if path.exists() else {"machines": {}, "runs": []}
        machines: dict[str, str] = told["machines"] | {machine: summary}
        runs: list[Run] = told["runs"]
        kept = {identity(run) for run in runs}
        left = [
            wanted
            for seed in seeds
            for kernel in names
            for agent in agents
            if identity(wanted := _wanted(kernel, agent, seed, budget, machine, on)) not in kept
        ]
        print(f"{len(left)} runs to do.", flush=True)
        while left and (end is None or time.monotonic() < end):
            wanted = left.pop(0)
            began = time.monotonic()
            run = _run(wanted, measurer, on)
            runs.append(run)
            _write(path, {"dojo evidence": 2, "machines": machines, "runs": runs})
            took = {
                agent: [r["wall_seconds"] for r in runs if r["agent"] == agent and "wall_seconds" in r]
                for agent in agents
            }
            mean = sum(sum(each) for each in took.values()) / max(1, sum(map(len, took.values())))
            ahead = sum(
                sum(took[w["agent"]]) / len(took[w["agent"]]) if took[w["agent"]] else mean for w in left
            )
            final = "nothing ran" if run["final"] is None else f"{run['final'] * 1e6:.1f} µs"
            print(
                f"{wanted['kernel']} {wanted['agent']} seed {wanted['seed']}: {final}, "
                f"{time.monotonic() - began:.0f} s, thinking {run['thinking_seconds']:.0f} s, "
                f"{run['recorded']} recorded; {len(left)} runs left, about {ahead / 60:.0f} min",
                flush=True,
            )


def _wanted(kernel: str, agent: str, seed: int, budget: int, machine: str, on: str) -> Run:
    shapes = SHAPES if on == "cpu" else ON_SNITCH
    return {
        "kernel": kernel, "shape": shapes[kernel], "agent": agent, "seed": seed, "budget": budget,
        "settings": settings_digest(agent), "fingerprint": machine,
    }  # fmt: skip


def identity(run: Run) -> tuple[Any, ...]:
    """What decides a run beside its times."""
    names = ("kernel", "shape", "agent", "seed", "budget", "settings", "fingerprint")
    return tuple(run[name] for name in names)


def _run(wanted: Run, measurer: Measurer, on: str) -> Run:
    agent = agent_named(wanted["agent"])
    timing = Stopwatch(MachineTiming(measurer, agent.name))
    budget = Budget(wanted["budget"])
    game = game_of(wanted["kernel"], wanted["shape"], on)
    tuning = Tuning(game, agent, measurer, budget, wanted["seed"], timing=timing, keep=False)
    began = time.monotonic()
    events = list(tuning.events())
    wall = time.monotonic() - began
    curve = Curve.of(game.title, agent.name, wanted["seed"], events)
    searched = [event for event in events if not event.final]
    thinking = max(0.0, wall - timing.seconds - timing.finals)
    best = events[-1].best if events else None
    return wanted | {
        "start": curve.start, "final": curve.final, "points": [asdict(point) for point in curve.points],
        "line": [str(move) for move in best.line] if best else [],
        "evaluations": len(searched), "measured": timing.measured, "recorded": timing.recorded,
        "resumed": tuning.resumed, "measuring_seconds": round(timing.seconds, 3),
        "thinking_seconds": round(thinking, 3), "wall_seconds": round(wall, 3),
        "expected": expected_well(searched),
    }  # fmt: skip


def time_finals(path: Path) -> None:
    """Time the best programs of this machine's runs anew, those of one kernel in turn: the machine's speed
    changes from hour to hour, and runs of different agents may lie hours apart."""
    told = json.loads(path.read_text())
    with opened() as records, Measurer(records) as measurer:
        own = [run for run in told["runs"] if run["fingerprint"] == measurer.machine.fingerprint]
        for kernel in dict.fromkeys(run["kernel"] for run in own):
            runs = [run for run in own if run["kernel"] == kernel and run["final"] is not None]
            game = game_of(kernel, SHAPES[kernel])
            start = Trail.at(game)
            programs = [start.played(map(parse_move, run["line"])).program for run in runs]
            times = perfllm_report.side_by_side(game, programs, measurer)
            for run, seconds in zip(runs, times, strict=True):
                run["final"] = min(seconds) if seconds else None
            fastest = min(run["final"] or math.inf for run in runs)
            print(f"{kernel}: {len(runs)} programs, the fastest {seconds_text(fastest)}", flush=True)
    _write(path, told)


def expected_well(events: Sequence[Event]) -> list[float]:
    """Of each quarter of a run the rank correlation of the values that the agent expected of its moves with
    the speed-ups measured behind them; nothing of an agent that tells no values."""
    took = {each.measurement.program_hash: each.measurement.seconds or math.inf for each in events}
    start = next((each.measurement.seconds for each in events if not each.line), None)
    told = [t for each in events for t in each.thoughts if t.value is not None and t.program in took]
    if start is None or len(told) < 4 * QUARTER:
        return []
    pairs = np.array([(t.value, start / took[t.program]) for t in told])
    return [round(rank_correlation(*part.T), 3) for part in np.array_split(pairs, 4)]


def keep_alike(path: Path, agents: Sequence[str], names: Sequence[str], budget: int) -> None:
    """What perfllm_alike finds in the logs of this machine's runs that ended, of each agent as it is now."""
    logs: dict[str, list[Path]] = {agent: [] for agent in agents}
    spelled = {f"{agent}-{settings_digest(agent)}": agent for agent in agents}  # as logs name their last form
    shapes = {kernel: (SHAPES | ON_SNITCH)[kernel] for kernel in names}
    for log in sorted((data_directory() / "runs").glob("*.jsonl")):
        head, *entries = map(json.loads, log.read_text().splitlines())
        ended = any(entry.get("effort") == "final" for entry in entries)  # finalists are timed last
        if ended and head["evaluations"] == budget and shapes.get(head["kernel"]) == head["shape"]:
            logs.get(spelled.get(head["agent"], ""), []).append(log)
    _write(path, {agent: asdict(alike(found)) for agent, found in logs.items() if found})


def keep_learnable(path: Path, names: Sequence[str]) -> None:
    """What perfllm_learnable finds in this machine's records of the kernels that have enough of them."""
    with opened() as records, Measurer(records) as measurer:
        own = [r for _, r in records.measurements() if r.fingerprint == measurer.machine.fingerprint]
        found = []
        for name in names:
            game = game_of(name, SHAPES[name])
            known = [record for record in own if record.start_hash == game.start.hash]
            if len(moves_between(known)[0]) >= 2 * TAUGHT:
                found.append(asdict(learnable(game, SHAPES[name], known, measurer)))
                print(found[-1], flush=True)
        _write(path, {"machine": measurer.machine.summary, "taught": TAUGHT, "kernels": found})


def transfer(path: Path, seeds: Sequence[int], budget: int, end: float | None) -> None:
    """Train on LEARNED_ON, play UNSEEN greedily; beside each line random moves, as many programs measured."""
    from agents.perfllm.training import Plan, Training  # with torch, whose import takes seconds

    rows: list[Run] = json.loads(path.read_text())["runs"] if path.exists() else []
    with opened() as records, Measurer(records) as measurer:
        for seed in seeds:
            wanted = {"seed": seed, "budget": budget, "settings": settings_digest("perfllm-scratch"),
                      "fingerprint": measurer.machine.fingerprint}  # fmt: skip
            if any(wanted.items() <= row.items() for row in rows):
                continue
            if end is not None and time.monotonic() >= end:
                break
            games = tuple(game_of(*each) for each in LEARNED_ON.items())
            timing = MachineTiming(measurer, "perfllm")
            plan = Plan(games, Settings(), budget, seed)
            # The usual folder knows no weights: a run with those before would stand in the way.
            own = f"transfer-{wanted['settings']}-{seed}-{budget}"
            training = Training(
                plan, timing, data_directory() / "training" / own, measurer.machine.fingerprint
            )
            for entry in training.events():
                if entry["event"] == "learn" and entry["round"] % 20 == 0:
                    done, of = entry["evaluation"], training.player.evaluations
                    left = entry["elapsed"] / done * (of - done)
                    print(f"seed {seed}: {done} of {of} evaluations, about {left / 60:.0f} min", flush=True)
            tried = training.tried([game_of(*each) for each in UNSEEN.items()], timing)
            for (kernel, shape), entry in zip(UNSEEN.items(), tried, strict=True):
                evaluations = max(2, len(entry["line"]) + 1)
                random_moves = Tuning(
                    game_of(kernel, shape), agent_named("random-edges"), measurer, Budget(evaluations), seed,
                    keep=False,
                )  # fmt: skip
                last = list(random_moves.events())[-1]
                rows.append(wanted | {
                    "kernel": kernel, "shape": shape, "learned_on": list(LEARNED_ON), "line": entry["line"],
                    "start": entry["start"], "best": entry["best"],
                    "last": entry["seconds"][-1], "evaluations": evaluations,
                    "random": last.best.seconds if last.best else None,
                })  # fmt: skip
            _write(path, {"dojo evidence": 1, "machine": measurer.machine.summary, "runs": rows})


def _write(path: Path, told: Mapping[str, Any]) -> None:
    """Replace a file as a whole: a kill leaves the one before."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(told, indent=1) + "\n")
    new.replace(path)


if __name__ == "__main__":
    main()
