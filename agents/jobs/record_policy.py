"""Records what a policy makes of a kernel that it has never seen, for Watch: ``python -m
agents.jobs.record_policy LOOP KERNEL SHAPE`` (see --help). LOOP is the folder of a run of ``dojo train
--library``, or of ``benchmarks.carryover``, that has not learned on the kernel.

Three recordings: KERNEL-learned and KERNEL-unguided, the policy at play and the same search without what was
learned, side by side at one budget; KERNEL-line, the best line that the policy found, move by move. Each
tells what the policy said of each program. Where times are a model's, the same command records the same moves
and times, whatever else the machine does.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from agents.agent import Agent, Budget, Event, Proposals, Task, Thought, run
from agents.expert import EXPERT, expert_seconds
from agents.jobs import journal
from agents.jobs.recording import RECORDINGS, of_game
from agents.jobs.spec import JobSpec
from agents.perfllm.across.asked import familiar, said
from agents.perfllm.across.folders import told
from agents.perfllm.across.loop import game_of
from agents.perfllm.across.player import play_guided
from agents.perfllm.across.policy import Policy
from agents.perfllm.across.problem import Problem
from agents.perfllm.across.saved import load
from agents.players import AGENTS
from agents.timing import MachineTiming
from agents.trail import Trail
from dojo_core.bounded_json import read_object
from dojo_core.game import Game
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Records
from dojo_core.moves.core import Move
from dojo_core.service.learned import Learned
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.registry import backend
from dojo_core.wording import counted

GUIDED, UNGUIDED = "perfllm", "perfllm-unguided"


@dataclass(frozen=True)
class Recorder:
    """Writes recordings of one game, with the same words on where they come from."""

    game: Game
    policy: Policy
    words: str  # whether the policy has seen the kernel
    measurer: Measurer
    into: Path
    source: str

    def write(
        self, name: str, spec: JobSpec, entries: list[journal.Entry], learned: Mapping[str, Learned]
    ) -> None:
        lines = [journal.entry_line(entry) for entry in entries]
        expert = expert_seconds(self.game, MachineTiming(self.measurer, EXPERT))
        lines += [{"expert": expert}] if expert is not None else []
        lines += [journal.learned_line(program, said_then) for program, said_then in learned.items()]
        lines.append({"state": "done", "message": self.source})
        journal.save(self.into / f"{self.game.kernel}-{name}.jsonl", spec, lines)

    def said(self, trail: Trail) -> Learned:
        return said(self.policy, trail, self.words)

    def run(self, agent: Agent, name: str, budget: int, seed: int, beside: str = "") -> tuple[str, Event]:
        """A run; its id, and its last event."""
        timing = MachineTiming(self.measurer, agent.name)
        events = list(run(Task(self.game), agent, timing, Budget(budget), seed))
        lines = [journal.event_line(event, 0, number) for number, event in enumerate(events, 1)]
        spec = JobSpec.of(self.game, agent.name, seed, budget, beside=beside)
        trails = {event.program.hash: Trail.at(self.game).played(event.line) for event in events}
        learned = {program: self.said(trail) for program, trail in trails.items()}
        self.write(name, spec, list(map(journal.read_entry, lines)), learned)
        return spec.id, events[-1]

    def line(self, moves: tuple[Move, ...]) -> None:
        """A line move by move, each with the probability that the policy gave it."""
        played = Game.from_text(self.game.to_text())
        for move in moves:
            played.play(move)
        trail = Trail.at(self.game).played(moves)
        trails = [trail.upto(at) for at in range(len(trail.steps) + 1)]
        seconds = Problem(self.game, MachineTiming(self.measurer, GUIDED)).seconds(trails)
        times = {each.program.hash: took for each, took in zip(trails, seconds, strict=True)}
        recording = of_game(played, "line", times, GUIDED)
        learned = {each.program.hash: self.said(each) for each in trails}
        entries = list(recording.entries)
        for at, move in enumerate(moves, 1):
            before, after = trails[at - 1].program.hash, trails[at].program.hash
            chances = {each.move: each.probability for each in learned[before].moves}
            thought = Thought(after, before, "tried", chances.get(str(move)))
            entries[at] = replace(entries[at], thoughts=(thought,))
        self.write("line", recording.spec, entries, learned)


def guided(policy: Policy) -> Agent:
    """``perfllm`` with another policy than the one that comes with the Dojo."""

    def play(task: Task, budget: Budget, rng: random.Random) -> Proposals:
        return play_guided(policy, task, rng)

    return Agent(GUIDED, "", play)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("loop", type=Path)
    parser.add_argument("kernel")
    parser.add_argument("shape")
    parser.add_argument("--budget", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--into", type=Path, default=RECORDINGS)
    options = parser.parse_args()
    loop = told(options.loop)
    if options.kernel in {kernel for kernel, _ in loop.problems}:
        parser.error(f"{options.loop} has learned on {options.kernel}: name a kernel that it left out.")
    policy = load(options.loop / f"policy-{loop.rounds - 1}")
    if policy is None:
        parser.error(f"{options.loop} has no policy yet: let a round end first.")
    game = game_of(options.kernel, options.shape, loop.target)
    game.title = f"{options.kernel} {options.shape} on {loop.target}"
    origin = backend(loop.target).clock().origin
    where = read_object(origin.details.encode()).get("name") if origin else ""
    kernels = {kernel for kernel, _ in loop.problems}
    source = (
        f"Measured on {where or this_machine().summary}, {datetime.now():%Y-%m-%d}. The policy "
        f"has learned on {counted(len(kernels), 'other kernel')}, never on {options.kernel}."
    )
    with (
        tempfile.TemporaryDirectory() as home,
        Records(Path(home) / "records.sqlite") as records,
        Measurer(records) as measurer,
    ):
        words = familiar(options.kernel, options.shape, loop.problems)
        recorder = Recorder(game, policy, words, measurer, options.into, source)
        known, last = recorder.run(guided(policy), "learned", options.budget, options.seed)
        recorder.run(AGENTS[UNGUIDED], "unguided", options.budget, options.seed, beside=known)
        if last.best is None:
            parser.error("The policy found no program that works.")
        recorder.line(last.best.line)


if __name__ == "__main__":
    main()
