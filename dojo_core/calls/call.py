"""What a call is: a name, arguments that are checked, and an answer for people, models and programs alike."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from dojo_core.calls.schema import of_type
from dojo_core.service.view import Json
from dojo_core.spelling import meant

if TYPE_CHECKING:
    from dojo_core.calls.desk import Desk

LONGEST = 200  # characters of an argument that says nothing else
LONGEST_NAME = 60  # characters of a client's name, and of a call's that is told back
MOST = 100  # entries of a list that says nothing else

Code = Literal["bad_request", "not_found", "refused", "too_much", "missing", "fault"]


@dataclass(frozen=True)
class Answer:
    """What a call says: ``text``, compact, ends with the next useful call; ``data``: the same as
    JSON-able values, as the call's documentation names them; ``next``: calls that help most now, as they
    are written."""

    text: str
    data: Json
    next: tuple[str, ...] = ()


class CallFault(Exception):
    """A call that comes to nothing: ``str()`` is a sentence that says what to do next.

    ``code``: ``bad_request`` (arguments that no call of this name takes; a text that does not read, a kernel
    at a shape that cannot be played), ``not_found`` (a game, kernel, line or position that is not there),
    ``refused`` (an illegal move, a game of somebody else), ``too_much`` (a limit of the client's),
    ``missing`` (what is not installed, or not to be had on this machine), ``fault`` (of the Dojo's own; its
    log says which).
    """

    def __init__(self, sentence: str, code: Code = "bad_request") -> None:
        super().__init__(sentence)
        self.code: Code = code


@dataclass(frozen=True)
class Parameter:
    """An argument of a call; ``schema``: its JSON Schema, with a ``description`` and its bounds."""

    name: str
    schema: Json
    required: bool


@dataclass(frozen=True)
class Call:
    """Something that a client may ask of its desk. ``summary`` is a sentence, ``description`` the
    documentation with what the answer's data holds; ``changes``: does it change a game, or what is known
    of one? ``data``: the JSON Schema of the answer's data."""

    name: str
    summary: str
    description: str
    parameters: tuple[Parameter, ...]
    changes: bool
    data: Json
    run: Callable[..., Answer] = field(repr=False)

    def schema(self) -> Json:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {each.name: each.schema for each in self.parameters},
            "required": [each.name for each in self.parameters if each.required],
            "additionalProperties": False,
        }

    def __call__(self, desk: Desk, arguments: Mapping[str, object]) -> Answer:
        """Raises CallFault."""
        return self.run(desk, **self.checked(arguments))

    def checked(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """The arguments as the call takes them. Raises CallFault with the sentence for the first fault."""
        if not isinstance(arguments, Mapping):
            raise CallFault(f"{self.name} takes its arguments by name: {self.usage}.")
        known = {each.name: each for each in self.parameters}
        for name in arguments:
            if name not in known:
                hint = meant(str(name)[:LONGEST], known)
                raise CallFault(
                    " ".join(
                        f"{self.name} has no argument {str(name)[:40]!r}. {hint} It is {self.usage}.".split()
                    )
                )
        for each in self.parameters:
            if each.required and arguments.get(each.name) is None:
                raise CallFault(f"{self.name} needs {each.name}: {each.schema['description']}.")
        return {
            name: _checked(f"{name} of {self.name}", value, known[name].schema)
            for name, value in arguments.items()
            if value is not None  # what a client leaves out, some send as null
        }

    @property
    def usage(self) -> str:
        """The call as it is written: ``play(game, moves, [at])``."""
        names = [each.name if each.required else f"[{each.name}]" for each in self.parameters]
        return f"{self.name}({', '.join(names)})"


def made(run: Callable[..., Answer], data: type, changes: bool) -> Call:
    """The call that a function is: its parameters by its annotations, its words by its docstring; ``data`` is
    a TypedDict."""
    words = inspect.getdoc(run) or ""
    hints = get_type_hints(run, include_extras=True)
    parameters = [
        _parameter(name, hints[name], each.default)
        for name, each in list(inspect.signature(run).parameters.items())[1:]  # without the desk
    ]
    name = run.__name__.rstrip("_")
    summary = " ".join(words.partition("\n\n")[0].split())
    return Call(name, summary, words, tuple(parameters), changes, of_type(data), run)


def _parameter(name: str, hint: Any, default: object) -> Parameter:
    kind, *about = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    schema = _schema(kind)
    for each in about:
        schema |= {"description": each} if isinstance(each, str) else each
    required = default is inspect.Parameter.empty
    if not required and default is not None:
        schema["default"] = list(default) if isinstance(default, tuple) else default
    return Parameter(name, schema, required)


def _schema(kind: Any) -> Json:
    if get_origin(kind) in (Union, UnionType):
        [kind] = [each for each in get_args(kind) if each is not NoneType]
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is list:
        return {"type": "array", "items": _schema(get_args(kind)[0]), "maxItems": MOST}
    if get_origin(kind) is dict:
        values = _schema(get_args(kind)[1])
        names = {"type": "string", "maxLength": LONGEST}
        return {
            "type": "object", "propertyNames": names, "additionalProperties": values, "maxProperties": MOST
        }  # fmt: skip
    named: dict[type, Json] = {
        str: {"type": "string", "maxLength": LONGEST},
        int: {"type": "integer", "minimum": 0, "maximum": 10**9},
        float: {"type": "number", "minimum": 0, "maximum": 1e9},
        bool: {"type": "boolean"},
    }
    return dict(named[kind])


_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "array": ((list, tuple), "a list"),
    "object": ((dict,), "an object of names and values"),
}
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")  # in no text that means something


def _checked(what: str, value: object, schema: Json) -> object:
    """A value that its schema allows. Raises CallFault."""
    types, words = _TYPES[schema["type"]]
    if schema["type"] == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON knows one kind of number
    if not isinstance(value, types) or (isinstance(value, bool) and schema["type"] != "boolean"):
        raise CallFault(f"{what} is {words}.")
    if isinstance(value, str):
        if "enum" in schema and value not in schema["enum"]:
            raise CallFault(f"{what} is one of {', '.join(schema['enum'])}.")
        if len(value) > schema.get("maxLength", LONGEST):
            raise CallFault(f"{what} has at most {schema.get('maxLength', LONGEST)} characters.")
        if _UNFIT.search(value):
            raise CallFault(f"{what} has characters that no text has.")
    elif isinstance(value, (list, tuple)):
        if not schema.get("minItems", 0) <= len(value) <= schema["maxItems"]:
            least = schema.get("minItems", 0)
            raise CallFault(f"{what} has {least} to {schema['maxItems']} entries.")
        return [_checked(f"An entry of {what}", each, schema["items"]) for each in value]
    elif isinstance(value, dict):
        if len(value) > schema["maxProperties"]:
            raise CallFault(f"{what} has at most {schema['maxProperties']} entries.")
        return {
            _checked(f"A name in {what}", name, schema["propertyNames"]): _checked(
                f"An entry of {what}", each, schema["additionalProperties"]
            )
            for name, each in value.items()
        }
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = schema["minimum"], schema["maximum"]
        if not low <= value <= high:
            raise CallFault(f"{what} is between {low:g} and {high:g}.")
    return value
