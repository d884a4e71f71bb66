"""The Model Context Protocol: the calls as tools, the documentation and games as resources, a prompt."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from agents.doors.gate import Gate
from agents.doors.seats import Busy, Late, Seats
from dojo_core import kernels
from dojo_core.calls import CALLS, Call, CallFault, Desk
from dojo_core.calls.words import READING
from dojo_core.moves import REGISTRY
from dojo_core.moves.reference import section
from dojo_core.package_data import document_path
from dojo_core.targets.registry import names as target_names
from dojo_core.version import version

Context = ServerRequestContext[object]

INSTRUCTIONS = f"""The Dojo is a game about making numerical kernels fast. A game begins with a naive
program. A move transforms it and keeps what it computes, so that no program that you reach is wrong: a move
that would change the results is refused, with the reason. The score is the time that the compiled program
takes, measured on this machine.

Begin with open, read the program, list the legal moves or recipes, play some, measure. What made it slower is
taken back; every position stays in the game's tree. What you play can be watched on the Dojo's board.

{READING}"""

DOCUMENTS = {
    "text": "How a program is written, and how to read one.",
    "moves": "All moves, each with an example and its conditions (long: dojo://moves/NAME is one of them).",
    "recipes": "Recipes: named ways of making several moves.",
    "measuring": "How a time is taken, and what it is worth.",
}
MOST_BYTES, MOST_SESSIONS = 1 << 20, 100  # of a request; at once, by HTTP

DOCUMENT, MOVE, GAME = "dojo://docs/", "dojo://moves/", "dojo://games/"
TEMPLATES = {
    MOVE + "{name}": ("move", "A move: what it does, an example, when it is legal.", "text/markdown"),
    GAME + "{id}": ("game", "A game as text, with all its positions.", "text/plain"),
}

OPTIMISE = types.Prompt(
    name="optimise",
    title="Make a kernel fast",
    description="Play a game: a kernel from its naive program to the fastest that you find.",
    arguments=[
        types.PromptArgument(name="kernel", description="name of a kernel, as softmax", required=True),
        types.PromptArgument(
            name="target", description="what it is played for; without it, this machine's CPU"
        ),
        types.PromptArgument(name="shape", description="its sizes, as 1024x512"),
    ],
)


def server(seats: Seats) -> Server[object]:
    """The server, for any transport. The caller closes the seats."""

    async def call_tool(context: Context, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            told = await seats.call(_client(context), asked.name, asked.arguments or {})
        except (CallFault, Busy, Late) as fault:
            return types.CallToolResult(content=[_text(str(fault))], is_error=True)
        return types.CallToolResult(content=[_text(told.text)], structured_content=told.data)

    async def read(context: Context, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = asked.uri
        if uri.startswith(GAME):
            name = uri.removeprefix(GAME)
            try:
                text = await seats.at_desk(_client(context), lambda desk: _game_text(desk, name))
            except (CallFault, Busy, Late) as fault:
                raise MCPError(types.INVALID_PARAMS, str(fault)) from None
            return _contents(uri, text, "text/plain")
        return _contents(uri, _page(uri), "text/markdown")

    return Server(
        "dojo",
        version=version(),
        title="The Dojo",
        instructions=INSTRUCTIONS,
        on_list_tools=_tools,
        on_call_tool=call_tool,
        on_list_resources=_resources,
        on_list_resource_templates=_templates,
        on_read_resource=read,
        on_list_prompts=_prompts,
        on_get_prompt=_prompt,
        on_completion=_completion,
    )


def _client(context: Context) -> str:
    """The name that the client gave itself."""
    said = context.session.client_params
    return "" if said is None else said.client_info.title or said.client_info.name


# ---------------------------------------------------------------------- tools


async def _tools(context: Context, page: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[_tool(call) for call in CALLS.values()])


def _tool(call: Call) -> types.Tool:
    return types.Tool(
        name=call.name,
        description=call.description,
        input_schema=call.schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=not call.changes, destructive_hint=False, open_world_hint=False
        ),
    )


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


# ---------------------------------------------------------------------- resources


async def _resources(
    context: Context, page: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    listed = [
        types.Resource(uri=DOCUMENT + name, name=name, description=about, mime_type="text/markdown")
        for name, about in DOCUMENTS.items()
    ]
    return types.ListResourcesResult(resources=listed)


async def _templates(
    context: Context, page: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    templates = [
        types.ResourceTemplate(uri_template=uri, name=name, description=about, mime_type=kind)
        for uri, (name, about, kind) in TEMPLATES.items()
    ]
    return types.ListResourceTemplatesResult(resource_templates=templates)


def _page(uri: str) -> str:
    """A page of the documentation. Raises MCPError."""
    if uri.startswith(DOCUMENT) and uri.removeprefix(DOCUMENT) in DOCUMENTS:
        return document_path(f"{uri.removeprefix(DOCUMENT)}.md").read_text(encoding="utf-8")
    if uri.startswith(MOVE) and uri.removeprefix(MOVE) in REGISTRY:
        return section(uri.removeprefix(MOVE))
    there_are = ", ".join([*(DOCUMENT + name for name in DOCUMENTS), *TEMPLATES])
    raise MCPError(types.INVALID_PARAMS, f"There is no resource {uri[:100]}. There are: {there_are}.")


def _game_text(desk: Desk, game: str) -> str:
    table = desk.table(game)
    with table.lock:
        return table.game.to_text()


def _contents(uri: str, text: str, kind: str) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text, mime_type=kind)])


# ---------------------------------------------------------------------- prompts


async def _prompts(context: Context, page: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[OPTIMISE])


async def _prompt(context: Context, asked: types.GetPromptRequestParams) -> types.GetPromptResult:
    if asked.name != OPTIMISE.name:
        raise MCPError(types.INVALID_PARAMS, f"There is no prompt {asked.name[:60]!r}, but {OPTIMISE.name}.")
    said = {name: " ".join(value.split())[:60] for name, value in (asked.arguments or {}).items()}
    kernel = said.get("kernel", "")
    if kernel not in kernels.names():
        raise MCPError(types.INVALID_PARAMS, kernels.unknown(kernel))
    arguments = [f'{name}="{said[name]}"' for name in ("kernel", "shape", "target") if said.get(name)]
    text = f"""Make {kernel} as fast as you can in the Dojo.

1. open({", ".join(arguments)}): read the program.
2. measure its start, so that there is something to compare with.
3. Think about what bounds it (show with what="profile" tells where the time goes), list the legal moves or
   the recipes, and play. A refused move says why; why() tells ways to make it legal; hint() knows a good one.
4. measure after each idea. Take back what does not help, or go to another position and try a variation there.
5. When nothing more helps, tell me the moves that mattered, what each did to the time, and the speed-up."""
    return types.GetPromptResult(
        description=f"Make {kernel} fast", messages=[types.PromptMessage(role="user", content=_text(text))]
    )


async def _completion(context: Context, asked: types.CompleteRequestParams) -> types.CompleteResult:
    """What the argument of a prompt or of a template can be."""
    choices: dict[str, Callable[[], tuple[str, ...]]] = {
        "kernel": kernels.names, "target": target_names, "name": lambda: tuple(REGISTRY)
    }  # fmt: skip
    begun = asked.argument.value
    fitting = [each for each in choices.get(asked.argument.name, tuple)() if each.startswith(begun)]
    return types.CompleteResult(completion=types.Completion(values=fitting[:100], total=len(fitting)))


# ---------------------------------------------------------------------- transports


def on_standard_streams(open_seats: Callable[[], AbstractContextManager[Seats]]) -> None:
    """Serve the program that started this one, until it closes standard input.

    What else is written to standard output meanwhile, by a compiler too, goes to standard error: the protocol
    has it alone.
    """

    async def served() -> None:
        async with stdio_server() as (reading, writing):
            with open_seats() as seats:
                served = server(seats)
                await served.run(reading, writing, served.create_initialization_options())

    print("The Dojo listens for a program that speaks the Model Context Protocol.", file=sys.stderr)
    anyio.run(served)


def http_app(seats: Seats, token: str) -> Gate:
    """The ASGI application of streamable HTTP, at ``/mcp``. The caller closes the seats."""
    app = server(seats).streamable_http_app(max_request_body_size=MOST_BYTES, max_sessions=MOST_SESSIONS)
    return Gate(app, token)
