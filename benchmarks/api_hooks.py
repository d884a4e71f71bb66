"""What schemathesis is told of the game, so that its calls reach games (loaded by benchmarks/api_fuzz.py).

Drawn texts are no kernels, games or moves. Most of a valid call's are replaced: a kernel by one that there
is, at a small shape, a game by one that was begun, moves by those that were listed.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import schemathesis

from dojo_core import kernels

SHAPES = {"softmax": "4x8", "relu": "8x8", "matmul": "4x8x8", "add": "8x8", "layernorm": "4x8"}
TEXT = "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]*2\n"
KEPT = 64
PLAYED = "played"  # the file beside the records that lists the games in which moves were played

drawn = random.Random(0)
games: list[str] = []
moves: list[str] = []


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    body = case.body
    if not isinstance(body, dict) or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    for name, value in list(body.items()):
        if drawn.random() < 0.2 or value is None:
            continue
        if name in ("game", "saved") and isinstance(value, str) and games:
            body[name] = drawn.choice(games)
        elif name == "kernel" and isinstance(value, str):
            body[name] = drawn.choice((*SHAPES, *kernels.names()))
            body["shape"] = SHAPES.get(body[name], body.get("shape"))
        elif name == "text" and isinstance(value, str):
            body[name] = TEXT
        elif name == "target" and isinstance(value, str):
            body[name] = drawn.choice(("cpu", "cpu", "snitch", "cuda"))
        elif name == "moves" and isinstance(value, list) and moves:
            body[name] = drawn.choices(moves, k=drawn.randrange(1, 4))
        elif name == "move" and isinstance(value, str) and moves:
            body[name] = drawn.choice(moves)
    if case.path.endswith("/open") and drawn.random() < 0.7:
        case.body = {"kernel": (kernel := drawn.choice(list(SHAPES))), "shape": SHAPES[kernel]}


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    if response.status_code != 200 or not case.path.startswith("/v1/calls/"):
        return
    data = response.json()["data"]
    if case.path.endswith("/open"):
        games.append(data["game"])
        del games[:-KEPT]
    if case.path.endswith("/play"):
        with (Path(os.environ["DOJO_HOME"]) / PLAYED).open("a") as file:
            file.write(f"{data['game']}\n")
    if case.path.endswith("/moves"):
        moves.extend(_texts(data))
        del moves[:-KEPT]


def _texts(data: Any) -> list[str]:
    """The moves in an answer of the call moves."""
    if isinstance(data, dict):
        return [text for each in data.values() for text in _texts(each)]
    if isinstance(data, list):
        return [each for each in data if isinstance(each, str)] + [
            text for each in data if not isinstance(each, str) for text in _texts(each)
        ]
    return []
