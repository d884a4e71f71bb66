"""What the service needs from outside: where games and known times are kept, and where kernels come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dojo_core.service.queue import Outcome

# How the ids of games begin that belong to a lesson, or to a study that is written: on no list of games.
SCHOOL_GAMES, STUDY_GAMES = "learn-", "study-"
UNLISTED_GAMES = (SCHOOL_GAMES, STUDY_GAMES)


@dataclass(frozen=True)
class SavedText:
    """A game as the store keeps it; ``player`` is whose it is (dojo_core/ownership.py), ``text`` the game's
    own, with notes (saved_games.py) at its end."""

    id: str
    player: str
    title: str
    kernel: str
    text: str
    updated: float = 0.0  # seconds since the epoch


class Store(Protocol):
    """Where games and known times survive the process (measure/records.py)."""

    def save_game(self, game: SavedText, before: str | None = None) -> SavedText | None:
        """Keep a game. With ``before``, the text that it had: where another stands there now, nothing is
        changed and that other comes back."""
        ...

    def load_game(self, game: str) -> SavedText | None: ...

    def give_game(self, game: str, before: str, owner: str) -> None:
        """From ``before`` to ``owner``; nothing happens where it is another's by now."""
        ...

    def delete_game(self, game: str) -> None: ...

    def count_games(self, player: str) -> tuple[int, int]:
        """How many games with moves a player has, and how many of them on kernels of their own."""
        ...

    def count_games_of_clients(self) -> int:
        """How many games with moves all programs have that play by calls."""
        ...

    def recent_games(self, limit: int, owner: str, clients: bool = False) -> Sequence[SavedText]:
        """The games changed last of an owner, and nobody's; with ``clients`` also those that programs play;
        newest first."""
        ...

    def known(self, workload: Any, hashes: Sequence[str]) -> dict[str, Outcome]: ...


@dataclass(frozen=True)
class KernelCard:
    """A kernel as the start screen shows it."""

    name: str
    group: str
    formula: str
    shape: str
    dims: str = ""
    layers: tuple[tuple[str, str], ...] = ()  # names of layers that are shapes of it, and the sizes


class Kernels(Protocol):
    """The start programs by name (dojo_core/kernels)."""

    def cards(self) -> Sequence[KernelCard]: ...

    def start(self, kernel: str, shape: str) -> Any:
        """The start program; raises ValueError with a sentence where the shape is none of its."""
        ...

    def work(self, kernel: str | None, shape: str, start: Any) -> tuple[float, float]:
        """(FLOPs, bytes) of one run; of a text of one's own (no kernel) those of its start program."""
        ...

    def workload(self, start: Any, kernel: str | None, policy: str, target: str) -> Any: ...
