"""Pretraining of our own encoder on random walks (corpus.py), in one file to be read from top to bottom.

What it learns to tell, all of it counted and nothing measured:
- masked tokens of a line, from the line and from the lines around it;
- which kind of move leads from one position to the next, from the two embeddings: what an agent compares;
- the structure of the program (corpus.STRUCTURE), by one linear map from the embedding;
- how many legal moves of each kind there are, likewise.
Counts are told as logarithms, each scaled by how far it varies over the corpus: what varies little counts as
much as the rest. The logarithm of a run time is nearly linear in such counts, on kernels never seen too.
Arrays' numbers are shifted at random, so that no number means anything.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from agents.perfllm import checkpoint
from agents.perfllm.adam import Adam
from agents.perfllm.corpus import KINDS, STRUCTURE, Walk
from agents.perfllm.ir_encoder import IRConfig, IRModel
from agents.perfllm.lines import MASK, PAD, array_tokens, lines_of, vocabulary
from dojo_core.files import naming

Line = tuple[int, ...]
# What each loss counts: tokens and moves have hundreds and dozens of answers, their losses are larger.
SHARES = {"token": 0.2, "move": 0.3, "structure": 4.0, "legal": 2.0}


@dataclass(frozen=True)
class Settings:
    """What is learned (of ``SHARES``), how long and how fast. ``span``: neighbouring positions of one walk in
    a batch."""

    steps: int = 1500
    seed: int = 0
    objective: tuple[str, ...] = tuple(SHARES)
    walks: int = 6
    span: int = 4
    masked: int = 6  # programs of the batch with masked lines
    counted: int = 4  # positions with counts of legal moves, besides
    rate: float = 1e-3
    warmup: int = 100
    decay: float = 0.01


class Heads(nn.Module):
    """What is asked of the encoder while it learns; thrown away after."""

    def __init__(self, config: IRConfig, structure: Tensor, legal: Tensor) -> None:
        """``structure`` and ``legal``: those of the corpus [positions, counts]."""
        super().__init__()
        line, program = config.line_size, config.program_size
        self.structure_scale, self.legal_scale = _Scale(structure), _Scale(legal)
        self.token = nn.Sequential(nn.Linear(line + program, line), nn.GELU(), nn.LayerNorm(line))
        self.move = nn.Sequential(nn.Linear(3 * program, 256), nn.GELU(), nn.Linear(256, len(KINDS)))
        self.structure = nn.Linear(program, len(STRUCTURE))
        self.legal = nn.Linear(program, len(KINDS) + 1)


class _Scale(nn.Module):
    """Numbers less the mean of a corpus, divided by its standard deviation."""

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", rows.mean(0), persistent=False)
        self.register_buffer("spread", rows.std(0, correction=0).clamp_min(0.1), persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        scaled: Tensor = (rows - self.mean) / self.spread
        return scaled


@dataclass(frozen=True)
class _Example:
    """A position as lines, its labels, and the kind of the move that led to it (None: the first)."""

    lines: tuple[Line, ...]
    above: tuple[Line, ...]
    structure: tuple[float, ...]
    legal: tuple[int, ...] | None
    move: int | None


def pretrain(
    walks: Sequence[Walk],
    settings: Settings,
    folder: Path,
    report: Callable[[dict[str, float]], None],
    every: int = 50,
) -> IRModel:
    """Train, or go on from the checkpoint in ``folder``; kept ``every`` so many
    steps; ``report`` hears the losses of each."""
    torch.manual_seed(settings.seed)
    corpus = hashlib.sha256("".join(text for walk in walks for text in walk.texts).encode()).hexdigest()
    config = IRConfig()
    examples = [_examples(walk, config) for walk in walks]
    counted = [e for each in examples for e in each if e.legal is not None]
    model = IRModel(config)
    heads = Heads(
        config, torch.tensor([e.structure for each in examples for e in each]),
        torch.stack([legal_target(e.legal or ()) for e in counted]),
    )  # fmt: skip
    parameters = [*model.parameters(), *heads.parameters()]
    optimizer = Adam(parameters, settings.rate, betas=(0.9, 0.98), decay=settings.decay)
    begun = 0
    saved = checkpoint.read(folder / "checkpoint")
    if saved is not None:
        tensors, data = saved
        if (data["settings"], data.get("corpus")) != (json.loads(json.dumps(asdict(settings))), corpus):
            raise ValueError(
                f"{folder} has a run with other settings or another corpus: give another folder, or --again."
            )
        checkpoint.restore_module("model", model, tensors)
        checkpoint.restore_module("heads", heads, tensors)
        checkpoint.restore_optimizer("optimizer", optimizer, tensors)
        begun = int(data["step"])
    model.train()
    heads.train()
    since = time.monotonic()
    for step in range(begun, settings.steps):
        rng = random.Random(f"{settings.seed} {step}")  # a run that goes on draws what it would have drawn
        optimizer.rate = settings.rate * _schedule(step, settings)
        losses = _losses(model, heads, _batch(examples, counted, settings, rng), settings, rng)
        asked = [SHARES[name] * each for name, each in losses.items() if name in settings.objective]
        if asked:  # a batch may have no label of what alone is asked for
            optimizer.zero_grad()
            torch.stack(asked).sum().backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
        seconds = round(time.monotonic() - since, 1)
        report({"step": step + 1, "seconds": seconds, **{k: round(v.item(), 4) for k, v in losses.items()}})
        if (step + 1) % every == 0 or step + 1 == settings.steps:
            tensors = checkpoint.module_tensors("model", model) | checkpoint.module_tensors("heads", heads)
            tensors |= checkpoint.optimizer_tensors("optimizer", optimizer)
            data = {"settings": asdict(settings), "corpus": corpus, "step": step + 1}
            checkpoint.write(folder / "checkpoint", tensors, data)
    return model


def _schedule(step: int, settings: Settings) -> float:
    if step < settings.warmup:
        return (step + 1) / settings.warmup
    rest = (step - settings.warmup) / max(1, settings.steps - settings.warmup)
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * rest))


def _examples(walk: Walk, config: IRConfig) -> list[_Example]:
    moves = [None, *(KINDS.index(move) for move in walk.moves)]
    read = [lines_of(text, config.max_tokens, config.max_lines) for text in walk.texts]
    return [
        _Example(each.lines, each.above, structure, legal, move)
        for each, structure, legal, move in zip(read, walk.structure, walk.legal, moves, strict=True)
    ]


def _batch(
    walks: Sequence[Sequence[_Example]], counted: Sequence[_Example], settings: Settings, rng: random.Random
) -> list[list[_Example]]:
    """Runs of neighbouring positions, each with one shift of its arrays' numbers."""
    runs: list[list[_Example]] = []
    for _ in range(settings.walks):
        walk = rng.choice(walks)
        begin = rng.randrange(max(1, len(walk) - settings.span + 1))
        runs.append(list(walk[begin : begin + settings.span]))
    runs += [[rng.choice(counted)] for _ in range(settings.counted if counted else 0)]
    return [[_shifted(e, by) for e in run] for run in runs for by in (rng.randrange(len(array_tokens())),)]


def _shifted(example: _Example, by: int) -> _Example:
    arrays = array_tokens()

    def shift(token: int) -> int:
        return arrays[(token - arrays.start + by) % len(arrays)] if token in arrays else token

    lines = tuple(tuple(map(shift, line)) for line in example.lines)
    return replace(example, lines=lines)


def encode(
    model: IRModel, programs: Sequence[tuple[Sequence[Line], Sequence[Line]]]
) -> tuple[Tensor, Tensor, Tensor, dict[Line, int]]:
    """Of programs, their lines and what is above each: token states of all different lines, states of the
    programs' lines, embeddings; a line's number."""
    numbers: dict[Line, int] = {}
    scopes: dict[Line, int] = {}
    for lines, above in programs:
        for line in lines:
            numbers.setdefault(line, len(numbers))
        for each in above:
            scopes.setdefault(each, len(scopes))
    # Lines of similar length together: short ones are many.
    order = sorted(numbers, key=len)
    states = torch.zeros(len(order), max(map(len, order)), model.config.line_size)
    pieces_s, pieces_v, rows = [], [], []
    for begin in range(0, len(order), 128):
        lines = order[begin : begin + 128]
        s, v = model.encode_tokens(_padded(lines))
        pieces_s.append(nn.functional.pad(s, (0, 0, 0, states.shape[1] - s.shape[1])))
        pieces_v.append(v)
        rows += [numbers[line] for line in lines]
    back = torch.argsort(torch.tensor(rows))
    states, vectors = torch.cat(pieces_s)[back], torch.cat(pieces_v)[back]
    at = _padded([[numbers[line] for line in lines] for lines, _ in programs])
    under = _padded([[scopes[each] for each in above] for _, above in programs])
    present = torch.arange(at.shape[1]) < torch.tensor([len(lines) for lines, _ in programs])[:, None]
    inputs = torch.cat([vectors[at], model.encode_above(_padded(list(scopes)))[under]], dim=-1)
    contexts, embedded = model.encode_lines(inputs, present)
    return states, contexts, embedded, numbers


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of numbers as one tensor, zeros after those that are shorter (PAD, of tokens)."""
    longest = max(1, *map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


def _losses(
    model: IRModel, heads: Heads, runs: list[list[_Example]], settings: Settings, rng: random.Random
) -> dict[str, Tensor]:
    flat = [e for run in runs for e in run]
    chosen = rng.sample(flat, min(settings.masked, len(flat)))
    hidden = [_masked(e.lines, rng) for e in chosen]
    states, contexts, embedded, numbers = encode(
        model, [(e.lines, e.above) for e in flat]
        + [(h[0], e.above) for h, e in zip(hidden, chosen, strict=True)],
    )  # fmt: skip
    unmasked = embedded[: len(flat)]

    rows, columns, lines, places, wanted = [], [], [], [], []
    for row, (masked, targets) in enumerate(hidden):
        for line, place, token in targets:
            rows.append(len(flat) + row)
            columns.append(line)
            lines.append(numbers[masked[line]])
            places.append(place)
            wanted.append(token)
    read = torch.cat([states[lines, places], contexts[rows, columns]], dim=-1)
    logits = heads.token(read) @ model.tokens.weight.T
    losses = {"token": nn.functional.cross_entropy(logits, torch.tensor(wanted))}

    pairs = [(n - 1, n, flat[n].move) for n in _followers(runs)]
    if pairs:
        before, after = unmasked[[p[0] for p in pairs]], unmasked[[p[1] for p in pairs]]
        guessed = heads.move(torch.cat([before, after, 4 * (after - before)], dim=-1))
        losses["move"] = nn.functional.cross_entropy(guessed, torch.tensor([p[2] for p in pairs]))
    structure = heads.structure_scale(torch.tensor([e.structure for e in flat]))
    losses["structure"] = nn.functional.smooth_l1_loss(heads.structure(unmasked), structure)
    with_legal = [n for n, e in enumerate(flat) if e.legal is not None]
    if with_legal:
        legal = heads.legal_scale(torch.stack([legal_target(flat[n].legal or ()) for n in with_legal]))
        losses["legal"] = nn.functional.smooth_l1_loss(heads.legal(unmasked[with_legal]), legal)
    return losses


def legal_target(counts: Sequence[int]) -> Tensor:
    """log2(1 + n) of each kind's legal moves, and of all."""
    return torch.log2(1.0 + torch.tensor([*counts, sum(counts)], dtype=torch.float32))


def _followers(runs: list[list[_Example]]) -> Iterator[int]:
    """The numbers, in all runs one after the other, of positions whose predecessor is there."""
    number = 0
    for run in runs:
        for place in range(len(run)):
            if place:
                yield number
            number += 1


def _masked(
    lines: tuple[Line, ...], rng: random.Random
) -> tuple[tuple[Line, ...], list[tuple[int, int, int]]]:
    """Some tokens of some lines hidden: the lines, and (line, place, token) of each."""
    hidden = [list(line) for line in lines]
    targets: list[tuple[int, int, int]] = []
    for number in rng.sample(range(len(lines)), max(1, len(lines) * 2 // 5)):
        line = lines[number]
        for place in rng.sample(range(len(line)), max(1, len(line) // 6)):
            targets.append((number, place, line[place]))
            fate = rng.random()
            if fate < 0.8:
                hidden[number][place] = MASK
            elif fate < 0.9:
                hidden[number][place] = rng.randrange(MASK + 1, len(vocabulary()))
    return tuple(map(tuple, hidden)), targets


def log_to(path: Path) -> Callable[[dict[str, float]], None]:
    """Append what is told to a file, as JSON lines."""

    def append(entry: dict[str, float]) -> None:
        with naming(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    return append
