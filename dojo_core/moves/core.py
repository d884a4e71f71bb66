"""What a move is: a value with a text form, checked against the program, refused with reasons.

A transformation (one class, in the file of its family) says where it can be played, what it makes of
the program, and which conditions of its own it has. V2 and V3 (validity.py, marks.py) are checked here,
on the result, for every transformation alike; V1 by ``dependence.conflict_between`` in those that reorder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from dojo_core.program.dependence import POLICIES, Witness
from dojo_core.program.functions import KERNEL_LIMITS
from dojo_core.program.marks import mark_fault
from dojo_core.program.tree import Birth, Leaf, Op, Path, Program, Scope, walk
from dojo_core.program.validity import Fault, storage_fault
from dojo_core.targets.target import Target
from dojo_core.targets.target import target as target_named


@dataclass(frozen=True, slots=True)
class Place:
    """A node by name: ``t@0`` is the scope at depth 0 above the operation that writes t, ``t`` that
    operation itself, ``t#1`` the second operation that writes t."""

    array: str
    number: int = 0
    depth: int | None = None

    def __str__(self) -> str:
        nth = f"#{self.number}" if self.number else ""
        return f"{self.array}{nth}" if self.depth is None else f"{self.array}{nth}@{self.depth}"


Argument = Place | int | str


@dataclass(frozen=True, slots=True)
class Move:
    """A transformation at a location with its parameters; ``str(move)`` is its text form."""

    name: str
    arguments: tuple[Argument, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.name, *map(str, self.arguments)])


@dataclass(frozen=True)
class Refusal:
    """Why a move is not legal: a code, a sentence, the nodes involved, a witness where there is one,
    and moves that would enable it. ``structural`` refusals concern form (sizes, marks, names), the
    others meaning."""

    code: str
    sentence: str
    nodes: tuple[Path, ...] = ()
    witness: Witness | None = None
    enablers: tuple[str, ...] = ()
    structural: bool = False
    fault: Fault | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        told = self.sentence
        if self.enablers:
            told += f" Try first: {', '.join(self.enablers)}."
        return told


class IllegalMove(ValueError):
    """Raised by ``apply``; ``refusal`` says why as data, ``str()`` as a sentence."""

    def __init__(self, move: str, refusal: Refusal) -> None:
        super().__init__(f"{move}: {refusal}")
        self.move, self.refusal = move, refusal


@dataclass(frozen=True)
class Verdict:
    """The answer of ``why``: ``legal``, and the sentence and refusal that go with it."""

    legal: bool
    sentence: str
    refusal: Refusal | None = None

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Context:
    """A program with what its legality depends on beside it: target and floating-point policy."""

    program: Program
    target: Target
    policy: str
    born: int  # births of the nodes that a move makes carry this number

    def birth(self, ordinal: int) -> Birth:
        return Birth(self.born, ordinal)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a transformation. Kinds: scope, op, reduction (an operation and a scope above
    it), node, buffer, name, location, access, number, numbers (one or more, the last parameter)."""

    name: str
    kind: str
    optional: bool = False


class Transformation:
    """Base of all transformations. A subclass documents arguments, before and after, and its numbered
    conditions; the numbers recur in its ``plan``."""

    name: ClassVar[str]
    family: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]

    def candidates(self, context: Context) -> Iterator[tuple[Argument, ...]]:
        """Every place and parameter that is well formed, numbers from a documented finite grid."""
        raise NotImplementedError

    def plan(self, context: Context, arguments: tuple[Argument, ...]) -> Program | Refusal:
        """The program after the move, or the refusal of a condition of this transformation's own."""
        raise NotImplementedError

    def places(self, context: Context, arguments: tuple[Argument, ...]) -> tuple[Path, ...]:
        """Every node that the move names or implies (a sibling to join, the child to interchange)."""
        return tuple(
            resolve(context.program, a) for a in arguments if isinstance(a, Place)
        )

    def inverse(self, context: Context, arguments: tuple[Argument, ...], result: Program) -> Move | None:
        """The move that takes ``result`` back, where the table of moves has one."""
        return None

    def enablers(
        self, context: Context, arguments: tuple[Argument, ...], refusal: Refusal
    ) -> Iterator[Move]:
        """Moves that may make this one legal, nearest first; only legal ones are told."""
        return iter(())


REGISTRY: dict[str, Transformation] = {}


def register(transformation: type[Transformation]) -> type[Transformation]:
    """Class decorator: adds a transformation to the set of moves."""
    REGISTRY[transformation.name] = transformation()
    return transformation


def structural(code: str, sentence: str, *nodes: Path) -> Refusal:
    return Refusal(code, sentence, nodes, structural=True)


# ---------------------------------------------------------------------------- places


class NoSuchPlace(LookupError):
    """A move names something that the program does not have; the message is a sentence."""


@lru_cache(maxsize=4096)
def _writers(program: Program) -> dict[str, list[Leaf]]:
    found: dict[str, list[Leaf]] = {}
    for leaf in program.leaves:
        found.setdefault(leaf.op.target.array, []).append(leaf)
    return found


def writers(program: Program) -> dict[str, list[Leaf]]:
    """The operations that write each array, in tree order."""
    kept = program.__dict__.get("_writers")
    if kept is None:
        kept = {}
        for leaf in program.leaves:
            kept.setdefault(leaf.op.target.array, []).append(leaf)
        program.__dict__["_writers"] = kept
    return kept  # type: ignore[no-any-return]


def leaf_at(program: Program, place: Place) -> Leaf:
    """The operation that a place names. Raises NoSuchPlace."""
    found = writers(program).get(place.array, [])
    if not found:
        raise NoSuchPlace(f"No operation writes {place.array}.")
    if place.number >= len(found):
        count = "one operation writes" if len(found) == 1 else f"{len(found)} operations write"
        raise NoSuchPlace(f"Only {count} {place.array}: {place.array}#{place.number} does not exist.")
    return found[place.number]


def resolve(program: Program, place: Place) -> Path:
    """The path of the node that a place names. Raises NoSuchPlace."""
    leaf = leaf_at(program, place)
    if place.depth is None:
        return leaf.path
    if place.depth >= len(leaf.scopes):
        raise NoSuchPlace(
            f"{Place(place.array, place.number)} stands in {len(leaf.scopes)} scopes: "
            f"there is none at depth {place.depth}."
        )
    return leaf.path[: place.depth + 1]


def place_of(program: Program, path: Path) -> Place:
    """The canonical name of a node: by the first operation in it."""
    names: dict[Path, Place] | None = program.__dict__.get("_places")
    if names is None:
        names = {}
        for array, found in writers(program).items():
            for number, leaf in enumerate(found):
                names[leaf.path] = Place(array, number)
        for leaf in program.leaves:
            own = names[leaf.path]
            for depth in range(len(leaf.scopes)):
                names.setdefault(leaf.path[: depth + 1], Place(own.array, own.number, depth))
        program.__dict__["_places"] = names
    return names[path]


def scope_at(program: Program, place: Argument) -> tuple[Path, Scope, tuple[Scope, ...]]:
    """(path, scope, scopes above) of a place that names a scope."""
    assert isinstance(place, Place)
    leaf = leaf_at(program, place)
    path = resolve(program, place)
    assert place.depth is not None
    return path, leaf.scopes[place.depth], leaf.scopes[: place.depth]


def scopes(program: Program) -> Iterator[tuple[Path, Scope, tuple[Scope, ...]]]:
    """Every scope in tree order with its path and the scopes above."""
    for node, path, above in walk(program.body):
        if isinstance(node, Scope):
            yield path, node, above


def leaves_under(program: Program, path: Path) -> list[Leaf]:
    """The operations at or below a path."""
    depth = len(path)
    return [leaf for leaf in program.leaves if leaf.path[:depth] == path]


def fresh_name(program: Program, wish: str) -> str:
    """``wish``, or with the first number that makes it new in the program."""
    taken = set(program.buffer_of) | {b.name for b in program.buffers}
    if wish not in taken:
        return wish
    number = 1
    while f"{wish}{number}" in taken:
        number += 1
    return f"{wish}{number}"


def name_fault(program: Program, name: Argument) -> Refusal | None:
    """A new array's name must be an identifier that the program does not use."""
    if name in program.buffer_of or any(b.name == name for b in program.buffers):
        return structural("name-taken", f"There is an array or buffer {name} already: choose another name.")
    return None


# ---------------------------------------------------------------------------- text of moves

_PLACE = re.compile(r"([A-Za-z_]\w{0,63})(?:#(\d{1,4}))?(?:@(\d{1,2}))?\Z", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w{0,63}\Z", re.ASCII)
_KIND_WORDS = {
    "scope": "a scope such as t@0", "op": "an operation such as t or t#1", "reduction": "an operation and a scope above it, such as s#1@2",
    "node": "a scope or an operation, such as t@1 or t", "buffer": "a buffer's name", "name": "a new name",
    "location": "a location such as stack", "access": "an access such as x[{0}+1,{1}]", "number": "a whole number", "numbers": "whole numbers",
}  # fmt: skip


class MoveSyntax(ValueError):
    """A text that is no move; the message says what would be."""


def parse_move(text: str) -> Move:
    """Read a move's text form. Raises MoveSyntax with a sentence."""
    if len(text) > 500:
        raise MoveSyntax("A move is one short line.")
    words = text.split()
    if not words:
        raise MoveSyntax("An empty line is no move.")
    name = words[0]
    transformation = REGISTRY.get(name)
    if transformation is None:
        near = _nearest(name)
        raise MoveSyntax(f"There is no move {name!r}.{f' Did you mean {near}?' if near else ''} The moves are: {', '.join(REGISTRY)}.")
    arguments: list[Argument] = []
    rest = words[1:]
    for parameter in transformation.parameters:
        if parameter.kind == "numbers":
            if not rest or not rest[0].isdigit():
                raise MoveSyntax(usage(transformation))
            while rest and rest[0].isdigit():
                arguments.append(_number(rest.pop(0), transformation))
            continue
        if not rest:
            if parameter.optional:
                continue
            raise MoveSyntax(usage(transformation))
        word = rest.pop(0)
        if parameter.kind == "number":
            arguments.append(_number(word, transformation))
        elif parameter.kind in ("scope", "op", "reduction", "node"):
            arguments.append(_place(word, parameter.kind, transformation))
        elif parameter.kind == "access":
            arguments.append("".join([word, *rest]))
            rest = []
        else:
            if not _NAME.match(word):
                raise MoveSyntax(usage(transformation))
            arguments.append(word)
    if rest:
        raise MoveSyntax(f"{usage(transformation)} {rest[0]!r} is too much.")
    return Move(name, tuple(arguments))


def _nearest(name: str) -> str | None:
    from difflib import get_close_matches

    found = get_close_matches(name, REGISTRY, 1)
    return found[0] if found else None


def usage(transformation: Transformation) -> str:
    """One sentence on how the move is written."""
    shown = " ".join(f"[{p.name}]" if p.optional else p.name.upper() for p in transformation.parameters)
    words = "; ".join(f"{p.name.upper()} is {_KIND_WORDS[p.kind]}" for p in transformation.parameters)
    return f"The move is written: {transformation.name} {shown} ({words})."


def _number(word: str, transformation: Transformation) -> int:
    if not word.isdigit() or len(word) > 12:
        raise MoveSyntax(usage(transformation))
    return int(word)


def _place(word: str, kind: str, transformation: Transformation) -> Place:
    match = _PLACE.match(word)
    wrong = match is None or (kind in ("scope", "reduction") and not match.group(3)) or (kind == "op" and match.group(3))
    if match is None or wrong:
        raise MoveSyntax(usage(transformation))
    array, number, depth = match.groups()
    return Place(array, int(number or 0), int(depth) if depth is not None else None)


# ---------------------------------------------------------------------------- the door


def outcome(context: Context, move: Move) -> Program | Refusal:
    """The program after a legal move, or the refusal. The one place where legality is decided."""
    transformation = REGISTRY.get(move.name)
    if transformation is None:
        return structural("unknown-move", f"There is no move {move.name!r}.")
    try:
        planned = transformation.plan(context, move.arguments)
    except NoSuchPlace as missing:
        return structural("no-such-place", str(missing))
    if isinstance(planned, Refusal):
        return planned
    fault = storage_fault(planned) or mark_fault(planned, context.target, context.policy)
    if fault is not None:
        return _refused(fault, context.program, planned)
    if _too_large(planned):
        return structural("too-large", f"The program would grow beyond {KERNEL_LIMITS['nodes']} nodes.")
    return planned


def _refused(fault: Fault, before: Program, after: Program) -> Refusal:
    """A fault of the result, told in the program before the move: nodes are found by their birth."""
    at = {node.birth: path for node, path, _ in walk(before.body)}
    births = {path: node.birth for node, path, _ in walk(after.body)}
    nodes = tuple(at[births[p]] for p in fault.nodes if p in births and births[p] in at)
    semantic = fault.code in ("race", "clobber", "lifetime", "undefined", "unwritten", "vector-flow", "vector-regroup")
    return Refusal(fault.code, fault.sentence, nodes, fault.witness, (), not semantic, fault)


def _too_large(program: Program) -> bool:
    count = 0
    for node, path, _ in walk(program.body):
        count += 1
        if len(path) > KERNEL_LIMITS["depth"] + 1:
            return True
        del node
    return count > KERNEL_LIMITS["nodes"] or len(program.buffers) > KERNEL_LIMITS["buffers"]


def context(
    program: Program, target: str | Target = "cpu", policy: str = "reassoc", born: int | None = None
) -> Context:
    """What legality is asked in. ``born`` numbers the move for births; default: the next of the program."""
    if policy not in POLICIES:
        raise ValueError(f"There is no policy {policy!r}. The policies are: {', '.join(POLICIES)}.")
    found = target if isinstance(target, Target) else target_named(target)
    return Context(program, found, policy, program.age + 1 if born is None else born)


def all_candidates(context: Context) -> Iterator[Move]:
    """Every well-formed move at this position, family by family."""
    for transformation in REGISTRY.values():
        if context.target.moves is not None and transformation.name not in context.target.moves:
            continue
        for arguments in transformation.candidates(context):
            yield Move(transformation.name, arguments)


def legal_moves(program: Program, target: str | Target = "cpu", policy: str = "reassoc") -> tuple[Move, ...]:
    """All legal moves of a position, numbers from the documented grids."""
    here = context(program, target, policy)
    return tuple(m for m in all_candidates(here) if not isinstance(outcome(here, m), Refusal))


def blocked_moves(
    program: Program, target: str | Target = "cpu", policy: str = "reassoc"
) -> tuple[tuple[Move, Refusal], ...]:
    """Well-formed moves that are refused, each with its reason (``why`` adds the enabling moves)."""
    here = context(program, target, policy)
    found = []
    for move in all_candidates(here):
        result = outcome(here, move)
        if isinstance(result, Refusal):
            found.append((move, result))
    return tuple(found)


def as_move(move: Move | str) -> Move:
    return parse_move(move) if isinstance(move, str) else move


def apply(
    program: Program,
    move: Move | str,
    target: str | Target = "cpu",
    policy: str = "reassoc",
    born: int | None = None,
) -> Program:
    """The program after a move (a Move or its text).

    Raises IllegalMove with the refusal where the move is not legal, MoveSyntax where a text is no move.
    """
    here = context(program, target, policy, born)
    played = as_move(move)
    result = outcome(here, played)
    if isinstance(result, Refusal):
        raise IllegalMove(str(played), with_enablers(here, played, result))
    return Program(
        result.name, result.inputs, result.outputs, result.buffers, result.body, max(program.age + 1, here.born)
    )


def why(
    program: Program, move: Move | str, target: str | Target = "cpu", policy: str = "reassoc"
) -> Verdict:
    """Why a move is legal or not, with the places, a witness and the moves that would enable it."""
    here = context(program, target, policy)
    played = as_move(move)
    result = outcome(here, played)
    if isinstance(result, Refusal):
        refusal = with_enablers(here, played, result)
        return Verdict(False, f"{played} is not legal. {refusal}", refusal)
    return Verdict(True, f"{played} is legal: every value is still read where and when it was written for.")


def with_enablers(context: Context, move: Move, refusal: Refusal) -> Refusal:
    """The refusal with the moves that are legal now and would help."""
    transformation = REGISTRY.get(move.name)
    if transformation is None:
        return refusal
    told: list[str] = []
    try:
        for candidate in transformation.enablers(context, move.arguments, refusal):
            if str(candidate) not in told and not isinstance(outcome(context, candidate), Refusal):
                told.append(str(candidate))
            if len(told) == 3:
                break
    except NoSuchPlace:
        pass
    return Refusal(
        refusal.code, refusal.sentence, refusal.nodes, refusal.witness, tuple(told), refusal.structural, refusal.fault
    )


def places(program: Program, move: Move | str) -> tuple[Path, ...]:
    """Every node that a move names or implies. Raises NoSuchPlace."""
    played = as_move(move)
    here = context(program)
    return REGISTRY[played.name].places(here, played.arguments)


def inverse(
    program: Program, move: Move | str, target: str | Target = "cpu", policy: str = "reassoc"
) -> Move | None:
    """The move that undoes a legal move, legal at once on its result; None where there is none."""
    here = context(program, target, policy)
    played = as_move(move)
    result = outcome(here, played)
    if isinstance(result, Refusal):
        raise IllegalMove(str(played), result)
    return REGISTRY[played.name].inverse(here, played.arguments, result)


Check = Callable[[Context, Sequence[Argument]], Refusal | None]

__all__ = ["Context", "IllegalMove", "Move", "MoveSyntax", "Op", "Place", "Refusal", "Transformation", "Verdict"]
