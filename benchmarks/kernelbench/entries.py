"""The ways in which a problem is run: PyTorch eager, its compiler Inductor, the Dojo; and rounds of them."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Run = Callable[[], Any]

EAGER, INDUCTOR, PASS, SEARCH = "eager", "inductor", "pass", "search"
TOLERANCE = 1e-4  # of f32, relative and absolute
SAMPLE_SECONDS = 0.005  # a sample is as many runs as take so long
BACKEND = "agents.torch_backend"  # its loggers tell what falls back to eager


def entry(name: str, model: torch.nn.Module, budget: int) -> torch.nn.Module:
    """The model, to be run in one of the ways; it is compiled in its first run."""
    if name == EAGER:
        return model
    torch._dynamo.reset()
    if name == INDUCTOR:
        import torch._inductor.config as config

        config.freezing = True  # weights laid out once, as the Dojo does
        return torch.compile(model, dynamic=False, mode="max-autotune-no-cudagraphs")
    import agents.torch_backend  # noqa: F401  # registers it

    options = {"freeze": True} | ({"budget": budget} if name == SEARCH else {})
    return torch.compile(model, dynamic=False, backend="dojo", options=options)


class Fallbacks(logging.Handler):
    """What the Dojo's backend says that it has left to eager."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.sentences: list[str] = []

    def __enter__(self) -> Fallbacks:
        logging.getLogger(BACKEND).addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger(BACKEND).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.sentences.append(record.getMessage())


def interleaved(runs: Mapping[str, Run], rounds: int) -> dict[str, list[float]]:
    """Seconds of one run of each, by round: in each round all take their turn."""
    counts = {}
    for name, run in runs.items():
        begun = time.perf_counter()
        run()
        counts[name] = max(1, round(SAMPLE_SECONDS / (time.perf_counter() - begun)))
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        order = list(runs) if number % 2 == 0 else list(runs)[::-1]
        for name in order:
            run = runs[name]
            run()  # what the others left in the caches
            begun = time.perf_counter()
            for _ in range(counts[name]):
                run()
            taken[name].append((time.perf_counter() - begun) / counts[name])
    return taken


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """How many times as long one takes as the other: the median over rounds."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


def differs(wanted: Any, given: Any) -> str:
    """KernelBench's comparison of results in f32, 1e-4 of relative and as much of absolute tolerance; empty
    where they agree."""
    if isinstance(wanted, torch.Tensor):
        if not isinstance(given, torch.Tensor) or given.shape != wanted.shape:
            return "Another shape."
        if given.dtype != wanted.dtype:
            return f"{given.dtype} in place of {wanted.dtype}."
        if wanted.is_floating_point():
            if torch.allclose(wanted, given, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                return ""
            return f"Off by up to {float((wanted - given).abs().max()):.2g}."
        return "" if torch.equal(wanted, given) else "Other whole numbers."
    if isinstance(wanted, list | tuple):
        if not isinstance(given, list | tuple) or len(given) != len(wanted):
            return "Another number of results."
        return next((d for a, b in zip(wanted, given, strict=True) if (d := differs(a, b))), "")
    return "" if wanted == given else "Another result."
