"""How far players come that have nothing but the tools of ``dojo mcp``: ``python -m benchmarks.mcp``.

Each is a script at the protocol's own client, over stdio, as a language model's program is: it opens softmax
at the recorded line's shape, and plays by what the tools answer. ``line`` plays the recorded line's moves as
they are written; ``hints`` asks for a hint and plays it, until there is none. Both play in one game, as two
variations, and each end is timed in turns with the start; a player's time against the recorded line's is told
from these. Also told: the tools called, and the characters of all answers, which a model would have to read.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import Implementation, TextContent

from dojo_core.line import recorded_lines

WITHIN = 1.05  # of the recorded line's time
AT_ONCE = 50  # moves in one call
MOST_HINTS = 300


class Player:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.calls = self.characters = 0

    async def ask(self, name: str, **arguments: Any) -> Any:
        told = await self._client.call_tool(name, arguments)
        text = "".join(each.text for each in told.content if isinstance(each, TextContent))
        if told.is_error:
            raise SystemExit(f"{name}: {text}")
        self.calls += 1
        self.characters += len(text)
        return told.structured_content


async def line(player: Player, game: str, kernel: str) -> int:
    """Plays the recorded line as its own game tells it; the position at its end."""
    recorded = (await player.ask("open", line=kernel))["game"]
    tree = (await player.ask("goto", game=recorded))["tree"]
    moves = [each["move"] for each in tree if each["move"]]
    for n in range(0, len(moves), AT_ONCE):
        played = await player.ask("play", game=game, moves=moves[n : n + AT_ONCE])
        assert played["stopped"] is None, played["stopped"]
    return int(played["position"])


async def hints(player: Player, game: str, kernel: str) -> int:
    """Plays what it is advised; the position where there is no advice any more."""
    position = 0
    for _ in range(MOST_HINTS):
        advised = await player.ask("hint", game=game)
        if advised["source"] == "none":
            break
        position = (await player.ask("play", game=game, moves=[advised["move"]]))["position"]
    return position


async def compared(kernel: str, seconds: float) -> None:
    known = recorded_lines()[kernel]
    with tempfile.TemporaryDirectory(prefix="dojo-mcp-") as home:
        started = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "agents.cli", "mcp"],
            env={**os.environ, "DOJO_HOME": home, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        async with Client(started, client_info=Implementation(name="benchmark", version="1")) as client:
            opener = Player(client)
            begun = await opener.ask("open", kernel=kernel, shape=known.shape, policy=known.policy)
            game = begun["game"]
            ends = []
            for name, play in (("line", line), ("hints", hints)):
                player = Player(client)
                await player.ask("goto", game=game, position=0)
                ends.append((name, await play(player, game, kernel), player))
            print(f"{kernel} {known.shape}, policy {known.policy}\n")
            print(
                "| player | moves | calls | characters read | time | × the start | of the line's time |"
            )
            print("|---|---:|---:|---:|---:|---:|---:|")
            first = None
            for name, end, player in ends:
                told = await opener.ask("measure", game=game, at=end, seconds=seconds)
                if told["state"] != "measured":
                    raise SystemExit(f"Not measured within {seconds:g} seconds: give more by --seconds.")
                speed, time = told["speedup"], told["outcome"]["seconds"]
                first = first or speed["value"]
                share = first / speed["value"]
                ply = (await opener.ask("goto", game=game, position=end))["ply"]
                print(
                    f"| {name} | {ply} | {player.calls} | {player.characters:,} | {1e3 * time:.3g} ms | "
                    f"{speed['value']:.3g} ({speed['low']:.3g} to {speed['high']:.3g}) | {share:.1%}"
                    f"{'' if share <= WITHIN else ', not within 5%'} |"
                )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--kernel", default="softmax", help="one that has a recorded line of its name")
    arguments.add_argument(
        "--seconds", type=float, default=120, help="to wait for a measurement, at most 300"
    )
    asked = arguments.parse_args()
    asyncio.run(compared(asked.kernel, asked.seconds))


if __name__ == "__main__":
    main()
