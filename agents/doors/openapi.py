"""The description of the HTTP interface as OpenAPI 3.1, made from the calls and from the table of faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agents.doors.faults import FAULTS
from dojo_core.calls import Call
from dojo_core.calls.call import LONGEST
from dojo_core.version import version

Json = dict[str, Any]
CLIENT = "Dojo-Client"


def described(calls: Iterable[Call], open_to_all: Iterable[str]) -> Json:
    """The whole document. ``open_to_all``: the pages that need no token."""
    calls = list(calls)
    paths: Json = {f"/v1/calls/{each.name}": {"post": _operation(each, calls)} for each in calls}
    pages = {
        "/": ("words", "A few words on this interface.", {"text/plain": {"schema": {"type": "string"}}}),
        "/openapi.json": (
            "describe",
            "This description.",
            {"application/json": {"schema": {"type": "object"}}},
        ),
    }
    for path in open_to_all:
        name, summary, content = pages[path]
        answers = {
            "200": {"description": summary, "content": content},
            **_faults(("forbidden", "wrong_method")),
        }
        paths[path] = {"get": {"operationId": name, "summary": summary, "security": [], "responses": answers}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "The Dojo",
            "version": version(),
            "description": "The calls of the game: moves transform programs, time is the score.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Fault": _FAULT},
        },
    }


_FAULT: Json = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "enum": list(FAULTS)},
                "message": {"type": "string", "description": "A sentence that says what to do."},
            },
            "required": ["code", "message"],
            "additionalProperties": False,
        }
    },
    "required": ["error"],
    "additionalProperties": False,
}


def _operation(call: Call, calls: list[Call]) -> Json:
    summary, _, more = call.description.partition("\n")
    done: Json = {
        "description": "The answer.",
        "content": {"application/json": {"schema": _answer(call)}},
    }
    begins = call.name == "open"
    if begins:
        done["links"] = {each.name: _link(each) for each in calls if _takes_a_game(each)}
    return {
        "operationId": call.name,
        "summary": summary,
        "description": more.strip(),
        "parameters": [
            {
                "name": CLIENT,
                "in": "header",
                "description": "The name of the program that plays, shown beside its games.",
                "schema": {"type": "string"},
            }
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": arguments(call)}}},
        "responses": {"200": done, **_faults(tuple(FAULTS))},
    }


def _answer(call: Call) -> Json:
    return {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The answer in words."},
            "data": {**call.data, "description": "The same as values: the operation's description has more."},
            "next": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Calls that help most now.",
            },
        },
        "required": ["text", "data", "next"],
        "additionalProperties": False,
    }


def _takes_a_game(call: Call) -> bool:
    return any(each.name == "game" and each.required for each in call.parameters)


def _link(call: Call) -> Json:
    """What can be asked of the game that was begun."""
    body = {"game": "$response.body#/data/game"}
    return {"operationId": call.name, "requestBody": body, "description": call.summary}


def _faults(codes: tuple[str, ...]) -> Json:
    """The answers of these faults by status; two of one status are one answer."""
    answers: Json = {}
    for code in codes:
        status, means = str(FAULTS[code].status), f"`{code}`: {FAULTS[code].means}"
        if status in answers:
            answers[status]["description"] += f" {means}"
            continue
        answers[status] = {
            "description": means,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Fault"}}},
        }
        headers = HEADERS.get(status)
        if headers is not None:
            answers[status]["headers"] = headers
    return answers


HEADERS: Mapping[str, Json] = {
    "401": {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}},
    "405": {"Allow": {"required": True, "schema": {"type": "string"}}},
    "429": {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}},
}

# A text without these signs is refused whatever it is (dojo_core/calls/call.py).
_TEXT = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*$"


def arguments(call: Call) -> Json:
    """The schema of a call's arguments, with what every call keeps to: which signs a text may have, and that
    null is what is left out."""
    schema = call.schema()
    optional = {each.name for each in call.parameters if not each.required}
    properties = {
        name: _or_null(_exact(each)) if name in optional else _exact(each)
        for name, each in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _exact(schema: Json) -> Json:
    exact = dict(schema)
    if exact["type"] == "string" and "enum" not in exact:
        exact["pattern"] = _TEXT
    for inner in ("items", "additionalProperties"):
        if isinstance(exact.get(inner), dict):
            exact[inner] = _exact(exact[inner])
    if exact["type"] == "object":
        exact["propertyNames"] = {"pattern": _TEXT, "maxLength": LONGEST}
    return exact


def _or_null(schema: Json) -> Json:
    nullable = {**schema, "type": [schema["type"], "null"]}
    return nullable | ({"enum": [*schema["enum"], None]} if "enum" in schema else {})
