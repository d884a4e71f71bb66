"""Instruction moves: run a subtree as one machine instruction whose own text it unifies with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dojo_core.moves.core import (
    Context,
    Move,
    Parameter,
    Refusal,
    Transformation,
    register,
    structural,
)
from dojo_core.moves.marks import layouts
from dojo_core.moves.places import Place, fresh_name, leaves_under, place_of, scope_at, scopes
from dojo_core.program.codes import Code
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.marks import mark_word
from dojo_core.program.tree import Leaf, Op, Path, Program, Scope


@register
class UseInstruction(Transformation[tuple[Place, str]]):
    """Run a scope and what is in it as one machine instruction (tensorize).

    ``use_instruction S NAME``: S is the scope over the lanes. An instruction is described by its own program
    text; vpdpbusd, for one: ``16 4 c[{0}] += a[{0},{1}]*b[{0},{1}]`` with a in u8, b in i8 and c in i32.

    Before::

        x u8 [8] heap
        w i8 [2, 16, 4] heap
        y i32 [16] heap
        2 16 4 y[{1}] += x[{0}*4+{2}]*w[{0},{1},{2}]

    After ``use_instruction y@1 vpdpbusd``::

        2 16:vpdpbusd 4 y[{1}] += x[{0}*4+{2}]*w[{0},{1},{2}]

    Legal iff
      1. S is unmarked;
      2. the target has the instruction, in as many lanes as S has iterations;
      3. S is a nest of as many scopes as in the instruction's text, unmarked, around one operation (V3);
      4. their sizes are the instruction's;
      5. the operation is the instruction's, unguarded;
      6. its arrays have the instruction's dtypes;
      7. they lie in memory as the instruction takes them; an operand may be the same in all lanes, and the
         rows that transpose turns may lie any distance apart, those that it writes in another array.

    The mark changes no value: a program that has it means the same where the target lacks the instruction,
    and runs there as it stands.

    Source: the instruction mapping of Exo (Ikarashi et al., PLDI '22) and TVM's tensorize.
    """

    name = "use_instruction"
    also = ("tensorize",)
    family = "instructions"
    parameters = (Parameter("scope", "scope"), Parameter("name", "instruction"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, str]]:
        widths = dict.fromkeys(sorted(context.target.instructions))
        for path, scope, _ in scopes(context.program):
            inner = scope.body[0]
            if scope.mark or len(scope.body) != 1 or not isinstance(inner, Scope):
                continue
            for name, lanes in widths:
                if lanes == scope.size:
                    yield place_of(context.program, path), name

    def plan(self, context: Context, arguments: tuple[Place, str]) -> Program | Refusal:
        place, name = arguments
        path, scope, _ = scope_at(context.program, place)
        if scope.mark:  # 1
            return structural(Code.MARKED, f"{place} is {mark_word(scope.mark)} already.", path)
        lanes = {n for known, n in context.target.instructions if known == name}
        if not lanes or (scope.size in INSTRUCTIONS[name].needs and scope.size not in lanes):  # 2
            known = ", ".join(f"{n} in {k} lanes" for n, k in sorted(context.target.instructions)) or "none"
            sentence = (
                f"The target {context.target.name} has no {name} in {scope.size} lanes (it has: {known})."
            )
            return structural(Code.INSTRUCTION_MISSING, sentence, path)
        return context.program.splice(path, 1, (replace(scope, mark=name),))

    def inverse(self, context: Context, arguments: tuple[Place, str], result: Program) -> Move:
        return Move("clear_mark", arguments[:1])

    def enablers(self, context: Context, arguments: tuple[Place, str], refusal: Refusal) -> Iterator[Move]:
        program, name = context.program, arguments[1]
        path, scope, _ = scope_at(program, arguments[0])
        instruction = INSTRUCTIONS.get(name)
        if instruction is None or not any(_like(program, path, name)):
            return
        if refusal.code == Code.INSTRUCTION_SIZE:
            for lanes in instruction.needs:
                if scope.size > lanes and scope.size % lanes == 0:
                    yield Move("split_scope", (place_of(program, path), lanes))
            inner = scope.body[0]
            group = _group(name, scope.size if scope.size in instruction.needs else max(instruction.needs))
            if isinstance(inner, Scope) and inner.size > group and inner.size % group == 0:
                yield Move("split_scope", (place_of(program, (*path, 0)), group))
        if refusal.code == Code.INSTRUCTION_SHAPE:
            for number in range(1, len(scope.body)):
                yield Move("fission_scope", (place_of(program, path), place_of(program, (*path, number))))
            inside = _inside(scope, path)
            if isinstance(inside[1], Scope) and inside[1].mark:
                yield Move("clear_mark", (place_of(program, inside[0]),))
            above = program.scopes_above(path)
            if isinstance(inside[1], Scope) and isinstance(inside[1].body[0], Scope):
                yield Move("interchange", (place_of(program, path),))
            if isinstance(scope.body[0], Op) and above:
                yield Move("interchange", (place_of(program, path[:-1]),))
        if refusal.code == Code.INSTRUCTION_ACCESS:
            yield from layouts(program, path)
            # The layout that it takes is one of a copy, where an input has another.
            for read in program.leaves:
                if read.path[: len(path)] == path:
                    for access in read.op.reads:
                        if access.array not in program.interface:
                            continue
                        copy = fresh_name(program, f"p{access.array}")
                        yield Move("stage_read", (access.array, place_of(program, path[:1]), copy))

    def alternatives(
        self, context: Context, arguments: tuple[Place, str], refusal: Refusal
    ) -> Iterator[Move]:
        """The scopes in it that are as many around an operation as the instruction has."""
        program, name = context.program, arguments[1]
        path, _, _ = scope_at(program, arguments[0])
        if refusal.code == Code.INSTRUCTION_SHAPE:
            for leaf in _like(program, path, name):
                inside = leaf.path[: -len(_meaning(name)[1].scopes)]
                if len(inside) > len(path):
                    yield Move("use_instruction", (place_of(program, inside), name))

    def needs(self, context: Context, arguments: tuple[Place, str], refusal: Refusal) -> str:
        path, _, _ = scope_at(context.program, arguments[0])
        form = (Code.INSTRUCTION_SHAPE, Code.INSTRUCTION_SIZE)
        if refusal.code in form and not any(_like(context.program, path, arguments[1])):
            return f"Nothing in {arguments[0]} computes what {arguments[1]} does, on arrays of its dtypes."
        return ""


def _meaning(name: str) -> tuple[Program, Leaf]:
    """An instruction's own program, in its widest form, and the operation in it."""
    from dojo_core.program.unification import meaning

    return meaning(name, max(INSTRUCTIONS[name].needs))


def _like(program: Program, path: Path, name: str) -> Iterator[Leaf]:
    """The operations under a scope that compute what an instruction does, on arrays of its dtypes."""
    pattern, wanted = _meaning(name)
    for leaf in leaves_under(program, path):
        same = (leaf.op.accumulate, leaf.op.function) == (wanted.op.accumulate, wanted.op.function)
        if same and _dtypes(program, leaf) == _dtypes(pattern, wanted):
            yield leaf


def _dtypes(program: Program, leaf: Leaf) -> tuple[str, list[str]]:
    return (
        program.buffer_of[leaf.op.target.array].dtype,
        sorted(program.buffer_of[access.array].dtype for access in leaf.op.reads),
    )


def _group(name: str, lanes: int) -> int:
    """What one lane takes at once."""
    from dojo_core.program.unification import meaning

    return meaning(name, lanes)[1].scopes[-1].size


def _inside(scope: Scope, path: Path) -> tuple[Path, Scope | Op]:
    return (*path, 0), scope.body[0]
