"""Files that other packages read: models, by their suffix, as graphs; what agents' runs left, as games.

The core reads ONNX; agents bring PyTorch's programs and their own runs (``agents/cli.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

from dojo_core.extras import need

if TYPE_CHECKING:
    from dojo_core.game import Game
    from dojo_core.graph.graph import Graph

# By suffix: the extra that it needs, and ``package.module:function``, from a path to its graph, which raises
# NotImported with all reasons.
READERS: dict[str, tuple[str, str]] = {}


# ``package.module:function``, from a file's path and a target to the games of the runs in it, each with
# ``words`` and ``game``; raises ValueError with a sentence.
RUNS: list[str] = []


def games_of_runs(path: Path, target: str) -> list[Game]:
    """The games in a log or a recording of agents' runs, each titled by whose it is. Raises ValueError."""
    games: list[Game] = []
    for name in RUNS:
        for source in resolve_name(name)(str(path), target):
            source.game.title = f"{source.game.title}: {source.words}"
            games.append(source.game)
    return games


def reader(path: Path) -> Callable[[Path], Graph] | None:
    """What reads a file of this name, None where nothing does. Raises NotInstalled."""
    if path.suffix not in READERS:
        return None
    extra, name = READERS[path.suffix]
    need(extra, "dojo import")
    return cast("Callable[[Path], Graph]", resolve_name(name))
