"""PerfLLM in reading order: network, learner, actions, player. What can be switched off is in settings.py,
the loop around it in training.py.

State: the embedding of the program. Action: the embeddings before and after it; to stop is the same one
twice. Reward: c/T after every move, the speed-up. Max Q-learning: the value of an action is the best reward
that is still to come, not the sum of all. Sources: PerfDojo, SC '25, section 3; double DQN: van Hasselt
2016; dueling: Wang 2016; symlog: Hafner 2023; targets that are at least what came: optimality tightening, He
2017; episodes from good states met before: Go-Explore, Ecoffet 2021.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from agents.agent import Budget, Proposals, Task, Thought
from agents.perfllm import checkpoint
from agents.perfllm.actions import actions_in_turn
from agents.perfllm.adam import Adam
from agents.perfllm.encoders import Encoder, encoder
from agents.perfllm.settings import Settings
from agents.trail import Trail
from dojo_core.game import Step
from dojo_core.moves.core import REGISTRY
from dojo_core.moves.notation import parse_move

NUMBER_OF = {kind: number for number, kind in enumerate(sorted(REGISTRY), 1)}  # of each kind of move
STOP = 0  # the number of this action in every position
MOST_STOPS = 7  # in a row, of one episode after the other
ELITISM = 3.0  # an episode begins 8 times less often at a program twice as slow

# ---------------------------------------------------------------------------- the network


class QNetwork(nn.Module):
    """Q(s, a) from two embeddings. Dueling: V(s) + A(s, a) − A(s, stop), so that V is the value of stopping;
    the mean over actions, which Wang et al. take off, would depend on which actions there happen to be."""

    def __init__(self, size: int, hidden: int, dueling: bool, kinds: bool = False) -> None:
        super().__init__()
        self.dueling = dueling
        self.kind = nn.Embedding(1 + len(NUMBER_OF), hidden) if kinds else None
        self.before, self.after = nn.Linear(size, hidden), nn.Linear(size, hidden, bias=False)
        self.norm, self.deep, self.advantage = (
            nn.LayerNorm(hidden),
            nn.Linear(hidden, hidden),
            nn.Linear(hidden, 1),
        )
        self.value = nn.Sequential(
            nn.Linear(size, hidden), nn.LayerNorm(hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 1),
        )  # fmt: skip

    def forward(self, state: Tensor, actions: Tensor, kinds: Tensor | None = None) -> Tensor:
        """state [rows, size], actions [rows, n, size], the embeddings after them, and their kinds [rows, n],
        0 to stop and where they are not known → [rows, n]."""
        if kinds is None:
            kinds = torch.zeros(actions.shape[:2], dtype=torch.long)
        if not self.dueling:
            return self._pairs(state, actions, kinds)
        stop = self._pairs(state, state[:, None], torch.zeros_like(kinds[:, :1]))
        over_stopping: Tensor = self._pairs(state, actions, kinds) - stop
        return over_stopping + self.value(state)

    def _pairs(self, state: Tensor, actions: Tensor, kinds: Tensor) -> Tensor:
        pair = self.before(state)[:, None] + self.after(actions)
        x = torch.relu(self.norm(pair if self.kind is None else pair + self.kind(kinds)))
        advantages: Tensor = self.advantage(torch.relu(self.deep(x)))[..., 0]
        return advantages


# ---------------------------------------------------------------------------- the learner


@dataclass(frozen=True)
class Choice:
    """A position and its actions as embeddings: float16 [n, size], the first of them the position itself."""

    embeddings: Tensor
    moves: tuple[str, ...] = ()  # of the actions after the first

    @cached_property
    def kinds(self) -> Tensor:
        """The kind of move of each action, 0 to stop and where it is not known: int64 [n]."""
        kinds = torch.zeros(len(self.embeddings), dtype=torch.long)
        for number, move in enumerate(self.moves, 1):
            kinds[number] = NUMBER_OF[move.split(" ", 1)[0]]
        return kinds


@dataclass(frozen=True)
class Transition:
    """What an action came to. ``after``: the position reached, or None where the episode ended."""

    position: str
    action: int
    reward: float
    after: str | None


class Learner:
    """Q-learning from transitions between positions; knows nothing of programs.

    ``choices`` has every position that a transition names. Whoever fills it keeps it.
    """

    def __init__(self, size: int, settings: Settings, seed: int) -> None:
        self.settings = settings
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.online = QNetwork(size, settings.hidden, settings.dueling, settings.kinds)
        self.target = QNetwork(size, settings.hidden, settings.dueling, settings.kinds)
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = Adam(self.online.parameters(), settings.rate)
        self.centre, self.spread = torch.zeros(size), torch.ones(size)
        self.choices: dict[str, Choice] = {}
        self.memory: list[Transition] = []
        self._reached: dict[tuple[str, int], float] | None = None  # None: to be made anew
        self.updates = 0

    def set_scale(self, choices: Sequence[Choice]) -> None:
        """Scale embeddings by what moves change: a move changes little of a program's embedding."""
        rows = [c.embeddings.float() for c in choices]
        self.centre = torch.stack([r[0] for r in rows]).mean(0)
        changes = torch.cat([r - r[0] for r in rows])
        spread = changes.square().mean(0).sqrt()
        self.spread = spread.clamp_min(0.1 * float(spread.mean()) + 1e-6)

    @torch.inference_mode()
    def values(self, choice: Choice) -> Tensor:
        """Q of every action of a position, as rewards are: float32 [n]."""
        embedded = self._scaled(choice.embeddings)[None]
        return self._outside(self.online(embedded[:, 0], embedded, choice.kinds[None]))[0]

    def remember(self, transition: Transition) -> None:
        self.memory.append(transition)
        self._reached = None
        capacity = self.settings.capacity if self.settings.replay else self.settings.environments
        if len(self.memory) > capacity:
            del self.memory[0]

    @property
    def reached(self) -> dict[tuple[str, int], float]:
        """By position and action, what is known to come of it: the best of the lines of ``most_moves`` moves
        that moves in memory make, told as Q is. No action is worth less. Found by value iteration."""
        if self._reached is None:
            s = self.settings
            edges = {(t.position, t.action): (t.reward, t.after) for t in self.memory}
            values = {key: reward for key, (reward, _) in edges.items()}
            for _ in range(s.most_moves):
                best: dict[str, float] = {}
                for (position, _), value in values.items():
                    best[position] = max(value, best.get(position, 0.0))
                before = values
                values = {}
                for key, (reward, after) in edges.items():
                    # To stop there gives the reward once more.
                    later = s.gamma * max(reward, best.get(after, 0.0)) if after is not None else 0.0
                    values[key] = max(reward, later) if s.max_bellman else reward + later
                if values == before:
                    break
            self._reached = values
        return self._reached

    def learn(self, rng: random.Random) -> float | None:
        """One step of gradient descent on a batch from memory; the loss, None while there is too little."""
        settings = self.settings
        if settings.replay:
            if len(self.memory) < settings.warmup:
                return None
            batch = rng.choices(self.memory, k=settings.batch)
        else:  # the last ones, as they came
            batch = self.memory
        states, actions, kinds, _ = self._stacked([t.position for t in batch])
        chosen = torch.arange(len(batch)), torch.tensor([t.action for t in batch])
        guessed = self.online(states, actions[chosen][:, None], kinds[chosen][:, None])[:, 0]
        wanted = self._inside(self._targets(batch))
        loss = nn.functional.smooth_l1_loss(guessed, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), settings.clip)
        self.optimizer.step()
        self.updates += 1
        if not settings.target_network or self.updates % settings.target_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()

    @torch.no_grad()
    def _targets(self, batch: Sequence[Transition]) -> Tensor:
        """What Q should have been: max(r, γ·Q(s', a')), or r + γ·Q(s', a') for plain Q-learning."""
        rewards = torch.tensor([t.reward for t in batch])
        going_on = [n for n, t in enumerate(batch) if t.after is not None]
        later = torch.zeros(len(batch))
        if going_on:
            states, actions, kinds, present = self._stacked([batch[n].after or "" for n in going_on])
            if self.settings.tried:
                present &= self._tried([batch[n].after or "" for n in going_on], present)
            judged = self.target(states, actions, kinds).masked_fill(~present, -math.inf)
            if self.settings.double:  # one network chooses, the other says what it is worth
                choosing = self.online(states, actions, kinds).masked_fill(~present, -math.inf)
                best = judged.gather(1, choosing.argmax(1, keepdim=True))[:, 0]
            else:
                best = judged.amax(1)
            later[going_on] = self._outside(best).where(present.any(1), 0.0)
            if self.settings.tried:  # to stop there gives the reward once more: that is known, and no guess
                later[going_on] = later[going_on].maximum(rewards[going_on])
        later = self.settings.gamma * later
        if not self.settings.max_bellman:
            targets = rewards + later
        else:
            targets = rewards.clone()
            targets[going_on] = torch.maximum(rewards, later)[going_on]
        if not self.settings.tightened:
            return targets
        least = [self.reached.get((t.position, t.action), -math.inf) for t in batch]
        return torch.maximum(targets, torch.tensor(least))

    def _stacked(self, keys: Sequence[str]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(states [rows, size], actions [rows, n, size], their kinds and which are present [rows, n])."""
        rows = [self._scaled(self.choices[key].embeddings) for key in keys]
        actions = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        kinds = nn.utils.rnn.pad_sequence([self.choices[key].kinds for key in keys], batch_first=True)
        present = torch.arange(actions.shape[1])[None] < torch.tensor([len(r) for r in rows])[:, None]
        return actions[:, 0], actions, kinds, present

    def _tried(self, keys: Sequence[str], present: Tensor) -> Tensor:
        """Which actions of these positions were tried [rows, n]. The best of many guesses is too high, and
        what one target takes from there the next takes again: what came of an action holds a guess down."""
        reached = self.reached
        rows = [[(key, n) in reached for n in range(present.shape[1])] for key in keys]
        return torch.tensor(rows, dtype=torch.bool)

    def _scaled(self, embeddings: Tensor) -> Tensor:
        return (embeddings.float() - self.centre) / self.spread

    def _inside(self, reward: Tensor) -> Tensor:
        """Rewards as the network tells them: speed-ups of 1.1 and of 50 are to be told apart alike."""
        return reward.sign() * reward.abs().log1p() if self.settings.symlog else reward

    def _outside(self, value: Tensor) -> Tensor:
        return value.sign() * value.abs().clamp_max(20.0).expm1() if self.settings.symlog else value

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All but ``choices``, for a checkpoint."""
        tensors = checkpoint.module_tensors("online", self.online) | {
            "centre": self.centre,
            "spread": self.spread,
            **checkpoint.module_tensors("target", self.target),
            **checkpoint.optimizer_tensors("optimizer", self.optimizer),
        }
        memory = [[t.position, t.action, t.reward, t.after] for t in self.memory]
        return tensors, {"updates": self.updates, "memory": memory, "kinds": list(NUMBER_OF)}

    def restore(self, tensors: Mapping[str, Tensor], data: Mapping[str, Any]) -> None:
        """Put ``state`` back, of those kinds of moves that there are today: packages bring others."""
        tensors = self._of_known_kinds(tensors, data.get("kinds", list(NUMBER_OF)))
        checkpoint.restore_module("online", self.online, tensors)
        checkpoint.restore_module("target", self.target, tensors)
        checkpoint.restore_optimizer("optimizer", self.optimizer, tensors)
        self.centre, self.spread = tensors["centre"], tensors["spread"]
        self.updates = data["updates"]
        self.memory, self._reached = [Transition(*entry) for entry in data["memory"]], None

    def _of_known_kinds(self, tensors: Mapping[str, Tensor], saved: Sequence[str]) -> Mapping[str, Tensor]:
        """What was learned of kinds of moves, a row each, in today's order; new ones begin with nothing."""
        if self.online.kind is None or saved == list(NUMBER_OF):
            return tensors
        number = [name for name, _ in self.online.named_parameters()].index("kind.weight")
        of_kinds = {"online.kind.weight", "target.kind.weight"}
        of_kinds |= {f"optimizer.{number}.{moment}" for moment in ("exp_avg", "exp_avg_sq")}
        renumbered = dict(tensors)
        for name in of_kinds & tensors.keys():
            rows = renumbered[name] = tensors[name].new_zeros((1 + len(NUMBER_OF), *tensors[name].shape[1:]))
            rows[0] = tensors[name][0]
            for kind, learned in zip(saved, tensors[name][1:], strict=True):
                if kind in NUMBER_OF:
                    rows[NUMBER_OF[kind]] = learned
        return renumbered


# ---------------------------------------------------------------------------- actions


def look(trail: Trail, embed: Encoder, most: int, seed: int) -> Choice:
    """The actions of a position: stop, and its legal moves; of those to the same program, one.

    Where there are more than ``most`` (0: no limit), as many are drawn, from each kind of move in turn, the
    same ones whenever the position is met. No hardware is asked.
    """
    rng = random.Random(f"{seed} {trail.program.hash}")
    actions = list(islice(actions_in_turn(trail, rng), most or None))
    embedded = embed([trail.program, *(program for program, _ in actions)])
    return Choice(embedded.half(), tuple(move for _, move in actions))


# ---------------------------------------------------------------------------- the player


@dataclass
class Episode:
    """One line being played. ``number`` counts from 1 over all tasks; it ends at ``until`` moves."""

    number: int
    task: int
    trail: Trail
    until: int


@dataclass(frozen=True)
class Played:
    """One action, as it is told: ``move`` None is to stop; ``q`` what the network expected of it, ``best_q``
    of the best action; ``known``: its program was measured before; ``ended``: no more of this episode."""

    episode: int
    task: int
    trail: Trail
    move: str | None
    q: float
    best_q: float
    epsilon: float
    explored: bool
    reward: float
    known: bool
    ended: bool


@dataclass
class _Pending:
    episode: Episode
    position: str
    action: int
    after: Trail
    q: float
    best_q: float
    explored: bool


@dataclass
class Player:
    """Plays several episodes side by side and learns from them.

    ``propose`` names the programs whose times it wants, none when the budget is spent; ``hear`` takes them,
    in seconds, infinite where one failed. The same seed and times give the same play.
    """

    tasks: Sequence[Task]
    embed: Encoder
    settings: Settings
    seed: int
    evaluations: int  # the budget: different programs, over all tasks
    times: dict[str, float] = field(default_factory=dict)  # by program hash
    rounds: int = 0
    losses: list[float] = field(default_factory=list)  # of the last round
    elite: dict[int, list[tuple[float, Trail]]] = field(default_factory=dict)  # the fastest of each task
    _episodes: list[Episode] = field(default_factory=list)
    _begun: int = 0
    _pending: list[_Pending] = field(default_factory=list)
    _stopped: list[Played] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = [Trail.at(task.game) for task in self.tasks]
        self.learner = Learner(self.embed.size, self.settings, self.seed)

    @property
    def epsilon(self) -> float:
        """From ``epsilon_first`` to ``epsilon_last`` over a share of the budget, in a straight line."""
        s = self.settings
        share = len(self.times) / max(1.0, s.epsilon_share * self.evaluations)
        return s.epsilon_first + (s.epsilon_last - s.epsilon_first) * min(1.0, share)

    def propose(self) -> list[tuple[int, Trail]]:
        """(task, line) of each program to be timed; the start programs first."""
        if not self.rounds:
            return list(enumerate(self.starts))
        if not self._episodes:
            if self._dead():
                return []
            self.learner.set_scale(
                [self._look(start) for n, start in enumerate(self.starts) if self._runs(n)]
            )
            self._episodes = [self._next() for _ in range(self.settings.environments)]
        rng = random.Random(f"{self.seed} {self.rounds} play")
        self._pending, self._stopped = [], []
        new: set[str] = set()
        for place in range(len(self._episodes)):
            if len(self.times) + len(new) >= self.evaluations:
                break  # the budget is spent
            for stops in range(MOST_STOPS + 1):  # who stops begins again at once, but not for ever
                pending = self._act(self._episodes[place], rng, stops < MOST_STOPS)
                if pending is not None:
                    self._pending.append(pending)
                    new |= {pending.after.program.hash} - self.times.keys()
                    break
                self._episodes[place] = self._next()
        return [(p.episode.task, p.after) for p in self._pending]

    @property
    def plans(self) -> list[tuple[str, str, float]]:
        """Of each program proposed: the hash of the one before, its own, and the Q of the move there."""
        return [(p.position, p.after.program.hash, p.q) for p in self._pending]

    def hear(self, seconds: Sequence[float]) -> list[Played]:
        """Take the times of what was proposed, learn, and tell what was played."""
        self.rounds += 1
        if self.rounds == 1:
            for start, took in zip(self.starts, seconds, strict=True):
                self.times[start.program.hash] = took
            return []
        played = self._stopped
        fresh = 0
        for pending, took in zip(self._pending, seconds, strict=True):
            known = pending.after.program.hash in self.times
            self.times.setdefault(pending.after.program.hash, took)
            fresh += not known
            played.append(self._result(pending, known))
        rng = random.Random(f"{self.seed} {self.rounds} learn")
        steps = self.settings.updates * max(1, fresh)  # a way that is known teaches little
        losses = [self.learner.learn(rng) for _ in range(steps)] if self.learner.memory else []
        self.losses = [loss for loss in losses if loss is not None]
        return played

    def play_greedily(self, task: Task) -> list[tuple[Trail, float]]:
        """The line that the network holds best, not learning: each position with the value expected."""
        trail = Trail.at(task.game)
        line: list[tuple[Trail, float]] = []
        seen = {trail.program.hash}
        for _ in range(self.settings.most_moves):
            choice = self._look(trail)
            values = self.learner.values(choice)
            for action in values.argsort(descending=True).tolist():
                if action == STOP:
                    return line
                after = self._moved(trail, choice.moves[action - 1])
                if after is not None and after.program.hash not in seen:
                    break
            else:
                return line
            trail = after
            seen.add(trail.program.hash)
            line.append((trail, float(values[action])))
        return line

    def speedup(self, task: int, program_hash: str) -> float:
        """c/T of a program whose time is known; 0 where it failed."""
        return self.times[self.starts[task].program.hash] / self.times[program_hash]

    def recall(self, task: int, trail: Trail, times: Mapping[str, float]) -> int:
        """Remember a recorded line's moves whose programs have recorded times; how many they were."""
        start = self.times[self.starts[task].program.hash]
        if not math.isfinite(start):
            return 0
        count = 0
        for at, step in enumerate(trail.steps):
            before, after = trail.upto(at), trail.upto(at + 1)
            took = times.get(after.program.hash)
            timed = before.program.hash in times or before.program.hash in self.times
            if took is None or not timed:
                continue
            choice = self._look(before)
            if str(step.move) in choice.moves:
                self._look(after)
                action = choice.moves.index(str(step.move)) + 1
                self.learner.remember(
                    Transition(before.program.hash, action, start / took, after.program.hash)
                )
                count += 1
        return count

    def _dead(self) -> bool:
        return not any(self._runs(n) for n in range(len(self.starts)))

    def _runs(self, task: int) -> bool:
        return math.isfinite(self.times[self.starts[task].program.hash])

    def _next(self) -> Episode:
        """An episode of the next task in turn: from its start, or from a fast program that was met."""
        settings = self.settings
        alive = [n for n in range(len(self.starts)) if self._runs(n)]
        task = alive[self._begun % len(alive)]
        self._begun += 1
        rng = random.Random(f"{self.seed} {self._begun} start")
        elite = self.elite.get(task)
        if not elite or rng.random() >= settings.restarts:
            return Episode(self._begun, task, self.starts[task], settings.episode_moves)
        [(_, trail)] = rng.choices(elite, [reward**ELITISM for reward, _ in elite])
        return Episode(self._begun, task, trail, len(trail.steps) + settings.restart_moves)

    def _rank(self, task: int, trail: Trail, reward: float) -> None:
        """Keep the line where its program is among the fastest of its task."""
        elite = self.elite.setdefault(task, [])
        if all(trail.program.hash != other.program.hash for _, other in elite):
            elite.append((reward, trail))
            elite.sort(key=lambda each: -each[0])
            del elite[self.settings.elite :]

    def _look(self, trail: Trail) -> Choice:
        key = trail.program.hash
        if key not in self.learner.choices:
            self.learner.choices[key] = look(trail, self.embed, self.settings.most_actions, self.seed)
        return self.learner.choices[key]

    def _act(self, episode: Episode, rng: random.Random, may_stop: bool) -> _Pending | None:
        """The ε-greedy action as a program to be timed; None where the episode ends here, which without
        ``may_stop`` is only where there is no move. Greedy is the best of a few drawn, or of all."""
        trail, epsilon = episode.trail, self.epsilon
        choice, key = self._look(trail), trail.program.hash
        values = self.learner.values(choice)
        explored = rng.random() < epsilon or not may_stop
        if explored:
            action = self._drawn(choice, rng, may_stop)
        else:
            sampled = {self._drawn(choice, rng, may_stop) for _ in range(self.settings.sampled)}
            action = self._chosen(key, values, sampled or range(len(values)))
        q, best_q = float(values[action]), float(values.max())
        after = self._moved(trail, choice.moves[action - 1]) if action != STOP else None
        if after is not None:
            return _Pending(episode, key, action, after, q, best_q, explored)
        reward = self.speedup(episode.task, key)
        self.learner.remember(Transition(key, STOP, reward, None))
        self._stopped.append(
            Played(
                episode.number, episode.task, trail, None, q, best_q, epsilon, explored, reward, True, True
            )
        )
        return None

    def _chosen(self, position: str, values: Tensor, among: Collection[int]) -> int:
        """The best of these actions, those never tried count for a little more; to stop is known."""
        reached = self.learner.reached

        def worth(action: int) -> float:
            value = float(values[action])
            known = action == STOP or (position, action) in reached
            return value if known else value + self.settings.novelty * abs(value)

        return max(sorted(among), key=worth)

    def _drawn(self, choice: Choice, rng: random.Random, may_stop: bool) -> int:
        """A random action; each kind of move, and to stop, equally likely."""
        kinds: dict[str, list[int]] = {"": [STOP]} if may_stop or not choice.moves else {}
        for number, text in enumerate(choice.moves, 1):
            kinds.setdefault(text.split(" ", 1)[0], []).append(number)
        return rng.choice(kinds[rng.choice(sorted(kinds))])

    def _moved(self, trail: Trail, move: str) -> Trail | None:
        return trail.extended(Step(parse_move(move), trail.born))

    def _result(self, pending: _Pending, known: bool) -> Played:
        """Remember what an action came to, and go on or begin the next episode."""
        episode, after = pending.episode, pending.after
        key, epsilon = after.program.hash, self.epsilon
        reward = self.speedup(episode.task, key)
        works = reward > 0
        if works:
            self._look(after)
            self._rank(episode.task, after, reward)
        self.learner.remember(Transition(pending.position, pending.action, reward, key if works else None))
        ended = not works or len(after.steps) >= episode.until
        if ended:
            self._episodes[self._episodes.index(episode)] = self._next()
        else:
            episode.trail = after
        move = str(after.moves[-1])
        return Played(
            episode.number, episode.task, after, move, pending.q, pending.best_q, epsilon, pending.explored,
            reward, known, ended,
        )  # fmt: skip

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All but the learner's choices, between ``hear`` and ``propose``."""
        tensors, learned = self.learner.state()
        episodes = [[e.number, e.task, list(map(str, e.trail.moves)), e.until] for e in self._episodes]
        times = {key: took if math.isfinite(took) else None for key, took in self.times.items()}
        elite = {
            str(task): [[reward, list(map(str, trail.moves))] for reward, trail in lines]
            for task, lines in self.elite.items()
        }
        data = {"rounds": self.rounds, "times": times, "begun": self._begun, "episodes": episodes}
        return tensors, data | {"elite": elite, "learner": learned}

    def restore(self, tensors: Mapping[str, Tensor], data: Mapping[str, Any]) -> None:
        """Put ``state`` back."""
        self.learner.restore(tensors, data["learner"])
        self.rounds, self._begun = data["rounds"], data["begun"]
        self.times = {key: math.inf if took is None else took for key, took in data["times"].items()}
        self._episodes = [
            Episode(number, task, self._replayed(task, moves), until)
            for number, task, moves, until in data["episodes"]
        ]
        self.elite = {
            int(task): [(reward, self._replayed(int(task), moves)) for reward, moves in lines]
            for task, lines in data["elite"].items()
        }

    def _replayed(self, task: int, moves: Sequence[str]) -> Trail:
        return self.starts[task].played(map(parse_move, moves))


def play(task: Task, budget: Budget, rng: random.Random, settings: Settings) -> Proposals:
    """The agent as every other: it proposes lines and hears what they cost."""
    torch.set_num_threads(settings.threads)
    player = Player([task], encoder(settings.encoder), settings, rng.getrandbits(32), budget.evaluations)
    while proposed := player.propose():
        for parent, child, q in player.plans:
            task.hear(Thought(child, parent, "tried", heat=player.epsilon, value=q))
        player.hear((yield [trail for _, trail in proposed]))
