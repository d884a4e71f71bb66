"""Puts the service together from the real parts: records, measurer, kernels, builder."""

from __future__ import annotations

import logging
import logging.handlers
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dojo_core import kernels
from dojo_core.bench import roofline
from dojo_core.bench.roofline import Roofline
from dojo_core.codegen.code import NotGeneratable
from dojo_core.kernels.kernel import executed_flops, minimal_bytes
from dojo_core.measure.load import machine_now
from dojo_core.measure.places import data_directory
from dojo_core.measure.records import Records, SavedGame
from dojo_core.program.tree import Program
from dojo_core.service import KernelCard, Service
from dojo_core.service.analysis import Analysis
from dojo_core.service.hints import Advise
from dojo_core.service.players import Table
from dojo_core.service.queue import Outcome
from dojo_core.service.sources import SavedText
from dojo_core.service.view import Json, code_lines
from dojo_core.system import yield_to_others
from dojo_core.targets.cpu.measurer import Effort, Measurement, Measurer, Workload
from dojo_core.targets.cuda.measurer import gpu_measurer
from dojo_core.targets.gpu.check import Checker, feedback, gpu_code
from dojo_core.targets.gpu.feedback import summary
from dojo_core.targets.listing import assembly_of
from dojo_core.targets.origins import origin, timed
from dojo_core.targets.registry import GPUS, SIMULATED
from dojo_core.targets.snitch.measurer import snitch_measurer

log = logging.getLogger(__name__)


def outcome(measurement: Measurement) -> Outcome:
    """What the queue keeps of a measurement."""
    if measurement.status == "ok" and measurement.seconds is not None:
        median = measurement.median if measurement.median is not None else measurement.seconds
        return Outcome(
            "ok",
            measurement.seconds,
            median,
            len(measurement.samples),
            measurement.message,
            measurement.conditions,
            measurement.taken,
            ratios=measurement.ratios,
        )
    return Outcome(measurement.status, message=measurement.message)


NO_TIME = "No time: seconds need a GPU."


class RecordStore:
    """Games and known times in the records."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def save_game(self, game: SavedText, before: str | None = None) -> SavedText | None:
        saved = SavedGame(game.id, game.player, game.kernel, game.title, game.text)
        kept = self._records.save_game(saved, before)
        return None if kept.text == game.text else _saved(kept)

    def count_games(self, player: str) -> tuple[int, int]:
        return self._records.count_games(player)

    def load_game(self, game: str) -> SavedText | None:
        found = self._records.game(game)
        return None if found is None else _saved(found)

    def delete_game(self, game: str) -> None:
        self._records.delete_game(game)

    def give_game(self, game: str, before: str, owner: str) -> None:
        self._records.give_game(game, before, owner)

    def recent_games(self, limit: int, owner: str) -> list[SavedText]:
        return [_saved(game) for game in self._records.games(owner, limit, nobodys=True)]

    def known(self, workload: Any, hashes: Sequence[str]) -> dict[str, Outcome]:
        here = origin(workload.target)
        if here is None:
            return {}
        start = workload.start.hash
        records = self._records.known_all(hashes, here.target, here.fingerprint, workload.policy, start)
        # A crash or a timeout may have been the machine's mood: those are tried again.
        return {
            h: replace(outcome(Measurement.recorded(r)), stands=here.believes(r))
            for h, r in records.items()
            if r.status not in ("crash", "timeout", "refused", "cancelled")
        }


def _saved(game: SavedGame) -> SavedText:
    return SavedText(game.id, game.player, game.title, game.kernel, game.text, game.updated)


class KernelLibrary:
    """The kernels that come with the Dojo."""

    def cards(self) -> list[KernelCard]:
        found = [kernels.get(name) for name in kernels.names()]
        return [
            KernelCard(
                k.name,
                k.group,
                k.formula,
                "x".join(map(str, k.shapes[0])),
                "x".join(k.parameters),
                tuple((layer.name, layer.shape) for layer in kernels.layers_of(k.name)),
            )
            for k in found
        ]

    def start(self, kernel: str, shape: str) -> Program:
        found = kernels.get(kernel)
        return found.program(found.shape(shape))

    def work(self, kernel: str | None, shape: str, start: Program) -> tuple[float, float]:
        if kernel is None:
            return executed_flops(start), minimal_bytes(start)
        found = kernels.get(kernel)
        sizes = found.shape(shape)
        return found.flops(sizes), found.bytes(sizes)

    def workload(self, start: Program, kernel: str | None, policy: str, target: str) -> Workload:
        return Workload(start, kernel, policy, target)


class MeasurerBench:
    """The measurer as the queue uses it."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._measurer = Measurer(records)
        self._checkers: dict[
            str, Checker
        ] = {}  # by target; each holds a process, which takes seconds to start

    def warm(self) -> None:
        self._measurer.warm()

    def measure(
        self,
        workload: Any,
        programs: Sequence[Program],
        careful: bool,
        on_result: Callable[[str, Outcome], None],
        cancelled: Callable[[], bool],
        again: bool = False,
        lines: Mapping[str, str] | None = None,
        against: Program | None = None,
    ) -> None:
        effort = Effort.NORMAL if careful else Effort.QUICK

        def told(m: Measurement) -> None:
            on_result(m.program_hash, outcome(m))

        if workload.target in GPUS and timed(workload.target):
            by_hash = {program.hash: program for program in programs}

            def reported(m: Measurement) -> None:
                found = outcome(m)
                if found.ok:
                    code = gpu_code(by_hash[m.program_hash], workload.target, workload.policy)
                    found = replace(found, message=summary(feedback(code)))
                on_result(m.program_hash, found)

            on_gpu = reported if careful else told
            gpu_measurer().measure(
                workload, programs, effort, on_gpu, cancelled, again, records=self._records, lines=lines
            )
        elif workload.target in GPUS:
            _yield_to_clocks()
            if not again:  # a second look would tell nothing new, and a quick one less
                self._check(workload, programs, careful, on_result, cancelled)
        elif workload.target in SIMULATED:
            _yield_to_clocks()
            # its cycles are always the same: no second look tells more, nor a careful one
            model, normal = snitch_measurer(), Effort.NORMAL
            model.measure(workload, programs, normal, told, cancelled, records=self._records, lines=lines)
        else:
            self._measurer.measure(
                workload, programs, effort, told, cancelled, lines=lines, fresh=again, against=against
            )

    def _check(
        self,
        workload: Any,
        programs: Sequence[Program],
        careful: bool,
        on_result: Callable[[str, Outcome], None],
        cancelled: Callable[[], bool],
    ) -> None:
        """GPU programs: the position itself is verified in the emulator and compiled; nothing has a time."""
        for program in programs:
            if cancelled():
                return
            if not careful:
                on_result(program.hash, Outcome("untimed", message=f"{NO_TIME} Play it to have it verified."))
                continue
            if workload.target not in self._checkers:
                self._checkers[workload.target] = Checker(workload.target)
            checked = self._checkers[workload.target].check(workload, program)
            if not checked.verdict.verified:
                on_result(program.hash, outcome(checked.verdict))
                continue
            told = f"Verified in the emulator. {summary(checked.feedback)} {NO_TIME}"
            on_result(program.hash, Outcome("verified", message=told))

    def close(self) -> None:
        self._measurer.close()
        for checker in self._checkers.values():
            checker.close()


BESIDE_PRIORITY = 10  # niceness: a tenth of a core that a measurement wants too


def _yield_to_clocks() -> None:
    """What this thread does is timed by no clock here: it waits for none, but takes little from them.

    Linux keeps a niceness for each thread; the processes that it starts get the same.
    """
    yield_to_others(BESIDE_PRIORITY)


def assemble(analysis: Analysis) -> Json:
    """The assembly of a position's code, as lines with their nodes."""
    try:
        made = assembly_of(analysis.program, analysis.target, analysis.policy)
    except (NotGeneratable, ValueError) as fault:
        return {"error": f"There is no assembly to show. {fault}"}
    return {"lines": code_lines(made.lines, made.nodes)}


EMPTY_GAMES_SECONDS = 7 * 86_400.0  # a game in which nothing was played is kept as long, for its address


def start_log(home: Path) -> None:
    """Internal faults go to a file beside the records, never to a page."""
    root = logging.getLogger("dojo_core")
    if not any(isinstance(h, logging.handlers.RotatingFileHandler) for h in root.handlers):
        handler = logging.handlers.RotatingFileHandler(home / "dojo.log", maxBytes=2_000_000, backupCount=2)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        for name in ("dojo_core", "dojo"):
            logging.getLogger(name).addHandler(handler)


class MachineLimits:
    """The machine's limits for the kernels of tables, kept in the records."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def known(self, table: Table) -> Roofline | None:
        return roofline.known(self._records, _question(table))

    def doubtful(self, table: Table) -> bool:
        return roofline.doubtful(self._records, _question(table))

    def measure(self, table: Table) -> Roofline | None:
        return roofline.roofline(self._records, _question(table))


def _question(table: Table) -> roofline.Question:
    game = table.game
    return roofline.Question(game.start, game.kernel, game.shape, table.work[0])


def open_service(lines: Path, advise: Advise | None = None, local: bool = False) -> Service:
    """The service on this user's data directory; ``lines`` is the folder of recorded lines, ``advise`` the
    pass that hints come from, ``local``: only this machine's own people can reach it."""
    home = data_directory()
    start_log(home)
    records = Records(home / "records.sqlite")
    records.keep_backup()
    records.prune_games(time.time() - EMPTY_GAMES_SECONDS)
    store, library = RecordStore(records), KernelLibrary()
    return Service(
        store,
        library,
        lambda: MeasurerBench(records),
        lines,
        assemble,
        MachineLimits(records),
        advise,
        machine_now,
        local,
    )
