"""What a move names, remembered by provenance, so that replaying it elsewhere never moves it silently.

Names drift: a split moves depths, a new write renumbers operations. So a stored line keeps, beside each
move's text, the provenance of every node, buffer and dimension that the move names or implies. Replay
compares them, follows a node that has only another name now, and reports what is no longer there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dojo_core.moves.core import REGISTRY, Argument, Context, Move
from dojo_core.moves.places import NoSuchPlace, Place, leaf_at, place_of, resolve
from dojo_core.moves.storage import buffer_named
from dojo_core.program.affine import Affine
from dojo_core.program.expressions import TextError, parse_access
from dojo_core.program.tree import Buffer, Leaf, Path, Program, Provenance, walk

_DIMS = ("dim", "dims")


def references(context: Context, move: Move, implied: bool = True) -> tuple[Provenance, ...]:
    """Provenance of all that a move names and implies, in a fixed order. Raises NoSuchPlace. A move that is
    refused may lack what it implies: ``implied`` False leaves that out."""
    program = context.program
    provenances: list[Provenance] = []
    leaf: Leaf | None = None
    for kind, name, argument in _arguments(move):
        if isinstance(argument, Place):
            leaf = leaf_at(program, argument)
            if kind == "reduction":
                provenances.append(leaf.op.provenance)
            provenances.append(program.node(resolve(program, argument)).provenance)
        elif kind == "buffer":
            provenances.append(_home(program, str(argument), name).provenance)
        elif name in _DIMS and isinstance(argument, int):
            dims = buffer_named(program, str(move.arguments[0])).dims
            if argument >= len(dims):
                raise NoSuchPlace(f"{move.arguments[0]} has {len(dims)} dimensions, counted from 0.")
            provenances.append(dims[argument].provenance)
        elif kind == "access" and leaf is not None:
            provenances.extend(leaf.scopes[d].provenance for d in _depths(program, leaf, argument))
    for path in REGISTRY[move.name].places(context, move.arguments) if implied else ():
        node = program.find(path)
        if node is None:
            raise NoSuchPlace("A node that the move needs beside the named one is not there.")
        if node.provenance not in provenances:
            provenances.append(node.provenance)
    return tuple(provenances)


def _home(program: Program, name: str, role: str) -> Buffer:
    if role == "array" and name in program.buffer_of:
        return program.buffer_of[name]
    return buffer_named(program, name)


def _arguments(move: Move) -> Iterator[tuple[str, str, Argument]]:
    parameters = REGISTRY[move.name].parameters
    position = 0
    for argument in move.arguments:
        parameter = parameters[position]
        if parameter.kind == "numbers" and not isinstance(argument, int):
            position += 1
            parameter = parameters[position]
        yield parameter.kind, parameter.name, argument
        if parameter.kind != "numbers":
            position += 1


def _depths(program: Program, leaf: Leaf, text: Argument) -> list[int]:
    try:
        access = parse_access(program, leaf, str(text))
    except TextError as error:
        raise NoSuchPlace(f"{text}: {error.message}.") from error
    return sorted({d for form in access.index for d in form.depths})


def readdress(context: Context, move: Move, remembered: Sequence[Provenance], before: Program) -> Move | None:
    """The same move under the names that its nodes have in ``context.program``; None where one is gone.

    ``before`` is the program on which the move was played: its text refers to that.
    """
    program = context.program
    paths = {node.provenance: path for node, path, _ in walk(program.body)}
    rest = iter(remembered)
    changed: list[Argument] = []
    leaf: Leaf | None = None
    buffer = None
    for kind, name, argument in _arguments(move):
        if isinstance(argument, Place):
            leaf = leaf_at(before, argument)
            place = _followed(program, paths, kind, rest)
            if place is None:
                return None
            changed.append(place)
        elif kind == "buffer":
            provenance = next(rest)
            buffer = next((b for b in program.buffers if b.provenance == provenance), None)
            if buffer is None:
                return None
            changed.append(argument if name == "array" else buffer.name)
        elif name in _DIMS and isinstance(argument, int):
            provenance = next(rest)
            at = [k for k, d in enumerate(buffer.dims) if d.provenance == provenance] if buffer else []
            if not at:
                return None
            changed.append(at[0])
        elif kind == "access" and leaf is not None:
            access = parse_access(before, leaf, str(argument))
            depths = sorted({d for form in access.index for d in form.depths})
            images: dict[int, Affine] = {}
            for depth in depths:
                path = paths.get(next(rest))
                if path is None:
                    return None
                images[depth] = Affine.iterator(len(path) - 1)
            changed.append(str(access.substitute(images)))
        else:
            changed.append(argument)
    return Move(move.name, tuple(changed))


def _followed(
    program: Program, paths: dict[Provenance, Path], kind: str, rest: Iterator[Provenance]
) -> Place | None:
    path = paths.get(next(rest))
    if kind != "reduction":
        return None if path is None else place_of(program, path)
    scope = paths.get(next(rest))
    if path is None or scope is None or path[: len(scope)] != scope:
        return None
    place = place_of(program, path)
    return Place(place.array, place.number, len(scope) - 1)
