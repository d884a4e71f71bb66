"""One per app process: players, their games, the measuring queue, and what a page is told.

A page hands over *events* (dicts with a kind, the game and the position they were made on) and asks for
the *board* (what stands on it; changes with the position) and the *feed* (times; changes all the time).
An event made on a position that is no longer current is dropped: a double click plays one move. Every
change of a game is stored before the page hears of it.

Knows no Streamlit: tests, and later agents, use it as the app does.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from dojo_core.game import Game, GameFull, Position
from dojo_core.line import RecordedLine, read_line
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.program.text import TextError, parse
from dojo_core.program.tree import Birth
from dojo_core.service.analysis import Analyses, Analysis, likelihood
from dojo_core.service.queue import Bench, MeasuringQueue, Outcome, Task
from dojo_core.service.view import Json, difference, history, path_text, program_lines

log = logging.getLogger(__name__)

FAULT = "That did not work: a fault of the app, noted in its log. The game is safe."

POLICIES = (
    ("reassoc", "A reduction's terms may be regrouped: the usual choice."),
    (
        "algebraic",
        "Also rewrites that are equal in mathematics but round differently (flash attention).",
    ),
    ("strict", "Additions stay in the order as written: the same bits as the start program, fewer moves."),
)

# Ranks in the queue; a smaller number is measured sooner.
SELF, START, LOOKED_AT, SELECTED, OTHER, REST_OF_LINE = range(6)


class Store(Protocol):
    """Where games and known times survive the process (measure/records.py)."""

    def save_game(self, game: str, player: str, title: str, kernel: str, text: str) -> None: ...

    def load_game(self, game: str) -> str | None: ...

    def recent_games(self, limit: int) -> Sequence[tuple[str, str, str, float]]:
        """(id, title, text, seconds since the epoch) of the games changed last, newest first."""
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


class Kernels(Protocol):
    """The start programs by name (dojo_core/kernels)."""

    def cards(self) -> Sequence[KernelCard]: ...

    def start(self, kernel: str, shape: str) -> Any:
        """The start program; raises ValueError with a sentence where the shape is none of its."""
        ...

    def work(self, kernel: str, shape: str) -> tuple[float, float]:
        """(FLOPs, bytes) of one run."""
        ...

    def workload(self, start: Any, kernel: str | None, policy: str) -> Any: ...


class Refused(Exception):
    """Something that a person asked for cannot be done; the message is a sentence for them."""


@dataclass
class Table:
    """A game that is open here. Players at the same table see the same game."""

    game: Game
    workload: Any
    key: str
    work: tuple[float, float] = (0.0, 0.0)
    lock: threading.RLock = field(default_factory=threading.RLock)
    hues: dict[Birth, int] = field(default_factory=dict)
    changes: int = 0


@dataclass
class Player:
    """One browser tab."""

    id: str
    table: Table | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    measuring: bool = True
    selection: str | None = None
    looked_at: str | None = None
    preview: list[tuple[str, str]] = field(default_factory=list)
    assembly: bool = False
    drop: Json | None = None
    error: str = ""
    acknowledged: dict[str, int] = field(default_factory=dict)
    notice: Json | None = None
    download: Json | None = None
    at: tuple[str, int] | None = None  # the (game, position) whose work is in the queue
    ready: int = 0  # grows when a part of the board arrived late (successors, refusals, assembly)
    pending: int = 0  # parts under way


class Service:
    """Players and their games. All methods may be called from any thread."""

    def __init__(
        self,
        store: Store,
        kernels: Kernels,
        make_bench: Callable[[], Bench],
        lines: Path | None = None,
        assemble: Callable[[Any], Any] | None = None,
    ) -> None:
        self._store = store
        self._kernels = kernels
        self._lines = lines
        self._assemble = assemble
        self._lock = threading.RLock()
        self._players: dict[str, Player] = {}
        self._tables: dict[str, Table] = {}
        self._analyses = Analyses()
        self._scout = Scout()
        self._notices = 0
        self.queue = MeasuringQueue(make_bench)

    def close(self) -> None:
        self._scout.close()
        self.queue.close()

    # ------------------------------------------------------------------ players and games

    def player(self, player: str | None, game: str | None = None) -> Player:
        """The player of that id, made if need be, at the table of ``game`` if one is named."""
        with self._lock:
            if player is None or not _plain(player):
                player = secrets.token_hex(5)
            found = self._players.get(player)
            if found is None:
                found = self._players[player] = Player(player)
        with found.lock:
            if game and found.table is None and _plain(game):
                try:
                    self._sit(found, self._table(game))
                except Refused as refusal:
                    self._tell(found, str(refusal), "error")
        return found

    def _table(self, game_id: str) -> Table:
        with self._lock:
            if game_id in self._tables:
                return self._tables[game_id]
        text = self._store.load_game(game_id)
        if text is None:
            raise Refused("There is no saved game with this id here.")
        try:
            game = Game.from_text(text)
        except Exception as fault:
            log.exception("saved game %s does not load", game_id)
            raise Refused("This saved game cannot be read; the log says why.") from fault
        game.id = game_id
        return self._open(game)

    def _open(self, game: Game) -> Table:
        workload = self._kernels.workload(game.start, game.kernel, game.policy)
        work = (0.0, 0.0)
        if game.kernel is not None:
            try:
                work = self._kernels.work(game.kernel, game.shape)
            except ValueError:
                log.exception("no work known for %s %s", game.kernel, game.shape)
        key = f"{game.start.hash}/{game.kernel or ''}/{game.policy}"
        with self._lock:
            return self._tables.setdefault(game.id, Table(game, workload, key, work))

    def _sit(self, player: Player, table: Table) -> None:
        self.queue.drop(player.id)
        player.table = table
        player.at = None
        player.drop = None
        player.error = ""
        hashes = [p.program.hash for p in table.game.positions.values()]
        self._remember(table, hashes)
        self._attend(player)

    def _save(self, player: Player, table: Table) -> None:
        game = table.game
        table.changes += 1
        self._store.save_game(game.id, player.id, game.title, game.kernel or "", game.to_text())

    def _remember(self, table: Table, hashes: Sequence[str]) -> None:
        """Fetch from the records what the queue does not know yet."""
        unknown = [h for h, r in zip(hashes, self.queue.results(table.key, hashes), strict=True) if r is None]
        if unknown:
            try:
                known = self._store.known(table.workload, unknown)
            except Exception:
                log.exception("reading records failed")
                return
            if known:
                self.queue.know(table.key, known)

    def _analysis(self, table: Table) -> Analysis:
        game = table.game
        return self._analyses.of(game.positions[game.cursor].program, game.target, game.policy)

    # ------------------------------------------------------------------ events

    def handle(self, player: Player, client: str, events: Sequence[Json]) -> None:
        """Apply a page's events in order, each number once."""
        with player.lock:
            done = player.acknowledged.get(client, 0)
            for event in events:
                number = int(event.get("seq", 0))
                if number <= done:
                    continue
                done = player.acknowledged[client] = number
                try:
                    self._apply(player, client, event)
                except (Refused, IllegalMove, MoveSyntax, GameFull) as refusal:
                    self._tell(player, str(refusal), "error")
                except Exception:
                    log.exception("event %r failed", event.get("kind"))
                    self._tell(
                        player,
                        FAULT,
                        "error",
                    )
            while len(player.acknowledged) > 8:
                player.acknowledged.pop(next(iter(player.acknowledged)))

    def _tell(self, player: Player, text: str, kind: str = "info") -> None:
        with self._lock:
            self._notices += 1
            player.notice = {"n": self._notices, "text": text, "kind": kind}

    def _apply(self, player: Player, client: str, event: Json) -> None:
        kind = str(event.get("kind", ""))
        begin: dict[str, Callable[[Player, Json], None]] = {
            "start": self._start,
            "text": self._text,
            "open": lambda p, e: self._sit(p, self._table(str(e.get("game", "")))),
            "line": self._recorded,
            "leave": self._leave,
        }
        if kind in begin:
            begin[kind](player, event)
            return
        if kind == "restart":
            self.queue.restart()
            return
        table = player.table
        if table is None:
            return
        if kind == "measure":
            player.measuring = bool(event.get("on"))
            self._attend(player, again=True)
            return
        with table.lock:
            game = table.game
            if event.get("game") != game.id or event.get("position") != game.cursor:
                return  # made on a position that is no longer on the board
            if kind in ("select", "look", "show"):
                self._look(player, table, kind, event)
                return
            if kind == "export":
                name = "".join(c if c.isalnum() else "-" for c in game.title).strip("-") or "game"
                with self._lock:
                    self._notices += 1
                    player.download = {
                        "n": self._notices, "client": client, "name": f"{name}.line", "text": game.to_text()
                    }  # fmt: skip
                return
            if kind == "ask_drop":
                self._ask_drop(player, table)
                return
            before = (game.cursor, len(game.positions))
            self._change(player, table, kind, event)
            if (game.cursor, len(game.positions)) != before or kind == "promote":
                self._save(player, table)
            self._attend(player)

    def _start(self, player: Player, event: Json) -> None:
        kernel, shape, policy = (str(event.get(k, "")) for k in ("kernel", "shape", "policy"))
        cards = {card.name: card for card in self._kernels.cards()}
        if kernel not in cards:
            raise Refused("There is no such kernel.")
        shape = (
            shape.strip().lower().replace("×", "x").replace("*", "x").replace(" ", "") or cards[kernel].shape
        )
        try:
            program = self._kernels.start(kernel, shape)
        except (ValueError, TypeError) as fault:
            raise Refused(f"{kernel} has no shape {shape!r}: {fault}") from fault
        self._new_game(player, Game.new(program, kernel=kernel, shape=shape, policy=_policy(policy)))

    def _text(self, player: Player, event: Json) -> None:
        text = str(event.get("text", ""))
        policy = _policy(str(event.get("policy", "")))
        player.error = ""
        if not text.strip():
            player.error = "Write a program, or paste a saved game, first."
            return
        try:
            if text.lstrip().startswith("dojo game"):
                game = Game.from_text(text)
            elif any(row.startswith("shape ") for row in text.splitlines()):
                game = self._replayed(read_line(text))
            else:
                program = parse(text)
                game = Game.new(program, policy=policy, title=program.name)
        except (TextError, IllegalMove) as fault:
            player.error = str(fault)
            return
        self._new_game(player, game)

    def _recorded(self, player: Player, event: Json) -> None:
        name = str(event.get("file", ""))
        file = next((f for f in self._line_files() if f.name == name), None)
        if file is None:
            raise Refused("There is no such recorded line.")
        game = self._replayed(read_line(file.read_text(), file.stem))
        player.measuring = False
        self._new_game(player, game)

    def _replayed(self, line: RecordedLine) -> Game:
        """A recorded line as a game, at its start. Raises Refused where a move no longer applies."""
        if line.kernel is None:
            raise Refused("This line names no kernel to play it on.")
        try:
            program = self._kernels.start(line.kernel, line.shape)
        except (ValueError, KeyError) as fault:
            raise Refused(
                f"This line's kernel {line.kernel} {line.shape} cannot be set up: {fault}"
            ) from fault
        game = Game.new(program, kernel=line.kernel, shape=line.shape, policy=_policy(line.policy))
        game.title = f"{game.title}: {line.title}" if line.title != line.kernel else game.title
        for entry in line.play(game).entries:
            if not entry.applies:
                raise Refused(f"This line stops at {entry.move}: {entry.reason}")
        game.goto(0)
        return game

    def _new_game(self, player: Player, game: Game) -> None:
        table = self._open(game)
        self._save(player, table)
        self._sit(player, table)

    def _leave(self, player: Player, event: Json) -> None:
        self.queue.drop(player.id)
        player.table = None
        player.drop = None
        player.error = ""
        player.measuring = True

    def _look(self, player: Player, table: Table, kind: str, event: Json) -> None:
        if kind == "select":
            path = event.get("path")
            player.selection = path if isinstance(path, str) else None
        elif kind == "look":
            player.looked_at = str(event.get("move", ""))
            player.preview = self._analysis(table).preview(player.looked_at)
        else:
            player.assembly = bool(event.get("assembly", player.assembly))
        self._attend(player, again=True)

    def _change(self, player: Player, table: Table, kind: str, event: Json) -> None:
        """Events that change the game or its cursor; the table is locked, the position current."""
        game = table.game
        if kind == "play":
            game.play(str(event.get("move", "")))
        elif kind == "take_back":
            if game.positions[game.cursor].parent is not None:
                game.back()
        elif kind == "goto":
            if event.get("id") in game.positions:
                game.goto(int(event["id"]))
        elif kind == "step":
            self._step(game, str(event.get("to", "")))
        elif kind == "promote":
            game.promote(game.cursor)
        elif kind == "delete":
            if game.positions[game.cursor].parent is not None:
                game.delete(game.cursor)
        elif kind == "drop":
            self._drop(player, table, str(event.get("mode", "")))
        else:
            log.warning("unknown event %r", kind)

    @staticmethod
    def _step(game: Game, to: str) -> None:
        here = game.positions[game.cursor]
        children = game.children(here.id)
        if to == "first":
            game.goto(0)
        elif to == "back" and here.parent is not None:
            game.back()
        elif to == "forward" and children:
            game.goto(children[0].id)
        elif to == "last":
            while children := game.children(game.cursor):
                game.goto(children[0].id)
        elif to == "branch":
            siblings = [] if here.parent is None else [p.id for p in game.children(here.parent)]
            if len(siblings) > 1:
                game.goto(siblings[(siblings.index(here.id) + 1) % len(siblings)])
            elif len(children) > 1:
                game.goto(children[1].id)

    def _ask_drop(self, player: Player, table: Table) -> None:
        """What removing the current move would do, tried on a copy of the game."""
        game = table.game
        here = game.positions[game.cursor]
        if here.parent is None:
            raise Refused("The start is no move: there is nothing to remove.")
        replay = _copy(game).drop(here.id, skip_invalid=True)
        entries = [
            {"move": e.move, "outcome": e.outcome, "new": e.new, "reason": e.reason} for e in replay.entries
        ]
        player.drop = {
            "id": f"{game.id}/{here.id}/{table.changes}",
            "move": str(here.move),
            "entries": entries,
        }
        player.ready += 1

    def _drop(self, player: Player, table: Table, mode: str) -> None:
        player.drop = None
        player.ready += 1
        if mode not in ("skip", "prefix"):
            return
        table.game.drop(table.game.cursor, skip_invalid=mode == "skip")

    # ------------------------------------------------------------------ work for a position

    def _attend(self, player: Player, again: bool = False) -> None:
        """See to it that the position on the board is analysed and measured."""
        table = player.table
        if table is None:
            return
        at = (table.game.id, table.game.cursor)
        if player.at != at:
            player.at = at
            player.selection = None
            player.looked_at = None
            player.preview = []
        elif not again:
            return
        analysis = self._analysis(table)
        self._submit(player, table, analysis)
        if not again:
            self._later(player, lambda: self._explore(player, table, analysis))
        if player.assembly and analysis.assembly is None and self._assemble is not None:
            self._compile(player, analysis)

    def _explore(self, player: Player, table: Table, analysis: Analysis) -> None:
        """What the moves lead to and what is known of that; then what is refused and what would open it."""
        successors = analysis.find_successors()
        self._remember(table, [s.program.hash for s in successors])
        with player.lock:
            if player.table is table and self._analysis(table) is analysis:
                self._submit(player, table, analysis)
        if analysis.known_blocked is None:
            analysis.find_blocked()
            with self._lock:
                player.ready += 1

    def _later(self, player: Player, work: Callable[[], None]) -> None:
        with self._lock:
            player.pending += 1

        def run() -> None:
            try:
                work()
            finally:
                with self._lock:
                    player.pending -= 1

        self._scout.add(run)

    def _compile(self, player: Player, analysis: Analysis) -> None:
        """The assembly, made between measurements."""
        assemble = self._assemble
        assert assemble is not None
        with self._lock:
            player.pending += 1

        def work() -> None:
            try:
                if analysis.assembly is None:
                    analysis.assembly = assemble(analysis)
            except Exception:
                log.exception("no assembly")
                analysis.assembly = {"error": "The assembly could not be made; the log says why."}
            finally:
                with self._lock:
                    player.pending -= 1
                    player.ready += 1

        self.queue.errand(f"{player.id}/{analysis.program.hash}", work)

    def _submit(self, player: Player, table: Table, analysis: Analysis) -> None:
        if not player.measuring:
            self.queue.drop(player.id)
            return
        game = table.game
        tasks = [(SELF, self._task(table, game.positions[game.cursor]))]
        tasks.append((START, self._task(table, game.positions[0])))
        tasks += [(REST_OF_LINE, self._task(table, p)) for p in game.line(game.cursor)[1:-1]]
        successors = analysis.known_successors or []
        seen: dict[str, int] = {}
        ranked: list[tuple[tuple[int, int, int], Task]] = []
        chosen = player.selection
        rows = analysis.rows if successors else []
        for row, successor in zip(rows, successors, strict=True):
            name = successor.move.name
            rank = OTHER
            if row["text"] == player.looked_at:
                rank = LOOKED_AT
            elif chosen is not None and any(p == chosen or p.startswith(chosen + ".") for p in row["paths"]):
                rank = SELECTED
            # a few of each kind first, the likelier kinds before the others
            turn = seen.get(name, 0)
            seen[name] = turn + 1
            kind = likelihood(name)
            task = Task(table.key, table.workload, successor.program, successor.program.hash)
            ranked.append(((rank, turn // 2, kind), task))
        ranked.sort(key=lambda entry: entry[0])
        tasks += [(rank[0], task) for rank, task in ranked]
        self.queue.want(player.id, tasks)

    @staticmethod
    def _task(table: Table, position: Position) -> Task:
        return Task(table.key, table.workload, position.program, position.program.hash)

    # ------------------------------------------------------------------ what a page is told

    def polling(self, player: Player) -> bool:
        """Is there anything under way that the player's page should hear of soon?"""
        if player.table is None:
            return False
        if player.pending:
            return True
        return bool(player.measuring and not self.queue.down and self.queue.open_tasks(player.id))

    def board_version(self, player: Player) -> str:
        """Changes whenever ``board`` would answer something else."""
        table = player.table
        if table is None:
            return "start"
        return f"{table.game.id}/{table.game.cursor}/{table.changes}/{player.ready}/{player.measuring}"

    def board(self, player: Player) -> Json:
        """What stands on the board: the start screen, or a position with its moves and history."""
        with player.lock:
            table = player.table
            if table is None:
                return {"view": "start", "start": self._start_screen(player)}
            with table.lock:
                self._attend(player)
                return self._position(player, table)

    def _position(self, player: Player, table: Table) -> Json:
        game = table.game
        here = game.positions[game.cursor]
        analysis = self._analysis(table)
        program = program_lines(here.program, table.hues)
        program["diff"], program["added"] = [], []
        if here.parent is not None:
            program["diff"] = difference(game.positions[here.parent].program.text, here.program.text)
            program["added"] = [line for mark, line in program["diff"] if mark == "+"]
        return {
            "view": "play",
            "game": {
                "id": game.id, "title": game.title, "kernel": game.kernel, "shape": game.shape,
                "policy": game.policy, "target": game.target,
            },
            "position": {"id": here.id, "parent": here.parent, "hash": here.program.hash},
            "program": program,
            "code": analysis.code_view,
            "assembly": analysis.assembly if player.assembly else None,
            "moves": analysis.rows,
            "blocked": analysis.known_blocked,
            "enablers": analysis.known_blocked is not None,
            "history": history(game),
            "drop": player.drop,
            "measuring": player.measuring,
        }  # fmt: skip

    def _start_screen(self, player: Player) -> Json:
        groups: dict[str, list[Json]] = {}
        for card in self._kernels.cards():
            groups.setdefault(card.group, []).append(
                {"name": card.name, "formula": card.formula, "shape": card.shape, "dims": card.dims}
            )
        recent = [
            {"id": game, "title": title, "moves": _moves_in(text), "when": _when(changed)}
            for game, title, text, changed in self._store.recent_games(4)
        ]
        lines = [
            {"file": file.name, "title": f"{file.stem}: a recorded line", "words": "step through it"}
            for file in self._line_files()
        ]
        return {
            "groups": [{"name": name, "kernels": kernels} for name, kernels in groups.items()],
            "policies": [{"name": name, "sentence": sentence} for name, sentence in POLICIES],
            "recent": recent,
            "lines": lines,
            "error": player.error,
        }

    def _line_files(self) -> list[Path]:
        return sorted(self._lines.glob("*.line")) if self._lines is not None and self._lines.is_dir() else []

    def feed(self, player: Player) -> Json:
        """The times: small, asked for twice a second while there is work. Renews the player's lease."""
        self.queue.renew(player.id)
        common = {
            "acknowledged": dict(player.acknowledged),
            "notice": player.notice,
            "download": player.download,
        }
        with player.lock:
            table = player.table
            if table is None:
                return {"view": "start", **common}
            with table.lock:
                return {"view": "play", **common, **self._times(player, table)}

    def _times(self, player: Player, table: Table) -> Json:
        game = table.game
        positions = list(game.positions.values())
        outcomes = self.queue.results(table.key, [p.program.hash for p in positions])
        found = {p.id: o for p, o in zip(positions, outcomes, strict=True) if o is not None}
        times = {str(i): o.seconds if o.ok else o.status for i, o in found.items()}
        ok = [(o.seconds, p) for p, o in zip(positions, outcomes, strict=True) if o is not None and o.ok]
        best = min(ok, key=lambda entry: entry[0], default=None)
        start = found.get(0)
        analysis = self._analysis(table)
        successors = analysis.known_successors
        running = self.queue.running(table.key)
        results: list[Any] = []
        if successors is None:
            results = [0 if player.measuring else 2] * len(analysis.moves)
        else:
            hashes = [s.program.hash for s in successors]
            for program_hash, outcome in zip(hashes, self.queue.results(table.key, hashes), strict=True):
                if outcome is None:
                    results.append((1 if program_hash in running else 0) if player.measuring else 2)
                elif outcome.ok:
                    results.append([outcome.seconds, outcome.median])
                else:
                    results.append([outcome.status, outcome.message[:600]])
        return {
            "game": game.id,
            "position": game.cursor,
            "now": self._now(player, found.get(game.cursor), game.current.program.hash in running),
            "start": start.seconds if start is not None and start.ok else None,
            "best": None if best is None else {
                "id": best[1].id, "seconds": best[0], "ply": len(game.line(best[1].id)) - 1
            },
            "times": times,
            "results": results,
            "look": {"move": player.looked_at, "diff": player.preview[:60]},
            "work": {"flops": table.work[0], "bytes": table.work[1]},
            "queue": self._queue_state(player, results),
        }  # fmt: skip

    def _now(self, player: Player, outcome: Outcome | None, running: bool) -> Json:
        if outcome is None:
            waiting = "waiting" if player.measuring and not self.queue.down else "not measured"
            return {"state": "measuring…" if running else waiting}
        if not outcome.ok:
            return {"state": outcome.status.replace("_", " "), "error": outcome.message or outcome.status}
        spread = outcome.median / outcome.seconds - 1 if outcome.seconds > 0 else 0.0
        return {
            "state": "ok",
            "seconds": outcome.seconds,
            "median": outcome.median,
            "spread": max(0.0, spread),
        }

    def _queue_state(self, player: Player, results: Sequence[Any]) -> Json:
        done = sum(1 for r in results if isinstance(r, list))
        state = "idle"
        serves = self.queue.serves()
        down = self.queue.down
        if self.queue.down:
            state = "down"
        elif not player.measuring:
            state = "off"
        elif self.queue.open_tasks(player.id):
            state = "measuring" if serves in (player.id, None) else "waiting"
        message = f"The measurer has stopped ({down}). Play goes on unmeasured." if down else ""
        return {"state": state, "done": done, "total": len(results), "message": message}


class Scout:
    """One thread for what is too slow for an answer and too short for the queue, newest first."""

    def __init__(self) -> None:
        self._work: list[Callable[[], None]] = []
        self._lock = threading.Condition()
        self._closed = False
        threading.Thread(target=self._run, name="scout", daemon=True).start()

    def add(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._work.append(work)
            self._lock.notify()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lock.notify()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._work and not self._closed:
                    self._lock.wait()
                if self._closed:
                    return
                work = self._work.pop()
            try:
                work()
            except Exception:
                log.exception("analysis failed")


def _moves_in(text: str) -> int:
    """How many moves a saved game's text has, without replaying it."""
    _, _, moves = text.partition("\nmoves:\n")
    return len(moves.splitlines())


def _copy(game: Game) -> Game:
    """A game to try things on: positions of its own, the same programs."""
    positions = {p.id: replace(p, children=list(p.children)) for p in game.positions.values()}
    return replace(game, positions=positions)


def _policy(name: str) -> str:
    return name if name in dict(POLICIES) else "reassoc"


def _plain(identifier: str) -> bool:
    return 0 < len(identifier) <= 40 and all(c.isascii() and (c.isalnum() or c in "-_") for c in identifier)


def _when(seconds: float) -> str:
    """A time as people say it, for the list of saved games."""
    ago = time.time() - seconds
    if ago < 90:
        return "just now"
    if ago < 5400:
        return f"{round(ago / 60)} minutes ago"
    if ago < 129600:
        return f"{round(ago / 3600)} hours ago"
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d")


__all__ = ["KernelCard", "Kernels", "Player", "Refused", "Service", "Store", "path_text"]
