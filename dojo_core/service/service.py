"""The service itself: players come, send events, and are told what stands on their board."""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dojo_core.actions import looking
from dojo_core.faults import shortened, text_fault
from dojo_core.game import Game, GameFull
from dojo_core.measure.conditions import UNKNOWN, Conditions
from dojo_core.measure.database import DatabaseFault
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.speed import Speed
from dojo_core.moves import REGISTRY, IllegalMove, MoveSyntax
from dojo_core.moves.notation import parse_move
from dojo_core.moves.reasons import met
from dojo_core.ownership import is_client, watching
from dojo_core.ownership import name as owner_name
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.service import board, feed, pinned, saved_games, takeaway
from dojo_core.service.ahead import sheets
from dojo_core.service.analysis import Analysis
from dojo_core.service.attention import Attention, Limits
from dojo_core.service.authored import Authored, of_text
from dojo_core.service.changes import change, delete, removal, restore
from dojo_core.service.comparing import Comparisons
from dojo_core.service.drafts import draft, sizes_said
from dojo_core.service.events import client_name, sound
from dojo_core.service.games import Games, follow
from dojo_core.service.hints import Advise
from dojo_core.service.lanes import Lanes, waited_for
from dojo_core.service.learned import AskPolicy
from dojo_core.service.players import Player, Refused, Table
from dojo_core.service.queue import Bench, Outcome
from dojo_core.service.sources import Kernels, SavedText, Store
from dojo_core.service.view import Json
from dojo_core.targets.registry import backend

log = logging.getLogger(__name__)

FAULT = "That did not work: a fault of the app, noted in its log. The game is safe."
ELSEWHERE = (
    "This game went on in another window of the Dojo as well: what was played there is a variation now."
)
# Two for each tab that is served at once (pages/access.py), as Learn has one of its own; the one not seen for
# longest is forgotten, its game is in the store.
KEPT_PLAYERS = 200
FORK = " (fork)"  # at the end of a copy's title
POLL = 0.5  # seconds between two looks of a page, while something is under way
QUIET_POLL = 3.0  # while all is measured and the machine is busy with other things
WATCHING = 2.0  # at somebody else's game
ALONG = 1.0  # at one that a program plays
STARTING = 3.0  # at the start screen, where games that programs play may come
UNLISTED = "/unlisted"  # at the end of the version of a board without its moves
KEPT_CLIENTS = 8  # pages of one player, whose event numbers are remembered
NOTICE = 20.0  # seconds in which a notice can still be told

# These mean the same wherever the cursor is meanwhile: quick key presses all count. Anything else made on
# a position that is no longer on the board is dropped.
ANYWHERE = ("step", "goto", "take_back", "show", "pin", "unpin", "take_away", "undelete")

# What those may do who watch somebody else's game: all that leaves it as it is.
LOOKING = (
    "step", "goto", "select", "look", "sight", "pause", "show", "why", "hint", "take_away", "pin", "unpin",
    "measure",
)  # fmt: skip


class Service:
    """Players and their games. All methods may be called from any thread."""

    def __init__(
        self,
        store: Store,
        kernels: Kernels,
        make_bench: Callable[[], Bench],
        lines: Path | None = None,
        assemble: Callable[[Any], Any] | None = None,
        limits: Limits | None = None,
        advise: Advise | None = None,
        machine: Callable[[], Conditions] = lambda: UNKNOWN,
        local: bool = False,
        measure: bool = True,
        profile: Callable[[Any, Any, Callable[[], bool]], Any] | None = None,
        take_away: Callable[[Game], Json] = takeaway.parts,
        comparisons: Comparisons | None = None,
        policy: AskPolicy | None = None,
    ) -> None:
        """``machine``: what else the machine does now. ``local``: only this machine's own people can
        reach it; games that are nobody's may be claimed. ``measure``: new games are timed before anybody
        asks. ``comparisons``: where programs are compared with other implementations, for those who ask
        by calls. ``policy``: what was learned, told beside hints."""
        self._machine, self._take_away = machine, take_away
        self.comparisons = comparisons
        self._seen = UNKNOWN  # what else the machine did when a page asked last

        def idle() -> bool:
            return not machine().busy

        self.queue = Lanes(make_bench, idle=idle)
        if measure:
            self.queue.begin()
        self._games = Games(store, kernels, lines, local, measure)
        self._attention = Attention(self.queue, store, assemble, limits, advise, idle, profile, policy)
        self._players: OrderedDict[str, Player] = OrderedDict()
        self._lock = threading.Lock()  # of the players' list
        self._numbers = itertools.count(1)  # of notices and downloads, so that a page shows each once
        self._process = secrets.token_hex(4)  # another one after a restart, whose numbers begin anew

    def close(self) -> None:
        self._attention.close()
        self.queue.close()

    # ------------------------------------------------------------------ players

    def player(self, player: str | None, game: str | None = None, owner: str = "") -> Player:
        """The player of that id, made if need be, then at the table of ``game`` if one is named.

        ``owner`` is whose games it may change (dojo_core/ownership.py). Without an id it is a new one: each
        tab goes its own way.
        """
        if player is None or not _plain(player):
            player = secrets.token_hex(5)
        with self._lock:
            new = player not in self._players
            known = self._players.setdefault(player, Player(player, owner))
            self._players.move_to_end(player)
            while len(self._players) > KEPT_PLAYERS:
                self.queue.drop(self._players.popitem(last=False)[0])
        with known.lock:
            if new and game and known.table is None and _plain(game):
                try:
                    table = self._games.seat(game, known.owner)
                    known.measuring = table.measuring
                    self._sit(known, table)
                except Refused as refusal:
                    self._tell(known, str(refusal))
        return known

    def holder(self, key: str) -> Player | None:
        """The player whose page shows this key (``Player.key``); None where none is known by it any more."""
        with self._lock:
            players = list(self._players.values())
        return next(
            (each for each in players if secrets.compare_digest(each.key.encode(), key.encode())), None
        )

    def _sit(self, player: Player, table: Table) -> None:
        self.queue.drop(player.id)
        player.sit(table)
        with table.lock:
            hashes = [p.program.hash for p in table.game.positions.values()]
        self._attention.remember(table, hashes)
        self._attention.attend(player, table)

    def _tell(
        self, player: Player, text: str, client: str = "", kind: str = "error", undo: Json | None = None
    ) -> None:
        """A notice for the page that caused it (or for whichever of the player's asks first).

        ``undo`` is the event that takes back what the notice tells of.
        """
        player.noticed = time.monotonic()
        player.notice = {
            "n": next(self._numbers), "text": text, "kind": kind, "client": client, "undo": undo
        }  # fmt: skip

    # ------------------------------------------------------------------ for other pages, and for agents

    def say(self, player: Player, words: str, kind: str = "info") -> None:
        """A notice on the player's board."""
        with player.lock:
            self._tell(player, words, kind=kind)

    def sit_down(self, player: Player, game: str) -> None:
        """Put a saved game on a player's board. Raises Refused."""
        with player.lock:
            self.seat(player, game)

    def new_game(
        self, kernel: str, shape: str, policy: str, owner: str = "", target: str = DEFAULT_TARGET
    ) -> str:
        """Begin a game on a kernel and save it; its id. Raises Refused."""
        return self.take_in(self._games.from_kernel(kernel, shape, policy, target), owner)

    def take_in(self, game: Game, owner: str = "", once: bool = False, of: Table | None = None) -> str:
        """Save a game of somebody else's making as the owner's; its id.

        ``once``: where the owner has it already and has changed nothing in it, it is that one. ``of``: where
        it is a copy of one that stands here, so that its speed-ups stand on the same time of the start.
        """
        if once and self._games.kept_already(game, owner):
            self.branch(game.id, game.cursor, [], owner, go=True)
            return game.id
        return self._taken(game, owner, of).game.id

    def _taken(self, game: Game, owner: str, of: Table | None = None, client: str = "") -> Table:
        table = self._games.table(game, owner)
        table.client = client
        table.yardstick = None if of is None else feed.yardstick_of(of, None)
        self.keep(table)
        return table

    def copied(self, game: str) -> tuple[Game, Table]:
        """A saved game once more, as it is now, and the table that it was copied from. Raises Refused."""
        table = self._games.saved(game)
        with table.lock:
            return Game.from_text(table.game.to_text()), table

    def play_on(self, player: Player) -> None:
        """Put a copy of the player's own on the board, of the game that stands there. Raises Refused."""
        table = player.table
        if table is not None:
            with table.lock:
                copy = Game.from_text(table.game.to_text())
            self.seat(player, self.copy(copy, table, player.owner).game.id)

    def fork(self, game: str, owner: str) -> str:
        """A copy of a saved game under a new id; gives the id. Raises Refused."""
        return self.copy(*self.copied(game), owner).game.id

    def copy(self, copy: Game, of: Table, owner: str, client: str = "") -> Table:
        """The table of a game that is a copy of one that stands here; titled so. Raises Refused."""
        copy.title = f"{copy.title.removesuffix(FORK)[: 80 - len(FORK)]}{FORK}"
        return self.begin(copy, owner, client, of)

    def seat(self, player: Player, game: str, measuring: bool | None = None) -> None:
        """Put a player at the table of a saved game, measured or not (None: as it was). Raises Refused."""
        table = self._games.seat(game, player.owner)
        self._leave(player)
        player.measuring = table.measuring = table.measuring if measuring is None else measuring
        self._sit(player, table)

    def came_with(self, player: Player, authored: Authored) -> None:
        """The times that the game on the player's board came with are told there, and kept."""
        table = player.table
        if table is not None and table.source is None:
            with table.lock:
                table.authored = authored
                self.keep(table)

    def note(self, player: Player) -> None:
        """Let lists of saved games tell what the player's board tells."""
        with player.lock:
            self._note(player)

    def leave(self, player: Player) -> None:
        """Away from the table, back to the start screen."""
        with player.lock:
            self._leave(player)

    def recent_games(self, limit: int, owner: str) -> Sequence[SavedText]:
        """The games changed last of an owner, and nobody's; newest first."""
        return self._games.recent(limit, owner)

    def may_change(self, before: str, owner: str) -> bool:
        """May an owner change a game of ``before``: is it theirs, or nobody's so that they may claim it?"""
        return self._games.may_change(before, owner)

    def may_play_in(self, game: str, owner: str) -> bool:
        """The same of a saved game by its id; of one that is gone, everybody."""
        saved = self._games.stored(game)
        return saved is None or self._games.may_change(saved.player, owner)

    def known(self, table: Table, hashes: Sequence[str]) -> list[Outcome | None]:
        """What is known of programs measured against a table's start, from the records too."""
        self._attention.remember(table, hashes)
        return list(self.queue.of(table.key).results(table.key, hashes))

    def speeds(self, table: Table, against: str, hashes: Sequence[str]) -> list[Speed | None]:
        """How many times as fast programs are as the one of hash ``against``; None while one has no time."""
        steady = backend(table.game.target).clock().steady
        return self.queue.of(table.key).speeds(table.key, against, hashes, steady)

    def game_text(self, game: str) -> str:
        """A saved game as its text, with what has been played in it so far. Raises Refused."""
        table = self._games.saved(game)
        with table.lock:
            return table.game.to_text()

    def times(self, game: str) -> dict[str, float]:
        """Seconds of a saved game's programs by hash, as far as they are known here. Raises Refused."""
        table = self._games.saved(game)
        with table.lock:
            hashes = [position.program.hash for position in table.game.positions.values()]
        self._attention.remember(table, hashes)
        known = zip(hashes, self.queue.of(table.key).results(table.key, hashes), strict=True)
        return {h: outcome.seconds for h, outcome in known if outcome is not None and outcome.ok}

    def branch(
        self, game: str, at: int, moves: Sequence[str], owner: str | None = "", go: bool = False
    ) -> int:
        """Play moves from a position of a saved game, as a variation where others were played there.

        The position that they lead to; the cursor goes there only with ``go``. ``owner`` is who asks for it,
        None where the game's own did when they had a run begin there. Raises Refused, IllegalMove, MoveSyntax
        or GameFull; the game is as before then.
        """
        table = self._games.saved(game) if owner is None else self._games.own(game, owner)
        with table.lock:
            before = (table.game.cursor, set(table.game.positions))
            if at not in table.game.positions:
                raise Refused("The position that this began at is no longer in the game.")
            table.game.goto(at)
            try:
                for move in moves:
                    table.game.play(move)
            except Exception:
                for new in sorted(set(table.game.positions) - before[1], reverse=True):
                    table.game.delete(new)
                table.game.goto(before[0])
                raise
            end = table.game.cursor
            if not go:
                table.game.goto(before[0])
            table.by = ""
            self._games.save(table, self._notes(table))
            return end

    # ------------------------------------------------------------------ for programs that play

    @property
    def games(self) -> Games:
        """Where games are begun, opened and kept."""
        return self._games

    @property
    def attention(self) -> Attention:
        """What can be said of a position, and what is known of its time."""
        return self._attention

    def begin(self, game: Game, owner: str, client: str = "", of: Table | None = None) -> Table:
        """A new game's table, its owner's; it is kept. Raises Refused where they have as many as they may.

        ``client``: the program that plays it. ``of``: as ``take_in`` has it.
        """
        self._games.check_quota(owner, of_own_text=game.kernel is None)
        return self._taken(game, owner, of, client)

    def noted(self, table: Table) -> None:
        """Let lists tell what was measured of a game."""
        if self._to_note(table):
            self.keep(table)

    def keep(self, table: Table) -> None:
        """Save a game as it is now. Raises Refused."""
        with table.lock:
            table.by = ""
            self._games.save(table, self._notes(table))

    # ------------------------------------------------------------------ events

    def handle(self, player: Player, client: object, events: object) -> None:
        """Apply a page's events in order, each number once. Both may be anything: see events.py."""
        client = client_name(client)
        with player.lock:
            for event in sound(events):
                number = event["seq"]
                if number <= player.acknowledged.get(client, 0):
                    continue
                player.acknowledged[client] = number
                try:
                    self._apply(player, client, event)
                except TextError as fault:
                    self._tell(player, text_fault(fault), client)
                except (Refused, IllegalMove, MoveSyntax, GameFull, DatabaseFault) as refusal:
                    if isinstance(refusal, IllegalMove):
                        player.refused = (" ".join(str(event.get("move", "")).split()), str(refusal))
                    self._tell(player, shortened(str(refusal)), client)
                except Exception:
                    log.exception("event %r failed", event.get("kind"))
                    self._tell(player, FAULT, client)
            while len(player.acknowledged) > KEPT_CLIENTS:
                player.acknowledged.pop(next(iter(player.acknowledged)))

    def _apply(self, player: Player, client: str, event: Json) -> None:
        def text_of(name: str) -> str:
            return str(event.get(name, "")).strip()

        match text_of("kind"):
            case "start":
                player.errors = {}
                try:
                    game = self._games.from_kernel(
                        text_of("kernel"), text_of("shape"), text_of("policy"), text_of("target")
                    )
                except Refused as refusal:  # told at the kernel's card
                    player.errors = {text_of("kernel"): str(refusal)}
                    return
                self._begin(player, game)
            case "text":
                self._begin_with_text(player, event, text_of("policy"), text_of("target"))
            case "read":
                self._read(player, event, text_of("policy"), text_of("target"))
            case "line":
                game, stop = self._games.from_line(text_of("file"))
                self._begin(player, game, measuring=False)
                if stop:
                    self._tell(player, stop, client, "info")
            case "open":
                self.seat(player, text_of("game"))
            case "leave":
                self._leave(player)
            case "forget":
                player.forgotten = self._games.forget(text_of("game"), player.owner)
                message = f"Deleted {player.forgotten.title}."
                self._tell(player, message, client, "info", {"kind": "remember"})
            case "remember":
                if player.forgotten is not None:
                    self._games.remember(player.forgotten)
                player.forgotten = None
            case "fork":
                self.play_on(player)
            case "take_over":
                self._take_over(player, client)
            case "rename":
                self._games.rename(text_of("game"), text_of("title"), player.owner)
            case "look_again":
                pass  # a page that was out of sight: it is drawn anew
            case "received":
                player.taken = None
            case "restart":
                self.queue.restart()
            case "anyway":
                wait = None if player.table is None else waited_for(player.table.game.target)
                if wait is not None:
                    wait.measure_anyway()
            case kind if player.table is not None:
                with player.table.lock:
                    self._apply_at(player, player.table, client, kind, event)

    def _take_over(self, player: Player, client: str) -> None:
        """Let the player have the game that they watch a program play."""
        watched = player.table
        if watched is None or watched.source is None:
            return
        self._games.take_over(watched.game.id, player.owner)
        self.seat(player, watched.game.id, measuring=True)
        words = f"This game is yours now. {owner_name(watched.owner)} is told so when it plays on."
        self._tell(player, words, client, "info")

    def _begin(
        self, player: Player, game: Game, measuring: bool | None = None, authored: Authored | None = None
    ) -> None:
        self._games.check_quota(player.owner, of_own_text=game.kernel is None)
        table = self._games.table(game, player.owner)
        table.authored = authored
        player.measuring = table.measuring = table.measuring if measuring is None else measuring
        self._sit(player, table)
        self._save(player, table)

    def _leave(self, player: Player) -> None:
        """Back to the start screen."""
        self._note(player)
        self.queue.drop(player.id)
        player.sit(None)
        player.measuring = True

    def _note(self, player: Player) -> None:
        table = player.table
        if table is not None and self._to_note(table):
            self._save(player, table)

    def _to_note(self, table: Table) -> bool:
        """Was something measured since the game's last move, so that lists have another best to tell?"""
        with table.lock:
            of_its_owner = table.source is None and len(table.game.positions) > 1
            return of_its_owner and self._notes(table) != table.noted

    def _notes(self, table: Table) -> str:
        speed_up = feed.speed_up(table, self.queue.of(table.key))
        return saved_games.notes(speed_up, table.measuring, table.yardstick, table.client, table.authored)

    def _save(self, player: Player, table: Table) -> None:
        if table.source is None and self._games.save(table, self._notes(table)):
            self._attention.attend(player, table)
            self._tell(player, ELSEWHERE, kind="info")

    def _read(self, player: Player, event: Json, policy: str, target: str) -> None:
        """Tell of a text what it is and what is wrong with it, while it is typed."""
        player.errors = {}
        told = draft(str(event.get("text", "")), event.get("sizes"), policy, target)
        player.draft = {**told, "number": event.get("number"), "client": event.get("client")}
        player.redraw()

    def _begin_with_text(self, player: Player, event: Json, policy: str, target: str) -> None:
        """What is wrong with a text of one's own is told beside it."""
        player.errors = {}
        text = str(event.get("text", ""))
        if not text.strip():
            player.errors = {"text": "Write a program, or paste a saved game, first."}
            return
        try:
            game = self._games.from_text(text, policy, target, sizes_said(event.get("sizes")))
        except TextError as fault:
            player.errors = {"text": text_fault(fault)}
            return
        except (Refused, IllegalMove) as refusal:
            player.errors = {"text": str(refusal)}
            return
        self._begin(player, game, authored=of_text(text))

    def _apply_at(self, player: Player, table: Table, client: str, kind: str, event: Json) -> None:
        """An event at a table, which is locked. All that changes a game passes here; a watcher's goes no
        further."""
        game = table.game
        if table.source is not None and kind not in LOOKING:
            raise Refused(watching(table.owner))
        if kind == "measure":
            player.measuring = table.measuring = bool(event.get("on"))
            self._attention.attend(player, table, again=True)
            self._save(player, table)
            return
        if event.get("game") != game.id:
            return
        if kind not in ANYWHERE and event.get("position") != game.cursor:
            return
        match kind:
            case "hint":
                self._attention.hint(player, table)
            case "why":
                move = " ".join(str(event.get("move", "")).split())
                verdict = looking.explained(game.current.program, move, game.target, game.policy)
                if not verdict.legal:
                    player.refused = (move, f"{move}: {verdict.refusal}")
                    player.redraw()
            case "select" | "look" | "sight" | "pause" | "show":
                self._look(player, table, kind, event)
            case "take_away":
                player.taken = {"n": next(self._numbers), "client": client, **self._take_away(game)}
            case "pin" | "unpin":
                here = self._attention.attend(player, table)
                player.pinned = pinned.at_cursor(table, here) if kind == "pin" else None
                self._attention.attend(player, table, again=True)
                player.redraw()
            case "yardstick":
                self._restate(player, table, client)
            case "ask_drop":
                player.drop = {"id": f"{game.id}/{game.cursor}/{table.changes}", **removal(game)}
                player.redraw()
            case _:
                self._change(player, table, client, kind, event)

    def _restate(self, player: Player, table: Table, client: str) -> None:
        """Let speed-ups stand on the start's time as it is known now."""
        before, again = table.yardstick, feed.start_again(table, self.queue.of(table.key))
        if before is not None and again is not None:
            table.yardstick = again
            self._save(player, table)
            earlier, since = seconds_text(before.seconds), seconds_text(again.seconds)
            self._tell(
                player, f"Speed-ups now stand on the start's {since}; before, on {earlier}.", client, "info"
            )

    def _look(self, player: Player, table: Table, kind: str, event: Json) -> None:
        """What a player looks at is measured sooner, and what they pause is not."""
        analysis = self._attention.attend(player, table)
        if kind == "select":
            path = event.get("path")
            player.selection = path if isinstance(path, str) else None
        elif kind == "sight":
            moves = event.get("moves")
            shown = [move for move in moves if isinstance(move, str)] if isinstance(moves, list) else []
            player.in_sight = {move: place for place, move in enumerate(shown)}
        elif kind == "pause":
            name = event.get("name")
            if isinstance(name, str) and name in REGISTRY:
                player.paused = player.paused | {name} if event.get("on") else player.paused - {name}
                player.redraw()
        elif kind == "look":
            player.looked_at = str(event.get("move", ""))
            player.preview = analysis.preview(player.looked_at)
            player.reason = ""
            if player.preview:
                with suppress(MoveSyntax):  # of a recipe, or of several moves, nothing is told
                    player.reason = met(parse_move(player.looked_at))
        else:
            player.assembly = bool(event.get("assembly", player.assembly))
            player.profile = bool(event.get("profile", player.profile))
        self._attention.attend(player, table, again=True)

    def _change(self, player: Player, table: Table, client: str, kind: str, event: Json) -> None:
        game = table.game
        if kind == "drop":
            player.drop = None
            player.redraw()
        before = (game.cursor, len(game.positions))
        try:
            if kind == "delete":
                table.deleted = delete(game)
                self._tell(player, table.deleted.words, client, "info", {"kind": "undelete"})
            elif kind == "undelete":
                if table.deleted is not None:
                    restore(game, table.deleted)
                table.deleted = None
            else:
                change(game, kind, event)
        finally:  # a replay that stops half-way has changed the game as well
            if kind == "promote" or (game.cursor, len(game.positions)) != before:
                table.by = client
                self._attention.attend(player, table)
                self._save(player, table)

    # ------------------------------------------------------------------ what a page is told

    def polling(self, player: Player) -> bool:
        """Is there anything under way that the player's page should hear of soon?"""
        if player.table is None:
            return False
        if player.pending or (player.companion is not None and player.companion.busy):
            return True
        queue = self.queue.of(player.table.key)
        return bool(player.measuring and not queue.down and queue.open_tasks(player.id))

    def awaits_quiet(self, player: Player) -> bool:
        """Is there nothing under way, but a busy machine that may come to rest, or times that wait for it?"""
        if player.table is None or not player.measuring:
            return False
        queue = self.queue.of(player.table.key)
        return not queue.down and (self._machine().busy or queue.waits_for_quiet(player.id))

    def poll(self, player: Player) -> float | None:
        """Seconds after which the player's page should ask again; None: nothing will have changed by itself.

        Whoever watches has no part in what is under way, and sees what is played all the same.
        """
        if self.polling(player):
            return POLL
        if player.table is None:
            return STARTING if self._games.local else None
        if player.watching:
            return ALONG if is_client(player.table.owner) else WATCHING
        return QUIET_POLL if self.awaits_quiet(player) else None

    def exchange(self, player: Player, client: object, events: object, version: object) -> Json:
        """A page's events, and what it is told then: the times, and the board where it has another one than
        that of ``version``. A page that does not know what it shows says an empty version.

        Where the moves of a position have to be found first, the board comes without them, and at the next
        message, for which the page does not wait, once more with them.
        """
        with self._attention.courtesy.answering():
            with player.lock:
                self.handle(player, client, events)
                analysis = self._unlisted(player, version)
                if analysis is not None and version != self.board_version(player) + UNLISTED:
                    return {"board": self.board(player, False), "feed": self.feed(player, False), "poll": 0.0}
            if analysis is not None:
                analysis.prepare()  # beside the locks: another tab at this table may play on
            with player.lock:
                # What events come to on the start screen, no version tells: an error, a draft.
                told = player.table is not None or not events
                same = told and version == self.board_version(player)
                board = None if same else self.board(player)
                poll = self.poll(player)  # asked before the feed: the last poll brings all there is
                return {"board": board, "feed": self.feed(player), "poll": poll}

    def _unlisted(self, player: Player, version: object) -> Analysis | None:
        """What is known of the position on the board, where its moves are not and the page lacks them."""
        table = player.table
        if table is None or version == self.board_version(player):
            return None
        with table.lock:
            analysis = self._attention.attend(player, table)
        return None if analysis.listed else analysis

    def ahead(self, player: Player, wanted: object) -> list[Json]:
        """Positions beside the one on the player's board, as it would show them (ahead.py)."""
        table = player.table
        with self._attention.courtesy.answering():
            return [] if table is None else sheets(table, self._attention.analysis, wanted)

    def board_version(self, player: Player) -> str:
        """Changes whenever ``board`` would show something else."""
        table = player.table
        if table is None:
            return f"start/{self._games.of_clients(player.owner)}"
        self._follow(table)
        return f"{table.game.id}/{table.game.cursor}/{table.changes}/{player.ready}/{player.measuring}"

    def _follow(self, table: Table) -> None:
        """Bring a table where a game is watched up to what was played, and of a program's game to the times
        that it has had taken: in another process, perhaps."""
        self._games.look_again(table)
        follow(table)
        if table.source is not None and is_client(table.owner):
            with table.lock:
                hashes = [position.program.hash for position in table.game.positions.values()]
            self._attention.remember(table, hashes)

    def board(self, player: Player, listed: bool = True) -> Json:
        """What stands on the board: the start screen, or a position with its history and, where they are to
        be ``listed``, its moves and code.

        With it the events it shows are acknowledged: sent again to a server that was started anew meanwhile,
        which knows nothing of them, they would be applied twice. ``told`` is [process, number]: of two boards
        that one process told, the one of the smaller number is the older one.
        """
        with player.lock:
            table = player.table
            common = {
                "acknowledged": dict(player.acknowledged),
                "version": self.board_version(player) + ("" if listed else UNLISTED),
                "told": [self._process, next(self._numbers)],
            }
            if table is None:
                return {"view": "start", **common, "start": board.start_screen(self._games, player)}
            self._follow(table)
            with table.lock:
                analysis = self._attention.attend(player, table)
                self._attention.measure_limit(player, table)
                taken = table.source is not None and self._games.may_take_over(table.owner, player.owner)
                position = board.position(player, table, analysis, taken, listed)
                if analysis.fault and (player.notice or {}).get("text") != analysis.fault:
                    self._tell(player, analysis.fault)
                shown = pinned.texts(player)
                return {"view": "play", "pinned": shown, **common, **position}

    def feed(self, player: Player, listed: bool = True) -> Json:
        """The times: small, asked for twice a second while there is work; of the moves where they are
        ``listed``. Renews the player's lease."""
        self.queue.renew(player.id)
        with self._lock:
            if player.id in self._players:
                self._players.move_to_end(player.id)
        with player.lock:
            common = {
                "acknowledged": dict(player.acknowledged),
                "notice": player.notice if time.monotonic() - player.noticed < NOTICE else None,
                "taken": player.taken,
            }
            table = player.table
            if table is None:
                return {"view": "start", **common}
            self._follow(table)
            with table.lock:
                analysis = self._attention.attend(player, table)
                self._attention.measure_limit(player, table)
                times = feed.times(player, table, analysis, self.queue.of(table.key), listed)
                if player.companion is not None and player.companion.secret:
                    times["results"] = [feed.NOT_ASKED] * len(times["results"])
                times["pinned"] = pinned.times(player, table, self.queue.of(table.key))
                if listed:  # looking takes some milliseconds
                    self._seen = self._machine()
                return {"view": "play", **common, **times, "machine": feed.machine(self._seen)}


def _plain(identifier: str) -> bool:
    return 0 < len(identifier) <= 40 and all(c.isascii() and (c.isalnum() or c in "-_") for c in identifier)
