"""A client's seat at the game: who it is, the games that it has open, and its limits."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dojo_core.calls.call import LONGEST_NAME, Answer, CallFault, Code
from dojo_core.calls.registry import call_named
from dojo_core.calls.words import written
from dojo_core.faults import shortened, text_fault
from dojo_core.files import trouble_text
from dojo_core.game import Game, GameFull
from dojo_core.measure.database import DatabaseFault
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.ownership import of_client
from dojo_core.program.expressions import TextError
from dojo_core.service import Refused, Service, saved_games
from dojo_core.service.comparing import Comparison
from dojo_core.service.games import KEPT_GAMES
from dojo_core.service.players import Table
from dojo_core.service.refused import Full, NotThere, Unfit
from dojo_core.service.sources import SavedText

log = logging.getLogger(__name__)

FAULT = "That did not work: a fault of the Dojo, noted in its log. The games are safe."


KINDS: dict[type[Refused], Code] = {Unfit: "bad_request", NotThere: "not_found", Full: "too_much"}


@dataclass(frozen=True)
class Limits:
    """What one client may have: games open at once, seconds that it may wait for one measurement."""

    open_games: int = 16
    seconds: float = 300.0


LIMITS = Limits()


def cleaned(client: str) -> str:
    """A client's name as lists and the board show it: printable, on a line, of bounded length."""
    printable = "".join(c if c.isprintable() else " " for c in client[: 4 * LONGEST_NAME])
    return " ".join(printable.split())[:LONGEST_NAME].strip() or "a program"


class Desk:
    """All calls of one client. Thread-safe. ``owner`` is whose its games are (dojo_core/ownership.py); by
    default they are the client's own, as another desk of the same name has them."""

    def __init__(
        self,
        service: Service,
        client: str,
        owner: str = "",
        limits: Limits = LIMITS,
        exports: Path | None = None,
    ) -> None:
        """``exports``: the folder that libraries may be written to; None: they are handed out as texts."""
        self.service, self.limits = service, limits
        self.client = cleaned(client)
        self.owner = owner or of_client(self.client)
        self.exports = exports
        self.seat = f"call-{secrets.token_hex(5)}"  # in the measuring queues
        self.measuring = threading.Lock()  # held by the call that waits for a measurement
        self.comparison: Comparison | None = None  # the one that was begun last
        self._open: OrderedDict[str, Table] = OrderedDict()
        self._lock = threading.Lock()

    def call(self, name: str, arguments: Mapping[str, object]) -> Answer:
        """Raises CallFault, and nothing else."""
        try:
            return call_named(name)(self, arguments)
        except CallFault:
            raise
        except TextError as fault:
            raise CallFault(text_fault(fault)) from fault
        except (IllegalMove, Refused) as refusal:
            code: Code = next((code for kind, code in KINDS.items() if isinstance(refusal, kind)), "refused")
            raise CallFault(str(refusal), code) from refusal
        except MoveSyntax as fault:
            raise CallFault(shortened(str(fault))) from fault
        except GameFull as full:
            raise CallFault(str(full), "too_much") from full
        except DatabaseFault as fault:
            raise CallFault(str(fault), "missing") from fault
        except OSError as fault:
            raise CallFault(trouble_text(fault), "missing") from fault
        except Exception as fault:
            log.exception("call %s failed", name)
            raise CallFault(FAULT, "fault") from fault

    # ------------------------------------------------------------------ games

    def begin(self, game: Game) -> Table:
        """A new game, kept as this client's. Raises Refused."""
        return self._hold(self.service.begin(game, self.owner, self.client))

    def copy(self, game: str) -> Table:
        """A copy of a saved game, as this client's. Raises Refused."""
        return self._hold(self.service.copy(*self.service.copied(game), self.owner, self.client))

    def saved(self) -> list[SavedText]:
        """The saved games that are this client's to play, the last played first."""
        every = self.service.recent_games(KEPT_GAMES, self.owner)
        return [game for game in every if game.player == self.owner]

    def table(self, game: str) -> Table:
        """The table of a game to look at, as it is now: another process may have played in it. Raises
        CallFault."""
        try:
            return self._hold(self.service.games.saved(game))
        except Refused as refusal:
            raise CallFault(
                f"{refusal} {written('games')} lists yours; {written('kernels')} tells what to open.",
                "not_found",
            ) from refusal

    def own(self, game: str) -> Table:
        """The same to change it. Raises CallFault where it is not this client's."""
        table = self.table(game)
        if table.owner != self.owner:
            raise CallFault(self.whose(table), "refused")
        return table

    def whose(self, table: Table) -> str:
        """What is said of a game that is not this client's (any more)."""
        again = f"{written('open', game=table.game.id)} plays on in a copy of your own."
        if table.client == self.client:
            return f"A person took this game over: you can look at it, not change it. {again}"
        return f"This game is not yours: you can look at it, not change it. {again}"

    def _hold(self, table: Table) -> Table:
        """Keep a table open; the one that was not used for longest is closed for it. Its game is saved; where
        nothing was ever played in it, it is forgotten."""
        closed = []
        with self._lock:
            self._open[table.game.id] = table
            self._open.move_to_end(table.game.id)
            while len(self._open) > self.limits.open_games:
                closed.append(self._open.popitem(last=False)[0])
        for game in closed:
            saved = self.service.games.stored(game)
            if saved is not None and saved.player == self.owner and not saved_games.outline(saved.text).line:
                self.service.games.forget(game, self.owner)
        return table
