"""What a move is: a value with a text form, checked against the program, refused with reasons.

A transformation (one class, in the file of its family) says where it can be played, what it makes of
the program, and which conditions of its own it has. ``legality.py`` asks it, and checks what all have in
common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from dojo_core.drawn import Drawn
from dojo_core.moves.places import Place, resolve
from dojo_core.plugins import Extended
from dojo_core.program.codes import Code
from dojo_core.program.dependence import Witness
from dojo_core.program.expressions import RESERVED
from dojo_core.program.target import Target
from dojo_core.program.tree import Path, Program, Provenance, derived
from dojo_core.program.validity import Fault

Argument = Place | int | str
Arguments = TypeVar("Arguments", bound=tuple[Argument, ...])


@dataclass(frozen=True, slots=True)
class Move(Drawn):
    """A transformation at a location with its parameters; ``str(move)`` is its text form."""

    name: str
    arguments: tuple[Argument, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.name, *map(str, self.arguments)])


@dataclass(frozen=True)
class Way:
    """Moves after which a refused move is legal, and what that is called then; those to play in its place
    have no ``then``."""

    moves: tuple[str, ...]
    then: str
    renamed: bool = False

    def __str__(self) -> str:
        return ", then ".join([*self.moves, self.then] if self.renamed else self.moves)


@dataclass(frozen=True)
class Refusal(Drawn):
    """Why a move is not legal: a code, a sentence, the nodes involved, a witness where there is one,
    and ways to make it legal, which were tried out, or else what would have to be different (``needs``).
    ``structural`` refusals concern form (sizes, marks, names), the others meaning."""

    code: str
    sentence: str
    nodes: tuple[Path, ...] = ()
    witness: Witness | None = None
    ways: tuple[Way, ...] = ()
    structural: bool = False
    fault: Fault | None = field(default=None, compare=False, repr=False)
    needs: str = ""

    def __str__(self) -> str:
        first = "; or ".join(str(way) for way in self.ways if way.then)
        instead = "; or ".join(str(way) for way in self.ways if not way.then)
        advice = [f"Try first: {first}."] * bool(first) + [f"Try instead: {instead}."] * bool(instead)
        return " ".join([self.sentence, *advice, *[self.needs] * bool(self.needs)])

    @property
    def enablers(self) -> tuple[str, ...]:
        """The first move of each way."""
        return tuple(way.moves[0] for way in self.ways)


class IllegalMove(ValueError, Drawn):
    """Raised by ``apply``; ``refusal`` says why as data, ``str()`` as a sentence."""

    def __init__(self, move: str, refusal: Refusal) -> None:
        super().__init__(f"{move}: {refusal}")
        self.move, self.refusal = move, refusal

    def _render_traceback_(self) -> list[str]:
        """What IPython shows where it is not caught: the reason, for the fault lies in no file."""
        return [f"IllegalMove: {self}"]


@dataclass(frozen=True)
class Verdict(Drawn):
    """The answer of ``why``: ``legal``, and the sentence and refusal that go with it."""

    legal: bool
    sentence: str
    refusal: Refusal | None = None

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, slots=True)
class Edit:
    """A legal rearrangement that is not made yet: ``make`` gives the program after it.

    Every array keeps a buffer. It brings no mark, and no storage but
    on the heap, unshared and materialised, or a copy of its own that fits the target and is written before
    each read of it in the same iteration; it at most trebles the operations and doubles the buffers, and
    adds few levels. So where the root's children that it concerns,
    ``roots``, have nothing else either (``difference.plain``), V2 and V3 would find no fault, and whoever
    only asks which moves are legal is spared the edit. ``roots`` None: V2 and V3 never look at what it
    changes.
    """

    make: Callable[[], Program]
    roots: Iterable[int] | None


@dataclass(frozen=True)
class Context:
    """A program with what its legality depends on beside it: target and floating-point policy."""

    program: Program
    target: Target
    policy: str
    born: int  # provenances of the nodes that a move makes carry this number
    # Inputs that are the same in every run: what is copied of them alone is copied once. Passes go by it, no
    # move does.
    constants: frozenset[str] = frozenset()

    @derived
    def widths(self) -> frozenset[int]:
        """The target's vector widths for the dtypes that the program has."""
        dtypes = {b.dtype for b in self.program.buffers}
        return frozenset(w for d in dtypes for w in self.target.vector_widths.get(d, ()))

    def provenance(self, ordinal: int) -> Provenance:
        return Provenance(self.born, ordinal)


# What an argument is, by its parameter's kind: ``notation.read_arguments`` makes it so.
KINDS: dict[str, Any] = {
    "scope": Place,
    "op": Place,
    "reduction": Place,  # an operation and a scope above it
    "node": Place,  # a scope or an operation
    "region": Place | str,  # a scope, or ``root``
    "number": int,
    "numbers": int,  # one or more, before none but a parameter that may be left out
    **dict.fromkeys(
        ("buffer", "name", "location", "access", "mode", "instruction", "algorithm", "word"), str
    ),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a transformation, and of what kind it is (``KINDS``)."""

    name: str
    kind: str
    optional: bool = False


class Transformation(Generic[Arguments]):
    """Base of all transformations. A subclass documents arguments, before and after, and its numbered
    conditions; the numbers recur in its ``plan``.

    ``Transformation[tuple[Place, int]]`` takes a place and a number, as its ``parameters`` say (``KINDS``).
    """

    name: ClassVar[str]
    also: ClassVar[tuple[str, ...]] = ()  # what others call it: read in its place, never written
    family: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]
    policy: ClassVar[str] = "algebraic"  # one under which it may be played
    rewrites: ClassVar[str] = ""  # of an algebraic move: the function that stands in what it rewrites
    worst_inputs: ClassVar[tuple[str, ...]] = ()  # of an algebraic move: names in measure/patterns.py

    def candidates(self, context: Context) -> Iterator[Arguments]:
        """Every place and parameter that is well formed, numbers from a documented finite grid."""
        raise NotImplementedError

    def plan(self, context: Context, arguments: Arguments) -> Program | Edit | Refusal:
        """The program after the move or the edit that leads there, or the refusal of a condition of this
        transformation's own."""
        raise NotImplementedError

    def places(self, context: Context, arguments: Arguments) -> tuple[Path, ...]:
        """Every node that the move names or implies (a sibling to join, the child to interchange)."""
        return tuple(resolve(context.program, a) for a in arguments if isinstance(a, Place))

    def inverse(self, context: Context, arguments: Arguments, result: Program) -> Move | None:
        """The move that takes ``result`` back, where the table of moves has one."""
        return None

    def enablers(self, context: Context, arguments: Arguments, refusal: Refusal) -> Iterator[Move]:
        """Moves that may make this one legal, legal now or not, nearest first; only what was seen to help is
        told."""
        return iter(())

    def alternatives(self, context: Context, arguments: Arguments, refusal: Refusal) -> Iterator[Move]:
        """Moves to play in place of this one, that come to what was meant; told as ``enablers`` are."""
        return iter(())

    def needs(self, context: Context, arguments: Arguments, refusal: Refusal) -> str:
        """What would have to be different, where no move can make this one legal (``moves/needs.py``)."""
        return ""


REGISTRY: Extended[Transformation[Any]] = Extended({})  # by moves/packages.py


def register(transformation: type[Transformation[Any]]) -> type[Transformation[Any]]:
    """Class decorator: adds a transformation to the set of moves."""
    REGISTRY[transformation.name] = transformation()
    return transformation


def structural(code: str, sentence: str, *nodes: Path) -> Refusal:
    return Refusal(code, sentence, nodes, structural=True)


def name_fault(program: Program, name: str) -> Refusal | None:
    """A new array's name must be an identifier that neither the program nor the text form uses."""
    if name in RESERVED:
        return structural(Code.NAME_TAKEN, f"The word {name} means something else: choose another name.")
    if name in program.buffer_of or any(b.name == name for b in program.buffers):
        return structural(
            Code.NAME_TAKEN, f"There is an array or buffer {name} already: choose another name."
        )
    if name in program.tables:
        return structural(Code.NAME_TAKEN, f"There is a table {name} already: choose another name.")
    return None
