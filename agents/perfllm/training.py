"""Training PerfLLM on one kernel or several: what ``dojo train`` runs.

A run is a folder: ``events.jsonl`` (what happened, for people and pages), ``measurements.jsonl`` (every time,
kept before anybody hears of it), ``checkpoint`` and ``positions`` (the rest of the state: safetensors and
JSON). A run that was killed goes on from its checkpoint and takes the times after it from its log: what it
does is what it would have done. docs/perfllm.md tells the events.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from agents.agent import FINALISTS, IDLE, Control, Task
from agents.perfllm import checkpoint
from agents.perfllm.agent import Choice, Played, Player
from agents.perfllm.encoders import Encoder, encoder
from agents.perfllm.settings import EncoderSettings, Settings
from agents.run_log import LoggedTiming, RunKey, RunLog
from agents.timing import Timing
from agents.trail import Trail
from agents.tuning import game_of
from dojo_core.bounded_json import read_object
from dojo_core.files import naming
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort, Measurement
from dojo_core.measure.places import data_directory
from dojo_core.measure.records import Record, Records, SavedGame
from dojo_core.moves.core import IllegalMove
from dojo_core.moves.notation import MoveSyntax, parse_move

VERSION = 1
EVERY = 25  # evaluations between checkpoints
CLOCKED = ("elapsed", "evaluations_per_second")  # entries of events that another run would not repeat

Entry = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What decides a training run beside its times. ``budget``: programs measured for each kernel;
    ``recorded``: fill the memory from recorded measurements first."""

    games: tuple[Game, ...]
    settings: Settings
    budget: int = 200
    seed: int = 0
    recorded: bool = False

    def key(self, machine: str) -> RunKey:
        settings = json.dumps([asdict(self.settings), self.recorded], sort_keys=True)
        return RunKey(
            kernel="+".join(game.kernel or game.start.name for game in self.games),
            shape="+".join(game.shape for game in self.games),
            policy="+".join(game.policy for game in self.games),
            target=self.games[0].target,
            start="+".join(game.start.hash for game in self.games),
            before=tuple(f"{n} {move}" for n, game in enumerate(self.games) for move in Task(game).before),
            agent="perfllm training " + hashlib.sha256(settings.encode()).hexdigest()[:12],
            seed=self.seed,
            evaluations=self.budget,
            seconds=None,
            machine=machine,
        )

    def folder(self, machine: str) -> Path:
        """Where such a run lies, if not told otherwise."""
        key = self.key(machine)
        digest = hashlib.sha256(json.dumps(asdict(key)).encode()).hexdigest()[:12]
        names = "+".join(dict.fromkeys(game.kernel or game.start.name for game in self.games))
        return data_directory() / "training" / f"{names[:60]}-{self.seed}-{digest}"


class Training:
    """One run. Iterate over ``events`` once; ``control`` pauses and stops it from another thread.

    ``resumed`` tells from how many evaluations it goes on. Raises RunBusy while another process is at the
    run, ValueError with a sentence where the encoder or the checkpoint cannot be had.
    """

    def __init__(
        self,
        plan: Plan,
        timing: Timing,
        folder: Path | None = None,
        machine: str = "",
        again: bool = False,
        records: Records | None = None,
        embed: Encoder | None = None,
        every: int = EVERY,
    ) -> None:
        embed = embed or encoder(plan.settings.encoder)
        self.plan, self.control, self.every = plan, Control(), every
        self.folder = folder or plan.folder(machine)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._records, self._machine = records, machine
        key = plan.key(machine)
        self._log = RunLog(self.folder / "measurements.jsonl", key, again)
        if again:  # or a run killed before its first checkpoint would go on from that of the one before
            for name in ("checkpoint", "checkpoint.old", "positions"):
                shutil.rmtree(self.folder / name, ignore_errors=True)
        torch.set_num_threads(plan.settings.threads)
        self.tasks = [Task(game) for game in plan.games]
        self.player = Player(
            self.tasks, embed, plan.settings, plan.seed,
            plan.budget * len(self.tasks),
        )  # fmt: skip
        self._timing = LoggedTiming(self._log, timing, lambda: self.elapsed)
        self._began = time.monotonic() - self._log.spent
        self.verified: dict[
            str, tuple[int, Trail, Measurement]
        ] = {}  # verified programs, by hash: task, line, time
        self.best: dict[int, tuple[float, Trail]] = {}  # of each task
        self._chunks: list[int] = []
        self._open: dict[int, list[Played]] = {}  # episodes being played
        self.finished = False
        self._identity = key.name
        saved = checkpoint.read(self.folder / "checkpoint")
        if saved is not None and saved[1]["run"] != key.name:
            self._log.close()
            raise ValueError(f"{self.folder} holds another run: give another folder, or --again.")
        if saved is not None and saved[1]["encoder"] != embed.identity:
            self._log.close()
            raise ValueError(f"{self.folder} read with another encoder: begin anew with --again.")
        self._events = (self.folder / "events.jsonl").open("r+b" if saved else "w+b")
        if saved is not None:
            self._restore(*saved)
        self.resumed = len(self.player.times)

    @property
    def elapsed(self) -> float:
        """Seconds, without pauses."""
        return time.monotonic() - self._began - self.control.waited

    @property
    def starts(self) -> dict[str, float]:
        """Seconds of the start programs that were timed, by kernel."""
        timed = (
            (self._name(n), self.player.times.get(s.program.hash)) for n, s in enumerate(self.player.starts)
        )
        return {name: took for name, took in timed if took is not None and math.isfinite(took)}

    def close(self) -> None:
        self._events.close()
        self._log.close()

    # ------------------------------------------------------------------ the loop

    def events(self) -> Iterator[Entry]:
        """What happens, as it happens; each is in the file when it is told."""
        try:
            if self.finished:
                return
            if not self.player.rounds:
                yield self._write(self._run_entry())
                yield from self._round()
                if self.plan.recorded:
                    yield self._write({"event": "recorded", "transitions": self._recall()})
                self._save()
            idle = 0
            saved = len(self.player.times)
            while not self.control.stopped and idle < IDLE:
                before = len(self.player.times)
                self.control.wait()
                entries = list(self._round())
                yield from entries
                if not entries:
                    break
                idle = 0 if len(self.player.times) > before else idle + 1
                if len(self.player.times) - saved >= self.every:
                    saved = len(self.player.times)
                    self._save()
            if not self.control.stopped:
                self._save()  # what ends a run measures anew, so that it may be killed here too
                yield from self._finals()
                self.finished = True
                self._save()
        finally:
            self.close()

    def _round(self) -> Iterator[Entry]:
        """One batch of proposals: timed, learned from, told."""
        began, first = len(self.player.times), not self.player.rounds
        proposed = self.player.propose()
        plays_on = bool(proposed)
        seconds = self._measured(proposed, Effort.NORMAL if first else Effort.QUICK)
        if self.control.stopped or not plays_on:
            return
        known = set(self.player.times)
        played = self.player.hear(seconds)
        number = began
        for (task, trail), took in zip(proposed, seconds, strict=True):
            if math.isfinite(took) and (task not in self.best or took < self.best[task][0]):
                self.best[task] = (took, trail)
        if first:
            for task, start in enumerate(self.player.starts):
                yield self._write(self._start_entry(task, start))
            return
        for each in played:
            fresh = each.trail.program.hash not in known
            number += fresh
            known.add(each.trail.program.hash)
            yield self._write(self._move_entry(each, number))
            self._open.setdefault(each.episode, []).append(each)
            if each.ended:
                yield self._write(self._episode_entry(self._open.pop(each.episode)))
        yield self._write(self._learn_entry())

    def _measured(self, proposed: Sequence[tuple[int, Trail]], effort: Effort) -> list[float]:
        """Seconds of each, infinite where one failed; those that are known are not measured again."""
        times = dict(self.player.times)
        for task in dict.fromkeys(task for task, _ in proposed):
            new = {
                t.program.hash: t for number, t in proposed if number == task and t.program.hash not in times
            }
            for m in self._asked(task, list(new.values()), effort):
                works = m.seconds is not None and m.verified
                times[m.program_hash] = m.seconds if works and m.seconds else math.inf
                if works:
                    self.verified[m.program_hash] = (task, new[m.program_hash], m)
        return [times[t.program.hash] for _, t in proposed]

    def _asked(self, task: int, trails: Sequence[Trail], effort: Effort) -> list[Measurement]:
        if not trails:
            return []
        lines = {t.program.hash: "\n".join(map(str, self._line(task, t))) for t in trails}
        programs = [t.program for t in trails]
        workload = self.tasks[task].workload
        return self._timing.measure(workload, programs, lines, effort, lambda: self.control.stopped)

    def _line(self, task: int, trail: Trail) -> tuple[object, ...]:
        return (*self.tasks[task].before, *trail.moves)

    def _finals(self) -> Iterator[Entry]:
        """The best programs of each kernel and its start, timed once more: the best of these counts."""
        for task, start in enumerate(self.player.starts):
            timed = [(m.seconds or math.inf, trail) for n, trail, m in self.verified.values() if n == task]
            ranked = [trail for _, trail in sorted(timed, key=lambda pair: pair[0])][:FINALISTS]
            if not ranked:
                continue
            trails = ranked + [start] * (start.program.hash not in {t.program.hash for t in ranked})
            measured = self._asked(task, trails, Effort.FINAL)
            times = {m.program_hash: m.seconds for m in measured if m.seconds is not None and m.verified}
            if not times:
                continue
            best = min((t for t in trails if t.program.hash in times), key=lambda t: times[t.program.hash])
            seconds, first = times[best.program.hash], times.get(start.program.hash)
            self.best[task] = (seconds, best)
            self._keep(task, best)
            yield self._write({
                "event": "final", "kernel": self._name(task), "evaluation": len(self.player.times),
                "start": first, "best": seconds, "line": list(map(str, self._line(task, best))),
            })  # fmt: skip
        yield self._write({
            "event": "done", "evaluation": len(self.player.times), "updates": self.player.learner.updates,
            "elapsed": round(self.elapsed, 3),
        })  # fmt: skip

    def tried(self, games: Sequence[Game], timing: Timing) -> Iterator[Entry]:
        """The network as it is, played greedily on other kernels."""
        return played_greedily(self.player, games, timing, lambda: self.control.stopped)

    # ------------------------------------------------------------------ what is told

    def _write(self, entry: Entry) -> Entry:
        with naming(self.folder / "events.jsonl"):
            self._events.write(json.dumps(entry).encode() + b"\n")
            self._events.flush()
        return entry

    def _name(self, task: int) -> str:
        game = self.tasks[task].game
        return f"{game.kernel or game.start.name} {game.shape}".strip()

    def _run_entry(self) -> Entry:
        return {
            "event": "run", "version": VERSION, "kernels": [self._name(n) for n in range(len(self.tasks))],
            "policy": self.plan.games[0].policy, "budget": self.plan.budget, "seed": self.plan.seed,
            "encoder": self.player.embed.identity, "settings": asdict(self.plan.settings),
            "recorded": self.plan.recorded, "machine": self._machine,
        }  # fmt: skip

    def _start_entry(self, task: int, start: Trail) -> Entry:
        took = self.player.times[start.program.hash]
        return {
            "event": "start", "kernel": self._name(task), "program": start.program.hash,
            "seconds": took if math.isfinite(took) else None,
        }  # fmt: skip

    def _move_entry(self, played: Played, evaluation: int) -> Entry:
        took = self.player.times[played.trail.program.hash]
        best = self.best.get(played.task)
        return {
            "event": "move", "evaluation": evaluation, "episode": played.episode,
            "kernel": self._name(played.task), "move": played.move or "stop",
            "depth": len(played.trail.steps), "program": played.trail.program.hash,
            "seconds": took if math.isfinite(took) else None, "reward": played.reward, "q": played.q,
            "best_q": played.best_q, "explored": played.explored, "epsilon": round(played.epsilon, 4),
            "known": played.known, "best": None if best is None else best[0],
        }  # fmt: skip

    def _episode_entry(self, moves: Sequence[Played]) -> Entry:
        """What was expected after each move, and the best reward that then came, discounted as Q is."""
        gamma = self.plan.settings.gamma
        came = 0.0
        measured: list[float] = []
        for each in reversed(moves):
            later = gamma * came
            came = max(each.reward, later) if self.plan.settings.max_bellman else each.reward + later
            measured.append(round(came, 5))
        return {
            "event": "episode", "episode": moves[0].episode, "kernel": self._name(moves[0].task),
            "line": [m.move or "stop" for m in moves], "best_reward": max(m.reward for m in moves),
            "q": [round(m.q, 5) for m in moves], "measured": measured[::-1],
        }  # fmt: skip

    def _learn_entry(self) -> Entry:
        losses = self.player.losses
        count = len(self.player.times)
        return {
            "event": "learn", "round": self.player.rounds, "evaluation": count,
            "updates": self.player.learner.updates,
            "loss": round(sum(losses) / len(losses), 6) if losses else None,
            "epsilon": round(self.player.epsilon, 4), "elapsed": round(self.elapsed, 3),
            "evaluations_per_second": round(count / max(1e-9, self.elapsed), 3),
        }  # fmt: skip

    # ------------------------------------------------------------------ what is kept

    def _keep(self, task: int, best: Trail) -> None:
        if self._records is None:
            return
        game = game_of(self.plan.games[task], [*self.tasks[task].before, *best.moves], "perfllm")
        digest = hashlib.sha256(f"{self._identity} {task}".encode()).hexdigest()[:12]
        self._records.save_game(SavedGame(digest, "perfllm", game.kernel or "", game.title, game.to_text()))

    def _recall(self) -> int:
        """Fill the memory from what this machine's records hold of the kernels."""
        if self._records is None:
            return 0
        return sum(
            recalled(self._records, n, task, self.player, self._machine) for n, task in enumerate(self.tasks)
        )

    def _save(self) -> None:
        choices = self.player.learner.choices
        begun = sum(self._chunks)
        new = dict(list(choices.items())[begun:])
        if new:  # positions do not change: each is written once
            moves = {key: choice.moves for key, choice in new.items()}
            tensors = {key: choice.embeddings for key, choice in new.items()}
            checkpoint.write(self.folder / "positions" / str(begun), tensors, {"moves": moves})
            self._chunks.append(len(new))
        tensors, data = self.player.state()
        episodes = {
            str(number): [asdict_played(each) for each in moves] for number, moves in self._open.items()
        }
        checkpoint.write(self.folder / "checkpoint", tensors, {
            "dojo training": VERSION, "run": self._identity, "encoder": self.player.embed.identity,
            "player": data, "chunks": self._chunks,
            "events": self._events.tell(), "finished": self.finished, "open": episodes,
            "found": {k: [n, list(map(str, t.moves)), m.seconds] for k, (n, t, m) in self.verified.items()},
            "best": {str(n): [s, list(map(str, t.moves))] for n, (s, t) in self.best.items()},
        })  # fmt: skip

    def _restore(self, tensors: dict[str, Tensor], data: Mapping[str, Any]) -> None:
        self._chunks = list(data["chunks"])
        begun = 0
        for count in self._chunks:
            chunk = checkpoint.read(self.folder / "positions" / str(begun))
            if chunk is None:
                raise ValueError(f"{self.folder} lacks positions of its checkpoint: begin anew with --again.")
            for key, moves in chunk[1]["moves"].items():
                self.player.learner.choices[key] = Choice(chunk[0][key], tuple(moves))
            begun += count
        self.player.restore(tensors, data["player"])
        self.finished = data["finished"]
        for key, (task, moves, seconds) in data["found"].items():
            known = Measurement(key, "", "ok", seconds=seconds, median=seconds, verified=True, known=True)
            self.verified[key] = (task, self._replayed(task, moves), known)
        for number, (seconds, moves) in data["best"].items():
            self.best[int(number)] = (seconds, self._replayed(int(number), moves))
        for number, played in data["open"].items():
            self._open[int(number)] = [self._played(each) for each in played]
        self._events.seek(data["events"])
        self._events.truncate()

    def _replayed(self, task: int, moves: Sequence[str]) -> Trail:
        return self.player.starts[task].played(map(parse_move, moves))

    def _played(self, entry: Mapping[str, Any]) -> Played:
        return Played(**{**entry, "trail": self._replayed(entry["task"], entry["trail"])})


def played_greedily(
    player: Player, games: Sequence[Game], timing: Timing, stopped: Callable[[], bool]
) -> Iterator[Entry]:
    """What the player's network holds best on kernels, without learning; every position is measured."""
    for game in games:
        task = Task(game)
        start = Trail.at(game)
        line = player.play_greedily(task)
        trails = [start, *(trail for trail, _ in line)]
        texts = {t.program.hash: "\n".join(map(str, (*task.before, *t.moves))) for t in trails}
        measured = timing.measure(task.workload, [t.program for t in trails], texts, Effort.NORMAL, stopped)
        seconds = [m.seconds if m.verified else None for m in measured]
        worked = [took for took in seconds if took is not None]
        yield {
            "event": "tried", "kernel": game.title, "line": list(map(str, trails[-1].moves)),
            "expected": [round(value, 4) for _, value in line], "seconds": seconds,
            "start": seconds[0], "best": min(worked) if worked else None,
        }  # fmt: skip


def trained(folder: Path, games: Sequence[Game]) -> Player:
    """A player of these kernels with the network of a run's last checkpoint. Raises ValueError with a
    sentence where the folder has none, or its encoder cannot be had."""
    saved, events = checkpoint.read(folder / "checkpoint"), folder / "events.jsonl"
    if saved is None or not events.exists():
        raise ValueError(f"{folder} holds no checkpoint of a training run: dojo train names its folder.")
    tensors, data = saved
    with events.open(encoding="utf-8") as lines:
        head = next(lines, "")
    try:
        header = read_object(head, nonfinite=True)
        settings = Settings(
            **header["settings"] | {"encoder": EncoderSettings(**header["settings"]["encoder"])}
        )
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"{folder} was trained with settings of another version: train anew.") from None
    embed = encoder(settings.encoder)
    if embed.identity != data["encoder"]:
        raise ValueError(f"{folder} read with another encoder than there is now: train anew.")
    torch.set_num_threads(settings.threads)
    player = Player([Task(game) for game in games], embed, settings, header["seed"], 0)
    player.learner.restore(tensors, data["player"]["learner"])
    return player


def asdict_played(played: Played) -> dict[str, Any]:
    """As a checkpoint tells it."""
    return {**played.__dict__, "trail": list(map(str, played.trail.moves))}


def recalled(records: Records, number: int, task: Task, player: Player, machine: str, most: int = 200) -> int:
    """Remember what records of this machine tell of a kernel; how many moves that was.

    Only moves whose program was measured, from a program that was; the newest lines first.
    """
    start = task.game.start.hash
    matching: list[Record] = [
        record
        for _, record in records.measurements()
        if record.start_hash == start and record.fingerprint == machine and record.policy == task.game.policy
        and record.verified and record.seconds is not None
    ]  # fmt: skip
    times: dict[str, float] = {}
    for record in matching:
        times[record.program_hash] = min(record.seconds or math.inf, times.get(record.program_hash, math.inf))
    before = "\n".join(map(str, task.before))
    count = 0
    lines = dict.fromkeys(
        r.line for r in reversed(matching) if r.line.startswith(before) and r.line != before
    )
    for line in lines:
        if count >= most:
            break
        try:
            moves = [parse_move(text) for text in line[len(before) :].split("\n") if text]
        except (MoveSyntax, IllegalMove):
            continue
        count += player.recall(number, player.starts[number].played(moves), times)
    return count


def ignoring_clock(entry: Mapping[str, Any]) -> Entry:
    """An event without what the clock says: two runs of the same seed and times agree in it."""
    return {name: value for name, value in entry.items() if name not in CLOCKED}
