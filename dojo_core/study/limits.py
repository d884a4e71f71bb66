"""What a machine could do at best with a study's kernel, and what PyTorch takes: beside a study's times."""

from __future__ import annotations

from dojo_core.bench import roofline
from dojo_core.game import Game
from dojo_core.kernels.work import work_of
from dojo_core.measure.places import data_directory
from dojo_core.measure.records import Records
from dojo_core.service.feed import roofline_view
from dojo_core.service.view import Json
from dojo_core.targets.registry import backend


def limits_of(game: Game) -> Json:
    """``roofline``: the machine's limit for the kernel of a game, measured where it is not known."""
    if not backend(game.target).native:
        return {}
    with Records(data_directory() / "records.sqlite") as records:
        flops, _ = work_of(game.kernel, game.shape, game.start)
        question = roofline.Question(game.start, game.kernel, game.shape, flops)
        known = roofline.roofline(records, question)
    return {} if known is None else {"roofline": roofline_view(known, [])}
