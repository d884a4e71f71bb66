"""What is done for the position on a player's board: its moves explored, all that is wanted measured."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Protocol

from dojo_core.bench.roofline import Roofline
from dojo_core.game import Game, Position
from dojo_core.program.tree import Program
from dojo_core.service.analysis import Analyses, Analysis, likelihood
from dojo_core.service.changes import copied
from dojo_core.service.courtesy import Courtesy
from dojo_core.service.hints import Advise, Adviser, Hint, measured_hint
from dojo_core.service.lanes import Lanes
from dojo_core.service.learned import AskPolicy, Learned
from dojo_core.service.memory import Tidying
from dojo_core.service.players import Player, Table
from dojo_core.service.queue import Task
from dojo_core.service.scout import Scout
from dojo_core.service.sources import Store
from dojo_core.service.view import Json
from dojo_core.targets.registry import backend

log = logging.getLogger(__name__)

MOST_OPEN = 1500  # programs that one player waits for at once; of more moves the likeliest are measured
# Ranks in the queue; a smaller number is measured sooner.
SELF, START, LOOKED_AT, SELECTED, IN_SIGHT, OTHER, REST_OF_LINE = range(7)

FIRST_TIMES = 8  # moves that are timed before the machine's limit is

NOT_ASKED = "The learned policy could not be asked; the log says why."


class PlayedOn(Exception):
    """The board shows another position: what was being worked out for this one can wait."""


class Limits(Protocol):
    """The machine's limits for the kernels of tables."""

    def known(self, table: Table) -> Roofline | None:
        """What is kept; at once."""
        ...

    def torch(self, table: Table) -> float | None:
        """PyTorch's seconds for the same, by the last comparison; None without. At once."""
        ...

    def doubtful(self, table: Table) -> bool:
        """Whether that is nothing, or was taken on a busy machine."""
        ...

    def measure(self, table: Table, unwanted: Callable[[], bool]) -> Roofline | None:
        """Takes seconds and the whole machine; None where that has become ``unwanted``."""
        ...


class Attention:
    """One for all players. ``assemble`` makes the assembly view of an analysis, ``limits`` are those of the
    machine, ``advise`` is the pass that hints ask where no measured move is faster, ``policy`` what was
    learned and is told beside it; ``idle`` says whether
    the machine does nothing else just now. ``profile`` tells of an analysis, by its workload, where the time
    goes, until that is unwanted."""

    def __init__(
        self,
        queue: Lanes,
        store: Store,
        assemble: Callable[[Any], Any] | None = None,
        limits: Limits | None = None,
        advise: Advise | None = None,
        idle: Callable[[], bool] = lambda: True,
        profile: Callable[[Any, Any, Callable[[], bool]], Any] | None = None,
        policy: AskPolicy | None = None,
    ) -> None:
        self._queue = queue
        self._store = store
        self._assemble = assemble
        self._limits = limits
        self._adviser = None if advise is None else Adviser(advise)
        self._idle = idle
        self._profile = profile
        self._analyses = Analyses()
        self.courtesy = Courtesy()
        self._policy = policy
        self._scout = Scout()
        self._learner = Scout()  # a policy that is being loaded holds up no other work
        self._tidying = Tidying()

    def close(self) -> None:
        self._scout.close()
        self._learner.close()
        self._tidying.close()

    def analysis(self, game: Game, program: Program) -> Analysis:
        """What can be said of a program under a game's rules."""
        return self._analyses.of(program, game.target, game.policy)

    def attend(self, player: Player, table: Table, again: bool = False) -> Analysis:
        """The analysis of the position on the board; its work begins when it comes there.

        ``again``: what is wanted of it has changed (another selection, measuring switched on).
        """
        with table.lock:
            game = table.game
            at = (game.id, game.cursor)
            before, program = player.analysis, game.current.program
            # A number may stand for another position: one that was deleted elsewhere, and played anew.
            moved = player.at != at or before is None or before.program.hash != program.hash
            if moved:
                player.at = at
                player.analysis = self.analysis(game, program)
                player.explored = False
                player.selection = player.looked_at = None
                player.preview, player.reason, player.in_sight = [], "", {}
                player.hint = player.learned = None
            analysis = player.analysis
            assert analysis is not None
            if moved or again:
                self._submit(player, table, analysis)
                self._list(player, table, analysis)
                if player.pinned is not None:
                    self._list(player, player.pinned.table, player.pinned.analysis)
                if player.profile and analysis.profile is None and self._profile is not None:
                    tell = partial(self._profile, analysis, table.workload)
                    self._late(player, table, analysis, "profile", tell)
        if moved:
            player.expect()
            self._tidying.played()
            explore = partial(self._explore, player, table, analysis)
            self._scout.add(f"{player.id} explores", explore, partial(player.arrived, False))
        return analysis

    def remember(self, table: Table, hashes: Sequence[str]) -> None:
        """Fetch from the records what the queue does not know yet."""
        queue = self._queue.of(table.key)
        known = queue.results(table.key, hashes)
        unknown = [h for h, outcome in zip(hashes, known, strict=True) if outcome is None]
        if unknown:
            try:
                queue.know(table.key, self._store.known(table.workload, unknown))
            except Exception:
                log.exception("reading records failed")  # then they are measured

    def _explore(self, player: Player, table: Table, analysis: Analysis) -> None:
        """What the moves lead to and what is known of that; then what is refused and what would open it."""
        changed = False

        def rest() -> None:
            self.courtesy.give_way()
            if player.analysis is not analysis:
                raise PlayedOn

        try:
            rest()
            self.remember(table, [s.program.hash for s in analysis.find_successors(rest)])
            with player.lock, table.lock:
                if player.table is table and player.analysis is analysis:
                    player.explored = True
                    self._submit(player, table, analysis)
            if analysis.known_blocked is None:
                analysis.find_blocked(rest)
                changed = True
        except PlayedOn:
            pass
        finally:
            player.arrived(changed)

    def _list(self, player: Player, table: Table, analysis: Analysis) -> None:
        """The assembly of a position, where it is shown."""
        if player.assembly and analysis.assembly is None and self._assemble is not None:
            assemble = self._assemble
            self._late(player, table, analysis, "assembly", lambda _: assemble(analysis))

    def made(
        self, table: Table, analysis: Analysis, part: Literal["assembly", "profile"], seconds: float
    ) -> Json | None:
        """A part of an analysis, made between measurements; None where it is not there after so many
        seconds."""
        assemble, profile = self._assemble, self._profile
        if (assemble if part == "assembly" else profile) is None:
            return {"error": f"Nothing makes the {part} here."}
        done = threading.Event()

        def make() -> Any:
            if part == "assembly":
                return assemble and assemble(analysis)
            return profile and profile(analysis, table.workload, lambda: False)

        def work() -> None:
            try:
                if getattr(analysis, part) is None:
                    setattr(analysis, part, make())
            except Exception:
                log.exception("no %s", part)
                setattr(analysis, part, _not_made(part))
            finally:
                done.set()

        if getattr(analysis, part) is None:
            self._queue.of(table.key).errand(f"{part}/{id(done)}", work)
            done.wait(seconds)
        made: Json | None = getattr(analysis, part)
        return made

    def advised(self, game: Game) -> Hint | None:
        """What a pass would play at a game's cursor; None where there is no pass to ask."""
        return None if self._adviser is None else self._adviser.hint(game)

    def learned(self, game: Game) -> Learned | None:
        """What a policy says of a game's cursor; None where there is none to ask. Takes seconds at first."""
        return None if self._policy is None else self._policy(game)

    def _late(
        self,
        player: Player,
        table: Table,
        analysis: Analysis,
        part: str,
        make: Callable[[Callable[[], bool]], Any],
    ) -> None:
        """A part of an analysis, ``assembly`` or ``profile``, made between measurements. ``make`` is told
        when nobody looks at it any more, and may give up then."""
        left = False

        def unwanted() -> bool:
            nonlocal left
            left = left or not player.looks_at(analysis)
            return left

        def work() -> None:
            try:
                if getattr(analysis, part) is None and not unwanted():
                    made = make(unwanted)
                    if not left:
                        setattr(analysis, part, made)
            except Exception:
                log.exception("no %s", part)
                setattr(analysis, part, _not_made(part))
            finally:
                player.arrived()

        player.expect()
        if not self._queue.of(table.key).errand(f"{part}/{player.id}/{analysis.program.hash}", work):
            player.arrived(changed=False)

    def measure_limit(self, player: Player, table: Table) -> None:
        """Show what is known of the machine's limit; measure it once where that is nothing, or was taken on a
        busy machine that is so no longer, when the first times are there: those come first."""
        limits = self._limits
        with table.lock:
            if limits is None or not backend(table.game.target).native:
                return
            table.torch = limits.torch(table)
            table.roofline = limits.known(table)  # every time: another page, or a run, may have lowered it
            if (
                table.limited
                or not player.measuring
                or self._queue.of(table.key).down
                or not limits.doubtful(table)
                or (table.roofline is not None and not self._idle())
            ):
                return
            successors = player.analysis.known_successors if player.analysis is not None else None
            if successors is None:
                return
            hashes = [table.game.start.hash, *(s.program.hash for s in successors)]
            start, *known = self._queue.of(table.key).results(table.key, hashes)
            some = min(FIRST_TIMES, len(known))
            if start is None or not start.ok or sum(outcome is not None for outcome in known) < some:
                return
            table.limited = True

        def work() -> None:
            try:
                table.roofline = limits.measure(table, lambda: player.table is not table)
                table.limited = player.table is table
            except Exception:
                log.exception("no roofline")
            finally:
                player.arrived(changed=False)

        player.expect()
        if not self._queue.of(table.key).errand(f"roofline/{table.key}", work):
            player.arrived(changed=False)
            table.limited = False  # another game of this workload is waiting for it, which keeps it

    def hint(self, player: Player, table: Table) -> None:
        """A hint for the position on the board, or one level more of the one that is shown."""
        with table.lock:
            analysis = self.attend(player, table)
            at = (table.game.id, table.game.cursor)
            self._ask_policy(player, table)
            if player.hint is not None and player.hint.at == at and player.hint.source != "none":
                player.hint = player.hint.further if player.hint.source != "waiting" else player.hint
                return
            at_hash = table.game.current.program.hash
            successors = analysis.known_successors or []
            hashes = [s.program.hash for s in successors]
            queue, steady = self._queue.of(table.key), backend(table.game.target).clock().steady
            speeds = queue.speeds(table.key, at_hash, hashes, steady)
            moves = [str(s.move) for s in successors]
            hint = measured_hint(at, analysis, dict(zip(moves, speeds, strict=True)))
            adviser = self._adviser
            if hint is None and adviser is not None:
                hint = adviser.known(table.game)
                if hint is None:
                    player.hint = Hint(at, "waiting")
                    player.expect()
                    copy = copied(table.game)
                    ask = partial(self._ask, player, copy, adviser)
                    self._scout.add(f"{player.id} asks", ask, partial(player.arrived, False))
                    return
            player.hint = hint or Hint(at, "none")

    def _ask_policy(self, player: Player, table: Table) -> None:
        """Have a policy asked about the position on the board, where that has not been done. Where a puzzle
        keeps the times of moves back none is: it would tell the move, before the puzzle's own hints."""
        ask = self._policy
        secret = player.companion is not None and player.companion.secret
        if ask is None or player.learned is not None or secret:
            return
        waiting = player.learned = Learned("")
        game = copied(table.game)

        def work() -> None:
            learned = Learned(NOT_ASKED)
            try:
                learned = ask(game)
            except Exception:
                log.exception("no policy's word on\n%s", game.current.program.text)
            finally:
                with player.lock:
                    if player.learned is waiting:  # the player has not gone on meanwhile
                        player.learned = learned
                player.arrived(changed=False)

        player.expect()
        self._learner.add(f"{player.id} asks a policy", work, partial(player.arrived, False))

    def _ask(self, player: Player, game: Game, adviser: Adviser) -> None:
        """What a pass would play, unless the player has gone on meanwhile."""
        at = (game.id, game.cursor)
        hint = Hint(at, "none")
        try:
            hint = adviser.hint(game)
        except Exception:
            log.exception("no advice for\n%s", game.current.program.text)
        finally:
            with player.lock:
                if player.hint is not None and player.hint.at == at:
                    player.hint = hint
            player.arrived(changed=False)

    def _submit(self, player: Player, table: Table, analysis: Analysis) -> None:
        """Tell the queue what this player wants measured, and how soon."""
        game, clock = table.game, backend(table.game.target).clock()
        if not player.measuring or clock.kind == "elsewhere":
            self._queue.drop(player.id)
            return

        def task(position: Position) -> Task:
            return task_of(table, position.program, moves_to(game, position))

        tasks = [(SELF, task(game.current)), (START, task(game.positions[0]))]
        tasks += [(REST_OF_LINE, task(p)) for p in game.line()[1:-1]]
        tasks += self._successors(player, table, analysis)
        pinned = player.pinned
        if pinned is not None and pinned.table.key == table.key:
            program = pinned.analysis.program
            there = task_of(table, program, pinned.line)
            if program.hash != game.current.program.hash:
                tasks.append((LOOKED_AT, there))  # in turns with the board, as a move is that is looked at
        tasks.sort(key=lambda task: task[0])
        self._queue.want(player.id, tasks[:MOST_OPEN], player.owner)

    @staticmethod
    def _successors(player: Player, table: Table, analysis: Analysis) -> list[tuple[int, Task]]:
        """What the moves lead to: what is looked at first, then what is on the screen, then the rest; of each
        some of each kind, likelier ones first. Paused kinds are left out, but for the move that is looked at.
        """
        successors = analysis.known_successors
        if successors is None:
            return []
        seen: dict[str, int] = {}
        ranked: list[tuple[tuple[int, int, int, int], Task]] = []
        chosen = player.selection
        moves_here = moves_to(table.game, table.game.current)
        for row, successor in zip(analysis.rows, successors, strict=True):
            name = successor.move.name
            rank, place = OTHER, 0
            if row["text"] == player.looked_at:
                rank = LOOKED_AT
            elif name in player.paused:
                continue
            elif chosen is not None and any(p == chosen or p.startswith(chosen + ".") for p in row["paths"]):
                rank = SELECTED
            elif row["text"] in player.in_sight:
                rank, place = IN_SIGHT, player.in_sight[row["text"]]
            turn = seen.get(name, 0)
            seen[name] = turn + 1
            line = f"{moves_here}\n{row['text']}" if moves_here else row["text"]
            task = task_of(table, successor.program, line)
            ranked.append(((rank, turn // 2, likelihood(name), place), task))
        ranked.sort(key=lambda entry: entry[0])
        return [(rank, task) for (rank, *_), task in ranked]


def task_of(table: Table, program: Program, line: str) -> Task:
    """A program of a table's kernel to measure; ``line``: the moves from the start to it, one a line."""
    steady = backend(table.game.target).clock().steady
    return Task(table.key, table.workload, program, program.hash, line, steady)


def moves_to(game: Game, position: Position) -> str:
    """The moves from the start to a position, one a line, as a record keeps them."""
    return "\n".join(str(p.move) for p in game.line(position.id)[1:])


def _not_made(part: str) -> Json:
    return {"error": f"The {part} could not be made; the log says why."}
