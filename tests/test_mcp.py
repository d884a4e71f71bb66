"""Language models at the game: the protocol's own client plays, in process, over stdio and by HTTP."""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Implementation, PromptReference, TextContent
from starlette.testclient import TestClient

from agents.doors.mcp import DOCUMENTS, http_app, server
from agents.doors.seats import Allowance, Seats
from dojo_core import kernels
from dojo_core.calls import CALLS
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from tests.doors import seated
from tests.stand_ins import Bench

KERNEL, SHAPE, POLICY = "softmax", "8x64", "algebraic"
BEGIN = {"kernel": KERNEL, "shape": SHAPE, "policy": POLICY}
TOKEN = "a-token-for-the-tests"


@pytest.fixture(scope="module")
def seats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seats]:
    with seated(tmp_path_factory.mktemp("mcp"), "MCP", Bench(), Allowance(a_second=1e6)) as made:
        yield made


@asynccontextmanager
async def client(seats: Seats, name: str = "Ada's model", mode: str = "auto") -> AsyncIterator[Client]:
    made = Client(server(seats), client_info=Implementation(name=name, version="1"), mode=mode)
    async with made as connected:
        yield connected


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def said(player: Client, name: str, **arguments: Any) -> Any:
    """What a tool answers as data; it must not be an error."""
    result = await player.call_tool(name, arguments)
    assert not result.is_error, text_of(result)
    return result.structured_content


@cache
def fast() -> tuple[list[str], str]:
    """The moves of the recorded line of softmax at this shape, and the hash of the program at its end."""
    known = kernels.get(KERNEL)
    game = Game.new(known.program(known.shape(SHAPE)), KERNEL, SHAPE, policy=POLICY)
    recorded_lines()["softmax"].play(game)
    return [str(position.move) for position in game.line()[1:]], game.current.program.hash


async def plays(player: Client) -> Any:
    """A scripted player: it opens the kernel, looks at what is legal, plays the line in pieces, takes a move
    back and plays it again, and measures what it came to, against the start."""
    game = (await said(player, "open", **BEGIN))["game"]
    moves, _ = fast()
    listed = await said(player, "moves", game=game, kind=moves[0].split()[0])
    assert moves[0] in [each["move"] for each in listed["moves"]]
    for n in range(0, len(moves), 20):
        played = await said(player, "play", game=game, moves=moves[n : n + 20])
        assert played["stopped"] is None
    shown = await said(player, "take_back", game=game)
    again = await said(player, "play", game=game, moves=moves[-1:])
    assert again["ply"] == shown["ply"] + 1 == len(moves)
    return game, await said(player, "measure", game=game)


# ---------------------------------------------------------------------- in process


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_are_the_calls(seats: Seats, mode: str) -> None:
    async def asked() -> None:
        async with client(seats, mode=mode) as player:
            tools = {tool.name: tool for tool in (await player.list_tools()).tools}
            assert set(tools) == set(CALLS)
            for name, call in CALLS.items():
                assert tools[name].input_schema == call.schema()
                assert tools[name].annotations.read_only_hint is not call.changes
            assert "move" in (player.instructions or "")

    asyncio.run(asked())


def test_a_scripted_player_comes_to_the_end_of_the_recorded_line(seats: Seats) -> None:
    async def played() -> None:
        async with client(seats) as player:
            game, measured = await plays(player)
            resource = await player.read_resource(f"dojo://games/{game}")
            kept = Game.from_text(resource.contents[0].text)
        assert kept.current.program.hash == fast()[1]
        assert measured["state"] == "measured" and measured["outcome"]["status"] == "ok"

    asyncio.run(played())


def test_two_clients_play_at_once_each_its_own_games(seats: Seats) -> None:
    async def alone(name: str) -> tuple[str, str]:
        async with client(seats, name) as player:
            game = (await said(player, "open", kernel="relu", shape="8x32"))["game"]
            for move in ("split_scope y@1 8", "vectorize y@2"):
                await said(player, "play", game=game, moves=[move])
            listed = await said(player, "games")
            assert game in str(listed)
            return game, str((await said(player, "show", game=game))["lines"])

    async def both() -> None:
        one, other = await asyncio.gather(alone("one"), alone("other"))
        assert one[0] != other[0] and one[1] == other[1]
        async with client(seats, "one") as player:
            refused = await player.call_tool("play", {"game": other[0], "moves": ["undo"]})
            assert refused.is_error and "not yours" in text_of(refused)

    asyncio.run(both())


def test_nonsense_is_answered_with_sentences(seats: Seats) -> None:
    """A model that has misunderstood everything: each tool, with arguments of every wrong kind."""
    drawn = random.Random(1)

    async def asked() -> None:
        async with client(seats, "confused") as player:
            game = (await said(player, "open", kernel="relu", shape="8x32"))["game"]
            for name, call in CALLS.items():
                for _ in range(6):
                    known = [each.name for each in call.parameters]
                    names = [*known, "moves", "constructor", "x" * 300]
                    arguments = {key: junk(drawn, game) for key in drawn.sample(names, drawn.randrange(4))}
                    result = await player.call_tool(
                        name, {**arguments, **({"seconds": 0} if "seconds" in known else {})}
                    )
                    text = text_of(result)
                    assert text.strip() and "Traceback" not in text and "a fault of the Dojo" not in text, (
                        name,
                        arguments,
                        text,
                    )
            nothing = await player.call_tool("sudo", {})
            assert nothing.is_error and "There is no call 'sudo'" in text_of(nothing)

    asyncio.run(asked())


def junk(drawn: random.Random, game: str) -> Any:
    return drawn.choice(
        (None, True, -1, 0, 7, 10**30, 0.5, float("nan"), "", game, "relu", "y@1", "'; DROP TABLE games; --",
         "vectorize y@1", "\x00", "\ud800", "é" * 5000, [], [[]], ["join_scopes"], [game, None], {},
         {"a": {"b": 1}}, "import os", "{0}", "../../etc/passwd")
    )  # fmt: skip


def test_one_client_may_not_ask_for_everything_at_once(tmp_path: Path) -> None:
    async def asked() -> None:
        for allowance, told in (
            (Allowance(pending=0), "as many as may"),
            (Allowance(in_all=0), "of all clients"),
        ):
            with seated(tmp_path, "MCP", Bench(), allowance) as seats:
                async with client(seats) as player:
                    refused = await player.call_tool("kernels", {})
            assert refused.is_error and told in text_of(refused)

    asyncio.run(asked())


# ---------------------------------------------------------------------- resources and prompts


def test_documents_and_moves_are_resources(seats: Seats) -> None:
    async def read() -> None:
        async with client(seats) as player:
            listed = [each.uri for each in (await player.list_resources()).resources]
            assert listed == [f"dojo://docs/{name}" for name in DOCUMENTS]
            for uri in listed:
                assert (await player.read_resource(uri)).contents[0].text.startswith("# ")
            one = await player.read_resource("dojo://moves/join_scopes")
            assert "Legal iff" in one.contents[0].text
            templates = (await player.list_resource_templates()).resource_templates
            assert [each.name for each in templates] == ["move", "game"]
            for uri in ("dojo://docs/../../pyproject", "file:///etc/passwd", "dojo://games/none"):
                with pytest.raises(MCPError, match="There is no"):
                    await player.read_resource(uri)

    asyncio.run(read())


def test_a_prompt_begins_a_game(seats: Seats) -> None:
    async def asked() -> None:
        async with client(seats) as player:
            prompt = await player.get_prompt("optimise", {"kernel": "softmax", "target": "snitch"})
            text = prompt.messages[0].content.text
            assert 'open(kernel="softmax", target="snitch")' in text
            named = set(re.findall(r"\b(\w+)\(", text)) & set(CALLS)
            assert {"open", "why", "hint"} <= named
            with pytest.raises(MCPError, match="softmaxx"):
                await player.get_prompt("optimise", {"kernel": "softmaxx"})
            offered = await player.complete(
                PromptReference(name="optimise"), {"name": "kernel", "value": "soft"}
            )
            assert "softmax" in offered.completion.values

    asyncio.run(asked())


# ---------------------------------------------------------------------- over the wire


@pytest.mark.thorough  # in process and over HTTP: above and below
@pytest.mark.parametrize("line", [False, True])
def test_over_stdio_one_sends_nonsense_and_then_plays(tmp_path: Path, line: bool) -> None:
    """The command as a client starts it, with the real clock. Whatever else is written there would end the
    connection: the client reads standard output as the protocol alone.

    It plays two moves, or to the end of a recorded line and measures. What it comes to there is the line's
    very program, whatever a clock beside other processes says of it: ``benchmarks/mcp.py`` compares times.
    """
    started = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "agents.cli", "mcp"],
        env={**os.environ, "DOJO_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    async def played() -> None:
        async with Client(started, client_info=Implementation(name="over stdio", version="1")) as player:
            await confused(player)
            if not line:
                game = (await said(player, "open", kernel="relu", shape="8x32"))["game"]
                played = await said(player, "play", game=game, moves=["split_scope y@1 8", "vectorize y@2"])
                assert played["stopped"] is None and played["ply"] == 2
                return
            game, measured = await plays(player)
            kept = Game.from_text((await player.read_resource(f"dojo://games/{game}")).contents[0].text)
        assert kept.current.program.hash == fast()[1]
        assert measured["outcome"]["status"] == "ok" and measured["speedup"]["value"] > 0

    async def confused(player: Client) -> None:
        drawn = random.Random(2)
        for name in ("open", "play", "moves", "why", "study"):
            for _ in range(4):
                drawn_ones = {each.name: junk(drawn, "") for each in CALLS[name].parameters}
                # half of a surrogate pair is nothing that the client can send
                arguments = {key: value for key, value in drawn_ones.items() if value != "\ud800"}
                answer = await player.call_tool(name, arguments)
                assert answer.is_error and "Traceback" not in text_of(answer)
        assert await said(player, "kernels")

    asyncio.run(played())


def test_over_http_nobody_comes_in_without_the_token_or_from_another_site(seats: Seats) -> None:
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}
        },
    }  # fmt: skip
    known = {
        "Authorization": f"Bearer {TOKEN}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    with TestClient(http_app(seats, TOKEN), "http://127.0.0.1:8601") as wire:
        assert (
            wire.post("/mcp", json=hello, headers={**known, "Authorization": "Bearer no"}).status_code == 401
        )
        assert wire.post("/mcp", json=hello, headers={**known, "Host": "evil.example"}).status_code == 403
        assert (
            wire.post("/mcp", json=hello, headers={**known, "Origin": "http://evil.example"}).status_code
            == 403
        )
        welcome = wire.post("/mcp", json=hello, headers=known)
        assert welcome.status_code == 200 and '"dojo"' in welcome.text
