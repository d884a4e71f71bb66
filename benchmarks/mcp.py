"""How far players come that have nothing but the tools of ``dojo mcp``: ``python -m benchmarks.mcp``.

Each is a script at the protocol's own client, over stdio, as a language model's program is. They open softmax
at the recorded line's shape and play from the start: one the moves of the line, which it reads in a game of
it, the other what is hinted, until nothing is. All ends are timed, each in turns with its own start, and the
players' speed-ups are told beside the line's. Also told: the tools called, and the characters of all answers,
which a model would have to read.
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

from agents.doors.seats import USUAL
from dojo_core.line import recorded_lines

WITHIN = 1.05  # of the recorded line's time
AT_ONCE = 10  # moves in one call


class Player:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.calls = self.characters = 0

    async def ask(self, name: str, **arguments: Any) -> Any:
        await asyncio.sleep(1 / USUAL.a_second)  # more calls are refused
        told = await self._client.call_tool(name, arguments)
        text = "".join(each.text for each in told.content if isinstance(each, TextContent))
        if told.is_error:
            raise SystemExit(f"{name}: {text}")
        self.calls += 1
        self.characters += len(text)
        return told.structured_content


async def plays(player: Player, game: str, moves: list[str]) -> None:
    """Plays moves from where the game stands, and looks at what is legal now and then."""
    for n in range(0, len(moves), AT_ONCE):
        await player.ask("moves", game=game)
        played = await player.ask("play", game=game, moves=moves[n : n + AT_ONCE])
        assert played["stopped"] is None, played["stopped"]


async def follows(player: Player, game: str) -> None:
    """Plays what is hinted from where the game stands, to where nothing is."""
    while (hint := await player.ask("hint", game=game))["source"] != "none":
        await player.ask("play", game=game, moves=[hint["move"]])


async def compared(kernel: str, seconds: float) -> None:
    known = recorded_lines()[kernel]
    with tempfile.TemporaryDirectory(prefix="dojo-mcp-") as home:
        started = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "agents.cli", "mcp"],
            env={**os.environ, "DOJO_HOME": home, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        async with Client(started, client_info=Implementation(name="benchmark", version="1")) as client:
            judge, reader, follower = Player(client), Player(client), Player(client)
            recorded = (await judge.ask("open", line=kernel))["game"]
            tree = (await judge.ask("goto", game=recorded))["tree"]
            await judge.ask("goto", game=recorded, position=tree[-1]["position"])
            games = [
                (await player.ask("open", kernel=kernel, shape=known.shape, policy=known.policy))["game"]
                for player in (reader, follower)
            ]
            await plays(reader, games[0], [each["move"] for each in tree if each["move"]])
            await follows(follower, games[1])
            print(f"{kernel} {known.shape}, policy {known.policy}\n")
            print("| | moves | tools called | characters read | time | × the start | of the line's time |")
            print("|---|---:|---:|---:|---:|---:|---:|")
            first, line = 0.0, ""
            for name, player, game in (
                ("the recorded line", None, recorded),
                ("reads the line", reader, games[0]),
                ("follows hints", follower, games[1]),
            ):
                called = f"{player.calls} | {player.characters:,}" if player else "– | –"
                stands = (await judge.ask("goto", game=game))["position"]
                end = await judge.ask("goto", game=game, position=stands)
                told = await judge.ask("measure", game=game, seconds=seconds)
                if told["state"] != "measured":
                    raise SystemExit(f"Not measured within {seconds:g} seconds: give more by --seconds.")
                speed, time = told["speedup"], told["outcome"]["seconds"]
                first, line = first or speed["value"], line or end["program"]
                share = first / speed["value"]
                verdict = ", not within 5%" if share > WITHIN else ""
                same = ", the same program" if player and end["program"] == line else ""
                print(
                    f"| {name} | {end['ply']} | {called} | {1e3 * time:.3g} ms | {speed['value']:.3g} "
                    f"({speed['low']:.3g} to {speed['high']:.3g}) | {share:.1%}{verdict}{same} |"
                )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--kernel", default="softmax", help="one that has a recorded line of its name")
    arguments.add_argument(
        "--seconds", type=float, default=240, help="to wait for a measurement, at most 300"
    )
    asked = arguments.parse_args()
    asyncio.run(compared(asked.kernel, asked.seconds))


if __name__ == "__main__":
    main()
