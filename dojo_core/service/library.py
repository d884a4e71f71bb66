"""The Library: records, leaderboards, saved games; import, export, deleting that can be undone.

Times that this machine has not verified are claims: those of other machines, and all that was imported. A
claim becomes a record by being replayed through the legality checks and measured here.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from itertools import islice, product
from typing import Any

from dojo_core import kernels
from dojo_core.actions.timing import workload_of
from dojo_core.bench.baselines import BASELINES
from dojo_core.bench.roofline import Question, known
from dojo_core.bench.summary import settled
from dojo_core.codegen.code import NotGeneratable
from dojo_core.export import Choice, NotExported, of_game, zipped
from dojo_core.export import library as c_library
from dojo_core.faults import program_fault, text_fault
from dojo_core.game import Entry, Game, GameFull
from dojo_core.line import recorded_lines
from dojo_core.measure.catalogue import Board, Catalogue, Row, TakenOut, Wanted
from dojo_core.measure.exchange import PACKED, NoRecord, Taken, file_lines, take_in, to_line
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.records import Record, Records, SavedGame
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.ownership import name as owner_name
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.service import saved_games
from dojo_core.service.attention import OTHER
from dojo_core.service.comparing import Comparisons, Contender, board_contender
from dojo_core.service.games import workload_key
from dojo_core.service.queue import Task
from dojo_core.service.refused import Refused
from dojo_core.service.service import Service
from dojo_core.service.sources import UNLISTED_GAMES
from dojo_core.service.takeaway import c_text, file_name
from dojo_core.sharing import BadLink, Opened, open_text
from dojo_core.targets.registry import AT, UnknownTarget, backend, backends, origins
from dojo_core.wording import counted

log = logging.getLogger(__name__)

LARGEST_GAME = 512 * 1024  # bytes of a .dojo file
LARGEST_RECORDS = 16 << 20  # bytes of a file of records
RECORDS_OFFERED = 8  # of the fastest, to be compared
CLAIM = "# claims "
_CLAIMED = re.compile(r"^# claims (\d+(?:\.\d+)?)×(?: on (.*))?$", re.MULTILINE)


@dataclass(frozen=True)
class Ranked:
    """A line of a leaderboard. ``rank`` is None for a claim; ratios are None where there is no other time."""

    rank: int | None
    row: Row
    speedup: float | None
    against: float | None


@dataclass(frozen=True)
class Leaderboard:
    """The ranking of a start program on a machine: verified programs, then claims."""

    board: Board
    shape: str
    of_this_machine: bool
    lines: tuple[Ranked, ...]


@dataclass(frozen=True)
class GameCard:
    """A saved game as the library lists it. ``best`` is its best speed-up; ``claim`` one from elsewhere."""

    id: str
    title: str
    kernel: str
    shape: str
    player: str
    moves: int
    best: float | None
    claim: float | None
    updated: float


@dataclass(frozen=True)
class Imported:
    """What a file came to: a game that was opened, or records; ``words`` tell it."""

    words: str
    game: str = ""
    taken: Taken | None = None


@dataclass(frozen=True)
class Deleted:
    """What was deleted last, so that it can come back."""

    words: str
    taken: TakenOut | None = None
    games: tuple[SavedGame, ...] = ()


def _of_the_game(line: str, faster: str) -> bool:
    """Is a line of moves of the game that ``faster`` is of: on the way to it, one move beside that way, as
    all that are tried at a position, or behind it? The start is of every game, and of none."""
    moves, others = line.splitlines(), faster.splitlines()
    beside, behind = others[: len(moves) - 1] == moves[:-1], moves[: len(others)] == others
    return bool(moves and others) and (beside or behind)


class Library:
    """One for the process, over a connection of its own. All methods may be called from any thread."""

    def __init__(
        self,
        catalogue: Catalogue,
        service: Service,
        comparisons: Comparisons,
        is_agent: Callable[[str], bool] = lambda player: False,
    ) -> None:
        self.catalogue = catalogue
        self.comparisons = comparisons
        self._is_agent = is_agent
        self.catalogue.own_fingerprints = frozenset([this_machine().fingerprint])
        threading.Thread(target=self._find_origins, name="fingerprints", daemon=True).start()
        self._service = service

    def _find_origins(self) -> None:
        """A GPU's worker takes seconds to start; its records are another machine's until then."""
        found = frozenset(origin.fingerprint for origin in origins())
        self.catalogue.own_fingerprints |= found  # what another library found meanwhile stays

    # ------------------------------------------------------------------ what there is

    def machine_words(self, fingerprint: str, details: str) -> str:
        """A machine in a line; this one by name."""
        if fingerprint in self.catalogue.own_fingerprints:
            return f"{_summary(details) or this_machine().summary} (this machine)"
        return f"{_summary(details) or 'another machine'} [{fingerprint[:6]}]"

    def shape_of(self, kernel: str, start_hash: str, shape: str) -> str:
        """The kernel's own shape of a start program, such as 96x32; where that is not found, the output's."""
        return self._kernel_shape(kernel, start_hash) or shape

    def _kernel_shape(self, kernel: str, start_hash: str) -> str:
        text = self.catalogue.any_text(start_hash)
        return kernel_shape(kernel, start_hash, self._played_shapes(kernel), _sizes(text))

    def _played_shapes(self, kernel: str) -> tuple[str, ...]:
        games = (saved_games.outline(game.text) for game in self.catalogue.games(limit=saved_games.LISTED))
        return tuple(sorted({what.shape for what in games if what.kernel == kernel and what.shape}))

    def leaderboard(self, board: Board, against: float | None = None, limit: int = 200) -> Leaderboard:
        """The ranking; ``against`` are the seconds of another implementation on the same machine. Of each
        game its fastest program stands there, not those on the way to it nor what was tried beside it and
        behind it; of each agent, whose tries are edits of each other, its fastest one; and the start."""
        wanted = Wanted(start_hash=board.start_hash, target=board.target, fingerprint=board.fingerprint)
        rows = [
            *self.catalogue.rows(replace(wanted, state="verified"), "time", 0, limit),
            *self.catalogue.rows(replace(wanted, state="claim"), "time", 0, limit),
        ]
        lines: list[Ranked] = []
        seen: set[str] = set()
        for row in rows:
            if row.program_hash in seen or row.seconds is None:
                continue
            alike = [other.row for other in lines if other.row.state == row.state]
            if any(_of_the_game(row.line, other.line) for other in alike):
                continue
            if self._is_agent(row.player) and any(row.player == other.player for other in alike):
                continue
            seen.add(row.program_hash)
            rank = len(lines) + 1 if row.state == "verified" else None
            ratios = [t / row.seconds if t else None for t in (board.start, against)]
            lines.append(Ranked(rank, row, ratios[0], ratios[1]))
        shape = self.shape_of(board.kernel, board.start_hash, board.shape)
        return Leaderboard(board, shape, board.fingerprint in self.catalogue.own_fingerprints, tuple(lines))

    def baseline_seconds(self, board: Board, baseline: str) -> float | None:
        """Another implementation's time on a board's machine, by the last comparison; None without."""
        return self.comparisons.seconds(board.start_hash, board.fingerprint, baseline)

    def settled(self, document: dict[str, Any]) -> dict[str, Any]:
        """A comparison's document by what is known of this machine's limit now, as on every page."""
        (report, *others), spec = document["reports"], document["spec"]
        limit = None
        if spec["kernel"] and document["fingerprint"] == this_machine().fingerprint:
            kernel = Question(parse(spec["start"]), spec["kernel"], spec["shape"], report["flops"])
            limit = known(self.catalogue, kernel)
        return {**document, "reports": [settled(report, limit), *others]}

    def games(
        self, words: str = "", owner: str | None = None, limit: int = saved_games.LISTED
    ) -> list[GameCard]:
        """Saved games with moves, last played first, of an owner or of all; ``words`` must stand in them."""
        cards = []
        for game in self.catalogue.games(owner, limit, nobodys=True):
            what = saved_games.outline(game.text)
            searched = f"{game.title} {what.kernel} {what.shape} {owner_name(game.player)}".lower()
            if not what.line or game.id.startswith(UNLISTED_GAMES) or words.lower() not in searched:
                continue
            claimed = _CLAIMED.search(game.text)
            claim = float(claimed[1]) if claimed and what.best is None else None
            cards.append(
                GameCard(
                    game.id,
                    game.title,
                    what.kernel,
                    what.shape,
                    game.player,
                    len(what.line),
                    what.best,
                    claim,
                    game.updated,
                )
            )
        return cards

    # ------------------------------------------------------------------ to the board

    def replayed(self, number: int) -> Opened:
        """The game of a record: its moves from the start program, each checked again. Raises Refused."""
        record = self.catalogue.record(number)
        if record is None:
            raise Refused("This record is no longer there: it was deleted.")
        return self._replayed(record)

    def _replayed(self, record: Record) -> Opened:
        try:
            start, kernel, shape = self._start(record)
            program = start if start is not None and record.line else parse(record.program_text)
            if start is not None and record.program_hash == record.start_hash:
                program = start
            fault = program_fault(program, record.target, record.policy)
            if fault is not None:
                raise Refused(fault)
            alone = program is not start
            title = f"{record.kernel} {shape}".strip() + (" (moves not known)" if alone else "")
            named = (None, "") if alone else (kernel, shape)
            game = Game.new(program, *named, record.target, record.policy, title)
        except TextError as fault:
            raise Refused(f"Its program cannot be read: {text_fault(fault)}") from None
        except ValueError as fault:
            raise Refused(str(fault)) from None
        moves = [] if alone else record.line.splitlines()
        gone: list[Entry] = []
        for done, move in enumerate(moves):
            try:
                game.play(move)
            except (IllegalMove, MoveSyntax, GameFull) as refusal:
                gone.append(Entry(move, "refused", move, str(refusal)))
                gone += [Entry(m, "refused", m, "comes after it") for m in moves[done + 1 :]]
                break
        return Opened(game, tuple(gone))

    def _start(self, record: Record) -> tuple[Program | None, str | None, str]:
        """(start program, kernel, shape); no kernel for a text of one's own."""
        shape = self._kernel_shape(record.kernel, record.start_hash)
        if shape:
            of_records = kernels.get(record.kernel)
            return of_records.program(of_records.shape(shape)), record.kernel, shape
        text = self.catalogue.start_text(record.start_hash)
        start = parse(text) if text is not None else None
        if start is not None and start.hash != record.start_hash:
            start = None
        return start, None, record.shape

    def contenders(self, game: Game, owner: str) -> list[Contender]:
        """What can be compared with a game: lines, records, the owner's games, other implementations."""
        contenders = [Contender("start", "start"), Contender("heuristic", "heuristic")]
        here = board_contender(game)
        contenders += [] if here is None else [here]
        for name, line in recorded_lines().items():
            if game.kernel is not None and line.kernel == game.kernel:
                contenders.append(Contender("line", f"line {name}", line=name, policy=line.policy))
        wanted = Wanted(
            start_hash=game.start.hash,
            target=DEFAULT_TARGET,
            fingerprint=this_machine().fingerprint,
            state="verified",
        )
        seen = {game.start.hash}
        for row in self.catalogue.rows(wanted, "time", 0, 3 * RECORDS_OFFERED):
            record = None if row.program_hash in seen else self.catalogue.record(row.id)
            seen.add(row.program_hash)
            if record is None or len(seen) > RECORDS_OFFERED + 1:
                continue
            name = ", ".join(filter(None, [f"record {len(seen) - 1}: {time_words(row.seconds)}", row.player]))
            details = "a record" + (f" of {counted(row.moves, 'move')}" if row.moves is not None else "")
            details += f", {row.conditions.words}" if row.conditions.busy else ""
            contenders.append(
                Contender("program", name[:80], record.program_text, "", "", details, row.policy, row.moves)
            )
        for card in self.games(owner=owner):
            if card.kernel == (game.kernel or "") and card.shape == game.shape and game.kernel:
                count = counted(card.moves, "move")
                name = f"game {card.title[:40]} ({count}, {card.id[:4]})"
                stored = self.catalogue.game(card.id)
                if stored is not None:
                    contenders.append(Contender("game", name, stored.text))
        if game.kernel is not None:
            contenders += [
                Contender("baseline", each.name, baseline=name) for name, each in BASELINES.items()
            ]  # fmt: skip
        return contenders

    # ------------------------------------------------------------------ taking in

    def take_in(self, name: str, data: bytes, owner: str) -> Imported:
        """A file from elsewhere: a game, a line, a program, or records as JSON lines. Raises Refused."""
        if data.startswith(PACKED) or data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
            return self._take_records(name, data)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Refused(f"{_short(name)} is no text: give a .dojo file, or JSON lines.") from None
        if len(data) > LARGEST_GAME:
            raise Refused(f"{_short(name)} is larger than 512 KB: no game is. Nothing was taken in.")
        try:
            opened = open_text(text, name.rsplit(".", 1)[0][:80])
        except (TextError, BadLink) as fault:
            message = text_fault(fault) if isinstance(fault, TextError) else str(fault)
            raise Refused(f"{_short(name)}: {message}") from None
        identifier = self._service.take_in(opened.game, owner, once=True)
        self._keep_claim(identifier, text)
        return Imported(f"{opened.game.title}: {opened.words}", game=identifier)

    def _keep_claim(self, identifier: str, text: str) -> None:
        """A file's best speed-up stays beside the game, as the claim that it is."""
        best, claimed = saved_games.outline(text).best, _CLAIMED.search(text)
        value = best if best is not None else float(claimed[1]) if claimed else None
        game = self.catalogue.game(identifier)
        if value is not None and game is not None:
            self.catalogue.save_game(replace(game, text=f"{game.text}{CLAIM}{value:.4f}×\n"))

    def _take_records(self, name: str, data: bytes) -> Imported:
        """Measurements from elsewhere: none is verified before it was measured here. Raises Refused."""
        if len(data) > LARGEST_RECORDS:
            raise Refused(f"{_short(name)} is larger than 16 MB: import it with dojo records-import.")
        try:
            taken = take_in(self.catalogue, file_lines(BytesIO(data)), claims=True)
        except NoRecord as fault:
            raise Refused(f"{_short(name)}: {fault}") from None
        count = f"{counted(taken.new, 'new record')}, {taken.known} known already."
        note = " Their times are claims until they are replayed and measured here." if taken.new else ""
        return Imported(count + note, taken=taken)

    # ------------------------------------------------------------------ measuring claims

    def verify(self, numbers: Sequence[int], player: str) -> str:
        """Replay records through the checks and have them measured here; tells what became of it.

        ``verifying`` must be asked now and then while it goes on.
        """
        tasks: list[tuple[int, Task]] = []
        refused: list[str] = []
        for number in numbers:
            record = self.catalogue.record(number)
            try:
                opened = self.replayed(number)
            except Refused as refusal:
                refused.append(str(refusal))
                continue
            game, end = opened.game, opened.game.current.program
            if opened.gone:
                refused.append(opened.words)
            elif record is None or end.hash != record.program_hash or game.start.hash != record.start_hash:
                refused.append(f"{game.title}: its moves do not lead to its program. It stays a claim.")
            else:
                workload = workload_of(game)
                tasks.append((OTHER, Task(workload_key(game), workload, end, end.hash, record.line)))
        if tasks:
            self._service.queue.want(_measured_for(player), tasks)
        summary = f"Measuring {len(tasks)} of {len(numbers)} here." if tasks else "Nothing to measure."
        return " ".join([summary, *refused[:3]])

    def verifying(self, player: str) -> int:
        """How many claims are still to be measured for a player."""
        self._service.queue.renew(_measured_for(player))
        return self._service.queue.open_tasks(_measured_for(player))

    # ------------------------------------------------------------------ giving out

    def game_file(self, game: Game, best: float | None = None) -> str:
        """A .dojo file: the game's text, and as a comment what was measured here."""
        text = game.to_text()
        if best is not None:
            text += _claim(best, game.target)
        return text

    def saved_file(self, identifier: str) -> tuple[str, str]:
        """(name, text) of a saved game as a .dojo file. Raises Refused."""
        game = self.catalogue.game(identifier)
        if game is None:
            raise Refused("This game is no longer there: it was deleted.")
        outline = saved_games.outline(game.text)
        text = "".join(line + "\n" for line in game.text.splitlines() if not line.startswith("# "))
        claim = "" if outline.best is None else _claim(outline.best, outline.target)
        return f"{file_name(game.title)}.dojo", text + claim

    def c_file(self, opened: Opened) -> tuple[str, str]:
        """(name, text) of the program's C, as it is compiled, with what is known of it. Raises Refused."""
        game = opened.game
        try:
            with Records() as records:
                text = c_text(game, records)
        except (NotExported, NotGeneratable, ValueError) as fault:
            raise Refused(str(fault)) from None
        return f"{file_name(game.title)}.c", text

    def archive(self, opened: Sequence[Opened]) -> tuple[str, bytes]:
        """(name, bytes) of a C library as a zip. Raises Refused."""
        choices: list[Choice] = [of_game(each.game, f"the game {each.game.title}") for each in opened]
        try:
            return "dojo_kernels.zip", zipped(c_library(choices))
        except (NotExported, NotGeneratable, ValueError) as fault:
            raise Refused(str(fault)) from None

    def record_lines(self, rows: Iterable[Row]) -> str:
        """Records as JSON lines, each row's best measurement."""
        records = (self.catalogue.record(row.id) for row in rows)
        return "".join(to_line(record) + "\n" for record in records if record is not None)

    # ------------------------------------------------------------------ deleting

    def delete_records(self, ids: Sequence[int]) -> Deleted:
        taken = self.catalogue.take_out(ids)
        count = len(ids)
        runs = f" ({len(taken)} measurements)" if len(taken) != count else ""
        return Deleted(f"Deleted {counted(count, 'record')}{runs}.", taken=taken)

    def delete_games(self, ids: Sequence[str], owner: str) -> Deleted:
        """Raises Refused, and deletes none, where one of them is somebody else's."""
        games = [game for game in (self.catalogue.game(each) for each in ids) if game is not None]
        if not all(self._service.may_change(game.player, owner) for game in games):
            raise Refused(
                "One of these games is not yours: only its owner can delete it. Nothing was deleted."
            )
        for game in games:
            self.catalogue.delete_game(game.id)
        named = games[0].title if len(games) == 1 else f"{len(games)} games"
        return Deleted(f"Deleted {named}.", games=tuple(games))

    def undo(self, deleted: Deleted) -> None:
        if deleted.taken is not None:
            self.catalogue.put_back(deleted.taken)
        for game in deleted.games:
            self.catalogue.save_game(game)


def _measured_for(player: str) -> str:
    return f"{player}-library"


def when_words(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def time_words(seconds: float | None) -> str:
    return "–" if seconds is None else seconds_text(seconds)


def _short(name: str) -> str:
    return name if len(name) <= 60 else name[:57] + "…"


def _sizes(text: str) -> tuple[int, ...]:
    """The sizes that stand in a program's buffers, as they come."""
    shapes = re.findall(r"^\w+ \w+ \[([^\]]*)\]", text, re.MULTILINE)
    return tuple(dict.fromkeys(int(n) for dims in shapes for n in re.findall(r"\d+", dims)))


MOST_GUESSES = 300  # shapes that are tried for a start program of which only the hash is known


@lru_cache(maxsize=512)
def kernel_shape(kernel: str, start_hash: str, played: tuple[str, ...], sizes: tuple[int, ...]) -> str:
    """Which of a kernel's shapes has this start program; empty where none is found.

    Tried are shapes that were ``played``, those that the kernel names, and the ``sizes`` put together.
    """
    try:
        candidate = kernels.get(kernel)
    except ValueError:
        return ""
    known = ["x".join(map(str, shape)) for shape in candidate.shapes]
    known += [layer.shape for layer in kernels.layers_of(kernel)]
    guesses = product(sizes, repeat=len(candidate.parameters)) if sizes else ()
    guessed = ["x".join(map(str, guess)) for guess in islice(guesses, MOST_GUESSES)]
    for shape in dict.fromkeys([*played, *known, *guessed]):
        try:
            if candidate.program(candidate.shape(shape)).hash == start_hash:
                return shape
        except (ValueError, TypeError):
            continue
    return ""


def _claim(best: float, target: str) -> str:
    """A line beside a game that tells its speed-up, and on which machine."""
    where = this_machine().summary
    if AT in target:
        with suppress(UnknownTarget):
            target = backend(target).words.title
        where = target
    return f"{CLAIM}{best:.4f}× on {where}\n"


@lru_cache(maxsize=64)
def _summary(details: str) -> str:
    """The line about what timed a record, from its JSON; empty where no target knows its form."""
    for each in backends():
        try:
            return each.machine(details)[:120]
        except (ValueError, TypeError, AttributeError, LookupError):
            continue
    return ""
