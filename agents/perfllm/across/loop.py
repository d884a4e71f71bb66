"""The loop: teachers search, their lines are minimised, a policy learns from them and guides the next search.

A run is a folder: ``run.json`` (what decides it), ``rounds.jsonl`` (what each teacher found in each round,
for people too), ``costs/`` (every time, kept as it comes), ``policy-N`` (weights after round N). A run that
was killed goes on: a teacher that ended is not run again, one that was cut off takes its times from there.
"""

from __future__ import annotations

import fcntl
import json
import math
import random
import shutil
import statistics
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agents.agent import Proposals
from agents.perfllm.across.examples import Line, examples_of, siblings_of
from agents.perfllm.across.guides import Guide, kind_of
from agents.perfllm.across.lines import NOTHING, minimised
from agents.perfllm.across.policy import Example, Policy, trained
from agents.perfllm.across.problem import Costs, Problem, spend
from agents.perfllm.across.saved import load, parsed, save
from agents.perfllm.across.search import TEACHER, UNSURE, Position, Search, SearchSettings
from agents.timing import Timing
from agents.trail import Trail
from dojo_core import kernels
from dojo_core.bounded_json import NotJson, read_object
from dojo_core.files import naming, write_text
from dojo_core.game import Game
from dojo_core.moves.notation import parse_move
from dojo_core.package_data import data_path
from dojo_core.targets.registry import backend
from dojo_core.targets.registry import target as target_named

COUNTED = data_path("agents", "perfllm", "across", "kernels.toml")
MEASURED = data_path("agents", "perfllm", "across", "kernels_measured.toml")
KEPT = 3  # lines of a problem that are taught
NEAR_BEST = 1.05  # of the fastest, a line that is taught takes no longer
WORTH = 0.97  # of the start, a line that is taught takes at most so much
COMPILE_SECONDS = 4.0  # a program that takes longer fails: others could be tried in the time
ENOUGH = 1.02  # rounds end where teachers gain less, in the geometric mean

Key = tuple[str, str]  # a kernel and its shape
Entry = dict[str, Any]


def listed(target: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """Shapes by kernel by family: small ones where a target's times are counted, larger where measured."""
    with (COUNTED if backend(target).clock().exact else MEASURED).open("rb") as opened:
        families = tomllib.load(opened)
    return {
        family: {kernel: tuple(shapes) for kernel, shapes in of.items()} for family, of in families.items()
    }


def game_of(kernel: str, shape: str, target: str, policy: str = "reassoc") -> Game:
    """A kernel in a shape as the target starts it."""
    definition = kernels.get(kernel)
    start = target_named(target).start(definition.program(definition.shape(shape)))
    return Game.new(start, kernel, shape, target, policy)


@dataclass(frozen=True)
class Plan:
    """What decides a run beside its times. ``problems``: (kernel, shape) of each; ``blind`` and ``guided``:
    programs that a teacher measures in the first round and in each later one."""

    problems: tuple[tuple[str, str], ...]
    target: str
    seed: int = 0
    blind: int = 1000
    guided: int = 300
    rounds: int = 5  # after the blind one, at most
    reader: str = "ngrams"
    ranked: bool = True
    teacher: SearchSettings = TEACHER

    @staticmethod
    def of(kernels: Iterable[str], shapes: int, target: str, **others: Any) -> Plan:
        """So many shapes of each kernel of the target's list."""
        shapes_of = {k: s for of in listed(target).values() for k, s in of.items()}
        problems = [(kernel, shape) for kernel in kernels for shape in shapes_of[kernel][:shapes]]
        return Plan(tuple(problems), target, **others)


class Loop:
    """One run, begun anew with ``again``. Iterate over ``events`` once.

    Raises ValueError with a sentence where the folder holds another run.
    """

    def __init__(self, plan: Plan, timing: Timing, folder: Path, again: bool = False) -> None:
        self.plan, self.folder = plan, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "lock").open("a")  # held as long as this object lives, or its process
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"Another run goes on in {folder}: wait for it, or give another folder."
            ) from None
        if again:
            for name in ("run.json", "rounds.jsonl"):
                (folder / name).unlink(missing_ok=True)
            for weights in (folder / "costs", *folder.glob("policy-*")):
                shutil.rmtree(weights, ignore_errors=True)
        decided = json.loads(json.dumps(asdict(plan)))
        del decided["rounds"]  # a run may go on for more
        file = folder / "run.json"
        if file.exists() and read_object(file.read_bytes()) != decided:
            raise ValueError(f"{folder} holds another run: give another folder, or --again to begin anew.")
        write_text(file, json.dumps(decided, indent=1) + "\n")
        self._timing = timing
        self._measured = not backend(plan.target).clock().exact
        self._written = list(_entries(folder / "rounds.jsonl"))
        self._examples: dict[tuple[str, str, tuple[str, ...]], list[Example]] = {}

    def events(self) -> Iterator[Entry]:
        """What was found, teacher by teacher and round by round; what an earlier part found comes first."""
        policy: Policy | None = None
        found: dict[Key, list[Entry]] = {}
        for number in range(self.plan.rounds + 1):
            before = {problem: _best(entries) for problem, entries in found.items()}
            for problem in self.plan.problems:
                entry = self._known("teacher", number, problem)
                if entry is None:
                    entry = self._write(self._teach(number, problem, policy, found))
                found.setdefault(problem, []).append(entry)
                yield entry
            gains = [math.log(best / _best(found[problem])) for problem, best in before.items()]
            gain = math.exp(statistics.fmean(gains)) if gains else None
            policy, examples = self._learned(number, found)
            told = {"event": "round", "round": number, "gain": gain, "examples": examples}
            yield self._known("round", number, None) or self._write(told)
            if gain is not None and gain < ENOUGH:
                return

    def policy(self) -> Policy:
        """That of the last round. Raises ValueError where no round has ended."""
        policy = load(self.last_policy)
        if policy is None:
            raise ValueError(f"{self.folder} has no policy yet: let a round end first.")
        return policy

    @property
    def last_policy(self) -> Path:
        """The folder of the policy of the last round that has ended."""
        return self.folder / f"policy-{self._ended}"

    def teachers(self) -> list[Entry]:
        """What the teachers of rounds that have ended found."""
        return [e for e in self._written if e["event"] == "teacher" and e["round"] <= self._ended]

    def taught(self) -> list[Line]:
        """The lines that the last policy was taught."""
        found: dict[Key, list[Entry]] = {}
        for entry in self.teachers():
            found.setdefault((entry["kernel"], entry["shape"]), []).append(entry)
        return [line for entries in found.values() for line in _worth(entries)]

    @property
    def _ended(self) -> int:
        """The last round that has ended, −1 where none has."""
        return max((entry["round"] for entry in self._written if entry["event"] == "round"), default=-1)

    def _known(self, event: str, number: int, problem: Key | None) -> Entry | None:
        for entry in self._written:
            of = (entry["kernel"], entry["shape"]) if event == entry["event"] == "teacher" else None
            if (entry["event"], entry["round"], of) == (event, number, problem):
                return entry
        return None

    def _write(self, entry: Entry) -> Entry:
        path = self.folder / "rounds.jsonl"
        with naming(path), path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        self._written.append(entry)
        return entry

    def _teach(
        self, number: int, key: Key, policy: Policy | None, found: Mapping[Key, Sequence[Entry]]
    ) -> Entry:
        """One teacher: search from the start and from its earlier lines, with moves of the best lines of all
        others; then minimise the best."""
        kernel, shape = key
        game = game_of(kernel, shape, self.plan.target)
        problem = Problem(game, self._timing, Costs(self.folder / "costs" / f"{kernel}-{shape}.jsonl"))
        rng = random.Random(f"{self.plan.seed} {number} {kernel} {shape}")
        seeds = [problem.start.played(map(parse_move, line.moves)) for line in _worth(found.get(key, ()))]
        lore = parsed(_best_lines({other: entries for other, entries in found.items() if other != key}))
        guide: Guide | None = None if policy is None else policy.weigh
        glance = None if policy is None else policy.glance
        search = Search(
            problem.start, rng, guide, self.plan.teacher, seeds=seeds, lore=lore, glance=glance,
            measured=self._measured,
        )  # fmt: skip
        budget = self.plan.blind if policy is None else self.plan.guided
        best = spend(search.proposals(), problem, budget)
        lines = []
        spent = len(best)
        for position in _different(search.ranked(), UNSURE if self._measured else 1.0):
            kept: list[Trail] = []
            minimising = _minimising(position, rng, UNSURE if self._measured else NOTHING, kept)
            spent += len(spend(minimising, problem, 10 * self.plan.teacher.most_moves))
            trail = kept[0] if kept else position.trail
            [seconds] = problem.seconds([trail])
            lines.append(Line(seconds, tuple(map(str, trail.moves)), siblings_of(trail, search)))
        return {
            "event": "teacher", "round": number, "kernel": kernel, "shape": shape, "start": best[0],
            "best": min([best[-1], *(line.seconds for line in lines)]), "evaluations": spent,
            "lines": [line.entry() for line in sorted(lines, key=lambda each: each.seconds)],
        }  # fmt: skip

    def _learned(self, number: int, found: Mapping[Key, Sequence[Entry]]) -> tuple[Policy, int]:
        """The policy after a round, trained anew on the best lines of all rounds; of how many examples."""
        folder = self.folder / f"policy-{number}"
        known = load(folder)
        if known is not None:
            return known, known.examples
        reader = Policy(self.plan.reader).reader
        examples: list[Example] = []
        for (kernel, shape), entries in found.items():
            for line in _worth(entries):
                key = (kernel, shape, line.moves)
                if key not in self._examples:
                    start = Trail.at(game_of(kernel, shape, self.plan.target))
                    made = examples_of(start, line, reader, self.plan.teacher.most_actions)
                    self._examples[key] = made if self.plan.ranked else [replace(e, ranks=()) for e in made]
                examples += self._examples[key]
        policy = trained(examples, self.plan.seed, self.plan.reader)
        policy.lines, policy.examples = _best_lines(found), len(examples)
        save(policy, folder)
        read = load(folder)  # rounded as a run that goes on reads it
        assert read is not None
        return read, len(examples)


def told(entry: Entry) -> str:
    """An event as a line for people."""
    if entry["event"] == "round":
        gain = "" if entry["gain"] is None else f", teachers gained {entry['gain']:.3f} times"
        return f"round {entry['round']}: {entry['examples']} examples{gain}"
    faster = entry["start"] / entry["best"]
    name = f"{entry['kernel']} {entry['shape']}"
    return f"round {entry['round']}: {name} {faster:.2f} times as fast as its start"


def _entries(path: Path) -> Iterator[Entry]:
    """The entries of a file of JSON lines; what a killed process left half written is cut off."""
    whole = 0
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        try:
            entry = read_object(line)
        except NotJson:
            break
        whole += len(line)
        yield entry
    if path.exists():
        with path.open("a") as file:
            file.truncate(whole)


def _best(entries: Sequence[Entry]) -> float:
    return min(float(entry["best"]) for entry in entries)


def _worth(entries: Sequence[Entry]) -> list[Line]:
    """The best lines of a problem, of all rounds: near the fastest, and faster than the start; of those that
    have the same kinds of moves one, since they teach the same."""
    lines = {tuple(each["moves"]): Line.of(each) for entry in entries for each in entry["lines"]}
    ranked = sorted(lines.values(), key=lambda line: (line.seconds, len(line.moves)))
    most = min(NEAR_BEST * _best(entries), WORTH * entries[0]["start"]) if entries else 0.0
    kinds: dict[tuple[str, ...], Line] = {}
    for line in ranked:
        if line.seconds <= most:
            kinds.setdefault(tuple(sorted(map(kind_of, line.moves))), line)
    return list(kinds.values())[:KEPT]


def _best_lines(found: Mapping[Key, Sequence[Entry]]) -> tuple[tuple[str, ...], ...]:
    """The best line of each problem that has one; of those with the same kinds of moves one after the other
    one, since they lend the same."""
    lines: dict[tuple[str, ...], tuple[str, ...]] = {}
    for entries in found.values():
        for line in _worth(entries)[:1]:
            lines.setdefault(tuple(map(kind_of, line.moves)), line.moves)
    return tuple(lines.values())


def _different(ranked: Sequence[Position], margin: float) -> list[Position]:
    """The best programs near the fastest, of those that take the same time one."""
    different: list[Position] = []
    for position in ranked:
        if position.cost > NEAR_BEST * ranked[0].cost or len(different) == KEPT:
            break
        if not different or position.cost > margin * different[-1].cost:
            different.append(position)
    return different


def _minimising(position: Position, rng: random.Random, margin: float, kept: list[Trail]) -> Proposals:
    """``minimised`` as a strategy; the line goes into ``kept``."""
    kept.append((yield from minimised(position.trail, position.cost, rng, margin)))
