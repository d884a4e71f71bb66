"""Of the programs that a search found for a model's kernels, which stay: those that are surely faster than
the pass's in the model, on what it is called with first.

A search measures each kernel alone and on normal numbers. With other numbers another program may be the
faster one (an ELU whose long arm no value takes is skipped in groups), and so in caches that hold what the
kernel before has left.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from agents.torch_backend.programs import choice
from agents.torch_backend.searching import place
from agents.torch_backend.settings import Settings
from agents.torch_backend.tensors import Values
from dojo_core.graph.run import Model
from dojo_core.measure import sealed
from dojo_core.measure.speed import in_turns

ROUNDS, ROUND_SECONDS = 9, 0.1  # of the two models in turns; of one in a round, about


def decide(model: Model, settings: Settings, inputs: Mapping[str, Values]) -> bool:
    """Compare the programs of a model whose kernels were searched with the pass's, and keep what lost in
    the place of ``lost``. Did any? Raises GraphError for inputs that the model cannot take."""
    by_pass = replace(settings, budget=0, records=False)
    passed = Model(model.graph, choice(model.graph, by_pass), settings.policy)
    slower = _slower(model, passed, inputs)
    lost = sorted({model.programs[kernel].hash for kernel in slower})
    sealed.keep(place("decided", model.graph, settings), json.dumps(lost).encode())
    return bool(lost)


def _slower(found: Model, passed: Model, inputs: Mapping[str, Values]) -> list[str]:
    """The kernels whose programs are not surely faster in the one than in the other."""
    other = [name for name, program in found.programs.items() if program != passed.programs[name]]
    if not other:
        return []
    once = sum(share.seconds for share in found.profile(inputs, 1))
    runs = min(max(int(ROUND_SECONDS / max(once, 1e-9)), 1), 100)
    ratios: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        ours, theirs = _seconds(found, inputs, runs), _seconds(passed, inputs, runs)
        for kernel in other:
            ratios[kernel].append(theirs[kernel] / max(ours[kernel], 1e-9))
    return [kernel for kernel in other if in_turns(ratios[kernel]).verdict != "faster"]


def _seconds(model: Model, inputs: Mapping[str, Values], runs: int) -> dict[str, float]:
    """What each kernel takes in a run of the model, in all its calls together."""
    seconds: dict[str, float] = defaultdict(float)
    for share in model.profile(inputs, runs):
        seconds[share.call.kernel] += share.seconds
    return seconds
