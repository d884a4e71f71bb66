"""Times in a notebook: of a line, and beside others. What is measured is kept in the records."""

from __future__ import annotations

import atexit
import time
from dataclasses import replace
from functools import cache

from dojo_core.actions.comparing import comparison_of
from dojo_core.actions.timing import clock_here, timed_in_turns, workload_of
from dojo_core.game import Game
from dojo_core.measure.measurement import Measurement
from dojo_core.measure.places import data_directory
from dojo_core.measure.records import Records
from dojo_core.notebook.playing import asked
from dojo_core.notebook.views import Measured
from dojo_core.service.comparing import Comparison, Comparisons
from dojo_core.targets.measurers import Measurers

PLAYER = "notebook"
LOOK = 0.1  # seconds between looks at a comparison that goes on


@cache
def _measurers() -> Measurers:
    """Those of this process: a measurer takes a third of a second to start."""
    made = Measurers(Records())
    atexit.register(made.close)
    return made


@cache
def _comparisons() -> Comparisons:
    made = Comparisons(data_directory() / "comparisons")
    atexit.register(made.close)
    return made


# By start program, policy, target and program: what a chart shows of positions that were measured before.
_RESULTS: dict[tuple[str, str, str, str], Measurement] = {}


def measure(game: Game, line: bool = False) -> Measured:
    """Verify and time the position where the game stands, and the start; waits for it.

    ``line``: also every position between the two. Those that this notebook has measured are in the chart in
    any case. The position takes turns with the start where others share the machine. Raises ValueError
    with a sentence where nothing here times programs for the target.
    """
    clock = clock_here(asked(game, "measure").target)
    measurer = _measurers().of(game.target)
    positions = game.line()
    workload = workload_of(game)
    names = ("start", *(str(position.move) for position in positions[1:]))
    lines = {p.program.hash: "\n".join(names[1 : number + 1]) for number, p in enumerate(positions)}
    here = game.current.program
    wanted = [each.program for each in positions] if line else [game.start, here]
    unique = list({program.hash: program for program in wanted}.values())
    results = measurer.measure(workload, unique, player=PLAYER, lines=lines)
    known = {each.program_hash: each for each in results}
    speed = None
    if here.hash != game.start.hash and known[here.hash].seconds and known[game.start.hash].seconds:
        if clock.steady is None:
            turns = timed_in_turns(measurer, workload, game.start, [here], player=PLAYER, lines=lines)
            known[here.hash] = replace(known[here.hash], ratios=turns[here.hash].ratios)
        speed = known[here.hash].speed(known[game.start.hash], clock.steady)
    of_this_start = game.start.hash, game.policy, game.target
    _RESULTS.update({(*of_this_start, each): result for each, result in known.items()})
    found = tuple(_RESULTS.get((*of_this_start, each.program.hash)) for each in positions)
    return Measured(game.title, game.target, names, found, speed)


def compare(game: Game, *others: str, rounds: int = 5) -> Comparison:
    """The position where the game stands beside others, in turns, each in a process of its own; waits for it.

    ``others``: ``start``, ``heuristic`` (what the pass plays), and baselines, ``torch`` for one
    (``dojo bench`` lists them); the start alone if none is named. The comparison is kept, and the page
    Compare shows it. Raises ValueError with a sentence.
    """
    spec = comparison_of(asked(game, "compare"), others or ("start",), rounds)
    comparison = _comparisons().start(spec)
    try:
        while comparison.open:
            time.sleep(LOOK)
    except KeyboardInterrupt:  # the cell was stopped: what was measured stands
        _comparisons().stop(comparison.id)
        raise
    if comparison.state == "failed":
        raise ValueError(comparison.message)
    return comparison
