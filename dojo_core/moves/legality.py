"""Where legality is decided: which moves are well formed, what they make of a program, why they are refused.

V2 and V3 (validity.py, marks.py) are checked here, on the result, for every transformation alike; V1 by
``dependence.conflict_between`` in those that reorder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dojo_core.moves.core import REGISTRY, Context, Edit, Move, Refusal, structural
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code, is_semantic
from dojo_core.program.dependence import check_policy, iterator_fault
from dojo_core.program.difference import Difference, plain
from dojo_core.program.dtypes import FLOATS, dtypes_of
from dojo_core.program.expressions import LINE
from dojo_core.program.functions import KERNEL_LIMITS
from dojo_core.program.indices import index_fault, with_bounds
from dojo_core.program.marks import mark_fault
from dojo_core.program.nodes import fact
from dojo_core.program.printing import extent
from dojo_core.program.target import DEFAULT_TARGET, Target
from dojo_core.program.tree import DTYPE_BYTES, Op, Program, summary, walk
from dojo_core.program.validity import Fault, keeps_storage, storage_fault, unset_index
from dojo_core.targets.registry import UnknownTarget
from dojo_core.targets.registry import target as target_named


def outcome(context: Context, move: Move) -> Program | Refusal:
    """The program after a legal move, or the refusal. The one place where legality is decided, of moves on
    a valid program."""
    planned = _planned(context, move)
    if isinstance(planned, Refusal):
        return planned
    settled = isinstance(planned, Edit) and planned.roots is None and _spared(context)
    if isinstance(planned, Edit):
        planned = planned.make()
    change = Difference(planned, context.program)
    abandoned = _abandoned(change)
    if abandoned is not None or settled:
        return abandoned or planned
    if context.program.index_arrays:
        planned = with_bounds(planned)
        change = Difference(planned, context.program)
    fault = storage_fault(planned, change) or mark_fault(planned, context.target, context.policy, change)
    if fault is None and context.program.index_arrays:
        fault = _index_fault(planned)
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
            if _spared(context):
                return True
        elif _spared(context) and plain(context.program, planned.roots) and _has_room(context, planned):
            return True
        planned = planned.make()
    change = Difference(planned, context.program)
    if _abandoned(change) is not None:
        return False
    if context.program.index_arrays:
        planned = with_bounds(planned)
        change = Difference(planned, context.program)
    return (
        keeps_storage(planned, change)
        and mark_fault(planned, context.target, context.policy, change) is None
        and (not context.program.index_arrays or _index_fault(planned) is None)
        and _unreadable(change) is None
    )


def _index_fault(program: Program) -> Fault | None:
    """An index that is read from an array and may lie anywhere, whatever a transformation has planned."""
    beyond = index_fault(program)
    if beyond is not None:
        return Fault(
            Code.INDEX_BOUNDS, "", "", f"{beyond.message[:1].upper()}{beyond.message[1:]}.", (beyond.path,)
        )
    return unset_index(program)


def _has_room(context: Context, edit: Edit) -> bool:
    """Could what the edit concerns have three times the operations, and the program twice the bytes, some
    levels and a buffer more? It adds no more than that; with less room the edit is made and looked at."""
    program = context.program
    whole = program.summary
    few = 3 * whole.nodes <= KERNEL_LIMITS["nodes"] and 3 * whole.unrolled <= context.target.unrolled_ops
    more = whole if few else summary(tuple([program.body[n] for n in edit.roots or ()]))
    return (
        whole.nodes + 2 * more.nodes <= KERNEL_LIMITS["nodes"]
        and whole.height + 4 <= KERNEL_LIMITS["depth"]
        and len(program.buffers) < KERNEL_LIMITS["buffers"]
        and whole.unrolled + 2 * more.unrolled <= context.target.unrolled_ops
        and 2 * program.buffer_bytes <= KERNEL_LIMITS["buffer bytes"]
        and whole.largest**2 <= KERNEL_LIMITS["size"]  # two scopes may become one
    )


def _spared(context: Context) -> bool:
    """May what has neither marks nor locations go unjudged? Not by conditions of a target that look at more,
    nor where a line of the text may become too long, or an index is read from an array."""
    program = context.program
    return not context.target.judges_plain and not _long(program) and not program.index_arrays


def _planned(context: Context, move: Move) -> Program | Edit | Refusal:
    transformation = REGISTRY.get(move.name)
    if transformation is None:
        return structural(Code.UNKNOWN_MOVE, f"There is no move {move.name!r}.")
    if move.name in context.target.without:
        return structural(Code.TARGET_MOVE, f"The target {context.target.name} has no move {move.name}.")
    try:
        return transformation.plan(context, move.arguments)
    except NoSuchPlace as missing:
        return structural(Code.NO_SUCH_PLACE, str(missing))


def _refused(fault: Fault, before: Program, after: Program) -> Refusal:
    """A fault of the result, told in the program before the move: nodes are found by their provenance."""
    at = {node.provenance: path for node, path, _ in walk(before.body)}
    provenances = {path: node.provenance for node, path, _ in walk(after.body)}
    nodes = tuple(at[provenances[p]] for p in fault.nodes if p in provenances and provenances[p] in at)
    semantic = is_semantic(fault.code)
    return Refusal(fault.code, fault.sentence, nodes, fault.witness, (), not semantic, fault)


def _abandoned(change: Difference) -> Refusal | None:
    """The refusal of a result in which an input, an output or an array in use has no buffer, or nothing uses
    an output, whatever a transformation has planned. The other judges, the generators and the text form rely
    on it."""
    before, after = change.before, change.after
    if after.buffers is before.buffers:  # only new nodes may name what has none
        home, used = before.buffer_of, (*change.made.first_accessed, *change.made.prefetched)
    else:
        whole = after.summary
        home = after.buffer_of
        used = (*after.inputs, *after.outputs, *whole.first_accessed, *whole.prefetched)
    lost = next((array for array in used if array not in home), None)
    if lost is not None:
        owned = (
            "an input" if lost in after.inputs else "an output" if lost in after.outputs else "still in use"
        )
        return structural(Code.NO_BUFFER, f"{lost} would have no buffer, and it is {owned}.")
    left = {*change.gone.first_accessed}.difference(change.made.first_accessed).intersection(after.outputs)
    forgotten = left.difference(after.summary.first_accessed) if left else left
    if forgotten:
        return structural(Code.NEVER_WRITTEN, f"{min(forgotten)} is an output, and nothing would write it.")
    return None


def _unreadable(change: Difference) -> Refusal | None:
    """Why the result's text would not be read again: a limit, or an iterator expression beyond its dtype."""
    beyond = _beyond(change)
    if beyond:
        return structural(Code.TOO_LARGE, f"The program would grow beyond {beyond}.")
    if _counts(change.before):
        dtypes = dtypes_of(change.after)
        for leaf in change.after.leaves:
            wrong = iterator_fault(leaf.op, [scope.size for scope in leaf.scopes], dtypes)
            if wrong is not None:
                return structural(Code.BEYOND_DTYPE, f"{wrong[0]}.")
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
    if change.fresh and _bytes(change) > limits["buffer bytes"]:
        return f"{limits['buffer bytes']:,} bytes of buffers"
    if _long(before):
        if len(after.text) > limits["text bytes"]:
            return f"{limits['text bytes']:,} bytes of text"
        if _longest(after) > LINE:
            return f"{LINE:,} characters of a line"
    return ""


def _bytes(change: Difference) -> int:
    """At least the bytes of the result's buffers; just those where they exceed the limit."""
    most = change.before.buffer_bytes + sum(buffer.bytes for buffer in change.fresh)
    return most if most <= KERNEL_LIMITS["buffer bytes"] else change.after.buffer_bytes


@fact
def _long(program: Program) -> bool:
    """Could one move make the text longer than what is read? It doubles the lines at most, and a few more."""
    lines = extent(program.body)
    fixed = sum(len(str(each)) for each in (*program.tables.values(), *program.buffers))
    most = 2 * lines.characters + lines.terms + fixed + 4096
    return most > KERNEL_LIMITS["text bytes"] or lines.longest > LINE


def _longest(program: Program) -> int:
    """The characters of the longest line; a table's line may be of any length."""
    return max(len(line) for line in program.text.splitlines() if not line.startswith("table "))


@fact
def _counts(program: Program) -> bool:
    """Does an operation count with iterators beyond 32 bits, or in integers that may not hold them? Moves
    bring no others."""
    return any(
        _counts_far(leaf.op, [scope.size for scope in leaf.scopes], dtypes_of(program))
        for leaf in program.leaves
        if leaf.op.guard or any(isinstance(operand, Affine) for operand in leaf.op.operands)
    )


def _counts_far(op: Op, sizes: Sequence[int], dtypes: Mapping[str, str]) -> bool:
    operands = [operand for operand in op.operands if isinstance(operand, Affine)]
    dtype = op.function if op.function in DTYPE_BYTES else dtypes[op.target.array]
    far = any(form.reach(sizes) >= 2**31 for form in (*operands, *[c.form for c in op.guard]))
    return far or (bool(operands) and dtype not in (*FLOATS, "i64"))


def context(
    program: Program,
    target: str | Target = DEFAULT_TARGET,
    policy: str = "reassoc",
    born: int | None = None,
    constants: frozenset[str] = frozenset(),
) -> Context:
    """``born`` numbers the move for provenances; default: the next of the program. ``constants``: inputs that
    are the same in every run."""
    check_policy(policy)
    limits = target if isinstance(target, Target) else target_named(target)
    lacking = limits.lacks(program)
    if lacking is not None:
        raise UnknownTarget(lacking)
    return Context(program, limits, policy, program.age + 1 if born is None else born, constants)


def all_candidates(context: Context, names: Iterable[str] | None = None) -> Iterator[Move]:
    """Every well-formed move at this position, family by family; only those of some names, if given."""
    for transformation in REGISTRY.values() if names is None else [REGISTRY[name] for name in names]:
        if transformation.name in context.target.without:
            continue  # the target lacks it: outcome would refuse each
        for arguments in transformation.candidates(context):
            yield Move(transformation.name, arguments)
