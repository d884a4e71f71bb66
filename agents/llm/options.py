"""The options of a command that has a language model play; each is a part of the player's text."""

from __future__ import annotations

from typing import Annotated

import typer

from agents.llm.settings import KEY, NAME

AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="URL",
        help=f"Where the models of {NAME}:NAME answer, as OpenAI's do: http://127.0.0.1:11434/v1. A key "
        f"comes from {KEY} in the environment.",
    ),
]
TokensOption = Annotated[
    int | None,
    typer.Option("--tokens", min=1, help=f"What {NAME} may read and write in a run (500,000)."),
]
PriceOption = Annotated[
    str | None,
    typer.Option("--price", metavar="READ/WRITTEN", help="Of a million tokens, so that costs are told."),
]


def filled(player: str, address: str | None, tokens: int | None, price: str | None) -> str:
    """A player's text with the options in it; that of another kind of player as it is."""
    if not player.startswith(f"{NAME}:"):
        return player
    if address and "@http" not in player:
        name, plus, settings = player.partition("+")
        player = f"{name}@{address}{plus}{settings}"
    if tokens is not None:
        player += f"+tokens={tokens}"
    return player if price is None else f"{player}+price={price}"
