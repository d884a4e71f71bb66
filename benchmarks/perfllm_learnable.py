"""What 300 moves teach about a 301st: how far any learner could get with what an agent sees in a run.

From this machine's records: every move between two programs that were both timed. How many moves change the
time at all, by how much a time varies when it is taken again, and how well ridge regression on some of the
moves ranks the others, by what it is told of a move.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import NamedTuple

import torch
from torch import Tensor

from agents.perfllm.encoders import Encoder, encoder
from agents.perfllm.probing import ridge_fit
from agents.perfllm.settings import EncoderSettings
from agents.search.cost_model import rank_correlation
from dojo_core import parse
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.records import Record
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.measurer import Measurer

TAUGHT = 300  # moves
DRAWN = 3  # times, which moves those are
AGAIN = 24  # programs of a kernel that are timed twice
RIDGE = 0.1
FURTHEST = 2.0  # e^2: by how much a move counts as faster or slower at most
KIND, PAIR, BAG = "its kind", "both embeddings", "bag of tokens"


class Moved(NamedTuple):
    """A move between two programs, by their hashes: its kind, and log(time before / time after)."""

    kind: str
    before: str
    after: str
    gain: float


@dataclass(frozen=True)
class Learnable:
    """Of one kernel. Shares of the moves that made it so much faster or slower; ``noise``: the standard
    deviation of log(time) of one program; ``correlation``: by what is told of a move."""

    kernel: str
    shape: str
    moves: int
    faster: float
    much_faster: float
    slower: float
    noise: float
    correlation: dict[str, float] = field(default_factory=dict)


def learnable(game: Game, shape: str, records: Sequence[Record], measurer: Measurer) -> Learnable:
    """Of the kernel of a game, from the records of its start program. Times ``AGAIN`` programs twice."""
    found, programs = moves_between(records)
    gains = [move.gain for move in found]
    return Learnable(
        game.kernel,
        shape,
        len(found),
        mean(gain > math.log(1.05) for gain in gains),
        mean(gain > math.log(1.3) for gain in gains),
        mean(gain < -math.log(1.05) for gain in gains),
        noise(game, list(programs.values()), measurer),
        correlations(found, programs),
    )


def moves_between(records: Sequence[Record]) -> tuple[list[Moved], dict[str, Program]]:
    """The moves whose line and whose line before it were both timed in a search; their programs by hash."""
    timed = {
        tuple(r.line.splitlines()): r
        for r in records
        if r.effort == Effort.QUICK.label and r.status == "ok" and r.seconds
    }
    found, used = [], {}
    for line, after in timed.items():
        before = timed.get(line[:-1]) if line else None
        if before is not None and before.program_hash != after.program_hash:
            assert before.seconds and after.seconds
            gain = math.log(before.seconds / after.seconds)
            found.append(Moved(line[-1].split()[0], before.program_hash, after.program_hash, gain))
            used |= {r.program_hash: r.program_text for r in (before, after)}
    return found, {key: parse(text) for key, text in used.items()}


def noise(game: Game, programs: Sequence[Program], measurer: Measurer) -> float:
    """How much a time of the search's kind varies: of programs timed twice, as many others in between."""
    drawn = random.Random(0).sample(programs, min(AGAIN, len(programs)))
    workload = Workload(game.start, game.kernel, game.policy, game.target)
    first, second = (measurer.measure(workload, drawn, Effort.QUICK, fresh=True) for _ in range(2))
    pairs = [(a.seconds, b.seconds) for a, b in zip(first, second, strict=True)]
    changes = [math.log(a / b) for a, b in pairs if a and b]
    return math.sqrt(mean(change**2 for change in changes) / 2)


def correlations(found: Sequence[Moved], programs: Mapping[str, Program]) -> dict[str, float]:
    """The rank correlation of what a regression on ``TAUGHT`` moves expects of the others with what came."""
    gains = torch.tensor([move.gain for move in found]).clamp(-FURTHEST, FURTHEST).double()
    kinds = sorted({move.kind for move in found})
    kind = torch.tensor([[move.kind == each for each in kinds] for move in found]).double()
    pair = _changes(found, programs, encoder(EncoderSettings()))
    bag = _changes(found, programs, encoder(EncoderSettings("bag")))
    told = {KIND: kind, PAIR: pair, BAG: bag, f"{KIND} and {BAG}": torch.cat([kind, bag], 1)}
    return {name: mean(_ranked(rows, gains, draw) for draw in range(DRAWN)) for name, rows in told.items()}


def _changes(found: Sequence[Moved], programs: Mapping[str, Program], embed: Encoder) -> Tensor:
    """The embedding before each move, and what the move changes of it: [moves, 2·size]."""
    rows = dict(zip(programs, embed(list(programs.values())).double(), strict=True))
    before = torch.stack([rows[move.before] for move in found])
    after = torch.stack([rows[move.after] for move in found])
    return torch.cat([before, after - before], 1)


def _ranked(rows: Tensor, gains: Tensor, draw: int) -> float:
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(draw))
    taught, rest = order[:TAUGHT], order[TAUGHT:]
    guessed = ridge_fit(rows[taught], gains[taught], RIDGE, rows[rest])
    return rank_correlation(guessed.numpy(), gains[rest].numpy())
