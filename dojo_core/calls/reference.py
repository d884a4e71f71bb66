"""The page of all calls, docs/interface.md, made from the registry by
``python -m dojo_core.calls.reference > docs/interface.md``.
"""

from __future__ import annotations

from dojo_core.calls import CALLS, Call, Parameter
from dojo_core.calls.call import LONGEST_NAME
from dojo_core.calls.desk import LIMITS
from dojo_core.calls.doors import table as shared_functions
from dojo_core.calls.words import LINES
from dojo_core.game import MAX_MOVES
from dojo_core.service.games import KEPT_GAMES, KEPT_OF_CLIENTS, KEPT_OWN
from dojo_core.service.view import Json

INTRODUCTION = f"""# The game as calls

Made from `dojo_core/calls/` by `python -m dojo_core.calls.reference`; a test keeps it so.

Programs play the same game as people, through the same service: what is legal, what is refused and why,
what a time is worth. A client sits at a desk, names a call and its arguments, and gets an answer:

```python
from dojo_core.calls import CallFault, Desk
from dojo_core.line import LINES_FOLDER
from dojo_core.service.wiring import open_service

desk = Desk(open_service(LINES_FOLDER, measure=False), "My script")
game = desk.call("open", {{"kernel": "softmax", "shape": "1024x512"}}).data["game"]
answer = desk.call("play", {{"game": game, "moves": ["join_scopes d@0", "reuse_dims d 0"]}})
print(answer.text)
```

An answer has a `text` for a person or a language model, compact, whose last line names the calls that help
most now; `data`, the same as JSON, of which each call below says what it holds; and `next`, those calls
once more. A call that comes to nothing raises `CallFault`: `str()` is a sentence that says what to do,
`.code` is `bad_request` (arguments that the call does not take, a text that does not read, a kernel at a
shape that cannot be played), `not_found`,
`refused` (an illegal move, a game of somebody else), `too_much` (a limit, below), `missing` (what is not
installed, or not to be had on this machine) or `fault` (of the Dojo's own, noted in its log).
`Call.schema()` is the JSON Schema of the arguments. What is in no schema is refused; `null` stands for an
argument that is left out.

Nothing that a client sends is executed: a text is read as a program, a move by its notation.

## Whose games these are

A game that a client begins belongs to it, by the name that it gave (`ownership.of_client`; of
{LONGEST_NAME} printable characters): the same name gets its games again, in another process too. Who opens
the app on the same machine and data directory finds them in the list of games, marked *played by* that
name, sees each move within about a second while the game is on the board, with the times that the client
had taken, and may look around in it, fork it, or *Take over*: the game is theirs from then on. The client
is told so with its next call that changes the game, and may still look at it, or play on in a copy (`open`
with its id). Where others come in to the app as well (a login, an address of the network), clients' games
are in nobody's list and are not taken over; who has a game's address watches it. A desk with another
`owner` plays for that browser or login.

Clients and people may play at once, in as many processes as there are: each move is saved as it is made,
what two played in one game becomes variations of it, and one lock keeps measurements from running beside
each other.

## Limits

- Text that is told by the way and lists are in pages: {LINES} lines, 40 moves, 40 kernels, layers or games.
- A client has {LIMITS.open_games} games open at once. The one that was not used for longest is closed for
  the next, and opens again by its id; where nothing was ever played in it, it is forgotten.
- It keeps {KEPT_GAMES} games with moves, {KEPT_OWN} of them on texts of its own; a game has {MAX_MOVES}
  moves, variations included. All clients together keep {KEPT_OF_CLIENTS:,}.
- One `measure` or beginning of `compare` at a time, which waits {LIMITS.seconds:.0f} seconds at most; what
  is not there then is told as such, and is measured on when it is asked for again.
- A library is written only to the folder that the Dojo was started with for it, as an archive whose name
  the Dojo gives; without one, its files are the answer.

## What the doors share

MCP and HTTP have the calls. Calls and the app stand on one service (`dojo_core/service/`), which keeps the
games, has programs measured and asks the pass for hints. Beneath that are functions over games and programs
that notebooks, the command line and learners come to as well, so that a move is refused in the same words
and a time taken in the same way whichever door one comes in by. Of those that two doors have at least, who
comes to them; of the app, the file that does:

"""


def page() -> str:
    """The whole page."""
    calls = list(CALLS.values())
    table = ["| call | changes | |", "|---|---|---|"]
    for each in calls:
        changes = "yes" if each.changes else ""
        table.append(f"| [`{each.name}`](#{each.name}) | {changes} | {_marked(each.summary)} |")
    return "\n".join(
        [f"{INTRODUCTION}{shared_functions()}\n\n## The calls\n", *table, "", *map(section, calls)]
    )


def section(call: Call) -> str:
    """One call as Markdown."""
    lines = [f"### {call.name}", "", f"`{call.usage}`", "", _marked(call.description), ""]
    if call.parameters:
        lines += ["| argument | | |", "|---|---|---|", *map(_row, call.parameters), ""]
    return "\n".join(lines)


def _marked(text: str) -> str:
    return text.replace("``", "`")


def _row(parameter: Parameter) -> str:
    schema = parameter.schema
    about = f"{schema['description']}"
    if not parameter.required and schema.get("default") not in (None, "", []):
        about += f"; default {_value(schema['default'])}"
    needed = "" if not parameter.required else ", needed"
    return f"| `{parameter.name}` | {_kind(schema)}{needed} | {_marked(about)} |"


def _value(default: object) -> str:
    if isinstance(default, list):
        return ", ".join(map(str, default))
    return f"{default:g}" if isinstance(default, float) else str(default)


def _kind(schema: Json) -> str:
    """The type and its bounds in words."""
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    match schema["type"]:
        case "string":
            return f"text of at most {schema['maxLength']:,}"
        case "integer" | "number":
            whole = "whole number" if schema["type"] == "integer" else "number"
            return f"{whole}, {schema['minimum']:,} to {schema['maximum']:,}"
        case "array":
            return f"list of {schema.get('minItems', 0)} to {schema['maxItems']}: {_kind(schema['items'])}"
        case "object":
            return f"object of at most {schema['maxProperties']}: {_kind(schema['additionalProperties'])}"
    return "true or false"


if __name__ == "__main__":
    print(page(), end="")
