"""Moves on values: use a copy's source, compute again, fold a product into its sum, drop what nobody sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from dojo_core.moves.core import (
    Context,
    Move,
    Parameter,
    Refusal,
    Transformation,
    name_fault,
    register,
    structural,
)
from dojo_core.moves.nodes import nest, provenances, without
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name, leaf_at, place_of, writers
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import MemoryAccess, Witness, may_regroup
from dojo_core.program.dtypes import COMPARISONS, FLOATS
from dojo_core.program.reaching import (
    Definition,
    accesses_of,
    changed_since,
    definition,
    leaves_of,
    overwritten,
    reduction,
    seen_by,
)
from dojo_core.program.tables import Index, Indirect
from dojo_core.program.tree import (
    DTYPE_BYTES,
    Access,
    Buffer,
    Dim,
    Leaf,
    Node,
    Number,
    Op,
    Operand,
    Path,
    Program,
    Provenance,
    Scope,
    splice,
    substituted,
)

# An operation, an array that it reads, and what else.
ReadArguments = TypeVar("ReadArguments", bound=tuple[Place, str, *tuple[str, ...]])


def _reads_of(leaf: Leaf, array: str) -> list[Access]:
    return [a for a in leaf.op.reads if a.array == array]


def _unsettled(read: Access, leaf: Leaf) -> Refusal:
    return Refusal(
        Code.NOT_ONE_DEFINITION,
        f"No single write surely defines {read} in every iteration.",
        (leaf.path,),
    )


def _changed(witness: Witness) -> Refusal:
    return Refusal(
        Code.CHANGED_BETWEEN,
        f"{witness.cell} is written again before it would be read.",
        tuple(dict.fromkeys(leaf.path for leaf, _ in witness.instances)),
        witness,
    )


def _defined(program: Program, leaf: Leaf, access: Access) -> Definition | Refusal:
    reaching = definition(program, MemoryAccess(leaf, access, "r"))
    return _unsettled(access, leaf) if reaching is None else reaching


def _replaced(op: Op, old: Access, new: Operand) -> Op:
    """With another operand in place of an access, and another access where an index is read from it."""

    def index(access: Access) -> Access:
        return new if access == old and isinstance(new, Access) else access

    def operand(value: Operand) -> Operand:
        changed = new if value == old else value
        return changed.reindexed(index) if isinstance(changed, Access) else changed

    return replace(op, target=op.target.reindexed(index), operands=tuple(map(operand, op.operands)))


def _exit(program: Program, array: str) -> list[MemoryAccess]:
    """The read of an output at exit, every cell of it."""
    if array not in program.outputs:
        return []
    dims = program.buffer_of[array].dims
    access = Access(array, tuple(Affine.iterator(k) for k in range(len(dims))))
    leaf = Leaf(Op(access, "", "", ()), (), tuple(Scope(d.size, ()) for d in dims))
    return [MemoryAccess(leaf, access, "r")]


class _OnRead(Transformation[ReadArguments]):
    """Moves that name an operation and an array that it reads."""

    family = "values"

    def places(self, context: Context, arguments: ReadArguments) -> tuple[Path, ...]:
        leaf = leaf_at(context.program, arguments[0])
        paths = [leaf.path]
        for access in _reads_of(leaf, arguments[1]):
            reaching = definition(context.program, MemoryAccess(leaf, access, "r"))
            if reaching is not None:
                paths.append(reaching.write.leaf.path)
                whole = reduction(context.program, reaching) if reaching.write.kind == "a" else None
                paths += [whole.start.write.leaf.path] if whole is not None else []
        return tuple(dict.fromkeys(paths))


@register
class Forward(_OnRead[tuple[Place, str]]):
    """Read a copy's source in place of the copy (copy propagation).

    ``forward OP T``: OP reads T, which a plain copy ``T = v`` sets.

    Before::

        8 t[{0}] = x[{0}]
        | y[{0}] = t[{0}]*2

    After ``forward y t``::

        8 t[{0}] = x[{0}]
        | y[{0}] = x[{0}]*2

    Legal iff
      1. OP reads T, with one index;
      2. one write surely defines what it reads, and that is a plain copy of a number or an element of
         the same dtype;
      3. the source is not written between the copy and OP;
      4. some array is still read, where OP adds, subtracts or multiplies;
      5. an index of OP that is read from T is read from an element at an affine place then.
    """

    name = "forward"
    also = ("inline", "copy_propagation")
    parameters = (Parameter("operation", "op"), Parameter("array", "buffer"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, str]]:
        program = context.program
        copied = {leaf.op.target.array for leaf in program.leaves if _is_copy(leaf.op)}
        for leaf in program.leaves:
            for array in dict.fromkeys(a.array for a in leaf.op.reads):
                if array in copied:
                    yield place_of(program, leaf.path), array

    def plan(self, context: Context, arguments: tuple[Place, str]) -> Program | Refusal:
        program = context.program
        leaf, array = leaf_at(program, arguments[0]), arguments[1]
        reads = set(_reads_of(leaf, array))
        if len(reads) != 1:  # 1
            return structural(Code.NOT_READ, f"{arguments[0]} does not read {array} at one index.", leaf.path)
        access = reads.pop()
        definition = _defined(program, leaf, access)
        if isinstance(definition, Refusal):  # 2
            return definition
        origin = definition.write.leaf.op
        source = origin.operands[0] if origin.operands else None
        # implied: what has no function has an operand
        if not _is_copy(origin) or isinstance(source, Affine) or source is None:
            return structural(
                Code.NOT_A_COPY,
                f"{array} is computed there, not copied.",
                leaf.path,
                definition.write.leaf.path,
            )
        new: Operand = source
        indexes = any(access in each.indices for each in leaf.op.elements)
        if indexes and not (isinstance(source, Access) and not source.indirect):  # 5
            return structural(
                Code.INDEX_FORM,
                f"An index is read from {access}: what stands for it is an element at an affine place.",
                leaf.path,
            )
        if isinstance(source, Access):
            if program.buffer_of[source.array].dtype != program.buffer_of[array].dtype:
                return structural(
                    Code.OTHER_DTYPE, f"{source.array} has another dtype than {array}.", leaf.path
                )
            witness = changed_since(program, definition, source)
            if witness is not None:  # 3
                return _changed(witness)
            new = definition.here(source)
        elif not _exact(source, access, program, leaf.op):
            return structural(Code.INEXACT, f"{source} would be of another dtype than {array}.", leaf.path)
        changed = _replaced(leaf.op, access, new)
        if changed.function in ("+", "-", "*") and not changed.reads:  # 4
            return structural(Code.NO_ARRAY, "What is left reads no array: it would be an index.", leaf.path)
        return program.edit(body=splice(program.body, leaf.path, 1, (changed,)))

    def alternatives(
        self, context: Context, arguments: tuple[Place, str], refusal: Refusal
    ) -> Iterator[Move]:
        """What is not copied but computed may be computed anew."""
        if refusal.code == Code.NOT_A_COPY:
            operation, array = arguments
            yield Move("recompute", (operation, array, fresh_name(context.program, f"r{array}")))


def _is_copy(op: Op) -> bool:
    return not op.accumulate and not op.function


def _exact(number: Number, access: Access, program: Program, op: Op) -> bool:
    """Does a literal mean the same in an operation where it stands for what the operation reads?"""
    dtype = program.buffer_of[access.array].dtype
    if dtype != program.buffer_of[op.target.array].dtype:
        return False
    # What is compared, be it with 0, may be computed in a wider dtype, f16 and bf16 are computed in f32.
    tested = op.function in COMPARISONS or (op.function == "select" and op.operands[0] == access)
    # A conversion takes a number as it is written, a bool holds 0 or 1 of it.
    other = tested or op.function in DTYPE_BYTES or dtype in ("f16", "bf16", "bool")
    return not other or number.value in (0, 1)


@register
class Recompute(_OnRead[tuple[Place, str, str]]):
    """Compute a value again directly before it is used, in place of keeping it (rematerialisation).

    ``recompute OP T NAME``: OP reads T; NAME gets the value, by the instruction that defines T, or by the two
    that begin a reduction and carry it out.

    Before::

        8 t[{0}] = exp(x[{0}])
        8 y[{0}] = t[{0}]*2

    After ``recompute y t r``::

        r f32 [8:N] stack
        8 t[{0}] = exp(x[{0}])
        8 r[{0}] = exp(x[{0}])
        | y[{0}] = r[{0}]*2

    Before, a reduction::

        4 t[{0}] = 0
        | 8 t[{0}] += x[{0},{1}]
        4 8 y[{0},{1}] = x[{0},{1}]/t[{0}]

    After ``recompute y t r``::

        r f32 [4:N, 8:N] stack
        4 t[{0}] = 0
        | 8 t[{0}] += x[{0},{1}]
        4 8 r[{0},{1}] = 0
        | | 8 r[{0},{1}] += x[{0},{2}]
        | | y[{0},{1}] = x[{0},{1}]/r[{0},{1}]

    NAME has a :N dimension for each scope around OP.

    Legal iff
      1. NAME is new, and OP reads T, with one index;
      2. one write surely defines what it reads; where it accumulates, its terms surely are those of one nest
         after another write that begins it, and of all iterations of that nest;
      3. nothing that these writes read is written by them, or between them and OP;
      4. OP stands in no vectorised scope (which holds one operation).
    """

    name = "recompute"
    also = ("rematerialise", "rematerialize")
    parameters = (Parameter("operation", "op"), Parameter("array", "buffer"), Parameter("name", "name"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, str, str]]:
        program = context.program
        made = {leaf.op.target.array for leaf in program.leaves} - set(program.inputs)
        for leaf in program.leaves:
            if any(s.mark == "v" for s in leaf.scopes):
                continue
            for array in dict.fromkeys(a.array for a in leaf.op.reads):
                if array in made:
                    yield place_of(program, leaf.path), array, fresh_name(program, f"r{array}")

    def plan(self, context: Context, arguments: tuple[Place, str, str]) -> Program | Refusal:
        program = context.program
        leaf, (_, array, name) = leaf_at(program, arguments[0]), arguments
        taken = name_fault(program, name)
        if taken is not None:  # 1
            return taken
        reads = set(_reads_of(leaf, array))
        if len(reads) != 1:
            return structural(Code.NOT_READ, f"{arguments[0]} does not read {array} at one index.", leaf.path)
        access = reads.pop()
        definition = _defined(program, leaf, access)
        if isinstance(definition, Refusal):  # 2
            return definition
        parts = _makers(program, definition)
        if isinstance(parts, Refusal):  # 2
            return parts
        for part, _ in parts:  # 3
            for operand in part.write.leaf.op.reads:
                witness = overwritten(program, part, operand)
                if witness is not None:
                    return _changed(witness)
        if any(s.mark == "v" for s in leaf.scopes):  # 4
            return structural(Code.MARKED, f"{arguments[0]} is vectorised: clear that mark first.", leaf.path)
        fresh = provenances(context)
        element = Access(name, tuple(Affine.iterator(d) for d in range(len(leaf.scopes))))
        dims = tuple(Dim(s.size, False, next(fresh)) for s in leaf.scopes)
        location = context.target.temporary(leaf.scopes) if leaf.scopes else "heap"
        buffer = Buffer(name, program.buffer_of[array].dtype, dims, location, (name,), next(fresh))
        again = [_again(part, over, element, leaf, fresh) for part, over in parts]
        body = splice(program.body, leaf.path, 1, (*again, _replaced(leaf.op, access, element)))
        return program.edit(body=body, buffers=(*program.buffers, buffer))

    def inverse(self, context: Context, arguments: tuple[Place, str, str], result: Program) -> Move:
        return Move("use_kept", (arguments[2], arguments[1]))


def _makers(program: Program, definition: Definition) -> list[tuple[Definition, tuple[int, ...]]] | Refusal:
    """What makes a value, in order: definitions, and the depths of the scopes that each is repeated over."""
    if definition.write.kind != "a":
        return [(definition, ())]
    whole = reduction(program, definition)
    if whole is None:
        return Refusal(
            Code.NOT_ONE_REDUCTION,
            f"What is added up in {definition.read.element} is not surely one whole nest behind one start.",
            (definition.read.leaf.path, definition.write.leaf.path),
        )
    return [(whole.start, ()), (whole.total, whole.over)]


def _again(
    part: Definition, over: tuple[int, ...], target: Access, at: Leaf, fresh: Iterator[Provenance]
) -> Node:
    """The defining operation once more before ``at``, under scopes of its own where it is repeated."""
    origin = part.write.leaf
    loops = {d: Affine.iterator(len(at.scopes) + k) for k, d in enumerate(over)}
    images = part.images | loops
    operands = tuple(substituted(o, images) for o in origin.op.operands)
    op = Op(target, origin.op.accumulate, origin.op.function, operands, at.op.guard, provenance=next(fresh))
    return nest([origin.scopes[d].size for d in over], op, fresh)


@register
class UseKept(Transformation[tuple[str, str]]):
    """Use a value that is kept elsewhere, in place of computing it again: the inverse of recompute.

    ``use_kept NAME T``: NAME is computed directly before its one use; T holds the same.

    Before::

        r f32 [8:N] stack
        8 t[{0}] = exp(x[{0}])
        8 r[{0}] = exp(x[{0}])
        | y[{0}] = r[{0}]*2

    After ``use_kept r t``::

        8 t[{0}] = exp(x[{0}])
        8 y[{0}] = t[{0}]*2

    Legal iff
      1. NAME is a temporary alone in its buffer, written by one operation, or a start and a nest behind it,
         and read by the next operation only;
      2. some write of T makes the same value, and recomputing the result gives this program back.
    """

    name = "use_kept"
    family = "values"
    parameters = (Parameter("name", "name"), Parameter("array", "buffer"))

    def candidates(self, context: Context) -> Iterator[tuple[str, str]]:
        program = context.program
        for buffer in program.buffers:
            made = _made_before_use(program, buffer.name) if buffer.arrays == (buffer.name,) else None
            if made is not None:
                last = made[0][-1].op
                for other in (leaf.op for leaf in program.leaves):
                    if other.target.array != buffer.name and _alike(other, last):
                        yield buffer.name, other.target.array

    def plan(self, context: Context, arguments: tuple[str, str]) -> Program | Refusal:
        program = context.program
        name, array = arguments
        if array not in program.buffer_of or name not in program.buffer_of:
            raise NoSuchPlace(f"There is no array {name if name not in program.buffer_of else array}.")
        made = _made_before_use(program, name)
        if made is None or program.buffer_of[name].arrays != (name,):  # 1
            return structural(Code.NOT_RECOMPUTED, f"{name} is not computed directly before its one use.")
        makers, user = made
        for leaf in program.leaves:  # 2
            if leaf.op.target.array != array or not _alike(leaf.op, makers[-1].op):
                continue
            result = self._with(context, leaf, makers, user, name)
            if result is not None:
                return result
        return structural(
            Code.NOT_THE_SAME, f"No write of {array} surely makes the value of {name}.", makers[-1].path
        )

    def _with(
        self, context: Context, kept: Leaf, makers: Sequence[Leaf], user: Leaf, name: str
    ) -> Program | None:
        program = context.program
        images = _match(kept.op, makers[-1].op)
        if images is None:
            return None
        access = kept.op.target.substitute(images)
        # implied: recomputing the result must give the program back, which has only the scopes around the use
        if any(d >= len(user.scopes) for form in access.index for d in form.depths):
            return None
        used = next(a for a in user.op.reads if a.array == name)
        body = splice(program.body, user.path, 1, (_replaced(user.op, used, access),))
        body = splice(body, makers[0].path, len(makers), ())
        result = program.edit(body=body)
        place = next((leaf for leaf in result.leaves if leaf.op == _replaced(user.op, used, access)), None)
        if place is None:  # implied: it has just been put there
            return None
        arguments = (place_of(result, place.path), kept.op.target.array, name)
        redone = Recompute().plan(replace(context, program=result), arguments)
        if not isinstance(redone, Program) or redone.body != program.body:
            return None
        buffer = redone.buffer_of[name]
        mine = program.buffer_of[name]
        return result if replace(buffer, location=mine.location) == mine else None


def _made_before_use(program: Program, name: str) -> tuple[tuple[Leaf, ...], Leaf] | None:
    """(what makes a temporary, what uses it), where these stand side by side and are alone: one operation
    makes it, or a start and an accumulation, which may have scopes of its own."""
    operations = leaves_of(program, name)
    if len(operations) not in (2, 3) or name in program.interface:
        return None
    *makers, user = operations
    first, last = makers[0], makers[-1]
    *above, at = first.path
    fits = (
        all(maker.op.target.array == name for maker in makers)
        and [bool(maker.op.accumulate) for maker in makers] == [False, True][: len(makers)]
        # implied: recomputing the result must give the program back
        and last.path[: len(first.path)] == (*above, at + len(makers) - 1)
        and user.path == (*above, at + len(makers))
        and user.op.target.array != name
        and len(set(_reads_of(user, name))) == 1
    )
    return (tuple(makers), user) if fits else None


def _alike(a: Op, b: Op) -> bool:
    """The same instruction on the same arrays, whatever the indices."""
    # implied: recomputing the result must give the program back; this is for the list, and quicker
    if (a.function, a.accumulate, len(a.operands)) != (b.function, b.accumulate, len(b.operands)):
        return False
    # implied: recomputing the result must give the program back; this is for the list, and quicker
    return all(
        (isinstance(x, Access) and isinstance(y, Access) and x.array == y.array)
        or (not isinstance(x, Access) and type(x) is type(y))
        for x, y in zip(a.operands, b.operands, strict=True)
    )


def _match(kept: Op, made: Op) -> dict[int, Affine] | None:
    """The iterators of ``kept`` in those of ``made``, read off operands indexed by single iterators."""
    images: dict[int, Affine] = {}
    for ours, theirs in zip(kept.operands, made.operands, strict=True):
        pairs: list[tuple[Index, Index]] = []
        if isinstance(ours, Access) and isinstance(theirs, Access):
            pairs = list(zip(ours.index, theirs.index, strict=True))
        elif isinstance(ours, Affine) and isinstance(theirs, Affine):
            pairs = [(ours, theirs)]
        for form, wanted in pairs:
            if isinstance(form, Indirect) or isinstance(wanted, Indirect):
                continue
            if len(form.terms) == 1 and form.terms[0][1] == 1:
                images.setdefault(form.terms[0][0], wanted - form.const)
    needed = {d for form in kept.target.index for d in form.depths}
    # implied: recomputing the result must give the program back
    return images if needed <= images.keys() else None


@register
class Contract(Transformation[tuple[Place, str]]):
    """Make a product part of the sum that uses it: one instruction, rounded once.

    ``contract OP T``: OP is ``a += T``, ``a = T + b`` or ``a = b + T``; T holds a product.

    Before::

        8 t[] = x[{0}]*w[{0}]
        | y[] += t[]

    After ``contract y t``::

        8 y[] += x[{0}]*w[{0}]

    A sum of two becomes ``a = fma(x,w,b)``.

    Legal iff
      1. OP adds T up, or is the floating-point sum of T and something else, and the policy is not strict;
      2. T is a temporary; one write surely defines what OP reads, and it is a product;
      3. nothing that the product reads is written by it, or between it and OP;
      4. nothing else reads or writes T, nor does OP write it.
    """

    name = "contract"
    also = ("fma",)
    family = "values"
    parameters = (Parameter("operation", "op"), Parameter("array", "buffer"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, str]]:
        program = context.program
        if context.policy == "strict":
            return
        products = {leaf.op.target.array for leaf in program.leaves if leaf.op.function == "*"}
        for leaf in program.leaves:
            for array in dict.fromkeys(read.array for read in leaf.op.sources):
                if array in products and _addend(program, leaf, array) is not None:
                    yield place_of(program, leaf.path), array

    def plan(self, context: Context, arguments: tuple[Place, str]) -> Program | Refusal:
        program = context.program
        leaf, array = leaf_at(program, arguments[0]), arguments[1]
        op = leaf.op
        access = _addend(program, leaf, array)
        if access is None:  # 1
            return structural(Code.NOT_A_SUM, f"{arguments[0]} does not add {array}.", leaf.path)
        if not may_regroup(program, leaf, context.policy):
            return Refusal(
                Code.POLICY,
                "The policy strict keeps every rounding: the product has one of its own.",
                (leaf.path,),
            )
        definition = _defined(program, leaf, access)
        if isinstance(definition, Refusal):  # 2
            return definition
        origin = definition.write.leaf
        if origin.op.function != "*" or origin.op.accumulate or array in program.interface:
            return structural(
                Code.NOT_A_PRODUCT, f"{array} is no product of its own.", leaf.path, origin.path
            )
        if program.buffer_of[op.target.array].dtype != program.buffer_of[array].dtype:
            return structural(Code.OTHER_DTYPE, "The product and the sum have different dtypes.", leaf.path)
        for operand in origin.op.reads:  # 3
            witness = overwritten(program, definition, operand)
            if witness is not None:
                return _changed(witness)
        others = [t for t in accesses_of(program, array) if t.leaf.path not in (leaf.path, origin.path)]
        written = op.target.array == array  # there would be nothing left for it to begin from
        if others or written or program.buffer_of[array].arrays != (array,):  # 4
            return structural(
                Code.USED_ELSEWHERE, f"{array} is used elsewhere too.", *(t.leaf.path for t in others)
            )
        factors = tuple(substituted(o, definition.images) for o in origin.op.operands)
        rest = tuple(o for o in op.operands if o != access)
        folded = replace(op, function="fma" if rest else "*", operands=(*factors, *rest))
        body = splice(program.body, leaf.path, 1, (folded,))
        return program.edit(body=without(body, origin.path))

    def places(self, context: Context, arguments: tuple[Place, str]) -> tuple[Path, ...]:
        leaf = leaf_at(context.program, arguments[0])
        writes = [t.leaf.path for t in accesses_of(context.program, arguments[1]) if t.kind == "w"]
        return tuple(dict.fromkeys([leaf.path, *writes]))


def _addend(program: Program, leaf: Leaf, array: str) -> Access | None:
    """The read of an array whose value an operation adds, as an accumulation or to another floating-point
    number."""
    op, reads = leaf.op, _reads_of(leaf, array)
    if len(reads) != 1:
        return None
    if op.accumulate:
        return reads[0] if op.accumulate == "+" and not op.function else None
    floating = program.buffer_of[op.target.array].dtype in FLOATS
    return reads[0] if op.function == "+" and floating else None


@register
class Expand(Transformation[tuple[Place, str]]):
    """Give the product in a sum an instruction of its own: the inverse of contract.

    ``expand OP NAME``: OP is ``a += x*w`` or ``a = fma(x,w,b)``.

    Before::

        8 y[] += x[{0}]*w[{0}]

    After ``expand y t``::

        t f32 [8:N] stack
        8 t[{0}] = x[{0}]*w[{0}]
        | y[] += t[{0}]

    Legal iff
      1. OP accumulates a product by + or is a floating-point ``fma``, and the policy is not strict;
      2. NAME is new;
      3. OP stands in no vectorised scope.
    """

    name = "expand"
    family = "values"
    parameters = (Parameter("operation", "op"), Parameter("name", "name"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, str]]:
        program = context.program
        for leaf in program.leaves:
            if _adds_product(program, leaf) and not any(s.mark == "v" for s in leaf.scopes):
                yield place_of(program, leaf.path), fresh_name(program, f"t{leaf.op.target.array}")

    def plan(self, context: Context, arguments: tuple[Place, str]) -> Program | Refusal:
        program = context.program
        leaf, name = leaf_at(program, arguments[0]), arguments[1]
        op = leaf.op
        if not _adds_product(program, leaf):  # 1
            return structural(Code.NOT_A_PRODUCT, f"{arguments[0]} does not add a product.", leaf.path)
        if not may_regroup(program, leaf, context.policy):
            return Refusal(
                Code.POLICY, "The policy strict keeps this instruction's one rounding.", (leaf.path,)
            )
        taken = name_fault(program, name)
        if taken is not None:  # 2
            return taken
        if any(s.mark == "v" for s in leaf.scopes):  # 3
            return structural(Code.MARKED, f"{arguments[0]} is vectorised: clear that mark first.", leaf.path)
        fresh = provenances(context)
        element = Access(name, tuple(Affine.iterator(d) for d in range(len(leaf.scopes))))
        dims = tuple(Dim(s.size, False, next(fresh)) for s in leaf.scopes)
        location = context.target.temporary(leaf.scopes) if leaf.scopes else "heap"
        dtype = program.buffer_of[op.target.array].dtype
        buffer = Buffer(name, dtype, dims, location, (name,), next(fresh))
        product = Op(element, "", "*", op.operands[:2], op.guard, provenance=next(fresh))
        function = "" if op.accumulate else "+"
        added = replace(op, function=function, operands=(element, *op.operands[2:]))
        body = splice(program.body, leaf.path, 1, (product, added))
        return program.edit(body=body, buffers=(*program.buffers, buffer))

    def inverse(self, context: Context, arguments: tuple[Place, str], result: Program) -> Move | None:
        leaf = leaf_at(context.program, arguments[0])
        if leaf.op.prefetches:
            return None
        after = (*leaf.path[:-1], leaf.path[-1] + 1)
        return Move("contract", (place_of(result, after), arguments[1]))


def _adds_product(program: Program, leaf: Leaf) -> bool:
    op = leaf.op
    if op.accumulate:
        return op.accumulate == "+" and op.function == "*"
    floating = program.buffer_of[op.target.array].dtype in FLOATS
    # without an array the product would be read back as an index
    return op.function == "fma" and floating and any(isinstance(o, Access) for o in op.operands[:2])


@register
class DropDead(Transformation[tuple[Place]]):
    """Leave out an operation whose values nobody sees, and the scopes and buffers that it leaves empty.

    ``drop_dead OP``

    Before::

        y f32 [8] heap
        8 y[{0}] = 0
        8 y[{0}] = x[{0}]

    After ``drop_dead y``::

        y f32 [8] heap
        8 y[{0}] = x[{0}]

    Legal iff
      1. OP is not the only operation;
      2. no read, and no output at exit, sees a value that it writes.
    """

    name = "drop_dead"
    also = ("dead_code_elimination",)
    family = "values"
    parameters = (Parameter("operation", "op"),)

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        program = context.program
        written = writers(program)
        for leaf in program.leaves:
            array = leaf.op.target.array
            unread = all(t.leaf.path == leaf.path for t in accesses_of(program, array) if t.kind == "r")
            if (unread and array not in program.outputs) or len(written[array]) > 1:
                yield (place_of(program, leaf.path),)

    def plan(self, context: Context, arguments: tuple[Place]) -> Program | Refusal:
        program = context.program
        leaf = leaf_at(program, arguments[0])
        if len(program.leaves) == 1:  # 1
            return structural(Code.LAST_OPERATION, "It is the kernel's only operation.", leaf.path)
        array = leaf.op.target.array
        write = MemoryAccess(leaf, leaf.op.target, "w")
        readers = [
            t for t in accesses_of(program, array) if t.kind != "w" and t.leaf.path != leaf.path
        ] + _exit(program, array)
        seen = seen_by(program, write, readers)
        if seen is not None:  # 2
            reader, witness = seen
            who = "the caller" if not reader.leaf.path else f"'{reader.element}'"
            nodes = (leaf.path, reader.leaf.path) if reader.leaf.path else (leaf.path,)
            shown = witness if reader.leaf.path else None
            return Refusal(
                Code.SEEN, f"A value of {array} that it writes may be read by {who}.", nodes, shown
            )
        return program.edit(body=without(program.body, leaf.path))
