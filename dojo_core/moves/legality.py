"""The one door: which moves are legal, what they make of a program, and why others are refused.

V2 and V3 (validity.py, marks.py) are checked here, on the result, for every transformation alike; V1 by
``dependence.conflict_between`` in those that reorder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from dojo_core.moves.anchors import anchors, readdress
from dojo_core.moves.core import (
    REGISTRY,
    Context,
    Edit,
    IllegalMove,
    Move,
    Refusal,
    Verdict,
    Way,
    structural,
)
from dojo_core.moves.notation import parse_move
from dojo_core.moves.places import NoSuchPlace, Place, place_of, resolve
from dojo_core.moves.reasons import met
from dojo_core.program.affine import Affine
from dojo_core.program.dependence import POLICIES, iterator_fault
from dojo_core.program.difference import Difference, plain
from dojo_core.program.dtypes import FLOATS, dtypes_of
from dojo_core.program.expressions import LINE
from dojo_core.program.functions import KERNEL_LIMITS
from dojo_core.program.marks import mark_fault
from dojo_core.program.printing import extent
from dojo_core.program.tree import DTYPE_BYTES, Op, Path, Program, Scope, summary, walk
from dojo_core.program.validity import Fault, keeps_storage, storage_fault
from dojo_core.targets.target import NO_TABLES, Target, UnknownTarget
from dojo_core.targets.target import target as target_named

ENABLERS_TRIED, WAYS_TOLD = 8, 3  # of a refused move


def outcome(context: Context, move: Move) -> Program | Refusal:
    """The program after a legal move, or the refusal. The one place where legality is decided, of moves on
    a valid program."""
    planned = _planned(context, move)
    if isinstance(planned, Edit):
        if planned.roots is None and not _long(context.program):
            return planned.make()
        planned = planned.make()
    if isinstance(planned, Refusal):
        return planned
    change = Difference(planned, context.program)
    fault = storage_fault(planned, change) or mark_fault(planned, context.target, context.policy, change)
    if fault is not None:
        return _refused(fault, context.program, planned)
    return _unreadable(change) or planned


def is_legal(context: Context, move: Move) -> bool:
    """Is there an outcome? The same answer, sparing programs that nobody asked for, and reasons."""
    planned = _planned(context, move)
    if isinstance(planned, Refusal):
        return False
    if isinstance(planned, Edit):
        if planned.roots is None:
            if not _long(context.program):
                return True
        elif plain(context.program, planned.roots) and _has_room(context, planned):
            return True
        planned = planned.make()
    change = Difference(planned, context.program)
    return (
        keeps_storage(planned, change)
        and mark_fault(planned, context.target, context.policy, change) is None
        and _unreadable(change) is None
    )


def _has_room(context: Context, edit: Edit) -> bool:
    """Could what the edit concerns have three times the operations, and the program twice the bytes, some
    levels and a buffer more? It adds no more than that; with less room the edit is made and looked at."""
    program = context.program
    now = program.summary
    few = 3 * now.nodes <= KERNEL_LIMITS["nodes"] and 3 * now.unrolled <= context.target.unrolled_ops
    more = now if few else summary(tuple([program.body[n] for n in edit.roots or ()]))
    return (
        now.nodes + 2 * more.nodes <= KERNEL_LIMITS["nodes"]
        and now.height + 4 <= KERNEL_LIMITS["depth"]
        and len(program.buffers) < KERNEL_LIMITS["buffers"]
        and now.unrolled + 2 * more.unrolled <= context.target.unrolled_ops
        and 2 * program.buffer_bytes <= KERNEL_LIMITS["buffer bytes"]
        and now.largest**2 <= KERNEL_LIMITS["size"]  # two scopes may become one
        and not _long(program)
    )


def _planned(context: Context, move: Move) -> Program | Edit | Refusal:
    transformation = REGISTRY.get(move.name)
    if transformation is None:
        return structural("unknown-move", f"There is no move {move.name!r}.")
    if context.target.moves is not None and move.name not in context.target.moves:
        return structural("target-move", f"The target {context.target.name} has no move {move.name}.")
    try:
        return transformation.plan(context, move.arguments)
    except NoSuchPlace as missing:
        return structural("no-such-place", str(missing))


def _refused(fault: Fault, before: Program, after: Program) -> Refusal:
    """A fault of the result, told in the program before the move: nodes are found by their birth."""
    at = {node.birth: path for node, path, _ in walk(before.body)}
    births = {path: node.birth for node, path, _ in walk(after.body)}
    nodes = tuple(at[births[p]] for p in fault.nodes if p in births and births[p] in at)
    semantic = fault.code in (
        "race",
        "clobber",
        "lifetime",
        "undefined",
        "unwritten",
        "vector-flow",
        "vector-regroup",
    )
    return Refusal(fault.code, fault.sentence, nodes, fault.witness, (), not semantic, fault)


def _unreadable(change: Difference) -> Refusal | None:
    """Why the result's text would not be read again: a limit, or an iterator expression beyond its dtype."""
    beyond = _beyond(change)
    if beyond:
        return structural("too-large", f"The program would grow beyond {beyond}.")
    if _counts(change.before):
        dtypes = dtypes_of(change.after)
        for leaf in change.after.leaves:
            wrong = iterator_fault(leaf.op, [scope.size for scope in leaf.scopes], dtypes)
            if wrong is not None:
                return structural("beyond-dtype", f"{wrong[0]}.")
    return None


def _beyond(change: Difference) -> str:
    """Which limit of texts the result would leave; empty: none."""
    before, after, limits = change.before, change.after, KERNEL_LIMITS
    if before.summary.nodes - change.gone.nodes + change.made.nodes > limits["nodes"]:
        return f"{limits['nodes']} nodes"
    if change.made.height > limits["depth"] + 1:
        return f"{limits['depth']} nested scopes"
    if len(after.buffers) > limits["buffers"]:
        return f"{limits['buffers']} buffers"
    sizes = [change.made.largest, *(d.size for b in change.fresh for d in b.dims)]
    if max(sizes) > limits["size"]:
        return f"{limits['size']:,} iterations or elements of a dimension"
    if change.fresh and after.buffer_bytes > limits["buffer bytes"]:
        return f"{limits['buffer bytes']:,} bytes of buffers"
    if _long(before):
        if len(after.text) > limits["text bytes"]:
            return f"{limits['text bytes']:,} bytes of text"
        if _longest(after) > LINE:
            return f"{LINE:,} characters of a line"
    return ""


def _long(program: Program) -> bool:
    """Could one move make the text longer than what is read? It doubles the lines at most, and a few more."""
    kept: bool | None = program.__dict__.get("_is_long")
    if kept is None:
        now = extent(program.body)
        fixed = sum(len(str(each)) for each in (*program.tables.values(), *program.buffers))
        most = 2 * now.characters + now.terms + fixed + 4096
        kept = most > KERNEL_LIMITS["text bytes"] or now.longest > LINE
        program.__dict__["_is_long"] = kept
    return kept


def _longest(program: Program) -> int:
    """The characters of the longest line; a table's line may be of any length."""
    return max(len(line) for line in program.text.splitlines() if not line.startswith("table "))


def _counts(program: Program) -> bool:
    """Does an operation count with iterators beyond 32 bits, or in integers that may not hold them? Moves
    bring no others."""
    kept: bool | None = program.__dict__.get("_counts")
    if kept is None:
        kept = program.__dict__["_counts"] = any(
            _counts_far(leaf.op, [scope.size for scope in leaf.scopes], dtypes_of(program))
            for leaf in program.leaves
            if leaf.op.guard or any(isinstance(operand, Affine) for operand in leaf.op.operands)
        )
    return kept


def _counts_far(op: Op, sizes: Sequence[int], dtypes: Mapping[str, str]) -> bool:
    operands = [operand for operand in op.operands if isinstance(operand, Affine)]
    dtype = op.function if op.function in DTYPE_BYTES else dtypes[op.target.array]
    far = any(form.reach(sizes) >= 2**31 for form in (*operands, *[c.form for c in op.guard]))
    return far or (bool(operands) and dtype not in (*FLOATS, "i64"))


def context(
    program: Program, target: str | Target = "cpu", policy: str = "reassoc", born: int | None = None
) -> Context:
    """What legality is asked in. ``born`` numbers the move for births; default: the next of the program."""
    if policy not in POLICIES:
        raise ValueError(f"There is no policy {policy!r}. The policies are: {', '.join(POLICIES)}.")
    found = target if isinstance(target, Target) else target_named(target)
    if "g" in found.marks and program.tables:
        raise UnknownTarget(NO_TABLES)
    return Context(program, found, policy, program.age + 1 if born is None else born)


def all_candidates(context: Context, names: Iterable[str] | None = None) -> Iterator[Move]:
    """Every well-formed move at this position, family by family; only those of some names, if given."""
    for transformation in REGISTRY.values() if names is None else [REGISTRY[name] for name in names]:
        if context.target.moves is not None and transformation.name not in context.target.moves:
            continue  # the target lacks it: outcome would refuse each
        for arguments in transformation.candidates(context):
            yield Move(transformation.name, arguments)


def legal_moves(program: Program, target: str | Target = "cpu", policy: str = "reassoc") -> tuple[Move, ...]:
    """All legal moves of a position, numbers from the documented grids."""
    here = context(program, target, policy)
    return tuple(m for m in all_candidates(here) if is_legal(here, m))


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
    return replace(result, age=max(program.age + 1, here.born))


def why(program: Program, move: Move | str, target: str | Target = "cpu", policy: str = "reassoc") -> Verdict:
    """Why a move is legal or not, with the places, a witness and the moves that would enable it."""
    here = context(program, target, policy)
    played = as_move(move)
    result = outcome(here, played)
    if isinstance(result, Refusal):
        refusal = with_enablers(here, played, result)
        return Verdict(False, f"{played} is not legal. {refusal}", refusal)
    read = "Every value is still read where and when it was written for."
    return Verdict(True, f"{played} is legal: {met(played)}. {read}")


def with_enablers(context: Context, move: Move, refusal: Refusal, longest: int = 3) -> Refusal:
    """The refusal with ways to make the move legal: the shortest, of ``longest`` moves at most."""
    for length in range(1, longest + 1):
        found = list(islice(_ways(context, move, refusal, length), WAYS_TOLD if length == 1 else 1))
        if found:
            return replace(refusal, ways=tuple(_way(move, moves) for moves in found))
    return refusal


def _way(move: Move, moves: tuple[Move, ...]) -> Way:
    *firsts, then = map(str, moves)
    return Way(tuple(firsts), then, then != str(move)) if firsts else Way((then,), "")


def _ways(context: Context, move: Move, refusal: Refusal, length: int) -> Iterator[tuple[Move, ...]]:
    """Lines of so many moves after which it is legal; it stands last, under the name that it has then. A move
    of its own kind that would do stands alone."""
    for first in _helping(context, move, refusal):
        if first.name == move.name:
            if length == 1:
                yield (first,)
            continue
        after = _after(context, first)
        for again in _carried(context, after, move):
            if length == 1:
                if is_legal(after, again):
                    yield first, again
                    break
            else:
                refused = outcome(after, again)
                if isinstance(refused, Refusal):
                    yield from ((first, *rest) for rest in _ways(after, again, refused, length - 1))


def _helping(context: Context, move: Move, refusal: Refusal) -> Iterator[Move]:
    """Legal moves that the transformation thinks of, each once."""
    seen: set[str] = set()
    transformation = REGISTRY.get(move.name)
    if transformation is None:
        return
    try:
        for candidate in transformation.enablers(context, move.arguments, refusal):
            if str(candidate) not in seen and is_legal(context, candidate):
                seen.add(str(candidate))
                yield candidate
            if len(seen) == ENABLERS_TRIED:
                return
    except NoSuchPlace:
        return


def _after(context: Context, first: Move) -> Context:
    after = outcome(context, first)
    assert isinstance(after, Program)
    return replace(context, program=after, born=context.born + 1)


def _carried(before: Context, after: Context, move: Move) -> Iterator[Move]:
    """The move under the names that its nodes have after another; of a split scope, at either half."""
    try:
        same = readdress(after, move, anchors(before, move), before.program)
    except NoSuchPlace:
        return
    if same is not None:
        yield same
        return
    place = move.arguments[0]
    if not isinstance(place, Place):
        return
    path = resolve(before.program, place)
    for here in ((*path, 0), path):
        try:
            node = after.program.node(here)
        except IndexError:
            continue
        if isinstance(node, Scope) and node.birth.move == before.born:
            yield Move(move.name, (place_of(after.program, here), *move.arguments[1:]))


def places(program: Program, move: Move | str) -> tuple[Path, ...]:
    """Every node that a move names or implies. Raises NoSuchPlace."""
    played = as_move(move)
    here = context(program)
    return REGISTRY[played.name].places(here, played.arguments)


def inverse(
    program: Program, move: Move | str, target: str | Target = "cpu", policy: str = "reassoc"
) -> Move | None:
    """The move that undoes a legal move: legal at once on its result, and gives the program back exactly.

    None where there is none: the table of moves has none, or the text has lost what would be needed (an
    iterator of one iteration, say).
    """
    here = context(program, target, policy)
    played = as_move(move)
    result = outcome(here, played)
    if isinstance(result, Refusal):
        raise IllegalMove(str(played), result)
    back = REGISTRY[played.name].inverse(here, played.arguments, result)
    if back is None or outcome(replace(here, program=result), back) != program:
        return None
    return back
