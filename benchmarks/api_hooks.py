"""What schemathesis is told of the game, so that its calls reach games (loaded by benchmarks/api_fuzz.py).

Drawn texts are no kernels, games or moves. Most of a valid call's are replaced: a kernel by one that there
is, at a small shape, a game by one that was begun, a position and a page by one that there may be, moves by
those that the game has just told to be legal where it stands.
"""

from __future__ import annotations

import atexit
import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import requests
import schemathesis

from agents.doors.openapi import CLIENT
from benchmarks.api_fuzz import ADDRESS, ANSWERS, PLAYED, TOKEN
from dojo_core import kernels
from dojo_core.moves import REGISTRY

SHAPES = {"softmax": "4x8", "relu": "8x8", "matmul": "4x8x8", "add": "8x8", "layernorm": "4x8"}
TEXT = "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]*2\n"
KEPT = 64
OFTEN = 0.9  # how many of the values of a kind are replaced

drawn = random.Random(0)
games: dict[str, int] = {}  # begun, by id, the newest last: the last position that is known of each
comparisons: list[str] = []
answers: Counter[str] = Counter()  # by call and status


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    body = case.body
    if not isinstance(body, dict) or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    call = case.path.rpartition("/")[2]
    if case.headers and drawn.random() < OFTEN:
        case.headers.pop(CLIENT, None)  # a game is its client's alone
    if call == "open" and drawn.random() < OFTEN:
        kernel = drawn.choice(list(SHAPES))
        case.body = {"kernel": kernel, "shape": SHAPES[kernel]}
        return
    game, legal = _game() if "game" in body and drawn.random() < OFTEN else (None, [])
    for name, value in list(body.items()):
        if drawn.random() < OFTEN and value is not None:
            body[name] = _fitting(name, value, game)
    if game is not None:
        body["game"] = game
        if legal and {"moves", "move"} & body.keys() and drawn.random() < OFTEN:
            body.pop("at", None)
            if "moves" in body:
                body["moves"] = drawn.sample(legal, min(len(legal), drawn.randrange(1, 4)))
            else:
                body["move"] = drawn.choice(legal)


def _game() -> tuple[str | None, list[str]]:
    """A game that is there, and moves that are legal where it stands; one in which nothing was ever played is
    forgotten once its client has others open."""
    while games:
        game = drawn.choice(list(games))
        legal = _legal(game)
        if legal is not None:
            return game, legal
        del games[game]
    return None, []


def _fitting(name: str, value: Any, game: str | None) -> Any:
    """A value that means something, of the kind of one that was drawn."""
    match name, value:
        case "kernel", str():
            return drawn.choice((*SHAPES, *kernels.names()))
        case "shape", str():
            return drawn.choice(list(SHAPES.values()))
        case "text", str():
            return TEXT
        case "target", str():
            return drawn.choice(("cpu", "cpu", "snitch", "cuda"))
        case "at" | "position", int():
            return drawn.randint(0, games.get(game or "", 0))
        case "page", int():
            return drawn.choice((1, 1, 1, 2))
        case "kind", str():
            return drawn.choice(list(REGISTRY))
        case "place", str():
            return drawn.choice(("y", "x", "y@0"))
        case "comparison", str():
            return drawn.choice(comparisons) if comparisons else ""
        case "seconds", int() | float():
            return drawn.choice((0, 0.5, 3))
    return value


def _legal(game: str) -> list[str] | None:
    """Moves that are legal where a game stands, some of each kind; None where there is no such game."""
    answer = requests.post(
        f"{os.environ[ADDRESS]}/v1/calls/moves",
        json={"game": game},
        headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=60,
    )
    if answer.status_code != 200:
        return None
    return [move for kind in answer.json()["data"]["kinds"] for move in kind["examples"]]


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    call = case.path.rpartition("/")[2]
    drawn_as = "valid" if case.meta is not None and case.meta.generation.mode.is_positive else "other"
    answers[f"{call} {drawn_as} {response.status_code}"] += 1
    if response.status_code != 200 or not case.path.startswith("/v1/calls/"):
        return
    data = response.json()["data"]
    if call == "open":
        games[data["game"]] = data["position"]
        while len(games) > KEPT:
            del games[next(iter(games))]
    elif call == "play":
        games[data["game"]] = max(data["position"], games.get(data["game"], 0))
        with (Path(os.environ["DOJO_HOME"]) / PLAYED).open("a") as file:
            file.write(f"{data['game']}\n")
    elif call == "compare":
        comparisons.append(data["comparison"])


@atexit.register
def _tell() -> None:
    (Path(os.environ["DOJO_HOME"]) / ANSWERS).write_text(json.dumps(answers))
