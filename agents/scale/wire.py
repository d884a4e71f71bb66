"""What travels between a tuning and its workers as JSON: who a worker is, requests and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import wraps
from typing import Any, TypeVar

from dojo_core.bounded_json import read_object
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.processor import Processor, from_json

T = TypeVar("T")

VERSION = 5
LARGEST_MESSAGE = 64 << 20  # characters
LARGEST_INTRODUCTION = 1 << 17


class OtherVersion(RuntimeError):
    """The two ends do not understand each other; ``str()`` is a sentence for a person."""


def _readable(read: Callable[[str], T]) -> Callable[[str], T]:
    """What is no message, or one of another form, is of another version."""

    @wraps(read)
    def checked(text: str) -> T:
        try:
            return read(text)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            raise OtherVersion(f"A message cannot be read ({error}): is it of another version?") from None

    return checked


@dataclass(frozen=True)
class Introduction:
    """What a worker says of itself: which machine it is on, and what that one's processor is."""

    fingerprint: str
    processor: Processor

    def text(self) -> str:
        message = {"dojo worker": VERSION, "fingerprint": self.fingerprint, "processor": self.processor.json}
        return json.dumps(message)

    @staticmethod
    @_readable
    def read(text: str) -> Introduction:
        """Raises OtherVersion."""
        message = _read(text, "dojo worker", LARGEST_INTRODUCTION)
        return Introduction(str(message["fingerprint"]), from_json(message["processor"]))


@dataclass(frozen=True)
class Request:
    """Programs to measure. ``lines``: moves from the start by program hash; ``best``: seconds of the fastest
    program known, so that slow ones are cut off as if one machine did it all."""

    workload: Workload
    programs: tuple[Program, ...]
    lines: Mapping[str, str]
    effort: Effort
    player: str = ""
    best: float | None = None

    def text(self) -> str:
        message = {
            "dojo request": VERSION,
            "start": self.workload.start.text,
            "kernel": self.workload.kernel,
            "policy": self.workload.policy,
            "target": self.workload.target,
            "programs": [[p.hash, p.text, self.lines.get(p.hash, "")] for p in self.programs],
            "effort": self.effort.label,
            "player": self.player,
            "best": self.best,
        }
        return json.dumps(message)

    @staticmethod
    @_readable
    def read(text: str) -> Request:
        """Raises OtherVersion."""
        message = _read(text, "dojo request")
        programs = tuple(parse(each[1]) for each in message["programs"])
        if [p.hash for p in programs] != [each[0] for each in message["programs"]]:
            raise OtherVersion("This worker reads programs in another way: give it the Dojo of the tuning.")
        return Request(
            Workload(parse(message["start"]), message["kernel"], message["policy"], message["target"]),
            programs,
            {each[0]: each[2] for each in message["programs"]},
            Effort[message["effort"].upper()],
            message["player"],
            message["best"],
        )


_SENT = tuple(f.name for f in fields(Measurement) if f.name not in ("raw", "ratios"))


@dataclass(frozen=True)
class Answer:
    """Measurements in the order of the request; ``records`` are new ones, as lines of the exchange form."""

    fingerprint: str
    results: tuple[Measurement, ...]
    records: Sequence[str] = ()

    def text(self) -> str:
        results = [{name: value for name, value in asdict(m).items() if name in _SENT} for m in self.results]
        message = {
            "dojo answer": VERSION,
            "fingerprint": self.fingerprint,
            "results": results,
            "records": list(self.records),
        }
        return json.dumps(message)

    @staticmethod
    @_readable
    def read(text: str) -> Answer:
        """Raises OtherVersion."""
        message = _read(text, "dojo answer")
        results = tuple(
            Measurement(
                **{**each, "samples": tuple(each["samples"]), "conditions": Conditions(**each["conditions"])}
            )
            for each in message["results"]
        )
        return Answer(message["fingerprint"], results, tuple(message["records"]))


def _read(text: str, kind: str, largest: int = LARGEST_MESSAGE) -> dict[str, Any]:
    message = read_object(text, largest, nonfinite=True)
    if message.get(kind) != VERSION:
        raise OtherVersion("The tuning and this worker are of different versions: update the older one.")
    return message
