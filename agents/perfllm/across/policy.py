"""The policy: how good stop and each move of a position look, from the program's text, the lines that a move
takes away and adds, and the move's own text.

Two readers stand behind one interface. ``NgramReader`` sums vectors of hashed n-grams, learned from nothing.
``LineReader`` sums the vectors that the pretrained encoder of lines has for lines (ir_encoder.py), its
weights as they are; the move's own text is read by n-grams there too, since the encoder knows programs alone.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from agents.perfllm.across import features
from agents.perfllm.across.features import BUCKETS, Bag
from agents.perfllm.across.guides import Actions
from agents.perfllm.adam import Adam
from agents.perfllm.ir_encoder import LineByLine, load
from agents.trail import Trail
from dojo_core.program.tree import Program

EPOCHS = 8
BATCH = 8  # positions
RATE = 3e-3
DECAY = 1e-4
CLIP = 5.0
BARE = 0.2  # share of examples shown without lines, so that the move's text alone tells something
RANKED = 0.1  # weight of the loss of ranks among siblings
NEAR = 1.05  # siblings within so much of each other have no rank


class Reader(Protocol):
    """What a network reads: plain values of programs and changes, kept with examples, and their vectors."""

    context_size: int
    change_size: int

    def context_of(self, program: Program) -> Any: ...

    def change_of(self, before: Program, move: str, after: Program) -> Any: ...

    def stop(self) -> Any: ...

    def bare(self, move: str) -> Any:
        """A change of which only the move's text is known: what its lines are is not asked."""
        ...

    def bared(self, change: Any) -> Any:
        """A change without its lines."""
        ...

    def contexts(self, read: Sequence[Any]) -> Tensor:
        """[programs, context_size]"""
        ...

    def changes(self, read: Sequence[Any]) -> Tensor:
        """[changes, change_size]"""
        ...


def _bags(table: nn.EmbeddingBag, bags: Sequence[Bag]) -> Tensor:
    offsets = np.cumsum([0, *(len(bag) for bag in bags[:-1])])
    numbers = np.fromiter((n for bag in bags for n in bag), np.int64)
    summed: Tensor = table(torch.from_numpy(numbers), torch.from_numpy(offsets))
    return summed


def _table(size: int) -> nn.EmbeddingBag:
    table = nn.EmbeddingBag(BUCKETS, size, mode="sum")
    nn.init.zeros_(table.weight)  # an n-gram that no example has says nothing: random vectors would be noise
    return table


class NgramReader(nn.Module):
    """Vectors of n-grams, summed; a table each for the program, removed and added lines, and the move."""

    def __init__(self, size: int = 32) -> None:
        super().__init__()
        self.context_size, self.change_size = size, 3 * size
        self.context, self.removed, self.added, self.move = (_table(size) for _ in range(4))

    def context_of(self, program: Program) -> Bag:
        return features.context_of(program)

    def change_of(self, before: Program, move: str, after: Program) -> features.Change:
        return features.change_of(before, move, after)

    def stop(self) -> features.Change:
        return features.STOP

    def bare(self, move: str) -> features.Change:
        return features.Change((), (), features.move_bag(move))

    def bared(self, change: features.Change) -> features.Change:
        return replace(change, removed=(), added=(), crossed=())

    def contexts(self, read: Sequence[Bag]) -> Tensor:
        return _bags(self.context, read) / 8  # sums over some sixty n-grams, about as large as one

    def changes(self, read: Sequence[features.Change]) -> Tensor:
        removed = _bags(self.removed, [change.removed for change in read]) / 4
        added = _bags(self.added, [change.added for change in read]) / 4
        moves = _bags(self.move, [change.move + change.crossed for change in read])
        return torch.cat([removed, added, moves], dim=1)


@dataclass(frozen=True)
class LineChange:
    """``removed`` and ``added``: sums of the vectors of lines, float16 [vector size]; ``move`` and what it
    crosses as n-grams."""

    removed: Tensor
    added: Tensor
    move: Bag
    crossed: Bag = ()


class LineReader(nn.Module):
    """Vectors of lines by the pretrained encoder; what a move changes is a difference of sums."""

    def __init__(self, size: int = 48) -> None:
        super().__init__()
        # Held outside the module's parameters: its weights come with the Dojo, and stay as they are.
        self._lines = [LineByLine(load())]
        vector = self._lines[0].line_size
        self.context_size, self.change_size = size, 3 * size
        self.context, self.removed, self.added = (
            nn.Sequential(nn.LayerNorm(vector), nn.Linear(vector, size)) for _ in range(3)
        )
        self.move = _table(size)

    def context_of(self, program: Program) -> Tensor:
        return self._summed(self._lines[0].known(program.text))

    def change_of(self, before: Program, move: str, after: Program) -> LineChange:
        old, new = Counter(self._lines[0].known(before.text)), Counter(self._lines[0].known(after.text))
        by_text = features.change_of(before, move, after)
        return LineChange(
            self._summed((old - new).elements()), self._summed((new - old).elements()),
            by_text.move, by_text.crossed,
        )  # fmt: skip

    def stop(self) -> LineChange:
        return LineChange(self._summed(()), self._summed(()), features.STOP.move)

    def bare(self, move: str) -> LineChange:
        return LineChange(self._summed(()), self._summed(()), features.move_bag(move))

    def bared(self, change: LineChange) -> LineChange:
        return LineChange(self._summed(()), self._summed(()), change.move)

    def _summed(self, lines: Any) -> Tensor:
        return self._lines[0].summed(tuple(lines)).half()

    def contexts(self, read: Sequence[Tensor]) -> Tensor:
        return self.context(torch.stack(list(read)).float())

    def changes(self, read: Sequence[LineChange]) -> Tensor:
        removed = self.removed(torch.stack([change.removed for change in read]).float())
        added = self.added(torch.stack([change.added for change in read]).float())
        moves = _bags(self.move, [change.move + change.crossed for change in read])
        return torch.cat([removed, added, moves], dim=1)


READERS: dict[str, Callable[[], Reader]] = {"ngrams": NgramReader, "lines": LineReader}


@dataclass(frozen=True)
class Example:
    """A position of a good line: the first of ``changes`` is what the line plays there, to stop at its end;
    the others were legal too, but for those that the line plays later.

    ``ranks``: pairs (faster, slower) of changes, by the best that a search found behind each; of a position
    without a good move there are only these, and ``taught`` is False.
    """

    context: Any
    changes: tuple[Any, ...]
    ranks: tuple[tuple[int, int], ...] = ()
    taught: bool = True


class Policy(nn.Module):
    """Logits of changes, each in its context; ``weigh`` is a guide (guides.py). ``lines``: the best line of
    each problem that it was taught, from which the player takes moves (lines.py)."""

    lines: tuple[tuple[str, ...], ...] = ()
    examples = 0  # that it was taught

    def __init__(self, reader: str = "ngrams", hidden: int = 96, dropout: float = 0.1) -> None:
        super().__init__()
        self.reads, self.reader = reader, READERS[reader]()
        context, change = self.reader.context_size, self.reader.change_size
        self.before = nn.Sequential(nn.LayerNorm(context), nn.Linear(context, hidden))
        self.change = nn.Linear(change, hidden)
        self.drop, self.norm = nn.Dropout(dropout), nn.LayerNorm(hidden)
        self.deep = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.plain = nn.Linear(change, 1)

    def forward(self, examples: Sequence[Example]) -> Tensor:
        """Logits of all changes of all examples, one example after the other: [changes]."""
        counts = torch.tensor([len(example.changes) for example in examples])
        owner = torch.repeat_interleave(torch.arange(len(examples)), counts)
        before = self.before(self.reader.contexts([example.context for example in examples]))
        change = self.reader.changes([change for example in examples for change in example.changes])
        x = torch.relu(self.norm(self.drop(before[owner] + self.change(change))))
        logits: Tensor = (self.deep(x) + self.plain(change))[:, 0]
        return logits

    @torch.inference_mode()
    def weigh(self, trail: Trail, actions: Actions) -> np.ndarray:
        """As ``guides.Guide`` asks."""
        before = trail.program
        changes = [self.reader.change_of(before, move, after) for after, move in actions]
        example = Example(self.reader.context_of(before), (self.reader.stop(), *changes))
        return self([example]).double().numpy()

    @torch.inference_mode()
    def glance(self, program: Program, moves: Sequence[str]) -> np.ndarray:
        """Logits of moves by their text alone, whether they are legal or not: float64 [moves]."""
        bare = tuple(self.reader.bare(move) for move in moves)
        return self([Example(self.reader.context_of(program), bare)]).double().numpy()


def trained(examples: Sequence[Example], seed: int, reader: str = "ngrams", epochs: int = EPOCHS) -> Policy:
    """A policy taught what good lines play: cross-entropy over the changes of each position, and a logistic
    loss for each pair of siblings in the wrong order."""
    rng = random.Random(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy = Policy(reader)
        optimizer = Adam(policy.parameters(), RATE, decay=DECAY)
        order = list(range(len(examples)))
        steps = max(1, epochs * -(-len(order) // BATCH))
        step = 0
        for _ in range(epochs):
            rng.shuffle(order)
            for begin in range(0, len(order), BATCH):
                batch = [examples[n] for n in order[begin : begin + BATCH]]
                batch = [_bared(each, policy.reader) if rng.random() < BARE else each for each in batch]
                loss = _loss(policy(batch), batch)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(policy.parameters(), CLIP)
                optimizer.rate = RATE * _warmed(step / steps)
                optimizer.step()
                step += 1
    return policy.eval()


def _bared(example: Example, reader: Reader) -> Example:
    return replace(example, changes=tuple(map(reader.bared, example.changes)))


def _warmed(share: float) -> float:
    """The rate rises over the first three tenths of training, then falls to nothing along a cosine."""
    if share < 0.3:
        return 0.04 + 0.96 * share / 0.3
    return 0.5 + 0.5 * math.cos(math.pi * (share - 0.3) / 0.7)


def _loss(logits: Tensor, batch: Sequence[Example]) -> Tensor:
    losses = []
    at = 0
    for example in batch:
        own = logits[at : at + len(example.changes)]
        at += len(example.changes)
        if example.taught:
            losses.append(-torch.log_softmax(own, 0)[0])
        if example.ranks:
            faster, slower = torch.tensor(example.ranks).T
            losses.append(RANKED * nn.functional.softplus(own[slower] - own[faster]).mean())
    return torch.stack(losses).sum() / len(batch)
