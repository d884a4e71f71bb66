"""Games: begun from a kernel, a text or a recorded line, opened from the store, saved at every change."""

from __future__ import annotations

import hashlib
import itertools
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from weakref import WeakValueDictionary

from dojo_core import kernels, sharing
from dojo_core.from_code.recognise import kind_of
from dojo_core.game import Game
from dojo_core.line import RecordedLine, read_line
from dojo_core.measure.database import DatabaseFault
from dojo_core.opening import begun, first_shape, text_game
from dojo_core.ownership import is_client, may_claim, may_take_over, watching
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.service import authored, saved_games, yardstick
from dojo_core.service.changes import copied
from dojo_core.service.merging import lines, merge
from dojo_core.service.players import Refused, Table
from dojo_core.service.refused import Full, NotThere, Unfit
from dojo_core.service.sources import UNLISTED_GAMES, KernelCard, Kernels, SavedText, Store
from dojo_core.targets.registry import AT, UnknownTarget, backend, backends
from dojo_core.targets.registry import target as target_named

log = logging.getLogger(__name__)

LOOK_AGAIN = 0.5  # seconds between two looks at what another process saved of a game that is watched
KEPT_GAMES, KEPT_OWN = 500, 100  # with moves, of one player; and on kernels of their own among them
KEPT_OF_CLIENTS = 5000  # of all programs together, whatever names they give themselves

POLICIES = (
    ("reassoc", "regroup sums", "A reduction's terms may be regrouped: the usual choice."),
    (
        "algebraic",
        "rewrite formulas",
        "Also rewrites that are equal in mathematics but round differently (flash attention).",
    ),
    (
        "tf32",
        "factors in TF32",
        "Also rounds the factors of sums of products to 10 bits, for tensor cores of a GPU.",
    ),
    (
        "strict",
        "as written",
        "Additions stay in the order as written: the same bits as the start program, fewer moves.",
    ),
)


def targets() -> list[tuple[str, str, str]]:
    """Of each target its name, its words and a sentence; behind it, of each other machine that is known."""
    choices = []
    for each in backends():
        choices.append((each.name, each.words.title, each.words.about))
        for machine in each.machines():
            with suppress(UnknownTarget):  # forgotten meanwhile
                on = backend(f"{each.name}{AT}{machine}")
                choices.append((on.name, on.words.title, on.words.about))
    return choices


def policies(target: str) -> list[tuple[str, str, str]]:
    """Of each floating-point policy that a game on a target gains by its name, its words and a sentence."""
    known = target_named(target).policies
    return [each for each in POLICIES if each[0] in known]


@lru_cache(maxsize=1024)
def _line(file: Path, changed: int, size: int) -> RecordedLine:
    """A file of a line as it is since it ``changed``: every start screen shows all of them."""
    return read_line(file.read_text(encoding="utf-8"), file.stem)


class Games:
    """The games of one process. A table stays open as long as somebody sits at it."""

    def __init__(
        self, store: Store, kernels: Kernels, lines: Path | None, local: bool = False, measure: bool = True
    ) -> None:
        self._store = store
        self.local = local
        self._measure = measure
        self._kernels = kernels
        self._lines = lines
        self._tables: WeakValueDictionary[str, Table] = WeakValueDictionary()
        self._opening = threading.RLock()  # one game has one table, whoever asks for it at once

    # ------------------------------------------------------------------ what there is

    def cards(self) -> Sequence[KernelCard]:
        return self._kernels.cards()

    def shapes(self, target: str) -> dict[str, str]:
        """The shapes that kernels begin with on a target, of those that begin with another elsewhere."""
        limits = target_named(target)
        if limits.memory_bytes is None:
            return {}
        known = [kernels.get(card.name) for card in self.cards() if card.name in kernels.names()]
        return {kernel.name: "x".join(map(str, first_shape(kernel, limits))) for kernel in known}

    def recent(self, limit: int, owner: str) -> Sequence[SavedText]:
        """The games changed last of an owner, nobody's, and, where only this machine's people come in, those
        that programs play; newest first, those of lessons left out."""
        games = self._store.recent_games(2 * limit, owner, self.local)
        return [game for game in games if not game.id.startswith(UNLISTED_GAMES)][:limit]

    def of_clients(self, owner: str) -> float:
        """When a game was changed last that a program plays; 0 where an owner sees none."""
        return max((g.updated for g in self.recent(1, owner) if is_client(g.player)), default=0.0)

    def line_files(self) -> list[Path]:
        return sorted(self._lines.glob("*.line")) if self._lines is not None else []

    def recorded(self) -> list[tuple[str, RecordedLine]]:
        """The recorded lines that can be read, by their files' names."""
        recorded = []
        for file in self.line_files():
            try:
                status = file.stat()
                recorded.append((file.name, _line(file, status.st_mtime_ns, status.st_size)))
            except (TextError, OSError):
                log.exception("line %s cannot be read", file)
        return recorded

    # ------------------------------------------------------------------ tables

    def saved(self, game_id: str) -> Table:
        """The table of a saved game."""
        with self._opening:
            table = self._tables.get(game_id)
            if table is None:
                return self._opened(game_id, self._store.load_game(game_id))
        with table.lock:  # another process may have saved it since
            saved = self._store.load_game(game_id)
            if saved is not None and table.stored:
                table.owner = saved.player
                _take_in(table, saved.text)
        return table

    def seat(self, game_id: str, owner: str) -> Table:
        """The table of a saved game for its owner, or who may claim it; for others one to watch it at."""
        table = self._claimed(game_id, owner)
        return table if table.owner == owner else watched(table)

    def own(self, game_id: str, owner: str) -> Table:
        """The table of a saved game, to change it. Raises Refused where it is somebody else's."""
        table = self._claimed(game_id, owner)
        if table.owner != owner:
            raise Refused(watching(table.owner))
        return table

    def take_over(self, game_id: str, owner: str) -> None:
        """Make a game that a program plays the owner's. Raises Refused."""
        table = self.saved(game_id)
        if not may_take_over(owner, table.owner, self.local):
            raise Refused(watching(table.owner))
        self._store.give_game(game_id, table.owner, owner)

    def look_again(self, view: Table) -> None:
        """Bring in what another process has saved meanwhile of a game that is watched."""
        source, now = view.source, time.monotonic()
        if source is None or now - view.looked < LOOK_AGAIN:
            return
        view.looked = now
        saved = self._store.load_game(source.game.id)
        with source.lock:
            if saved is None or saved.text == source.stored:
                return
            source.owner = saved.player
            try:
                _take_in(source, saved.text, along=is_client(saved.player))
            except (TextError, Refused) as fault:  # a target of a package that is gone; too many moves
                log.warning("game %s is not followed: %s", saved.id, fault)
                return
            source.yardstick = yardstick.read(saved.text) or source.yardstick

    def _claimed(self, game_id: str, owner: str) -> Table:
        table = self.saved(game_id)
        if may_claim(owner, table.owner, self.local):
            self._store.give_game(game_id, table.owner, owner)
            table = self.saved(game_id)
        return table

    def stored(self, game_id: str) -> SavedText | None:
        """A game as it is saved; None where it is not."""
        return self._store.load_game(game_id)

    def may_change(self, before: str, owner: str) -> bool:
        """May an owner change a game of ``before``: is it theirs, or nobody's so that they may claim it?"""
        return before == owner or may_claim(owner, before, self.local)

    def may_take_over(self, before: str, owner: str) -> bool:
        """May an owner have a game of ``before`` that a program plays?"""
        return may_take_over(owner, before, self.local)

    def _opened(self, game_id: str, saved: SavedText | None) -> Table:
        if saved is None:
            raise NotThere("There is no saved game with this id here.")
        try:
            game = Game.from_text(saved.text)
        except TextError as fault:  # as where a package is gone whose target or moves it has
            raise Refused(f"This saved game cannot be read here. {fault.message}") from fault
        except Exception as fault:
            log.exception("saved game %s does not load", game_id)
            raise Refused("This saved game cannot be read; the log says why.") from fault
        game.id = game_id
        table = self.table(game, saved.player)
        table.measuring = saved_games.measured(saved.text)
        table.yardstick = yardstick.read(saved.text)
        table.authored = authored.of_text(saved.text)
        table.client = saved_games.client_in(saved.text)
        table.noted = saved_games.notes_in(saved.text)
        table.stored = saved.text
        return table

    def table(self, game: Game, owner: str) -> Table:
        """A table for a game, its owner's."""
        try:
            work = self._kernels.work(game.kernel, game.shape, game.start)
        except ValueError:
            log.warning("no work known for %s %s", game.kernel, game.shape)
            work = (0.0, 0.0)
        workload = self._kernels.workload(game.start, game.kernel, game.policy, game.target)
        with self._opening:
            table = Table(game, workload, workload_key(game), work, owner, measuring=self._measure)
            self._tables[game.id] = table
            return table

    def save(self, table: Table, notes: str = "") -> bool:
        """Keep the game as it is now. Raises Refused where that fails; the next save has this change too.

        Another process may have saved this game meanwhile: what was played there is taken in, as
        variations, and the answer is True.
        """
        game = table.game
        table.changes += 1
        table.noted = notes
        merged = False
        try:
            while True:
                text = game.to_text() + notes
                saved = SavedText(game.id, table.owner, game.title, game.kernel or "", text)
                other = self._store.save_game(saved, table.stored or None)
                if other is None:
                    table.stored = text
                    return merged
                merged = _take_in(table, other.text) or merged
        except Refused:
            raise
        except Exception as fault:
            log.exception("game %s is not saved", game.id)
            why = f": {fault}" if isinstance(fault, DatabaseFault) else f" ({fault}): is the disk full?"
            raise Refused(
                f"The game could not be saved{why} Play goes on, and the next move is saved together with "
                "this one."
            ) from fault

    def forget(self, game_id: str, owner: str) -> SavedText:
        """Delete a saved game; ``remember`` with what this gives undoes it. Raises Refused."""
        saved = self._store.load_game(game_id)
        if saved is None:
            raise Refused("This game is deleted already.")
        if not (self.may_change(saved.player, owner) or self.may_take_over(saved.player, owner)):
            raise Refused(watching(saved.player))
        self._store.delete_game(game_id)
        return saved

    def remember(self, saved: SavedText) -> None:
        self._store.save_game(saved)

    def rename(self, game_id: str, title: str, owner: str) -> None:
        """Give a saved game another title. Raises Refused."""
        title = " ".join(title.split())[:80]
        if not title:
            raise Refused("A title has at least one letter.")
        table = self.own(game_id, owner)
        with table.lock:
            table.game.title = title
            saved = self._store.load_game(game_id)
            # one that was deleted meanwhile is kept again, as it is once something is played in it
            self.save(table, table.noted if saved is None else saved_games.notes_in(saved.text))

    def kept_already(self, game: Game, owner: str) -> bool:
        """Has an owner this very game, not changed since it came?

        ``game`` gets its id then, else one that is free.
        """
        played = _played(game.to_text())
        for copy in itertools.count():
            identity = "\n".join([owner, str(copy), *played])
            game.id = hashlib.sha256(identity.encode()).hexdigest()[:12]
            saved = self._store.load_game(game.id)
            if saved is None:
                return False
            if saved.player == owner and _played(saved.text) == played:
                return True
        raise AssertionError("unreachable")

    # ------------------------------------------------------------------ beginnings

    def check_quota(self, owner: str, of_own_text: bool) -> None:
        """Raises Refused where an owner has all games that one may keep; ``of_own_text``: on one's own."""
        if is_client(owner) and self._store.count_games_of_clients() >= KEPT_OF_CLIENTS:
            raise Full(
                f"Programs have {KEPT_OF_CLIENTS} games here together, as many as there may be: a person has "
                "to delete some first, on the page Library."
            )
        games, own_games = self._store.count_games(owner)
        if games >= KEPT_GAMES:
            raise Full(f"You have {games} games, as many as one player may keep: delete some first.")
        if of_own_text and own_games >= KEPT_OWN:
            raise Full(
                f"You have {own_games} games on kernels of your own, as many as one player may keep: "
                "delete some first."
            )

    def from_kernel(self, kernel: str, shape: str, policy: str, target: str = DEFAULT_TARGET) -> Game:
        """A game on one of the kernels; an empty ``shape`` is the target's first. Raises Refused."""
        card = next((card for card in self.cards() if card.name == kernel), None)
        if card is None:
            raise NotThere(kernels.unknown(kernel))
        shape = shape.lower().replace("×", "x").replace("*", "x").replace(" ", "")
        shape = shape or self.shapes(target or DEFAULT_TARGET).get(kernel, card.shape)
        shape = dict(card.layers).get(shape, shape)
        try:
            program = self._kernels.start(kernel, shape)
            return begun(program, kernel, shape, target or DEFAULT_TARGET, _policy(policy))
        except (ValueError, TypeError) as fault:
            raise Unfit(str(fault)) from fault

    def from_text(
        self, text: str, policy: str, target: str = DEFAULT_TARGET, sizes: Mapping[str, int] | None = None
    ) -> Game:
        """A game from a program, a saved game, a line, or a text that is translated, whichever the text is;
        ``sizes`` are by name in place of those of a text that is translated.

        Raises TextError, and Refused where a line does not play or a program does not write its output.
        """
        kind = kind_of(text)
        if kind == "game":
            return Game.from_text(text)
        if sharing.has_start(text):
            return _taken_along(text)
        if kind == "line":
            game, stop = self._replayed(read_line(text))
            if stop:
                raise Unfit(stop)
            return game
        try:
            return text_game(text, target or DEFAULT_TARGET, _policy(policy), sizes)
        except TextError:
            raise
        except ValueError as fault:
            raise Unfit(str(fault)) from fault

    def from_line(self, name: str) -> tuple[Game, str]:
        """A game at the start of a recorded line, and where it stops before its end, as a sentence. Raises
        Refused, or TextError for a broken file."""
        file = next((f for f in self.line_files() if f.name == name), None)
        if file is None:
            raise NotThere("There is no such recorded line.")
        return self._replayed(read_line(file.read_text(encoding="utf-8"), file.stem))

    def _replayed(self, line: RecordedLine) -> tuple[Game, str]:
        if line.kernel is None:
            raise Unfit("This line names no kernel to play it on.")
        try:
            program = self._kernels.start(line.kernel, line.shape)
        except (ValueError, KeyError) as fault:
            raise Unfit(f"This line's kernel {line.kernel} {line.shape} cannot be set up: {fault}") from fault
        program = target_named(line.target).start(program)
        game = Game.new(program, line.kernel, line.shape, line.target, _policy(line.policy))
        game.title = f"{game.title}: {line.title}" if line.title != line.kernel else game.title
        stopped = [entry for entry in line.play(game).entries if not entry.applies]
        stop = f"This line stops at {stopped[0].move}: {stopped[0].reason}" if stopped else ""
        if stop and len(game.positions) == 1:
            raise Unfit(stop)
        game.goto(0)
        return game, stop


def workload_key(game: Game) -> str:
    """The name of what a game's programs are judged against, its target last; the same for all of a start."""
    return f"{game.start.hash}/{game.kernel or ''}/{game.policy}/{game.target}"


def watched(source: Table) -> Table:
    """A table to watch a game at."""
    view = Table(
        source.game, source.workload, source.key, source.work, source.owner, source.client, source=source
    )
    # A program has measured what it asks for; the times that it waits for come first.
    view.measuring = source.measuring and not is_client(source.owner)
    view.roofline, view.torch, view.limited = source.roofline, source.torch, source.limited
    follow(view)
    return view


def follow(view: Table) -> None:
    """Bring a table where a game is watched up to what its owner has played since.

    It goes along with the owner's cursor as long as its own stands there.
    """
    source = view.source
    if source is None:
        return
    with view.lock, source.lock:
        view.owner = source.owner
        state = (source.changes, source.game.cursor)
        if state == view.followed:
            return
        along = view.followed is None or view.game.cursor == view.followed[1]
        cursor = source.game.cursor if along else view.game.cursor
        view.game = copied(source.game)
        view.game.cursor = cursor if cursor in view.game.positions else source.game.cursor
        view.changes, view.followed = source.changes, state


def _take_in(table: Table, text: str, along: bool = False) -> bool:
    """Bring into a table's game, which is locked, what another process saved; the cursor stays, unless it
    goes ``along``. Raises Refused."""
    if text == table.stored:
        return False
    if not along and _played(text) == _played(table.stored):  # only its cursor was moved
        table.stored = text
        return False
    game = table.game
    theirs = Game.from_text(text, known=game)
    merged = merge(game, Game.from_text(table.stored, known=game), theirs)
    if along:
        moves = tuple(str(position.move) for position in theirs.line()[1:])
        game.cursor = lines(game)[moves].id
    table.stored = text
    table.changes += 1
    table.by = ""
    return bool(merged.came or merged.went)


def _played(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(("cursor:", "#"))]


def _taken_along(text: str) -> Game:
    """The game of a line that has its start program with it. Raises TextError, and Refused."""
    try:
        opened = sharing.open_line(text)
    except sharing.BadLink as fault:
        raise Unfit(str(fault)) from fault
    if opened.gone:
        raise Unfit(opened.words)
    opened.game.goto(0)
    return opened.game


def _policy(name: str) -> str:
    return name if name in [policy for policy, *_ in POLICIES] else "reassoc"
