"""``dojo mcp`` and ``dojo serve``: the doors for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
from rich.markup import escape
from starlette.types import ASGIApp

from agents.doors.gate import BadToken, the_token
from agents.doors.http import api
from agents.doors.seats import USUAL, Allowance, Seats
from agents.passes import play_heuristic
from agents.perfllm.across.asked import shipped_says
from dojo_core.cli.serving import check_port
from dojo_core.cli.terminal import Failure, err, out
from dojo_core.extras import need
from dojo_core.line import LINES_FOLDER
from dojo_core.service.wiring import open_service

API_PORT = 8600
HERE = "127.0.0.1"  # the doors for programs are this machine's alone
GRACE = 5  # seconds for answers under way, once the server is to end

ExportsOption = Annotated[
    Path | None,
    typer.Option(
        "--exports",
        file_okay=False,
        help="The folder that libraries may be written to; else they are answers.",
    ),
]


def mcp(
    http: Annotated[
        int | None,
        typer.Option(
            "--http", min=1, max=65535, metavar="PORT", help="Serve by HTTP on this machine, with a token."
        ),
    ] = None,
    exports: ExportsOption = None,
) -> None:
    """Let language models play: a server of the Model Context Protocol.

    Programs that speak it start this command themselves, and speak with it on standard input and output:
    docs/mcp.md says how they are told of it.

    Example: [bold]claude mcp add dojo -- dojo mcp[/bold]
    """
    need("mcp", "dojo mcp")
    from agents.doors.mcp import http_app, on_standard_streams

    if http is None:
        on_standard_streams(lambda: open_seats("MCP", exports=exports))
        return
    with open_seats("MCP", exports=exports) as seats:
        _serve(lambda token: http_app(seats, token), http, "/mcp", "dojo mcp --http")


def serve(
    with_api: Annotated[
        bool, typer.Option("--api", help="The calls of the game as JSON, described by OpenAPI.")
    ] = False,
    port: Annotated[int, typer.Option("--port", min=1, max=65535)] = API_PORT,
    exports: ExportsOption = None,
) -> None:
    """Serve the calls of the game to programs on this machine, as JSON with a token.

    Example: [bold]dojo serve --api[/bold]
    """
    if not with_api:
        raise Failure("dojo serve --api serves programs; people open the app, by dojo app.")
    with open_seats("HTTP", exports=exports) as seats:
        _serve(lambda token: api(seats, token), port, "", "dojo serve --api --port")


@contextmanager
def open_seats(by: str, allowance: Allowance = USUAL, exports: Path | None = None) -> Iterator[Seats]:
    """Seats at this user's games, closed at the end."""
    # Nothing is measured before somebody asks: a door may stand open all day.
    service = open_service(LINES_FOLDER, play_heuristic, measure=False, policy=shipped_says)
    seats = Seats(service, by, allowance, exports)
    try:
        yield seats
    finally:
        seats.close()
        service.close()


def _serve(make: Callable[[str], ASGIApp], port: int, path: str, again: str) -> None:
    try:
        token, told = the_token()
    except BadToken as bad:
        raise Failure(str(bad)) from None
    check_port(HERE, port, again)
    config = uvicorn.Config(
        make(token), host=HERE, port=port, log_level="warning", access_log=False, server_header=False,
        timeout_graceful_shutdown=GRACE,
    )  # fmt: skip
    # Who reads the address may call at once: it waits at the socket until the server has begun.
    listening = config.bind_socket()
    listening.listen()
    out.print(f"The Dojo answers programs at http://{HERE}:{port}{path} (Ctrl-C ends it)")
    out.print(escape(told), soft_wrap=True)
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])
    err.print("Stopped. The games are kept.", style="dim")
