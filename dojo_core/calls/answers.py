"""What the answers of calls hold as values, call by call. The calls' documentation says what each is."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class Kernel(TypedDict):
    name: str
    group: str
    formula: str
    dims: str
    shape: str
    lines: list[str]


class Target(TypedDict):
    name: str
    words: str
    sentence: str


class Kernels(TypedDict):
    kernels: list[Kernel]
    page: int
    pages: int
    targets: list[Target]


class Layer(TypedDict):
    name: str
    kernel: str
    shape: str


class Networks(TypedDict):
    networks: NotRequired[list[str]]
    layers: NotRequired[list[Layer]]
    page: NotRequired[int]
    pages: NotRequired[int]


class Standing(TypedDict):
    """Where a game stands."""

    game: str
    title: str
    kernel: str | None
    shape: str
    target: str
    policy: str
    position: int
    ply: int
    seconds: float | None
    yours: bool
    program: str
    told: list[str]


class Node(TypedDict):
    position: int
    parent: int | None
    move: str | None
    ply: int
    variation: bool
    seconds: float | None


class StandingOrTree(TypedDict):
    game: str
    position: int
    tree: NotRequired[list[Node]]
    title: NotRequired[str]
    kernel: NotRequired[str | None]
    shape: NotRequired[str]
    target: NotRequired[str]
    policy: NotRequired[str]
    ply: NotRequired[int]
    seconds: NotRequired[float | None]
    yours: NotRequired[bool]
    program: NotRequired[str]
    told: NotRequired[list[str]]


class SavedGame(TypedDict):
    game: str
    title: str
    kernel: str
    shape: str
    target: str
    moves: int
    best: float | None
    when: str


class Games(TypedDict):
    games: list[SavedGame]
    page: int
    pages: int


class Part(TypedDict):
    text: str
    share: float
    bound: str
    source: str
    sentence: str


class Shown(TypedDict):
    game: str
    position: int
    ply: int
    yours: bool
    what: str
    lines: list[str]
    page: int
    pages: int
    parts: NotRequired[dict[str, Part]]
    note: NotRequired[str]


class Speed(TypedDict):
    value: float
    low: float
    high: float
    rounds: int
    final: bool
    verdict: str


class Kind(TypedDict):
    kind: str
    count: int
    form: str
    about: str
    examples: list[str]


class KnownMove(TypedDict):
    move: str
    seconds: float | None
    speed: Speed | None


class Moves(TypedDict):
    game: str
    position: int
    total: int
    kinds: NotRequired[list[Kind]]
    moves: NotRequired[list[KnownMove]]
    page: NotRequired[int]
    pages: NotRequired[int]


class Way(TypedDict):
    moves: list[str]
    told: str
    then: str


class Refusal(TypedDict):
    code: str
    sentence: str
    nodes: list[list[int]]
    witness: str | None
    ways: list[Way]
    needs: str


class Why(TypedDict):
    game: str
    position: int
    move: str
    legal: bool
    sentence: str
    refusal: Refusal | None


class Recipe(TypedDict):
    recipe: str
    about: str


class Recipes(TypedDict):
    recipes: list[Recipe]


class PlayedText(TypedDict):
    move: str
    moves: list[str]
    position: int


class Stopped(TypedDict):
    move: str
    sentence: str
    refusal: Refusal | None


class Played(TypedDict):
    game: str
    position: int
    ply: int
    played: list[PlayedText]
    stopped: Stopped | None
    changed: list[str]


class Outcome(TypedDict):
    status: str
    seconds: float | None
    median: float | None
    message: str
    machine: str


class Best(TypedDict):
    position: int
    seconds: float


class MeasuredMove(TypedDict):
    move: str
    outcome: Outcome | None
    speed: Speed | None


class Measured(TypedDict):
    game: str
    position: int
    state: Literal["measured", "not yet"]
    unit: Literal["seconds", "cycles"]
    outcome: Outcome | None
    speedup: Speed | None
    best: Best | None
    moves: list[MeasuredMove]


class LearnedMove(TypedDict):
    move: str
    probability: float


class Learned(TypedDict):
    words: str
    stop: float | None
    moves: list[LearnedMove]


class Hint(TypedDict):
    game: str
    position: int
    source: Literal["pass", "none"]
    level: Literal["kind", "place", "move"]
    kind: NotRequired[str]
    words: NotRequired[str]
    place: NotRequired[str]
    paths: NotRequired[list[str]]
    move: NotRequired[str]
    learned: NotRequired[Learned]


class Interval(TypedDict):
    value: float
    low: float
    high: float


class Row(TypedDict):
    name: str
    status: str
    message: str
    seconds: float | None
    speed: Interval | None


class Compared(TypedDict):
    comparison: str
    state: Literal["waiting", "running", "done", "stopped", "failed"]
    rows: list[Row]


class Titled(TypedDict):
    game: str
    title: str


class Study(TypedDict):
    game: str
    form: str
    lines: list[str]
    page: int
    pages: int
    link: NotRequired[str | None]


class Exported(TypedDict):
    game: str
    name: str
    files: NotRequired[dict[str, str]]
    archive: NotRequired[str]
