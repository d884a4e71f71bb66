"""The JSON Schema of what an answer holds, from the type that says it."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from dojo_core.service.view import Json

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def of_type(kind: Any) -> Json:
    """Of a TypedDict, a list, a dict with texts as keys, a Literal, a union, or a plain type."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {
            "type": "object",
            "properties": {name: of_type(each) for name, each in hints.items()},
            "required": [name for name, each in hints.items() if get_origin(each) is not NotRequired],
            "additionalProperties": False,
        }
    if origin in (Union, UnionType):
        return {"anyOf": [of_type(each) for each in inner]}
    if origin is NotRequired:
        return of_type(inner[0])
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": of_type(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": of_type(inner[1])}
    return {"type": _PLAIN[kind]}
