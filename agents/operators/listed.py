"""Which operators there are, and at which shapes: ``operators.toml``, whose head tells its form."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from dojo_core.package_data import data_path

FILE = data_path("agents", "operators", "operators.toml")
FEW = 8  # names in a sentence
LARGEST = 1 << 20  # characters of such a file

_VARYING = re.compile(
    r"(?P<name>\w+)(?: (?P<dtype>\w+))?? (?P<shape>scalar|\d+(?:x\d+)*)"
    r"(?: in (?P<low>-?[\d.]+)\.\.(?P<high>-?[\d.]+))?(?P<weight> weight)?"
)
_KNOWN = re.compile(r"(?P<name>\w+)(?: (?P<dtype>\w+))? = (?P<values>.+)")


class NotListed(ValueError):
    """An operator that is not in the list, or a line of it that says nothing; ``str()`` is a sentence."""


@dataclass(frozen=True)
class Input:
    """An input of a node. ``values``: those of the model, else it is data, which lies in ``domain`` where one
    is given. ``weight``: the same in every call."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    domain: tuple[float, float] | None = None
    weight: bool = False
    values: Any = None

    @property
    def known(self) -> bool:
        return self.values is not None


@dataclass(frozen=True)
class Case:
    """One node: an operator at one shape. ``inputs`` in the standard's order, None where one is left out."""

    operator: str
    inputs: tuple[Input | None, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def data(self) -> tuple[Input, ...]:
        """The inputs that a call brings."""
        return tuple(each for each in self.inputs if each is not None and not each.known)

    @property
    def shape(self) -> str:
        """What tells it from the operator's other cases: the shape of its first input."""
        return "x".join(map(str, self.data[0].shape)) or "scalar"

    @property
    def title(self) -> str:
        return f"{self.operator} {self.shape}"

    @property
    def about(self) -> str:
        """Its inputs and attributes, for a person."""
        arrays = [f"{i.name} {i.dtype} {'x'.join(map(str, i.shape)) or 'scalar'}" for i in self.data]
        known = [f"{i.name} = {json.dumps(i.values)}" for i in self.inputs if i is not None and i.known]
        attributes = [f"{name} = {json.dumps(value)}" for name, value in self.attributes.items()]
        return "; ".join(filter(None, (", ".join(arrays), ", ".join([*known, *attributes]))))


@dataclass(frozen=True)
class Operator:
    """An operator with its cases; or ``reason``, why it is no kernel."""

    name: str
    cases: tuple[Case, ...] = ()
    reason: str = ""


@cache
def operators() -> Mapping[str, Operator]:
    """The list, by name in alphabetical order."""
    return read(FILE)


def read(file: Path) -> dict[str, Operator]:
    """The operators of a file in the form of ``operators.toml``. Raises NotListed where it has another."""
    try:
        with file.open(encoding="utf-8") as opened:
            entries = tomllib.loads(opened.read(LARGEST))
    except OSError as fault:
        raise NotListed(f"{file} cannot be read: {fault.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise NotListed(f"{file} is no TOML: {fault}. Its form is told at the head of {FILE}.") from None
    found: dict[str, Operator] = {}
    for names, entry in entries.items():
        for name in names.split():
            if name in found:
                raise NotListed(f"{file} has {name} twice.")
            if isinstance(entry, str):
                found[name] = Operator(name, reason=entry)
                continue
            if not isinstance(entry, list) or not all(isinstance(each, dict) for each in entry):
                raise NotListed(
                    f'{name} has neither cases nor a sentence: {name} = [{{ inputs = ["x 512x768"] }}]'
                )
            cases = tuple(_case(name, each) for each in entry)
            if len({case.shape for case in cases}) < len(cases):
                raise NotListed(
                    f"Two cases of {name} have a first input of the same shape: a call could mean either."
                )
            found[name] = Operator(name, cases)
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _case(operator: str, entry: Mapping[str, Any]) -> Case:
    attributes = {key: value for key, value in entry.items() if key not in ("inputs", "outputs")}
    inputs, outputs = entry.get("inputs", []), entry.get("outputs", ["result"])
    for texts in (inputs, outputs):
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise NotListed(f'Inputs and outputs of {operator} are lists of texts: inputs = ["x 512x768"]')
    case = Case(operator, tuple(_input(operator, text) for text in inputs), tuple(outputs), attributes)
    names = [each.name for each in case.inputs if each is not None] + outputs
    if len(set(names)) < len(names):
        raise NotListed(f"A case of {operator} has two arrays of one name.")
    if not case.data:
        raise NotListed(f"A case of {operator} has no input that a call brings.")
    return case


def _input(operator: str, text: str) -> Input | None:
    if not text:
        return None
    if match := _KNOWN.fullmatch(text):
        try:
            values = json.loads(match["values"])
        except (ValueError, RecursionError):
            raise NotListed(
                f"{operator} has the input {text!r}, whose values do not read: axes i64 = [0, 1]"
            ) from None
        known = (len(values),) if isinstance(values, list) else ()
        return Input(match["name"], match["dtype"] or "f32", known, values=values)
    match = _VARYING.fullmatch(text)
    if match is None:
        raise NotListed(f"{operator} has the input {text!r}, which does not read: x f32 512x768 in 0..1")
    shape = () if match["shape"] == "scalar" else tuple(map(int, match["shape"].split("x")))
    domain = None if match["low"] is None else (float(match["low"]), float(match["high"]))
    return Input(match["name"], match["dtype"] or "f32", shape, domain, bool(match["weight"]))


def chosen(wanted: Iterable[str], known: Mapping[str, Operator] | None = None) -> list[Operator]:
    """The operators of these names, all where there are none; in the list's order. Raises NotListed."""
    known = operators() if known is None else known
    by_name = {name.lower(): each for name, each in known.items()}
    names = [name.strip() for name in wanted]
    unknown = [name for name in names if name.lower() not in by_name]
    if unknown:
        raise NotListed(_unknown(unknown[0], list(known)))
    asked = {by_name[name.lower()].name for name in names}
    return [each for each in known.values() if not names or each.name in asked]


def _unknown(name: str, known: Sequence[str]) -> str:
    near = [each for each in known if name and name.lower() in each.lower()][:FEW]
    meant = f" Do you mean {', '.join(near)}?" if near else ""
    return f"There is no operator {name!r} in the list.{meant} dojo library --onnx --list shows them."
