"""V3: every mark, location and limit of a program meets its own condition (moves.md, "Marks")."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import is_

from dojo_core import plugins
from dojo_core.checkout import OURS
from dojo_core.program import vector_form
from dojo_core.program.codes import Code
from dojo_core.program.dependence import (
    MemoryAccess,
    Order,
    Witness,
    accesses,
    is_reduction,
    may_regroup,
    meeting,
)
from dojo_core.program.difference import UNROLLED, Difference
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.tables import IndexArray, Indirect
from dojo_core.program.target import Target
from dojo_core.program.tree import Access, Buffer, Leaf, Node, Op, Path, Program, Scope
from dojo_core.program.unification import Mismatch, unify
from dojo_core.program.validity import Fault

_GROUP = "dojo.targets"
APART = 4  # cells between lanes that are read: more are loaded than used, and put together
_WORDS = {
    "u": "unrolled", "p": "parallel", "v": "vectorised", "g": "grid", "b": "block", "w": "warp",
    "m": "tensor-core", "s": "streamed", "f": "a hardware loop",
}  # fmt: skip


def mark_word(mark: str) -> str:
    """A scope's mark in words: parallel, or run as the instruction of that name."""
    return _WORDS.get(mark, f"run as {mark}")


def mark_fault(
    program: Program, target: Target, policy: str, since: Difference | None = None
) -> Fault | None:
    """The first violation of V3, or None.

    ``since``, if given, is the difference from a program without one; only what it concerns is looked at.
    """
    change = Difference(program) if since is None else since
    for number, scope in change.marked():
        fault = _scope_fault(program, scope, (number,), (), target, policy)
        if fault is not None:
            return fault
    unrolled = change.before.summary.unrolled - change.gone.unrolled + change.made.unrolled
    if unrolled > target.unrolled_ops and "u" in program.summary.marks:  # what is long by itself may stay so
        return _fault(
            Code.UNROLLED_SIZE,
            f"Unrolled, its code would be {unrolled} operations long; the limit is {target.unrolled_ops}.",
            (),
        )
    for buffer in change.fresh:
        if buffer.location not in target.locations:
            return _fault(
                Code.LOCATION_UNKNOWN,
                f"The target {target.name} has no location {buffer.location}.",
                (),
                buffer.name,
            )
    for buffer in change.concerned:
        if buffer.location == "register":
            fault = _register_fault(program, buffer, target, change)
            if fault is not None:
                return fault
    stacked = () if target.own_threads or not change.fresh else program.buffers
    stack = sum(b.bytes for b in stacked if b.location == "stack")
    if stack > target.stack_bytes:
        return _fault(
            Code.STACK_SIZE,
            f"The stack buffers would take {stack:,} bytes; the limit per thread is {target.stack_bytes:,}.",
            (),
        )
    return _own_fault(program, target, policy)


def _own_fault(program: Program, target: Target, policy: str) -> Fault | None:
    """A fault of the target's own. What one of a package raises and should not is a fault with a sentence."""
    try:
        found = target.fault(program, policy)
        if found is None or isinstance(found, Fault):
            return found
        raise TypeError(f"its fault is of the type {type(found).__name__}, not Fault")
    except Exception as raised:
        if plugins.package(_GROUP, target.name) == OURS:  # ours is mended, and tests see it
            raise
        return _fault(Code.TARGET_FAILED, plugins.failed(_GROUP, target.name, raised), ())


def _fault(code: str, sentence: str, nodes: tuple[Path, ...], buffer: str = "") -> Fault:
    return Fault(code, buffer, buffer, sentence, nodes)


def _scope_fault(
    program: Program, scope: Scope, path: Path, above: tuple[Scope, ...], target: Target, policy: str
) -> Fault | None:
    """The first fault of the marks of a subtree. That there is none is kept with the subtree, for the scopes
    around it and the buffers that it accesses: an edit shares most subtrees with the program before."""
    sound: dict[object, tuple[Buffer, ...]] = scope.facts.setdefault(_scope_fault, {})
    around = (tuple([(s.size, s.mark) for s in above]), target, policy)
    buffers = tuple(map(program.buffer_of.__getitem__, scope.summary.first_accessed))
    known = sound.get(around)
    if known is not None and all(map(is_, known, buffers)):
        return None
    fault = _found_fault(program, scope, path, above, target, policy)
    if fault is None:
        sound[around] = buffers
    return fault


def _found_fault(
    program: Program, scope: Scope, path: Path, above: tuple[Scope, ...], target: Target, policy: str
) -> Fault | None:
    if scope.mark in INSTRUCTIONS:
        # Asked on every target: one that lacks the instruction runs the scopes as they stand.
        unified = unify(program, scope, len(above), scope.mark)
        return _fault(unified.code, unified.sentence, (path,)) if isinstance(unified, Mismatch) else None
    if scope.mark and scope.mark not in target.marks:
        return _fault(
            Code.MARK_UNKNOWN, f"The target {target.name} knows no {mark_word(scope.mark)} scopes.", (path,)
        )
    if scope.mark == "p":
        if any(s.mark == "p" for s in above):
            return _fault(Code.PARALLEL_NESTED, "A parallel scope stands in another: one per path.", (path,))
        if any(s.mark == "u" for s in above):
            return _fault(Code.PARALLEL_UNROLLED, "A parallel scope stands in an unrolled one.", (path,))
    if scope.mark == "v":
        return vector_fault(program, scope, path, above, target, policy)
    for number, child in enumerate(scope.body):
        if isinstance(child, Scope) and not child.summary.marks <= UNROLLED:
            fault = _scope_fault(program, child, (*path, number), (*above, scope), target, policy)
            if fault is not None:
                return fault
    return None


def vector_fault(
    program: Program, scope: Scope, path: Path, above: tuple[Scope, ...], target: Target, policy: str
) -> Fault | None:
    """The conditions of a ``:v`` scope, numbered as in the move ``vectorize``."""
    if len(scope.body) != 1 or not isinstance(scope.body[0], Op):
        return _fault(Code.VECTOR_BODY, "A vectorised scope wraps exactly one operation.", (path,))
    op = scope.body[0]
    buffers = tuple(program.buffer_of[a.array] for a in op.elements)
    fault = _vector_sentence(op, scope.size, tuple(s.size for s in above), buffers, target, policy)
    if fault is None:
        return None
    witness = None
    if fault[0] == Code.VECTOR_FLOW:
        lane = Leaf(op, (*path, 0), (*above, scope))
        witness = next((w for t in accesses(lane) if (w := _flow(t, len(above))) is not None), None)
    return Fault(fault[0], "", "", fault[1], (path,), witness)


@lru_cache(maxsize=1_000)
def _vector_sentence(
    op: Op, lanes: int, above: tuple[int, ...], buffers: tuple[Buffer, ...], target: Target, policy: str
) -> tuple[str, str] | None:
    lane = len(above)
    dtypes = list(dict.fromkeys(b.dtype for b in buffers))
    bare = next((d for d in dtypes if d not in target.vector_widths), None)
    if bare is not None:
        return Code.VECTOR_DTYPE, f"The target {target.name} has no vectors of {bare}."
    dtype_of = {a.array: b.dtype for a, b in zip((op.target, *op.sources), buffers, strict=True)}
    widths = vector_form.lanes_for(op, dtype_of, target)
    if lanes not in widths:
        known, named = ", ".join(map(str, widths)) or "none", " and ".join(dtypes)
        return (
            Code.VECTOR_WIDTH,
            f"{lanes} is no vector width of {target.name} for {named} (they are: {known}).",
        )
    leaf = Leaf(op, (0,) * (lane + 1), tuple(Scope(n, ()) for n in (*above, lanes)))
    formless = vector_form.form_fault(op, dtype_of)
    if formless is not None:
        return Code.VECTOR_FORM, formless
    for comparison in op.guard:
        if comparison.form.uses(lane):
            return Code.VECTOR_GUARD, "The guard depends on the lane."
    for access, buffer in zip(op.elements, buffers, strict=True):
        if gathers(access, lane) and access is not op.target:
            continue  # each lane reads where its own index says
        if any(isinstance(i, Indirect) and i.looks_up(lane) for i in access.index):
            says = "an array says, and are written" if access is op.target else "a table says"
            return Code.VECTOR_STRIDE, f"The lanes of {access} lie where {says}: they must be neighbours."
        stride = lane_stride(access, buffer, lane)
        if stride == 1 or (stride == 0 and access is not op.target):
            continue
        if access is not op.target and 1 < stride <= APART and buffer.location != "register":
            continue
        if stride == 0 and is_reduction(leaf, lane):
            small = Program("", (), (), (buffer,), ())
            if may_regroup(small, leaf, policy):
                continue
            return (
                Code.VECTOR_REGROUP,
                "The policy strict keeps the order of this sum: its lanes may not be regrouped.",
            )
        if stride == 0:
            return Code.VECTOR_STRIDE, f"All lanes would write the same cell {access}."
        return (
            Code.VECTOR_STRIDE,
            f"The lanes of {access} are {stride} cells apart; they must be neighbours "
            f"(or, where it is read, one cell or at most {APART} apart).",
        )
    for read in accesses(leaf):
        if _flow(read, lane) is not None:
            return Code.VECTOR_FLOW, f"A lane of {read.element} reads what an earlier lane writes."
    return None


def gathers(access: Access, lane: int) -> bool:
    """Does each lane read an element of its own, where arrays say?"""
    lookups = [k for i in access.index if isinstance(i, Indirect) for k, _ in i.lookups if k.uses(lane)]
    return bool(lookups) and all(isinstance(k.source, IndexArray) for k in lookups)


def _flow(read: MemoryAccess, lane: int) -> Witness | None:
    """A lane that reads what an earlier one writes. All lanes read before any writes, so the read would
    miss it; what a later lane writes is read in time."""
    if read.kind != "r" or read.element.array != read.leaf.op.target.array:
        return None
    written = next(t for t in accesses(read.leaf) if t.kind != "r")
    return meeting(read, written, lane, [Order(lane, ">")])


def lane_stride(access: Access, buffer: Buffer, depth: int) -> int:
    """Cells between neighbouring iterations of the scope at ``depth``, in the buffer's layout.

    What is looked up is taken to be the same for both.
    """
    stride, step = 0, 1
    for index, dim in zip(reversed(access.index), reversed(buffer.dims), strict=True):
        form = index.rest if isinstance(index, Indirect) else index
        if dim.materialised:
            stride += form.coefficient(depth) * step
            step *= dim.size
    return stride


def _register_fault(program: Program, buffer: Buffer, target: Target, change: Difference) -> Fault | None:
    """A register has no address: once unrolled, every index is constant; the last may be a lane's."""
    if buffer.cells > target.register_cells:
        return _fault(
            Code.REGISTER_SIZE,
            f"{buffer.name} has {buffer.cells} cells; a register buffer has at most {target.register_cells}.",
            (),
            buffer.name,
        )
    arrays = frozenset(buffer.arrays)
    widths: set[int] = set()
    for node in change.accessing(arrays):
        used = _register_widths(node, (), buffer, arrays)
        if used is None:
            return _register_index_fault(program, buffer)
        widths |= used
    if len(widths) > 1:
        return _fault(
            Code.REGISTER_INDEX, f"{buffer.name} is used with vectors of different widths.", (), buffer.name
        )
    return None


def _last_materialised(buffer: Buffer) -> int:
    return max((k for k, d in enumerate(buffer.dims) if d.materialised), default=-1)


def _register_widths(
    node: Node, above: tuple[Scope, ...], buffer: Buffer, arrays: frozenset[str]
) -> frozenset[int] | None:
    """The widths of vectors by which a subtree accesses a register buffer, None where it may not. Kept with
    the subtree, for the scopes around it."""
    if isinstance(node, Op):
        widths = set[int]()
        for access in (*node.reads, node.target):
            if access.array in arrays:
                last = _last_materialised(buffer)
                if register_sentence(access, above, buffer, last, widths) is not None:
                    return None
        return frozenset(widths)
    if node.arrays.isdisjoint(arrays):
        return frozenset()
    cache: dict[object, tuple[Buffer, frozenset[int] | None]] = node.facts.setdefault(_register_widths, {})
    key = (id(buffer), tuple([(s.size, s.mark) for s in above]))  # kept with the buffer, so the id is its own
    if key not in cache:
        inside = [_register_widths(child, (*above, node), buffer, arrays) for child in node.body]
        below = [w for w in inside if w is not None]
        cache[key] = buffer, frozenset().union(*below) if len(below) == len(inside) else None
    return cache[key][1]


def _register_index_fault(program: Program, buffer: Buffer) -> Fault:
    """The first access that a register buffer cannot have; there is one."""
    last = _last_materialised(buffer)
    for leaf in program.leaves:
        for access in accesses(leaf):
            if access.element.array in buffer.arrays:
                sentence = register_sentence(access.element, leaf.scopes, buffer, last, set())
                if sentence is not None:
                    return _fault(Code.REGISTER_INDEX, sentence, (leaf.path,), buffer.name)
    raise AssertionError("unreachable")


def register_sentence(
    access: Access, scopes: Sequence[Scope], buffer: Buffer, last: int, widths: set[int]
) -> str | None:
    for k, form in enumerate(access.index):
        if not buffer.dims[k].materialised:
            continue
        if isinstance(form, Indirect):
            return f"Index {k} of {access} is looked up: a register has no address to compute."
        for depth, coefficient in form.terms:
            scope = scopes[depth]
            if scope.mark == "u" or any(s.mark == "m" for s in scopes[: depth + 1]):
                continue
            lanes = scope.mark == "v" or scope.mark in INSTRUCTIONS
            # implied: coefficient 1, since lanes are neighbours (vector-stride, instruction-access)
            if lanes and k == last and coefficient == 1:
                rest = [c for d, c in form.terms if d != depth]
                if (
                    any(c % scope.size for c in rest)
                    or form.const % scope.size
                    or buffer.dims[k].size % scope.size
                ):
                    return f"The lanes of {access} would straddle two registers."
                widths.add(scope.size)
                continue
            return (
                f"Index {k} of {access} moves with the scope at depth {depth}, which is not unrolled: "
                "a register has no address to compute."
            )
    return None
