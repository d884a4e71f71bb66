"""What carries over to kernels that were never learned on: ``python -m benchmarks.carryover PART``.

    run     the loop of each fold (agents/perfllm/across/loop.py), its folder under --work, then every player
            on the kernels that the fold leaves out (carryover.toml), at equal numbers of programs measured
    report  the section of docs/perfllm.md from the file, without running anything
    ship    the loop of one fold and training seed; its policy comes with the Dojo from then on, with a card
            of what it was taught (carryover_card.py)

What teachers found is kept beside --out too, without their lines: the app's page Train shows it.

Players: the fold's policy, which takes moves from the lines that it was taught too; the policy without those
lines; the lines without the policy; moves weighed by how often their kinds stand in these lines; the same
player blind; agents by their names. The expert, the target's heuristic pass, is what
all are told as fractions of. Both parts go on: a loop from its folder, players from --out.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.agent import Budget, Proposals, Task
from agents.expert import expert_seconds
from agents.intervals import interval
from agents.perfllm.across import held_out
from agents.perfllm.across.folders import known_experts, write_experts
from agents.perfllm.across.guides import Guide, Kinds
from agents.perfllm.across.held_out import Run
from agents.perfllm.across.loop import COMPILE_SECONDS, Loop, Plan, game_of, listed, told
from agents.perfllm.across.problem import Problem, spend
from agents.perfllm.across.saved import parsed
from agents.perfllm.across.search import Search
from agents.players import agent_named
from agents.timing import MachineTiming, Timing
from benchmarks.carryover_card import card, ship
from benchmarks.sections import fill
from dojo_core.cli.records import opened
from dojo_core.files import write_text
from dojo_core.game import Game
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.registry import backend

FOLDS = Path(__file__).with_suffix(".toml")
BUDGETS = (25, 50, 100, 300)
AGENTS = ("perfllm-scratch", "sampling-edges", "random-edges")
OF_FOLD = ("policy", "policy-alone", "lines", "kinds")  # what they are hangs on what the fold taught
PLAYERS = (*OF_FOLD, "blind", *AGENTS)
BEGIN, END = "<!-- carryover: python -m benchmarks.carryover report -->", "<!-- end of carryover -->"


@dataclass(frozen=True)
class Fold:
    """``left_out``: the kernels of the test."""

    scheme: str
    name: str
    left_out: tuple[str, ...]

    def learned_on(self, target: str) -> tuple[str, ...]:
        return tuple(k for of in listed(target).values() for k in of if k not in self.left_out)


def folds() -> dict[str, Fold]:
    """By scheme and name, as ``by_kernel/a``."""
    with FOLDS.open("rb") as file:
        schemes = tomllib.load(file)
    return {
        f"{scheme}/{name}": Fold(scheme, name, tuple(left_out))
        for scheme, of in schemes.items()
        for name, left_out in of.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("run", "report", "ship"))
    parser.add_argument("--folds", nargs="+", choices=tuple(folds()), default=list(folds()))
    parser.add_argument("--target", default="snitch")
    parser.add_argument("--training-seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--seeds", type=int, default=5, help="of each player on each kernel")
    parser.add_argument("--players", nargs="+", choices=PLAYERS, default=list(PLAYERS))
    parser.add_argument("--shapes", type=int, default=3, help="of each kernel that is learned on")
    parser.add_argument(
        "--kernels", type=int, default=0, help="that are learned on, drawn from the fold's; 0: all of them"
    )
    parser.add_argument("--blind", type=int, default=1000, help="programs of a teacher in the first round")
    parser.add_argument("--guided", type=int, default=300, help="programs of a teacher in each later round")
    parser.add_argument("--rounds", type=int, default=5, help="after the blind one, at most")
    parser.add_argument("--reader", choices=("ngrams", "lines"), default="ngrams")
    parser.add_argument("--no-ranks", action="store_true", help="cross-entropy alone")
    parser.add_argument("--work", type=Path, default=Path("build/carryover"), help="where loops lie")
    parser.add_argument("--out", type=Path, default=Path("docs/perfllm/carryover.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/perfllm.md"))
    options = parser.parse_args()
    if options.part == "ship" and (len(options.folds) > 1 or len(options.training_seeds) > 1):
        parser.error("Ship the policy of one fold and one training seed: give --folds and --training-seeds.")
    if options.part == "run" and not backend(options.target).clock().exact:
        parser.error(
            f"The best time of a search on {options.target} is its luckiest too: ship a policy, and let dojo "
            "compare play kernels that it has never seen, which times what was found anew and in turns."
        )
    if options.part != "report":
        with opened() as records, Measurer(records, compile_seconds=COMPILE_SECONDS) as measurer:
            timing = MachineTiming(measurer, "carryover")
            if options.part == "ship":
                print(shipped(options, timing))
                return
            run(options, timing)
    text = section(read(options.out), options.out)
    fill(options.page, BEGIN, END, text)
    print(text)


def shipped(options: argparse.Namespace, timing: Timing) -> str:
    """The loop of the fold to its end, its policy where the Dojo's lie; the card."""
    [name], [training] = options.folds, options.training_seeds
    loop = loop_of(folds()[name], training, options, timing)
    for entry in loop.events():
        print(told(entry), flush=True)
    command = (
        f"python -m benchmarks.carryover ship --target {options.target} --folds {name} --training-seeds "
        f"{training} --shapes {options.shapes} --blind {options.blind} --guided {options.guided} "
        f"--rounds {options.rounds}"
    )
    experts = {key: _expert(game_of(*key, options.target), timing) for key in loop.plan.problems}
    told_of = card(loop, folds()[name].left_out, experts, command)
    ship(loop, told_of)
    return told_of


def loop_of(fold: Fold, training: int, options: argparse.Namespace, timing: Timing) -> Loop:
    """A fold's loop with one training seed, its folder under ``--work``."""
    kernels = fold.learned_on(options.target)
    if options.kernels:
        kernels = tuple(random.Random(training).sample(kernels, options.kernels))
    plan = Plan.of(
        kernels, options.shapes, target=options.target, seed=training, blind=options.blind,
        guided=options.guided, rounds=options.rounds, reader=options.reader, ranked=not options.no_ranks,
    )  # fmt: skip
    return Loop(plan, timing, options.work / f"{fold.scheme}-{fold.name}-{options.reader}-{training}")


def run(options: argparse.Namespace, timing: Timing) -> None:
    """Every fold and training seed in turn, what is in the file left out."""
    for name in options.folds:
        fold = folds()[name]
        for training in options.training_seeds:
            loop = loop_of(fold, training, options, timing)
            taught = 0
            for entry in loop.events():
                taught += entry.get("evaluations", 0)
                print(told(entry), flush=True)
            keep(loop, options.out.with_suffix("") / loop.folder.name, timing)
            for each in _tried(fold, training, loop, options, timing):
                write(options.out, [*read(options.out), each | {"taught": taught}])
                at = ", ".join(
                    f"{each['expert'] / b:.2f} at {n}" for n, b in zip(BUDGETS, each["best"], strict=True)
                )
                print(
                    f"{each['kernel']} {each['player']} seed {each['seed']}: {at} of the expert", flush=True
                )


def keep(loop: Loop, into: Path, timing: Timing) -> None:
    """What a loop's folder tells of its teachers, with what the expert comes to on the same problems."""
    into.mkdir(parents=True, exist_ok=True)
    experts = known_experts(into)
    for problem in loop.plan.problems:
        if problem not in experts:
            seconds = expert_seconds(game_of(*problem, loop.plan.target), timing)
            if seconds is not None:
                experts[problem] = seconds
    write_experts(into, experts)
    shutil.copy(loop.folder / "run.json", into)
    entries = [json.loads(line) for line in (loop.folder / "rounds.jsonl").read_text().splitlines()]
    shown = [{name: value for name, value in entry.items() if name != "lines"} for entry in entries]
    write_text(into / "rounds.jsonl", "".join(json.dumps(entry) + "\n" for entry in shown))


def _tried(
    fold: Fold, training: int, loop: Loop, options: argparse.Namespace, timing: Timing
) -> Iterator[Run]:
    """Every player on every kernel of a fold; seeds in the outer loop, so that a part of it tells of all."""
    shapes = {kernel: s[0] for of in listed(options.target).values() for kernel, s in of.items()}
    known = {_identity(run) for run in read(options.out)}
    policy, kinds = loop.policy(), Kinds(line.moves for line in loop.taught())
    guides: dict[str, Guide | None] = {
        "policy": policy.weigh, "policy-alone": policy.weigh, "lines": None, "kinds": kinds, "blind": None
    }  # fmt: skip
    lore = parsed(policy.lines)
    for seed in range(options.seeds):
        for kernel in fold.left_out:
            game = game_of(kernel, shapes[kernel], options.target)
            expert = _expert(game, timing)
            for player in options.players:
                # Neither the same player blind nor an agent hangs on what a fold taught.
                of_fold = player in OF_FOLD
                wanted = {
                    "scheme": fold.scheme if of_fold else "", "fold": fold.name if of_fold else "",
                    "training": training if of_fold else None, "target": options.target, "kernel": kernel,
                    "shape": shapes[kernel], "player": player, "seed": seed,
                    "reader": options.reader if player.startswith("policy") else "",
                }  # fmt: skip
                if _identity(wanted) in known:
                    continue
                began = time.process_time()
                search: Proposals
                rng = random.Random(f"{seed} {kernel}")
                problem = Problem(game, timing)
                if player in guides:
                    borrowed = lore if player in ("policy", "lines") else ()
                    glance = policy.glance if player.startswith("policy") else None
                    search = Search(
                        problem.start, rng, guides[player], lore=borrowed, glance=glance
                    ).proposals()
                else:
                    search = agent_named(player).strategy(Task(game), Budget(BUDGETS[-1]), rng)
                best = spend(search, problem, BUDGETS[-1])
                yield wanted | {
                    "start": best[0], "expert": expert, "programs": len(best),
                    "best": [best[min(n, len(best)) - 1] for n in BUDGETS],
                    "cpu_seconds": round(time.process_time() - began, 1),
                }  # fmt: skip


def _expert(game: Game, timing: Timing) -> float:
    """What the target's heuristic pass comes to."""
    seconds = expert_seconds(game, timing)
    assert seconds is not None, f"the heuristic pass has no time on {game.kernel} {game.shape}"
    return seconds


def _identity(run: Run) -> tuple[Any, ...]:
    names = ("scheme", "fold", "training", "target", "kernel", "shape", "player", "seed", "reader")
    return tuple(run[name] for name in names)


def read(path: Path) -> list[Run]:
    return held_out.read(path)[1]


def write(path: Path, runs: Sequence[Run]) -> None:
    lines = ",\n".join(json.dumps(run) for run in runs)
    write_text(path, f'{{"dojo carryover": 1, "budgets": {list(BUDGETS)}, "runs": [\n{lines}\n]}}\n')


# ---------------------------------------------------------------------------- the report


def section(runs: Sequence[Run], file: Path) -> str:
    """Tables for each scheme: fractions of the expert's speed, and how many times a rival's."""
    parts = []
    for scheme in held_out.schemes(runs):
        of_policy = [r for r in runs if r["player"] == "policy" and r["scheme"] == scheme]
        kernels = {run["kernel"] for run in of_policy}
        taught = {(r["fold"], r["training"], r["reader"]): r["taught"] for r in of_policy}
        names = sorted({fold for fold, _, _ in taught})
        trainings = len({training for _, training, _ in taught})
        parts.append(
            f"With {held_out.WORDS[scheme]} left out of what was learned on (folds {', '.join(names)}; "
            f"training seeds: {trainings}; {len(kernels)} kernels; "
            f"{sum(taught.values()) / len(taught):,.0f} programs measured to learn in each). "
            "Fraction of the expert's speed, geometric mean over kernels, with its 95% interval:"
        )
        relevant = held_out.of_scheme(runs, scheme)
        parts += [_fractions(relevant), _rivals(relevant), _kernels(relevant)]
    return "\n\n".join(parts)


def _fractions(runs: Sequence[Run]) -> str:
    rows = [
        "| player | runs | " + " | ".join(f"at {n}" for n in BUDGETS) + " |",
        "|---|---:|" + "---:|" * len(BUDGETS),
    ]
    for curve in held_out.curves(BUDGETS, runs):
        points = zip(curve.mean, curve.low, curve.high, strict=True)
        cells = ["{:.2f} ({:.2f} to {:.2f})".format(*point) for point in points]
        rows.append(f"| {curve.player} | {curve.runs} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _rivals(runs: Sequence[Run]) -> str:
    """How many times as fast what the policy finds is as what each other player finds, at the last budget."""
    players = held_out.by_player(runs)
    rows = [f"| at {BUDGETS[-1]} | against | times as fast (95%) |", "|---|---|---:|"]
    for name in (p for p in players if p.startswith("policy")):
        for rival in (p for p in players if not p.startswith("policy")):
            theirs: dict[str, list[float]] = defaultdict(list)
            for each in players[rival]:
                theirs[each["kernel"]].append(math.log(each["best"][-1]))
            ratios: dict[str, list[float]] = defaultdict(list)
            for each in players[name]:
                if other := theirs.get(each["kernel"]):
                    ratios[each["kernel"]].append(sum(other) / len(other) - math.log(each["best"][-1]))
            if ratios:
                times = "{:.2f} ({:.2f} to {:.2f})".format(*interval(list(ratios.values())))
                rows.append(f"| {name} | {rival} | {times} |")
    return "\n".join(rows)


def _kernels(runs: Sequence[Run]) -> str:
    """The best of each player's runs on each kernel, as fractions of the expert's speed in the median."""
    players = held_out.by_player(runs)
    rows = ["| kernel | " + " | ".join(players) + " |", "|---|" + "---:|" * len(players)]
    for kernel in dict.fromkeys(run["kernel"] for run in runs):
        cells = []
        for own in players.values():
            fractions = sorted(r["expert"] / r["best"][-1] for r in own if r["kernel"] == kernel)
            cells.append(f"{fractions[len(fractions) // 2]:.2f}" if fractions else "–")
        rows.append(f"| {kernel} | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
