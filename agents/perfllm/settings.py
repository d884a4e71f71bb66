"""How PerfLLM learns; every technique can be switched off. No torch: the command line reads it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class EncoderSettings:
    """``ir`` (our own), ``bag`` (of tokens), ``counts`` (of structure), ``minilm``, or a model's name or
    folder, which the rest is for.

    ``pooling`` auto: the last token of a decoder, the mean of an encoder's. ``weights``: a folder with other
    weights of our own encoder.
    """

    model: str = "ir"
    pooling: str = "auto"
    max_length: int = 512
    dtype: str = "float32"
    batch: int = 16
    weights: str = ""


WEIGHTS = str(Path(__file__).parent / "weights")  # of our own encoder, as they come with the Dojo
FIRST: Mapping[str, Any] = {"sampled": 0, "epsilon_last": 0.5}  # how settings were when digests began


@dataclass(frozen=True)
class Settings:
    """The agent's settings, with the switches first."""

    max_bellman: bool = True  # off: plain Q-learning, the control
    double: bool = True
    dueling: bool = True
    replay: bool = True
    target_network: bool = True
    symlog: bool = True
    tightened: bool = True  # targets are at least what moves already made have come to
    tried: bool = True  # targets look ahead through actions that were tried, not through guesses
    kinds: bool = False  # the network is told the kind of each move, which embeddings hide
    restarts: float = 0.9  # share of episodes that begin at a fast program met before; 0: always at the start
    sampled: int = 3  # a greedy action is the best of so many drawn at random; 0: of all
    novelty: float = 0.1  # so much more counts, in choosing, an action never tried in its position
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    gamma: float = 0.97
    epsilon_first: float = 1.0
    epsilon_last: float = 0.2
    epsilon_share: float = 0.4  # of the budget, until ε is at its last value
    environments: int = 4  # episodes side by side, so that there is a batch to compile
    episode_moves: int = 6
    restart_moves: int = 2  # of an episode that begins at a fast program
    most_moves: int = 24  # of a line that is played greedily; so far values are carried back
    elite: int = 16  # fast programs of each kernel, of which one is drawn
    most_actions: int = 64  # of a position, to stop aside; 0: all
    hidden: int = 128
    rate: float = 1e-3
    batch: int = 32
    updates: int = 4  # steps of gradient descent for each move
    clip: float = 10.0  # the norm of a gradient
    target_every: int = 50  # updates until the target network follows
    capacity: int = 20_000  # transitions
    warmup: int = 16  # transitions before the first update
    threads: int = 1  # of torch

    @property
    def digest(self) -> str:
        """Differs where an agent would learn in another way, by our encoder's weights too; a setting that is
        new, and switched off, changes nothing."""
        usual = asdict(Settings(**FIRST))
        changed = {name: value for name, value in asdict(self).items() if value != usual[name]}
        if self.encoder.model == "ir":
            changed["weights"] = _digest_of(self.encoder.weights or WEIGHTS)
        return hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:12]


@cache
def _digest_of(folder: str) -> str:
    weights = Path(folder) / "model.safetensors"
    return hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else ""


PAPER = Settings(
    tightened=False,
    tried=False,
    restarts=0.0,
    novelty=0.0,
    sampled=0,
    epsilon_share=0.6,
    epsilon_last=0.1,
    episode_moves=24,
)  # what the paper tells, on our encoder, our choice of actions and symlog

VARIANTS: dict[str, tuple[str, Settings]] = {
    "perfllm-scratch": (
        "reinforcement learning within the run, a language model reading the program",
        Settings(),
    ),
    "perfllm-plain": (
        "the same with plain Q-learning: the sum of rewards, not the best",
        Settings(max_bellman=False),
    ),
    "perfllm-single": ("the same without double DQN", Settings(double=False)),
    "perfllm-flat": ("the same without dueling heads", Settings(dueling=False)),
    "perfllm-blind": (
        "the same with moves at random throughout: what learning adds is the difference",
        Settings(epsilon_first=1.0, epsilon_last=1.0, sampled=0),
    ),
    "perfllm-argmax": (
        "the same taking the best of all actions, in every second move: not the best of three drawn",
        Settings(sampled=0, epsilon_last=0.5),
    ),
    "perfllm-kinds": (
        "the same, the network told the kind of each move besides",
        Settings(kinds=True),
    ),
    "perfllm-paper": ("the same with the techniques of the paper alone", PAPER),
    "perfllm-paper-plain": ("these with plain Q-learning", replace(PAPER, max_bellman=False)),
    "perfllm-bag": ("the same reading a bag of tokens", Settings(encoder=EncoderSettings("bag"))),
}
