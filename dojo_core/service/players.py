"""Who plays, and where: a player is one browser tab, a table a game that is open here."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from typing import Any, Protocol

from dojo_core.bench.roofline import Roofline
from dojo_core.game import Game
from dojo_core.program.tree import Provenance
from dojo_core.service.analysis import Analysis
from dojo_core.service.authored import Authored
from dojo_core.service.changes import Deleted
from dojo_core.service.hints import Hint
from dojo_core.service.learned import Learned
from dojo_core.service.queue import Outcome
from dojo_core.service.refused import Refused
from dojo_core.service.sources import SavedText
from dojo_core.service.view import Json

__all__ = ["Player", "Refused", "Table"]


@dataclass
class Table:
    """Players at the same table see the same game. ``lock`` is held while the game is read or changed.

    Only its owner sits at a game's own table. Whoever else opens the game gets a table of their own with a
    copy, kept as the ``source`` has it: they look around as they like, and nothing they do reaches the game.
    """

    game: Game
    workload: Any
    key: str  # names the workload in the queue
    work: tuple[float, float] = (0.0, 0.0)  # FLOPs and bytes of one run
    owner: str = ""  # dojo_core/ownership.py
    client: str = ""  # the program that plays it, as it calls itself; empty: a person does
    source: Table | None = None  # of the game that is watched here
    looked: float = 0.0  # when the store was asked what became of the source
    followed: tuple[int, int] | None = None  # the source's changes and cursor that are shown here
    lock: threading.RLock = field(default_factory=threading.RLock)
    hues: dict[Provenance, int] = field(default_factory=dict)
    changes: int = 0
    by: str = ""  # the page that made the last change
    deleted: Deleted | None = None  # what was deleted last
    measuring: bool = True  # is it measured when somebody sits down at it?
    noted: str = ""  # what was saved beside the game's text
    stored: str = ""  # the text that the store had last, as far as this process knows; empty: none yet
    yardstick: Outcome | None = None  # the start's time that speed-ups stand on (yardstick.py)
    roofline: Roofline | None = None  # the machine's limit for the kernel, once measured
    authored: Authored | None = None  # the times that the game came with
    torch: float | None = None  # PyTorch's seconds for the kernel, once compared
    limited: bool = False  # has the limit been asked for?


@dataclass(frozen=True)
class Pinned:
    """A position that the one on the board is compared with, of this game or of another.

    ``number`` is the position's in the game of ``table``, ``name`` what it was called there as it was pinned,
    ``line`` the moves to it, one a line; its texts are those of ``analysis``.
    """

    table: Table
    number: int
    name: str
    line: str
    analysis: Analysis


class Companion(Protocol):
    """What stands beside a player's board and goes along with it: a lesson."""

    @property
    def secret(self) -> bool:
        """Are the times of moves kept back?"""
        ...

    @property
    def busy(self) -> bool:
        """Will there be more to tell soon, whatever happens on the board?"""
        ...

    def told(self) -> Json:
        """What it shows now."""
        ...


@dataclass
class Player:
    """What one tab looks at. ``lock`` is taken before its table's."""

    id: str
    owner: str = ""  # whose the games are that are begun here, and which ones may be changed
    # What a page shows to speak for this player past its script; drawn into the page, never into an address.
    key: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    table: Table | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    companion: Companion | None = None
    measuring: bool = True
    at: tuple[str, int] | None = None  # the (game, position) that is attended to
    analysis: Analysis | None = None  # of that position
    explored: bool = False  # the records have been asked for what its moves lead to
    selection: str | None = None
    looked_at: str | None = None
    in_sight: dict[str, int] = field(default_factory=dict)  # the moves on the screen, with their places there
    paused: frozenset[str] = frozenset()  # kinds of moves that are not measured for now
    preview: list[tuple[str, str]] = field(default_factory=list)
    reason: str = ""  # why what is looked at is legal
    refused: tuple[str, str] | None = None  # the move that was asked for last and refused, and why
    assembly: bool = False
    pinned: Pinned | None = None
    profile: bool = False  # is shown where the time of the position goes
    drop: Json | None = None
    hint: Hint | None = None
    learned: Learned | None = None  # beside the hint; without words while the policy is asked
    errors: dict[str, str] = field(default_factory=dict)  # on the start screen: by kernel, or "text"
    draft: Json | None = None  # on the start screen: what is told of the text that is being typed
    acknowledged: dict[str, int] = field(default_factory=dict)
    notice: Json | None = None
    noticed: float = 0.0  # when; a page that comes later is not told
    forgotten: SavedText | None = None  # the saved game that was deleted last
    taken: Json | None = None  # what was asked to be taken away, until the page says that it is there
    ready: int = 0  # grows when a part of the board arrived late (refusals, assembly, a report)
    pending: int = 0  # parts under way
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def sit(self, table: Table | None) -> None:
        """At a table, or back at the start screen."""
        self.table = table
        self.at = self.analysis = self.drop = self.hint = self.learned = None
        self.errors = {}
        self.draft = None

    def looks_at(self, analysis: Analysis) -> bool:
        """Does the board show its texts: of the position there, or of the one that it is compared with?"""
        return analysis is self.analysis or (self.pinned is not None and analysis is self.pinned.analysis)

    @property
    def watching(self) -> bool:
        """Is it somebody else's game that stands on the board?"""
        return self.table is not None and self.table.source is not None

    def expect(self) -> None:
        """A part of the board is under way, in another thread."""
        with self._counting:
            self.pending += 1

    def arrived(self, changed: bool = True) -> None:
        """It is there, and the board is drawn again unless nothing ``changed``."""
        with self._counting:
            self.pending -= 1
            self.ready += changed

    def redraw(self) -> None:
        with self._counting:
            self.ready += 1
