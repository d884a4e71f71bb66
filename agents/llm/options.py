"""The options of a command that has a language model play; each is a part of the player's text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from agents.llm.settings import KEY, NAME, split
from dojo_core.cli.terminal import Failure

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
    typer.Option("--tokens", min=1, help="What a language model may read and write in a run (500,000)."),
]
PriceOption = Annotated[
    str | None,
    typer.Option("--price", metavar="READ/WRITTEN", help="Of a million tokens, so that costs are told."),
]


def filled(
    players: Sequence[str], address: str | None, tokens: int | None, price: str | None
) -> dict[str, str]:
    """The players' texts by what was typed, with the options in those of language models.

    Raises Failure where there are options and no such player.
    """
    talking = [player for player in players if player.startswith(f"{NAME}:")]
    if not talking and not (address is None and tokens is None and price is None):
        raise Failure(f"--address, --tokens and --price are for a language model: {NAME}:NAME.")
    return {each: _filled(each, address, tokens, price) if each in talking else each for each in players}


def _filled(player: str, address: str | None, tokens: int | None, price: str | None) -> str:
    named, behind = split(player)
    if address is not None and "@http" not in named:
        named = f"{named}@{address}"
    settings = "".join(setting.group() for setting in behind)
    if tokens is not None:
        settings += f"+tokens={tokens}"
    if price is not None:
        settings += f"+price={price}"
    return named + settings
