"""Goals: sentences about a position that the app checks, one a line.

``m and d are fused``, ``t is on the stack``, ``not t takes at most 4 bytes``, ``1.5 times faster``,
``still y is on the heap`` (it was so, and stays so). Each form
is a pattern of words with places; there is no other syntax, and nothing in a goal is run. The forms, with
what they mean, are listed in docs/lessons.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from dojo_core.measure.speed import Speed
from dojo_core.moves import MoveSyntax, why
from dojo_core.moves.notation import parse_move
from dojo_core.moves.places import NoSuchPlace, Place, leaf_at
from dojo_core.program.expressions import TextError
from dojo_core.program.marks import lane_stride
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.tree import Access, Leaf, Program
from dojo_core.wording import counted

TOLERANCE = (
    0.1  # a speed-up counts as reached from a tenth below it on: machines differ, and times have noise
)


@dataclass(frozen=True)
class Situation:
    """What a goal is asked about: a position, where the step began, and what happened between.

    ``tried`` are the moves that the player asked for and that were refused; ``speed_up`` is the start's time
    over this position's, None while one of them is not measured; ``gain`` what the first move gained by
    itself, None where that is not known.
    """

    program: Program
    start: Program
    moves: int = 0
    target: str = DEFAULT_TARGET
    policy: str = "reassoc"
    tried: frozenset[str] = frozenset()
    speed_up: float | None = None
    gain: Speed | None = None


@dataclass(frozen=True)
class Seen:
    """Is a goal reached (None: not known before something is measured), and what stands there now."""

    reached: bool | None
    now: str = ""


@dataclass(frozen=True)
class Goal:
    """One line of a step's goals. ``text`` is the line itself, which people read."""

    text: str
    form: Form
    arguments: tuple[str, ...]
    negated: bool = False
    kept: bool = False  # holds from the start on, and is to hold still

    @property
    def measured(self) -> bool:
        """Does it need times?"""
        return self.form.measured

    def look(self, at: Situation) -> Seen:
        """Ask it of a position. A place that is not there (any more) is no fault: the goal is not reached."""
        try:
            seen = self.form.ask(at, *self.arguments)
        except NoSuchPlace as missing:
            return Seen(False, str(missing))
        if self.negated and seen.reached is not None:
            return Seen(not seen.reached, seen.now)
        return seen


@dataclass(frozen=True)
class Form:
    """A kind of goal: how it is written, what it means, and how it is asked."""

    words: str
    about: str
    pattern: re.Pattern[str]
    ask: Callable[..., Seen]
    measured: bool = False


FORMS: list[Form] = []
FIRST_MOVE = "the first move gains X times"  # of a puzzle of one move

_NAME = r"[A-Za-z_]\w*"
_OPERATION = rf"({_NAME}(?:#\d{{1,3}})?|the\s+reader\s+of\s+{_NAME})"
_PLACES = {
    "OP": _OPERATION,
    "OTHER": _OPERATION,
    "SIZES": r"(\d[\d: a-z]*)",
    "ARRAY": rf"({_NAME})",
    "LOCATION": r"(heap|stack|register)",
    "MARK": r"(:[a-z]\w*)",
    "N": r"(\d{1,12})",
    "X": r"(\d{1,4}(?:\.\d{1,3})?)",
    "MOVE": r"(.+)",
    "FUNCTION": r"([a-z]\w*|[-+*/])",
}


def form(
    words: str, about: str, measured: bool = False
) -> Callable[[Callable[..., Seen]], Callable[..., Seen]]:
    """Registers a goal by its words; capitals are places for names, numbers and moves."""

    def registered(ask: Callable[..., Seen]) -> Callable[..., Seen]:
        parts = [_PLACES.get(word, re.escape(word)) for word in words.split(" ")]
        FORMS.append(Form(words, about, re.compile(r"\s+".join(parts) + r"\Z", re.ASCII), ask, measured))
        return ask

    return registered


def read_goal(line: str, number: int = 1) -> Goal:
    """A goal from its line. Raises TextError with what can stand there."""
    text = " ".join(line.split())
    still = text.startswith("still ")
    words = text.removeprefix("still ")
    negated = words.startswith("not ")
    words = words.removeprefix("not ")
    for each in FORMS:
        match = each.pattern.match(words)
        if match is not None:
            arguments = match.groups()
            if "MOVE" in each.words.split():
                try:
                    parse_move(arguments[0])
                except MoveSyntax as fault:
                    raise TextError(str(fault), "Correct the move.", number, 1, line) from fault
            return Goal(text, each, arguments, negated, still)
    near = get_close_matches(words, [each.words for each in FORMS], 3, 0.3) or [FORMS[0].words]
    remedy = f"Did you mean: {'; '.join(near)}? All goals: dojo lesson goals."
    raise TextError(f"this is no goal: {text[:80]!r}", remedy, number, 1, line)


# ---------------------------------------------------------------------------- the tree


def _leaf(program: Program, name: str) -> Leaf:
    """The operation of a name: ``t#1`` as moves write it, or ``the reader of x``, the first that reads x."""
    if name.startswith("the "):
        array = name.split()[-1]
        for leaf in program.leaves:
            if any(access.array == array for access in leaf.op.reads):
                return leaf
        raise NoSuchPlace(f"No operation reads {array}.")
    array, _, number = name.partition("#")
    return leaf_at(program, Place(array, int(number or 0)))


def _common(a: Leaf, b: Leaf) -> int:
    """How many scopes two operations share."""
    depth = 0
    for x, y in zip(a.path[:-1], b.path[:-1], strict=False):
        if x != y:
            break
        depth += 1
    return depth


@form("OP and OTHER are fused", "two operations stand in one scope (at least the outermost)")
def _fused(at: Situation, op: str, other: str) -> Seen:
    shared = _common(_leaf(at.program, op), _leaf(at.program, other))
    return Seen(shared > 0, f"{op} and {other} share {counted(shared, 'scope')}")


@form("OP and OTHER share N scopes", "two operations stand together in at least N scopes")
def _share(at: Situation, op: str, other: str, count: str) -> Seen:
    shared = _common(_leaf(at.program, op), _leaf(at.program, other))
    return Seen(shared >= int(count), f"{op} and {other} share {counted(shared, 'scope')}")


@form("OP stands in N scopes", "exactly N scopes are around an operation")
def _depth(at: Situation, op: str, count: str) -> Seen:
    scopes = _leaf(at.program, op).scopes
    return Seen(len(scopes) == int(count), f"{op} stands in {counted(len(scopes), 'scope')}")


@form("the innermost scope of OP has size N", "the scope directly around an operation has N iterations")
def _inner_size(at: Situation, op: str, size: str) -> Seen:
    scopes = _leaf(at.program, op).scopes
    if not scopes:
        return Seen(False, f"{op} stands in no scope")
    return Seen(scopes[-1].size == int(size), f"its size is {scopes[-1].size}")


@form("the outermost scope of OP has size N", "the first scope around an operation has N iterations")
def _outer_size(at: Situation, op: str, size: str) -> Seen:
    scopes = _leaf(at.program, op).scopes
    if not scopes:
        return Seen(False, f"{op} stands in no scope")
    return Seen(scopes[0].size == int(size), f"its size is {scopes[0].size}")


@form("the scopes of OP are SIZES", "sizes and marks around an operation, outermost first: 32 8:v")
def _sizes(at: Situation, op: str, sizes: str) -> Seen:
    actual = " ".join(f"{s.size}{':' + s.mark if s.mark else ''}" for s in _leaf(at.program, op).scopes)
    return Seen(actual == " ".join(sizes.split()), f"they are {actual or 'none'}")


@form("the outermost scope of OP is MARK", "the first scope around an operation has a mark, such as :p")
def _outer_mark(at: Situation, op: str, mark: str) -> Seen:
    scopes = _leaf(at.program, op).scopes
    actual = scopes[0].mark if scopes else ""
    return Seen(actual == mark[1:], f"it is marked :{actual}" if actual else "it has no mark")


@form("the innermost scope of OP is MARK", "the scope directly around an operation has a mark, such as :v")
def _inner_mark(at: Situation, op: str, mark: str) -> Seen:
    scopes = _leaf(at.program, op).scopes
    actual = scopes[-1].mark if scopes else ""
    return Seen(actual == mark[1:], f"it is marked :{actual}" if actual else "it has no mark")


@form("a scope of OP is MARK", "one of the scopes around an operation has a mark, such as :p")
def _any_mark(at: Situation, op: str, mark: str) -> Seen:
    scopes = _leaf(at.program, op).scopes
    marks = [f"{s.size}:{s.mark}" for s in scopes if s.mark]
    return Seen(any(s.mark == mark[1:] for s in scopes), f"its marks: {' '.join(marks) or 'none'}")


@form("every innermost scope is MARK", "the scope directly around each operation has a mark")
def _every_mark(at: Situation, mark: str) -> Seen:
    leaves = at.program.leaves
    fine = sum(bool(leaf.scopes) and leaf.scopes[-1].mark == mark[1:] for leaf in leaves)
    return Seen(fine == len(leaves), f"{fine} of {len(leaves)}")


@form("at most N operations", "the program has at most N lines of work")
def _operations(at: Situation, most: str) -> Seen:
    count = len(at.program.leaves)
    return Seen(count <= int(most), f"there are {count}")


# ---------------------------------------------------------------------------- what it does to memory


def _buffer(program: Program, array: str) -> str | None:
    buffer = program.buffer_of.get(array)
    return None if buffer is None else buffer.location


@form("ARRAY is on the LOCATION", "where a buffer lives: heap, stack or register")
def _location(at: Situation, array: str, location: str) -> Seen:
    actual = _buffer(at.program, array)
    return Seen(
        actual == location, f"{array} is no more" if actual is None else f"{array} is on the {actual}"
    )


@form("ARRAY is gone", "no buffer holds that array any more")
def _gone(at: Situation, array: str) -> Seen:
    present = array in at.program.buffer_of
    return Seen(not present, f"{array} is still there" if present else "")


@form("ARRAY takes at most N bytes", "the memory that a buffer occupies; dimensions marked :N take none")
def _bytes(at: Situation, array: str, most: str) -> Seen:
    buffer = at.program.buffer_of.get(array)
    if buffer is None:
        return Seen(False, f"{array} is no more")
    return Seen(buffer.bytes <= int(most), f"{array} takes {counted(buffer.bytes, 'byte')}")


@form("temporaries take at most N bytes", "the memory of all buffers that are no inputs or outputs, together")
def _temporaries(at: Situation, most: str) -> Seen:
    program = at.program
    inner = [b for b in program.buffers if not program.interface.intersection(b.arrays)]
    size = sum(b.bytes for b in inner)
    return Seen(size <= int(most), f"now {counted(size, 'byte')}")


def _runs(leaf: Leaf) -> int:
    return math.prod(scope.size for scope in leaf.scopes)


@form("ARRAY is read at most N times", "how often operations read elements of an array in one run")
def _reads(at: Situation, array: str, most: str) -> Seen:
    reads = 0
    for leaf in at.program.leaves:
        count = sum(access.array == array for access in leaf.op.reads)
        count += bool(leaf.op.accumulate) and leaf.op.target.array == array
        reads += count * _runs(leaf)
    return Seen(reads <= int(most), f"it is read {counted(reads, 'time')}")


@form("FUNCTION runs at most N times", "how often a function or sign, such as exp or /, is computed")
def _computed(at: Situation, function: str, most: str) -> Seen:
    runs = sum(
        _runs(leaf)
        for leaf in at.program.leaves
        if function in (leaf.op.function, leaf.op.accumulate or None)
    )
    return Seen(runs <= int(most), f"it runs {counted(runs, 'time')}")


@form("the innermost scope of OP walks ARRAY with stride N", "neighbouring iterations touch elements N apart")
def _stride(at: Situation, op: str, array: str, stride: str) -> Seen:
    leaf = _leaf(at.program, op)
    accesses = [a for a in (leaf.op.target, *leaf.op.reads) if isinstance(a, Access) and a.array == array]
    if not leaf.scopes or not accesses:
        return Seen(False, f"{op} does not touch {array} in a scope")
    strides = {lane_stride(a, at.program.buffer_of[array], len(leaf.scopes) - 1) for a in accesses}
    return Seen(strides == {int(stride)}, f"the stride is {', '.join(map(str, sorted(strides)))}")


@form(
    "OP walks ARRAY in order",
    "the loops go through the array cell by cell, without a jump",
)
def _in_order(at: Situation, op: str, array: str) -> Seen:
    leaf = _leaf(at.program, op)
    accesses = [a for a in (leaf.op.target, *leaf.op.reads) if isinstance(a, Access) and a.array == array]
    if not accesses:
        return Seen(False, f"{op} does not touch {array}")
    buffer = at.program.buffer_of[array]
    jumps = [[lane_stride(access, buffer, depth) for depth in range(len(leaf.scopes))] for access in accesses]
    step, expected = 1, []
    for scope in reversed(leaf.scopes):
        expected.append(step)
        step *= scope.size
    fine = all(strides == expected[::-1] for strides in jumps)
    steps = " ".join(map(str, jumps[0]))
    return Seen(fine, f"its loops move {steps} cells at a time")


@form("ARRAY has dimensions SIZES", "the sizes of a buffer's dimensions, in their order: 8 4 8")
def _dims(at: Situation, array: str, sizes: str) -> Seen:
    buffer = at.program.buffer_of.get(array)
    if buffer is None:
        return Seen(False, f"{array} is no more")
    actual = " ".join(str(dim.size) for dim in buffer.dims)
    return Seen(actual == " ".join(sizes.split()), f"they are {actual}")


# ---------------------------------------------------------------------------- play


@form("MOVE is legal", "a move could be played here")
def _legal(at: Situation, move: str) -> Seen:
    try:
        verdict = why(at.program, move, at.target, at.policy)
    except NoSuchPlace as missing:
        return Seen(False, str(missing))
    return Seen(verdict.legal, "" if verdict.legal else verdict.sentence)


@form("MOVE was tried", "the player asked for a move that is refused, and read why")
def _tried(at: Situation, move: str) -> Seen:
    return Seen(" ".join(move.split()) in at.tried)


@form("at most N moves", "a budget: the position is reached in so many moves")
def _budget(at: Situation, most: str) -> Seen:
    return Seen(at.moves <= int(most), f"{at.moves} so far")


@form("X times faster", "measured against the step's start, with a tolerance of a tenth", measured=True)
def _faster(at: Situation, factor: str) -> Seen:
    if at.speed_up is None:
        return Seen(None, "not measured yet")
    return Seen(at.speed_up >= float(factor) * (1 - TOLERANCE), f"now {at.speed_up:.2f} times")


@form(
    FIRST_MOVE,
    "the move played first makes the start so much faster by itself, as recorded, or by the target's model",
)
def _gains(at: Situation, factor: str) -> Seen:
    if not at.moves:
        return Seen(False)
    if at.gain is None:
        return Seen(False, "what this move gains is not recorded: it is none of those that are asked for")
    return Seen(at.gain.low >= float(factor), f"it gains {at.gain.value:.2f} times")
