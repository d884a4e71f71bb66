"""What an embedding knows of kernels that it never saw: ridge regression on frozen embeddings.

Probes learn on positions of the kernels in the corpus and are judged on those of ``corpus.HELD_OUT``: the
structure of a program, its legal moves of each kind, the logarithm of its run time; from the difference of
two embeddings the kind of the move between them. R² within kernels has each kernel's mean taken off first, on
both sides: how well positions of one kernel are told apart.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from agents.perfllm.corpus import HELD_OUT, KINDS, STRUCTURE, Walk, walks
from agents.perfllm.encoders import Encoder
from agents.perfllm.pretraining import legal_target
from dojo_core import kernels
from dojo_core.bounded_json import read_object
from dojo_core.files import naming
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.program.text import parse
from dojo_core.targets.cpu.measurer import Measurer

RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
RESAMPLED = 1_000
MOST_ITERATIONS = 24.0  # log2, of programs that are measured


@dataclass(frozen=True)
class Labelled:
    """Positions with what is to be predicted of each, a row of numbers. ``kernels``: of each; ``before``:
    where a move is asked for, the positions that it was made in."""

    texts: tuple[str, ...]
    kernels: tuple[str, ...]
    targets: Tensor
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Score:
    """R² on held-out kernels, the mean over targets that vary there: over all, and within kernels, with the
    95% intervals that drawing kernels, and positions of each, with replacement gives."""

    task: str
    encoder: str
    everywhere: float
    within: float
    positions: int  # that it was judged on
    everywhere_interval: tuple[float, float]
    within_interval: tuple[float, float]


def structure_of(walked: Sequence[Walk], each: int, seed: int) -> Labelled:
    """Positions drawn from walks, ``each`` of every walk, with their structure."""
    rng = random.Random(seed)
    rows = [(w, n) for w in walked for n in rng.sample(range(len(w.texts)), min(each, len(w.texts)))]
    return Labelled(
        tuple(w.texts[n] for w, n in rows), tuple(w.kernel for w, _ in rows),
        torch.tensor([w.structure[n] for w, n in rows]),
    )  # fmt: skip


def legal_of(walked: Sequence[Walk]) -> Labelled:
    """The positions whose legal moves were counted."""
    rows = [(w, n, legal) for w in walked for n, legal in enumerate(w.legal) if legal is not None]
    return Labelled(
        tuple(w.texts[n] for w, n, _ in rows), tuple(w.kernel for w, _, _ in rows),
        torch.stack([legal_target(legal) for _, _, legal in rows]),
    )  # fmt: skip


def moves_of(walked: Sequence[Walk], each: int, seed: int) -> Labelled:
    """Moves drawn from walks, ``each`` of every walk, with their kinds: 1 for its own kind, 0 for others."""
    rng = random.Random(seed)
    rows = [(w, n) for w in walked for n in rng.sample(range(len(w.moves)), min(each, len(w.moves)))]
    kinds = torch.tensor([KINDS.index(w.moves[n]) for w, n in rows])
    return Labelled(
        tuple(w.texts[n + 1] for w, n in rows), tuple(w.kernel for w, _ in rows),
        torch.nn.functional.one_hot(kinds, len(KINDS)).float(), tuple(w.texts[n] for w, n in rows),
    )  # fmt: skip


def measure(path: Path, count: int, seed: int, length: int = 12) -> Iterator[tuple[str, float | None]]:
    """Measure positions of ``count`` small walks over each kernel, into a file of JSON lines that is there
    when all are in it."""
    iterations = STRUCTURE.index("iterations")
    new = path.with_suffix(".new")
    with naming(new), new.open("w", encoding="utf-8") as file, Measurer() as measurer:
        for walk in walks(seed, count, length, kernels.names()):
            if max(row[iterations] for row in walk.structure) > MOST_ITERATIONS:
                continue
            chosen = sorted({0, len(walk.texts) // 3, 2 * len(walk.texts) // 3, len(walk.texts) - 1})
            programs = [parse(walk.texts[n]) for n in chosen]
            workload = Workload(parse(walk.texts[0]), walk.kernel, walk.policy)
            for program, measurement in zip(
                programs, measurer.measure(workload, programs, Effort.QUICK), strict=True
            ):
                if measurement.verified and measurement.seconds is not None:
                    entry = {"kernel": walk.kernel, "text": program.text, "seconds": measurement.seconds}
                    file.write(json.dumps(entry) + "\n")
                yield walk.kernel, measurement.seconds
    new.replace(path)


def times_of(path: Path) -> Labelled:
    """Measured positions, with the logarithm of their seconds."""
    entries = [read_object(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return Labelled(
        tuple(t["text"] for t in entries), tuple(t["kernel"] for t in entries),
        torch.tensor([[math.log(t["seconds"])] for t in entries]),
    )  # fmt: skip


def probe(task: str, name: str, embed: Encoder, labelled: Labelled) -> Score:
    """Fit on the kernels of the corpus, judge on the held-out ones. The ridge is chosen on a fifth of the
    former, whole kernels again."""
    x = embed([parse(text) for text in labelled.texts]).double()
    if labelled.before:
        x -= embed([parse(text) for text in labelled.before]).double()
    y = labelled.targets.double()
    names = labelled.kernels
    test = torch.tensor([k in HELD_OUT for k in names])
    seen = sorted({k for k in names if k not in HELD_OUT})
    aside = set(seen[::5])
    checked = torch.tensor([k in aside for k in names])
    fitted = ~test & ~checked
    best = max(RIDGES, key=lambda ridge: _r2(ridge_fit(x[fitted], y[fitted], ridge, x[checked]), y[checked]))
    guessed, wanted = ridge_fit(x[~test], y[~test], best, x[test]), y[test]
    groups = [k for k in names if k in HELD_OUT]
    within = _centred(guessed, groups), _centred(wanted, groups)
    return Score(
        task, name, _r2(guessed, wanted), _r2(*within), len(groups), _interval(guessed, wanted, groups),
        _interval(*within, groups),
    )  # fmt: skip


def _interval(guessed: Tensor, wanted: Tensor, groups: Sequence[str]) -> tuple[float, float]:
    rng = random.Random(0)
    rows = [[n for n, g in enumerate(groups) if g == group] for group in dict.fromkeys(groups)]
    scores = []
    for _ in range(RESAMPLED):
        drawn = [
            n for members in rng.choices(rows, k=len(rows)) for n in rng.choices(members, k=len(members))
        ]
        scores.append(_r2(guessed[drawn], wanted[drawn]))
    scores.sort()
    return scores[int(0.025 * RESAMPLED)], scores[int(0.975 * RESAMPLED)]


def ridge_fit(x: Tensor, y: Tensor, ridge: float, new: Tensor) -> Tensor:
    centre, spread = x.mean(0), x.std(0) + 1e-6
    scaled, level = (x - centre) / spread, y.mean(0)
    gram = scaled.T @ scaled + ridge * len(x) * torch.eye(x.shape[1], dtype=x.dtype)
    return ((new - centre) / spread) @ torch.linalg.solve(gram, scaled.T @ (y - level)) + level


def _centred(values: Tensor, groups: Sequence[str]) -> Tensor:
    centred = values.clone()
    for group in set(groups):
        rows = torch.tensor([g == group for g in groups])
        centred[rows] -= values[rows].mean(0)
    return centred


def _r2(guessed: Tensor, wanted: Tensor) -> float:
    """The mean over targets of 1 − the share of variance left; a target's is at least −1, so that one wild
    target does not hide the others."""
    varies = wanted.var(0) > 1e-3
    left = (guessed - wanted).square().mean(0)[varies] / wanted.var(0)[varies]
    return float((1 - left).clamp_min(-1).mean())
