"""Kernels, layers, moves, recipes and verdicts as data: one form for the command line, calls and the
board."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from dojo_core import kernels
from dojo_core.measure.speed import Speed
from dojo_core.moves.core import REGISTRY, Move, Refusal
from dojo_core.moves.notation import form
from dojo_core.recipes import Recipe

Json = dict[str, Any]


def kernel(named: kernels.Kernel) -> Json:
    """``name``, ``title``, ``formula``, ``group``, ``parameters`` (what the numbers of a shape are),
    ``shapes`` and ``layers`` (shapes by the names of networks' layers)."""
    return {
        "name": named.name,
        "title": named.title,
        "formula": named.formula,
        "group": named.group,
        "parameters": list(named.parameters),
        "shapes": ["x".join(map(str, s)) for s in named.shapes],
        "layers": {layer.name: layer.shape for layer in kernels.layers_of(named.name)},
    }


def layer(named: kernels.Layer) -> Json:
    """``name``, ``kernel``, ``shape``."""
    return {"name": named.name, "kernel": named.kernel, "shape": named.shape}


def layers_asked(asked: str) -> list[kernels.Layer]:
    """The layers of a network, or those that are shapes of a kernel. Raises ValueError with a sentence where
    there are none."""
    layers = [each for each in kernels.named_layers().values() if asked in (each.network, each.kernel)]
    if not layers:
        known = ", ".join(kernels.networks())
        message = (
            f"{asked} computes no named layer." if asked in kernels.names() else f"There is no {asked!r}."
        )
        raise ValueError(f"{message} The networks: {known}. Without a name all kernels are listed.")
    return layers


def move(played: Move) -> Json:
    """``move`` (its text), ``name``, ``family``, ``arguments``."""
    return {
        "move": str(played),
        "name": played.name,
        "family": REGISTRY[played.name].family,
        "arguments": [str(a) for a in played.arguments],
    }


def recipe(each: Recipe) -> Json:
    """``recipe`` (how it is written), ``about``, a line without marks."""
    return {"recipe": form(each), "about": re.sub(r"``(.+?)``", r"\1", each.about)}


def refusal(refused: Refusal) -> Json:
    """``code``, ``sentence``, ``nodes`` (paths), ``witness``, ``ways`` (``moves``, ``told`` in a line,
    and ``then`` what the refused move is called after them) and ``needs``."""
    return {
        "code": refused.code,
        "sentence": refused.sentence,
        "nodes": refused.nodes,
        "witness": str(refused.witness) if refused.witness else None,
        "ways": [{"moves": way.moves, "then": way.then, "told": str(way)} for way in refused.ways],
        "needs": refused.needs,
    }


def speed(told: Speed) -> Json:
    """``value`` (how many times as fast), ``low``, ``high``, ``rounds`` in turns, ``final``, ``verdict``."""
    return {**asdict(told), "verdict": told.verdict}
