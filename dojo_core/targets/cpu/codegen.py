"""Plain C from a program: reads the tree and its marks, and matches no kernels.

The C keeps the program's names: a scope at depth 2 is ``for (int i2 = 0; ...)``, a buffer is a pointer
or an array of its own name, a register buffer ``acc`` is the locals ``acc_0_0``, ``acc_0_1``, ... Above
the statements of an operation stands its line of program text as a comment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from dojo_core.codegen.code import Code, NotGeneratable, Parameter
from dojo_core.codegen.conversions import scalar_conversion, vector_conversion, vector_type
from dojo_core.codegen.keys import key_suffix
from dojo_core.codegen.scalars import (
    WRAPPING,
    Scalars,
    atom,
    c_type,
    converted_in,
    guard_text,
    index_text,
    indirect_text,
    literal,
    moves_bytes,
)
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import (
    COMPARISONS,
    FLOATS,
    HALVES,
    KEYS,
    NARROW_FLOATS,
    TO_WHOLE,
    arithmetic,
    dtypes_of,
    operand_dtype,
)
from dojo_core.program.functions import FUNCTIONS, LARGEST
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.marks import APART, gathers
from dojo_core.program.printing import op_text
from dojo_core.program.tables import Index, Indirect, Lookup, Table, affine, plus
from dojo_core.program.target import Target
from dojo_core.program.tree import (
    DTYPE_BYTES,
    Access,
    Buffer,
    Node,
    Number,
    Op,
    Operand,
    Path,
    Program,
    Scope,
)
from dojo_core.program.unification import Mismatch, Unified, unify
from dojo_core.program.vector_form import form_fault, lanes_for
from dojo_core.targets.cpu.chains import BARRIER, Read, Scalar, misread
from dojo_core.targets.cpu.dialect import Dialect
from dojo_core.targets.cpu.limits import LOCATIONS, MARKS, MAX_LINES, limits_of
from dojo_core.targets.cpu.processor import Processor, host
from dojo_core.targets.cpu.schedule import schedule
from dojo_core.targets.cpu.shortcuts import Shortcut, shortcuts
from dojo_core.targets.cpu.vecmath import ERROR_BOUNDS, F64_ERROR_BOUND, PREAMBLE, preamble

__all__ = ["PREAMBLE", "STRICT", "WRITTEN_OUT", "generate", "preamble"]

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
_SHORTEST = 16  # bytes of a vector register
_LINE_WIDTH = 100

_KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int
    long register restrict return short signed sizeof static struct switch typedef union unsigned void
    volatile while asm typeof linux unix i386 bool true false nullptr constexpr alignas alignof
    static_assert thread_local arrays workspace prefetch prefetch_write
    INLINE KERNEL_LEVEL STRICT WRITTEN_OUT""".split()  # noqa: SIM905
)
_OURS = re.compile(
    rf"(?:bf|[fiu])\d+(?:e\d+m\d+[a-z]*)?(?:x\d+)?(?:_\w+)?|i\d+|taken\d+|_.*|kernel_\w+|(?:{'|'.join(INSTRUCTIONS)})_\d+"
)

_HORIZONTAL = {"+": "sum", "*": "product", "max": "maximum", "min": "minimum"}
STRICT = '__attribute__((optimize("fp-contract=off"))) '
# What gcc makes of many short reductions among scalars, lanes gathered one by one, takes it half a minute.
WRITTEN_OUT = '__attribute__((optimize("no-tree-slp-vectorize"))) '
_MANY = 512  # steps of reductions in loops that gcc writes out by itself
_PEELED = 16  # iterations of such loops


def generate(program: Program, policy: str = "reassoc", processor: Processor | None = None) -> Code:
    """The C function of a program for a processor (default: this machine's), behind its ``preamble``.

    ``policy`` is the problem's floating-point policy; under ``strict`` the compiler may fuse a product
    and a sum only inside one multiply-accumulate. Interface arrays come in as ``arrays[k]``, heap
    temporaries are 64-byte aligned pieces of ``workspace``, stack buffers and registers are locals of
    the body of their owning scope, so that each iteration (and thread) has its own.

    Raises NotGeneratable, with a sentence, for dtypes, marks, locations and accesses that this target
    has no C for, and where the C would be longer than the limit.
    """
    return _Generator(program, policy, processor or host()).code()


class _Generator:
    """The state of one generation; ``lines`` are (text, node) in order."""

    def __init__(self, program: Program, policy: str, processor: Processor):
        self.program, self.dtypes = program, dtypes_of(program)
        self.limits, self.dialect = limits_of(processor), Dialect(processor.instruction_set)
        self.strict = policy == "strict"
        self.lines: list[tuple[str, Path | None]] = []
        self.images: dict[int, Affine] = {}  # unrolled iterators: their value in the copy being written
        self.statements: list[Scalar] = []  # of the outermost loop being written
        self.peeled = 0  # steps of reductions in loops that gcc writes out
        self.explained: set[Path] = set()  # operations whose comment is written
        self.asked: set[str] = set()  # prefetches of this iteration of the innermost loop being written
        self.bounds: dict[str, float] = {}
        self.pieces: dict[str, int] = {}  # heap temporaries: byte offset in the workspace
        self.locals: dict[str, dict[str, str]] = {}  # register buffers: local name -> C type
        self.scalars = _Scalars(program, self.strict, self._place)
        self._check()
        self.names = _names(program)
        self.owned = _owned(program, self.limits)
        self.lanes = self._register_lanes()
        self.masks = self._register_masks()
        self.shortcuts = shortcuts(program, self.masks)
        self.within: Shortcut | None = None  # of the run being written
        self.taken = ""  # where it is asked: the local of the lanes that take an arm
        self.short = False  # where none does
        self.workspace_bytes = 0

    # ------------------------------------------------------------------ frame

    def code(self) -> Code:
        program = self.program
        symbol = f"kernel_{program.name}"
        self._line(f"void {symbol}(void *const *arrays, void *workspace) {{", None, 0)
        parameters = self._interface()
        tables = len(self.lines)
        for buffer in program.buffers:
            if buffer.location == "heap" and not any(a in program.interface for a in buffer.arrays):
                offset = self.workspace_bytes
                kind, name = c_type(buffer.dtype), self.names[buffer.name]
                self._line(f"{kind} *restrict {name} = (void *)((char *)workspace + {offset});", None, 1)
                self.workspace_bytes += -(-buffer.bytes // ALIGNMENT) * ALIGNMENT
        if not self.workspace_bytes:
            self._line("(void)workspace;", None, 1)
        self._body(program.body, (), (), 1)
        self._line("}", None, 0)
        self.lines[tables:tables] = self._tables()
        attributes = STRICT * self.strict + WRITTEN_OUT * (self.peeled > _MANY)
        return Code(
            text=attributes + "\n".join(text for text, _ in self.lines) + "\n",
            symbol=symbol,
            nodes=tuple(path for _, path in self.lines),
            parameters=parameters,
            workspace_bytes=self.workspace_bytes,
            error_bound=math.fsum(self.bounds.values()),
        )

    def _tables(self) -> list[tuple[str, Path | None]]:
        """The constant tables that the code reads: where all is unrolled, none is left."""
        code = "\n".join(text for text, _ in self.lines if not text.lstrip().startswith("//"))
        names = ((table, self.names[table.name]) for table in self.program.tables.values())
        used = [(table, name) for table, name in names if re.search(rf"\b{re.escape(name)}\[", code)]
        return [("    " + text, None) for table, name in used for text in _table(table, name)]

    def _interface(self) -> tuple[Parameter, ...]:
        program = self.program
        parameters: dict[str, Parameter] = {}
        for role, arrays in (("in", program.inputs), ("out", program.outputs)):
            for array in arrays:
                buffer = program.buffer_of[array]
                if buffer.name in parameters:
                    continue
                if buffer.location != "heap":
                    raise NotGeneratable(f"{array} is an input or output, which must lie on the heap.")
                const = "const " if role == "in" else ""
                k, name = len(parameters), self.names[buffer.name]
                self._line(f"{const}{c_type(buffer.dtype)} *restrict {name} = arrays[{k}];", None, 1)
                shape = tuple(d.size for d in buffer.dims if d.materialised)
                parameters[buffer.name] = Parameter(buffer.name, buffer.dtype, shape, role)
        return tuple(parameters.values())

    def _line(self, text: str, path: Path | None, indent: int) -> None:
        if len(self.lines) >= MAX_LINES:
            raise NotGeneratable(
                f"The C would be longer than {MAX_LINES} lines: unroll less or a smaller scope."
            )
        self.lines.append(("    " * indent + text, path))

    def _check(self) -> None:
        for buffer in self.program.buffers:
            if buffer.location not in LOCATIONS:
                raise NotGeneratable(
                    f"{buffer.name} lies in {buffer.location}, which the CPU target has not: "
                    f"use {', '.join(LOCATIONS)}."
                )

    # ------------------------------------------------------------------ scopes

    def _body(self, body: tuple[Node, ...], path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        """The children of a scope (or of the program), after the declarations of what it owns."""
        begin = len(self.lines)
        number = 0
        while number < len(body):
            shortcut = None if self.within else self.shortcuts.get((*path, number))
            run = body[number : number + (shortcut.nodes if shortcut else 1)]
            if shortcut:
                self._either_way(shortcut, run, (*path, number), scopes, indent)
            else:
                self._nodes(run, (*path, number), scopes, indent)
            number += len(run)
        declared = [
            ("    " * indent + text, path or None)
            for buffer in self.owned.get(path, ())
            for text in self._declarations(buffer)
        ]
        self.lines[begin:begin] = declared

    def _nodes(self, nodes: tuple[Node, ...], path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        """Siblings from a path on."""
        for number, node in enumerate(nodes, path[-1]):
            if isinstance(node, Op):
                self._operation(node, (*path[:-1], number), scopes, indent)
            else:
                self._scope(node, (*path[:-1], number), scopes, indent)

    def _either_way(
        self, shortcut: Shortcut, run: tuple[Node, ...], path: Path, scopes: tuple[Scope, ...], indent: int
    ) -> None:
        """A run of siblings as it stands, and what is left of it where no lane takes an arm."""
        taken = f"taken{path[-1]}"
        around = path[:-1] or None  # lines of no node of the run: the profile's timers are around these
        self.within, self.taken = shortcut, taken
        self._line(f"{shortcut.kind} {taken} = {{0}};", around, indent)
        self._nodes(run, path, scopes, indent)
        self.taken, asked = "", set(self.asked)
        self._line(f"if ({shortcut.kind.replace('i', 'f', 1)}_any({taken})) {{", around, indent)
        self._nodes(run, path, scopes, indent + 1)
        self._line("} else {", around, indent)
        self._line(f"// No lane takes {', '.join(shortcut.names)}.", around, indent + 1)
        self.short, self.asked = True, asked
        self._nodes(run, path, scopes, indent + 1)
        self._line("}", around, indent)
        self.within, self.short = None, False

    def _scope(self, scope: Scope, path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        depth = len(scopes)
        above = (*scopes, scope)
        if scope.mark in INSTRUCTIONS:
            self._instruction(scope, path, scopes, indent)
            return
        if scope.mark and scope.mark not in MARKS:
            raise NotGeneratable(f"The CPU target knows no :{scope.mark} scopes; it knows :p, :u and :v.")
        if scope.mark == "v":
            if len(scope.body) != 1 or not isinstance(scope.body[0], Op):
                raise NotGeneratable("A :v scope wraps exactly one operation.")
            self._operation(scope.body[0], (*path, 0), above, indent)
        elif scope.mark == "u":
            self._written_out(scope, path, scopes, indent)
        else:
            if scope.mark == "p":
                shared = schedule(self.program, path)
                self._line(f"#pragma omp parallel for schedule({shared})", path, indent)
            kind = "int" if scope.size < 2**31 else "i64"
            self._line(f"for ({kind} i{depth} = 0; i{depth} < {scope.size}; ++i{depth}) {{", path, indent)
            begin, inside = len(self.lines), len(self.statements)
            asked, self.asked = self.asked, set()
            self._body(scope.body, path, above, indent + 1)
            self.asked = asked
            if misread(self.statements[inside:], depth):
                self.lines.insert(begin, ("    " * (indent + 1) + BARRIER, path))
            if not depth:
                self.statements.clear()
            self._line("}", path, indent)

    def _written_out(self, scope: Scope, path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        """The iterations of a scope one after the other."""
        braces = bool(self.owned.get(path))
        for value in range(scope.size):
            self.images[len(scopes)] = Affine((), value)
            if braces:
                self._line("{", path, indent)
            begin = len(self.lines)
            self._body(scope.body, path, (*scopes, scope), indent + braces)
            if braces and len(self.lines) == begin:
                self.lines.pop()
            elif braces:
                self._line("}", path, indent)
        self.images.pop(len(scopes), None)

    def _instruction(self, scope: Scope, path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        """A scope that is one machine instruction; where the processor lacks it, as plain loops."""
        match = unify(self.program, scope, len(scopes), scope.mark)
        if isinstance(match, Mismatch):
            raise NotGeneratable(match.sentence)
        if not _has(scope, self.limits):
            written_to = self.program.buffer_of[match.operation.target.array]
            if written_to.location == "register":  # which has no address: each lane is named
                self._written_out(scope, path, scopes, indent)
            else:
                self._scope(replace(scope, mark=""), path, scopes, indent)
            return
        nest = [scope]
        while isinstance(nest[-1].body[0], Scope):
            nest.append(nest[-1].body[0])
        above = (*scopes, *nest)
        inside = {len(scopes) + k: Affine() for k in range(1, len(nest))}  # every operand begins at its first
        leaf_path = (*path, *(0 for _ in nest))
        written = match.operation.substitute(inside | self.images)
        self._explain(match.operation, leaf_path, indent)
        lane, word = len(scopes), match.instruction.word
        for access in written.prefetches:
            self._prefetch(access.substitute({lane: Affine()}), scopes, leaf_path, indent)
        if match.instruction.rows:
            self._rows(match, above, lane, leaf_path, indent)
            return
        whole = vector_type(word, match.lanes)
        operands = []
        for access, shared in match.operands:
            begin = access.substitute(inside | self.images | {lane: Affine()})
            place = f"&{self._place(begin, above)}"
            operands.append(
                f"{whole}_splat({word}_word({place}))" if shared else f"{whole}_load((const {word} *){place})"
            )
        target = self._place(written.target, above, lane)
        name = f"{scope.mark}_{match.lanes}"
        dtype = self.dtypes[written.target.array]
        if self.program.buffer_of[written.target.array].location == "register":
            self._line(f"{target} = {name}({target}, {', '.join(operands)});", leaf_path, indent)
        else:
            held = vector_type(dtype, match.lanes)
            value = f"{name}({held}_load(&{target}), {', '.join(operands)})"
            self._line(f"{held}_store(&{target}, {value});", leaf_path, indent)

    def _rows(self, match: Unified, above: Sequence[Scope], lane: int, leaf_path: Path, indent: int) -> None:
        """An instruction on rows in memory: where each array's begin, and how far apart they lie."""
        inside = {depth: Affine() for depth in range(lane, len(above))}
        arguments = []
        for access in (match.operation.target, *(access for access, _ in match.operands)):
            begin = access.substitute(inside | self.images)
            apart = max(_stride(self._flat(access), depth) for depth in inside)
            arguments.append(f"&{self._place(begin, above)}, {apart}")
        name = f"{match.instruction.name}_{match.lanes}"
        self._line(f"{name}({', '.join(arguments)});", leaf_path, indent)

    # ------------------------------------------------------------------ storage

    def _register_lanes(self) -> dict[str, int]:
        """Lanes of the vectors that each register buffer consists of (1: scalars)."""
        lanes: dict[str, int] = {}
        for leaf in self.program.leaves:
            depth = _lane_depth(leaf.scopes, self.limits)
            if depth is None:
                continue
            width = leaf.scopes[depth].size
            for access in (leaf.op.target, *leaf.op.reads):
                buffer = self.program.buffer_of[access.array]
                if buffer.location != "register" or not _stride(self._flat(access), depth):
                    continue
                if lanes.setdefault(buffer.name, width) != width:
                    raise NotGeneratable(f"{buffer.name} is used with vectors of different widths.")
        return lanes

    def _register_masks(self) -> dict[str, str]:
        """Truth in registers that comparisons of whole vectors write and only selections among numbers of the
        same size read: the signed integers that it is held in, all bits of a lane alike, as both have it."""
        held: dict[str, set[str]] = {}
        for leaf in self.program.leaves:
            op = leaf.op
            compute = self.scalars.compute_dtype(op)
            signed = f"i{8 * DTYPE_BYTES[compute]}" if compute in ("f32", "f64") else ""
            vector = bool(leaf.scopes) and leaf.scopes[-1].mark == "v"
            for number, access in enumerate((op.target, *op.reads)):
                by = op.function in COMPARISONS if number == 0 else op.function == "select"
                first = number == 0 or access == op.operands[0]
                alone = op.operands.count(access) == (number > 0) and not op.accumulate
                fits = by and first and alone and vector
                fits = fits and _stride(self._flat(access), len(leaf.scopes) - 1) == 1
                held.setdefault(access.array, set()).add(signed if fits else "")
        return {
            buffer.name: next(iter(kinds))
            for buffer in self.program.buffers
            if buffer.location == "register" and buffer.dtype == "bool"
            for kinds in [set().union(*(held.get(array, set()) for array in buffer.arrays))]
            if len(kinds) == 1 and "" not in kinds
        }

    def _declarations(self, buffer: Buffer) -> list[str]:
        if buffer.location == "stack":
            kind, name = c_type(buffer.dtype), self.names[buffer.name]
            sizes = " * ".join(str(d.size) for d in buffer.dims if d.materialised and d.size != 1) or "1"
            return [f"{kind} {name}[{sizes}] __attribute__((aligned({ALIGNMENT})));"]
        kinds = self.locals.pop(buffer.name, {})
        lines: list[str] = []
        for name, kind in kinds.items():
            if lines and len(lines[-1]) + len(name) + 2 < _LINE_WIDTH:
                lines[-1] += f", {name}"
            else:
                lines.append(f"{kind} {name}")
        return [f"{line};" for line in lines]

    def _flat(self, access: Access) -> Index:
        """The cell's number in its buffer: row-major over the materialised dimensions."""
        buffer = self.program.buffer_of[access.array]
        flat: Index = Affine()
        step = 1
        for form, dim in zip(reversed(access.index), reversed(buffer.dims), strict=True):
            if dim.materialised:
                flat = plus(flat, form * step)
                step *= dim.size
        return flat

    def _register(self, access: Access, lane: int | None) -> tuple[str, int | None]:
        """The local that holds a cell, and the lane in it (None: the whole local, scalar or vector)."""
        buffer = self.program.buffer_of[access.array]
        width = self.lanes.get(buffer.name, 1)
        numbers: list[int] = []
        whole = lane is None and width == 1
        for form, dim in zip(access.index, buffer.dims, strict=True):
            if not dim.materialised:
                continue
            if lane is not None and _stride(form, lane) == 1:
                form, whole = form - Affine.iterator(lane), True
            if isinstance(form, Indirect) or not form.is_constant:
                raise NotGeneratable(
                    f"{access} moves with a scope that is not unrolled, but {buffer.name} is a register "
                    "buffer, which has no address: unroll the scope or move the buffer to the stack."
                )
            numbers.append(form.const)
        element: int | None = None
        if width > 1:
            numbers[-1], element = divmod(numbers[-1], width)
            if [d.size for d in buffer.dims if d.materialised][-1] == width:
                numbers.pop()  # one vector holds the whole last dimension
            if whole and element:
                raise NotGeneratable(f"The lanes of {access} would straddle two registers.")
        elif lane is not None:
            whole = True
        name = "_".join([self.names[buffer.name], *map(str, numbers)])
        dtype = self.masks.get(buffer.name, buffer.dtype)
        kind = c_type(dtype) if width == 1 else vector_type(dtype, width)
        self.locals.setdefault(buffer.name, {}).setdefault(name, kind)
        return name, None if whole else element

    def _place(self, access: Access, scopes: Sequence[Scope], lane: int | None = None) -> str:
        """An lvalue for a cell; with ``lane``, for a vector in a register or the first cell in memory."""
        buffer = self.program.buffer_of[access.array]
        if buffer.location == "register":
            name, element = self._register(access, lane)
            if element is not None and buffer.dtype == "i128":
                return f"{vector_type('i128', self.lanes[buffer.name])}_lane({name}, {element})"
            return name if element is None else f"{name}[{element}]"
        flat = self._flat(access)
        if lane is not None:
            flat = flat - Affine.iterator(lane)
        return f"{self.names[buffer.name]}[{self._index(flat, scopes)}]"

    def _index(self, index: Index, scopes: Sequence[Scope]) -> str:
        """A C expression of an index; what is looked up is read from its table or array."""
        if isinstance(index, Affine):
            return index_text(index, scopes)
        return indirect_text(index, scopes, self._looked_up)

    def _looked_up(self, lookup: Lookup, scopes: Sequence[Scope]) -> str:
        source = lookup.source
        if isinstance(source, Table):
            return f"{self.names[source.name]}[{index_text(source.flat(lookup.at), scopes)}]"
        return self._place(Access(source.name, lookup.at), scopes)

    # ------------------------------------------------------------------ operations

    def _operation(self, written: Op, path: Path, scopes: tuple[Scope, ...], indent: int) -> None:
        shortcut = self.within
        if shortcut and (
            path not in shortcut.tests if self.taken else self.short and path in shortcut.spared
        ):
            return
        op = written.substitute(self.images) if self.images else written
        guard = guard_text(op.guard, scopes)
        if guard is None:
            return
        self._explain(written, path, indent)
        for access in op.prefetches:
            self._prefetch(access, scopes, path, indent)
        vector = bool(scopes) and scopes[-1].mark == "v"
        if shortcut and self.short and path in shortcut.taken:
            op = replace(op, function="", operands=(op.operands[shortcut.taken[path]],))
        if not vector:
            self.statements.append(self._scalar(op, scopes))
            self.peeled += _peeled(scopes) if op.accumulate else 0
        statement = self._vector(op, scopes) if vector else self.scalars.statement(op, scopes)
        statement = _into_lane(statement)
        self._line(f"if ({guard}) {statement}" if guard else statement, path, indent)
        if shortcut and self.taken and path in shortcut.alike:
            value = "~" * shortcut.alike[path] + self._place(op.target, scopes, len(scopes) - 1)
            self._line(f"{self.taken} |= {value};", path, indent)
        bound = ERROR_BOUNDS.get(op.function)
        if bound is not None:
            f64 = self.dtypes[op.target.array] == "f64"
            self.bounds[str(path)] = F64_ERROR_BOUND if f64 else bound

    def _scalar(self, op: Op, scopes: tuple[Scope, ...]) -> Scalar:
        """What gcc's vectorizer sees of an operation on single numbers."""
        cells: list[tuple[str, Read | None]] = []
        for access in (op.target, *op.reads):
            buffer, flat = self.program.buffer_of[access.array].name, self._flat(access)
            cells.append((self._place(access, scopes), (buffer, flat) if isinstance(flat, Affine) else None))
        adds = op.accumulate in ("+", "*") and self.dtypes[op.target.array] in FLOATS
        return Scalar(*cells[0], adds, tuple(cells[1:]))

    def _explain(self, written: Op, path: Path, indent: int) -> None:
        """The line of program text above the first statement of an operation."""
        if path not in self.explained:
            self.explained.add(path)
            self._line(f"// {op_text(written)}", path, indent)

    def _prefetch(self, access: Access, scopes: tuple[Scope, ...], path: Path, indent: int) -> None:
        """Ask for the lines of an access, unless another copy of an unrolled operation has just done so."""
        buffer = self.program.buffer_of.get(access.array)
        if buffer is None or buffer.location != "heap":  # what lies on the stack is near, or not yet there
            return
        flat, size, count = affine(self._flat(access)), DTYPE_BYTES[buffer.dtype], 1
        if scopes and scopes[-1].mark == "v":
            depth, width = len(scopes) - 1, scopes[-1].size
            stride = abs(flat.coefficient(depth))
            count = max(1, -(-width * stride * size // ALIGNMENT))
            flat = Affine(tuple(t for t in flat.terms if t[0] != depth), flat.const)
        function = "prefetch" if all(a in self.program.inputs for a in buffer.arrays) else "prefetch_write"
        name, line = self.names[buffer.name], ALIGNMENT // size
        if size * (flat + count * line).reach([s.size for s in scopes]) >= LARGEST:
            return  # no address
        for k in range(count):
            text = f"{function}({name}, {size}*({index_text(flat + k * line, scopes, wide=True)}));"
            if text not in self.asked:
                self.asked.add(text)
                self._line(text, path, indent)

    def _converted(self, text: str, have: str, want: str, lanes: int) -> str:
        dialect = self.dialect
        return vector_conversion(text, have, want, lanes, dialect.resizes, dialect.truncates)

    def _vector(self, op: Op, scopes: tuple[Scope, ...]) -> str:
        program, lane, width = self.program, len(scopes) - 1, scopes[-1].size
        dtypes = [self.dtypes[a.array] for a in (op.target, *op.sources)]
        widths = lanes_for(op, self.dtypes, self.limits)
        if width not in widths:
            known = ", ".join(map(str, widths)) or "none"
            named = " and ".join(dict.fromkeys(dtypes))
            raise NotGeneratable(
                f"{width} is no vector width of this processor for {named} (they are: {known})."
            )
        function = op.function
        dtype = dtypes[0]
        compute = self.scalars.compute_dtype(op)
        formless = form_fault(op, self.dtypes)
        if formless is not None:
            raise NotGeneratable(formless)
        if any(c.form.uses(lane) for c in op.guard):
            raise NotGeneratable("The guard of a vector operation depends on the lane.")
        inner = arithmetic(dtype)  # of the accumulation; f16 and bf16 are rounded when written
        converting = function in DTYPE_BYTES
        compute = dtype if moves_bytes(op, dtype) or function == "bitcast" else converted_in(compute)
        kind = vector_type(compute, width)
        half = self.dialect.half_size(function, dtypes[1:], compute)

        def operand(value: Operand, compute: str) -> tuple[str, bool]:
            """Text in that dtype, and whether it is a vector (else one scalar for all lanes)."""
            if isinstance(value, Number):
                return literal(value.value, compute), False
            if isinstance(value, Affine):
                if not value.uses(lane):
                    return f"({c_type(compute)})({index_text(value, scopes)})", False
                step = value.coefficient(lane)
                base = Affine(tuple(t for t in value.terms if t[0] != lane), value.const)
                low, high = value.bounds([s.size for s in scopes])
                start = index_text(base, scopes, wide=low < -(2**31) or high >= 2**31)
                if function in KEYS:  # one addition, where gcc would put lanes together
                    each = ", ".join(str(k * step) for k in range(width))
                    lanes = vector_type(compute, width)
                    return f"({lanes}_splat(({c_type(compute)})({start})) + ({lanes}){{{each}}})", True
                each = ", ".join(f"{start} + {k * step}" for k in range(width))
                # In brackets, since where functions are macros its commas would part arguments.
                return f"(({vector_type(compute, width)}){{{each}}})", True
            buffer = program.buffer_of[value.array]
            if gathers(value, lane):
                elements = (value.substitute({lane: Affine((), k)}) for k in range(width))
                each = ", ".join(self._place(element, scopes) for element in elements)
                whole = _together(each, buffer.dtype, width)
                return self._converted(whole, buffer.dtype, compute, width), True
            stride = _stride(self._flat(value), lane)
            if not 0 <= stride <= (APART if buffer.location != "register" else 1):
                raise NotGeneratable(
                    f"The lanes of {value} are {stride} cells apart; they must be neighbours or one cell, or "
                    f"in memory at most {APART} apart."
                )
            if stride == 0 and half:
                splat = scalar_conversion(self._place(value, scopes), buffer.dtype, half)
                return self._converted(
                    f"{vector_type(half, width)}_splat({splat})", half, compute, width
                ), True
            if stride == 0:
                return scalar_conversion(self._place(value, scopes), buffer.dtype, compute), False
            if stride > 1:
                first = self._place(value.substitute({lane: Affine()}), scopes)
                whole = _spread(first, buffer.dtype, width, stride)
                return self._converted(whole, buffer.dtype, compute, width), True
            place = self._place(value, scopes, lane)
            if buffer.name in self.masks:
                return place, True
            if buffer.location != "register":
                place = f"{vector_type(buffer.dtype, width)}_load(&{place})"
            return self._converted(place, buffer.dtype, compute, width), True

        taken = [operand_dtype(op, k, compute, self.dtypes) for k in range(len(op.operands))]
        if function == "select":
            taken[0] = arithmetic(dtypes[1])
        operands = [operand(o, wanted) for o, wanted in zip(op.operands, taken, strict=True)]
        values = [
            text if is_vector else f"{vector_type(wanted, width)}_splat({text})"
            for (text, is_vector), wanted in zip(operands, taken, strict=True)
        ]
        reduction = _stride(self._flat(op.target), lane) == 0
        register = program.buffer_of[op.target.array].location == "register"
        fused = (
            self.strict and op.accumulate == "+" and function == "*" and dtype == compute in ("f32", "f64")
        )
        whole, got = compute not in FLOATS, compute
        if program.buffer_of[op.target.array].name in self.masks:
            return f"{self._place(op.target, scopes, lane)} = {self._mask(function, compute, values, width)};"
        if function in COMPARISONS:
            value, got = f"{self._mask(function, compute, values, width)} & 1", f"i{8 * DTYPE_BYTES[compute]}"
        elif function == "select" and self._is_mask(op.operands[0]):
            value = f"{kind}_select({', '.join(values)})"
        elif function == "select":
            value = self._chosen(taken[0], compute, values, width)
        elif function == "bitcast":
            value = f"({kind})({values[0]})"
        elif function == "not" and compute == "bool":
            value = f"{values[0]} ^ 1"
        elif not function or converting or (whole and function in TO_WHOLE):
            value = values[0]
        elif whole and function == "fma":
            value = f"{kind}_add({kind}_multiply({values[0]}, {values[1]}), {values[2]})"
        elif whole:
            named = WRAPPING.get(function, function) + key_suffix(op, self.dtypes)
            value = f"{kind}_{named}({', '.join(values)})"
        elif function == "neg":
            value = f"-{values[0]}"
        elif function in ("max", "min"):
            value = self.scalars.extreme(op, kind, values)
        elif FUNCTIONS[function].infix:
            # A scalar beside a vector is broadcast by the language.
            if any(is_vector for _, is_vector in operands):
                values = [text for text, _ in operands]
            value = f"{values[0]} {function} {atom(values[1])}"
        else:
            value = f"{kind}_{function}({', '.join(values)})"
        if function in NARROW_FLOATS:
            value, got = self._converted(value, compute, function, width), function
        accumulated = inner if op.accumulate else dtype
        if function in COMPARISONS and dtype == "bool":
            accumulated = "u8"  # 0 and 1 already
        value = self._converted(value, got, accumulated, width)
        kind = vector_type(accumulated, width)

        if reduction:
            if not op.accumulate:
                raise NotGeneratable(f"All lanes would write the same cell {op.target}.")
            place = self._place(op.target, scopes)
            total = f"{kind}_{_HORIZONTAL[op.accumulate]}({value})"
            old = scalar_conversion(place, dtype, inner)
            if op.accumulate not in "+*":
                total = f"{inner}_{op.accumulate}({total}, {old})"
            elif inner not in FLOATS:
                total = f"{inner}_{WRAPPING[op.accumulate]}({old}, {total})"
            elif dtype not in HALVES:
                return f"{place} {op.accumulate}= {total};"
            else:
                total = f"{old} {op.accumulate} {total}"
            return f"{place} = {scalar_conversion(total, inner, dtype)};"
        if _stride(self._flat(op.target), lane) != 1:
            raise NotGeneratable(f"The lanes of {op.target} must be neighbours to be written at once.")
        place = self._place(op.target, scopes, lane)
        held = vector_type(dtype, width)
        old = self._converted(place if register else f"{held}_load(&{place})", dtype, inner, width)
        if fused:
            a, b = (text if v else f"{kind}_splat({text})" for text, v in operands)
            value = f"{kind}_fma({a}, {b}, {old})"
        elif op.accumulate in ("+", "*"):
            if inner not in FLOATS:
                value = f"{kind}_{WRAPPING[op.accumulate]}({old}, {value})"
            elif register and dtype not in HALVES:
                return f"{place} {op.accumulate}= {value};"
            else:
                value = f"{old} {op.accumulate} {atom(value)}"
        elif op.accumulate:
            value = f"{kind}_{op.accumulate}({value}, {old})"
        if op.accumulate:
            value = self._converted(value, inner, dtype, width)
        if register:
            return f"{place} = {value};"
        stream = op.stream and width * DTYPE_BYTES[dtype] >= _SHORTEST
        return f"{held}_{'stream' if stream else 'store'}(&{place}, {value});"

    def _is_mask(self, operand: Operand) -> bool:
        return isinstance(operand, Access) and self.program.buffer_of[operand.array].name in self.masks

    def _mask(self, function: str, compute: str, values: Sequence[str], width: int) -> str:
        """All bits in the lanes in which a comparison holds, else none, in integers of the same size."""
        signed = f"i{8 * DTYPE_BYTES[compute]}"
        if function in ("isnan", "isinf"):
            infinite = f"{vector_type(compute, width)}_abs({values[0]}) == {literal(math.inf, compute)}"
            test = f"{values[0]} != {values[0]}" if function == "isnan" or compute not in FLOATS else infinite
        else:
            test = f"{atom(values[0])} {function} {atom(values[1])}"
        return f"({vector_type(signed, width)})({test})"

    def _chosen(self, tested: str, compute: str, values: Sequence[str], width: int) -> str:
        """The second operand in the lanes in which the first, of the dtype ``tested``, is not 0; else the
        third."""
        signed, wanted = f"i{8 * DTYPE_BYTES[tested]}", f"i{8 * DTYPE_BYTES[compute]}"
        kind, lanes = vector_type(compute, width), vector_type(signed, width)
        mask = self._converted(f"({lanes})({atom(values[0])} != 0)", signed, wanted, width)
        if compute in FLOATS:
            return f"{kind}_select({mask}, {values[1]}, {values[2]})"
        return f"({atom(values[1])} & ({kind})({mask})) | ({atom(values[2])} & ~({kind})({mask}))"


class _Scalars(Scalars):
    """Scalar statements that use what the preamble has on a CPU."""

    def extreme(self, op: Op, kind: str, values: Sequence[str]) -> str:
        """Beside a number that is no NaN, one comparison: what it is compared with passes where that is NaN
        or equal, and only a zero of the lesser sign, equal too, takes on the other one."""
        numbers = [k for k, o in enumerate(op.operands) if isinstance(o, Number) and not math.isnan(o.value)]
        if not numbers:
            return super().extreme(op, kind, values)
        (number,) = numbers[:1]
        value = op.operands[number].value  # type: ignore[union-attr]
        sign = "" if op.function == "max" else "-"
        compared = "most" if op.function == "max" else "least"
        text = f"{kind}_{compared}({values[number]}, {values[1 - number]})"
        outranks = value == 0 and (math.copysign(1, value) > 0) == (op.function == "max")
        return f"{sign}{kind}_abs({text})" if outranks else text


# ---------------------------------------------------------------------------- names and owners


def _names(program: Program) -> dict[str, str]:
    """A C identifier for each buffer and table: its own name, with ``_`` added until it clashes with nothing.

    Names that look like ours (``i0``, ``f32x4_exp``, ``kernel_k``) get a ``v_`` in front instead. A register
    buffer's locals are its name and numbers (``acc_0_3``), which may not be another's name.
    """
    names: dict[str, str] = {}
    written = [*(b.name for b in program.buffers), *program.tables]
    for given in written:
        others = [*names.values(), *(n for n in written if n != given)]
        name = f"v_{given}" if _OURS.fullmatch(given) else given
        while name in _KEYWORDS or any(
            re.fullmatch(re.escape(name) + r"(?:_\d+)*", other) for other in others
        ):
            name += "_"
        names[given] = name
    return names


def _together(cells: str, dtype: str, width: int) -> str:
    """A vector of single cells."""
    kind = vector_type(dtype, width)
    return f"{kind}_of({cells})" if dtype == "i128" else f"({kind}){{{cells}}}"


def _into_lane(statement: str) -> str:
    """A statement that writes a lane of a vector of i128, which is no place in C, by the function for it."""
    written = re.match(r"(i128x\d+)_lane\((\w+, \d+)\) = (.*);", statement)
    return f"{written[1]}_set(&{written[2]}, {written[3]});" if written else statement


def _spread(place: str, dtype: str, width: int, stride: int) -> str:
    """Every so many cells from a place on, as a vector: whole vectors up to the last of them, put together.

    The last one is loaded so that it ends there: behind it there may be no memory.
    """
    if dtype == "i128":
        return _together(", ".join(f"(&{place})[{k * stride}]" for k in range(width)), dtype, width)
    kind, end = vector_type(dtype, width), stride * (width - 1) + 1
    text, held = f"{kind}_load(&{place})", list[int | None](range(width))  # the cell that each lane has
    for number in range(1, stride):
        start = min(number * width, end - width)
        chosen: list[int] = []
        wanted: list[int | None] = [lane * stride for lane in range(width)]
        for lane, cell in enumerate(range(0, end, stride)):
            if cell in held:
                chosen.append(held.index(cell))
            elif start <= cell < start + width:
                chosen.append(width + cell - start)
            else:  # it comes later
                chosen.append(0)
                wanted[lane] = None
        lanes = ", ".join(map(str, chosen))
        text = f"__builtin_shufflevector({text}, {kind}_load(&{place} + {start}), {lanes})"
        held = wanted
    return text


def _peeled(scopes: Sequence[Scope]) -> int:
    """The iterations of the short loops right around a statement, which gcc writes out; 0 without any."""
    written = 1
    for scope in reversed(scopes):
        if scope.mark == "u" or written * scope.size > _PEELED:
            break
        written *= scope.size
    return written if written > 1 else 0


def _has(scope: Scope, limits: Target) -> bool:
    """Has the processor the instruction that a scope is marked with?"""
    return (scope.mark, scope.size) in limits.instructions


def _lane_depth(scopes: Sequence[Scope], limits: Target) -> int | None:
    """The depth of the scope over the lanes of one statement, if there is one."""
    for depth, scope in enumerate(scopes):
        if scope.mark == "v" or (scope.mark in INSTRUCTIONS and _has(scope, limits)):
            return depth
    return None


def _owned(program: Program, limits: Target) -> dict[Path, list[Buffer]]:
    """Stack and register buffers by the innermost scope that holds all their accesses."""
    common: dict[str, Path] = {}
    for leaf in program.leaves:
        lanes = _lane_depth(leaf.scopes, limits)
        scope = leaf.path[:-1] if lanes is None else leaf.path[:lanes]
        for access in (leaf.op.target, *leaf.op.reads):
            name = program.buffer_of[access.array].name
            known = common.setdefault(name, scope)
            shared = 0
            while shared < min(len(known), len(scope)) and known[shared] == scope[shared]:
                shared += 1
            common[name] = known[:shared]
    owned: dict[Path, list[Buffer]] = {}
    for buffer in program.buffers:
        if buffer.location != "heap" and buffer.name in common:
            owned.setdefault(common[buffer.name], []).append(buffer)
    return owned


def _table(table: Table, name: str) -> list[str]:
    """A constant table's declaration, row-major."""
    lines = [f"static const {table.dtype} {name}[] = {{"]
    for value in table.values:
        if len(lines) == 1 or len(lines[-1]) > _LINE_WIDTH - 16:
            lines.append("   ")
        lines[-1] += f" {value},"
    return [*lines, "};"]


def _stride(index: Index, lane: int) -> int:
    """Cells between neighbouring lanes. Raises NotGeneratable where each looks up its own index."""
    if isinstance(index, Affine):
        return index.coefficient(lane)
    if index.looks_up(lane):
        raise NotGeneratable("Each lane of a read looks up its own index: they must be neighbours.")
    return index.rest.coefficient(lane)
