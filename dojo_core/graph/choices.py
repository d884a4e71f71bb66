"""Which programs run for a graph's kernels: this machine's fastest records, what a heuristic plays, or the
starts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from dojo_core.export.choice import Choice, NotExported, of_game, of_heuristic, of_record
from dojo_core.game import Game
from dojo_core.graph.graph import Graph, Kernel
from dojo_core.graph.run import Choose, constants_of
from dojo_core.measure.records import Records

log = logging.getLogger(__name__)

SOURCES = ("best", "heuristic", "start")


def kernel_game(kernel: Kernel, policy: str = "reassoc", constants: frozenset[str] = frozenset()) -> Game:
    """A game at a kernel's start, titled by the kernel's name. ``constants``: its program's inputs that are
    the same in every run, where it runs in the model; measured alone it copies them each time."""
    return Game.new(kernel.program, policy=policy, title=kernel.name, constants=constants)


def choices(
    graph: Graph,
    source: str = "best",
    records: Records | None = None,
    policy: str = "reassoc",
    on_kernel: Callable[[str], None] = lambda kernel: None,
    on_remark: Callable[[str], None] = lambda remark: None,
) -> dict[str, Choice]:
    """For each kernel of a graph what runs in its place, by the kernel's name.

    ``source`` is one of SOURCES: ``best`` is the fastest verified program of the policy that the records know
    for the start on this machine, if that is not the pass's own; else what the heuristic pass plays where it
    knows the constants; where it fails, the start.
    ``on_kernel`` hears of each kernel before its turn, ``on_remark``, in a sentence, where none plays it.
    """
    chosen: dict[str, Choice] = {}
    for name in dict.fromkeys(call.kernel for call in graph.calls):
        on_kernel(name)
        game = kernel_game(graph.kernels[name], policy, constants_of(graph, name))
        chosen[name] = _choice(game, source, records, on_remark)
    return chosen


def chooser(
    graph: Graph, source: str = "best", records: Records | None = None, policy: str = "reassoc"
) -> Choose:
    """The same for ``Model``, which asks for a kernel when its turn comes."""
    games = {
        kernel.program.hash: kernel_game(kernel, policy, constants_of(graph, name))
        for name, kernel in graph.kernels.items()
    }
    return lambda start: _choice(games[start.hash], source, records, log.warning).program


def _choice(start: Game, source: str, records: Records | None, on_remark: Callable[[str], None]) -> Choice:
    if source == "best" and records is not None:
        recorded = of_record(records, start, start.policy)
        if recorded is not None and not _played_alone(start, recorded):
            return recorded
    if source != "start":
        try:
            return of_heuristic(start)
        except NotExported as refusal:
            on_remark(str(refusal))
    return of_game(start, "the start program")


def _played_alone(start: Game, recorded: Choice) -> bool:
    """Is it what the pass plays for a kernel that is measured alone, where each run copies its weights? In a
    model, which copies them once, the pass knows better."""
    if not start.constants:
        return False
    try:
        alone = of_heuristic(replace(start, constants=frozenset()))
    except NotExported:
        return False
    return alone.program.hash == recorded.program.hash


def choose(graph: Graph, chosen: Mapping[str, Choice]) -> Choose:
    """The same for ``Model``: from a kernel's start program to the chosen one."""
    programs = {graph.kernels[name].program.hash: choice.program for name, choice in chosen.items()}
    return lambda start: programs[start.hash]
