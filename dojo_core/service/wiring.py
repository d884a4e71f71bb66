"""Puts the service together from the real parts: records, measurer, kernels, builder."""

from __future__ import annotations

import logging
import logging.handlers
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dojo_core import kernels
from dojo_core.actions import looking
from dojo_core.bench import roofline
from dojo_core.bench.roofline import Roofline
from dojo_core.codegen.code import NotGeneratable
from dojo_core.kernels import Kernel
from dojo_core.kernels.work import work_of
from dojo_core.measure.load import machine_now
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.measure.places import data_directory
from dojo_core.measure.records import Records, SavedGame
from dojo_core.opening import first_shape
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.tree import Program
from dojo_core.service import KernelCard, Service
from dojo_core.service.analysis import Analysis
from dojo_core.service.comparing import Comparisons
from dojo_core.service.hints import Advise
from dojo_core.service.learned import AskPolicy
from dojo_core.service.players import Table
from dojo_core.service.queue import ROUGH, Outcome
from dojo_core.service.sources import SavedText
from dojo_core.service.takeaway import parts
from dojo_core.service.view import Json, code_lines, profile_view
from dojo_core.system import yield_to_others
from dojo_core.targets.measurers import Measurers
from dojo_core.targets.registry import backend, backends, target

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


class RecordStore:
    """Games and known times in the records."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def save_game(self, game: SavedText, before: str | None = None) -> SavedText | None:
        saved = SavedGame(game.id, game.player, game.kernel, game.title, game.text)
        stored = self._records.save_game(saved, before)
        return None if stored.text == game.text else _saved(stored)

    def count_games(self, player: str) -> tuple[int, int]:
        return self._records.count_games(player)

    def count_games_of_clients(self) -> int:
        return self._records.count_games_of_clients()

    def load_game(self, game: str) -> SavedText | None:
        stored = self._records.game(game)
        return None if stored is None else _saved(stored)

    def delete_game(self, game: str) -> None:
        self._records.delete_game(game)

    def give_game(self, game: str, before: str, owner: str) -> None:
        self._records.give_game(game, before, owner)

    def recent_games(self, limit: int, owner: str, clients: bool = False) -> list[SavedText]:
        games = self._records.games(owner, limit, nobodys=True, clients=clients)
        return [_saved(game) for game in games]

    def known(self, workload: Any, hashes: Sequence[str]) -> dict[str, Outcome]:
        origin = backend(workload.target).clock().origin
        if origin is None:
            return {}
        start = workload.start.hash
        records = self._records.known_all(hashes, origin.target, origin.fingerprint, workload.policy, start)
        # A crash or a timeout may have been the machine's mood: those are tried again.
        return {
            h: replace(outcome(Measurement.recorded(r)), stands=origin.believes(r))
            for h, r in records.items()
            if r.status not in ("crash", "timeout", "refused", "cancelled")
        }


def _saved(game: SavedGame) -> SavedText:
    return SavedText(game.id, game.player, game.title, game.kernel, game.text, game.updated)


def _card(kernel: Kernel) -> KernelCard:
    """A kernel as the start screen offers it: at the shape that a game begins with; beside it those of the
    benchmarks and of networks' layers."""
    first = "x".join(map(str, first_shape(kernel, target(DEFAULT_TARGET))))
    usual = ["x".join(map(str, shape)) for shape in kernel.shapes]
    layers = [(layer.name, layer.shape) for layer in kernels.layers_of(kernel.name)]
    offered = [(shape, "of the benchmarks") for shape in usual if shape != first]
    return KernelCard(
        kernel.name, kernel.group, kernel.formula, first, "x".join(kernel.parameters), (*offered, *layers)
    )


class KernelLibrary:
    """The kernels that come with the Dojo."""

    def cards(self) -> list[KernelCard]:
        return [_card(kernels.get(name)) for name in kernels.names()]

    def start(self, kernel: str, shape: str) -> Program:
        known = kernels.get(kernel)
        return known.program(known.shape(shape))

    def work(self, kernel: str | None, shape: str, start: Program) -> tuple[float, float]:
        return work_of(kernel, shape, start)

    def workload(self, start: Program, kernel: str | None, policy: str, target: str) -> Workload:
        return Workload(start, kernel, policy, target)


class MeasurerBench:
    """The measurers as the queues use them."""

    def __init__(self, records: Records) -> None:
        self._measurers = Measurers(records)

    def warm(self) -> None:
        self._measurers.of(DEFAULT_TARGET).warm()

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
        clock = backend(workload.target).clock()
        if clock.lock is None:
            _yield_to_clocks()
        if clock.exact and again and not clock.timed:
            return  # a second look would tell nothing new, and a quick one less
        # what always has the same number needs no careful look, nor a second one
        exact = clock.exact and clock.timed
        self._measurers.of(workload.target).measure(
            workload,
            programs,
            Effort.NORMAL if careful or exact else Effort.QUICK,
            lambda m: on_result(m.program_hash, outcome(m)),
            cancelled,
            lines=lines,
            fresh=again and not exact,
            against=against,
            on_rough=lambda program, seconds: on_result(program, Outcome(ROUGH, seconds)),
        )

    def close(self) -> None:
        self._measurers.close()


BESIDE_PRIORITY = 10  # niceness: a tenth of a core that a measurement wants too


def _yield_to_clocks() -> None:
    """What this thread does is timed by no clock here: it waits for none, but takes little from them.

    Linux keeps a niceness for each thread; the processes that it starts get the same.
    """
    yield_to_others(BESIDE_PRIORITY)


def assemble(analysis: Analysis) -> Json:
    """The assembly of a position's code, as lines with their nodes."""
    try:
        made = looking.assembly(analysis.program, analysis.target, analysis.policy)
    except looking.NotShown as fault:
        return {"error": str(fault)}
    executed = {leaf.path: math.prod(s.size for s in leaf.scopes) for leaf in analysis.program.leaves}
    runs = [executed.get(node, 0) if node is not None else 0 for node in made.nodes]
    return {
        "lines": code_lines(made.lines, made.nodes),
        "busiest": runs.index(max(runs, default=0)) if runs else 0,
    }


def profiled(analysis: Analysis, workload: Workload, unwanted: Callable[[], bool]) -> Json:
    """Where the time of a position goes: of each node its text, its share, what bounds it and a sentence;
    of the assembly the rows that take most. It ends where that is ``unwanted``."""
    try:
        with backend(analysis.target).measurer() as measurer:
            told = measurer.profile(workload, analysis.program, unwanted)
    except (NotGeneratable, ValueError) as fault:
        return {"error": f"There is no profile to show. {fault}"}
    return profile_view(told)


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
    """The machine's limits for the kernels of tables, kept in the records, and what PyTorch took, kept in the
    comparisons."""

    def __init__(self, records: Records, comparisons: Comparisons) -> None:
        self._records, self._comparisons = records, comparisons

    def known(self, table: Table) -> Roofline | None:
        return roofline.known(self._records, _question(table))

    def torch(self, table: Table) -> float | None:
        return self._comparisons.seconds(table.game.start.hash, this_machine().fingerprint, "torch")

    def doubtful(self, table: Table) -> bool:
        return roofline.doubtful(self._records, _question(table))

    def measure(self, table: Table, unwanted: Callable[[], bool]) -> Roofline | None:
        return roofline.roofline(self._records, _question(table), unwanted)


def _question(table: Table) -> roofline.Question:
    game = table.game
    return roofline.Question(game.start, game.kernel, game.shape, table.work[0])


def open_service(
    lines: Path,
    advise: Advise | None = None,
    local: bool = False,
    measure: bool = True,
    policy: AskPolicy | None = None,
) -> Service:
    """The service on this user's data directory; ``lines`` is the folder of recorded lines, ``advise`` the
    pass that hints come from, ``local``: only this machine can reach it, ``measure``: new games are
    timed before anybody asks, ``policy``: what was learned, told beside hints."""
    home = data_directory()
    start_log(home)
    records = Records(home / "records.sqlite")
    records.keep_backup()
    records.prune_games(time.time() - EMPTY_GAMES_SECONDS)
    for each in backends():
        each.learn(records)
    store, library, comparisons = RecordStore(records), KernelLibrary(), Comparisons(home / "comparisons")
    return Service(
        store,
        library,
        lambda: MeasurerBench(records),
        lines,
        assemble,
        MachineLimits(records, comparisons),
        advise,
        machine_now,
        local,
        measure,
        profiled,
        partial(parts, records=records),
        comparisons,
        policy,
    )
