"""Where a game begins: kernels, networks' layers, texts, recorded lines, games that are kept."""

from __future__ import annotations

from typing import Annotated

from dojo_core.calls.call import Answer, CallFault
from dojo_core.calls.desk import Desk
from dojo_core.calls.looking import told
from dojo_core.calls.registry import call

SHOWN = 40  # kernels of a page


@call()
def kernels(
    desk: Desk,
    find: Annotated[str, "only those with this in their name, group or formula"] = "",
) -> Answer:
    """The kernels that a game can begin with.

    Data: ``kernels``: of each ``name``, ``group``, ``formula``, ``shape`` (its first) and ``dims`` (what the
    numbers of a shape are).
    """
    cards = [
        card
        for card in desk.service.games.cards()
        if find.lower() in f"{card.name} {card.group} {card.formula}".lower()
    ]
    rows = [
        {"name": c.name, "group": c.group, "formula": c.formula, "shape": c.shape, "dims": c.dims}
        for c in cards
    ]
    lines = [f"{c.name}  {c.formula}  ({c.dims} = {c.shape})" for c in cards]
    following = f'open(kernel="{cards[0].name}")' if cards else "kernels()"
    return Answer("\n".join([*lines, f"Next: {following}."]), {"kernels": rows}, (following,))


@call(changes=True)
def open_(
    desk: Desk,
    kernel: Annotated[str, "name of a kernel"] = "",
    shape: Annotated[str, "its sizes, as 1024x512; without it the kernel's first"] = "",
    target: Annotated[str, "what it is played for: cpu, snitch, cuda, …"] = "cpu",
    policy: Annotated[str, "reassoc, algebraic or strict"] = "reassoc",
    text: Annotated[
        str, "in place of a kernel: a program, a saved game's text, a line", {"maxLength": 200_000}
    ] = "",
) -> Answer:
    """Begin a game, or open one.

    Data: as ``show`` has it.
    """
    if bool(kernel) == bool(text):
        raise CallFault('Name a kernel, as open(kernel="softmax", shape="1024x512"), or give a text.')
    games = desk.service.games
    game = (
        games.from_kernel(kernel, shape, policy, target) if kernel else games.from_text(text, policy, target)
    )
    return told(desk.begin(game))
